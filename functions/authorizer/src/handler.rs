//! Let in whom the line has let in: a Lambda authorizer for an HTTP API in front of somebody's own origin, payload
//! format 2.0, simple responses.
//!
//! The access token's signature, audience and end are enough. Where it is asked to, it looks in Redis too whether the
//! session still lives: then who has booked, left or been closed out is turned away at once.

use std::collections::HashMap;
use std::sync::Arc;

use bootstrap::config::{self, Access, AuthorizerConfig};
use domain::shuffle::{hex, token_digest};
use domain::{Account, EventId, Millis};
use gateway::access::bearer_of;
use gateway::{AccessClaims, AccessKeys};
use serde::{Deserialize, Serialize};
use store::{Store, StoreError};

/// What this function has.
pub struct AuthorizerState {
    keys: Arc<AccessKeys>,
    /// The one sale whose buyers are let in; without it any of ours.
    event: Option<EventId>,
    /// Where to look whether a session lives; without it the token alone decides.
    store: Option<Store>,
}

impl AuthorizerState {
    /// State from its parts.
    pub fn new(keys: Arc<AccessKeys>, event: Option<EventId>, store: Option<Store>) -> Self {
        Self { keys, event, store }
    }

    /// State as the environment says, logs started. Connects to nothing yet.
    pub fn from_env() -> anyhow::Result<Self> {
        bootstrap::start_telemetry();
        let AuthorizerConfig { event, checks_session } = config::authorizer()?;
        let store = if checks_session { Some(Store::new(&config::store()?)?) } else { None };
        Ok(Self::new(Access::from_env()?.keys, event, store))
    }
}

/// What API Gateway asks: of payload format 2.0, the part that is read.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AuthorizerRequest {
    /// The values of the identity sources, in the API's order.
    #[serde(default)]
    identity_source: Option<Vec<String>>,
    /// Lower-case names.
    #[serde(default)]
    headers: Option<HashMap<String, String>>,
}

/// What it is told.
#[derive(Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Decision {
    is_authorized: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    context: Option<Context>,
}

/// What the origin learns of the buyer, as `$context.authorizer.…`.
#[derive(Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
struct Context {
    event: EventId,
    /// SHA-256 of the token in hex, as audits and logs name it: the token itself is a secret.
    token_hash: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    account: Option<Account>,
    expires_at: Millis,
}

/// Answers a question of API Gateway's; `now` is the functions' clock. An error, which API Gateway answers with 500
/// and keeps for nobody, says that Redis could not be asked.
pub async fn authorize(
    state: &AuthorizerState,
    request: AuthorizerRequest,
    now: Millis,
) -> Result<Decision, StoreError> {
    let no = Decision { is_authorized: false, context: None };
    let Some(claims) = proven(state, &request, now) else { return Ok(no) };
    let expires_at = match &state.store {
        None => claims.expires_at,
        Some(store) => match store.session(&claims.event, claims.token).await? {
            Ok(expires_at) => expires_at,
            Err(refusal) => {
                tracing::debug!(?refusal, "the session is over");
                return Ok(no);
            }
        },
    };
    let token_hash = hex(&token_digest(claims.token));
    let context = Context { event: claims.event, token_hash, account: claims.account, expires_at };
    Ok(Decision { is_authorized: true, context: Some(context) })
}

/// What the request's access token says, if it is good here.
fn proven(state: &AuthorizerState, request: &AuthorizerRequest, now: Millis) -> Option<AccessClaims> {
    let sources = request.identity_source.iter().flatten().map(String::as_str);
    let header = request.headers.as_ref().and_then(|headers| headers.get("authorization"));
    let token = sources.chain(header.map(String::as_str)).find_map(bearer_of)?;
    let claims = state.keys.check(token, now)?;
    let is_here = state.event.as_ref().is_none_or(|event| *event == claims.event);
    is_here.then_some(claims)
}
