//! The pay Lambda.

use std::time::Duration;

use bootstrap::config;
use gateway::Gate;
use outbox::SqsOutbox;
use pay::PayState;
use store::Store;

/// How long a payment waits for the queue at most.
const SEND_TIMEOUT: Duration = Duration::from_millis(800);

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    bootstrap::start_telemetry();
    let store = Store::new(&config::store()?)?;
    let gate = Gate { payment_keys: config::payment_keys()?, ..config::gate()? };
    let outbox = SqsOutbox::new(config::queues(SEND_TIMEOUT)?);
    let handle = |(store, gate, outbox): &'static (Store, Gate, SqsOutbox), request| {
        pay::handle(PayState { store, gate, outbox }, request)
    };
    gateway::run((store, gate, outbox), handle).await.map_err(anyhow::Error::from_boxed)
}
