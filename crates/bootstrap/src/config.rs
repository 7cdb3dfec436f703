//! Every environment variable of the product, read here and nowhere else.
//!
//! | variable | read by | means |
//! |---|---|---|
//! | `REDIS_URL` | all but persist and push | `redis://` or `rediss://` address, credentials included |
//! | `REDIS_CLUSTER` | all but persist and push | `true`: the address is a cluster's; default `false` |
//! | `MASTER_KEY` | join, leave, poll, seats, hold-seat, book, socket, admin | secret of at least 32 characters that signs keys and draws shuffles |
//! | `PREVIOUS_MASTER_KEY` | the same | its predecessor, whose keys are still good; draws follow `MASTER_KEY` alone, so change it while no shuffled sale is announced and not yet open |
//! | `DEFAULT_EVENT_ID` | the HTTP functions, socket | the sale of requests that name none |
//! | `ORIGIN_SECRET` | the HTTP functions, socket | with it, only requests that carry it in `x-origin-secret` are taken |
//! | `CORS_ORIGINS` | the HTTP functions | origins whose pages may read answers, joined by commas; `*`: all |
//! | `BOOKINGS_QUEUE_URL`, `LINE_QUEUE_URL` | book, relay | the two queues |
//! | `PUSHES_QUEUE_URL` | admit | the queue of what sockets are told |
//! | `GONE_QUEUE_URL` | push | the queue of sockets that are no more |
//! | `SOCKETS_ENDPOINT` | push | `https://` address of the WebSocket API's stage, for `@connections` |
//! | `DATABASE_URL` | persist, admin | `postgres://` address, credentials included |
//! | `LOG_LEVEL` | all | `error`, `warn`, `info` (default), `debug` or a filter by module |

use std::env;
use std::str::FromStr;

use domain::EventId;
use gateway::Gate;
use store::StoreConfig;

/// A variable that is missing or makes no sense.
#[derive(Debug, thiserror::Error)]
#[error("environment variable {name} {reason}")]
pub struct ConfigError {
    name: &'static str,
    reason: String,
}

/// The shortest master key.
const MASTER_KEY_CHARACTERS: usize = 32;

fn optional(name: &'static str) -> Option<String> {
    env::var(name).ok().filter(|value| !value.is_empty())
}

fn required(name: &'static str) -> Result<String, ConfigError> {
    optional(name).ok_or_else(|| ConfigError { name, reason: "is not set".to_owned() })
}

fn parsed<T: FromStr>(name: &'static str, default: T) -> Result<T, ConfigError>
where
    T::Err: std::fmt::Display,
{
    let Some(value) = optional(name) else { return Ok(default) };
    value.parse().map_err(|error| ConfigError { name, reason: format!("is {value:?}: {error}") })
}

/// How to reach Redis.
pub fn store() -> Result<StoreConfig, ConfigError> {
    Ok(StoreConfig::new(required("REDIS_URL")?, parsed("REDIS_CLUSTER", false)?))
}

/// The secrets that sign keys and draw shuffles.
#[derive(Clone)]
pub struct MasterKeys {
    /// The one in force.
    pub current: Vec<u8>,
    /// The one before it.
    pub previous: Option<Vec<u8>>,
}

impl MasterKeys {
    /// Keys from their texts; an error for one that is too short to be a secret.
    pub fn new(current: &str, previous: Option<&str>) -> Result<Self, ConfigError> {
        for (name, key) in [("MASTER_KEY", Some(current)), ("PREVIOUS_MASTER_KEY", previous)] {
            if key.is_some_and(|key| key.len() < MASTER_KEY_CHARACTERS) {
                return Err(ConfigError { name, reason: format!("is shorter than {MASTER_KEY_CHARACTERS}") });
            }
        }
        Ok(Self {
            current: current.as_bytes().to_vec(),
            previous: previous.map(|key| key.as_bytes().to_vec()),
        })
    }

    /// From the environment.
    pub fn from_env() -> Result<Self, ConfigError> {
        Self::new(&required("MASTER_KEY")?, optional("PREVIOUS_MASTER_KEY").as_deref())
    }
}

/// What the deployment says about its callers.
pub fn gate() -> Result<Gate, ConfigError> {
    let default_event = match optional("DEFAULT_EVENT_ID") {
        None => None,
        Some(id) => Some(
            id.parse::<EventId>()
                .map_err(|error| ConfigError { name: "DEFAULT_EVENT_ID", reason: error.to_string() })?,
        ),
    };
    let origins = optional("CORS_ORIGINS").unwrap_or_default();
    let origins = origins.split(',').map(str::trim).filter(|origin| !origin.is_empty());
    Ok(Gate {
        default_event,
        origin_secret: optional("ORIGIN_SECRET"),
        cors_origins: origins.map(str::to_owned).collect(),
    })
}

/// Where PostgreSQL is.
pub fn database_url() -> Result<String, ConfigError> {
    required("DATABASE_URL")
}

/// Where the two queues are, and how long a send may take in all.
#[cfg(feature = "sqs")]
pub fn queues(operation_timeout: std::time::Duration) -> Result<outbox::SqsConfig, ConfigError> {
    Ok(outbox::SqsConfig {
        bookings_url: required("BOOKINGS_QUEUE_URL")?,
        line_url: required("LINE_QUEUE_URL")?,
        operation_timeout,
    })
}

/// The queue of what sockets are told.
#[cfg(feature = "sqs")]
pub fn pushes_queue(operation_timeout: std::time::Duration) -> Result<outbox::SqsQueue, ConfigError> {
    Ok(outbox::SqsQueue::new(required("PUSHES_QUEUE_URL")?, operation_timeout))
}

/// The queue of sockets that are no more.
#[cfg(feature = "sqs")]
pub fn gone_queue(operation_timeout: std::time::Duration) -> Result<outbox::SqsQueue, ConfigError> {
    Ok(outbox::SqsQueue::new(required("GONE_QUEUE_URL")?, operation_timeout))
}

/// The way to open sockets.
#[cfg(feature = "sockets")]
pub fn sockets() -> Result<outbox::ApiSockets, ConfigError> {
    Ok(outbox::ApiSockets::new(required("SOCKETS_ENDPOINT")?))
}

/// What is logged.
pub(crate) fn log_level() -> String {
    optional("LOG_LEVEL").unwrap_or_else(|| "info".to_owned())
}

/// Whether Lambda runs this process.
pub(crate) fn is_lambda() -> bool {
    env::var_os("AWS_LAMBDA_RUNTIME_API").is_some()
}
