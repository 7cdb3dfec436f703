//! Redis and PostgreSQL as child processes under the data folder. They are out of Ctrl-C's reach, so that the
//! server can stop them last, and end with the server however it ends.

use std::fs::{self, File};
use std::io::ErrorKind;
use std::net::TcpListener;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, chown};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use tokio::net::TcpStream;
use tokio::process::{Child, ChildStdin, Command};

/// The owner of the database of an own PostgreSQL.
const DATABASE_USER: &str = "jari";
/// PostgreSQL refuses to run as root; its package makes this user.
const SERVER_USER: &str = "postgres";
/// How long a service may take to stop.
const STOP_TIMEOUT: Duration = Duration::from_secs(20);
/// Between two looks whether a service is ready.
const POLL_INTERVAL: Duration = Duration::from_millis(30);

/// Runs a program and sends it the given signal when standard input closes. Only this process holds the other end,
/// so it closes however this process ends, by SIGKILL as well.
const KEEPER: &str = r#"
signal=$1
shift
exec 3<&0
"$@" </dev/null 3<&- &
service=$!
{ read -r _ <&3; kill -s "$signal" "$service"; } 2>/dev/null &
lifeline=$!
wait "$service"
code=$?
kill "$lifeline" 2>/dev/null
exit "$code"
"#;

/// A running child.
pub(crate) struct Service {
    name: &'static str,
    keeper: Child,
    lifeline: Option<ChildStdin>,
}

impl Service {
    async fn spawn(name: &'static str, signal: &str, program: &[String], log: &Path) -> anyhow::Result<Self> {
        let log = File::options().create(true).append(true).open(log)?;
        alone(name, &log).await?;
        let mut command = Command::new("sh");
        command.args(["-c", KEEPER, "keeper", signal]).args(program);
        command.stdin(Stdio::piped()).stdout(log.try_clone()?).stderr(log).process_group(0);
        let mut keeper = command.spawn().with_context(|| format!("cannot start {name}"))?;
        let lifeline = keeper.stdin.take();
        Ok(Self { name, keeper, lifeline })
    }

    /// Its name, once it has ended by itself.
    pub(crate) async fn wait(&mut self) -> &'static str {
        let _ = self.keeper.wait().await;
        self.name
    }

    /// End it and wait until it has.
    pub(crate) async fn stop(mut self) {
        drop(self.lifeline.take());
        if tokio::time::timeout(STOP_TIMEOUT, self.keeper.wait()).await.is_err() {
            tracing::warn!(name = self.name, "does not stop");
            let _ = self.keeper.kill().await;
        }
    }

    /// Wait until `is_ready`, or say why it never will be.
    async fn ready(
        &mut self,
        timeout: Duration,
        log: &Path,
        is_ready: impl AsyncFn() -> bool,
    ) -> anyhow::Result<()> {
        let start = Instant::now();
        while !is_ready().await {
            let ended = self.keeper.try_wait()?.is_some();
            if ended || start.elapsed() > timeout {
                bail!("{} does not start; its log: {}", self.name, log.display());
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
        Ok(())
    }
}

/// Wait until the service of an earlier start has ended: one that was killed a moment ago leaves its services
/// ending. A service keeps the lock on its log for as long as it or its keeper runs, as its output is the locked file.
async fn alone(name: &str, log: &File) -> anyhow::Result<()> {
    let start = Instant::now();
    while log.try_lock().is_err() {
        if start.elapsed() > STOP_TIMEOUT {
            bail!("the {name} of an earlier start does not end");
        }
        tokio::time::sleep(POLL_INTERVAL).await;
    }
    Ok(())
}

/// A port that was free a moment ago.
fn free_port() -> anyhow::Result<u16> {
    Ok(TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port())
}

/// The data folder's Redis, append-only file on.
pub(crate) async fn redis(data: &Path, timeout: Duration) -> anyhow::Result<(Service, String)> {
    let folder = data.join("redis");
    private_folder(&folder)?;
    let (port, log) = (free_port()?, data.join("redis.log"));
    let program = program("redis-server", &[])?;
    let settings = format!(
        "--bind 127.0.0.1 --port {port} --appendonly yes --maxmemory-policy noeviction --daemonize no"
    );
    let mut arguments = vec![program.display().to_string()];
    arguments.extend(settings.split(' ').map(str::to_owned));
    // An empty value turns snapshots off: the append-only file is what a restart reads.
    arguments.extend(["--save".to_owned(), String::new(), "--dir".to_owned(), folder.display().to_string()]);
    let mut service = Service::spawn("redis-server", "TERM", &arguments, &log).await?;
    let url = format!("redis://127.0.0.1:{port}/");
    let store = store::Store::new(&store::StoreConfig::new(&url, false))?;
    // Asked only once it listens: until then every question would be a warning in the log.
    let answers =
        async || TcpStream::connect(("127.0.0.1", port)).await.is_ok() && store.ping().await.is_ok();
    service.ready(timeout, &log, answers).await?;
    Ok((service, url))
}

/// The data folder's PostgreSQL.
pub(crate) async fn postgres(data: &Path, timeout: Duration) -> anyhow::Result<(Service, String)> {
    let user = ServerUser::find()?;
    let folder = user.folder(data)?;
    let (port, log) = (free_port()?, data.join("postgres.log"));
    let cluster = folder.join("data");
    if !cluster.join("PG_VERSION").exists() {
        initialise(&user, &cluster).await?;
    }
    let mut arguments = user.prefix()?;
    arguments.push(binary("postgres")?.display().to_string());
    arguments.extend(["-D".to_owned(), cluster.display().to_string(), "-k".to_owned(), String::new()]);
    arguments.extend(["-h", "127.0.0.1", "-p", &port.to_string()].map(str::to_owned));
    // INT is PostgreSQL's fast shutdown.
    let mut service = Service::spawn("postgres", "INT", &arguments, &log).await?;
    let status = cluster.join("postmaster.pid");
    service.ready(timeout, &log, async || is_postgres_ready(&status, port)).await?;
    Ok((service, format!("postgres://{DATABASE_USER}@127.0.0.1:{port}/postgres")))
}

/// PostgreSQL writes its port as the fourth line of this file and `ready` as the eighth; `pg_ctl` reads it too.
fn is_postgres_ready(status: &Path, port: u16) -> bool {
    let text = fs::read_to_string(status).unwrap_or_default();
    let line = |at: usize| text.lines().nth(at).map(str::trim);
    line(3) == Some(&port.to_string()) && line(7) == Some("ready")
}

async fn initialise(user: &ServerUser, cluster: &Path) -> anyhow::Result<()> {
    let mut arguments = user.prefix()?;
    arguments.push(binary("initdb")?.display().to_string());
    arguments.extend(["-D".to_owned(), cluster.display().to_string()]);
    // It listens on 127.0.0.1 alone, for whoever works on this machine.
    arguments
        .extend(["-U", DATABASE_USER, "-A", "trust", "--locale=C", "--encoding=UTF8"].map(str::to_owned));
    let output =
        Command::new(&arguments[0]).args(&arguments[1..]).output().await.context("cannot run initdb")?;
    if !output.status.success() {
        bail!("initdb failed: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(())
}

/// Who runs PostgreSQL: whoever runs this, or, as that may not be root, the user its package makes.
enum ServerUser {
    Same,
    Other { user: u32, group: u32 },
}

impl ServerUser {
    fn find() -> anyhow::Result<Self> {
        if fs::metadata("/proc/self").map_or(1, |process| process.uid()) != 0 {
            return Ok(Self::Same);
        }
        let id = |which: &str| -> anyhow::Result<u32> {
            let output = std::process::Command::new("id").args([which, SERVER_USER]).output()?;
            let text = String::from_utf8_lossy(&output.stdout);
            text.trim().parse().with_context(|| format!("as root, PostgreSQL needs a user {SERVER_USER}"))
        };
        Ok(Self::Other { user: id("-u")?, group: id("-g")? })
    }

    /// What makes a command theirs: `setpriv` becomes the program itself.
    fn prefix(&self) -> anyhow::Result<Vec<String>> {
        let Self::Other { user, group } = self else { return Ok(Vec::new()) };
        let setpriv = program("setpriv", &[])?.display().to_string();
        Ok(vec![setpriv, format!("--reuid={user}"), format!("--regid={group}"), "--init-groups".to_owned()])
    }

    /// A folder of theirs: under the data folder where they can reach it, in /var/tmp where it lies in a home that
    /// they cannot enter.
    fn folder(&self, data: &Path) -> anyhow::Result<PathBuf> {
        let Self::Other { user, group } = self else {
            let folder = data.join("postgres");
            private_folder(&folder)?;
            return Ok(folder);
        };
        let reachable = data.ancestors().all(|folder| {
            fs::metadata(folder).is_ok_and(|folder| folder.mode() & 0o001 != 0 || folder.uid() == *user)
        });
        let folder = if reachable {
            data.join("postgres")
        } else {
            let metadata = fs::metadata(data)?;
            PathBuf::from(format!("/var/tmp/jari-postgres-{:x}-{:x}", metadata.dev(), metadata.ino()))
        };
        private_folder(&folder)?;
        let owner = fs::metadata(&folder)?.uid();
        if owner != 0 && owner != *user {
            bail!("{} belongs to somebody else", folder.display());
        }
        chown(&folder, Some(*user), Some(*group))?;
        Ok(folder)
    }
}

fn private_folder(path: &Path) -> anyhow::Result<()> {
    match fs::DirBuilder::new().mode(0o700).create(path) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => {
            Err(error).with_context(|| format!("cannot make {}", path.display()))
        }
        _ => Ok(()),
    }
}

/// A program of PostgreSQL: on PATH, or where Debian and Homebrew keep it, the newest first.
fn binary(name: &str) -> anyhow::Result<PathBuf> {
    let mut folders = Vec::new();
    for (parent, below) in [("/usr/lib/postgresql", "bin"), ("/opt/homebrew/opt", "bin")] {
        let entries = fs::read_dir(parent).into_iter().flatten().flatten();
        folders.extend(entries.map(|entry| entry.path().join(below)));
    }
    folders.sort();
    folders.reverse();
    program(name, &folders)
}

fn program(name: &str, elsewhere: &[PathBuf]) -> anyhow::Result<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    // A wrapper on PATH may ask for what this process cannot give; the package's own folder comes first.
    let candidates = elsewhere.iter().cloned().chain(std::env::split_paths(&path));
    let found = candidates.map(|folder| folder.join(name)).find(|candidate| candidate.is_file());
    found.with_context(|| format!("{name} is not installed: infra/local/setup.sh installs it"))
}
