//! The push Lambda: invoked with batches of what sockets are told, outside the network of Redis.

use std::time::Duration;

use aws_lambda_events::event::sqs::SqsEvent;
use bootstrap::{config, metrics, start_telemetry};
use lambda_runtime::{Error, LambdaEvent, service_fn};

/// How long a report of gone sockets may take.
const SEND_TIMEOUT: Duration = Duration::from_secs(2);

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    start_telemetry();
    let (sockets, departures) = (config::sockets()?, config::gone_queue(SEND_TIMEOUT)?);
    let push = async |event: LambdaEvent<SqsEvent>| {
        metrics::flushed(push::push(&sockets, &departures, event.payload)).await;
        Ok::<(), Error>(())
    };
    lambda_runtime::run(service_fn(push)).await.map_err(anyhow::Error::from_boxed)
}
