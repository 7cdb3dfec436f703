//! The state that all requests of an instance share.

use std::borrow::Cow;
use std::sync::Arc;

use domain::outcome::{Outcome, Place, Standing};
use domain::shuffle::Seed;
use domain::{Account, EventId, Millis, Token};
use gateway::{AccessClaims, Failure, Gate, KeyRing, Request};
use store::{Drawn, Store, StoreError};

use crate::config::{self, Access, ConfigError, MasterKeys};

/// What every HTTP function has.
pub struct State {
    /// Redis.
    pub store: Store,
    /// What the deployment says about its callers.
    pub gate: Gate,
    /// What signs places.
    pub keys: KeyRing,
    /// What signs and checks access tokens.
    pub access: Access,
    master: MasterKeys,
}

impl State {
    /// State from its parts.
    pub fn new(store: Store, gate: Gate, master: MasterKeys, access: Access) -> Self {
        let keys = KeyRing::new(&master.current, master.previous.as_deref());
        let gate = Gate { access: Some(Arc::clone(&access.keys)), ..gate };
        Self { store, gate, keys, access, master }
    }

    /// State as the environment says, logs started. Connects to nothing yet.
    pub fn from_env() -> anyhow::Result<Self> {
        Self::with_access(Access::from_env)
    }

    /// The same for a function that signs access tokens: without a key to sign with it does not start.
    pub fn signing_from_env() -> anyhow::Result<Self> {
        Self::with_access(Access::signing_from_env)
    }

    fn with_access(access: fn() -> Result<Access, ConfigError>) -> anyhow::Result<Self> {
        crate::start_telemetry();
        let store = Store::new(&config::store()?)?;
        Ok(Self::new(store, config::gate()?, MasterKeys::from_env()?, access()?))
    }

    /// In whose name access tokens are signed that this request asks for.
    pub fn issuer<'a>(&'a self, request: &Request) -> Cow<'a, str> {
        self.access.issuer(request)
    }

    /// An access token for a live session, where the standing is one.
    pub fn access_token_of(
        &self,
        request: &Request,
        event: &EventId,
        token: Token,
        standing: &Standing,
    ) -> Result<Option<String>, Failure> {
        match &standing.place {
            Place::Active { expires_at, account } => {
                self.access_token(request, event, token, account.clone(), *expires_at).map(Some)
            }
            _ => Ok(None),
        }
    }

    /// An access token for a session that ends at `expires_at`.
    pub fn access_token(
        &self,
        request: &Request,
        event: &EventId,
        token: Token,
        account: Option<Account>,
        expires_at: Millis,
    ) -> Result<String, Failure> {
        let claims =
            AccessClaims { event: event.clone(), token, account, issued_at: Millis::now(), expires_at };
        self.access.keys.sign(&self.issuer(request), &claims)
    }

    /// The seed of an event's draw.
    pub fn seed(&self, event: &EventId) -> Seed {
        Seed::of(&self.master.current, event)
    }

    /// A token with its score in the event's draw.
    pub fn drawn(&self, event: &EventId, token: Token) -> Drawn {
        Drawn { token, score: self.seed(event).score(token) }
    }
}

/// How a failure of the store looks to a caller.
pub fn failure(error: &StoreError) -> Failure {
    match error {
        StoreError::Unavailable(_) | StoreError::Exhausted { .. } => Failure::unavailable(error),
        _ => Failure::internal(error),
    }
}

/// What the store came to, for a handler.
pub trait Answered<T> {
    /// The answer, or why there is none.
    fn answered(self) -> Result<T, Failure>;
}

impl<T> Answered<T> for Result<Outcome<T>, StoreError> {
    fn answered(self) -> Result<T, Failure> {
        match self {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(refusal)) => Err(refusal.into()),
            Err(error) => Err(failure(&error)),
        }
    }
}
