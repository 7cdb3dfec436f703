//! What a payment provider says.

use domain::command::Pay;
use domain::fact::{Fact, What};
use domain::outcome::{Outcome, Paid};
use domain::reservation::ReservationStatus;

use crate::book::Stamp;
use crate::catalogue::edition_or_refuse;
use crate::keys::Keys;
use crate::step::{Call, PAY};
use crate::{Store, StoreError};

impl Store {
    /// Take a payment. A transition brings the fact that the step wrote, to be sent before anybody is told.
    pub async fn pay(&self, pay: &Pay) -> Result<Outcome<(Paid, Option<Fact>)>, StoreError> {
        let event = pay.reservation.event();
        let call = Call::new(&PAY, Keys::of(event).reservation(&pay.reservation).payment(&pay.payment))
            .arg(self.now_ms())
            .arg(pay.reservation.to_string())
            .arg(pay.payment.as_str())
            .arg(if pay.paid { "PAID" } else { "FAILED" })
            .arg(pay.amount)
            .arg(&pay.currency);
        let mut reply = self.run(call).await?;
        match reply.word() {
            "PAID" => {}
            "UNCHANGED" => {
                let word = reply.text()?;
                let status = ReservationStatus::from_word(&word).ok_or_else(|| reply.malformed(&word))?;
                return Ok(Ok((Paid { status }, None)));
            }
            _ => return reply.refusal().map(Err),
        }
        let stamp = Stamp::of(&mut reply)?;
        let fields = reply.array()?.pairs()?;
        let edition = edition_or_refuse!(self, event);
        let reservation = self.named(fields, edition).await?;
        let paid = Paid { status: reservation.status };
        let fact = stamp
            .map(|stamp| stamp.fact(event, &reservation, What::Paid { reservation: reservation.clone() }));
        Ok(Ok((paid, fact)))
    }
}
