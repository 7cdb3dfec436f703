//! Connections: few, bounded in every wait, checked before each use.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use deadpool_postgres::{
    Client, Hook, HookError, Manager, ManagerConfig, Object, Pool, RecyclingMethod, Runtime, Timeouts,
};
use tokio_postgres::Config;
use tokio_postgres::config::SslMode;

use crate::RecordsError;
use crate::tls::Tls;

/// How much longer than the server itself the client waits for a statement's end.
const PATIENCE: Duration = Duration::from_secs(1);
/// After this long without an acknowledgement of the network a connection counts as broken.
const NETWORK_TIMEOUT: Duration = Duration::from_secs(5);
const KEEPALIVE_IDLE: Duration = Duration::from_secs(30);

/// Where the database is, and the bounds of what is asked of it.
#[derive(Clone)]
pub struct RecordsConfig {
    /// `postgres://user:password@host:port/database`: a secret. Only with `?sslmode=require` is the connection
    /// encrypted; the server's certificate is checked then, and must name its host.
    pub url: String,
    /// Certificates in PEM that TLS trusts instead of the system's.
    pub ca: Option<String>,
    /// Connections at once.
    pub max_connections: usize,
    /// For making a connection, and for getting one of those there are.
    pub connect_timeout: Duration,
    /// For one statement.
    pub statement_timeout: Duration,
}

impl RecordsConfig {
    /// Four connections, 2 s to connect, 10 s a statement.
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            ca: None,
            max_connections: 4,
            connect_timeout: Duration::from_secs(2),
            statement_timeout: Duration::from_secs(10),
        }
    }

    /// What to connect to, and how it is encrypted.
    pub(crate) fn parse(&self) -> Result<(Config, Tls), RecordsError> {
        let mut config = Config::from_str(&self.url).map_err(RecordsError::Url)?;
        let is_required = config.get_ssl_mode() == SslMode::Require;
        if !is_required {
            // What is merely preferred would go on in the clear when somebody wants it to.
            config.ssl_mode(SslMode::Disable);
        }
        config
            .application_name("jari")
            .connect_timeout(self.connect_timeout)
            .tcp_user_timeout(NETWORK_TIMEOUT)
            .keepalives_idle(KEEPALIVE_IDLE);
        let tls = if is_required { Tls::trusting(self.ca.as_deref())? } else { Tls::none() };
        Ok((config, tls))
    }
}

impl fmt::Debug for RecordsConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RecordsConfig")
            .field("max_connections", &self.max_connections)
            .field("connect_timeout", &self.connect_timeout)
            .field("statement_timeout", &self.statement_timeout)
            .finish_non_exhaustive()
    }
}

/// The database, as those see it who write facts and read them back. Clones share the connections.
#[derive(Clone)]
pub struct Records {
    pool: Pool,
    answer_timeout: Duration,
}

impl fmt::Debug for Records {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Records").field("pool", &self.pool.status()).finish_non_exhaustive()
    }
}

impl Records {
    /// Reads the URL; connections are made when they are first needed, and again when they broke.
    pub fn open(config: &RecordsConfig) -> Result<Self, RecordsError> {
        let checked = ManagerConfig { recycling_method: RecyclingMethod::Verified };
        let (server, tls) = config.parse()?;
        let manager = Manager::from_config(server, tls.connector()?, checked);
        let timeouts = Timeouts {
            wait: Some(config.connect_timeout),
            create: Some(config.connect_timeout),
            recycle: Some(config.connect_timeout),
        };
        let pool = Pool::builder(manager)
            .max_size(config.max_connections)
            .timeouts(timeouts)
            .runtime(Runtime::Tokio1)
            .post_create(statement_timeout(config.statement_timeout))
            .build();
        // Building fails only without a runtime for the timeouts.
        let pool =
            pool.map_err(|_| RecordsError::Connect(deadpool_postgres::PoolError::NoRuntimeSpecified))?;
        Ok(Self { pool, answer_timeout: config.statement_timeout + PATIENCE })
    }

    pub(crate) async fn client(&self) -> Result<Client, RecordsError> {
        self.pool.get().await.map_err(RecordsError::Connect)
    }

    /// Runs `work` on `client` with a bound on its time. A connection that did not answer is closed: what it
    /// would still answer must reach nobody.
    pub(crate) async fn bounded<T, E>(
        &self,
        mut client: Client,
        work: impl AsyncFnOnce(&mut Client) -> Result<T, E>,
    ) -> Result<(Client, Result<T, E>), RecordsError> {
        let answer = tokio::time::timeout(self.answer_timeout, work(&mut client)).await;
        if let Ok(answer) = answer {
            Ok((client, answer))
        } else {
            drop(Object::take(client));
            Err(RecordsError::TimedOut)
        }
    }
}

/// Not by a startup option: proxies in front of a database refuse those.
fn statement_timeout(timeout: Duration) -> Hook {
    Hook::async_fn(move |client: &mut deadpool_postgres::ClientWrapper, _| {
        Box::pin(async move {
            let statement = format!("set statement_timeout = {}", timeout.as_millis());
            client.batch_execute(&statement).await.map_err(HookError::Backend)
        })
    })
}
