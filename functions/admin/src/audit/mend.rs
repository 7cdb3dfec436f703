//! `--repair`: puts right what an audit found and what has exactly one right answer. Each step is guarded: a sale that
//! moves meanwhile is read again.

use std::collections::BTreeSet;

use domain::{EventId, Millis, ReservationId};
use recovery::RepairReport;
use serde::{Deserialize, Serialize};
use store::{Recounted, Snapshot, Store};

use super::besides::unbacked;
use super::recount::recount;
use super::rows::compare;
use super::{History, Pending, Reading};
use crate::finding::{Fault, Findings};
use crate::{AdminError, AdminState};

/// How often counts are told anew before the sale is said to move too fast.
const TRIES: u32 = 5;

/// What was done.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Mended {
    /// Reservations that PostgreSQL knew better.
    pub reservations: RepairReport,
    /// Reservations whose done key, payment or place in the line was put right.
    pub settled: u64,
    /// Facts of reservations that were filed once more.
    pub refiled: u64,
    /// Sessions that named other places than their holds.
    pub sessions: u64,
    /// Counters, bytes of the map, due times and tickets that were set.
    pub counted: u64,
    /// Whether the sale moved too fast for its counts to be told.
    pub moved: bool,
}

/// Mends what lasted in `findings`, as this reading found it.
pub(crate) async fn mend(
    state: &AdminState,
    event: &EventId,
    by: &str,
    findings: &Findings,
    reading: &Reading,
) -> Result<Mended, AdminError> {
    let (store, records) = (state.store(), state.records()?);
    let mut mended = Mended::default();
    for (id, version) in &reading.behind {
        let place = id.to_string();
        if findings.has(Fault::MissingRow, &place) || findings.has(Fault::DifferentRow, &place) {
            mended.refiled += u64::from(store.refile(id, *version).await?);
        }
    }
    // A seat that is sold to nobody Redis knows is free for the one who comes back.
    mended.moved = !count(state, event, by, &mut mended).await?;
    if findings.places_of(&[Fault::UnknownRow, Fault::DifferentRow]).next().is_some() {
        mended.reservations = recovery::repair(store, records, event, None).await?;
    }
    for id in reservations_in(findings) {
        mended.settled += u64::from(settle(store, &id).await?);
    }
    mended.moved |= !count(state, event, by, &mut mended).await?;
    Ok(mended)
}

/// Sessions and counts; false where the sale moves too fast.
async fn count(
    state: &AdminState,
    event: &EventId,
    by: &str,
    mended: &mut Mended,
) -> Result<bool, AdminError> {
    for _ in 0..TRIES {
        match count_again(state, event, by, mended).await? {
            Recounted::Recounted => return Ok(true),
            Recounted::Stale => {}
        }
    }
    Ok(false)
}

/// Reservations beside which something does not tell the same.
fn reservations_in(findings: &Findings) -> BTreeSet<ReservationId> {
    let kinds = [Fault::DoneDiffers, Fault::BookedInLine, Fault::PaymentDueDiffers];
    findings.places_of(&kinds).filter_map(|place| place.parse().ok()).collect()
}

/// What stands beside a reservation becomes what it says; false where there is none.
async fn settle(store: &Store, id: &ReservationId) -> Result<bool, AdminError> {
    if let Ok(reservation) = store.any_reservation(id).await? {
        store.restore(&reservation).await?;
        return Ok(true);
    }
    // Nothing waits for the payment of what is not there.
    store.expire(id).await?;
    Ok(false)
}

/// The same, from one reading.
async fn count_again(
    state: &AdminState,
    event: &EventId,
    by: &str,
    mended: &mut Mended,
) -> Result<Recounted, AdminError> {
    let store = state.store();
    let Ok(snapshot) = store.snapshot(event).await? else { return Ok(Recounted::Recounted) };
    let besides = store.besides(event, &snapshot).await?;
    let now = store.clock().await?;
    let mut freed = 0;
    for (token, units) in unbacked(&snapshot, &besides, now) {
        freed += store.evict(event, token, &units).await?;
        mended.sessions += 1;
    }
    if freed > 0 || !snapshot.still {
        return Ok(Recounted::Stale);
    }
    let forgotten = forgotten_rows(state, event, &snapshot, now).await?;
    let Some(recount) = recount(&snapshot, &forgotten, &besides, now) else {
        return Ok(Recounted::Recounted);
    };
    let done = store.recount(event, by, &recount).await?.unwrap_or(Recounted::Recounted);
    if done == Recounted::Recounted {
        mended.counted += recount.len().max(1);
    }
    Ok(done)
}

/// Reservations that keep seats and that Redis need not know any more.
async fn forgotten_rows(
    state: &AdminState,
    event: &EventId,
    snapshot: &Snapshot,
    now: Millis,
) -> Result<Vec<domain::reservation::Reservation>, AdminError> {
    let records = state.records()?;
    let pending = Pending::read(state.store(), event).await?;
    let history = History::read(records, event, &pending, &snapshot.edition).await?;
    Ok(compare(records, event, snapshot, &pending, &history, now).await?.0.forgotten)
}
