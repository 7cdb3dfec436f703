//! The keys Lambda.

use keys::KeysState;

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    gateway::run(KeysState::from_env()?, keys::handle).await.map_err(anyhow::Error::from_boxed)
}
