//! The relay Lambda: invoked by a schedule each minute.

use std::time::Duration;

use bootstrap::{config, metrics, start_telemetry};
use lambda_runtime::{Error, LambdaEvent, service_fn};
use outbox::SqsOutbox;
use records::{Records, RecordsConfig};
use relay::RelayState;
use serde_json::Value;
use store::Store;

/// How long one batch may take in all.
const SEND_TIMEOUT: Duration = Duration::from_secs(5);

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    start_telemetry();
    let database = RecordsConfig { ca: config::database_ca(), ..RecordsConfig::new(config::database_url()?) };
    let state = RelayState {
        store: Store::new(&config::store()?)?,
        outbox: SqsOutbox::new(config::queues(SEND_TIMEOUT)?),
        records: Records::open(&database)?,
    };
    let run = async |_: LambdaEvent<Value>| {
        metrics::flushed(relay::run(&state, relay::RUN)).await.map_err(Error::from)
    };
    lambda_runtime::run(service_fn(run)).await.map_err(anyhow::Error::from_boxed)
}
