//! A reservation as everybody sees it: answers, facts, rows.

use serde::{Deserialize, Serialize};

use crate::{Account, Millis, OfferingId, PaymentId, ReservationId, SeatName, SectionId, Token};

/// Where a reservation stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum ReservationStatus {
    /// Bought; no payment was asked for.
    Confirmed,
    /// Bought, to be paid until its due instant.
    PendingPayment,
    /// Paid.
    Paid,
    /// Given back by its owner or an operator.
    Cancelled,
    /// Not paid in time.
    Expired,
}

impl ReservationStatus {
    /// The word in answers, Redis and PostgreSQL.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Confirmed => "CONFIRMED",
            Self::PendingPayment => "PENDING_PAYMENT",
            Self::Paid => "PAID",
            Self::Cancelled => "CANCELLED",
            Self::Expired => "EXPIRED",
        }
    }

    /// The status that a word names.
    pub fn from_word(word: &str) -> Option<Self> {
        [Self::Confirmed, Self::PendingPayment, Self::Paid, Self::Cancelled, Self::Expired]
            .into_iter()
            .find(|status| status.as_str() == word)
    }

    /// Whether its seats are still its own.
    pub fn keeps_seats(self) -> bool {
        !matches!(self, Self::Cancelled | Self::Expired)
    }
}

/// One section's part of a reservation.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReservedPlaces {
    /// The offering.
    pub offering_id: OfferingId,
    /// The section.
    pub section_id: SectionId,
    /// Price of one place when it was bought, in the currency's smallest unit.
    pub price: u64,
    /// How many places.
    pub count: u32,
    /// The named seats; empty in a general section.
    #[serde(default)]
    pub seats: Vec<SeatName>,
}

/// A whole reservation. Each change raises `version` by one; the highest version is the truth.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Reservation {
    /// Its id.
    pub reservation_id: ReservationId,
    /// The token that bought it: a secret, never in an answer to anyone but its owner.
    pub token: Token,
    /// The buyer, where one was proven.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub account: Option<Account>,
    /// Where it stands.
    pub status: ReservationStatus,
    /// Starts at 1.
    pub version: u32,
    /// What was bought, by section.
    pub places: Vec<ReservedPlaces>,
    /// Places over all sections.
    pub seat_count: u32,
    /// Price over all places, in the currency's smallest unit.
    pub amount: u64,
    /// ISO 4217.
    pub currency: String,
    /// When it was bought.
    pub created_at: Millis,
    /// When it last changed.
    pub updated_at: Millis,
    /// Until when it is to be paid.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payment_due_at: Option<Millis>,
    /// What paid it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payment_id: Option<PaymentId>,
}

/// Money that a provider says it took for a reservation.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Payment {
    /// What was paid for.
    pub reservation_id: ReservationId,
    /// The payment.
    pub payment_id: PaymentId,
    /// How much, in the currency's smallest unit.
    pub amount: u64,
    /// ISO 4217.
    pub currency: String,
}

/// A reservation that is to be paid.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DueReservation {
    /// Its id.
    pub reservation_id: ReservationId,
    /// Until when.
    pub payment_due_at: Millis,
}
