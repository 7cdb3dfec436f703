//! A called token has come.

use domain::outcome::{Outcome, Polled};
use domain::{EventId, ReservationId, Token};

use crate::keys::Keys;
use crate::step::{CLAIM, Call};
use crate::{Store, StoreError};

impl Store {
    /// Begin the session of a called token; as it is where there was nothing to claim.
    pub async fn claim(&self, event: &EventId, token: Token) -> Result<Outcome<Polled>, StoreError> {
        let booked = ReservationId::of(event.clone(), token);
        let keys = Keys::of(event).token(token).reservation(&booked);
        let call = Call::new(&CLAIM, keys).arg(self.now_ms()).arg(token.to_string());
        let mut reply = self.run(call).await?;
        match reply.word() {
            "POLLED" => reply.polled().map(Ok),
            _ => reply.refusal().map(Err),
        }
    }
}
