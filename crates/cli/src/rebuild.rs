//! `jari rebuild`.

use admin::{Progress as Stage, RebuildReport, Reply};

use crate::Ending;
use crate::arguments::{RebuildArguments, SystemArguments};
use crate::event::user;
use crate::output::{Output, Progress, Times, counted, text};
use crate::system::{System, refused, unexpected};

pub(crate) async fn run(
    system: &SystemArguments,
    arguments: RebuildArguments,
    output: &mut Output,
) -> anyhow::Result<Ending> {
    let RebuildArguments { event, json } = arguments;
    let system = System::find(system)?;
    let progress = Progress::new(true);
    let reply = system.rebuild(&event, &user(), &|stage| progress.tell(told(stage))).await;
    progress.end();
    let report = match reply? {
        Ok(Reply::Rebuilt(report)) => report,
        Ok(other) => return Err(unexpected(&other)),
        Err(why) => return Ok(refused(&why)),
    };
    if json {
        output.json(&report)?;
    } else {
        let times = output.times();
        output.text(summary(&report, times))?;
    }
    let is_whole = report.reservations.conflicts.is_empty();
    Ok(if is_whole { Ending::Fine } else { Ending::Found })
}

fn told(stage: Stage) -> String {
    match stage {
        Stage::Reading(facts) => format!("reading: {}", counted(facts, "fact")),
        Stage::Placing(placed, of) => format!("the line: {} of {of}", counted(placed, "place")),
        Stage::Restoring => "the reservations".to_owned(),
    }
}

fn summary(report: &RebuildReport, times: Times) -> String {
    let RebuildReport { event, version, epoch, last_fact_at, facts, waiting, called, reservations } = report;
    let mut lines = vec![format!("{event} is in place again: version {version}, epoch {epoch}")];
    for (what, told) in [
        ("line", format!("{} waiting, {}", counted(*waiting, "place"), counted(*called, "visit"))),
        ("sold", counted(reservations.restored, "reservation")),
        (
            "from",
            format!("{} of the line, the newest of {}", counted(*facts, "fact"), times.long(*last_fact_at)),
        ),
    ] {
        lines.push(format!("  {what:<7}  {told}"));
    }
    lines.extend(conflicts(reservations));
    text(&lines)
}

/// What could not be put back, two lines each.
pub(crate) fn conflicts(repaired: &admin::RepairReport) -> Vec<String> {
    let mut lines = Vec::new();
    for admin::Conflict { reservation_id, reason } in &repaired.conflicts {
        lines.push(format!("not put back: {reservation_id}"));
        lines.push(format!("  {reason}"));
    }
    if repaired.more > 0 {
        lines.push(format!("and {}", counted(repaired.more, "more reservation")));
    }
    lines
}

#[cfg(test)]
mod tests {
    use domain::Millis;

    use super::*;

    #[test]
    fn a_rebuild_says_what_is_back_and_what_is_not() {
        let conflict = admin::Conflict {
            reservation_id: "e.00000000-0000-0000-0000-000000000001".parse().unwrap(),
            reason: "seat 1A is another's, or off sale".to_owned(),
        };
        let reservations =
            admin::RepairReport { restored: 2, conflicts: vec![conflict], ..admin::RepairReport::default() };
        let report = RebuildReport {
            event: "e".parse().unwrap(),
            version: 1_003,
            epoch: 11,
            last_fact_at: Millis(0),
            facts: 9,
            waiting: 5,
            called: 1,
            reservations,
        };
        assert_eq!(
            summary(&report, Times::UTC),
            "e is in place again: version 1003, epoch 11\n  line     5 places waiting, 1 visit\n  sold     \
             2 reservations\n  from     9 facts of the line, the newest of 1970-01-01 00:00:00 +00:00\n\
             not put back: e.00000000-0000-0000-0000-000000000001\n  seat 1A is another's, or off sale\n"
        );
        assert_eq!(told(Stage::Placing(1_000, 2_000)), "the line: 1,000 places of 2000");
    }
}
