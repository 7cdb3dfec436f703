//! After a failover or a restart of Redis that may have lost its newest writes: a new epoch, in which nothing is sold
//! until what was answered is back.

use domain::outcome::{Outcome, Refusal};
use domain::{EventId, Millis};

use crate::keys::Keys;
use crate::step::{Call, RECOVER, RECOVERED};
use crate::{Store, StoreError};

/// Whether a sale recovers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recovery {
    /// Nothing is missing.
    Healthy {
        /// The epoch that the sale is in.
        epoch: u64,
    },
    /// What was answered before is to be put back.
    Recovering {
        /// The epoch that began with the loss.
        epoch: u64,
        /// When it began.
        since: Millis,
        /// Redis' clock.
        now: Millis,
    },
}

impl Store {
    /// Notice a loss, and tell whether the sale recovers from one.
    pub async fn recover(&self, event: &EventId) -> Result<Outcome<Recovery>, StoreError> {
        let mut reply = self.run(Call::new(&RECOVER, Keys::of(event)).arg(self.now_ms())).await?;
        match reply.word() {
            "HEALTHY" => Ok(Ok(Recovery::Healthy { epoch: reply.count()? })),
            "RECOVERING" => {
                let (epoch, since, now) = (reply.count()?, reply.millis()?, reply.millis()?);
                Ok(Ok(Recovery::Recovering { epoch, since, now }))
            }
            _ => reply.refusal().map(Err),
        }
    }

    /// End the recovery of `epoch`: false where another one has begun meanwhile.
    pub async fn recovered(&self, event: &EventId, epoch: u64) -> Result<Outcome<bool>, StoreError> {
        let reply = self.run(Call::new(&RECOVERED, Keys::of(event)).arg(self.now_ms()).arg(epoch)).await?;
        match reply.word() {
            "RECOVERED" => Ok(Ok(true)),
            _ => match reply.refusal()? {
                Refusal::Recovering => Ok(Ok(false)),
                refusal => Ok(Err(refusal)),
            },
        }
    }
}
