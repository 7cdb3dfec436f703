//! `jari` as a process, and a system that it serves from a folder of its own.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

/// A first start makes a PostgreSQL cluster, on a machine that other tests keep busy.
const START_TIMEOUT: Duration = Duration::from_secs(90);

/// Interrupts the server when standard input closes, which it does however the test ends.
const KEEPER: &str = r#"
exec 3<&0
"$@" </dev/null 3<&- &
server=$!
read -r _ <&3
kill -s INT "$server"
wait "$server"
"#;

/// `jari` with these arguments, to its end.
pub(crate) fn jari(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_jari"));
    command.args(arguments).stdin(Stdio::null()).output().expect("jari runs")
}

/// The folder in which `jari` lies, for PATH.
pub(crate) fn jari_folder() -> String {
    let folder = Path::new(env!("CARGO_BIN_EXE_jari")).parent().expect("a folder");
    folder.display().to_string()
}

/// Standard output as text.
pub(crate) fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Standard error as text.
pub(crate) fn complained(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// A folder that goes with the value.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new(name: &str) -> Self {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).expect("a clock").as_nanos();
        let path = std::env::temp_dir().join(format!("jari-cli-{name}-{}-{since:x}", std::process::id()));
        fs::create_dir(&path).expect("a folder for temporary files");
        Self(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// A file in it, as an argument.
    pub(crate) fn file(&self, name: &str) -> String {
        self.0.join(name).display().to_string()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A system that serves one open sale.
pub(crate) struct Served {
    pub(crate) folder: Folder,
    keeper: Child,
    lifeline: Option<ChildStdin>,
}

impl Served {
    /// With `sale`, which is open at once.
    pub(crate) fn with(name: &str, sale: &Value) -> Self {
        let folder = Folder::new(name);
        let file = folder.file("sale.json");
        fs::write(&file, sale.to_string()).expect("a sale's file");
        let log = fs::File::create(folder.file("serve.log")).expect("a log");
        let mut command = Command::new("sh");
        command.args(["-c", KEEPER, "keeper", env!("CARGO_BIN_EXE_jari"), "serve", "--port", "0", "--sale"]);
        command.arg(format!("{file}@now")).arg("--data").arg(folder.file("data")).stdin(Stdio::piped());
        command.stdout(log.try_clone().expect("the log once more")).stderr(log);
        let mut keeper = command.spawn().expect("sh starts a server");
        let lifeline = keeper.stdin.take();
        let served = Self { folder, keeper, lifeline };
        let start = Instant::now();
        while !Path::new(&served.folder.file("data/serve.json")).exists() {
            assert!(start.elapsed() < START_TIMEOUT, "{}", served.log());
            sleep(Duration::from_millis(50));
        }
        served
    }

    fn log(&self) -> String {
        fs::read_to_string(self.folder.file("serve.log")).unwrap_or_default()
    }

    /// How it describes itself.
    pub(crate) fn running(&self) -> Value {
        let text = fs::read_to_string(self.folder.file("data/serve.json")).expect("a description");
        serde_json::from_str(&text).expect("JSON")
    }

    /// `jari` about this system.
    pub(crate) fn jari(&self, arguments: &[&str]) -> Output {
        let data = self.folder.file("data");
        jari(&[arguments, &["--data", &data]].concat())
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        drop(self.lifeline.take());
        let _ = self.keeper.wait();
    }
}

/// A sale of one train: named seats that are too few, and places for everybody.
pub(crate) fn sale(per_second: u32, seats: &str, places: u32) -> Value {
    json!({
        "eventId": "train-1", "title": "A train", "anonymous": "accepted",
        "opensAt": "2026-09-01T07:00:00+09:00", "closesAt": "2026-09-02T07:00:00+09:00",
        "admission": { "perSecond": per_second, "maxActive": 2_000, "activeSeconds": 30, "claimSeconds": 15 },
        "holdSeconds": 30, "limitPerAccount": 4, "joinsPerAddressPerSecond": 100_000,
        "default": { "offeringId": "T1", "sectionId": "G" },
        "offerings": [
            { "id": "T1", "date": "2026-09-24", "sections": [
                { "id": "A", "name": "일반실", "price": 1_000, "seats": [{ "rows": seats, "seats": "A-D" }] },
                { "id": "G", "name": "입석", "price": 500, "capacity": places } ] },
            { "id": "T2", "date": "2026-09-24", "sections": [
                { "id": "A", "name": "일반실", "price": 1_000, "seats": [{ "rows": seats, "seats": "A-D" }] } ] },
        ],
    })
}
