//! After the crowd: what its answers must agree with, where the system itself can be asked.

use std::collections::HashMap;
use std::time::Duration;

use admin::{Command, MAX_EXPORT_PAGE, Reply};
use anyhow::bail;
use domain::EventId;
use tokio::time::{Instant, sleep};

use super::arguments::CrowdArguments;
use super::report::Report;
use super::visit::World;
use crate::arguments::SystemArguments;
use crate::system::{System, unexpected};

/// Between two readings of the rows.
const READ_INTERVAL: Duration = Duration::from_secs(1);

/// Puts what is right and wrong into the report.
pub(crate) async fn reach(
    system: &SystemArguments,
    world: &World,
    arguments: &CrowdArguments,
    report: &mut Report,
) {
    let (all, bugs) = report.bugs();
    world.witness.answers(all, bugs);
    if let Err(why) = ask(system, world, arguments, report).await {
        report.left_out.push(format!("limit, pace, PostgreSQL and the audit: {why}"));
    }
    (report.checks, report.broken) = world.witness.verdict();
}

async fn ask(
    arguments: &SystemArguments,
    world: &World,
    crowd: &CrowdArguments,
    report: &mut Report,
) -> anyhow::Result<()> {
    let is_elsewhere = crowd.url.is_some()
        && arguments.redis.is_none()
        && arguments.function.is_none()
        && crate::system::running(arguments).is_ok_and(|running| Some(&running.url) != crowd.url.as_ref());
    if is_elsewhere {
        bail!("another system runs here; name that one by --function, or --redis and --database");
    }
    let Some(event) = world.event.get() else { bail!("nobody got a place") };
    let event: EventId = event.parse()?;
    let system = System::find(arguments)?;
    match system.ask(Command::Show { event: event.clone() }).await? {
        Ok(Reply::Shown(detail)) => {
            world.witness.limit(detail.sale.limit_per_account);
            let admission = &detail.sale.admission;
            // No-shows are made up for by calling at up to twice the pace.
            let most = if admission.compensate_no_shows { 2.0 } else { 1.0 };
            world.witness.pace(admission.per_second * most);
            report.pace = Some(admission.per_second);
        }
        Ok(other) => return Err(unexpected(&other)),
        Err(why) => bail!("{why}"),
    }
    let command = Command::Audit {
        event: event.clone(),
        patience_seconds: admin::DEFAULT_PATIENCE_SECONDS,
        repair: false,
        by: "crowd".to_owned(),
    };
    match system.ask(command).await? {
        Ok(Reply::Audited(audit)) => {
            report.findings = audit.findings;
            report.left_out.extend(audit.left_out);
        }
        Ok(other) => return Err(unexpected(&other)),
        Err(why) => bail!("{why}"),
    }
    // To an audit a fact on its way is none that is missing.
    let deadline = Instant::now() + Duration::from_secs(admin::DEFAULT_PATIENCE_SECONDS.into());
    let mut recorded = rows(&system, &event).await?;
    while !world.witness.are_all_in(&recorded) && Instant::now() < deadline {
        sleep(READ_INTERVAL).await;
        recorded = rows(&system, &event).await?;
    }
    world.witness.recorded(&recorded);
    Ok(())
}

/// Places and amounts of all reservations in PostgreSQL, by their ids.
async fn rows(system: &System, event: &EventId) -> anyhow::Result<HashMap<String, (u32, u64)>> {
    let (mut rows, mut after) = (HashMap::new(), None);
    loop {
        let command =
            Command::Export { event: event.clone(), after, limit: MAX_EXPORT_PAGE, with_tokens: false };
        let (reservations, next) = match system.ask(command).await? {
            Ok(Reply::Exported { reservations, next }) => (reservations, next),
            Ok(other) => return Err(unexpected(&other)),
            Err(why) => bail!("{why}"),
        };
        rows.extend(reservations.into_iter().map(|reservation| {
            (reservation.reservation_id.to_string(), (reservation.seat_count, reservation.amount))
        }));
        after = next;
        if after.is_none() {
            return Ok(rows);
        }
    }
}
