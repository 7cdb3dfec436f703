//! What callers ask for, once their input has been checked: parsed, bounded, in the types of a sale.

use std::collections::BTreeMap;

use crate::outcome::Address;
use crate::{Account, EventId, OfferingId, PaymentId, ReservationId, SeatName, SectionId, Token};

/// The most seats one request may name or count; a sale's own limit is lower or the same.
pub const MAX_SEATS_A_REQUEST: u32 = 100;

/// Take a new place in the line.
#[derive(Debug, Clone, PartialEq)]
pub struct Join {
    /// The sale.
    pub event: EventId,
    /// The caller, for its limit.
    pub address: Address,
    /// The buyer, where one was proven.
    pub account: Option<Account>,
}

/// Come back to a place: after a reload, a lapse, an expiry.
#[derive(Debug, Clone, PartialEq)]
pub struct Rejoin {
    /// The sale.
    pub event: EventId,
    /// The place.
    pub token: Token,
    /// The key of the last answer, as sent.
    pub key: Option<String>,
    /// The caller, for its limit.
    pub address: Address,
    /// The buyer, where one was proven.
    pub account: Option<Account>,
}

/// Give up a place or a session.
#[derive(Debug, Clone, PartialEq)]
pub struct Leave {
    /// The sale.
    pub event: EventId,
    /// The place.
    pub token: Token,
    /// The caller, for its limit.
    pub address: Address,
}

/// Ask where one stands.
#[derive(Debug, Clone, PartialEq)]
pub struct Poll {
    /// The sale.
    pub event: EventId,
    /// The place.
    pub token: Token,
    /// The key of the last answer, as sent.
    pub key: Option<String>,
    /// The caller, for the limit of polls without a key.
    pub address: Address,
}

/// Ask how the whole line moves.
#[derive(Debug, Clone, PartialEq)]
pub struct Progress {
    /// The sale.
    pub event: EventId,
}

/// Look for offerings.
#[derive(Debug, Clone, PartialEq)]
pub struct Search {
    /// The sale.
    pub event: EventId,
    /// The session.
    pub token: Token,
    /// Attributes that must be equal: from, to, date, …
    pub filter: BTreeMap<String, String>,
}

/// Look at an offering's seats.
#[derive(Debug, Clone, PartialEq)]
pub struct SeatMap {
    /// The sale.
    pub event: EventId,
    /// The session.
    pub token: Token,
    /// The offering; none: the sale's default.
    pub offering: Option<OfferingId>,
    /// Only this section.
    pub section: Option<SectionId>,
}

/// A request that may be sent again under its name, its Idempotency-Key, and is then answered as it was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repeatable {
    /// SHA-256 of the key, in hex.
    pub key: String,
    /// SHA-256 of what was asked, in hex: the same key with another request is refused.
    pub request: String,
}

/// Keep seats for a token.
#[derive(Debug, Clone, PartialEq)]
pub struct Hold {
    /// The sale.
    pub event: EventId,
    /// The session.
    pub token: Token,
    /// The offering; none: the sale's default.
    pub offering: Option<OfferingId>,
    /// The section; none: where the named seats are, or the sale's default.
    pub section: Option<SectionId>,
    /// Which seats.
    pub choice: Choice,
    /// Its name, where it has one.
    pub repeatable: Option<Repeatable>,
}

/// Which seats to hold.
#[derive(Debug, Clone, PartialEq)]
pub enum Choice {
    /// These, all or none. Not empty, no name twice.
    Seats(Vec<SeatName>),
    /// Any so many.
    Count(u32),
    /// So many side by side in one row.
    Best(u32),
}

/// Give held seats back.
#[derive(Debug, Clone, PartialEq)]
pub struct Release {
    /// The sale.
    pub event: EventId,
    /// The session.
    pub token: Token,
    /// Only this offering's; none with names: the sale's default.
    pub offering: Option<OfferingId>,
    /// These; empty: all that the token holds (in `offering`, where one is named).
    pub seats: Vec<SeatName>,
    /// Its name, where it has one.
    pub repeatable: Option<Repeatable>,
}

/// Buy.
#[derive(Debug, Clone, PartialEq)]
pub struct Book {
    /// The sale.
    pub event: EventId,
    /// The session.
    pub token: Token,
    /// What to buy.
    pub purchase: Purchase,
    /// Its name, where it has one.
    pub repeatable: Option<Repeatable>,
}

/// What to buy.
#[derive(Debug, Clone, PartialEq)]
pub enum Purchase {
    /// What is held.
    Held,
    /// So many places of a section, held by nobody, in one step.
    Plain {
        /// How many.
        seat_count: u32,
        /// The offering; none: the sale's default.
        offering: Option<OfferingId>,
        /// The section; none: the sale's default.
        section: Option<SectionId>,
    },
}

/// Read or give back a reservation.
#[derive(Debug, Clone, PartialEq)]
pub struct Reserved {
    /// The reservation.
    pub reservation: ReservationId,
    /// Whose it should be.
    pub owner: Owner,
}

/// By what somebody proves that a reservation is theirs: the token or the account that bought it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Owner {
    /// The token.
    pub token: Option<Token>,
    /// The buyer, where one was proven.
    pub account: Option<Account>,
}

/// What a payment provider says of one payment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pay {
    /// What was paid for.
    pub reservation: ReservationId,
    /// The payment.
    pub payment: PaymentId,
    /// Whether money came.
    pub paid: bool,
    /// How much, in the currency's smallest unit.
    pub amount: u64,
    /// ISO 4217.
    pub currency: String,
}
