//! Forgetting a sale.

use domain::EventId;
use domain::outcome::{Outcome, SaleStatus};
use redis::Value;

use crate::keys::{EVENTS, Keys};
use crate::step::{Call, DELETE, SCAN};
use crate::{Store, StoreError};

/// How far forgetting a sale has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deletion {
    /// Somebody still needs it: nothing was changed.
    Ongoing {
        /// Whether the sale lets people in.
        status: SaleStatus,
        /// People waiting.
        waiting: u64,
        /// Calls and sessions alive.
        active: u64,
        /// Reservations that are not paid yet.
        unpaid: u64,
    },
    /// It is noted; repeating goes on once the queues have what is left of the journal.
    Noted {
        /// Facts not yet taken by a queue.
        journal: u64,
    },
    /// Nobody knows it any more; [`Store::forget_keys`] does the rest.
    Deleted,
}

impl Store {
    /// Forget a sale that is over or was never opened, step by step.
    pub async fn delete(&self, event: &EventId, by: &str) -> Result<Outcome<Deletion>, StoreError> {
        let mut reply = self.run(Call::new(&DELETE, Keys::of(event)).arg(self.now_ms()).arg(by)).await?;
        Ok(Ok(match reply.word() {
            "ONGOING" => {
                let status = reply.text()?;
                Deletion::Ongoing {
                    status: SaleStatus::from_word(&status).ok_or_else(|| reply.malformed(&status))?,
                    waiting: reply.count()?,
                    active: reply.count()?,
                    unpaid: reply.count()?,
                }
            }
            "NOTED" => Deletion::Noted { journal: reply.count()? },
            "DELETED" => Deletion::Deleted,
            _ => return reply.refusal().map(Err),
        }))
    }

    /// Remove whatever is left of a sale that nobody knows: how many keys there were. May be repeated.
    pub async fn forget_keys(&self, event: &EventId) -> Result<u64, StoreError> {
        self.query("SREM", redis::cmd("SREM").arg(EVENTS).arg(event.as_str())).await?;
        let keys = Keys::of(event);
        let (mut cursor, mut removed) = ("0".to_owned(), 0);
        loop {
            // Redis promises an end to whoever keeps asking, though keys come and go.
            let mut reply = self.run(Call::new(&SCAN, keys).arg(keys.pattern()).arg(&cursor)).await?;
            cursor = reply.text()?;
            let names: Vec<String> = reply.array()?.rest()?;
            if !names.is_empty() {
                match self.query("UNLINK", redis::cmd("UNLINK").arg(&names)).await? {
                    Value::Int(count) => removed += u64::try_from(count).unwrap_or(0),
                    other => {
                        return Err(StoreError::Malformed { step: "UNLINK", reply: format!("{other:?}") });
                    }
                }
            }
            if cursor == "0" {
                return Ok(removed);
            }
        }
    }
}
