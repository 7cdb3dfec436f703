//! Ends recoveries. After a loss of Redis a sale sells nothing until all that was answered before stands in PostgreSQL;
//! then what Redis forgot is put back, and the sale goes on.

use std::collections::HashMap;

use bootstrap::metrics;
use domain::fact::StreamId;
use domain::{EventId, Millis};
use outbox::Backlog;
use records::Records;
use recovery::RecoveryError;
use store::{Recovery, Store, StoreError};

/// When nothing that was answered before a loss can be on its way any more.
#[derive(Debug, Clone, Copy)]
pub struct Patience {
    /// Since the loss: by then whoever answered has sent, or given up and not answered.
    pub settle_ms: i64,
    /// Rounds in a row in which nothing waits for PostgreSQL.
    pub empty_rounds: u32,
    /// Since the loss, where other sales keep the queue busy: longer than a message that was handed back stays away.
    pub busy_ms: i64,
}

impl Patience {
    /// SQS counts what waits only about right.
    pub const SQS: Self = Self { settle_ms: 3_000, empty_rounds: 2, busy_ms: 240_000 };
    /// A queue that counts what it has.
    pub const EXACT: Self = Self { settle_ms: 1_000, empty_rounds: 1, busy_ms: 240_000 };
}

/// Every sale that recovers, watched round by round.
pub struct Recoveries<'a> {
    store: &'a Store,
    records: &'a Records,
    backlog: &'a dyn Backlog,
    patience: Patience,
    /// The epoch that began with a sale's loss, and rounds in a row in which nothing waited.
    watched: HashMap<EventId, (u64, u32)>,
}

/// A loss, as it is seen now.
struct Loss<'a> {
    event: &'a EventId,
    epoch: u64,
    since: Millis,
    age_ms: i64,
}

impl<'a> Recoveries<'a> {
    /// None watched yet.
    pub fn new(store: &'a Store, records: &'a Records, backlog: &'a dyn Backlog, patience: Patience) -> Self {
        Self { store, records, backlog, patience, watched: HashMap::new() }
    }

    /// Look at every sale once. One whose recovery cannot go on is logged, and does not hold up the others.
    pub async fn round(&mut self) -> Result<(), StoreError> {
        for event in self.store.events().await? {
            match self.store.recover(&event).await? {
                Ok(Recovery::Recovering { epoch, since, now }) => {
                    let loss = Loss { event: &event, epoch, since, age_ms: now.0.saturating_sub(since.0) };
                    if let Err(error) = self.go_on(&loss).await {
                        tracing::error!(%event, epoch, %error, "a recovery cannot go on");
                    }
                }
                Ok(Recovery::Healthy { .. }) | Err(_) => drop(self.watched.remove(&event)),
            }
        }
        Ok(())
    }

    async fn go_on(&mut self, loss: &Loss<'_>) -> Result<(), RecoveryError> {
        let Loss { event, epoch, .. } = *loss;
        if self.watched.get(event).is_none_or(|(watched, _)| *watched != epoch) {
            self.watched.insert(event.clone(), (epoch, 0));
            metrics::EPOCH_CHANGES.add(1);
            tracing::warn!(%event, epoch, "Redis may have lost what was answered: nothing is sold until that is back");
        }
        if !self.is_drained(loss).await? {
            return Ok(());
        }
        let report = recovery::repair(self.store, self.records, event, Some(loss.since)).await?;
        for conflict in &report.conflicts {
            let (id, reason) = (&conflict.reservation_id, &conflict.reason);
            tracing::error!(%event, %id, reason, "a reservation cannot be put back: its places are another's");
            metrics::GUARD_VIOLATIONS.add(1);
        }
        if let Ok(true) = self.store.recovered(event, epoch).await? {
            let (compared, restored) = (report.compared, report.restored);
            tracing::warn!(%event, epoch, compared, restored, "what was lost is back: the sale goes on");
        }
        Ok(())
    }

    /// Whether all that was sent before the loss is written. The fact of the epoch itself went the same way: where it has
    /// arrived, the way is open.
    async fn is_drained(&mut self, loss: &Loss<'_>) -> Result<bool, RecoveryError> {
        let Loss { event, epoch, age_ms, .. } = *loss;
        let arrived =
            self.records.facts_behind(event, "EVENT_CHANGED", Some((epoch, StreamId::MIN)), 1).await?;
        if arrived.is_empty() || age_ms < self.patience.settle_ms {
            return Ok(false);
        }
        let is_empty = match self.backlog.bookings().await {
            Ok(waiting) => waiting == 0,
            Err(error) => {
                tracing::warn!(%error, "what waits for PostgreSQL is unknown");
                return Ok(false);
            }
        };
        let rounds = match self.watched.get_mut(event) {
            Some((_, rounds)) if is_empty => {
                *rounds += 1;
                *rounds
            }
            Some((_, rounds)) => {
                *rounds = 0;
                0
            }
            None => 0,
        };
        Ok(rounds >= self.patience.empty_rounds || age_ms >= self.patience.busy_ms)
    }
}
