//! The hold-seat Lambda.

use bootstrap::State;

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let state = State::signing_from_env()?;
    gateway::run(|request| hold_seat::handle(&state, request)).await.map_err(anyhow::Error::from_boxed)
}
