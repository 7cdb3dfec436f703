//! `jari serve`: the whole system in one process. The handlers are those of the Lambdas and get the events that
//! API Gateway and SQS would send; only what carries them is local. Redis and PostgreSQL are its own, under the
//! data folder, unless their addresses are given.

mod events;
mod lanes;
mod listener;
mod page;
mod queue;
mod sale_file;
mod service;
mod sockets;

pub use sale_file::SaleFile;

use std::fs::{self, File};
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use admin::{AdminState, LetterFile};
use admit::Pressure;
use anyhow::{Context, bail};
use book::BookState;
use bootstrap::State;
use bootstrap::config::{self, Access, MasterKeys};
use domain::EventId;
use gateway::access::AccessKeyPair;
use gateway::{Gate, PaymentKeys};
use keys::KeysState;
use records::{Records, RecordsConfig};
use relay::{Patience, Recoveries};
use serde::{Deserialize, Serialize};
use store::{Store, StoreConfig, StoreError};
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use lanes::Lanes;
use listener::Functions;
use page::Page;
use queue::{Delivered, LocalQueue};
use service::Service;
use sockets::{Hub, LocalPushes};

/// What to serve, and where.
#[derive(Debug, Clone)]
pub struct Options {
    /// The port on 127.0.0.1; 0: any free one.
    pub port: u16,
    /// Where data, logs and the description of the running system lie.
    pub data: PathBuf,
    /// A Redis to use instead of an own one.
    pub redis: Option<String>,
    /// Whether that Redis is a cluster.
    pub redis_cluster: bool,
    /// A PostgreSQL to use instead of an own one.
    pub database: Option<String>,
    /// A folder with the page's files, to use instead of the built-in ones.
    pub web: Option<PathBuf>,
    /// Sales to load; the first is the one of requests that name none.
    pub sales: Vec<SaleFile>,
}

/// How other commands find the running system: `serve.json` in the data folder.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Running {
    /// The address of every endpoint.
    pub url: String,
    /// Redis.
    pub redis: String,
    /// Whether Redis is a cluster.
    pub redis_cluster: bool,
    /// PostgreSQL.
    pub database: String,
    /// What signs places and draws shuffles.
    pub master_key: String,
    /// What a payment provider signs with.
    pub payment_key: String,
    /// The serving process.
    pub pid: u32,
}

impl Running {
    /// Where a system under `data` describes itself.
    pub fn path(data: &Path) -> PathBuf {
        data.join("serve.json")
    }
}

/// Requests under way get this long to end.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(10);
/// Redis and PostgreSQL get this long to be ready.
const READY_TIMEOUT: Duration = Duration::from_mins(1);

/// Serve until SIGINT or SIGTERM.
pub async fn serve(options: Options) -> anyhow::Result<()> {
    let page = Page::of(options.web.as_deref())?;
    fs::create_dir_all(&options.data).with_context(|| format!("cannot make {}", options.data.display()))?;
    let data = options.data.canonicalize()?;
    let _lock = lock(&data)?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    // Bound first: a port that is taken is told before anything has been started.
    let socket = TcpListener::bind(("127.0.0.1", options.port))
        .await
        .with_context(|| format!("cannot listen on 127.0.0.1:{}", options.port))?;

    let mut services = Services::start(&options, &data).await?;
    let running = Running {
        url: format!("http://{}", socket.local_addr()?),
        redis: services.redis_url.clone(),
        redis_cluster: options.redis_cluster,
        database: services.database_url.clone(),
        master_key: secret(&data, "master-key")?,
        payment_key: secret(&data, "payment-key")?,
        pid: std::process::id(),
    };
    let default_event = options.sales.first().map(SaleFile::event).transpose()?;
    let system = System::build(&running, &data, default_event, page).await?;
    for sale in &options.sales {
        sale.load(&system.store, &system.admin).await?;
    }
    write_private(&Running::path(&data), &serde_json::to_string_pretty(&running)?)?;
    let (stop, stopping) = watch::channel(false);
    let tasks = system.spawn(socket, &stopping);
    announce(&running, &options);

    let failed = tokio::select! {
        _ = interrupt.recv() => None,
        _ = terminate.recv() => None,
        failed = services.wait() => Some(failed),
    };
    eprintln!("stopping …");
    fs::remove_file(Running::path(&data))?;
    stop.send_replace(true);
    for task in tasks {
        // A task that panicked has said so.
        let _ = tokio::time::timeout(DRAIN_TIMEOUT, task).await;
    }
    if failed.is_none() {
        system.empty_journal().await;
    }
    // Its connections end before what they lead to.
    drop(system);
    services.stop().await;
    match failed {
        Some(name) => bail!("{name} ended by itself; its log is in {}", data.display()),
        None => Ok(()),
    }
}

fn announce(running: &Running, options: &Options) {
    let url = &running.url;
    println!("Jari serves {url}");
    println!("  page   {url}/");
    println!("  try    curl -sX POST {url}/api/queue/join");
    println!("  data   {} (logs too)", options.data.display());
    println!("  stop   Ctrl-C");
}

/// One server a data folder. The lock goes with the process, however it ends.
fn lock(data: &Path) -> anyhow::Result<File> {
    let file = File::create(data.join("lock"))?;
    if file.try_lock().is_err() {
        bail!("another `jari serve` runs on {}", data.display());
    }
    Ok(file)
}

/// A secret of the folder, made when it is first served: keys and draws outlive a restart.
fn secret(data: &Path, name: &str) -> anyhow::Result<String> {
    let path = data.join(name);
    if let Ok(key) = fs::read_to_string(&path) {
        return Ok(key.trim().to_owned());
    }
    let key = new_master_key();
    write_private(&path, &key)?;
    Ok(key)
}

/// A new master key: 244 random bits.
pub fn new_master_key() -> String {
    format!("{}{}", uuid::Uuid::new_v4().simple(), uuid::Uuid::new_v4().simple())
}

/// The folder's keys for access tokens: the one that signs is made when it is first served; another whose tokens are
/// good is there only while keys change.
fn access(data: &Path, url: String) -> anyhow::Result<Access> {
    let (path, previous) = (data.join("access-token-key.pem"), data.join("previous-access-token-key.pem"));
    if !path.exists() {
        write_private(&path, &AccessKeyPair::generate()?.private_pem)?;
    }
    let current = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let previous = if previous.exists() { Some(fs::read_to_string(&previous)?) } else { None };
    Ok(Access::new(&current, previous.as_deref(), Some(url))?)
}

/// What could not be written, of a system under `data`.
pub fn dead_letters(data: &Path) -> LetterFile {
    LetterFile::new(data.join("dead-letters.jsonl"))
}

/// A file that only its owner can read.
fn write_private(path: &Path, text: &str) -> anyhow::Result<()> {
    let mut options = fs::OpenOptions::new();
    let mut file = options.write(true).create(true).truncate(true).mode(0o600).open(path)?;
    file.write_all(text.as_bytes())?;
    Ok(())
}

/// Redis and PostgreSQL: own ones, or only their addresses.
struct Services {
    redis_url: String,
    database_url: String,
    own: Vec<Service>,
}

impl Services {
    async fn start(options: &Options, data: &Path) -> anyhow::Result<Self> {
        let mut own = Vec::new();
        let redis_url = if let Some(url) = &options.redis {
            url.clone()
        } else {
            let (service, url) = service::redis(data, READY_TIMEOUT).await?;
            own.push(service);
            url
        };
        let database_url = if let Some(url) = &options.database {
            url.clone()
        } else {
            let (service, url) = service::postgres(data, READY_TIMEOUT).await?;
            own.push(service);
            url
        };
        Ok(Self { redis_url, database_url, own })
    }

    /// The name of the first one that ends by itself; never, where all go on.
    async fn wait(&mut self) -> &'static str {
        let ends: Vec<_> = self.own.iter_mut().map(|service| Box::pin(service.wait())).collect();
        if ends.is_empty() {
            return std::future::pending().await;
        }
        futures::future::select_all(ends).await.0
    }

    async fn stop(self) {
        for service in self.own {
            service.stop().await;
        }
    }
}

/// What runs.
struct System {
    functions: Arc<Functions>,
    store: Store,
    queue: Arc<LocalQueue>,
    admin: AdminState,
    journal_limit: u64,
}

impl System {
    async fn build(
        running: &Running,
        data: &Path,
        default_event: Option<EventId>,
        page: Page,
    ) -> anyhow::Result<Self> {
        let config = RecordsConfig::new(&running.database);
        records::migrate(&config).await.context("cannot migrate PostgreSQL")?;
        let store = Store::new(&StoreConfig::new(&running.redis, running.redis_cluster))?;
        store.ping().await.context("cannot reach Redis")?;
        let master = MasterKeys::new(&running.master_key, None)?;
        let payment_keys = PaymentKeys::new([running.payment_key.as_str()]);
        let gate = config::gate()?;
        let gate = Gate { default_event: default_event.or(gate.default_event), payment_keys, ..gate };
        let queue = Arc::new(LocalQueue::new(Records::open(&config)?, dead_letters(data)));
        let admin = AdminState::new(store.clone(), Records::open(&config)?, master.clone());
        let access = access(data, running.url.clone())?;
        let keys = KeysState::new(&gate, access.clone());
        let state = State::new(store.clone(), gate, master, access);
        let book = BookState { state, outbox: Arc::new(queue.prompt()) };
        let functions = Functions { book, keys, page, lanes: Lanes::new() };
        let journal_limit = config::journal_limit()?;
        Ok(Self { functions: Arc::new(functions), store, queue, admin, journal_limit })
    }

    /// The listener, the ticks, the relay and the delivery of what handlers send.
    fn spawn(&self, socket: TcpListener, stopping: &watch::Receiver<bool>) -> Vec<JoinHandle<()>> {
        let every_second = |name: &'static str, round: Round| {
            tokio::spawn(each_second(
                name,
                stopping.clone(),
                self.store.clone(),
                Arc::clone(&self.queue),
                round,
            ))
        };
        let admit = Round::Admit(Pressure::new(self.journal_limit));
        let functions = Arc::clone(&self.functions);
        let hub = Arc::new(Hub::new(functions.clone(), stopping.clone()));
        let (pushes, looks) = LocalPushes::new();
        vec![
            tokio::spawn(listener::listen(socket, functions, Arc::clone(&hub), stopping.clone())),
            tokio::spawn(hub.deliver(looks)),
            tokio::spawn(push_all(stopping.clone(), self.store.clone(), pushes)),
            every_second("admit", admit),
            every_second("relay", Round::Relay),
            tokio::spawn(Arc::clone(&self.queue).deliver_prompt(stopping.clone())),
        ]
    }

    /// What is still in the journal goes to PostgreSQL before both stop.
    async fn empty_journal(&self) {
        if let Err(error) = relay::relay(&self.store, &self.queue.delivered(), 0).await {
            tracing::warn!(%error, "the journal keeps what is left for the next start");
        }
    }
}

/// Tells sockets what is new, beside the ticks, until the system stops.
async fn push_all(mut stopping: watch::Receiver<bool>, store: Store, pushes: LocalPushes) {
    let mut rounds = tokio::time::interval(admit::PUSH_INTERVAL);
    rounds.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Skip);
    loop {
        tokio::select! {
            _ = rounds.tick() => {}
            _ = stopping.wait_for(|stop| *stop) => return,
        }
        admit::push_all(&store, &pushes).await;
    }
}

/// Until the system stops.
async fn stopped(stopping: &mut watch::Receiver<bool>) {
    // Fails where nobody can stop it any more: then it stops now.
    let _ = stopping.wait_for(|stop| *stop).await;
}

/// What a task does each second.
#[derive(Debug)]
enum Round {
    Admit(Pressure),
    Relay,
}

/// A schedule's work without the schedule: once a second until the system stops. A round that fails is logged, and
/// the next one follows.
async fn each_second(
    name: &'static str,
    mut stopping: watch::Receiver<bool>,
    store: Store,
    queue: Arc<LocalQueue>,
    round: Round,
) {
    let mut seconds = tokio::time::interval(admit::INTERVAL);
    seconds.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Skip);
    let outbox = queue.delivered();
    let mut recoveries = Recoveries::new(&store, queue.records(), &*queue, Patience::EXACT);
    loop {
        tokio::select! {
            _ = seconds.tick() => {}
            _ = stopping.wait_for(|stop| *stop) => return,
        }
        let done = match &round {
            Round::Admit(pressure) => {
                // Told at once: this queue is in memory.
                pressure.ask(&*queue).await;
                admit::tick_all(&store, pressure.load()).await.map(drop)
            }
            Round::Relay => relay_and_recover(&store, &outbox, &mut recoveries).await,
        };
        if let Err(error) = done {
            tracing::error!(name, %error, "a round failed");
        }
    }
}

async fn relay_and_recover(
    store: &Store,
    outbox: &Delivered,
    recoveries: &mut Recoveries<'_>,
) -> Result<(), StoreError> {
    relay::relay(store, outbox, relay::SETTLE_MS).await?;
    recoveries.round().await
}
