//! Take a new place in the line.

use domain::Token;
use domain::command::Join;
use domain::outcome::{Joined, Outcome};

use crate::keys::Keys;
use crate::reply::Reply;
use crate::step::{Call, JOIN};
use crate::{Store, StoreError};

impl Store {
    /// Take a new place for `token`, which nobody has seen yet; `drawn_score` is where a shuffle would put it.
    pub async fn join(
        &self,
        join: &Join,
        token: Token,
        drawn_score: u64,
    ) -> Result<Outcome<Joined>, StoreError> {
        let keys = Keys::of(&join.event).token(token).address(join.address);
        let call = Call::new(&JOIN, keys).arg(self.now_ms()).arg(token.to_string()).arg(drawn_score);
        let reply = self.run(call).await?;
        match reply.word() {
            "JOINED" => joined(reply).map(Ok),
            _ => reply.refusal().map(Err),
        }
    }
}

/// A new place: its ticket number, then where it stands.
pub(crate) fn joined(mut reply: Reply) -> Result<Joined, StoreError> {
    let ticket_number = reply.optional_integer()?.and_then(|number| u64::try_from(number).ok());
    let polled = reply.polled()?;
    Ok(Joined { ticket_number, joined_at: Some(polled.view.now), polled })
}
