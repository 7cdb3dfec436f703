//! Facts as rows: what can be checked without the database is checked here.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use domain::ReservationId;
use domain::fact::{Fact, What};
use domain::reservation::{Reservation, ReservedPlaces};

/// A fact that can be written, and where it came from.
#[derive(Debug)]
pub(crate) struct FactRow<'a> {
    /// Position of its message in the batch.
    pub(crate) message: usize,
    /// Its position in the message.
    pub(crate) position: usize,
    pub(crate) fact: &'a Fact,
    pub(crate) epoch: i64,
    pub(crate) stream_ms: i64,
    pub(crate) stream_sequence: i64,
    pub(crate) body: String,
}

impl<'a> FactRow<'a> {
    /// The row, or why there can be none.
    pub(crate) fn of(message: usize, position: usize, fact: &'a Fact) -> Result<Self, String> {
        if let Some(reservation) = fact.what.reservation() {
            check(fact, reservation)?;
        }
        if let What::EventChanged { version, .. } = &fact.what {
            bigint(*version)?;
        }
        Ok(Self {
            message,
            position,
            fact,
            epoch: bigint(fact.epoch)?,
            stream_ms: bigint(fact.id.ms)?,
            stream_sequence: bigint(fact.id.sequence)?,
            body: serde_json::to_string(&fact.what).map_err(|error| error.to_string())?,
        })
    }

    /// Whether it may ask for seats that another fact gives back: those come last.
    pub(crate) fn claims_seats(&self) -> bool {
        self.fact.what.reservation().is_some_and(|reservation| reservation.status.keeps_seats())
    }

    /// The fact's identity, also the order in which rows are locked, the same for all writers.
    pub(crate) fn identity(&self) -> (&str, i64, i64, i64) {
        (self.fact.event.as_str(), self.epoch, self.stream_ms, self.stream_sequence)
    }
}

fn check(fact: &Fact, reservation: &Reservation) -> Result<(), String> {
    if *reservation.reservation_id.event() != fact.event {
        return Err("the reservation belongs to another event".to_owned());
    }
    bigint(reservation.amount)?;
    for places in &reservation.places {
        bigint(places.price)?;
        if !places.seats.is_empty() && places.seats.len() as u64 != u64::from(places.count) {
            return Err(format!("{} places, but {} named seats", places.count, places.seats.len()));
        }
    }
    Ok(())
}

/// PostgreSQL's integers are signed. What passed here may be cast.
fn bigint(number: u64) -> Result<i64, String> {
    i64::try_from(number).map_err(|_| format!("{number} is too large"))
}

/// The highest version of each reservation, by id: the order in which rows are locked, the same for all writers.
pub(crate) fn newest_reservations<'a>(rows: &[FactRow<'a>]) -> BTreeMap<String, &'a Reservation> {
    let mut newest: BTreeMap<&ReservationId, &Reservation> = BTreeMap::new();
    for reservation in rows.iter().filter_map(|row| row.fact.what.reservation()) {
        let known = newest.entry(&reservation.reservation_id).or_insert(reservation);
        if reservation.version > known.version {
            *known = reservation;
        }
    }
    newest.into_iter().map(|(id, reservation)| (id.to_string(), reservation)).collect()
}

/// A sale's definition, as a fact brought it.
#[derive(Debug)]
pub(crate) struct DefinitionRow<'a> {
    pub(crate) event: &'a str,
    pub(crate) version: i64,
    pub(crate) definition: String,
    pub(crate) changed_at_ms: i64,
}

/// The highest version of each event's definition, by event.
pub(crate) fn newest_definitions<'a>(rows: &[FactRow<'a>]) -> Vec<DefinitionRow<'a>> {
    let mut definitions: Vec<DefinitionRow<'a>> = rows.iter().filter_map(definition).collect();
    definitions.sort_by_key(|row| (row.event, Reverse(row.version)));
    definitions.dedup_by_key(|row| row.event);
    definitions
}

fn definition<'a>(row: &FactRow<'a>) -> Option<DefinitionRow<'a>> {
    let What::EventChanged { version, definition: Some(definition), .. } = &row.fact.what else {
        return None;
    };
    Some(DefinitionRow {
        event: row.fact.event.as_str(),
        version: version.cast_signed(),
        definition: definition.to_string(),
        changed_at_ms: row.fact.at.0,
    })
}

/// A named seat, or a general section's places.
#[derive(Debug)]
pub(crate) struct PlaceRow<'a> {
    pub(crate) part: i32,
    pub(crate) position: i32,
    pub(crate) count: i64,
    pub(crate) seat: Option<&'a str>,
    pub(crate) places: &'a ReservedPlaces,
}

/// A reservation's places.
pub(crate) fn place_rows(reservation: &Reservation) -> impl Iterator<Item = PlaceRow<'_>> {
    (0..).zip(&reservation.places).flat_map(|(part, places)| {
        let general = places.seats.is_empty().then_some((None, i64::from(places.count)));
        let named = places.seats.iter().map(|seat| (Some(seat.as_str()), 1));
        (0..).zip(general.into_iter().chain(named)).map(move |(position, (seat, count))| PlaceRow {
            part,
            position,
            count,
            seat,
            places,
        })
    })
}
