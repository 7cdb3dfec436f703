//! The seats Lambda.

use bootstrap::State;

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let state = State::from_env()?;
    gateway::run(|request| seats::handle(&state, request)).await.map_err(anyhow::Error::from_boxed)
}
