//! Sends the journal to the queues: what is older than a second, packed, and forgets only what a queue said it
//! took. At least once: two relays, or one that dies between the two, send some facts twice. Beside it recoveries of
//! sales are watched, and ended.

mod recoveries;

pub use recoveries::{Patience, Recoveries};

use std::collections::HashSet;
use std::time::Duration;

use bootstrap::metrics;
use domain::EventId;
use domain::fact::{Fact, StreamId, What};
use outbox::{Outbox, Queue, SqsOutbox};
use records::Records;
use store::{Store, StoreError};
use tokio::time::{Instant, MissedTickBehavior, interval};

/// How long a scheduled run goes on: a bit over the schedule's minute.
pub const RUN: Duration = Duration::from_secs(70);
/// Between two rounds.
const INTERVAL: Duration = Duration::from_secs(1);
/// A step's own sender gets this much time before the relay sends as well.
pub const SETTLE_MS: u64 = 1_000;
/// Pages of one event's journal in one round at most.
const PAGES_A_ROUND: u32 = 50;
/// Bookings and line.
const QUEUES: usize = 2;

/// What a run works on.
pub struct RelayState {
    /// Redis.
    pub store: Store,
    /// The queues.
    pub outbox: SqsOutbox,
    /// PostgreSQL.
    pub records: Records,
}

/// Relay each second for `run`, and end the recoveries that can end.
pub async fn run(state: &RelayState, run: Duration) -> Result<(), StoreError> {
    let RelayState { store, outbox, records } = state;
    let mut recoveries = Recoveries::new(store, records, outbox, Patience::SQS);
    let end = Instant::now() + run;
    let mut rounds = interval(INTERVAL);
    rounds.set_missed_tick_behavior(MissedTickBehavior::Skip);
    loop {
        rounds.tick().await;
        relay(store, outbox, SETTLE_MS).await?;
        recoveries.round().await?;
        metrics::flush();
        if Instant::now() + INTERVAL > end {
            return Ok(());
        }
    }
}

/// One round over every event: what has stood in a journal for `settle_ms`. Answers how many facts the queues
/// took.
pub async fn relay(store: &Store, outbox: &dyn Outbox, settle_ms: u64) -> Result<usize, StoreError> {
    let now_ms = store.redis_time_ms().await?;
    let until_ms = now_ms.saturating_sub(settle_ms);
    let (mut taken, mut lag_ms) = (0, 0);
    for event in store.events().await? {
        let relayed = relay_event(store, outbox, &event, until_ms).await?;
        taken += relayed.taken;
        lag_ms = relayed.oldest_ms.map_or(0, |oldest_ms| now_ms.saturating_sub(oldest_ms)).max(lag_ms);
    }
    metrics::JOURNAL_LAG.set(lag_ms as f64);
    Ok(taken)
}

/// What a round over one event found and did.
#[derive(Default)]
struct Relayed {
    /// Facts that the queues took.
    taken: usize,
    /// When the oldest entry was made, by Redis' clock; none where none had settled.
    oldest_ms: Option<u64>,
}

async fn relay_event(
    store: &Store,
    outbox: &dyn Outbox,
    event: &EventId,
    until_ms: u64,
) -> Result<Relayed, StoreError> {
    let mut sender = Sender { outbox, refusing: HashSet::new() };
    let mut from = None;
    let mut relayed = Relayed::default();
    for _ in 0..PAGES_A_ROUND {
        let page = store.journal(event, from, until_ms).await?;
        relayed.oldest_ms = relayed.oldest_ms.or(page.oldest_ms());
        for (id, reason) in &page.unreadable {
            tracing::error!(%event, %id, reason, "a journal entry is no fact; it stays where it is");
        }
        let ids = sender.send(&page.facts).await;
        store.forget(event, &ids).await?;
        count_epochs(&page.facts, &ids);
        relayed.taken += ids.len();
        match page.next {
            Some(next) if sender.refusing.len() < QUEUES => from = Some(next),
            // The end, or no queue is taking: what is left waits in the journal for the next round.
            _ => break,
        }
    }
    Ok(relayed)
}

/// Each epoch begins with one fact, which is taken off the journal once.
fn count_epochs(facts: &[Fact], taken: &[StreamId]) {
    let begins = |fact: &&Fact| matches!(&fact.what, What::EventChanged { change, .. } if change == "epoch");
    let begun = facts.iter().filter(begins).filter(|fact| taken.contains(&fact.id)).count();
    metrics::EPOCH_CHANGES.add(begun as u64);
}

/// What sends the facts of one event in one round.
struct Sender<'a> {
    outbox: &'a dyn Outbox,
    /// Queues that took nothing of a batch: not asked again in this round, while the other one goes on. Bookings
    /// never wait behind the line's facts.
    refusing: HashSet<Queue>,
}

impl Sender<'_> {
    /// Send facts; answers the ids that a queue took.
    async fn send(&mut self, facts: &[Fact]) -> Vec<StreamId> {
        let mut taken = HashSet::new();
        for (queue, messages) in outbox::pack(facts) {
            for batch in outbox::batches(messages) {
                if self.refusing.contains(&queue) {
                    break;
                }
                let carried: Vec<Vec<StreamId>> = batch
                    .iter()
                    .map(|message| {
                        message.carries.iter().flat_map(|carried| carried.ids.iter().copied()).collect()
                    })
                    .collect();
                let answers = self.outbox.send(queue, batch).await;
                if !answers.contains(&true) {
                    self.refusing.insert(queue);
                }
                taken.extend(
                    carried.into_iter().zip(answers).filter(|(_, took)| *took).flat_map(|(ids, _)| ids),
                );
            }
        }
        taken.into_iter().collect()
    }
}
