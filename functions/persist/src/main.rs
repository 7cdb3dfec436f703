//! The persist Lambda: invoked with batches of either queue.

use aws_lambda_events::event::sqs::SqsEvent;
use bootstrap::{config, metrics, start_telemetry};
use futures::TryFutureExt;
use lambda_runtime::{LambdaEvent, service_fn};
use records::{Records, RecordsConfig};

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    start_telemetry();
    let database = RecordsConfig { ca: config::database_ca(), ..RecordsConfig::new(config::database_url()?) };
    let records = Records::open(&database)?;
    let persist = |event: LambdaEvent<SqsEvent>| {
        metrics::flushed(persist::persist(&records, event.payload)).map_err(lambda_runtime::Error::from)
    };
    lambda_runtime::run(service_fn(persist)).await.map_err(anyhow::Error::from_boxed)
}
