//! `jari event verify-shuffle`.

use std::fs;
use std::path::Path;

use admin::{Command, DrawReport, Refused, Reply};
use anyhow::Context;
use domain::EventId;

use crate::Ending;
use crate::arguments::VerifyArguments;
use crate::audit::findings;
use crate::output::{Output, Progress, Times, counted, number};
use crate::system::{System, refused, unexpected};

pub(crate) async fn run(
    system: &System,
    arguments: VerifyArguments,
    output: &mut Output,
) -> anyhow::Result<Ending> {
    let VerifyArguments { event, list, json } = arguments;
    let report = match system.ask(Command::VerifyShuffle { event: event.clone() }).await? {
        Ok(Reply::Verified(report)) => report,
        Ok(other) => return Err(unexpected(&other)),
        Err(why) => return Ok(refused(&why)),
    };
    if json {
        output.json(&report)?;
    } else {
        output.text(findings(&report.mismatches, report.more))?;
        output.text(summary(&report, output.times()))?;
    }
    if let Some(path) = list {
        match digests(system, &event).await? {
            Ok(digests) => write(&path, &digests, json, output)?,
            Err(why) => return Ok(refused(&why)),
        }
    }
    Ok(if report.mismatches.is_empty() { Ending::Fine } else { Ending::Found })
}

fn summary(report: &DrawReport, times: Times) -> String {
    let DrawReport { event, opens_at, commitment, seed, places, waiting, admitted, mismatches, more } =
        report;
    let count = mismatches.len() as u64 + more;
    let verdict = match count {
        0 => "the draw is as the seed says".to_owned(),
        _ => format!("the draw is not as the seed says: {}", counted(count, "finding")),
    };
    let seed = match seed {
        Some(seed) => seed.clone(),
        None => format!("secret until the opening, {}", times.long(*opens_at)),
    };
    let places = format!("{}, {} of them waiting", counted(*places, "drawn place"), number(*waiting));
    format!(
        "{event}: {verdict}\n  commitment  {commitment}\n  seed        {seed}\n  places      {places}\n  \
         calls       {} checked\n",
        number(*admitted)
    )
}

/// SHA-256 of every token in the draw, sorted.
async fn digests(system: &System, event: &EventId) -> anyhow::Result<Result<Vec<String>, Refused>> {
    let progress = Progress::new(true);
    let mut all = Vec::new();
    let mut after = None;
    loop {
        match system.ask(Command::ShuffleList { event: event.clone(), after }).await? {
            Ok(Reply::ShuffleListed { digests, next }) => {
                all.extend(digests);
                after = next;
            }
            Ok(other) => return Err(unexpected(&other)),
            Err(why) => return Ok(Err(why)),
        }
        progress.tell(counted(all.len() as u64, "place"));
        if after.is_none() {
            break;
        }
    }
    progress.end();
    all.sort_unstable();
    all.dedup();
    Ok(Ok(all))
}

fn write(path: &Path, digests: &[String], json: bool, output: &mut Output) -> anyhow::Result<()> {
    let mut text = digests.join("\n");
    if !text.is_empty() {
        text.push('\n');
    }
    fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))?;
    if !json {
        output.line(format!(
            "  list        {} in {}",
            counted(digests.len() as u64, "digest"),
            path.display()
        ))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use domain::Millis;

    use super::*;

    #[test]
    fn a_summary_keeps_the_seed_until_the_opening() {
        let mut report = DrawReport {
            event: "e".parse().unwrap(),
            opens_at: Millis(1_788_213_600_000),
            commitment: "c".repeat(64),
            seed: None,
            places: 2_000,
            waiting: 1_500,
            admitted: 0,
            mismatches: Vec::new(),
            more: 0,
        };
        let text = summary(&report, Times::UTC);
        assert!(
            text.contains("seed        secret until the opening, 2026-08-31 22:00:00 +00:00\n"),
            "{text}"
        );
        assert!(text.contains("places      2,000 drawn places, 1,500 of them waiting\n"), "{text}");
        assert!(text.lines().all(|line| line.len() <= 80), "{text}");
        report.seed = Some("d".repeat(64));
        assert!(summary(&report, Times::UTC).contains(&"d".repeat(64)));
    }
}
