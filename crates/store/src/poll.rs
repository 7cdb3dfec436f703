//! Ask where a token stands.

use domain::ReservationId;
use domain::command::Poll;
use domain::outcome::{Outcome, Polled};

use crate::keys::Keys;
use crate::step::{Call, POLL, POLL_LIMITED};
use crate::{Store, StoreError};

impl Store {
    /// Where the token stands; `limited` for callers without a good key.
    pub async fn poll(&self, poll: &Poll, limited: bool) -> Result<Outcome<Polled>, StoreError> {
        let booked = ReservationId::of(poll.event.clone(), poll.token);
        let keys = Keys::of(&poll.event).token(poll.token).reservation(&booked).address(poll.address);
        let step = if limited { &POLL_LIMITED } else { &POLL };
        let call = Call::new(step, keys).arg(self.now_ms()).arg(poll.token.to_string());
        let mut reply = self.run(call).await?;
        match reply.word() {
            "POLLED" => {
                let polled = reply.polled()?;
                self.saw(&poll.event, &polled.standing.view);
                Ok(Ok(polled))
            }
            _ => reply.refusal().map(Err),
        }
    }
}
