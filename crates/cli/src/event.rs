//! `jari event`: operate sales.

use std::process;

use admin::{Command, Draw, EventDetail, EventSummary, Refused, Reply};
use domain::sale::{PaymentMode, PreQueue, Sale};
use domain::{EventId, Millis};

use crate::Ending;
use crate::arguments::{ApplyArguments, EventCommand, Switch, SystemArguments};
use crate::output::{Output, Side, Table, Times, counted, cut, number, signed, span, text};
use crate::system::{System, refused, unexpected};
use crate::{check, draw, import};

pub(crate) async fn run(
    system: &SystemArguments,
    command: EventCommand,
    output: &mut Output,
) -> anyhow::Result<Ending> {
    // Those that need no system.
    match &command {
        EventCommand::Check { files, json } => return check::run(files, *json, output),
        EventCommand::FromGtfs(arguments) => return import::from_gtfs(arguments, output),
        EventCommand::FromCsv(arguments) => return import::from_csv(arguments, output),
        _ => {}
    }
    let system = System::find(system)?;
    let by = user();
    match command {
        EventCommand::Check { .. } | EventCommand::FromGtfs(_) | EventCommand::FromCsv(_) => Ok(Ending::Fine),
        EventCommand::Apply(arguments) => apply(&system, arguments, by, output).await,
        EventCommand::List { json } => list(&system, json, output).await,
        EventCommand::Show { event, json } => show(&system, event, json, output).await,
        EventCommand::VerifyShuffle(arguments) => draw::run(&system, arguments, output).await,
        EventCommand::Open { event } => change(&system, Command::Open { event, by }, "open", output).await,
        EventCommand::Pause { event } => {
            change(&system, Command::Pause { event, by }, "paused", output).await
        }
        EventCommand::Close { event } => {
            change(&system, Command::Close { event, by }, "closed", output).await
        }
        EventCommand::Pace { event, per_second } => {
            let done = format!("{} people/s from the next tick on", pace(per_second));
            change(&system, Command::Pace { event, per_second, by }, &done, output).await
        }
        EventCommand::Message { event, text, .. } => {
            let text = text.unwrap_or_default();
            let done =
                if text.trim().is_empty() { "no message" } else { "the message is told with every answer" };
            change(&system, Command::Message { event, text, by }, done, output).await
        }
        EventCommand::Delete { event, patience } => {
            delete(&system, Command::Delete { event, by, patience_seconds: patience }, output).await
        }
        EventCommand::Maintenance { event, switch } => {
            let on = switch == Switch::On;
            let done = if on { "no holds and bookings" } else { "holds and bookings again" };
            change(&system, Command::Maintenance { event, on, by }, done, output).await
        }
    }
}

/// Who asks, for the journal: the user of this process.
pub(crate) fn user() -> String {
    let output = process::Command::new("id").arg("-un").output();
    let name = output
        .ok()
        .filter(|output| output.status.success())
        .and_then(|output| String::from_utf8(output.stdout).ok());
    name.map(|name| name.trim().to_owned())
        .filter(|name| !name.is_empty())
        .unwrap_or_else(|| "unknown".to_owned())
}

async fn change(
    system: &System,
    command: Command,
    done: &str,
    output: &mut Output,
) -> anyhow::Result<Ending> {
    match system.ask(command).await? {
        Ok(Reply::Changed { event, .. }) => {
            output.line(format!("{event}: {done}"))?;
            Ok(Ending::Fine)
        }
        Ok(other) => Err(unexpected(&other)),
        Err(why) => Ok(refused(&why)),
    }
}

async fn delete(system: &System, command: Command, output: &mut Output) -> anyhow::Result<Ending> {
    match system.ask(command).await? {
        Ok(Reply::Deleted { event, keys }) => {
            let keys = counted(keys, "key");
            output.line(format!("{event}: deleted, {keys} removed from Redis; PostgreSQL keeps its rows"))?;
            Ok(Ending::Fine)
        }
        Ok(other) => Err(unexpected(&other)),
        Err(why) => Ok(refused(&why)),
    }
}

async fn apply(
    system: &System,
    arguments: ApplyArguments,
    by: String,
    output: &mut Output,
) -> anyhow::Result<Ending> {
    let ApplyArguments { file, opens_at, json } = arguments;
    let opens_at = opens_at.map(|opens_at| opens_at.instant(Millis::now()));
    let command = Command::Apply { definition: check::read(&file)?.into(), opens_at, by };
    let reply = match system.ask(command).await? {
        Ok(reply) => reply,
        Err(why) if json => {
            output.json(&Reply::Refused(why))?;
            return Ok(Ending::Found);
        }
        Err(Refused::InvalidDefinition { problems }) => {
            check::tell(&file, &problems, output)?;
            output.line(counted(problems.len() as u64, "mistake"))?;
            return Ok(Ending::Found);
        }
        Err(why) => return Ok(refused(&why)),
    };
    match &reply {
        Reply::Applied { .. } if json => output.json(&reply)?,
        Reply::Applied { event, version, created } => {
            let done = if *created { "created".to_owned() } else { format!("changed, version {version}") };
            output.line(format!("{event}: {done}"))?;
        }
        other => return Err(unexpected(other)),
    }
    Ok(Ending::Fine)
}

async fn list(system: &System, json: bool, output: &mut Output) -> anyhow::Result<Ending> {
    let events = match system.ask(Command::List).await? {
        Ok(Reply::Listed { events }) => events,
        Ok(other) => return Err(unexpected(&other)),
        Err(why) => return Ok(refused(&why)),
    };
    if json {
        output.json(&events)?;
    } else if events.is_empty() {
        output.line("there are no events: create one with `jari event apply FILE`")?;
    } else {
        output.text(listing(&events, output.times()))?;
    }
    Ok(Ending::Fine)
}

fn listing(events: &[EventSummary], times: Times) -> String {
    let mut table = Table::new([
        ("EVENT", Side::Left),
        ("STATUS", Side::Left),
        ("OPENS", Side::Left),
        ("WAITING", Side::Right),
        ("FREE", Side::Right),
        ("PLACES", Side::Right),
    ]);
    for event in events {
        table.row([
            event.event.to_string(),
            status(event).to_owned(),
            times.short(event.opens_at),
            number(event.waiting),
            number(event.remaining),
            number(event.capacity),
        ]);
    }
    table.text()
}

fn status(event: &EventSummary) -> &str {
    // What works least is what an operator has to know.
    if event.maintenance && event.status != "CLOSED" { "MAINTENANCE" } else { &event.status }
}

async fn show(system: &System, event: EventId, json: bool, output: &mut Output) -> anyhow::Result<Ending> {
    let detail = match system.ask(Command::Show { event }).await? {
        Ok(Reply::Shown(detail)) => detail,
        Ok(other) => return Err(unexpected(&other)),
        Err(why) => return Ok(refused(&why)),
    };
    if json {
        output.json(&detail)?;
    } else {
        output.text(shown(&detail, output.times()))?;
    }
    Ok(Ending::Fine)
}

/// Columns of a terminal, and of what stands before each line's text.
const COLUMNS: usize = 80;
const INDENT: usize = 14;

fn shown(detail: &EventDetail, times: Times) -> String {
    let EventDetail { summary, sections, draw, sale } = detail;
    let mut lines = vec![format!("{}  {}", summary.event, summary.title)];
    for (what, line) in
        state(summary, times).into_iter().chain(rules(sale, times)).chain(drawn(draw.as_ref()))
    {
        lines.push(format!("  {what:<10}  {}", cut(&line, COLUMNS - INDENT)));
    }
    lines.push(String::new());
    let mut table = Table::new([
        ("OFFERING", Side::Left),
        ("SECTION", Side::Left),
        ("NAME", Side::Left),
        ("PRICE", Side::Right),
        ("FREE", Side::Right),
        ("PLACES", Side::Right),
    ]);
    for section in sections {
        table.row([
            section.offering_id.to_string(),
            section.section_id.to_string(),
            cut(&section.name, 16),
            format!("{} {}", number(section.price), sale.payment.currency),
            signed(section.remaining),
            number(section.capacity.into()),
        ]);
    }
    text(&lines) + &table.text()
}

type Lines = Vec<(&'static str, String)>;

fn state(summary: &EventSummary, times: Times) -> Lines {
    let EventSummary { now, opens_at, closes_at, .. } = *summary;
    let when = |at: Millis| {
        let span = span(at.0 - now.0);
        let distance = if at > now { format!("in {span}") } else { format!("{span} ago") };
        format!("{}, {distance}", times.long(at))
    };
    let since = |at: Option<Millis>| at.map_or("never".to_owned(), |at| span((now.0 - at.0).max(0)) + " ago");
    let mut status = summary.status.clone();
    if summary.maintenance {
        status.push_str(", maintenance: no holds and bookings");
    }
    if summary.joins_refused {
        status.push_str(", nobody new joins: the journal is full");
    }
    let pressed = if summary.pace_factor < 1.0 {
        format!(", {} % of that for now", pace(summary.pace_factor * 100.0))
    } else {
        String::new()
    };
    let (set, seen) = (pace(summary.per_second), pace(summary.admitted_per_second));
    let mut lines = vec![
        ("status", status),
        ("opens", when(opens_at)),
        ("closes", when(closes_at)),
        ("waiting", counted_people(summary.waiting)),
        (
            "active",
            format!("{}, at most {}", counted_people(summary.active), number(summary.max_active.into())),
        ),
        ("pace", format!("{set} people/s set{pressed}, {seen} seen")),
        ("places", format!("{} free of {}", number(summary.remaining), number(summary.capacity))),
        ("sold", counted(summary.reservations, "reservation") + ", cancelled ones included"),
        ("journal", counted(summary.journal, "fact") + " not yet taken by a queue"),
        ("last tick", format!("{}, last relay {}", since(summary.ticked_at), since(summary.relayed_at))),
        ("version", summary.version.to_string()),
    ];
    if let Some(message) = &summary.message {
        lines.push(("message", message.clone()));
    }
    lines
}

fn rules(sale: &Sale, times: Times) -> Lines {
    let before = match sale.pre_queue {
        PreQueue::Closed => "nobody can join",
        PreQueue::Fifo => "people stand in order of arrival",
        PreQueue::Shuffle => "places are drawn",
    };
    let payment = match (sale.payment.mode, sale.payment.due_at, sale.payment.due_after_seconds) {
        (PaymentMode::None, ..) => "none".to_owned(),
        (PaymentMode::Deferred, Some(due_at), _) => format!("due {}", times.long(due_at)),
        (PaymentMode::Deferred, None, after) => {
            format!("due {} after the booking", span(i64::from(after.unwrap_or_default()) * 1_000))
        }
    };
    let seconds = |seconds: u32| span(i64::from(seconds) * 1_000);
    let admission = &sale.admission;
    let account = if sale.require_account { ", which must be proven" } else { "" };
    let mut session =
        format!("{}, claimed within {}", seconds(admission.active_seconds), seconds(admission.claim_seconds));
    if admission.compensate_no_shows {
        session.push_str(", no-shows made up for");
    }
    let backpressure = match admission.backpressure_seconds {
        Some(bearable) => format!("slower once bookings wait {} to be written", seconds(bearable)),
        None => "none: bookings that wait to be written slow nobody".to_owned(),
    };
    vec![
        ("pre-queue", before.to_owned()),
        ("session", session),
        ("pressure", backpressure),
        ("hold", seconds(sale.hold_seconds)),
        ("limit", format!("{} an account{account}", counted(sale.limit_per_account.into(), "place"))),
        ("payment", payment),
    ]
}

fn drawn(draw: Option<&Draw>) -> Lines {
    let Some(Draw { commitment, seed }) = draw else { return Vec::new() };
    let mut lines = vec![("commitment", commitment.clone())];
    lines.extend(seed.clone().map(|seed| ("seed", seed)));
    lines
}

fn counted_people(count: u64) -> String {
    format!("{} {}", number(count), if count == 1 { "person" } else { "people" })
}

/// Three digits behind the point where they say something.
fn pace(per_second: f64) -> String {
    let text = format!("{per_second:.3}");
    let (whole, part) = text.split_once('.').unwrap_or((&text, ""));
    let whole = whole.parse().map_or_else(|_| whole.to_owned(), number);
    format!("{whole}.{part}").trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use admin::SectionState;

    use super::*;

    fn detail() -> EventDetail {
        let sale = domain::sale::check(include_str!("../../../infra/sales/ktx-2026-chuseok.json")).unwrap();
        let summary = EventSummary {
            event: sale.event_id.clone(),
            title: sale.title.clone(),
            status: "OPEN".to_owned(),
            maintenance: false,
            version: 3,
            now: sale.opens_at.plus(61_000),
            opens_at: sale.opens_at,
            closes_at: sale.closes_at,
            waiting: 1_234_567,
            active: 1,
            max_active: sale.admission.max_active,
            per_second: sale.admission.per_second,
            admitted_per_second: 69.5,
            pace_factor: 0.25,
            joins_refused: true,
            remaining: 19_998,
            capacity: 20_000,
            reservations: 1,
            journal: 0,
            ticked_at: Some(sale.opens_at.plus(60_000)),
            relayed_at: None,
            message: Some("가".repeat(100)),
        };
        let section = SectionState {
            offering_id: "KTX-101-0924".parse().unwrap(),
            section_id: "special".parse().unwrap(),
            name: "특실".to_owned(),
            price: 83_700,
            remaining: -1,
            held: 0,
            capacity: 126,
        };
        let draw = Some(Draw { commitment: "c".repeat(64), seed: None });
        EventDetail { summary, sections: vec![section], draw, sale: Arc::new(sale) }
    }

    #[test]
    fn an_event_is_shown_with_units_in_80_columns() {
        use unicode_width::UnicodeWidthStr;
        let text = shown(&detail(), Times::UTC);
        for line in [
            "ktx-2026-chuseok  2026년 추석 승차권 예매",
            "  status      OPEN, nobody new joins: the journal is full",
            "  opens       2026-08-31 22:00:00 +00:00, 1 min 1 s ago",
            "  waiting     1,234,567 people",
            "  active      1 person, at most 12,600",
            "  pace        70 people/s set, 25 % of that for now, 69.5 seen",
            "  places      19,998 free of 20,000",
            "  last tick   1 s ago, last relay never",
            "OFFERING      SECTION  NAME       PRICE  FREE  PLACES",
            "KTX-101-0924  special  특실  83,700 KRW    -1     126",
        ] {
            assert!(text.lines().any(|shown| shown == line), "{line}\n{text}");
        }
        assert!(text.lines().all(|line| line.width() <= COLUMNS), "{text}");
    }

    #[test]
    fn a_list_is_aligned() {
        let mut paused = detail().summary;
        paused.event = "e".parse().unwrap();
        paused.maintenance = true;
        let text = listing(&[detail().summary, paused], Times::UTC);
        let expected = "\
EVENT             STATUS       OPENS               WAITING    FREE  PLACES
ktx-2026-chuseok  OPEN         2026-08-31 22:00  1,234,567  19,998  20,000
e                 MAINTENANCE  2026-08-31 22:00  1,234,567  19,998  20,000
";
        assert_eq!(text, expected);
    }

    #[test]
    fn a_pace_has_no_needless_digits() {
        for (value, text) in
            [(70.0, "70"), (2_000.0, "2,000"), (0.5, "0.5"), (69.986, "69.986"), (0.001, "0.001"), (0.0, "0")]
        {
            assert_eq!(pace(value), text);
        }
    }

    #[test]
    fn who_asks_is_known() {
        assert!(!user().is_empty());
    }
}
