//! What is true and not yet taken by a queue.

use std::collections::{BTreeMap, HashMap};

use domain::fact::{Fact, StreamId, What};
use domain::reservation::Reservation;
use domain::{EventId, ReservationId};
use store::Store;

use super::{Position, position};
use crate::AdminError;
use crate::finding::{Fault, Findings};

/// The journal as far as an audit needs it.
#[derive(Debug, Default)]
pub(crate) struct Pending {
    /// Facts in it.
    pub(crate) count: u64,
    /// The highest epoch of them.
    pub(crate) epoch: u64,
    /// Each changed reservation's versions.
    pub(crate) reservations: HashMap<ReservationId, Reservation>,
    /// Calls of people.
    pub(crate) admissions: BTreeMap<Position, Fact>,
    /// Changes of the sale.
    pub(crate) changes: Vec<Fact>,
    unreadable: Vec<(StreamId, String)>,
}

impl Pending {
    /// What stood in the journal when the reading began: what comes later is younger than all that is compared.
    pub(crate) async fn read(store: &Store, event: &EventId) -> Result<Self, AdminError> {
        let until_ms = store.redis_time_ms().await?;
        let mut pending = Self::default();
        let mut from = None;
        loop {
            let page = store.journal(event, from, until_ms).await?;
            pending.unreadable.extend(page.unreadable);
            page.facts.into_iter().for_each(|fact| pending.add(fact));
            match page.next {
                Some(next) => from = Some(next),
                None => return Ok(pending),
            }
        }
    }

    pub(crate) fn add(&mut self, fact: Fact) {
        self.count += 1;
        self.epoch = self.epoch.max(fact.epoch);
        if let Some(reservation) = fact.what.reservation() {
            let id = reservation.reservation_id.clone();
            let known = self.reservations.entry(id).or_insert_with(|| reservation.clone());
            if reservation.version > known.version {
                *known = reservation.clone();
            }
        }
        match &fact.what {
            What::UserAdmitted { .. } => {
                self.admissions.insert(position(&fact), fact);
            }
            What::EventChanged { .. } => self.changes.push(fact),
            _ => {}
        }
    }

    pub(crate) fn findings(&self, event: &EventId) -> Findings {
        let mut findings = Findings::default();
        for (id, reason) in &self.unreadable {
            let place = format!("{event} journal {id}");
            findings.add(Fault::UnreadableFact, place, "a fact", without_tokens(reason));
        }
        findings
    }

    #[cfg(test)]
    pub(crate) fn with_unreadable(id: StreamId, reason: &str) -> Self {
        Self { unreadable: vec![(id, reason.to_owned())], ..Self::default() }
    }
}

/// A reason quotes what it could not read, and that may be a token.
fn without_tokens(reason: &str) -> &str {
    reason.split_once(':').map_or(reason, |(what, _)| what)
}
