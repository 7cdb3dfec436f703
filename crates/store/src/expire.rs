//! End a reservation that was not paid in time.

use domain::ReservationId;

use crate::keys::Keys;
use crate::step::{Call, EXPIRE};
use crate::{Store, StoreError};

impl Store {
    /// Give back what was not paid in time; false where it was paid, given back before, is not
    /// due yet, or the sale recovers from a loss.
    pub async fn expire(&self, id: &ReservationId) -> Result<bool, StoreError> {
        let call =
            Call::new(&EXPIRE, Keys::of(id.event()).reservation(id)).arg(self.now_ms()).arg(id.to_string());
        Ok(self.run(call).await?.word() == "EXPIRED")
    }
}
