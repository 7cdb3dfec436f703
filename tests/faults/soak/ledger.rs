//! What people were told, what is recorded, and whether both agree.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use domain::reservation::Reservation;
use serde_json::Value;

use super::system::System;

/// Everything answered is recorded by then.
const RECORDED: Duration = Duration::from_mins(1);

/// A reservation as its owner knows it.
#[derive(Debug, Clone)]
struct Told {
    /// What it may be in the end: an answer that did not come leaves two.
    statuses: BTreeSet<&'static str>,
    seats: Vec<String>,
    seat_count: u64,
}

#[derive(Default)]
struct Pages {
    told: BTreeMap<String, Told>,
    /// Tokens that asked for a booking and were never told.
    untold: BTreeSet<String>,
    violations: Vec<String>,
}

#[derive(Default)]
pub(crate) struct Ledger(Mutex<Pages>);

impl Ledger {
    fn pages(&self) -> MutexGuard<'_, Pages> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn violated(&self, what: String) {
        self.pages().violations.push(what);
    }

    pub(crate) fn violated_by(&self, findings: Vec<String>) {
        self.pages().violations.extend(findings);
    }

    pub(crate) fn violations(&self) -> Vec<String> {
        self.pages().violations.clone()
    }

    pub(crate) fn sold(&self) -> usize {
        self.pages().told.len()
    }

    /// Before a booking is asked for.
    pub(crate) fn asks(&self, token: &str) {
        self.pages().untold.insert(token.to_owned());
    }

    /// The booking was answered: with a reservation, or none.
    pub(crate) fn answered(&self, token: &str, reservation: Option<&Value>) {
        let mut pages = self.pages();
        pages.untold.remove(token);
        let Some(reservation) = reservation else { return };
        let seats = reservation["seats"].as_array().into_iter().flatten();
        let mut seats: Vec<String> = seats.filter_map(|seat| seat.as_str().map(str::to_owned)).collect();
        seats.sort();
        let told = Told {
            statuses: BTreeSet::from(["PENDING_PAYMENT", "EXPIRED"]),
            seats,
            seat_count: reservation["seatCount"].as_u64().unwrap_or(0),
        };
        let id = reservation["reservationId"].as_str().unwrap_or_default().to_owned();
        if pages.told.insert(id.clone(), told).is_some() {
            pages.violations.push(format!("{id} was sold to two tokens"));
        }
    }

    /// A change was asked for: from now on it may be this too.
    pub(crate) fn may_be(&self, id: &str, status: &'static str) {
        if let Some(told) = self.pages().told.get_mut(id) {
            told.statuses.insert(status);
        }
    }

    /// A change was answered: it is this and nothing else.
    pub(crate) fn is(&self, id: &str, status: &'static str) {
        if let Some(told) = self.pages().told.get_mut(id) {
            told.statuses = BTreeSet::from([status]);
        }
    }

    pub(crate) fn summary(&self) -> String {
        let pages = self.pages();
        let final_only =
            |status| pages.told.values().filter(|told| told.statuses == BTreeSet::from([status])).count();
        format!(
            "{} reservations told, {} of them paid, {} cancelled; {} bookings never answered",
            pages.told.len(),
            final_only("PAID"),
            final_only("CANCELLED"),
            pages.untold.len(),
        )
    }

    /// Holds what was told against what PostgreSQL has once everything is recorded.
    pub(crate) async fn judge(&self, system: &System) {
        let judged = async {
            loop {
                let differences = self.differences(&system.rows().await);
                if differences.is_empty() {
                    return;
                }
                self.pages().violations.retain(|known| !known.starts_with("recorded: "));
                self.pages().violations.extend(differences);
                tokio::time::sleep(Duration::from_millis(500)).await;
            }
        };
        if tokio::time::timeout(RECORDED, judged).await.is_ok() {
            self.pages().violations.retain(|known| !known.starts_with("recorded: "));
        }
        let dead_letters = system.dead_letters();
        if !dead_letters.is_empty() {
            self.violated(format!("dead letters: {dead_letters}"));
        }
    }

    fn differences(&self, rows: &[Reservation]) -> Vec<String> {
        let pages = self.pages();
        let mut differences = Vec::new();
        let mut owners: BTreeMap<String, String> = BTreeMap::new();
        let mut recorded = BTreeSet::new();
        for row in rows {
            let (id, status) = (row.reservation_id.to_string(), row.status.as_str());
            let places = row.places.iter().flat_map(|places| &places.seats);
            let mut seats: Vec<String> = places.map(ToString::to_string).collect();
            seats.sort();
            if !["CANCELLED", "EXPIRED"].contains(&status) {
                for seat in &seats {
                    if let Some(other) = owners.insert(seat.clone(), id.clone()) {
                        differences.push(format!("recorded: {seat} belongs to {other} and to {id}"));
                    }
                }
            }
            match pages.told.get(&id) {
                Some(told) if !told.statuses.contains(status) => {
                    differences.push(format!("recorded: {id} is {status}, told {:?}", told.statuses));
                }
                Some(told) if told.seats != seats || told.seat_count != u64::from(row.seat_count) => {
                    differences.push(format!("recorded: {id} has {seats:?}, told {told:?}"));
                }
                Some(_) => {}
                None if pages.untold.contains(&row.token.to_string()) => {}
                None => differences.push(format!("recorded: {id} was told to nobody")),
            }
            recorded.insert(id);
        }
        let missing = pages.told.keys().filter(|id| !recorded.contains(*id));
        differences.extend(missing.map(|id| format!("recorded: {id} is missing")));
        differences
    }
}
