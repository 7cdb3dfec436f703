//! wrk before a served system, and what it says.

use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, ensure};

/// Connections of every load.
pub(crate) const CONNECTIONS: u32 = 64;

/// What is asked, a line a request: a path for GET, a body for POST to `path`.
pub(crate) struct Load {
    pub(crate) path: Option<&'static str>,
    pub(crate) lines: Vec<String>,
    /// Whether each line is good for one request only.
    pub(crate) once: bool,
}

/// What came of it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Came {
    pub(crate) requests: usize,
    pub(crate) a_second: f64,
    pub(crate) p99_ms: f64,
}

/// wrk goes through the lines in order, from the first again behind the last; where a pace is set each of its
/// connections waits so many milliseconds between two requests.
const SCRIPT: &str = r#"
local lines, at = {}, 0
for line in io.lines("LINES") do lines[#lines + 1] = line end
local headers = { ["content-type"] = "application/json" }
function request()
  at = at % #lines + 1
  if PATH then return wrk.format("POST", PATH, headers, lines[at]) end
  return wrk.format("GET", lines[at])
end
if PAUSE then
  function delay() return PAUSE end
end
function done(summary, latency)
  local failed = summary.errors
  io.write(string.format("CAME %d %d %d %d %d\n", summary.requests, summary.duration, failed.status,
    failed.connect + failed.read + failed.write + failed.timeout, latency:percentile(99)))
end
"#;

/// Send a load for so many seconds, as fast as it is answered or at `pace` a second.
pub(crate) fn send(
    folder: &Path,
    url: &str,
    load: &Load,
    seconds: u32,
    pace: Option<f64>,
) -> anyhow::Result<Came> {
    let (lines, script) = (folder.join("lines"), folder.join("load.lua"));
    std::fs::write(&lines, load.lines.join("\n"))?;
    let mut text = String::new();
    if let Some(path) = load.path {
        writeln!(text, "local PATH = \"{path}\"")?;
    }
    if let Some(pace) = pace {
        writeln!(text, "local PAUSE = {}", (1e3 * f64::from(CONNECTIONS) / pace).round())?;
    }
    text += &SCRIPT.replace("LINES", &lines.display().to_string());
    std::fs::write(&script, text)?;
    let mut wrk = Command::new("wrk");
    wrk.args(["-t1", &format!("-c{CONNECTIONS}"), &format!("-d{seconds}s"), "--latency", "-s"])
        .arg(&script)
        .arg(url);
    let output = wrk.output().context("wrk: infra/local/peer.sh install")?;
    let said = String::from_utf8_lossy(&output.stdout);
    let (came, failed) =
        read(&said).with_context(|| format!("wrk: {said}{}", String::from_utf8_lossy(&output.stderr)))?;
    ensure!(failed == 0, "{failed} of {} requests failed", came.requests);
    ensure!(!load.once || came.requests <= load.lines.len(), "{} requests are too many", came.requests);
    Ok(came)
}

/// The script's last line.
fn read(said: &str) -> Option<(Came, u64)> {
    let line = said.lines().find_map(|line| line.strip_prefix("CAME "))?;
    let numbers: Vec<u64> = line.split(' ').filter_map(|number| number.parse().ok()).collect();
    let [requests, micros, refused, broken, p99] = numbers[..] else { return None };
    let a_second = 1e6 * requests as f64 / micros as f64;
    Some((
        Came { requests: usize::try_from(requests).ok()?, a_second, p99_ms: p99 as f64 / 1e3 },
        refused + broken,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_are_seen() {
        let (came, failed) = read("Running 2s test\nCAME 3000 2000000 4 1 7500\n").unwrap();
        assert_eq!((came, failed), (Came { requests: 3_000, a_second: 1_500.0, p99_ms: 7.5 }, 5));
        assert_eq!(read("Running 2s test\n"), None);
    }
}
