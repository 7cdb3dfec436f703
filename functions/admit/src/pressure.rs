//! What ticks are told of PostgreSQL: how many bookings wait for it. It is asked for beside the ticks, which never wait for
//! the answer.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use outbox::Backlog;
use store::{BookingsWaiting, Load};
use tokio::time::{Instant, MissedTickBehavior, interval};

/// Between two questions.
const ASK_INTERVAL: Duration = Duration::from_secs(1);
/// An answer is good for so long. Beyond it nobody can say whether bookings are written at all: most likely they wait, and
/// letting people in would make more of them. So the unknown counts as more than is bearable.
const GOOD_FOR: Duration = Duration::from_secs(10);

/// What is last known. A sale without `backpressureSeconds` does not ask.
#[derive(Debug)]
pub struct Pressure {
    journal_limit: u64,
    known: Mutex<Known>,
}

#[derive(Debug, Clone, Copy)]
struct Known {
    messages: Option<u64>,
    /// When that was told; before the first answer, when it was first asked for.
    since: Instant,
}

impl Pressure {
    /// Nothing known yet; `journal_limit` as in [`Load`].
    pub fn new(journal_limit: u64) -> Self {
        Self { journal_limit, known: Mutex::new(Known { messages: None, since: Instant::now() }) }
    }

    /// Asks once.
    pub async fn ask(&self, backlog: &dyn Backlog) {
        match backlog.bookings().await {
            Ok(messages) => {
                let known = Known { messages: Some(messages), since: Instant::now() };
                *self.known.lock().unwrap_or_else(PoisonError::into_inner) = known;
            }
            Err(error) => tracing::warn!(%error, "backpressure goes by what was known last"),
        }
    }

    /// Asks each second, for ever.
    pub async fn follow(&self, backlog: &dyn Backlog) {
        let mut questions = interval(ASK_INTERVAL);
        questions.set_missed_tick_behavior(MissedTickBehavior::Skip);
        loop {
            questions.tick().await;
            self.ask(backlog).await;
        }
    }

    /// What a tick is told now.
    pub fn load(&self) -> Load {
        self.load_at(Instant::now())
    }

    fn load_at(&self, now: Instant) -> Load {
        let known = *self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let backlog = match known.messages {
            _ if now.duration_since(known.since) > GOOD_FOR => BookingsWaiting::TooMany,
            Some(messages) => BookingsWaiting::Messages(messages),
            None => BookingsWaiting::Unknown,
        };
        Load { backlog, journal_limit: self.journal_limit }
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;
    use futures::future::BoxFuture;
    use outbox::BacklogError;

    use super::*;

    struct Fixed(Option<u64>);

    impl Backlog for Fixed {
        fn bookings(&self) -> BoxFuture<'_, Result<u64, BacklogError>> {
            let answer = self.0.ok_or_else(|| BacklogError("nobody answers".to_owned()));
            futures::future::ready(answer).boxed()
        }
    }

    #[tokio::test]
    async fn an_answer_is_good_for_a_while_and_silence_is_more_than_is_bearable() {
        let begun = Instant::now();
        let pressure = Pressure::new(7);
        let silence = Fixed(None);
        assert_eq!(pressure.load(), Load { backlog: BookingsWaiting::Unknown, journal_limit: 7 });
        pressure.ask(&silence).await;
        assert_eq!(pressure.load_at(begun + GOOD_FOR).backlog, BookingsWaiting::Unknown);
        let long_after = || Instant::now() + GOOD_FOR + Duration::from_millis(1);
        assert_eq!(pressure.load_at(long_after()).backlog, BookingsWaiting::TooMany);

        let asked = Instant::now();
        pressure.ask(&Fixed(Some(3))).await;
        assert_eq!(pressure.load().backlog, BookingsWaiting::Messages(3));
        pressure.ask(&silence).await;
        assert_eq!(pressure.load_at(asked + GOOD_FOR).backlog, BookingsWaiting::Messages(3));
        assert_eq!(pressure.load_at(long_after()).backlog, BookingsWaiting::TooMany);
    }
}
