//! The authorizer Lambda: invoked by API Gateway in front of somebody's own API.

use authorizer::{AuthorizerState, authorize};
use bootstrap::metrics;
use domain::Millis;
use futures::TryFutureExt;
use lambda_runtime::{Error, LambdaEvent, service_fn};

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let state = &AuthorizerState::from_env()?;
    let run = |event: LambdaEvent<_>| {
        metrics::flushed(authorize(state, event.payload, Millis::now())).map_err(Error::from)
    };
    lambda_runtime::run(service_fn(run)).await.map_err(anyhow::Error::from_boxed)
}
