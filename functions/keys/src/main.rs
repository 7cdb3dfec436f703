//! The keys Lambda.

use keys::KeysState;

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let state = KeysState::from_env()?;
    gateway::run(|request| keys::handle(&state, request)).await.map_err(anyhow::Error::from_boxed)
}
