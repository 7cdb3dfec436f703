//! Child processes that never outlive their test.

use std::fs::{self, DirBuilder, File};
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::time::Duration;

use crate::wait::poll_blocking;

/// Tries to start a server before giving up; each takes another port.
const ATTEMPTS: usize = 5;
const READY_TIMEOUT: Duration = Duration::from_secs(30);
const STOP_TIMEOUT: Duration = Duration::from_secs(10);

/// Runs a server, ends it when the standard input closes, and then removes the server's folder, unless that is kept.
///
/// The input is a pipe that only the test process holds, so it closes however that process ends, also by SIGKILL.
/// A parent-death signal would not do: it comes when the *thread* that started the child ends, which for a
/// shared server is some test's.
const KEEPER: &str = r#"
folder=$1 signal=$2
shift 2
exec 3<&0
"$@" </dev/null 3<&- &
server=$!
{
    read -r _ <&3
    kill -s "$signal" "$server"
    tenths=0
    while [ "$tenths" -lt 50 ] && kill -s 0 "$server"; do
        sleep 0.1
        tenths=$((tenths + 1))
    done
    kill -s KILL "$server"
} 2>/dev/null &
lifeline=$!
wait "$server"
code=$?
kill "$lifeline" 2>/dev/null
[ -e "$folder/kept" ] || rm -rf -- "$folder"
exit "$code"
"#;

/// While this lies in a server's folder, the folder outlives the server.
const KEPT: &str = "kept";

/// A fresh folder, readable by its owner only, and a log in it.
#[derive(Debug)]
pub(crate) struct Folder {
    path: PathBuf,
}

impl Folder {
    /// Under the system's folder for temporary files: the path must be short enough for a Unix socket and open
    /// to the user that PostgreSQL runs as.
    fn new(name: &str) -> Self {
        let unique = format!("jari-test-{name}-{}-{:08x}", std::process::id(), fastrand::u32(..));
        let path = std::env::temp_dir().join(unique);
        DirBuilder::new().mode(0o700).create(&path).expect("a folder for temporary files");
        Self { path }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    fn log_path(&self) -> PathBuf {
        self.path.join("log")
    }

    /// What the server has said so far.
    pub(crate) fn log(&self) -> String {
        fs::read(self.log_path())
            .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
            .unwrap_or_default()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // Gone already if a server lived in it.
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// What to run, and the signal that ends it without loose ends. Only program and arguments of the command count.
#[derive(Debug)]
pub(crate) struct Recipe {
    pub(crate) command: Command,
    pub(crate) stop_signal: &'static str,
}

/// A running child. Dropping it ends it and removes its folder.
#[derive(Debug)]
pub(crate) struct Server {
    folder: Folder,
    recipe: Recipe,
    keeper: Child,
    lifeline: Option<ChildStdin>,
}

impl Server {
    /// Starts a server and waits until `ready` finds it answering, which is then returned with it. `prepare`
    /// chooses ports and fills the folder, anew for each attempt. `ready` must tell this server from a stranger
    /// that took the same port first.
    pub(crate) fn start<P, T>(
        name: &str,
        mut prepare: impl FnMut(&Folder) -> (Recipe, P),
        mut ready: impl FnMut(&Folder, &P) -> Option<T>,
    ) -> (Self, P, T) {
        let mut said = String::new();
        for _ in 0..ATTEMPTS {
            let folder = Folder::new(name);
            let (recipe, place) = prepare(&folder);
            let mut server = Self::spawn(folder, recipe);
            let found = poll_blocking(READY_TIMEOUT, || {
                if server.exited().is_some() {
                    return Some(None);
                }
                said = server.folder.log();
                ready(&server.folder, &place).map(Some)
            });
            if let Some(Some(found)) = found {
                return (server, place, found);
            }
        }
        panic!("{name} did not start in {ATTEMPTS} attempts; the last one said:\n{said}");
    }

    fn spawn(folder: Folder, recipe: Recipe) -> Self {
        let (keeper, lifeline) = keep(&folder, &recipe);
        Self { folder, recipe, keeper, lifeline }
    }

    /// Ends it by its signal. What lies in its folder stays for [`Server::start_again`].
    pub(crate) fn stop(&mut self) {
        self.keep_folder()();
        self.end();
    }

    /// Keeps its folder beyond its end, from wherever that is called, until [`Server::start_again`].
    pub(crate) fn keep_folder(&self) -> impl Fn() + Send + 'static {
        let kept = self.folder.path.join(KEPT);
        move || drop(File::create(&kept).expect("a file in the server's folder"))
    }

    /// Starts what was stopped, as it was started and where it lies, and waits until `ready` finds it answering.
    pub(crate) fn start_again<T>(&mut self, mut ready: impl FnMut(&Folder) -> Option<T>) -> T {
        let found = poll_blocking(READY_TIMEOUT, || {
            if self.exited().is_some() {
                (self.keeper, self.lifeline) = keep(&self.folder, &self.recipe);
            }
            ready(&self.folder)
        });
        let found = found.unwrap_or_else(|| panic!("no second start; it said:\n{}", self.folder.log()));
        fs::remove_file(self.folder.path.join(KEPT)).expect("the folder was kept");
        found
    }

    fn end(&mut self) {
        drop(self.lifeline.take());
        let stopped = poll_blocking(STOP_TIMEOUT, || self.exited());
        if stopped.is_none() {
            let _ = self.keeper.kill();
            let _ = self.keeper.wait();
        }
    }

    fn exited(&mut self) -> Option<ExitStatus> {
        self.keeper.try_wait().expect("the state of a child process")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.end();
    }
}

fn keep(folder: &Folder, recipe: &Recipe) -> (Child, Option<ChildStdin>) {
    let log = File::options().create(true).append(true).open(folder.log_path());
    let log = log.expect("a log in the server's folder");
    let mut command = Command::new("sh");
    command.arg("-c").arg(KEEPER).arg("keeper").arg(&folder.path).arg(recipe.stop_signal);
    command.arg(recipe.command.get_program()).args(recipe.command.get_args()).stdin(Stdio::piped());
    command.stdout(log.try_clone().expect("the log once more")).stderr(log);
    // Ctrl-C in a terminal goes to the tests; the server ends by their end.
    let mut keeper = command.process_group(0).spawn().expect("sh starts a server");
    let lifeline = keeper.stdin.take();
    (keeper, lifeline)
}

/// A program on PATH or in one of the folders where systems keep it off PATH.
pub(crate) fn program(name: &str, elsewhere: &[PathBuf]) -> PathBuf {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let candidates = std::env::split_paths(&path).chain(elsewhere.iter().cloned());
    let found = candidates.map(|folder| folder.join(name)).find(|candidate| candidate.is_file());
    found.unwrap_or_else(|| {
        panic!("{name} is not installed; infra/local/setup.sh test installs what tests need")
    })
}
