//! A sale of which Redis knows nothing any more.
//!
//! All is read first. Then the event is laid out without its status, so that nobody finds it: whoever came back to
//! half of a line would lose a place that the other half has. Its places and reservations follow, and at the end, in
//! one step, the event is there again.

use std::collections::HashSet;

use domain::layout::Edition;
use domain::reservation::Reservation;
use domain::{EventId, Millis, Token};
use futures::stream::{FuturesUnordered, TryStreamExt};
use records::Records;
use serde::{Deserialize, Serialize};
use store::{Ground, LinePage, Store};

use crate::editions::Editions;
use crate::line::{Line, Pause};
use crate::{RecoveryError, RepairReport, repair};

/// Steps on their way at the same time: enough that Redis never waits for us.
const AT_ONCE: usize = 4;
/// Ticket numbers that may have been given out and whose facts were lost.
const NUMBERS_SKIPPED: u64 = 1_000_000;
/// Epochs that may have begun and whose facts were lost.
const EPOCHS_SKIPPED: u64 = 10;

/// How far a rebuild has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// Facts of the line that were read.
    Reading(u64),
    /// Places of the line that were put back, of how many.
    Placing(u64, u64),
    /// The reservations are being put back.
    Restoring,
}

/// What a rebuild put back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RebuildReport {
    /// The event.
    pub event: EventId,
    /// Its version now.
    pub version: u64,
    /// Its epoch now.
    pub epoch: u64,
    /// When the newest fact became true that PostgreSQL has: what came later is lost, but for what keys prove.
    pub last_fact_at: Millis,
    /// Facts of the line that were read.
    pub facts: u64,
    /// Places waiting.
    pub waiting: u64,
    /// Visits that were going on and begin anew, and those that were over.
    pub called: u64,
    /// The reservations.
    pub reservations: RepairReport,
}

/// What a rebuild came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Rebuilt {
    /// The event is in place again.
    Rebuilt(Box<RebuildReport>),
    /// It was in place: nothing was changed.
    InPlace,
    /// PostgreSQL does not know it.
    Unknown,
    /// Its definitions cannot be followed, and why.
    Unreadable(String),
    /// It was begun from another edition.
    Begun,
}

/// Rebuild an event that Redis has lost.
pub async fn rebuild(
    store: &Store,
    records: &Records,
    event: &EventId,
    by: &str,
    told: &(dyn Fn(Progress) + Send + Sync),
) -> Result<Rebuilt, RecoveryError> {
    if store.event_state(event).await?.is_ok() {
        return Ok(Rebuilt::InPlace);
    }
    let editions = Editions::read(records, event).await?;
    if let Some(reason) = editions.unreadable {
        return Ok(Rebuilt::Unreadable(reason));
    }
    let (Some(edition), Some((epoch, last_fact_at))) =
        (editions.edition(), records.newest_fact(event).await?)
    else {
        return Ok(Rebuilt::Unknown);
    };
    let line = Line::read(records, event, |facts| told(Progress::Reading(facts))).await?;
    let epoch = epoch + EPOCHS_SKIPPED;
    let ground = Ground {
        edition: &edition,
        epoch,
        number: line.number + NUMBERS_SKIPPED,
        head_score: line.head_score,
        net: line.net,
    };
    if !store.ground(&ground).await? {
        return Ok(Rebuilt::Begun);
    }
    let booked = booked(records, event).await?;
    let placed = place(store, &edition, &line, &booked, last_fact_at, told).await?;
    told(Progress::Restoring);
    let reservations = repair(store, records, event, None).await?;
    let Ok(version) = store.resume(&edition, by, &editions.standing).await? else {
        return Ok(Rebuilt::Begun);
    };
    let (event, facts) = (event.clone(), line.facts);
    let Placed { waiting, called, .. } = placed;
    let report = RebuildReport { event, version, epoch, last_fact_at, facts, waiting, called, reservations };
    Ok(Rebuilt::Rebuilt(Box::new(report)))
}

/// Tokens that have booked: what becomes of their places in the line is the reservation's matter.
async fn booked(records: &Records, event: &EventId) -> Result<HashSet<Token>, RecoveryError> {
    let mut tokens = HashSet::new();
    let each = |row: Reservation| {
        tokens.insert(row.token);
    };
    records.each_reservation(event, each).await?;
    Ok(tokens)
}

/// What was put back of a line.
#[derive(Clone, Copy, Default)]
struct Placed {
    waiting: u64,
    called: u64,
    entries: u64,
}

impl Placed {
    fn add(&mut self, page: Self) {
        self.waiting += page.waiting;
        self.called += page.called;
        self.entries += page.entries;
    }
}

/// Puts the line back.
async fn place(
    store: &Store,
    edition: &Edition,
    line: &Line,
    booked: &HashSet<Token>,
    last_fact_at: Millis,
    told: &(dyn Fn(Progress) + Send + Sync),
) -> Result<Placed, RecoveryError> {
    let now = store.clock().await?;
    let claim_ms = i64::from(edition.sale.admission.claim_seconds) * 1_000;
    let pause = Pause { last_fact_at, now, claim_ms };
    let event = &edition.sale.event_id;
    let mut placed = Placed::default();
    let mut steps = FuturesUnordered::new();
    for page in line.pages(booked, pause) {
        steps.push(put(store, event, page));
        if steps.len() == AT_ONCE
            && let Some(page) = steps.try_next().await?
        {
            placed.add(page);
            told(Progress::Placing(placed.entries, line.len()));
        }
    }
    while let Some(page) = steps.try_next().await? {
        placed.add(page);
    }
    Ok(placed)
}

async fn put(store: &Store, event: &EventId, page: LinePage<'_>) -> Result<Placed, RecoveryError> {
    store.line(event, &page).await?;
    let (waiting, called) = (page.waiting.len() as u64, page.called.len() as u64);
    Ok(Placed { waiting, called, entries: page.len() as u64 })
}
