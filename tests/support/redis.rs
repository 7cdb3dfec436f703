//! Redis as deployments have it: alone, behind TLS, with a replica, as a cluster.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::process::Command;
use std::sync::OnceLock;
use std::time::Duration;

use futures::{Stream, StreamExt};
use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, TlsCertificates};
use store::StoreConfig;

use crate::given;
use crate::network::free_port;
use crate::process::{Folder, Recipe, Server, program};
use crate::wait::poll_blocking;

const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);
/// Three nodes get this long to know each other.
const MEETING_TIMEOUT: Duration = Duration::from_secs(30);

/// How a Redis is laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Topology {
    /// A single node.
    #[default]
    Single,
    /// A single node that asks for a password behind TLS.
    Tls,
    /// A node and its replica, which answers what only reads.
    Replica,
    /// Cluster mode, one node that owns all slots.
    Cluster,
    /// Cluster mode, three nodes that own a third of the slots each.
    Cluster3,
}

impl Topology {
    const NAMES: [(&'static str, Self); 5] = [
        ("single", Self::Single),
        ("tls", Self::Tls),
        ("replica", Self::Replica),
        ("cluster", Self::Cluster),
        ("cluster3", Self::Cluster3),
    ];

    /// The one that this run of the tests is against: `JARI_TEST_REDIS`, `single` without it.
    pub fn chosen() -> Self {
        let name = given("JARI_TEST_REDIS").unwrap_or_else(|| "single".to_owned());
        let known = Self::NAMES.iter().find(|(known, _)| *known == name);
        known.unwrap_or_else(|| panic!("JARI_TEST_REDIS is {name}, none of {:?}", Self::NAMES)).1
    }

    /// The chosen one where it has one node, else its like with one: for what must see every command or event.
    pub fn of_one_node() -> Self {
        match Self::chosen() {
            Self::Replica => Self::Single,
            Self::Cluster3 => Self::Cluster,
            chosen => chosen,
        }
    }

    /// Whether clients must speak to a cluster.
    pub fn is_cluster(self) -> bool {
        matches!(self, Self::Cluster | Self::Cluster3)
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

/// What TLS shows, and what trusts it: for 127.0.0.1, and good for a century.
const CA: &str = include_str!("tls/ca.pem");
const CERTIFICATE: &str = include_str!("tls/server.pem");
const CERTIFICATE_KEY: &str = include_str!("tls/server.key");
const PASSWORD: &str = "a-password-for-tests";

/// One server.
#[derive(Debug)]
struct Node {
    /// Without TLS.
    port: u16,
    url: String,
    server: Server,
    is_replica: bool,
}

/// A running Redis, empty when it starts.
#[derive(Debug)]
pub struct Redis {
    topology: Topology,
    url: String,
    read_url: Option<String>,
    /// Whether other tests use it too.
    shared: bool,
    /// None when the environment named it. The first is where writes go.
    nodes: Vec<Node>,
}

impl Redis {
    /// A Redis for the caller alone, without an append-only file.
    pub fn start(topology: Topology) -> Self {
        Self::start_with(topology, AppendOnly::Off)
    }

    /// A Redis for the caller alone.
    pub fn start_with(topology: Topology, append_only: AppendOnly) -> Self {
        let nodes: Vec<Node> = match topology {
            Topology::Single | Topology::Tls | Topology::Cluster => vec![node(topology, append_only, None)],
            Topology::Replica => {
                let primary = node(topology, append_only, None);
                let replica = node(topology, append_only, Some(primary.port));
                vec![primary, replica]
            }
            Topology::Cluster3 => joined((0..3).map(|_| node(topology, append_only, None)).collect()),
        };
        let read_url = (topology == Topology::Replica).then(|| nodes[1].url.clone());
        Self { topology, url: nodes[0].url.clone(), read_url, shared: false, nodes }
    }

    /// A cluster for the caller alone: a node that owns all slots, and its replica.
    pub fn start_cluster_pair() -> Self {
        let topology = Topology::Cluster;
        // Nodes that know nobody and own nothing yet.
        let alone = || node(Topology::Cluster3, AppendOnly::Off, None);
        let nodes = vec![alone(), alone()];
        paired(&nodes[0], &nodes[1]);
        Self { topology, url: nodes[0].url.clone(), read_url: None, shared: false, nodes }
    }

    /// The Redis that all tests of this process share: other tests' events are in it, and their commands pass
    /// through it. `JARI_TEST_REDIS_URL` names a running one of the chosen topology, `JARI_TEST_REDIS_READ_URL` its
    /// replica.
    pub fn shared(topology: Topology) -> &'static Self {
        static SHARED: [OnceLock<Redis>; 5] = [const { OnceLock::new() }; 5];
        let given_url = given("JARI_TEST_REDIS_URL").filter(|_| topology == Topology::chosen());
        SHARED[topology as usize].get_or_init(|| match given_url {
            Some(url) => {
                let read_url = given("JARI_TEST_REDIS_READ_URL");
                Self { topology, url, read_url, shared: true, nodes: Vec::new() }
            }
            None => Self { shared: true, ..Self::start(topology) },
        })
    }

    /// `redis://127.0.0.1:PORT/`, in a cluster the address of one node; with TLS `rediss://` and a password.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Where its replica answers.
    pub fn read_url(&self) -> Option<&str> {
        self.read_url.as_deref()
    }

    /// How this Redis is laid out.
    pub fn topology(&self) -> Topology {
        self.topology
    }

    /// How the product is told of it.
    pub fn config(&self) -> StoreConfig {
        StoreConfig {
            read_url: self.read_url.clone(),
            ca: (self.topology == Topology::Tls).then(|| CA.to_owned()),
            ..StoreConfig::new(self.url(), self.topology.is_cluster())
        }
    }

    /// Addresses of all nodes of a Redis of the caller's.
    pub fn node_urls(&self) -> Vec<&str> {
        self.nodes.iter().map(|node| node.url.as_str()).collect()
    }

    /// Ends the replica of a Redis of the caller's.
    pub fn stop_replica(&mut self) {
        assert_eq!(self.topology, Topology::Replica);
        self.nodes.truncate(1);
    }

    /// Kills (-9) a node of a Redis of the caller's, by its place in [`Redis::node_urls`]. Its files stay.
    pub fn kill(&mut self, at: usize) {
        self.nodes[at].server.stop();
    }

    /// Starts a killed node again, on its port and with its files, and waits until it serves.
    pub fn start_again(&mut self, at: usize) {
        let (topology, node) = (self.topology, &mut self.nodes[at]);
        let (port, is_replica) = (node.port, node.is_replica);
        node.server.start_again(|folder| ready(folder, port, topology, is_replica));
    }

    /// What kills (-9) such a node from wherever it is called; [`Redis::start_again`] follows.
    pub async fn killer(&self, at: usize) -> impl Fn() + Send + 'static {
        let keep = self.nodes[at].server.keep_folder();
        let pid = self.process_id(at).await;
        move || {
            keep();
            signal("KILL", &pid);
        }
    }

    /// Stops a node of a Redis of the caller's in its tracks: it holds its connections and says nothing, as a machine that
    /// has lost its network.
    pub async fn freeze(&self, at: usize) {
        signal("STOP", &self.process_id(at).await);
    }

    async fn process_id(&self, at: usize) -> String {
        let client = redis::Client::open(self.nodes[at].url.as_str()).expect("a Redis URL");
        let mut connection = patient(&client).await;
        let about: String =
            redis::cmd("INFO").arg("server").query_async(&mut connection).await.expect("Redis answers");
        let pid = about.lines().find_map(|line| line.strip_prefix("process_id:"));
        pid.expect("a process id").trim().to_owned()
    }

    /// A plain connection to the node that has this key.
    pub async fn connection_of(&self, key: &str) -> MultiplexedConnection {
        let mut connection = self.connection().await;
        if self.topology != Topology::Cluster3 {
            return connection;
        }
        // Whoever does not have it names the node that has: MOVED SLOT HOST:PORT.
        let Err(moved) = redis::cmd("TYPE").arg(key).exec_async(&mut connection).await else {
            return connection;
        };
        let detail = moved.detail().expect("MOVED has a place").to_owned();
        let place = detail.rsplit(' ').next().expect("a place");
        let client = redis::Client::open(format!("redis://{place}/")).expect("a Redis URL");
        patient(&client).await
    }

    /// A plain connection to look at keys with, where writes go. It works in a cluster of one node too, which owns
    /// all slots.
    pub async fn connection(&self) -> MultiplexedConnection {
        let client = self.client();
        patient(&client).await
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
        if self.topology != Topology::Tls {
            return redis::Client::open(self.url()).expect("a Redis URL");
        }
        store::install_tls_provider();
        let trusted = TlsCertificates { client_tls: None, root_cert: Some(CA.into()) };
        redis::Client::build_with_tls(self.url(), trusted).expect("a Redis URL")
    }
}

fn signal(signal: &str, pid: &str) {
    let signalled = Command::new("kill").args(["-s", signal, pid]).status();
    assert!(signalled.expect("kill runs").success(), "nobody is {pid}");
}

/// A connection that waits as long for an answer as a busy machine may need.
async fn patient(client: &redis::Client) -> MultiplexedConnection {
    let config = AsyncConnectionConfig::new().set_response_timeout(Some(ANSWER_TIMEOUT));
    let connection = client.get_multiplexed_async_connection_with_config(&config).await;
    connection.expect("Redis takes a connection")
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

/// A node of such a Redis; a replica where it has a primary.
fn node(topology: Topology, append_only: AppendOnly, primary: Option<u16>) -> Node {
    let (server, (port, tls_port), ()) = Server::start(
        "redis",
        |folder| {
            let ports = (free_port(), free_port());
            (recipe(folder, ports, topology, append_only, primary), ports)
        },
        |folder, (port, _)| ready(folder, *port, topology, primary.is_some()),
    );
    let url = match topology {
        Topology::Tls => format!("rediss://:{PASSWORD}@127.0.0.1:{tls_port}/"),
        _ => format!("redis://127.0.0.1:{port}/"),
    };
    Node { port, url, server, is_replica: primary.is_some() }
}

fn recipe(
    folder: &Folder,
    (port, other_port): (u16, u16),
    topology: Topology,
    append_only: AppendOnly,
    primary: Option<u16>,
) -> Recipe {
    let append_only = match append_only {
        AppendOnly::Off => "no",
        AppendOnly::On => "yes",
    };
    let mut command = Command::new(program("redis-server", &[]));
    command.args(format!("--bind 127.0.0.1 --port {port}").split(' ')).arg("--dir").arg(folder.path());
    command
        .args(["--save", ""])
        // A failover is tried by giving a node another replication id.
        .args(["--enable-debug-command", "local"])
        .args(format!("--appendonly {append_only} --appendfsync everysec").split(' '));
    match topology {
        Topology::Single => {}
        // The default is ten thousand above the port, which may not exist.
        Topology::Cluster | Topology::Cluster3 => {
            command.args(format!("--cluster-enabled yes --cluster-port {other_port}").split(' '));
            command.args("--repl-diskless-sync-delay 0".split(' '));
        }
        Topology::Replica => {
            command.args("--repl-diskless-sync-delay 0 --replica-serve-stale-data no".split(' '));
            if let Some(primary) = primary {
                command.args(format!("--replicaof 127.0.0.1 {primary}").split(' '));
            }
        }
        Topology::Tls => {
            for (name, pem) in [("ca", CA), ("server", CERTIFICATE), ("key", CERTIFICATE_KEY)] {
                std::fs::write(folder.path().join(name), pem).expect("a file in the server's folder");
            }
            command.args(format!("--requirepass {PASSWORD} --tls-port {other_port}").split(' '));
            command.args("--tls-auth-clients no --tls-ca-cert-file ca".split(' '));
            command.args("--tls-cert-file server --tls-key-file key".split(' '));
        }
    }
    Recipe { command, stop_signal: "KILL" }
}

/// It is ours if it works in our folder; a cluster of one is ready once it has given itself all slots, a replica once
/// it has what its primary has.
fn ready(folder: &Folder, port: u16, topology: Topology, is_replica: bool) -> Option<()> {
    let mut plain = Plain::connect(port)?;
    if topology == Topology::Tls {
        plain.ask(&format!("AUTH {PASSWORD}"), 1)?;
    }
    let working_folder = plain.ask("CONFIG GET dir", 5)?.pop()?;
    if !folder.path().canonicalize().is_ok_and(|path| path.as_os_str() == working_folder.as_str()) {
        return None;
    }
    match topology {
        Topology::Cluster => {
            // Refused, and harmless, once the slots are given.
            plain.ask("CLUSTER ADDSLOTSRANGE 0 16383", 1)?;
            plain.is_whole_cluster().then_some(())
        }
        Topology::Replica if is_replica => {
            // *5, $5, slave, and then its primary's address and the state of the link, each after its length.
            let role = plain.ask("ROLE", 9)?;
            role.iter().any(|line| line == "connected").then_some(())
        }
        _ => Some(()),
    }
}

/// Makes a cluster of nodes that do not know each other yet.
fn joined(nodes: Vec<Node>) -> Vec<Node> {
    const SLOTS: [&str; 3] = ["0 5460", "5461 10922", "10923 16383"];
    for (at, (node, slots)) in nodes.iter().zip(SLOTS).enumerate() {
        told(node, &format!("CLUSTER SET-CONFIG-EPOCH {}", at + 1));
        told(node, &format!("CLUSTER ADDSLOTSRANGE {slots}"));
        if at > 0 {
            meets(node, &nodes[0]);
        }
    }
    let is_whole = |node: &Node| Plain::connect(node.port).is_some_and(|mut plain| plain.is_whole_cluster());
    let whole = poll_blocking(MEETING_TIMEOUT, || nodes.iter().all(is_whole).then_some(()));
    assert!(whole.is_some(), "three nodes make no cluster");
    nodes
}

/// Makes a cluster of two: one node owns all slots, the other one follows it.
fn paired(primary: &Node, replica: &Node) {
    told(primary, "CLUSTER ADDSLOTSRANGE 0 16383");
    meets(replica, primary);
    let id = Plain::connect(primary.port).and_then(|mut plain| plain.ask("CLUSTER MYID", 2)?.pop());
    let follow = format!("CLUSTER REPLICATE {}", id.expect("a node's id"));
    // Refused until it knows that id.
    let knows = poll_blocking(MEETING_TIMEOUT, || {
        let answer = Plain::connect(replica.port)?.ask(&follow, 1)?.pop()?;
        (answer == "+OK").then_some(())
    });
    assert!(knows.is_some(), "two nodes do not meet");
    let follows = poll_blocking(MEETING_TIMEOUT, || {
        let role = Plain::connect(replica.port)?.ask("ROLE", 9)?;
        role.iter().any(|line| line == "connected").then_some(())
    });
    assert!(follows.is_some(), "one node does not follow the other");
    let is_whole = |node: &Node| Plain::connect(node.port).is_some_and(|mut plain| plain.is_whole_cluster());
    let whole = poll_blocking(MEETING_TIMEOUT, || (is_whole(primary) && is_whole(replica)).then_some(()));
    assert!(whole.is_some(), "two nodes make no cluster");
}

fn told(node: &Node, command: &str) {
    let answer = Plain::connect(node.port).and_then(|mut plain| plain.ask(command, 1));
    assert_eq!(answer, Some(vec!["+OK".to_owned()]), "{command}");
}

fn meets(node: &Node, other: &Node) {
    let bus = Plain::connect(other.port).and_then(|mut plain| plain.ask("CONFIG GET cluster-port", 5)?.pop());
    let bus = bus.expect("the port of the cluster's bus");
    told(node, &format!("CLUSTER MEET 127.0.0.1 {} {bus}", other.port));
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

    fn is_whole_cluster(&mut self) -> bool {
        self.ask("CLUSTER INFO", 2)
            .and_then(|mut lines| lines.pop())
            .is_some_and(|state| state == "cluster_state:ok")
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
