//! A PostgreSQL server of this test binary's own, with a fresh database for each test.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use records::{Records, RecordsConfig};
use tokio_postgres::{Client, NoTls};

/// Ends the server when the test binary ends, however it ends: reading its standard input comes to an end then.
const GUARDED_SERVER: &str = r#"
"$0/postgres" -D "$1/data" -k "" -h 127.0.0.1 -p "$2" -F \
    -c ssl=on -c ssl_cert_file="$1/server.pem" -c ssl_key_file="$1/server.key" \
    -c full_page_writes=off -c synchronous_commit=off -c max_connections=50 >"$1/log" 2>&1 &
server=$!
read -r _
kill -QUIT "$server"
wait "$server"
rm -rf "$1"
"#;

struct Server {
    port: u16,
    // Held open for as long as the tests run.
    _guard: Child,
}

/// A database with every migration applied.
pub(crate) struct Database {
    pub(crate) url: String,
    pub(crate) records: Records,
}

impl Database {
    pub(crate) async fn fresh() -> Self {
        let url = Self::empty().await;
        records::migrate(&RecordsConfig::new(&url)).await.unwrap();
        let records = Records::open(&RecordsConfig::new(&url)).unwrap();
        Self { url, records }
    }

    /// The URL of a new database without tables.
    pub(crate) async fn empty() -> String {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        static SERVER: OnceLock<Server> = OnceLock::new();
        let port = SERVER.get_or_init(Server::start).port;
        let name = format!("test_{}", NUMBER.fetch_add(1, Ordering::Relaxed));
        let url = |database: &str| format!("postgres://postgres@127.0.0.1:{port}/{database}");
        connect(&url("postgres")).await.batch_execute(&format!("create database {name}")).await.unwrap();
        url(&name)
    }

    pub(crate) async fn client(&self) -> Client {
        connect(&self.url).await
    }

    pub(crate) async fn count(&self, what: &str) -> usize {
        let row = self.client().await.query_one(&format!("select count(*) from {what}"), &[]).await;
        usize::try_from(row.unwrap().get::<_, i64>(0)).unwrap()
    }
}

pub(crate) async fn connect(url: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

impl Server {
    fn start() -> Self {
        let programs = programs();
        let folder = std::env::temp_dir().join(format!("jari-records-{}", std::process::id()));
        std::fs::create_dir(&folder).unwrap();
        let root = is_root();
        for file in ["server.pem", "server.key"] {
            std::fs::copy(certificate(file), folder.join(file)).unwrap();
        }
        // PostgreSQL takes no key that others may read.
        std::fs::set_permissions(folder.join("server.key"), Permissions::from_mode(0o600)).unwrap();
        if root {
            run(Command::new("chown").args(["-R", "postgres"]).arg(&folder));
        }
        let mut initdb = as_postgres(root, &programs.join("initdb"));
        run(initdb
            .args(["--no-sync", "-A", "trust", "-U", "postgres", "-E", "UTF8", "--locale=C", "-D"])
            .arg(folder.join("data")));
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let mut server = as_postgres(root, Path::new("sh"));
        server.args(["-c", GUARDED_SERVER]).arg(&programs).arg(&folder).arg(port.to_string());
        let guard = server.stdin(Stdio::piped()).spawn().unwrap();
        let deadline = Instant::now() + Duration::from_mins(1);
        let ready = || {
            let mut ready = Command::new(programs.join("pg_isready"));
            ready.args(["-q", "-h", "127.0.0.1", "-p", &port.to_string()]).status().unwrap().success()
        };
        while !ready() {
            assert!(Instant::now() < deadline, "{}", std::fs::read_to_string(folder.join("log")).unwrap());
            std::thread::sleep(Duration::from_millis(50));
        }
        Self { port, _guard: guard }
    }
}

/// A certificate or key of the tests: the server's, and whom to trust for it.
pub(crate) fn certificate(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/support/tls").join(file)
}

/// Where the server's programs are: on the path, or where Debian puts them, the newest first.
fn programs() -> PathBuf {
    let on_path = std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default()).collect::<Vec<_>>();
    let mut debian: Vec<PathBuf> = std::fs::read_dir("/usr/lib/postgresql")
        .map(|versions| versions.map(|version| version.unwrap().path().join("bin")).collect())
        .unwrap_or_default();
    debian.sort();
    let mut folders = debian.into_iter().rev().chain(on_path);
    let complete = |folder: &PathBuf| {
        ["postgres", "initdb", "pg_isready"].iter().all(|program| folder.join(program).exists())
    };
    folders.find(complete).expect("PostgreSQL's server programs")
}

fn is_root() -> bool {
    Command::new("id").arg("-u").output().unwrap().stdout == b"0\n"
}

/// PostgreSQL refuses to run as root.
fn as_postgres(root: bool, program: &Path) -> Command {
    if root {
        let mut command = Command::new("runuser");
        command.args(["-u", "postgres", "--"]).arg(program);
        command
    } else {
        Command::new(program)
    }
}

fn run(command: &mut Command) {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}
