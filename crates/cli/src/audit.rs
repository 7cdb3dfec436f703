//! `jari audit`.

use admin::{AuditReport, Checked, Command, Finding, Mended, Reply};

use crate::Ending;
use crate::arguments::{AuditArguments, SystemArguments};
use crate::event::user;
use crate::output::{Output, counted, number, text};
use crate::rebuild::conflicts;
use crate::system::{System, refused, unexpected};

pub(crate) async fn run(
    system: &SystemArguments,
    arguments: AuditArguments,
    output: &mut Output,
) -> anyhow::Result<Ending> {
    let AuditArguments { event, patience, repair, json } = arguments;
    let command = Command::Audit { event, patience_seconds: patience, repair, by: user() };
    let report = match System::find(system)?.ask(command).await? {
        Ok(Reply::Audited(report)) => report,
        Ok(other) => return Err(unexpected(&other)),
        Err(why) => return Ok(refused(&why)),
    };
    if json {
        output.json(&report)?;
    } else {
        output.text(findings(&report.findings, report.more))?;
        output.text(summary(&report))?;
    }
    Ok(if report.findings.is_empty() { Ending::Fine } else { Ending::Found })
}

/// Each finding in four lines: what and where, what should be, what is, what would mend it.
pub(crate) fn findings(findings: &[Finding], more: u64) -> String {
    let mut lines = Vec::new();
    for Finding { what, place, expected, found, mend } in findings {
        // The kind is told as JSON tells it.
        let what = serde_json::to_value(what).ok();
        let what = what.as_ref().and_then(serde_json::Value::as_str).unwrap_or_default();
        lines.push(format!("{what}: {place}"));
        lines.push(format!("  expected  {expected}"));
        lines.push(format!("  found     {found}"));
        lines.push(format!("  mend      {mend}"));
    }
    if more > 0 {
        lines.push(format!("and {}", counted(more, "more finding")));
    }
    text(&lines)
}

fn summary(report: &AuditReport) -> String {
    let AuditReport { event, findings, more, mended, left_out, checked } = report;
    let Checked { readings, places, holds, reservations, rows, journal, admitted } = *checked;
    let mut lines: Vec<String> = left_out.iter().map(|what| format!("not checked: {what}")).collect();
    lines.extend(mended.iter().flat_map(repaired));
    let count = findings.len() as u64 + more;
    let verdict = if count == 0 { "all is well".to_owned() } else { counted(count, "finding") };
    lines.push(format!("{event}: {verdict}"));
    for (what, count) in [
        ("places", counted(places, "place")),
        ("holds", counted(holds, "held unit")),
        ("sold", format!("{}, {} in PostgreSQL", counted(reservations, "reservation"), counted(rows, "row"))),
        ("journal", format!("{} not yet taken by a queue", counted(journal, "fact"))),
        ("line", counted(admitted, "call")),
        ("read", counted(u64::from(readings), "time")),
    ] {
        lines.push(format!("  {what:<7}  {count}"));
    }
    text(&lines)
}

/// What was put right before the last reading.
fn repaired(mended: &Mended) -> Vec<String> {
    let Mended { reservations, settled, refiled, sessions, counted: counts, moved } = mended;
    let mut lines: Vec<String> = [
        (reservations.restored, "reservation put back", "reservations put back"),
        (reservations.evicted, "held place that gave way", "held places that gave way"),
        (*settled, "reservation settled", "reservations settled"),
        (*refiled, "fact filed again", "facts filed again"),
        (*sessions, "session put right", "sessions put right"),
        (*counts, "count put right", "counts put right"),
    ]
    .into_iter()
    .filter(|(count, ..)| *count > 0)
    .map(|(count, one, many)| format!("repaired: {} {}", number(count), if count == 1 { one } else { many }))
    .collect();
    lines.extend(conflicts(reservations));
    if *moved {
        lines.push("not counted: the sale moved; try during jari event maintenance on".to_owned());
    }
    lines
}

#[cfg(test)]
mod tests {
    use admin::Fault;

    use super::*;

    fn report(findings: Vec<Finding>) -> AuditReport {
        let checked = Checked { readings: 2, places: 1_234, rows: 1, reservations: 1, ..Checked::default() };
        let left_out = vec!["seats: they moved".to_owned()];
        AuditReport { event: "e".parse().unwrap(), findings, more: 0, mended: None, left_out, checked }
    }

    #[test]
    fn a_finding_tells_what_where_what_should_be_and_what_is() {
        let finding = Finding {
            what: Fault::StockDiffers,
            place: "KTX-101/standing".to_owned(),
            expected: "298 free".to_owned(),
            found: "300 free".to_owned(),
            mend: Fault::StockDiffers.mend().to_owned(),
        };
        assert_eq!(
            findings(std::slice::from_ref(&finding), 2_000),
            "stock-differs: KTX-101/standing\n  expected  298 free\n  found     300 free\n  mend      jari \
             audit --repair (recount)\nand 2,000 more findings\n"
        );
        assert!(summary(&report(vec![finding])).contains("e: 1 finding\n"));
    }

    #[test]
    fn a_repair_says_what_it_did_and_every_mend_fits_80_columns() {
        let mended = Mended { refiled: 1, counted: 1_200, moved: true, ..Mended::default() };
        let lines = repaired(&mended);
        assert_eq!(lines[..2], ["repaired: 1 fact filed again", "repaired: 1,200 counts put right"]);
        assert!(lines[2].starts_with("not counted: the sale moved") && lines[2].len() <= 80);
        for fault in [Fault::DifferentRow, Fault::EpochBehind, Fault::SequenceBehindLine, Fault::Oversold] {
            assert!("  mend      ".len() + fault.mend().len() <= 80, "{fault:?}");
        }
    }

    #[test]
    fn a_summary_says_what_was_looked_at_and_what_was_not() {
        let text = summary(&report(Vec::new()));
        assert!(
            text.starts_with("not checked: seats: they moved\ne: all is well\n  places   1,234 places\n"),
            "{text}"
        );
        assert!(text.contains("  sold     1 reservation, 1 row in PostgreSQL\n"), "{text}");
    }
}
