//! The leave Lambda.

use bootstrap::State;

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    gateway::run(State::from_env()?, leave::handle).await.map_err(anyhow::Error::from_boxed)
}
