//! Facts to write.

use domain::fact::{Fact, StreamId, What};
use domain::reservation::{Reservation, ReservationStatus, ReservedPlaces};
use domain::{EventId, Millis, ReservationId, Token};

pub(crate) const START: i64 = 1_790_000_000_000;

pub(crate) fn event() -> EventId {
    "ktx-2026-chuseok".parse().unwrap()
}

/// A fact; its sequence is its identity.
pub(crate) fn fact(sequence: u64, what: What) -> Fact {
    let at = Millis(START.saturating_add_unsigned(sequence));
    Fact { event: event(), epoch: 1, id: StreamId { ms: at.0.cast_unsigned(), sequence }, at, what }
}

pub(crate) fn entered(sequence: u64) -> Fact {
    let token = Token::random();
    fact(
        sequence,
        What::UserEnterQueue { token, ticket_number: Some(sequence), score: sequence, account: None },
    )
}

pub(crate) fn named(offering: &str, section: &str, price: u64, seats: &[&str]) -> ReservedPlaces {
    ReservedPlaces {
        offering_id: offering.parse().unwrap(),
        section_id: section.parse().unwrap(),
        price,
        count: u32::try_from(seats.len()).unwrap(),
        seats: seats.iter().map(|seat| seat.parse().unwrap()).collect(),
    }
}

pub(crate) fn general(offering: &str, section: &str, price: u64, count: u32) -> ReservedPlaces {
    ReservedPlaces { count, ..named(offering, section, price, &[]) }
}

/// A first version, of a token of its own; created at `created` milliseconds after the start.
pub(crate) fn reservation(created: i64, places: Vec<ReservedPlaces>) -> Reservation {
    let token = Token::random();
    Reservation {
        reservation_id: ReservationId::of(event(), token),
        token,
        account: Some("buyer@example.com".parse().unwrap()),
        status: ReservationStatus::PendingPayment,
        version: 1,
        seat_count: places.iter().map(|places| places.count).sum(),
        amount: places.iter().map(|places| places.price * u64::from(places.count)).sum(),
        places,
        currency: "KRW".to_owned(),
        created_at: Millis(START + created),
        updated_at: Millis(START + created),
        payment_due_at: Some(Millis(START + 86_400_000)),
        payment_id: None,
    }
}

/// The next version.
pub(crate) fn changed(reservation: &Reservation, status: ReservationStatus) -> Reservation {
    let updated_at = reservation.updated_at.plus(1);
    Reservation { status, version: reservation.version + 1, updated_at, ..reservation.clone() }
}

pub(crate) fn booked(sequence: u64, reservation: &Reservation) -> Fact {
    fact(sequence, What::Booked { reservation: reservation.clone() })
}

pub(crate) fn cancelled(sequence: u64, reservation: &Reservation) -> Fact {
    let reservation = changed(reservation, ReservationStatus::Cancelled);
    fact(sequence, What::BookingCancelled { reservation })
}
