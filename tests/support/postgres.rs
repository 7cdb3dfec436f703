//! PostgreSQL.

use std::fs;
use std::os::unix::fs::{MetadataExt, chown};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use tokio_postgres::{Client, NoTls};

use crate::given;
use crate::network::free_port;
use crate::process::{Folder, Recipe, Server, program};

/// The superuser of a server that we start.
const USER: &str = "jari";
/// PostgreSQL refuses to run as root; packages make this user for it.
const SERVER_USER: &str = "postgres";
/// Faster, and nothing is lost that a test would miss: the folder goes with the server. A commit is with the operating
/// system before it is answered, so that a server which is stopped at once has it when it starts again.
const SETTINGS: [&str; 7] = [
    "fsync=off",
    "full_page_writes=off",
    "wal_level=minimal",
    "max_wal_senders=0",
    "max_connections=300",
    "shared_buffers=64MB",
    "timezone=UTC",
];

/// A running PostgreSQL.
#[derive(Debug)]
pub struct Postgres {
    /// Up to and with the slash before the database's name.
    base_url: String,
    first_database: String,
    /// None when the environment named it.
    server: Option<Server>,
}

impl Postgres {
    /// A PostgreSQL for the caller alone. It trusts whoever connects from this machine.
    pub fn start() -> Self {
        let (server, port, ()) = Server::start("postgres", prepare, |folder, _| ready(folder));
        let base_url = format!("postgres://{USER}@127.0.0.1:{port}/");
        Self { base_url, first_database: "postgres".to_owned(), server: Some(server) }
    }

    /// The PostgreSQL that all tests of this process share; each takes a [`Postgres::database`].
    /// `JARI_TEST_POSTGRES_URL` names a running one.
    pub fn shared() -> &'static Self {
        static SHARED: OnceLock<Postgres> = OnceLock::new();
        SHARED.get_or_init(|| match given("JARI_TEST_POSTGRES_URL") {
            Some(url) => Self::at(&url),
            None => Self::start(),
        })
    }

    fn at(url: &str) -> Self {
        let split = url.rsplit_once('/').filter(|(_, database)| !database.is_empty());
        let (base, database) = split.unwrap_or_else(|| panic!("{url} names no database"));
        Self { base_url: format!("{base}/"), first_database: database.to_owned(), server: None }
    }

    /// Ends a PostgreSQL of the caller's at once; what it has written stays.
    pub fn stop(&mut self) {
        self.server.as_mut().expect("a PostgreSQL of the caller's").stop();
    }

    /// Starts it again, on its port and with its files, and waits until it serves.
    pub fn start_again(&mut self) {
        self.server.as_mut().expect("a PostgreSQL of the caller's").start_again(ready);
    }

    /// The database that is there from the start: `postgres://USER@127.0.0.1:PORT/DATABASE`.
    pub fn url(&self) -> String {
        self.url_of(&self.first_database)
    }

    /// The URL of a new, empty database.
    pub async fn database(&self) -> String {
        let name = format!("test_{:016x}", fastrand::u64(..));
        let client = connect(&self.url()).await;
        let made = client.batch_execute(&format!("CREATE DATABASE {name}")).await;
        made.expect("PostgreSQL makes a database");
        self.url_of(&name)
    }

    /// A connection to the database with that URL.
    pub async fn connection(&self, url: &str) -> Client {
        connect(url).await
    }

    fn url_of(&self, database: &str) -> String {
        format!("{}{database}", self.base_url)
    }
}

async fn connect(url: &str) -> Client {
    let (client, connection) =
        tokio_postgres::connect(url, NoTls).await.expect("PostgreSQL takes a connection");
    // Ends when the client is dropped.
    tokio::spawn(connection);
    client
}

fn prepare(folder: &Folder) -> (Recipe, u16) {
    let (port, data) = (free_port(), folder.path().join("data"));
    let binaries = elsewhere();
    let owner = ServerUser::of(folder.path());
    initialise(owner.command(&program("initdb", &binaries)), &data);
    let mut command = owner.command(&program("postgres", &binaries));
    command.arg("-D").arg(data).arg("-k").arg(folder.path());
    command.args(format!("-h 127.0.0.1 -p {port}").split(' '));
    command.args(SETTINGS.iter().flat_map(|setting| ["-c", setting]));
    // An immediate shutdown: killed outright it would leave its shared memory behind.
    (Recipe { command, stop_signal: "QUIT" }, port)
}

fn initialise(mut initdb: Command, data: &Path) {
    initdb.arg("-D").arg(data).args([
        "-U",
        USER,
        "-A",
        "trust",
        "--no-sync",
        "--locale=C",
        "--encoding=UTF8",
    ]);
    let output = initdb.output().expect("initdb runs");
    assert!(output.status.success(), "initdb failed: {}", String::from_utf8_lossy(&output.stderr));
}

/// Who runs the server: whoever runs the test, or, as that may not be root, the user its package makes.
enum ServerUser {
    Same,
    Other { user: u32, group: u32 },
}

impl ServerUser {
    /// The folder, fresh and the test's own, becomes theirs.
    fn of(folder: &Path) -> Self {
        if fs::metadata(folder).expect("the server's folder").uid() != 0 {
            return Self::Same;
        }
        let (user, group) = (id("-u"), id("-g"));
        chown(folder, Some(user), Some(group)).expect("root gives a folder away");
        Self::Other { user, group }
    }

    /// `setpriv` becomes the program itself, so a signal to its process is a signal to PostgreSQL.
    fn command(&self, program_path: &Path) -> Command {
        let Self::Other { user, group } = self else { return Command::new(program_path) };
        let mut command = Command::new(program("setpriv", &[]));
        command.arg(format!("--reuid={user}")).arg(format!("--regid={group}")).arg("--init-groups");
        command.arg(program_path);
        command
    }
}

fn id(which: &str) -> u32 {
    let output = Command::new("id").arg(which).arg(SERVER_USER).output().expect("id runs");
    let id = String::from_utf8_lossy(&output.stdout).trim().parse().ok();
    id.unwrap_or_else(|| panic!("as root, PostgreSQL needs a user {SERVER_USER}; its package makes one"))
}

/// Where Debian and Homebrew keep what they do not put on PATH, the newest first.
fn elsewhere() -> Vec<PathBuf> {
    let mut folders = Vec::new();
    for (parent, below) in [("/usr/lib/postgresql", "bin"), ("/opt/homebrew/opt", "bin")] {
        let entries = fs::read_dir(parent).into_iter().flatten().flatten();
        folders.extend(entries.map(|entry| entry.path().join(below)));
    }
    folders.sort();
    folders.reverse();
    folders
}

/// PostgreSQL writes `ready` as the eighth line of this file, as `pg_ctl` reads it too.
fn ready(folder: &Folder) -> Option<()> {
    let status = fs::read_to_string(folder.path().join("data/postmaster.pid")).ok()?;
    (status.lines().nth(7)?.trim() == "ready").then_some(())
}
