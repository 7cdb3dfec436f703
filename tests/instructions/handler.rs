//! Handles the events that stand in a file, one a line, as a function's instance does: `handler REDIS_URL EVENT_ID NOW_MS
//! FILE`. Fails where an answer is no success.

use std::sync::Arc;
use std::time::Duration;

use domain::{EventId, Millis};
use store::{Store, StoreConfig};
use support::TakesAll;

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [url, event, now_ms, file] = arguments.as_slice() else {
        anyhow::bail!("usage: handler REDIS_URL EVENT_ID NOW_MS FILE");
    };
    // Whoever counts runs fifty times slower.
    let patience = Duration::from_secs(30);
    let config =
        StoreConfig { connect_timeout: patience, answer_timeout: patience, ..StoreConfig::new(url, false) };
    let store = Store::new(&config)?;
    store.drive_clock(Millis(now_ms.parse()?));
    let gate = support::gate(&event.parse::<EventId>()?);
    let functions = support::functions(store, gate, support::access(), Some(Arc::new(TakesAll)));
    for line in std::fs::read_to_string(file)?.lines() {
        let answer = support::handled(&functions, line.as_bytes()).await?;
        anyhow::ensure!(support::has_succeeded(&answer), "{}", String::from_utf8_lossy(&answer));
    }
    Ok(())
}
