//! Forget a sale.

use std::time::Duration;

use domain::EventId;
use domain::outcome::{Refusal, SaleStatus};
use store::{Deletion, Store};
use tokio::time::{Instant, sleep};

use crate::AdminError;
use crate::publish::check_name;
use crate::reply::{Refused, Reply};

/// The longest wait for the queues: well below the function's own timeout.
const MAX_PATIENCE_SECONDS: u32 = 300;
/// Between two looks at the journal, which is emptied each second.
const LOOK_INTERVAL: Duration = Duration::from_millis(300);

/// Forget a sale that is over or was never opened, once the queues have all of its journal.
pub(crate) async fn delete(
    store: &Store,
    event: &EventId,
    by: &str,
    patience_seconds: u32,
) -> Result<Reply, AdminError> {
    if let Err(refused) = check_name(by) {
        return Ok(Reply::Refused(refused));
    }
    let patience = Duration::from_secs(patience_seconds.min(MAX_PATIENCE_SECONDS).into());
    let end = Instant::now() + patience;
    loop {
        match store.delete(event, by).await? {
            Ok(Deletion::Noted { .. }) if Instant::now() < end => sleep(LOOK_INTERVAL).await,
            // A deletion that was interrupted had made it unknown, and left its keys.
            Ok(Deletion::Deleted) | Err(Refusal::EventNotFound) => break,
            Ok(other) => return Ok(Reply::Refused(Refused::not_now(reason(event, other)))),
            Err(Refusal::Recovering) => {
                let reason = format!("{event} recovers from a loss of Redis: wait until that is over");
                return Ok(Reply::Refused(Refused::not_now(reason)));
            }
            Err(refusal) => return Ok(Reply::Refused(Refused::not_now(format!("{event}: {refusal:?}")))),
        }
    }
    match store.forget_keys(event).await? {
        0 => Ok(Reply::Refused(Refused::EventNotFound { event: event.clone() })),
        keys => Ok(Reply::Deleted { event: event.clone(), keys }),
    }
}

/// Why it stays, and what to do.
fn reason(event: &EventId, deletion: Deletion) -> String {
    match deletion {
        Deletion::Ongoing { status: SaleStatus::Upcoming, waiting, .. } if waiting > 0 => {
            format!("people who wait for {event} to open: {waiting}; close it first")
        }
        Deletion::Ongoing { status: SaleStatus::Closed, active, .. } if active > 0 => {
            format!("people still inside of {event}: {active}; wait until their time is over")
        }
        Deletion::Ongoing { status: SaleStatus::Closed, unpaid, .. } => {
            format!("reservations of {event} yet to be paid: {unpaid}; wait until they are, or are over")
        }
        Deletion::Ongoing { status, .. } => {
            format!("{event} is {}: close it first", status.as_str().to_lowercase())
        }
        Deletion::Noted { journal } => format!(
            "facts of {event} that no queue has taken yet: {journal}; ask again once the relay has passed them on"
        ),
        Deletion::Deleted => format!("{event} is deleted"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_says_what_to_do() {
        let event: EventId = "e".parse().unwrap();
        let ongoing = |status, waiting, active, unpaid| {
            reason(&event, Deletion::Ongoing { status, waiting, active, unpaid })
        };
        assert_eq!(ongoing(SaleStatus::Open, 9, 1, 2), "e is open: close it first");
        assert_eq!(
            ongoing(SaleStatus::Upcoming, 2, 0, 0),
            "people who wait for e to open: 2; close it first"
        );
        assert!(ongoing(SaleStatus::Closed, 2, 3, 4).starts_with("people still inside of e: 3;"));
        assert!(ongoing(SaleStatus::Closed, 2, 0, 4).starts_with("reservations of e yet to be paid: 4;"));
        assert!(reason(&event, Deletion::Noted { journal: 7 }).contains("no queue has taken yet: 7;"));
    }
}
