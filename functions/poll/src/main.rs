//! The poll Lambda.

use bootstrap::State;

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let state = State::signing_from_env()?;
    gateway::run(|request| poll::handle(&state, request)).await.map_err(anyhow::Error::from_boxed)
}
