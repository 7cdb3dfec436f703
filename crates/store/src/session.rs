//! Look whether a session lives.

use domain::outcome::Outcome;
use domain::{EventId, Millis, Token};

use crate::keys::Keys;
use crate::step::{Call, SESSION};
use crate::{Store, StoreError};

impl Store {
    /// Until when a token may act, by Redis' clock: the end of its session or, before its claim, of its call. Claims
    /// nothing.
    pub async fn session(&self, event: &EventId, token: Token) -> Result<Outcome<Millis>, StoreError> {
        let call =
            Call::new(&SESSION, Keys::of(event).token(token)).arg(self.now_ms()).arg(token.to_string());
        let mut reply = self.run(call).await?;
        match reply.word() {
            "LIVE" => reply.millis().map(Ok),
            _ => reply.refusal().map(Err),
        }
    }
}
