//! Reservations as Redis keeps them, and reading one back.

use std::collections::HashMap;
use std::str::FromStr;

use domain::command::{Owner, Reserved};
use domain::items::Items;
use domain::layout::{Edition, reserved_places};
use domain::outcome::{Outcome, Refusal};
use domain::reservation::{Reservation, ReservationStatus};
use domain::{Account, Millis, ReservationId};

use crate::keys::Keys;
use crate::step::{Call, RESERVATION};
use crate::{Store, StoreError};

impl Store {
    /// A reservation as its owner sees it; at once, however late the persister is.
    pub async fn reservation(&self, reserved: &Reserved) -> Result<Outcome<Reservation>, StoreError> {
        self.read_reservation(&reserved.reservation, Some(&reserved.owner)).await
    }

    /// A reservation as an operator sees it.
    pub async fn any_reservation(&self, id: &ReservationId) -> Result<Outcome<Reservation>, StoreError> {
        self.read_reservation(id, None).await
    }

    async fn read_reservation(
        &self,
        id: &ReservationId,
        owner: Option<&Owner>,
    ) -> Result<Outcome<Reservation>, StoreError> {
        let (token, account) = owner_arguments(owner);
        let keys = Keys::of(id.event()).reservation(id);
        let call = Call::new(&RESERVATION, keys).arg(token).arg(account);
        let mut reply = self.run(call).await?;
        if reply.word() != "RESERVED" {
            return reply.refusal().map(Err);
        }
        let fields = reply.array()?.pairs()?;
        match self.edition(id.event()).await? {
            Some(edition) => self.named(fields, edition).await.map(Ok),
            None => Ok(Err(Refusal::ReservationNotFound)),
        }
    }

    /// A reservation's fields with its places by name. Sold places keep their index for ever; only a section newer
    /// than the edition at hand asks for another read.
    pub(crate) async fn named(
        &self,
        fields: Vec<(String, String)>,
        edition: std::sync::Arc<Edition>,
    ) -> Result<Reservation, StoreError> {
        let fields: HashMap<String, String> = fields.into_iter().collect();
        if let Ok(reservation) = read(&fields, &edition) {
            return Ok(reservation);
        }
        let newest = self.newest_edition(&edition.sale.event_id).await?.unwrap_or(edition);
        read(&fields, &newest)
    }
}

/// The token and account that a step compares; both are empty for the operator.
pub(crate) fn owner_arguments(owner: Option<&Owner>) -> (String, &str) {
    let token = owner.and_then(|owner| owner.token).map(|token| token.to_string()).unwrap_or_default();
    (token, owner.and_then(|owner| owner.account.as_ref()).map_or("", Account::as_str))
}

/// A reservation from its fields, in Redis or in the journal.
pub(crate) fn read(fields: &HashMap<String, String>, edition: &Edition) -> Result<Reservation, StoreError> {
    // Named by its id alone: the fields hold the token, and errors are logged.
    let id = fields.get("id").map_or("without id", String::as_str);
    let malformed =
        |what: &str| StoreError::Malformed { step: "reservation", reply: format!("{id}: {what}") };
    let text = |name: &str| fields.get(name).map(String::as_str).ok_or_else(|| malformed(name));
    let number = |name: &str| text(name)?.parse::<i64>().map_err(|_| malformed(name));
    let items: Items = text("items")?.parse().map_err(|_| malformed("items"))?;
    let due_at = text("paymentDueAt")?;
    Ok(Reservation {
        reservation_id: text("id")?.parse().map_err(|_| malformed("id"))?,
        token: text("token")?.parse().map_err(|_| malformed("token"))?,
        account: optional(fields.get("account")).map_err(|()| malformed("account"))?,
        status: ReservationStatus::from_word(text("status")?).ok_or_else(|| malformed("status"))?,
        version: text("version")?.parse().map_err(|_| malformed("version"))?,
        places: reserved_places(&edition.layout, &items).map_err(|error| malformed(&error.to_string()))?,
        seat_count: items.count(),
        amount: items.amount(),
        currency: text("currency")?.to_owned(),
        created_at: Millis(number("createdAt")?),
        updated_at: Millis(number("updatedAt")?),
        payment_due_at: if due_at.is_empty() { None } else { Some(Millis(number("paymentDueAt")?)) },
        payment_id: optional(fields.get("paymentId")).map_err(|()| malformed("paymentId"))?,
    })
}

fn optional<T: FromStr>(text: Option<&String>) -> Result<Option<T>, ()> {
    text.map(|text| text.parse().map_err(|_| ())).transpose()
}
