//! The seats Lambda.

use bootstrap::State;

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    gateway::run(State::from_env()?, seats::handle).await.map_err(anyhow::Error::from_boxed)
}
