//! Come back to a place.

use domain::Token;
use domain::command::Rejoin;
use domain::outcome::{Joined, Outcome};

use crate::join::joined;
use crate::keys::Keys;
use crate::step::{Call, REJOIN};
use crate::{Store, StoreError};

/// A token with the score that a shuffle would give it.
#[derive(Debug, Clone, Copy)]
pub struct Drawn {
    /// The token.
    pub token: Token,
    /// Its score in the draw.
    pub score: u64,
}

impl Store {
    /// Come back to `known`'s place, or take a new one for `new`. Answers the token whose place it is.
    pub async fn rejoin(
        &self,
        rejoin: &Rejoin,
        known: Drawn,
        new: Drawn,
    ) -> Result<Outcome<(Token, Joined)>, StoreError> {
        let keys = Keys::of(&rejoin.event).token(known.token).address(rejoin.address);
        let call = Call::new(&REJOIN, keys)
            .arg(self.now_ms())
            .arg(known.token.to_string())
            .arg(known.score)
            .arg(new.token.to_string())
            .arg(new.score);
        let reply = self.run(call).await?;
        Ok(Ok(match reply.word() {
            "KNOWN" => (known.token, Joined { joined_at: None, ..joined(reply)? }),
            "REQUEUED" => (known.token, joined(reply)?),
            "JOINED" => (new.token, joined(reply)?),
            _ => return reply.refusal().map(Err),
        }))
    }
}
