//! The admin Lambda: invoked by operators, never over HTTP.

use admin::{AdminState, Command, admin};
use bootstrap::metrics;
use lambda_runtime::{Error, LambdaEvent, service_fn};

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let state = &AdminState::from_env()?;
    let run = async |event: LambdaEvent<Command>| {
        metrics::flushed(admin(state, event.payload)).await.map_err(Error::from)
    };
    lambda_runtime::run(service_fn(run)).await.map_err(anyhow::Error::from_boxed)
}
