//! The admit Lambda: invoked by a schedule each minute.

use std::time::Duration;

use admit::AdmitState;
use bootstrap::{config, metrics, start_telemetry};
use lambda_runtime::{Error, LambdaEvent, service_fn};
use serde_json::Value;
use store::Store;

/// How long a look's pushes may take on their way to the queue, and a question about the other one.
const QUEUE_TIMEOUT: Duration = Duration::from_secs(2);

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    start_telemetry();
    let state = AdmitState {
        store: Store::new(&config::store()?)?,
        pushes: Box::new(config::pushes_queue(QUEUE_TIMEOUT)?),
        backlog: Box::new(config::bookings_queue(QUEUE_TIMEOUT)?),
        journal_limit: config::journal_limit()?,
    };
    let run = async |_: LambdaEvent<Value>| {
        metrics::flushed(admit::run(&state, admit::RUN)).await.map_err(Error::from)
    };
    lambda_runtime::run(service_fn(run)).await.map_err(anyhow::Error::from_boxed)
}
