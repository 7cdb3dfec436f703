//! The admit Lambda: invoked by a schedule each minute.

use bootstrap::{config, start_telemetry};
use futures::TryFutureExt;
use lambda_runtime::{LambdaEvent, service_fn};
use serde_json::Value;
use store::Store;

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    start_telemetry();
    let store = Store::new(&config::store()?)?;
    let run = |_: LambdaEvent<Value>| admit::run(&store, admit::RUN).map_err(lambda_runtime::Error::from);
    lambda_runtime::run(service_fn(run)).await.map_err(anyhow::Error::from_boxed)
}
