//! Reservations: Redis and the journal against PostgreSQL.

use std::collections::{HashMap, HashSet};

use domain::reservation::Reservation;
use domain::{EventId, Millis, ReservationId};
use records::Records;
use store::Snapshot;

use super::{History, Pending};
use crate::AdminError;
use crate::finding::{Fault, Findings};

/// What ended stays known for a day after the sale, or after its payment was due.
const DAY_MS: i64 = 86_400_000;

/// Holds every row of an event against a snapshot. Answers how many there are too.
pub(crate) async fn compare(
    records: &Records,
    event: &EventId,
    snapshot: &Snapshot,
    pending: &Pending,
    history: &History,
    now: Millis,
) -> Result<(Compared, u64), AdminError> {
    let mut rows = Rows::new(&snapshot.reservations, &pending.reservations, history, now);
    let mut count = 0;
    let each = |row| {
        count += 1;
        rows.row(row);
    };
    records.each_reservation(event, each).await?;
    Ok((rows.end(), count))
}

/// Compares row by row, in any order.
pub(crate) struct Rows<'a> {
    redis: HashMap<&'a ReservationId, &'a Reservation>,
    pending: &'a HashMap<ReservationId, Reservation>,
    history: &'a History,
    now: Millis,
    seen: HashSet<ReservationId>,
    findings: Findings,
    forgotten: Vec<Reservation>,
    behind: Vec<(ReservationId, u32)>,
}

/// What a comparison came to.
pub(crate) struct Compared {
    pub(crate) findings: Findings,
    /// Reservations that keep seats and that Redis has rightly forgotten.
    pub(crate) forgotten: Vec<Reservation>,
    /// Reservations that PostgreSQL lacks or has in an older version than this one, with no fact on its way.
    pub(crate) behind: Vec<(ReservationId, u32)>,
}

impl<'a> Rows<'a> {
    pub(crate) fn new(
        redis: &'a [Reservation],
        pending: &'a HashMap<ReservationId, Reservation>,
        history: &'a History,
        now: Millis,
    ) -> Self {
        Self {
            redis: redis.iter().map(|reservation| (&reservation.reservation_id, reservation)).collect(),
            pending,
            history,
            now,
            seen: HashSet::new(),
            findings: Findings::default(),
            forgotten: Vec::new(),
            behind: Vec::new(),
        }
    }

    /// A row of PostgreSQL.
    pub(crate) fn row(&mut self, row: Reservation) {
        let id = row.reservation_id.clone();
        match self.redis.get(&id).copied() {
            Some(reservation) => self.compare(reservation, &row),
            None if self.must_know(&row) => {
                let found = format!("version {}, {}", row.version, row.status.as_str());
                self.findings.add(Fault::UnknownRow, id.to_string(), "a reservation in Redis", found);
            }
            None if row.status.keeps_seats() => self.forgotten.push(row),
            None => {}
        }
        self.seen.insert(id);
    }

    pub(crate) fn end(mut self) -> Compared {
        let mut missing: Vec<&Reservation> = self.redis.values().copied().collect();
        missing.retain(|reservation| {
            let id = &reservation.reservation_id;
            // What the journal has is written once it has been taken.
            let is_pending =
                self.pending.get(id).is_some_and(|pending| differences(reservation, pending).is_none());
            !self.seen.contains(id) && !is_pending
        });
        missing.sort_unstable_by(|one, other| one.reservation_id.cmp(&other.reservation_id));
        for Reservation { reservation_id, version, status, .. } in missing {
            let expected = format!("version {version}, {}", status.as_str());
            self.findings.add(Fault::MissingRow, reservation_id.to_string(), expected, "no row and no fact");
            self.behind.push((reservation_id.clone(), *version));
        }
        Compared { findings: self.findings, forgotten: self.forgotten, behind: self.behind }
    }

    /// A row is as good as the journal makes it once it has been taken.
    fn compare(&mut self, reservation: &Reservation, row: &Reservation) {
        let pending = self.pending.get(&row.reservation_id).filter(|pending| pending.version > row.version);
        if let Some((expected, found)) = differences(reservation, pending.unwrap_or(row)) {
            let place = row.reservation_id.to_string();
            self.findings.add(Fault::DifferentRow, place, expected, found);
            if reservation.version > pending.map_or(row.version, |pending| pending.version) {
                self.behind.push((row.reservation_id.clone(), reservation.version));
            }
        }
    }

    fn must_know(&self, row: &Reservation) -> bool {
        let closes_at = self.history.at(row.created_at).closes_at;
        let last = row.payment_due_at.map_or(closes_at, |due_at| due_at.max(closes_at));
        self.now < last.plus(DAY_MS)
    }
}

/// How two sides tell one reservation: what each says where they differ. Tokens and accounts are not told.
fn differences(redis: &Reservation, row: &Reservation) -> Option<(String, String)> {
    if redis == row {
        return None;
    }
    let (mut expected, mut found) = (Vec::new(), Vec::new());
    let mut tell = |what: &str, redis: String, row: String| {
        if redis != row {
            expected.push(format!("{what} {redis}"));
            found.push(format!("{what} {row}"));
        }
    };
    tell("version", redis.version.to_string(), row.version.to_string());
    tell("status", redis.status.as_str().to_owned(), row.status.as_str().to_owned());
    tell("places", places(redis), places(row));
    tell("seats", redis.seat_count.to_string(), row.seat_count.to_string());
    tell("amount", price(redis), price(row));
    tell("made at", redis.created_at.to_string(), row.created_at.to_string());
    tell("changed at", redis.updated_at.to_string(), row.updated_at.to_string());
    let due_at = |of: &Reservation| of.payment_due_at.map_or("never".to_owned(), |at| at.to_string());
    tell("due at", due_at(redis), due_at(row));
    let paid_by = |of: &Reservation| of.payment_id.as_ref().map_or("nothing".to_owned(), ToString::to_string);
    tell("paid by", paid_by(redis), paid_by(row));
    if expected.is_empty() {
        expected.push("this token and account".to_owned());
        found.push("another token or account".to_owned());
    }
    Some((expected.join(", "), found.join(", ")))
}

fn price(of: &Reservation) -> String {
    format!("{} {}", of.amount, of.currency)
}

fn places(of: &Reservation) -> String {
    let part = |part: &domain::reservation::ReservedPlaces| {
        let seats: Vec<&str> = part.seats.iter().map(domain::SeatName::as_str).collect();
        let units = if seats.is_empty() { format!("{}", part.count) } else { seats.join("+") };
        format!("{}/{} {units} at {}", part.offering_id, part.section_id, part.price)
    };
    of.places.iter().map(part).collect::<Vec<_>>().join(" and ")
}
