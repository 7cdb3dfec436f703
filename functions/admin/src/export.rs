//! Reservations for other programs, a page at a time.

use domain::reservation::{Reservation, ReservationStatus, ReservedPlaces};
use domain::{Account, EventId, Millis, PaymentId, ReservationId, Token};
use serde::{Deserialize, Serialize};

use crate::command::ExportCursor;
use crate::reply::{Refused, Reply};
use crate::{AdminError, AdminState};

/// The most reservations of a page: one answer of a Lambda carries 6 MB.
pub const MAX_EXPORT_PAGE: u32 = 1_000;

/// A reservation as it leaves the system.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ExportedReservation {
    /// Its id.
    pub reservation_id: ReservationId,
    /// The token that bought it, where it was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<Token>,
    /// The buyer, where one was proven.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub account: Option<Account>,
    /// Where it stands.
    pub status: ReservationStatus,
    /// Rises with each change.
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

impl ExportedReservation {
    fn of(reservation: Reservation, with_token: bool) -> Self {
        Self {
            reservation_id: reservation.reservation_id,
            token: with_token.then_some(reservation.token),
            account: reservation.account,
            status: reservation.status,
            version: reservation.version,
            places: reservation.places,
            seat_count: reservation.seat_count,
            amount: reservation.amount,
            currency: reservation.currency,
            created_at: reservation.created_at,
            updated_at: reservation.updated_at,
            payment_due_at: reservation.payment_due_at,
            payment_id: reservation.payment_id,
        }
    }
}

pub(crate) async fn export(
    state: &AdminState,
    event: &EventId,
    after: Option<&ExportCursor>,
    limit: u32,
    with_tokens: bool,
) -> Result<Reply, AdminError> {
    if !(1..=MAX_EXPORT_PAGE).contains(&limit) {
        return Ok(Reply::Refused(Refused::value("limit", format!("must be from 1 to {MAX_EXPORT_PAGE}"))));
    }
    let records = state.records()?;
    let after = after.map(|cursor| (cursor.created_at, &cursor.reservation_id));
    let page = records.reservations_behind(event, after, limit).await?;
    // An event may be over for long: PostgreSQL knows it when Redis does not any more.
    let is_known = !page.is_empty() || after.is_some() || records.definition(event).await?.is_some();
    if !is_known && state.store().newest_edition(event).await?.is_none() {
        return Ok(Reply::Refused(Refused::EventNotFound { event: event.clone() }));
    }
    let last = page.last().filter(|_| page.len() == limit as usize);
    let next = last.map(|last| ExportCursor {
        created_at: last.created_at,
        reservation_id: last.reservation_id.clone(),
    });
    let reservations =
        page.into_iter().map(|reservation| ExportedReservation::of(reservation, with_tokens)).collect();
    Ok(Reply::Exported { reservations, next })
}
