//! Publish the keys by which anybody can check our access tokens.

use bootstrap::config::{self, Access};
use gateway::routes::Call;
use gateway::{Body, Failure, Gate, Request, Response, answer, response};

/// What this function has: neither Redis nor a secret.
pub struct KeysState {
    gate: Gate,
    access: Access,
}

impl KeysState {
    /// State from its parts. What is published needs no front door: whoever checks our tokens may come from
    /// anywhere.
    pub fn new(gate: &Gate, access: Access) -> Self {
        Self { gate: Gate { origin_secret: None, ..gate.clone() }, access }
    }

    /// State as the environment says, logs started.
    pub fn from_env() -> anyhow::Result<Self> {
        bootstrap::start_telemetry();
        Ok(Self::new(&config::gate()?, Access::from_env()?))
    }
}

/// Answers a request to this function.
pub async fn handle(KeysState { gate, access }: &KeysState, request: Request) -> Response<Body> {
    let request = &request;
    answer(gate, "keys", request, |call| async move {
        match call {
            Call::Keys => response::keys(&access.keys.jwks()),
            Call::Discovery => response::discovery(&access.issuer(request)),
            _ => Err(Failure::NotFound),
        }
    })
    .await
}
