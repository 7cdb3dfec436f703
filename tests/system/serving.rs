//! A served system as a child process, with a data folder of its own.

use std::fs::{self, File};
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::time::Duration;

use admin::{AdminState, AuditReport, LocalDeadLetters, Reply};
use bootstrap::config::MasterKeys;
use domain::{EventId, Millis};
use records::{Records, RecordsConfig};
use serde_json::{Value, json};
use server::Running;
use store::{Store, StoreConfig};
use support::{Postgres, fresh_event, sale, wait_until};

use crate::http::Caller;

/// A first start makes a PostgreSQL cluster, on a machine that other tests keep busy.
const START_TIMEOUT: Duration = Duration::from_secs(90);
/// Requests get 10 s to end, each service 20 s.
pub(crate) const STOP_TIMEOUT: Duration = Duration::from_secs(50);

/// A folder with a sale's file and, once it was served, a system's data. Removed when dropped.
pub(crate) struct Folder {
    path: PathBuf,
    pub(crate) event: EventId,
}

impl Folder {
    /// With a sale that is open, as `change` makes it.
    pub(crate) fn with_sale(change: impl FnOnce(&mut Value)) -> Self {
        let event = fresh_event();
        let path = std::env::temp_dir().join(format!("jari-test-serve-{event}"));
        fs::create_dir(&path).expect("a folder for temporary files");
        let mut definition = sale(&event);
        let now = Millis::now().0;
        definition["opensAt"] = json!(now - 60_000);
        definition["closesAt"] = json!(now + 86_400_000);
        change(&mut definition);
        fs::write(path.join("sale.json"), definition.to_string()).expect("a sale's file");
        Self { path, event: event.parse().expect("an event id") }
    }

    /// Puts a file into the system's data folder before it is first served.
    pub(crate) fn put(&self, name: &str, text: &str) {
        fs::create_dir_all(self.data()).expect("a data folder");
        fs::write(self.data().join(name), text).expect("a file in the data folder");
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    fn data(&self) -> PathBuf {
        self.path.join("data")
    }

    /// The process, whose start may fail.
    pub(crate) fn spawn(&self, log: &str) -> Process {
        self.spawn_with(log, &[])
    }

    /// The process with more environment.
    pub(crate) fn spawn_with(&self, log: &str, variables: &[(&str, &str)]) -> Process {
        let program = std::env::current_exe().expect("the path of this test");
        let program =
            program.parent().and_then(Path::parent).expect("a target folder").join("examples/serve");
        assert!(program.is_file(), "{} is missing: cargo build -p tests --example serve", program.display());
        let log = self.path.join(log);
        let output = File::create(&log).expect("a log");
        let mut command = Command::new(program);
        command.arg(self.data()).arg(self.path.join("sale.json")).stdin(Stdio::piped());
        command.envs(variables.iter().copied());
        command.stdout(output.try_clone().expect("the log once more")).stderr(output);
        let mut child = command.spawn().expect("the server starts");
        let lifeline = child.stdin.take();
        Process { child, log, _lifeline: lifeline }
    }

    /// Serve, until the value is dropped at the latest.
    pub(crate) async fn serve(&self) -> Served {
        self.serve_with(&[]).await
    }

    /// Serve with more environment.
    pub(crate) async fn serve_with(&self, variables: &[(&str, &str)]) -> Served {
        let mut process = self.spawn_with("serve.log", variables);
        let running = self.running(&mut process).await;
        let caller = Caller::of(&running.url);
        assert_eq!(caller.get("/health").await.status, 200);
        let services = Services::of(&running).await;
        Served { process, caller, services, event: self.event.clone(), running, data: self.data() }
    }

    /// Waits until a process serves; how to find what it serves.
    pub(crate) async fn running(&self, process: &mut Process) -> Running {
        let path = Running::path(&self.data());
        let mut running = None;
        wait_until(START_TIMEOUT, "the system serves", async || {
            assert_eq!(process.exited(), None, "{}", process.said());
            let text = fs::read_to_string(&path).unwrap_or_default();
            running = serde_json::from_str::<Running>(&text).ok();
            running.as_ref().is_some_and(|running| running.pid == process.child.id())
        })
        .await;
        running.expect("the description of a running system")
    }

    /// A file of the data folder.
    pub(crate) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.data().join(name)).expect("a file in the data folder")
    }

    pub(crate) fn is_described(&self) -> bool {
        Running::path(&self.data()).exists()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// The process of a server.
pub(crate) struct Process {
    child: Child,
    log: PathBuf,
    /// The server ends when this closes.
    _lifeline: Option<ChildStdin>,
}

impl Process {
    pub(crate) fn exited(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().expect("the state of a child process")
    }

    pub(crate) fn said(&self) -> String {
        let mut said = String::new();
        let _ = File::open(&self.log).and_then(|mut file| file.read_to_string(&mut said));
        said
    }

    pub(crate) async fn ends(&mut self) -> ExitStatus {
        let mut status = None;
        wait_until(STOP_TIMEOUT, "the server ends", async || {
            status = self.exited();
            status.is_some()
        })
        .await;
        status.expect("the status of an ended process")
    }

    pub(crate) fn signal(&self, signal: &str) {
        assert!(signal_process(signal, self.child.id()), "the server is gone:\n{}", self.said());
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Whether that process was there to be signalled.
fn signal_process(signal: &str, pid: u32) -> bool {
    let mut kill = Command::new("kill");
    kill.arg("-s").arg(signal).arg(pid.to_string()).stderr(Stdio::null());
    kill.status().expect("kill runs").success()
}

/// The processes of a system's own Redis and PostgreSQL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Services {
    redis: u32,
    postgres: u32,
}

impl Services {
    async fn of(running: &Running) -> Self {
        let client = redis::Client::open(running.redis.as_str()).expect("a URL of Redis");
        let mut connection =
            client.get_multiplexed_async_connection().await.expect("Redis takes a connection");
        let information: String =
            redis::cmd("INFO").arg("server").query_async(&mut connection).await.expect("Redis answers");
        let redis = information.lines().find_map(|line| line.strip_prefix("process_id:")?.parse().ok());
        let client = Postgres::shared().connection(&running.database).await;
        let status = client.query_one("SELECT pg_read_file('postmaster.pid')", &[]).await;
        let status: String = status.expect("PostgreSQL answers").get(0);
        let postgres = status.lines().next().and_then(|line| line.parse().ok());
        Self { redis: redis.expect("a process id"), postgres: postgres.expect("a process id") }
    }

    pub(crate) fn are_gone(self) -> bool {
        [self.redis, self.postgres].into_iter().all(|pid| !signal_process("0", pid))
    }

    /// Waits until both have ended.
    pub(crate) async fn end(self) {
        wait_until(STOP_TIMEOUT, "Redis and PostgreSQL end", async || self.are_gone()).await;
    }
}

/// A system that serves.
pub(crate) struct Served {
    pub(crate) process: Process,
    pub(crate) caller: Caller,
    pub(crate) services: Services,
    pub(crate) event: EventId,
    running: Running,
    data: PathBuf,
}

impl Served {
    /// The address of every endpoint, and the issuer of access tokens.
    pub(crate) fn url(&self) -> &str {
        &self.running.url
    }

    /// Ctrl-C, and the server's end.
    pub(crate) async fn interrupt(mut self) {
        self.process.signal("INT");
        let status = self.process.ends().await;
        assert!(status.success(), "{status}: {}", self.process.said());
    }

    pub(crate) fn records(&self) -> Records {
        Records::open(&RecordsConfig::new(&self.running.database)).expect("a URL of PostgreSQL")
    }

    /// A connection to the system's Redis.
    pub(crate) async fn redis(&self) -> redis::aio::MultiplexedConnection {
        let client = redis::Client::open(self.running.redis.as_str()).expect("a URL of Redis");
        let patient = redis::AsyncConnectionConfig::new()
            .set_connection_timeout(Some(STOP_TIMEOUT))
            .set_response_timeout(Some(STOP_TIMEOUT));
        let connection = client.get_multiplexed_async_connection_with_config(&patient).await;
        connection.expect("Redis takes a connection")
    }

    /// `HOST:PORT` of every endpoint.
    pub(crate) fn address(&self) -> &str {
        self.running.url.trim_start_matches("http://")
    }

    /// The serving process.
    pub(crate) fn pid(&self) -> u32 {
        self.running.pid
    }

    pub(crate) async fn ask(&self, command: admin::Command) -> Reply {
        let store = Store::new(&StoreConfig::new(&self.running.redis, false)).expect("a URL of Redis");
        let master = MasterKeys::new(&self.running.master_key, None).expect("a master key");
        let letters = LocalDeadLetters::new(server::dead_letters(&self.data), self.records());
        let state = AdminState::new(store, self.records(), master).with_dead_letters(Box::new(letters));
        admin::admin(&state, command).await.expect("redis and PostgreSQL answer")
    }

    pub(crate) async fn audit(&self) -> AuditReport {
        let command = admin::Command::Audit {
            event: self.event.clone(),
            patience_seconds: 15,
            repair: false,
            by: "tests".to_owned(),
        };
        match self.ask(command).await {
            Reply::Audited(report) => report,
            other => panic!("{other:?}"),
        }
    }

    /// A new place: its token.
    pub(crate) async fn join(&self) -> String {
        let answer = self.caller.post("/api/queue/join", json!({})).await;
        answer.data()["token"].as_str().expect("a token").to_owned()
    }

    /// Waits, polling, until a token is let in.
    pub(crate) async fn let_in(&self, token: &str) {
        wait_until(Duration::from_secs(20), "a place is let in", async || {
            self.caller.get(&format!("/api/status/poll?token={token}")).await.data()["status"] == "ACTIVE"
        })
        .await;
    }

    /// A token in a live session.
    pub(crate) async fn active(&self) -> String {
        let token = self.join().await;
        self.let_in(&token).await;
        token
    }
}
