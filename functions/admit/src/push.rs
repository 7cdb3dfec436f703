//! Tells sockets what is new, beside the ticks and never in their way: a task of its own that looks at the followed
//! tokens that are due and hands over what there is to tell.

use std::time::Duration;

use domain::EventId;
use domain::socket::Notice;
use futures::future::join_all;
use outbox::{Push, Pushes};
use store::Store;
use tokio::time::{Instant, MissedTickBehavior, interval};

/// Between two rounds. A called token hears of it within this time after the tick.
pub const PUSH_INTERVAL: Duration = Duration::from_millis(500);
/// Looks at one event's tokens in one round at most; who is due beyond that is told in the next, the longest due first.
const LOOKS_A_ROUND: u32 = 40;
/// After the ticks, a closed sale's waiting people are told: the last of them within their longest interval.
const LAST_WORDS: Duration = Duration::from_secs(12);

/// Round by round, for ever.
pub(crate) async fn push_on(store: &Store, pushes: &dyn Pushes) {
    let mut rounds = interval(PUSH_INTERVAL);
    rounds.set_missed_tick_behavior(MissedTickBehavior::Skip);
    loop {
        rounds.tick().await;
        push_all(store, pushes).await;
    }
}

/// What is left to tell once the ticks have ended, until `end` at the latest: where the run was long enough, the next
/// one has taken over.
pub(crate) async fn last_words(store: &Store, pushes: &dyn Pushes, end: Instant) {
    let end = end.min(Instant::now() + LAST_WORDS);
    while push_all(store, pushes).await > 0 && Instant::now() < end {
        tokio::time::sleep(PUSH_INTERVAL).await;
    }
}

/// One round over every event. How many followed tokens may yet have something to hear. An event whose round fails is
/// logged and does not hold up the others.
pub async fn push_all(store: &Store, pushes: &dyn Pushes) -> u64 {
    let events = match store.events().await {
        Ok(events) => events,
        Err(error) => {
            tracing::warn!(%error, "sockets are not told");
            return 0;
        }
    };
    join_all(events.iter().map(|event| push_event(store, pushes, event))).await.into_iter().sum()
}

/// One round over an event. How many followed tokens may yet have something to hear.
pub async fn push_event(store: &Store, pushes: &dyn Pushes, event: &EventId) -> u64 {
    let mut following = 0;
    for _ in 0..LOOKS_A_ROUND {
        let found = match store.notices(event).await {
            Ok(Ok(found)) => found,
            Ok(Err(_)) => return 0,
            Err(error) => {
                tracing::warn!(%event, %error, "sockets are not told");
                return following;
            }
        };
        following = found.following;
        let told: Vec<Push> = found.notices.iter().flat_map(|notice| of_notice(event, notice)).collect();
        if !told.is_empty() {
            pushes.push(told).await;
        }
        if !found.more {
            break;
        }
    }
    following
}

/// What each follower is told.
fn of_notice(event: &EventId, notice: &Notice) -> Vec<Push> {
    let push = |listener: &domain::socket::Listener| Push {
        event: event.clone(),
        connection: listener.connection.clone(),
        bodies: gateway::socket::bodies(event, notice, &listener.language),
    };
    notice.listeners.iter().map(push).filter(|push| !push.bodies.is_empty()).collect()
}
