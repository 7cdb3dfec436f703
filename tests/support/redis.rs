//! Redis, alone or as a cluster of one node.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::process::Command;
use std::sync::OnceLock;
use std::time::Duration;

use futures::{Stream, StreamExt};
use redis::aio::MultiplexedConnection;
use store::StoreConfig;

use crate::given;
use crate::network::free_port;
use crate::process::{Folder, Recipe, Server, program};

const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);

/// How a Redis is laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Topology {
    /// A single node.
    #[default]
    Single,
    /// Cluster mode, one node that owns all slots.
    Cluster,
}

impl Topology {
    /// The one that this run of the tests is against: `JARI_TEST_REDIS`, `single` without it.
    pub fn chosen() -> Self {
        match std::env::var("JARI_TEST_REDIS").as_deref() {
            Err(_) | Ok("" | "single") => Self::Single,
            Ok("cluster") => Self::Cluster,
            Ok(other) => panic!("JARI_TEST_REDIS is single or cluster, not {other}"),
        }
    }
}

/// Whether Redis keeps an append-only file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AppendOnly {
    /// Nothing is written to disk.
    #[default]
    Off,
    /// Every write is appended, flushed each second.
    On,
}

/// A running Redis, empty when it starts.
#[derive(Debug)]
pub struct Redis {
    topology: Topology,
    url: String,
    /// Whether other tests use it too.
    shared: bool,
    /// None when the environment named it.
    _server: Option<Server>,
}

impl Redis {
    /// A Redis for the caller alone, without an append-only file.
    pub fn start(topology: Topology) -> Self {
        Self::start_with(topology, AppendOnly::Off)
    }

    /// A Redis for the caller alone.
    pub fn start_with(topology: Topology, append_only: AppendOnly) -> Self {
        let (server, port, ()) = Server::start(
            "redis",
            |folder| {
                let port = free_port();
                (recipe(folder, port, topology, append_only), port)
            },
            |folder, port| ready(folder, *port, topology),
        );
        let url = format!("redis://127.0.0.1:{port}/");
        Self { topology, url, shared: false, _server: Some(server) }
    }

    /// The Redis that all tests of this process share: other tests' events are in it, and their commands pass
    /// through it. `JARI_TEST_REDIS_URL` names a running one of the chosen topology.
    pub fn shared(topology: Topology) -> &'static Self {
        static SINGLE: OnceLock<Redis> = OnceLock::new();
        static CLUSTER: OnceLock<Redis> = OnceLock::new();
        let shared = match topology {
            Topology::Single => &SINGLE,
            Topology::Cluster => &CLUSTER,
        };
        let given = given("JARI_TEST_REDIS_URL").filter(|_| topology == Topology::chosen());
        shared.get_or_init(|| match given {
            Some(url) => Self { topology, url, shared: true, _server: None },
            None => Self { shared: true, ..Self::start(topology) },
        })
    }

    /// `redis://127.0.0.1:PORT/`, in a cluster the address of its one node.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// How a store reaches it.
    pub fn config(&self) -> StoreConfig {
        StoreConfig::new(self.url(), self.topology == Topology::Cluster)
    }

    /// How this Redis is laid out.
    pub fn topology(&self) -> Topology {
        self.topology
    }

    /// A plain connection to look at keys with. It works in a cluster too: the one node owns all slots.
    pub async fn connection(&self) -> MultiplexedConnection {
        let client = self.client();
        client.get_multiplexed_async_connection().await.expect("Redis takes a connection")
    }

    /// Counts the commands that clients send to this server while `work` runs, by name in lower case, such as
    /// `evalsha` or `get`. What scripts call is not counted, a command that fails (`NOSCRIPT`) is. Every command
    /// counts by itself, so one command is one round trip, and pipelining hides nothing.
    ///
    /// Everybody's commands count: take a server of the caller's own, and connect before, or the client's
    /// handshake counts too.
    pub async fn count_commands(&self, work: impl AsyncFnOnce()) -> BTreeMap<String, u64> {
        assert!(!self.shared, "a shared Redis would count the commands of other tests too: use Redis::start");
        let mut marking = self.connection().await;
        let mut monitor = self.client().get_async_monitor().await.expect("Redis lets itself be monitored");
        work().await;
        let mark = format!("mark-{:016x}", fastrand::u64(..));
        let marked = redis::cmd("ECHO").arg(&mark).exec_async(&mut marking).await;
        marked.expect("Redis echoes the mark");
        let counting = count_until(&mark, monitor.on_message::<String>());
        tokio::time::timeout(ANSWER_TIMEOUT, counting).await.expect("the monitor shows the mark")
    }

    fn client(&self) -> redis::Client {
        redis::Client::open(self.url()).expect("a Redis URL")
    }
}

/// Redis shows commands in the order in which it ran them, so all that `work` sent stands before the mark.
async fn count_until(mark: &str, mut lines: impl Stream<Item = String> + Unpin) -> BTreeMap<String, u64> {
    let mut counts = BTreeMap::new();
    while let Some(line) = lines.next().await {
        let Some((origin, command)) = line.split_once("] ") else { panic!("not a monitor's line: {line}") };
        if command.contains(mark) {
            return counts;
        }
        // `1700000000.123456 [0 lua] "get" "key"` for a script's call, `[0 127.0.0.1:50000]` for a client's.
        if !origin.ends_with(" lua") {
            let name = command.split('"').nth(1).unwrap_or_default().to_lowercase();
            *counts.entry(name).or_default() += 1;
        }
    }
    panic!("Redis closed the monitor");
}

fn recipe(folder: &Folder, port: u16, topology: Topology, append_only: AppendOnly) -> Recipe {
    let append_only = match append_only {
        AppendOnly::Off => "no",
        AppendOnly::On => "yes",
    };
    let mut command = Command::new(program("redis-server", &[]));
    command.args(format!("--bind 127.0.0.1 --port {port}").split(' ')).arg("--dir").arg(folder.path());
    command
        .args(["--save", ""])
        .args(format!("--appendonly {append_only} --appendfsync everysec").split(' '));
    if topology == Topology::Cluster {
        // The default is ten thousand above the port, which may not exist.
        command.args(format!("--cluster-enabled yes --cluster-port {}", free_port()).split(' '));
    }
    Recipe { command, stop_signal: "KILL" }
}

/// It is ours if it works in our folder; a cluster is ready once it has given itself all slots.
fn ready(folder: &Folder, port: u16, topology: Topology) -> Option<()> {
    let mut plain = Plain::connect(port)?;
    let working_folder = plain.ask("CONFIG GET dir", 5)?.pop()?;
    if !folder.path().canonicalize().is_ok_and(|path| path.as_os_str() == working_folder.as_str()) {
        return None;
    }
    if topology == Topology::Single {
        return Some(());
    }
    // Refused, and harmless, once the slots are given.
    plain.ask("CLUSTER ADDSLOTSRANGE 0 16383", 1)?;
    let state = plain.ask("CLUSTER INFO", 2)?.pop()?;
    (state == "cluster_state:ok").then_some(())
}

/// The protocol by hand: a start has to work without a runtime, and a lone question needs no client.
struct Plain {
    stream: BufReader<TcpStream>,
}

impl Plain {
    fn connect(port: u16) -> Option<Self> {
        let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).ok()?;
        stream.set_read_timeout(Some(ANSWER_TIMEOUT)).ok()?;
        Some(Self { stream: BufReader::new(stream) })
    }

    /// Sends one inline command and reads that many lines of its answer.
    fn ask(&mut self, command: &str, lines: usize) -> Option<Vec<String>> {
        self.stream.get_mut().write_all(format!("{command}\r\n").as_bytes()).ok()?;
        let read = |_| {
            let mut line = String::new();
            self.stream.read_line(&mut line).ok()?;
            Some(line.trim_end().to_owned())
        };
        (0..lines).map(read).collect()
    }
}
