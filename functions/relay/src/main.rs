//! The relay Lambda: invoked by a schedule each minute.

use std::time::Duration;

use bootstrap::{config, metrics, start_telemetry};
use futures::TryFutureExt;
use lambda_runtime::{LambdaEvent, service_fn};
use outbox::SqsOutbox;
use serde_json::Value;
use store::Store;

/// How long one batch may take in all.
const SEND_TIMEOUT: Duration = Duration::from_secs(5);

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    start_telemetry();
    let store = Store::new(&config::store()?)?;
    let outbox = SqsOutbox::new(config::queues(SEND_TIMEOUT)?);
    let run = |_: LambdaEvent<Value>| {
        metrics::flushed(relay::run(&store, &outbox, relay::RUN)).map_err(lambda_runtime::Error::from)
    };
    lambda_runtime::run(service_fn(run)).await.map_err(anyhow::Error::from_boxed)
}
