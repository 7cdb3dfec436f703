//! The poll Lambda.

use bootstrap::State;

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    gateway::run(State::signing_from_env()?, poll::handle).await.map_err(anyhow::Error::from_boxed)
}
