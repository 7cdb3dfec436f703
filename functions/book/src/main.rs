//! The book Lambda.

use std::sync::Arc;
use std::time::Duration;

use book::BookState;
use bootstrap::{State, config};
use outbox::SqsOutbox;

/// How long a booking waits for the queue at most.
const SEND_TIMEOUT: Duration = Duration::from_millis(800);

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let state = State::from_env()?;
    let outbox = Arc::new(SqsOutbox::new(config::queues(SEND_TIMEOUT)?));
    let state = BookState { state, outbox };
    gateway::run(state, book::handle).await.map_err(anyhow::Error::from_boxed)
}
