//! `jari audit`.

use admin::{AuditReport, Checked, Command, Finding, Reply};

use crate::Ending;
use crate::arguments::{AuditArguments, SystemArguments};
use crate::output::{Output, counted, text};
use crate::system::{System, refused, unexpected};

pub(crate) async fn run(
    system: &SystemArguments,
    arguments: AuditArguments,
    output: &mut Output,
) -> anyhow::Result<Ending> {
    let AuditArguments { event, patience, json } = arguments;
    let command = Command::Audit { event, patience_seconds: patience };
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

/// Each finding in three lines: what and where, what should be, what is.
pub(crate) fn findings(findings: &[Finding], more: u64) -> String {
    let mut lines = Vec::new();
    for Finding { what, place, expected, found } in findings {
        // The kind is told as JSON tells it.
        let what = serde_json::to_value(what).ok();
        let what = what.as_ref().and_then(serde_json::Value::as_str).unwrap_or_default();
        lines.push(format!("{what}: {place}"));
        lines.push(format!("  expected  {expected}"));
        lines.push(format!("  found     {found}"));
    }
    if more > 0 {
        lines.push(format!("and {}", counted(more, "more finding")));
    }
    text(&lines)
}

fn summary(report: &AuditReport) -> String {
    let AuditReport { event, findings, more, left_out, checked } = report;
    let Checked { readings, places, holds, reservations, rows, journal, admitted } = *checked;
    let mut lines: Vec<String> = left_out.iter().map(|what| format!("not checked: {what}")).collect();
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

#[cfg(test)]
mod tests {
    use admin::Fault;

    use super::*;

    fn report(findings: Vec<Finding>) -> AuditReport {
        let checked = Checked { readings: 2, places: 1_234, rows: 1, reservations: 1, ..Checked::default() };
        let left_out = vec!["seats: they moved".to_owned()];
        AuditReport { event: "e".parse().unwrap(), findings, more: 0, left_out, checked }
    }

    #[test]
    fn a_finding_tells_what_where_what_should_be_and_what_is() {
        let finding = Finding {
            what: Fault::StockDiffers,
            place: "KTX-101/standing".to_owned(),
            expected: "298 free".to_owned(),
            found: "300 free".to_owned(),
        };
        assert_eq!(
            findings(std::slice::from_ref(&finding), 2_000),
            "stock-differs: KTX-101/standing\n  expected  298 free\n  found     300 free\nand 2,000 more findings\n"
        );
        assert!(summary(&report(vec![finding])).contains("e: 1 finding\n"));
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
