//! Waiting with a bound.

use std::time::{Duration, Instant};

const PAUSE: Duration = Duration::from_millis(10);

/// Asks `reached` again and again until it says yes. Panics with `what` when it has not within `timeout`, even
/// if an answer never comes.
pub async fn wait_until(timeout: Duration, what: &str, mut reached: impl AsyncFnMut() -> bool) {
    let asking = async {
        while !reached().await {
            tokio::time::sleep(PAUSE).await;
        }
    };
    assert!(tokio::time::timeout(timeout, asking).await.is_ok(), "not within {timeout:?}: {what}");
}

/// The same for a server's start, before there is a runtime. `None` from `step` means not yet.
pub(crate) fn poll_blocking<T>(timeout: Duration, mut step: impl FnMut() -> Option<T>) -> Option<T> {
    let deadline = Instant::now() + timeout;
    loop {
        if let Some(found) = step() {
            return Some(found);
        }
        if Instant::now() >= deadline {
            return None;
        }
        std::thread::sleep(PAUSE);
    }
}
