//! The admit Lambda: invoked by a schedule each minute.

use std::time::Duration;

use bootstrap::{config, metrics, start_telemetry};
use lambda_runtime::{Error, LambdaEvent, service_fn};
use serde_json::Value;
use store::Store;

/// How long a look's pushes may take on their way to the queue.
const SEND_TIMEOUT: Duration = Duration::from_secs(2);

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    start_telemetry();
    let (store, pushes) = (Store::new(&config::store()?)?, config::pushes_queue(SEND_TIMEOUT)?);
    let run = async |_: LambdaEvent<Value>| {
        metrics::flushed(admit::run_pushing(&store, &pushes, admit::RUN)).await.map_err(Error::from)
    };
    lambda_runtime::run(service_fn(run)).await.map_err(anyhow::Error::from_boxed)
}
