//! What a step answers. A refusal is an outcome, not an error: [`Outcome`]'s `Err` side is expected, and an
//! infrastructure failure is told apart by the layer that can have one.

use std::net::IpAddr;
use std::sync::Arc;

use crate::layout::Edition;
use crate::reservation::{Reservation, ReservationStatus};
use crate::sale::Sale;
use crate::{Account, Millis, ReservationId, SeatName};

/// What a command came to: its answer or the reason why nothing was changed.
pub type Outcome<T> = Result<T, Refusal>;

/// Why a command was refused, in no order: each step's header gives its own precedence.
#[derive(Debug, Clone, PartialEq)]
pub enum Refusal {
    /// No such sale.
    EventNotFound,
    /// No such offering in the sale.
    OfferingNotFound,
    /// No such section in the offering.
    SectionNotFound,
    /// No such seats in the section.
    SeatNotFound {
        /// The names that are no seats here.
        seats: Vec<SeatName>,
    },
    /// No such reservation, or not the caller's.
    ReservationNotFound,
    /// Too many calls from one address, or a poll before its time.
    RateLimit {
        /// How long to wait.
        retry_after_ms: u32,
    },
    /// The sale is over.
    EventClosed,
    /// The sale has not opened and keeps no line before it does.
    NotOpen {
        /// When it opens.
        opens_at: Millis,
    },
    /// The sale asks for an authenticated account.
    AccountRequired,
    /// The place belongs to an account that is not the proven one.
    AnotherAccount,
    /// The Idempotency-Key came with another request before.
    IdempotencyKeyReused,
    /// Maintenance: no hold and no booking.
    Maintenance,
    /// Redis may have lost what was answered; until that is back nothing is sold, given back or paid.
    Recovering,
    /// Too many facts wait for the queues: nobody new joins.
    JournalFull,
    /// The token has no live session and never had one in this visit.
    NotAdmitted,
    /// The token's session is over.
    AdmissionExpired,
    /// The token's hold budget is over.
    HoldExpired,
    /// The token has booked.
    AlreadyBooked {
        /// What it booked.
        reservation: ReservationId,
    },
    /// Somebody else has these seats.
    SeatTaken {
        /// The taken ones.
        seats: Vec<SeatName>,
    },
    /// Fewer places are left than asked for.
    SoldOut {
        /// How many are left in the section.
        remaining: u64,
    },
    /// No row has so many free seats side by side.
    NoAdjacentSeats,
    /// The account would own more than it may.
    PurchaseLimitExceeded {
        /// The most an account may own.
        limit: u32,
        /// What it holds and has booked.
        used: u32,
        /// What this request would add.
        requested: u32,
    },
    /// Nothing is held, and no `seatCount` was given.
    NothingHeld,
    /// A `seatCount` was given while seats are held.
    SeatCountWhileHolding,
    /// The reservation has ended in another way.
    BookingNotCancellable,
    /// Late, ended, asking for no payment, or paid by another one: the money is to be given back.
    BookingNotPayable,
    /// Not what the reservation costs.
    AmountMismatch,
}

/// A caller's address as limits see it: IPv4 whole, IPv6 by its /64.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Address(IpAddr);

impl Address {
    /// The address that limits are counted by.
    pub fn of(ip: IpAddr) -> Self {
        match ip.to_canonical() {
            IpAddr::V6(v6) => Self(IpAddr::V6((u128::from(v6) & !u128::from(u64::MAX)).into())),
            IpAddr::V4(v4) => Self(IpAddr::V4(v4)),
        }
    }

    /// How keys write it: no colons.
    pub fn key_part(&self) -> String {
        match self.0 {
            IpAddr::V4(v4) => v4.to_string(),
            IpAddr::V6(v6) => format!("{:016x}", u128::from(v6) >> 64),
        }
    }
}

/// Whether a sale lets people in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SaleStatus {
    /// Before its opening.
    Upcoming,
    /// Open.
    Open,
    /// Nobody is admitted, everything else works.
    Paused,
    /// Over.
    Closed,
}

impl SaleStatus {
    /// The word in answers and in Lua.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Upcoming => "UPCOMING",
            Self::Open => "OPEN",
            Self::Paused => "PAUSED",
            Self::Closed => "CLOSED",
        }
    }

    /// The status that a word names.
    pub fn from_word(word: &str) -> Option<Self> {
        [Self::Upcoming, Self::Open, Self::Paused, Self::Closed]
            .into_iter()
            .find(|status| status.as_str() == word)
    }
}

/// One event's line, read together with a place in it.
#[derive(Debug, Clone, PartialEq)]
pub struct LineView {
    /// Redis' clock when this was read.
    pub now: Millis,
    /// Whether the sale lets people in.
    pub status: SaleStatus,
    /// When the sale opens or opened.
    pub opens_at: Millis,
    /// Rises when Redis may have forgotten something.
    pub epoch: u64,
    /// The highest score admitted so far; 0 before the first.
    pub head_score: u64,
    /// People admitted, less those who came back to the front.
    pub net: u64,
    /// People waiting.
    pub total_waiting: u64,
    /// Free seats in the whole event.
    pub remaining_seats: u64,
    /// The pace seen lately, or the sale's own before anyone was admitted; 0 while paused.
    pub admitted_per_second: f64,
    /// The operator's message.
    pub message: Option<String>,
}

impl LineView {
    /// Whether ranks may be told: not before the opening.
    pub fn is_opened(&self) -> bool {
        self.opens_at <= self.now
    }
}

/// Where a token stands.
#[derive(Debug, Clone, PartialEq)]
pub enum Place {
    /// In the line.
    Waiting {
        /// Its score.
        score: u64,
        /// 1-based; `None` before the opening.
        rank: Option<u64>,
    },
    /// Admitted, not yet claimed.
    Called,
    /// In a live session.
    Active {
        /// When the session ends.
        expires_at: Millis,
        /// The buyer, where one was proven.
        account: Option<Account>,
    },
    /// Has booked.
    Booked {
        /// What it booked.
        reservation: ReservationId,
    },
    /// Its session or its call is over, or the sale is.
    Expired {
        /// Whether it may come back to its old place, once.
        reentry: bool,
    },
    /// Never seen, or left.
    NotFound,
}

/// A place in its line.
#[derive(Debug, Clone, PartialEq)]
pub struct Standing {
    /// Where the token stands.
    pub place: Place,
    /// The line around it.
    pub view: LineView,
}

/// A poll's answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Polled {
    /// Where the token stands.
    pub standing: Standing,
    /// Places that the account, or the token without one, has bought and not given back.
    pub ticket_count: u32,
}

/// A join's or rejoin's answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Joined {
    /// The arrival order behind the place; `None` where only the key could tell (a drawn place come back).
    pub ticket_number: Option<u64>,
    /// When a new place was taken; `None` where the place was known.
    pub joined_at: Option<Millis>,
    /// Where the token stands now.
    pub standing: Standing,
}

/// How the whole line moves.
#[derive(Debug, Clone, PartialEq)]
pub struct ProgressView {
    /// The line.
    pub view: LineView,
    /// Whether the line before the opening is drawn, so that a commitment and a seed are published.
    pub shuffled: bool,
}

/// A search's answer. It points into the definition: a hit copies nothing of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Offerings {
    /// The definition that was searched.
    pub sale: Arc<Sale>,
    /// What was found, in the definition's order.
    pub hits: Vec<OfferingHit>,
}

/// One offering that was found.
#[derive(Debug, Clone, PartialEq)]
pub struct OfferingHit {
    /// Its position in [`Sale::offerings`].
    pub offering: usize,
    /// Free places of each of its sections, in the definition's order.
    pub remaining: Vec<u64>,
}

/// What became of a seat that is not free.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SeatState {
    /// Kept for a token.
    Held,
    /// Bought.
    Sold,
}

impl SeatState {
    /// The word in answers.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Held => "HELD",
            Self::Sold => "SOLD",
        }
    }
}

/// A seat map's answer. It points into the edition: free seats cost nothing.
#[derive(Debug, Clone, PartialEq)]
pub struct SeatMapView {
    /// The edition whose places these are.
    pub edition: Arc<Edition>,
    /// Rises with each change of a place in the event.
    pub sequence: u64,
    /// The sections asked for, in the layout's order.
    pub sections: Vec<SectionSeats>,
}

/// One section of a seat map.
#[derive(Debug, Clone, PartialEq)]
pub struct SectionSeats {
    /// Its number in the layout.
    pub number: u32,
    /// What is not free, in the layout's order; empty in a general section.
    pub taken: Vec<TakenSeat>,
    /// Free places.
    pub remaining: u64,
}

/// A seat that is not free.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TakenSeat {
    /// Position of its row in the section's rows.
    pub row: u32,
    /// Position in the row's seats.
    pub seat: u32,
    /// What became of it.
    pub state: SeatState,
}

/// A hold's answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Held {
    /// Redis' clock.
    pub now: Millis,
    /// The named seats of this request, in the order asked for or found.
    pub seats: Vec<SeatName>,
    /// How many places this request got.
    pub seat_count: u32,
    /// When all of the token's holds end.
    pub hold_expires_at: Millis,
    /// When the session ends.
    pub active_expires_at: Millis,
    /// Places held by the token over all sections, these included.
    pub held_count: u32,
    /// Places that the account has bought before.
    pub ticket_count: u32,
    /// The buyer, where one was proven.
    pub account: Option<Account>,
    /// Whether the session ends later than it did: its owner needs a new access token.
    pub prolonged: bool,
}

/// A booking's answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Booked {
    /// The reservation as it stands.
    pub reservation: Reservation,
    /// Free seats in the whole event.
    pub remaining_seats: u64,
}

/// What a payment came to.
#[derive(Debug, Clone, PartialEq)]
pub struct Paid {
    /// Where the reservation stands now.
    pub status: ReservationStatus,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_count_ipv6_by_its_network() {
        let part = |text: &str| Address::of(text.parse().unwrap()).key_part();
        assert_eq!(part("203.0.113.9"), "203.0.113.9");
        assert_eq!(part("::ffff:203.0.113.9"), "203.0.113.9");
        assert_eq!(part("2001:db8:1:2:3:4:5:6"), part("2001:db8:1:2::1"));
        assert_ne!(part("2001:db8:1:2::1"), part("2001:db8:1:3::1"));
        assert!(!part("2001:db8:1:2::1").contains(':'));
    }
}
