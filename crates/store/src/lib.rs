//! Redis: where a sale's state lives. Every change is one Lua step of `lua/`, one round trip; each command has a
//! module that turns it into KEYS and ARGV and the step's reply into an outcome.
//!
//! `Ok(Err(refusal))` is an expected answer, `Err(StoreError)` is infrastructure or a bug. Nothing here knows
//! HTTP.

mod account;
mod admit;
mod bench;
mod besides;
mod book;
mod cancel;
mod catalogue;
mod claim;
mod connection;
mod delete;
mod expand;
mod expire;
mod hold;
mod holds;
mod join;
mod journal;
mod keys;
mod leave;
mod operator;
mod pay;
mod poll;
mod progress;
mod rebuild;
mod recover;
mod release;
mod repair;
mod replica;
mod reply;
mod reservation;
mod restore;
mod sale;
mod search;
mod seats;
mod session;
mod snapshot;
mod socket;
mod step;
mod view;

pub use admit::{BookingsWaiting, JOURNAL_LIMIT, Load, Tick};
pub use bench::Bench;
pub use besides::{Besides, HeldSession};
pub use connection::{StoreConfig, install_tls_provider};
pub use delete::Deletion;
pub use holds::{Hold, Unit, holder_of};
pub use join::Drawn;
pub use journal::{JournalPage, PAGE as JOURNAL_PAGE};
pub use keys::{EVENTS, KeyName, Keys};
pub use operator::{WaitingPage, WaitingPlace};
pub use rebuild::{AccountPlace, Ground, LinePage, RebuiltCall, Standing};
pub use recover::Recovery;
pub use repair::{Recount, Recounted};
pub use restore::Restored;
pub use sale::{Applied, EventState, StatusChange};
pub use snapshot::Snapshot;
pub use socket::{CONNECTIONS_AN_EVENT, LOOKED_AT_ONCE};
pub use step::{STEPS, Step};

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use domain::Millis;

use catalogue::Catalogue;
use connection::Connection;
use replica::Replica;
use view::Views;

/// An infrastructure failure or a bug; never a caller's mistake.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Redis is unreachable, too slow, loading, read-only or full. The command may or may not have run; repeating
    /// it is safe.
    #[error("redis is unavailable: {0}")]
    Unavailable(#[source] redis::RedisError),
    /// Redis refused: a script error, a wrong type, a guard.
    #[error("redis refused {step}: {source}")]
    Refused {
        /// The step or command.
        step: &'static str,
        /// What Redis said.
        source: redis::RedisError,
    },
    /// A reply that the step's header does not declare.
    #[error("{step} answered in no declared form: {reply}")]
    Malformed {
        /// The step or command.
        step: &'static str,
        /// What it answered.
        reply: String,
    },
    /// A step asked to be called again more often than any sale needs; each call went on, repeating is safe.
    #[error("{step} asked to be called again {times} times")]
    Exhausted {
        /// The step.
        step: &'static str,
        /// How often.
        times: u32,
    },
    /// A definition that does not read back.
    #[error("the definition of {event} does not read back: {reason}")]
    Definition {
        /// The event.
        event: String,
        /// Why.
        reason: String,
    },
    /// The address of Redis is none.
    #[error("the address of redis: {0}")]
    Config(#[source] redis::RedisError),
}

/// The shared state of all sales. Cheap to clone; one connection a process.
#[derive(Clone)]
pub struct Store(Arc<Inner>);

struct Inner {
    connection: Connection,
    replica: Option<Replica>,
    catalogue: Catalogue,
    views: Views,
    /// What steps take for the time: 0 is Redis' own clock, anything else a driver's.
    driven_ms: AtomicI64,
    bench: Option<Arc<Bench>>,
}

impl Store {
    /// A store that connects when it is first used.
    pub fn new(config: &StoreConfig) -> Result<Self, StoreError> {
        Ok(Self(Arc::new(Inner {
            connection: Connection::new(config)?,
            replica: Replica::new(config)?,
            catalogue: Catalogue::default(),
            views: Views::default(),
            driven_ms: AtomicI64::new(0),
            bench: config.bench.clone(),
        })))
    }

    /// From now on steps take `now` for the time, until it is driven on. Simulations and tests only.
    pub fn drive_clock(&self, now: Millis) {
        self.0.driven_ms.store(now.0, Ordering::Relaxed);
    }

    fn now_ms(&self) -> i64 {
        self.0.driven_ms.load(Ordering::Relaxed)
    }

    /// Whether Redis answers.
    pub async fn ping(&self) -> Result<(), StoreError> {
        self.query("PING", &redis::cmd("PING")).await.map(drop)
    }
}
