//! What became true: the journal's entries as they travel to PostgreSQL. A step appends each in the moment it
//! makes it true; `(event, epoch, stream id)` names it for ever, so that delivering it twice does no harm.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize};

use crate::reservation::{DueReservation, Payment, Reservation, ReservedPlaces};
use crate::{Account, EventId, Millis, Token};

/// A Redis stream id, `milliseconds-sequence`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamId {
    /// Redis' real clock when the entry was appended.
    pub ms: u64,
    /// Order within the millisecond.
    pub sequence: u64,
}

impl StreamId {
    /// Before every entry.
    pub const MIN: Self = Self { ms: 0, sequence: 0 };
}

impl fmt::Display for StreamId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.ms, self.sequence)
    }
}

impl FromStr for StreamId {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, &'static str> {
        let parsed = text
            .split_once('-')
            .and_then(|(ms, sequence)| Some(Self { ms: ms.parse().ok()?, sequence: sequence.parse().ok()? }));
        parsed.ok_or("must be milliseconds-sequence")
    }
}

impl Serialize for StreamId {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for StreamId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// A place that was called: the token and the score it stood at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CalledPlace {
    /// The token.
    pub token: Token,
    /// Its score.
    pub score: u64,
}

/// One fact.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Fact {
    /// The sale.
    pub event: EventId,
    /// The epoch in which it became true.
    pub epoch: u64,
    /// Its place in the journal.
    pub id: StreamId,
    /// Redis' clock when it became true.
    pub at: Millis,
    /// What became true.
    #[serde(flatten)]
    pub what: What,
}

/// What became true.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "SCREAMING_SNAKE_CASE", rename_all_fields = "camelCase")]
pub enum What {
    /// A token took a place.
    UserEnterQueue {
        /// The token.
        token: Token,
        /// Its arrival number; none for a lapsed place come back to its old score.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        ticket_number: Option<u64>,
        /// Where it stands.
        score: u64,
        /// The buyer, where one was proven.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        account: Option<Account>,
    },
    /// A token gave up its place or its session.
    UserLeftQueue {
        /// The token.
        token: Token,
    },
    /// These were called, first come first.
    UserAdmitted {
        /// The called places.
        places: Vec<CalledPlace>,
    },
    /// A called token claimed its session.
    TokenIssued {
        /// The token.
        token: Token,
        /// When the session ends.
        expires_at: Millis,
    },
    /// These did not claim in time.
    AdmissionLapsed {
        /// The tokens.
        tokens: Vec<Token>,
    },
    /// These sessions ended without a booking.
    AdmissionExpired {
        /// The tokens.
        tokens: Vec<Token>,
    },
    /// Seats are kept for a token.
    SeatsHeld {
        /// The token.
        token: Token,
        /// What this hold added.
        places: Vec<ReservedPlaces>,
        /// When the hold ends.
        expires_at: Millis,
    },
    /// Held seats are free again.
    SeatsReleased {
        /// Their holder, where one gave them back; none where their time was over.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        token: Option<Token>,
        /// What was released.
        places: Vec<ReservedPlaces>,
    },
    /// Seats were sold.
    Booked {
        /// The reservation after this change.
        reservation: Reservation,
    },
    /// A reservation was given back.
    BookingCancelled {
        /// The reservation after this change.
        reservation: Reservation,
    },
    /// A reservation was not paid in time.
    BookingExpired {
        /// The reservation after this change.
        reservation: Reservation,
    },
    /// A reservation was paid.
    Paid {
        /// The reservation after this change.
        reservation: Reservation,
    },
    /// Money came that buys nothing, or nothing any more: it is to be given back.
    RefundDue {
        /// The money.
        payment: Payment,
        /// Why: LATE, or the status of the reservation that it came for or that was given back.
        reason: String,
    },
    /// A payment that was not taken.
    PaymentRefused {
        /// The money.
        payment: Payment,
        /// Why: `AMOUNT_MISMATCH`, `RESERVATION_NOT_FOUND`.
        reason: String,
    },
    /// These are to be paid soon; told once each, for whoever reminds their buyers.
    PaymentDueSoon {
        /// The reservations.
        reservations: Vec<DueReservation>,
    },
    /// The sale was created or changed.
    EventChanged {
        /// Who did it, as far as known.
        by: String,
        /// What was done: apply, open, pause, close, pace, message, maintenance, repair, rebuild.
        change: String,
        /// What it was set to, where that was not a definition: a status, a message, 1 or 0.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        value: Option<String>,
        /// The definition's version after it.
        version: u64,
        /// The definition itself, where it changed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        definition: Option<serde_json::Value>,
    },
}

impl What {
    /// The word in the journal, in messages and in PostgreSQL.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::UserEnterQueue { .. } => "USER_ENTER_QUEUE",
            Self::UserLeftQueue { .. } => "USER_LEFT_QUEUE",
            Self::UserAdmitted { .. } => "USER_ADMITTED",
            Self::TokenIssued { .. } => "TOKEN_ISSUED",
            Self::AdmissionLapsed { .. } => "ADMISSION_LAPSED",
            Self::AdmissionExpired { .. } => "ADMISSION_EXPIRED",
            Self::SeatsHeld { .. } => "SEATS_HELD",
            Self::SeatsReleased { .. } => "SEATS_RELEASED",
            Self::Booked { .. } => "BOOKED",
            Self::BookingCancelled { .. } => "BOOKING_CANCELLED",
            Self::BookingExpired { .. } => "BOOKING_EXPIRED",
            Self::Paid { .. } => "PAID",
            Self::RefundDue { .. } => "REFUND_DUE",
            Self::PaymentRefused { .. } => "PAYMENT_REFUSED",
            Self::PaymentDueSoon { .. } => "PAYMENT_DUE_SOON",
            Self::EventChanged { .. } => "EVENT_CHANGED",
        }
    }

    /// The reservation after this fact, where it changed one.
    pub fn reservation(&self) -> Option<&Reservation> {
        match self {
            Self::Booked { reservation }
            | Self::BookingCancelled { reservation }
            | Self::BookingExpired { reservation }
            | Self::Paid { reservation } => Some(reservation),
            _ => None,
        }
    }

    /// Whether this fact travels in the bookings' queue, where the line's facts never make it wait. An epoch's does, so
    /// that it arrives behind the bookings before it.
    pub fn is_booking(&self) -> bool {
        let is_epoch = matches!(self, Self::EventChanged { change, .. } if ["epoch", "rebuild"].contains(&change.as_str()));
        let is_payment = matches!(
            self,
            Self::RefundDue { .. } | Self::PaymentRefused { .. } | Self::PaymentDueSoon { .. }
        );
        is_payment || is_epoch || self.reservation().is_some()
    }
}

/// A message's body: facts of any events, oldest first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Facts {
    /// The facts.
    pub facts: Vec<Fact>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fact_reads_back_as_written_and_names_its_kind() {
        let fact = Fact {
            event: "ktx-2026-chuseok".parse().unwrap(),
            epoch: 1,
            id: "1700000000000-3".parse().unwrap(),
            at: Millis(1_700_000_000_000),
            what: What::UserEnterQueue {
                token: Token::random(),
                ticket_number: Some(7),
                score: 7,
                account: None,
            },
        };
        let text = serde_json::to_string(&fact).unwrap();
        assert!(text.contains(r#""kind":"USER_ENTER_QUEUE""#), "{text}");
        assert!(text.contains(r#""ticketNumber":7"#), "{text}");
        assert!(text.contains(r#""id":"1700000000000-3""#), "{text}");
        assert_eq!(serde_json::from_str::<Fact>(&text).unwrap(), fact);
    }
}
