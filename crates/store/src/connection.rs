//! One multiplexed connection a process, with explicit timeouts and bounded retries; a single node or a cluster.
//! Where reading has an address of its own, one more for that.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use redis::aio::{ConnectionLike, ConnectionManager, ConnectionManagerConfig};
use redis::cluster::ClusterClient;
use redis::cluster_async::ClusterConnection;
use redis::cluster_read_routing::RandomReplicaStrategy;
use redis::{Client, Cmd, ErrorKind, FromRedisValue, RedisError, ServerErrorKind, TlsCertificates, Value};
use tokio::sync::Mutex;
use tokio::time::Instant;

use crate::{Bench, Store, StoreError};

/// A connection that has answered nothing for so long is left for another one.
const SILENCE_MS: u64 = 1_000;

/// How to reach Redis.
#[derive(Debug, Clone)]
pub struct StoreConfig {
    /// `redis://` or, for TLS, `rediss://`, with user and password where asked for.
    pub url: String,
    /// Whether the address is a cluster's.
    pub cluster: bool,
    /// Where replicas of the same data answer, in a cluster that of any of its nodes.
    pub read_url: Option<String>,
    /// Certificates in PEM that TLS trusts instead of the system's.
    pub ca: Option<String>,
    /// How long connecting may take.
    pub connect_timeout: Duration,
    /// How long an answer may take.
    pub answer_timeout: Duration,
    /// What tests change and see of the steps.
    pub bench: Option<Arc<Bench>>,
}

impl StoreConfig {
    /// The product's timeouts: connect 1 s, answer 500 ms.
    pub fn new(url: impl Into<String>, cluster: bool) -> Self {
        Self {
            url: url.into(),
            cluster,
            read_url: None,
            ca: None,
            connect_timeout: Duration::from_secs(1),
            answer_timeout: Duration::from_millis(500),
            bench: None,
        }
    }
}

/// Name the one TLS provider of the process. Repeating it is harmless.
pub fn install_tls_provider() {
    // Fails only where one is installed already, which is what is wanted.
    let _ = rustls::crypto::ring::default_provider().install_default();
}

/// Which nodes of a cluster answer what only reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reads {
    /// Those that write.
    WithWrites,
    AtReplicas,
}

/// Connects when first used: a function that may not need Redis does not wait for it.
pub(crate) struct Connection {
    target: Target,
    link: Mutex<Option<Arc<Link>>>,
}

/// What is connected to.
enum Target {
    Single { client: Box<Client>, config: Box<ConnectionManagerConfig> },
    Cluster(Box<ClusterClient>),
}

/// A way to Redis that mends itself where it breaks, and is left where it only falls silent.
struct Link {
    way: Way,
    opened: Instant,
    /// The last answer, since it was opened.
    heard_ms: AtomicU64,
}

enum Way {
    Single(ConnectionManager),
    Cluster(ClusterConnection),
}

impl Connection {
    pub(crate) fn new(config: &StoreConfig) -> Result<Self, StoreError> {
        Self::to(&config.url, config, Reads::WithWrites)
    }

    /// The one for reading, where there is one.
    pub(crate) fn reading(config: &StoreConfig) -> Result<Option<Self>, StoreError> {
        config.read_url.as_ref().map(|url| Self::to(url, config, Reads::AtReplicas)).transpose()
    }

    fn to(url: &str, config: &StoreConfig, reads: Reads) -> Result<Self, StoreError> {
        let target = target(url, config, reads).map_err(StoreError::Config)?;
        Ok(Self { target, link: Mutex::default() })
    }

    pub(crate) async fn send(&self, command: &Cmd) -> Result<Value, RedisError> {
        let asked_at = Instant::now();
        let answer = self.send_once(command).await;
        metrics::REDIS_LATENCY.observe(asked_at.elapsed());
        answer
    }

    async fn send_once(&self, command: &Cmd) -> Result<Value, RedisError> {
        let link = self.link().await?;
        let answer = link.send(command).await;
        if link.is_lost(&answer) {
            self.leave(&link).await;
        }
        answer
    }

    /// The one that is open, or a new one.
    async fn link(&self) -> Result<Arc<Link>, RedisError> {
        let mut link = self.link.lock().await;
        if let Some(link) = &*link {
            return Ok(Arc::clone(link));
        }
        let way = match &self.target {
            Target::Single { client, config } => {
                Way::Single(ConnectionManager::new_lazy_with_config((**client).clone(), (**config).clone())?)
            }
            Target::Cluster(client) => Way::Cluster(client.get_async_connection().await?),
        };
        let opened = Arc::new(Link { way, opened: Instant::now(), heard_ms: AtomicU64::new(0) });
        *link = Some(Arc::clone(&opened));
        Ok(opened)
    }

    /// The next command opens another one, unless somebody has done so already.
    async fn leave(&self, lost: &Arc<Link>) {
        let mut link = self.link.lock().await;
        if link.as_ref().is_some_and(|link| Arc::ptr_eq(link, lost)) {
            *link = None;
        }
    }
}

impl Link {
    async fn send(&self, command: &Cmd) -> Result<Value, RedisError> {
        let reply = match &self.way {
            Way::Single(manager) => manager.clone().send_packed_command(command).await,
            Way::Cluster(connection) => connection.clone().req_packed_command(command).await,
        };
        // An error that the server answers is a value until it is asked for.
        reply?.extract_error()
    }

    /// Whether it leads nowhere, though it is open: a node that died with its machine never closed it, and one that became
    /// a replica keeps it. The address leads elsewhere by then.
    fn is_lost(&self, answer: &Result<Value, RedisError>) -> bool {
        let open_ms = u64::try_from(self.opened.elapsed().as_millis()).unwrap_or(u64::MAX);
        match answer {
            Ok(_) => {
                self.heard_ms.store(open_ms, Ordering::Relaxed);
                false
            }
            Err(error) if error.is_timeout() => {
                open_ms.saturating_sub(self.heard_ms.load(Ordering::Relaxed)) >= SILENCE_MS
            }
            Err(error) => error.kind() == ErrorKind::Server(ServerErrorKind::ReadOnly),
        }
    }
}

fn target(url: &str, config: &StoreConfig, reads: Reads) -> Result<Target, RedisError> {
    let is_tls = url.starts_with("rediss:");
    if is_tls {
        install_tls_provider();
    }
    let certificates = config
        .ca
        .as_ref()
        .filter(|_| is_tls)
        .map(|ca| TlsCertificates { client_tls: None, root_cert: Some(ca.as_bytes().to_vec()) });
    if config.cluster {
        return Ok(Target::Cluster(Box::new(cluster_client(url, config, certificates, reads)?)));
    }
    let manager = ConnectionManagerConfig::new()
        .set_connection_timeout(Some(config.connect_timeout))
        .set_response_timeout(Some(config.answer_timeout))
        .set_number_of_retries(1)
        .set_min_delay(Duration::from_millis(20))
        .set_max_delay(Duration::from_millis(200));
    let client = match certificates {
        Some(certificates) => Client::build_with_tls(url, certificates),
        None => Client::open(url),
    };
    Ok(Target::Single { client: Box::new(client?), config: Box::new(manager) })
}

fn cluster_client(
    url: &str,
    config: &StoreConfig,
    certificates: Option<TlsCertificates>,
    reads: Reads,
) -> Result<ClusterClient, RedisError> {
    let mut builder = ClusterClient::builder([url])
        .connection_timeout(config.connect_timeout)
        .response_timeout(config.answer_timeout)
        .retries(2)
        .min_retry_wait(20)
        .max_retry_wait(200);
    if let Some(certificates) = certificates {
        builder = builder.certs(certificates);
    }
    if reads == Reads::AtReplicas {
        builder = builder.read_routing_strategy(RandomReplicaStrategy);
    }
    builder.build()
}

/// Whether the same command may succeed later: the connection broke, Redis loads, is full, or is no master now.
fn is_passing(error: &RedisError) -> bool {
    if error.is_io_error() || error.is_timeout() || error.is_connection_dropped() || error.is_cluster_error()
    {
        return true;
    }
    match error.kind() {
        ErrorKind::Server(kind) => matches!(
            kind,
            ServerErrorKind::BusyLoading
                | ServerErrorKind::TryAgain
                | ServerErrorKind::ClusterDown
                | ServerErrorKind::MasterDown
                | ServerErrorKind::ReadOnly
                | ServerErrorKind::Moved
                | ServerErrorKind::Ask
        ),
        // No node that has the slot can be reached.
        ErrorKind::ClusterConnectionNotFound => true,
        _ => matches!(error.code(), Some("OOM" | "BUSY" | "NOREPLICAS" | "MISCONF")),
    }
}

/// Whether Redis does not have the script.
pub(crate) fn is_missing_script(error: &RedisError) -> bool {
    error.code() == Some("NOSCRIPT")
}

impl Store {
    /// Send a command that may be repeated, once more if the connection hid its answer.
    pub(crate) async fn query(&self, step: &'static str, command: &Cmd) -> Result<Value, StoreError> {
        let connection = &self.0.connection;
        let answer = match connection.send(command).await {
            Err(error) if is_passing(&error) => {
                tracing::warn!(step, %error, "redis: trying once more");
                connection.send(command).await
            }
            answer => answer,
        };
        answer.map_err(|error| classified(step, error))
    }

    /// What a plain command answers, read.
    pub(crate) async fn read<T: FromRedisValue>(
        &self,
        name: &'static str,
        command: &Cmd,
    ) -> Result<T, StoreError> {
        redis::from_redis_value(self.query(name, command).await?)
            .map_err(|error| StoreError::Malformed { step: name, reply: error.to_string() })
    }

    /// Like [`Store::query`], by a script's digest; `source` makes the same command with the script itself.
    pub(crate) async fn query_script(
        &self,
        step: &'static str,
        command: &Cmd,
        source: impl FnOnce() -> Cmd,
    ) -> Result<Value, StoreError> {
        match self.query(step, command).await {
            Err(StoreError::Refused { source: error, .. }) if is_missing_script(&error) => {
                self.query(step, &source()).await
            }
            answer => answer,
        }
    }
}

fn classified(step: &'static str, error: RedisError) -> StoreError {
    if is_passing(&error) {
        StoreError::Unavailable(error)
    } else {
        StoreError::Refused { step, source: error }
    }
}
