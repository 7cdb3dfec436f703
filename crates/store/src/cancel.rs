//! Give a reservation back.

use domain::command::Reserved;
use domain::fact::{Fact, What};
use domain::outcome::{Booked, Outcome};
use domain::{ReservationId, Token};

use crate::catalogue::edition_or_refuse;
use crate::keys::Keys;
use crate::step::{CANCEL, Call};
use crate::{Store, StoreError};

impl Store {
    /// Give a reservation back as its owner. A fresh cancellation brings the fact that the step wrote.
    pub async fn cancel(&self, reserved: &Reserved) -> Result<Outcome<(Booked, Option<Fact>)>, StoreError> {
        self.cancel_as(&reserved.reservation, reserved.token, &reserved.token.to_string()).await
    }

    /// Give a reservation back as an operator.
    pub async fn cancel_any(
        &self,
        id: &ReservationId,
    ) -> Result<Outcome<(Booked, Option<Fact>)>, StoreError> {
        match self.any_reservation(id).await? {
            Ok(reservation) => self.cancel_as(id, reservation.token, "").await,
            Err(refusal) => Ok(Err(refusal)),
        }
    }

    async fn cancel_as(
        &self,
        id: &ReservationId,
        token: Token,
        asking: &str,
    ) -> Result<Outcome<(Booked, Option<Fact>)>, StoreError> {
        let event = id.event();
        let call = Call::new(&CANCEL, Keys::of(event).token(token).reservation(id))
            .arg(self.now_ms())
            .arg(asking)
            .arg(id.to_string());
        let mut reply = self.run(call).await?;
        if reply.word() != "CANCELLED" {
            return reply.refusal().map(Err);
        }
        let edition = edition_or_refuse!(self, event);
        let (stamp, booked) = self.changed_reservation(&mut reply, edition).await?;
        let reservation = booked.reservation.clone();
        let fact = stamp.map(|stamp| stamp.fact(event, &booked, What::BookingCancelled { reservation }));
        Ok(Ok((booked, fact)))
    }
}
