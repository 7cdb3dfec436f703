//! Give up a place or a session.

use domain::command::Leave;
use domain::outcome::Outcome;

use crate::keys::Keys;
use crate::step::{Call, LEAVE};
use crate::{Store, StoreError};

/// Leaves a second from one address.
const LEAVES_PER_ADDRESS_PER_SECOND: u32 = 5;

impl Store {
    /// Give up a place or a session; false where there was none.
    pub async fn leave(&self, leave: &Leave) -> Result<Outcome<bool>, StoreError> {
        let keys = Keys::of(&leave.event).token(leave.token).address(leave.address);
        let call = Call::new(&LEAVE, keys)
            .arg(self.now_ms())
            .arg(leave.token.to_string())
            .arg(LEAVES_PER_ADDRESS_PER_SECOND);
        let mut reply = self.run(call).await?;
        match reply.word() {
            "LEFT" => Ok(Ok(reply.integer()? == 1)),
            _ => reply.refusal().map(Err),
        }
    }
}
