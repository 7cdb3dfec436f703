//! Reading from replicas. They lag behind, so what a replica refuses or does not know is asked once more where
//! writes go: a place that is a moment old is never `NOT_FOUND`. What is left to lag is what grows old on its way to
//! the caller anyway: ranks, counts, maps.

use std::sync::atomic::{AtomicI64, Ordering};

use domain::Millis;
use redis::{Cmd, Value};

use crate::connection::{Connection, StoreConfig, is_missing_script};
use crate::reply::PLACE_AT;
use crate::step::{POLL, PROGRESS, SEARCH, SEATS, SESSION, Step};
use crate::{Store, StoreError};

/// The steps that replicas run. A reservation is not among them: who has just given it back would read it as it was.
const STEPS: [&Step; 5] = [&POLL, &PROGRESS, &SEARCH, &SEATS, &SESSION];

/// For how long a replica that failed is not asked, so that callers do not wait for it in turn.
const REST_MS: i64 = 1_000;

/// A second way to the same data, for reading.
pub(crate) struct Replica {
    connection: Connection,
    /// By this process' clock.
    rests_until_ms: AtomicI64,
}

impl Replica {
    pub(crate) fn new(config: &StoreConfig) -> Result<Option<Self>, StoreError> {
        let Some(connection) = Connection::reading(config)? else { return Ok(None) };
        Ok(Some(Self { connection, rests_until_ms: AtomicI64::new(0) }))
    }

    /// What it answers; nothing where it fails, or has failed a moment ago.
    async fn ask(&self, step: &Step, command: &Cmd, source: impl FnOnce() -> Cmd) -> Option<Value> {
        if Millis::now().0 < self.rests_until_ms.load(Ordering::Relaxed) {
            return None;
        }
        let answer = match self.connection.send(command).await {
            Err(error) if is_missing_script(&error) => self.connection.send(&source()).await,
            answer => answer,
        };
        answer
            .inspect_err(|error| {
                tracing::warn!(step = step.name, %error, "redis: a replica fails, asking where writes go");
                self.rests_until_ms.store(Millis::now().0.saturating_add(REST_MS), Ordering::Relaxed);
            })
            .ok()
    }
}

impl Store {
    /// A replica's answer to a step, where there is a replica and its answer can be given.
    pub(crate) async fn replied_nearby(
        &self,
        step: &'static Step,
        command: &Cmd,
        source: impl FnOnce() -> Cmd,
    ) -> Option<Value> {
        let replica = self.0.replica.as_ref()?;
        if !STEPS.iter().any(|read| read.name == step.name) {
            return None;
        }
        replica.ask(step, command, source).await.filter(can_be_given)
    }
}

/// Whether lag cannot have made a refusal of it.
fn can_be_given(reply: &Value) -> bool {
    let Value::Array(values) = reply else { return false };
    match word(values.first()) {
        // A token that came back a moment ago may still be unknown there, or expired.
        b"POLLED" => matches!(word(values.get(PLACE_AT)), b"WAITING" | b"CALLED" | b"ACTIVE" | b"BOOKED"),
        b"PROGRESS" | b"FOUND" | b"SEATS" | b"LIVE" => true,
        _ => false,
    }
}

fn word(value: Option<&Value>) -> &[u8] {
    match value {
        Some(Value::BulkString(word)) => word,
        Some(Value::SimpleString(word)) => word.as_bytes(),
        _ => b"",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Value {
        Value::BulkString(text.as_bytes().to_vec())
    }

    #[test]
    fn what_lag_may_have_made_is_not_given() {
        let polled = |place: &str| {
            let mut values = vec![Value::Int(0); PLACE_AT];
            values[0] = text("POLLED");
            values.push(text(place));
            Value::Array(values)
        };
        for place in ["WAITING", "CALLED", "ACTIVE", "BOOKED"] {
            assert!(can_be_given(&polled(place)), "{place}");
        }
        for place in ["NOT_FOUND", "EXPIRED"] {
            assert!(!can_be_given(&polled(place)), "{place}");
        }
        for word in ["EVENT_NOT_FOUND", "STALE", "NOT_ADMITTED", "ADMISSION_EXPIRED", "ALREADY_BOOKED", ""] {
            assert!(!can_be_given(&Value::Array(vec![text(word)])), "{word}");
        }
        assert!(can_be_given(&Value::Array(vec![text("SEATS")])));
        assert!(!can_be_given(&Value::Array(Vec::new())) && !can_be_given(&Value::Nil));
    }

    #[test]
    fn only_read_only_steps_are_run_by_replicas() {
        for step in STEPS {
            assert!(step.read_only, "{} writes", step.name);
        }
    }
}
