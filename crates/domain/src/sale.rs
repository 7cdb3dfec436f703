//! A sale's definition: one JSON file that creates or updates an event.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{EventId, Millis, OfferingId, SectionId};

mod check;
mod node;
mod read;
mod seats;

pub use self::check::check;
pub use self::seats::{InvalidBlock, NamedRow};

/// The slowest pace: nobody being let in is a pause.
pub const MIN_PER_SECOND: f64 = 0.001;
/// The fastest pace, people a second.
pub const MAX_PER_SECOND: f64 = 10_000.0;

/// A checked definition; instants are milliseconds, admission is people a second.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Sale {
    /// The event it defines.
    pub event_id: EventId,
    /// What people read above everything else.
    pub title: String,
    /// When people are let in.
    pub opens_at: Millis,
    /// When everything ends but reading, cancelling and paying.
    pub closes_at: Millis,
    /// What happens to people who come before the opening.
    pub pre_queue: PreQueue,
    /// The pace.
    pub admission: Admission,
    /// Hold budget of a token, from its first hold.
    pub hold_seconds: u32,
    /// The most an account may hold and own.
    pub limit_per_account: u32,
    /// Whether joining asks for an authenticated account.
    pub require_account: bool,
    /// Joins and rejoins together.
    pub joins_per_address_per_second: u32,
    /// Whether and until when a booking is to be paid.
    pub payment: Payment,
    /// What the plain booking form buys.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<DefaultPlace>,
    /// What is sold.
    pub offerings: Vec<Offering>,
}

/// What happens to people who come before the opening.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PreQueue {
    /// They are refused.
    Closed,
    /// They stand in order of arrival.
    Fifo,
    /// They stand in a random order that anyone can check.
    Shuffle,
}

/// The pace.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Admission {
    /// People a second: `perSecond`, or `databaseTps × safetyRatio`.
    pub per_second: f64,
    /// Live sessions at once, called ones included.
    pub max_active: u32,
    /// A session's length.
    pub active_seconds: u32,
    /// How long a called token may take to come.
    pub claim_seconds: u32,
    /// Whether no-shows are made up for by calling more.
    pub compensate_no_shows: bool,
    /// How long bookings may wait to be written at the full pace; nobody is let in where they wait twice as long.
    /// Without it they do not count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backpressure_seconds: Option<u32>,
}

/// Whether and until when a booking is to be paid.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Payment {
    /// Whether a booking is to be paid.
    pub mode: PaymentMode,
    /// A fixed due instant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due_at: Option<Millis>,
    /// Seconds after the booking.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due_after_seconds: Option<u32>,
    /// ISO 4217.
    pub currency: String,
}

/// Whether a booking is to be paid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PaymentMode {
    /// A booking is confirmed at once.
    None,
    /// A booking waits for its payment.
    Deferred,
}

/// What the plain booking form buys.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DefaultPlace {
    /// The offering.
    pub offering_id: OfferingId,
    /// The section.
    pub section_id: SectionId,
}

/// A thing that has places: a train on a date, a performance.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Offering {
    /// Its id, unique in the event.
    pub id: OfferingId,
    /// `YYYY-MM-DD`.
    pub date: String,
    /// What else search shows and filters by: from, to, departs, arrives, …
    #[serde(flatten)]
    pub attributes: BTreeMap<String, String>,
    /// Its parts.
    pub sections: Vec<SaleSection>,
}

/// A part of an offering with one price: named seats, or a capacity.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SaleSection {
    /// Its id, unique in the offering.
    pub id: SectionId,
    /// What people read.
    pub name: String,
    /// Price of one place, in the currency's smallest unit.
    pub price: u64,
    /// Places without names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capacity: Option<u32>,
    /// Named seats in rows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seats: Option<Vec<SeatBlock>>,
}

/// Rows that have the same seats: `{"rows": "1-15", "seats": "A-D", "prefix": "3-"}` names `3-1A` to `3-15D`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SeatBlock {
    /// Row names: numbers, letters, ranges, joined by commas.
    pub rows: String,
    /// Seats of each row, likewise, in the order in which they stand side by side.
    pub seats: String,
    /// Put before every row's name: a car, a floor.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub prefix: String,
}

impl Sale {
    /// The same sale moved so that it opens at `opens_at`: its close and a fixed payment date move along.
    #[must_use]
    pub fn opening_at(mut self, opens_at: Millis) -> Self {
        let by_ms = opens_at.0.saturating_sub(self.opens_at.0);
        self.opens_at = opens_at;
        self.closes_at = self.closes_at.plus(by_ms);
        self.payment.due_at = self.payment.due_at.map(|due_at| due_at.plus(by_ms));
        self
    }
}

impl SaleSection {
    /// Whether its places have no names.
    pub fn is_general(&self) -> bool {
        self.capacity.is_some()
    }

    /// Its rows with their seats, written out; none in a general section.
    pub fn named_rows(&self) -> Vec<NamedRow> {
        // A checked definition has no block that names nothing.
        self.seats.iter().flatten().flat_map(|block| block.named_rows().unwrap_or_default()).collect()
    }
}

/// One mistake in a definition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Where: `$.offerings[3].sections[0].price`.
    pub path: String,
    /// The line in the file, from 1, where there is one.
    pub line: Option<u32>,
    /// What is wrong and what would be right.
    pub reason: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(line) = self.line {
            write!(f, "line {line}: ")?;
        }
        write!(f, "{}: {}", self.path, self.reason)
    }
}
