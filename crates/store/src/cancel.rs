//! Give a reservation back.

use domain::ReservationId;
use domain::command::{Owner, Reserved};
use domain::fact::{Fact, What};
use domain::outcome::{Booked, Outcome};

use crate::catalogue::edition_or_refuse;
use crate::keys::Keys;
use crate::reservation::owner_arguments;
use crate::step::{CANCEL, Call};
use crate::{Store, StoreError};

impl Store {
    /// Give a reservation back as its owner. A fresh cancellation brings the fact that the step wrote.
    pub async fn cancel(&self, reserved: &Reserved) -> Result<Outcome<(Booked, Option<Fact>)>, StoreError> {
        self.cancel_as(&reserved.reservation, Some(&reserved.owner)).await
    }

    /// Give a reservation back as an operator.
    pub async fn cancel_any(
        &self,
        id: &ReservationId,
    ) -> Result<Outcome<(Booked, Option<Fact>)>, StoreError> {
        self.cancel_as(id, None).await
    }

    async fn cancel_as(
        &self,
        id: &ReservationId,
        owner: Option<&Owner>,
    ) -> Result<Outcome<(Booked, Option<Fact>)>, StoreError> {
        let event = id.event();
        let (token, account) = owner_arguments(owner);
        let call = Call::new(&CANCEL, Keys::of(event).reservation(id))
            .arg(self.now_ms())
            .arg(token)
            .arg(account)
            .arg(id.to_string());
        let mut reply = self.run(call).await?;
        if reply.word() != "CANCELLED" {
            return reply.refusal().map(Err);
        }
        let edition = edition_or_refuse!(self, event);
        let (stamp, booked) = self.changed_reservation(&mut reply, edition).await?;
        let reservation = booked.reservation.clone();
        let fact =
            stamp.map(|stamp| stamp.fact(event, &booked.reservation, What::BookingCancelled { reservation }));
        Ok(Ok((booked, fact)))
    }
}
