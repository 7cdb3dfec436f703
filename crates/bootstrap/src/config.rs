//! Every environment variable of the product, read here and nowhere else.
//!
//! | variable | read by | means |
//! |---|---|---|
//! | `REDIS_URL` | all but persist, keys and push; authorizer only if it checks sessions | `redis://` or `rediss://` address, credentials included |
//! | `REDIS_CLUSTER` | the same | `true`: the address is a cluster's; default `false` |
//! | `REDIS_READ_URL` | poll, seats, authorizer | where replicas answer what only reads (poll, progress, search, seat maps); what they refuse, do not know or do not answer is asked at `REDIS_URL`; in a cluster the address of any node. Replicas should have `replica-serve-stale-data no` |
//! | `REDIS_CA` | as `REDIS_URL` | certificates in PEM (line ends may be written `\n`) that TLS to Redis trusts instead of the public roots that come with the build |
//! | `MASTER_KEY` | join, leave, poll, seats, hold-seat, book, socket, admin | secret of at least 32 characters that signs keys and draws shuffles |
//! | `PREVIOUS_MASTER_KEY` | the same | its predecessor, whose keys are still good; draws follow `MASTER_KEY` alone, so change it while no shuffled sale is announced and not yet open |
//! | `ACCESS_TOKEN_KEY` | the HTTP functions, authorizer, socket | RSA key in PEM (line ends may be written `\n`) for access tokens: join, poll and hold-seat sign and need the private one (PKCS#8), for all others the public one is enough |
//! | `PREVIOUS_ACCESS_TOKEN_KEY` | the same | another one whose tokens are good: its predecessor, or its successor before it signs; the public one is enough |
//! | `PUBLIC_URL` | the HTTP functions | who signs access tokens, `https://…` without `/` at its end: the address of `/.well-known`; default: the domain that a request came to |
//! | `DEFAULT_EVENT_ID` | the HTTP functions, socket | the sale of requests that name none |
//! | `ORIGIN_SECRET` | the HTTP functions, socket | with it, only requests that carry it in `x-origin-secret` are taken |
//! | `TRUSTED_ACCOUNT_HEADER` | the HTTP functions | the header in which whoever sends the origin secret names the buyer; needs `ORIGIN_SECRET` |
//! | `PAYMENT_KEY`, `OTHER_PAYMENT_KEY` | pay | secrets of at least 32 characters that the payment provider signs with; both are good |
//! | `CORS_ORIGINS` | the HTTP functions | origins whose pages may read answers, joined by commas; `*`: all |
//! | `BOOKINGS_QUEUE_URL`, `LINE_QUEUE_URL` | book, pay, relay; admit reads the first | the two queues |
//! | `BOOKINGS_DEAD_LETTERS_URL`, `LINE_DEAD_LETTERS_URL` | admin, with the two above | the queues of what could not be written; without them `jari dlq` knows none |
//! | `JOURNAL_LIMIT` | admit, `jari serve` | facts of a sale that may wait for the queues; from there on nobody new joins until half of them are left; default 2000000, some 200 MB of Redis |
//! | `PUSHES_QUEUE_URL` | admit | the queue of what sockets are told |
//! | `GONE_QUEUE_URL` | push | the queue of sockets that are no more |
//! | `AWS_ENDPOINT_URL_SQS` | book, pay, admit, relay, push | where SQS is; read by the AWS SDK, default: the region's |
//! | `SOCKETS_ENDPOINT` | push | `https://` address of the WebSocket API's stage, for `@connections` |
//! | `AUTHORIZER_EVENT_ID` | authorizer | the one sale whose buyers are let in; default: any |
//! | `AUTHORIZER_CHECKS_SESSION` | authorizer | `true`: look in Redis too whether the session lives; default `false` |
//! | `DATABASE_URL` | persist, admin | `postgres://` address, credentials included; encrypted with `?sslmode=require` |
//! | `DATABASE_CA` | the same | certificates in PEM (line ends may be written `\n`) that TLS to PostgreSQL trusts instead of the system's |
//! | `SYSTEM_NAME` | all | which system metrics are told for, where an account has several; default `jari` |
//! | `LOG_LEVEL` | all | `error`, `warn`, `info` (default), `debug` or a filter by module |

use std::borrow::Cow;
use std::env;
use std::str::FromStr;
use std::sync::Arc;

use domain::EventId;
use gateway::{AccessKeys, Gate, HeaderName, PaymentKeys, Request};
use store::StoreConfig;

/// A variable that is missing or makes no sense.
#[derive(Debug, thiserror::Error)]
#[error("environment variable {name} {reason}")]
pub struct ConfigError {
    name: &'static str,
    reason: String,
}

/// The shortest secret.
const SECRET_CHARACTERS: usize = 32;

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

/// An error for a key that is too short to be a secret.
fn secrets_only(keys: &[(&'static str, Option<&str>)]) -> Result<(), ConfigError> {
    for &(name, key) in keys {
        if key.is_some_and(|key| key.len() < SECRET_CHARACTERS) {
            return Err(ConfigError { name, reason: format!("is shorter than {SECRET_CHARACTERS}") });
        }
    }
    Ok(())
}

/// How to reach Redis.
pub fn store() -> Result<StoreConfig, ConfigError> {
    Ok(StoreConfig {
        read_url: optional("REDIS_READ_URL"),
        ca: optional("REDIS_CA").map(|pem| lines(&pem)),
        ..StoreConfig::new(required("REDIS_URL")?, parsed("REDIS_CLUSTER", false)?)
    })
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
        secrets_only(&[("MASTER_KEY", Some(current)), ("PREVIOUS_MASTER_KEY", previous)])?;
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

/// What signs and checks access tokens, and in whose name.
#[derive(Debug, Clone)]
pub struct Access {
    /// The keys whose tokens are good.
    pub keys: Arc<AccessKeys>,
    /// The issuer; without one the domain that a request came to.
    pub public_url: Option<String>,
}

impl Access {
    /// From texts in PEM, and the issuer where it is known beforehand.
    pub fn new(
        current: &str,
        previous: Option<&str>,
        public_url: Option<String>,
    ) -> Result<Self, ConfigError> {
        let (current, previous) = (lines(current), previous.map(lines));
        let keys = AccessKeys::new(&current, previous.as_deref()).map_err(|error| {
            let is_current = AccessKeys::new(&current, None).is_err();
            let name = if is_current { "ACCESS_TOKEN_KEY" } else { "PREVIOUS_ACCESS_TOKEN_KEY" };
            ConfigError { name, reason: error.to_string() }
        })?;
        if public_url.as_deref().is_some_and(|url| !is_issuer(url)) {
            let reason = "must be an http(s):// address without query and without / at its end".to_owned();
            return Err(ConfigError { name: "PUBLIC_URL", reason });
        }
        Ok(Self { keys: Arc::new(keys), public_url })
    }

    /// From the environment.
    pub fn from_env() -> Result<Self, ConfigError> {
        let previous = optional("PREVIOUS_ACCESS_TOKEN_KEY");
        Self::new(&required("ACCESS_TOKEN_KEY")?, previous.as_deref(), optional("PUBLIC_URL"))
    }

    /// The same for a function that signs: the current key must be a private one.
    pub fn signing_from_env() -> Result<Self, ConfigError> {
        let access = Self::from_env()?;
        if access.keys.can_sign() {
            return Ok(access);
        }
        let reason = "must be the private key: this function signs".to_owned();
        Err(ConfigError { name: "ACCESS_TOKEN_KEY", reason })
    }

    /// In whose name access tokens are signed that a request asks for.
    pub fn issuer<'a>(&'a self, request: &Request) -> Cow<'a, str> {
        gateway::access::issuer(self.public_url.as_deref(), request)
    }
}

/// Files of variables have a value on one line.
fn lines(pem: &str) -> String {
    pem.replace("\\n", "\n")
}

/// Whoever discovers appends `/.well-known/…` to it.
fn is_issuer(url: &str) -> bool {
    let rest = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://")).unwrap_or_default();
    (1..=256).contains(&rest.len())
        && !rest.ends_with('/')
        && rest.bytes().all(|byte| byte.is_ascii_graphic() && !b"?#\"\\".contains(&byte))
}

/// What the deployment says about its callers.
pub fn gate() -> Result<Gate, ConfigError> {
    let default_event = event("DEFAULT_EVENT_ID")?;
    let origins = optional("CORS_ORIGINS").unwrap_or_default();
    let origins = origins.split(',').map(str::trim).filter(|origin| !origin.is_empty());
    let origin_secret = optional("ORIGIN_SECRET");
    let trusted_account_header = optional("TRUSTED_ACCOUNT_HEADER")
        .map(|name| trusted_account_header(&name, origin_secret.as_deref()))
        .transpose()?;
    Ok(Gate {
        default_event,
        origin_secret,
        trusted_account_header,
        cors_origins: origins.map(str::to_owned).collect(),
        ..Gate::default()
    })
}

/// Without the origin secret anybody could name any buyer.
fn trusted_account_header(name: &str, origin_secret: Option<&str>) -> Result<HeaderName, ConfigError> {
    let error = |reason: &str| ConfigError { name: "TRUSTED_ACCOUNT_HEADER", reason: reason.to_owned() };
    if origin_secret.is_none() {
        return Err(error("needs ORIGIN_SECRET"));
    }
    name.parse().map_err(|_| error("is no name of a header"))
}

/// The secrets shared with the payment provider; without any, no payment is taken.
pub fn payment_keys() -> Result<PaymentKeys, ConfigError> {
    let (key, other) = (optional("PAYMENT_KEY"), optional("OTHER_PAYMENT_KEY"));
    secrets_only(&[("PAYMENT_KEY", key.as_deref()), ("OTHER_PAYMENT_KEY", other.as_deref())])?;
    Ok(PaymentKeys::new([key.as_deref(), other.as_deref()].into_iter().flatten()))
}

fn event(name: &'static str) -> Result<Option<EventId>, ConfigError> {
    let id = optional(name).map(|id| id.parse::<EventId>()).transpose();
    id.map_err(|error| ConfigError { name, reason: error.to_string() })
}

/// Whom the authorizer lets in.
#[derive(Debug, Clone)]
pub struct AuthorizerConfig {
    /// The one sale whose buyers; without it any sale's.
    pub event: Option<EventId>,
    /// Whether the session must live in Redis too.
    pub checks_session: bool,
}

/// Whom the authorizer lets in.
pub fn authorizer() -> Result<AuthorizerConfig, ConfigError> {
    let checks_session = parsed("AUTHORIZER_CHECKS_SESSION", false)?;
    Ok(AuthorizerConfig { event: event("AUTHORIZER_EVENT_ID")?, checks_session })
}

/// Where PostgreSQL is.
pub fn database_url() -> Result<String, ConfigError> {
    required("DATABASE_URL")
}

/// Whom TLS to PostgreSQL trusts instead of the system's certificates, in PEM.
pub fn database_ca() -> Option<String> {
    optional("DATABASE_CA").map(|pem| lines(&pem))
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

/// Where what could not be written lies; none where nobody says.
#[cfg(feature = "sqs")]
pub fn dead_letters() -> Result<Option<outbox::SqsDeadLetters>, ConfigError> {
    if optional("BOOKINGS_DEAD_LETTERS_URL").is_none() && optional("LINE_DEAD_LETTERS_URL").is_none() {
        return Ok(None);
    }
    let queue = |queue, url, queue_url| {
        Ok(outbox::DeadLetterQueue { queue, url: required(url)?, queue_url: required(queue_url)? })
    };
    Ok(Some(outbox::SqsDeadLetters::new(vec![
        queue(outbox::Queue::Bookings, "BOOKINGS_DEAD_LETTERS_URL", "BOOKINGS_QUEUE_URL")?,
        queue(outbox::Queue::Line, "LINE_DEAD_LETTERS_URL", "LINE_QUEUE_URL")?,
    ])))
}

/// The queue of bookings alone.
#[cfg(feature = "sqs")]
pub fn bookings_queue(operation_timeout: std::time::Duration) -> Result<outbox::SqsQueue, ConfigError> {
    Ok(outbox::SqsQueue::new(required("BOOKINGS_QUEUE_URL")?, operation_timeout))
}

/// Facts in a sale's journal from which on nobody new joins.
pub fn journal_limit() -> Result<u64, ConfigError> {
    parsed("JOURNAL_LIMIT", store::JOURNAL_LIMIT)
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

/// Which system metrics are told for.
pub(crate) fn system_name() -> String {
    optional("SYSTEM_NAME").unwrap_or_else(|| "jari".to_owned())
}

/// The function that Lambda runs in this process, if it does.
pub(crate) fn lambda_function() -> Option<String> {
    optional("AWS_LAMBDA_RUNTIME_API")?;
    Some(optional("AWS_LAMBDA_FUNCTION_NAME").unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use gateway::access::AccessKeyPair;

    use super::*;

    #[test]
    fn a_key_may_stand_on_one_line() {
        let pair = AccessKeyPair::generate().unwrap();
        let one_line = |pem: &str| pem.replace('\n', "\\n");
        let other = AccessKeyPair::generate().unwrap();
        let access =
            Access::new(&one_line(&pair.private_pem), Some(&one_line(&other.public_pem)), None).unwrap();
        let kids: Vec<String> = access.keys.jwks().keys.into_iter().map(|key| key.kid).collect();
        assert_eq!(kids, [pair.kid, other.kid]);
    }

    #[test]
    fn a_bad_key_or_issuer_is_named_and_not_shown() {
        let pair = AccessKeyPair::generate().unwrap();
        let error = |current: &str, previous, url: Option<&str>| {
            Access::new(current, previous, url.map(str::to_owned)).unwrap_err().to_string()
        };
        assert!(error("secret", None, None).starts_with("environment variable ACCESS_TOKEN_KEY must be"));
        assert!(!error("secret", None, None).contains("secret"));
        let previous = error(&pair.private_pem, Some("secret"), None);
        assert!(previous.starts_with("environment variable PREVIOUS_ACCESS_TOKEN_KEY must be"), "{previous}");
        for url in
            ["jari.example", "https://", "https://jari.example/", "https://jari.example?a", "https://a b"]
        {
            assert!(error(&pair.private_pem, None, Some(url)).contains("PUBLIC_URL"), "{url}");
        }
        for url in ["https://jari.example", "http://127.0.0.1:3000", "https://jari.example/line"] {
            assert!(Access::new(&pair.private_pem, None, Some(url.to_owned())).is_ok(), "{url}");
        }
    }
}
