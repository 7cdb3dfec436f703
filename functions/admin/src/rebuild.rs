//! Lay out an event anew that Redis has lost.

use domain::EventId;
use recovery::{Progress, Rebuilt};

use crate::publish::check_name;
use crate::reply::{Refused, Reply};
use crate::{AdminError, AdminState};

/// Carries out [`Command::Rebuild`](crate::Command::Rebuild), and tells how far it has come. What is in place is never
/// touched: it is repaired, not rebuilt.
pub async fn rebuild(
    state: &AdminState,
    event: &EventId,
    by: &str,
    told: &(dyn Fn(Progress) + Send + Sync),
) -> Result<Reply, AdminError> {
    if let Err(refused) = check_name(by) {
        return Ok(Reply::Refused(refused));
    }
    let not_now = |reason: String| Ok(Reply::Refused(Refused::not_now(reason)));
    match recovery::rebuild(state.store(), state.records()?, event, by, told).await? {
        Rebuilt::Rebuilt(report) => Ok(Reply::Rebuilt(report)),
        Rebuilt::InPlace => not_now(format!(
            "{event} is in Redis, and a rebuild would destroy what it knows: audit it with --repair instead"
        )),
        Rebuilt::Unknown => Ok(Reply::Refused(Refused::EventNotFound { event: event.clone() })),
        Rebuilt::Unreadable(reason) => {
            not_now(format!("a definition of {event} cannot be followed: {reason}"))
        }
        Rebuilt::Begun => not_now(format!(
            "{event} is half rebuilt from another edition: delete its keys in Redis and begin again"
        )),
    }
}
