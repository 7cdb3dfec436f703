//! Reservations that Redis has forgotten, or knows in an older version.

use domain::reservation::Reservation;
use domain::{EventId, Millis, ReservationId};
use futures::stream::{self, StreamExt, TryStreamExt};
use records::Records;
use serde::{Deserialize, Serialize};
use store::{Restored, Store};

use crate::RecoveryError;

/// Rows read at once.
const PAGE: u32 = 1_000;
/// Steps on their way at the same time.
const AT_ONCE: usize = 64;
/// A replica that is promoted lags by seconds; nobody promotes one that lags by this much.
const LOST_AT_MOST_MS: i64 = 3_600_000;
/// Conflicts that are told one by one.
const MAX_CONFLICTS: usize = 100;

/// A reservation that could not be put back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Conflict {
    /// Which.
    pub reservation_id: ReservationId,
    /// What stands in its way.
    pub reason: String,
}

/// What a repair came to.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RepairReport {
    /// Rows that were held against Redis.
    pub compared: u64,
    /// Reservations that were put back.
    pub restored: u64,
    /// Held places that gave way to them.
    pub evicted: u64,
    /// Reservations whose places are another's: what becomes of them is for people to decide.
    pub conflicts: Vec<Conflict>,
    /// How many more of these there are.
    pub more: u64,
}

impl RepairReport {
    fn add(&mut self, id: &ReservationId, restored: Restored) {
        self.compared += 1;
        match restored {
            Restored::Restored { evicted } => {
                self.restored += 1;
                self.evicted += u64::from(evicted);
            }
            Restored::Conflict(reason) if self.conflicts.len() < MAX_CONFLICTS => {
                self.conflicts.push(Conflict { reservation_id: id.clone(), reason });
            }
            Restored::Conflict(_) => self.more += 1,
            Restored::Known | Restored::UnknownEvent => {}
        }
    }
}

/// Brings back every reservation that PostgreSQL has in a higher version than Redis. `lost_at` is when Redis lost its
/// newest writes: rows that had not changed for an hour by then are not asked for. Without it all are.
pub async fn repair(
    store: &Store,
    records: &Records,
    event: &EventId,
    lost_at: Option<Millis>,
) -> Result<RepairReport, RecoveryError> {
    let mut report = RepairReport::default();
    let mut after = lost_at.map(|lost_at| (lost_at.plus(-LOST_AT_MOST_MS), None));
    loop {
        let behind = after.as_ref().map(|(at, id)| (*at, id.as_ref()));
        let page = records.reservations_changed(event, behind, PAGE).await?;
        let Some(last) = page.last() else { return Ok(report) };
        after = Some((last.updated_at, Some(last.reservation_id.clone())));
        // What gives places back comes first: the next owner of a seat may stand in the same page.
        let (kept, ended): (Vec<Reservation>, Vec<Reservation>) =
            page.into_iter().partition(|row| row.status.keeps_seats());
        for rows in [ended, kept] {
            restore(store, rows, &mut report).await?;
        }
    }
}

async fn restore(
    store: &Store,
    rows: Vec<Reservation>,
    report: &mut RepairReport,
) -> Result<(), RecoveryError> {
    let restored = stream::iter(rows).map(|row| async move {
        let restored = store.restore(&row).await?;
        Ok::<_, RecoveryError>((row.reservation_id, restored))
    });
    let mut restored = restored.buffer_unordered(AT_ONCE);
    while let Some((id, restored)) = restored.try_next().await? {
        report.add(&id, restored);
    }
    Ok(())
}
