//! `jari dlq`: messages that could not be written.

use admin::{Command, DeadLetterReport, Reply};
use domain::Millis;
use serde_json::json;

use crate::Ending;
use crate::arguments::{DlqCommand, SystemArguments};
use crate::output::{Output, counted, cut, span, text};
use crate::system::{System, refused, unexpected};

/// Columns of a terminal, and of what stands before each reason.
const COLUMNS: usize = 80;
const INDENT: usize = 10;

pub(crate) async fn run(
    system: &SystemArguments,
    command: DlqCommand,
    output: &mut Output,
) -> anyhow::Result<Ending> {
    let system = System::find(system)?;
    match command {
        DlqCommand::List { json } => list(&system, json, output).await,
        // Without ids all are meant: clap asks for the one or the other.
        DlqCommand::Replay { ids, json, .. } => replay(&system, ids, json, output).await,
    }
}

async fn list(system: &System, json: bool, output: &mut Output) -> anyhow::Result<Ending> {
    let letters = match system.ask(Command::DlqList).await? {
        Ok(Reply::DeadLetters { letters }) => letters,
        Ok(other) => return Err(unexpected(&other)),
        Err(why) => return Ok(refused(&why)),
    };
    if json {
        output.json(&letters)?;
    } else {
        output.text(listing(&letters, Millis::now()))?;
    }
    Ok(if letters.is_empty() { Ending::Fine } else { Ending::Found })
}

async fn replay(
    system: &System,
    ids: Vec<String>,
    json: bool,
    output: &mut Output,
) -> anyhow::Result<Ending> {
    let (replayed, kept) = match system.ask(Command::DlqReplay { ids }).await? {
        Ok(Reply::Replayed { replayed, kept }) => (replayed, kept),
        Ok(other) => return Err(unexpected(&other)),
        Err(why) => return Ok(refused(&why)),
    };
    if json {
        output.json(&json!({ "replayed": replayed, "kept": kept }))?;
    } else {
        let mut lines = vec![format!("{} moved back", counted(replayed.len() as u64, "message"))];
        if !kept.is_empty() {
            lines.push(format!(
                "{} stay where they are: jari dlq list",
                counted(kept.len() as u64, "message")
            ));
        }
        output.text(text(&lines))?;
    }
    Ok(if kept.is_empty() { Ending::Fine } else { Ending::Found })
}

/// Each in a few lines: which it is, what it says, why it is refused.
fn listing(letters: &[DeadLetterReport], now: Millis) -> String {
    let mut lines = Vec::new();
    for letter in letters {
        let mut head = letter.id.clone();
        head.extend(letter.queue.iter().map(|queue| format!(", {queue}")));
        head.extend(letter.since.map(|since| format!(", {} old", span(now.0 - since.0))));
        lines.push(cut(&head, COLUMNS));
        let told = letter
            .facts
            .iter()
            .map(|fact| format!("{} {}/{} {}", fact.event, fact.epoch, fact.id, fact.kind));
        lines.extend(told.map(|fact| format!("  fact    {}", cut(&fact, COLUMNS - INDENT))));
        let more = letter.fact_count.saturating_sub(letter.facts.len()) as u64;
        if more > 0 {
            lines.push(format!("  and     {}", counted(more, "more fact")));
        }
        let reason = letter.reason.as_deref().unwrap_or("nothing: it would be written now");
        lines.push(format!("  refused {}", cut(reason, COLUMNS - INDENT)));
    }
    lines.push(counted(letters.len() as u64, "dead letter"));
    text(&lines)
}

#[cfg(test)]
mod tests {
    use admin::DeadFact;
    use unicode_width::UnicodeWidthStr;

    use super::*;

    #[test]
    fn a_letter_says_what_it_is_and_why_it_is_refused_in_80_columns() {
        let fact = DeadFact {
            event: "concert-2026".parse().unwrap(),
            epoch: 1,
            id: "1790000000000-3".parse().unwrap(),
            kind: "BOOKED".to_owned(),
        };
        let letters = vec![DeadLetterReport {
            id: "0123456789abcdef".to_owned(),
            queue: Some("bookings".to_owned()),
            since: Some(Millis(1_790_000_000_000)),
            reason: Some("이유 ".repeat(40)),
            fact_count: 12,
            facts: vec![fact],
        }];
        let text = listing(&letters, Millis(1_790_000_061_000));
        for line in [
            "0123456789abcdef, bookings, 1 min 1 s old",
            "  fact    concert-2026 1/1790000000000-3 BOOKED",
            "  and     11 more facts",
            "1 dead letter",
        ] {
            assert!(text.lines().any(|shown| shown == line), "{line}\n{text}");
        }
        assert!(text.lines().all(|line| line.width() <= COLUMNS), "{text}");
    }
}
