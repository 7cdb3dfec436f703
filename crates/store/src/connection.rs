//! One multiplexed connection a process, with explicit timeouts and bounded retries; a single node or a cluster.
//! Where reading has an address of its own, one more for that.

use std::sync::Arc;
use std::time::Duration;

use redis::aio::{ConnectionLike, ConnectionManager, ConnectionManagerConfig};
use redis::cluster::ClusterClient;
use redis::cluster_async::ClusterConnection;
use redis::cluster_read_routing::RandomReplicaStrategy;
use redis::{Client, Cmd, FromRedisValue, RedisError, TlsCertificates, Value};
use tokio::sync::OnceCell;
use tokio::time::Instant;

use crate::{Bench, Store, StoreError};

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
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
}

/// Which nodes of a cluster answer what only reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reads {
    /// Those that write.
    WithWrites,
    AtReplicas,
}

/// Connects when first used: a function that may not need Redis does not wait for it.
pub(crate) enum Connection {
    Single { client: Box<Client>, config: Box<ConnectionManagerConfig>, manager: OnceCell<ConnectionManager> },
    Cluster { client: Box<ClusterClient>, connection: OnceCell<ClusterConnection> },
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
            let client = cluster_client(url, config, certificates, reads).map_err(StoreError::Config)?;
            return Ok(Self::Cluster { client: Box::new(client), connection: OnceCell::new() });
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
        let client = client.map_err(StoreError::Config)?;
        Ok(Self::Single { client: Box::new(client), config: Box::new(manager), manager: OnceCell::new() })
    }

    pub(crate) async fn send(&self, command: &Cmd) -> Result<Value, RedisError> {
        let asked_at = Instant::now();
        let reply = self.send_once(command).await;
        metrics::REDIS_LATENCY.observe(asked_at.elapsed());
        // An error that the server answers is a value until it is asked for.
        reply?.extract_error()
    }

    async fn send_once(&self, command: &Cmd) -> Result<Value, RedisError> {
        match self {
            Self::Single { client, config, manager } => {
                let manager = manager
                    .get_or_try_init(|| async {
                        ConnectionManager::new_lazy_with_config((**client).clone(), (**config).clone())
                    })
                    .await?;
                manager.clone().send_packed_command(command).await
            }
            Self::Cluster { client, connection } => {
                let connection = connection.get_or_try_init(|| client.get_async_connection()).await?;
                connection.clone().req_packed_command(command).await
            }
        }
    }
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
    use redis::{ErrorKind, ServerErrorKind};
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
