//! The cache before the origin: everybody reads the line's progress, and the origin is asked once a second.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Mutex;
use tokio::time::Instant;

use super::answers::Progress;
use super::client::{Asked, Client, Failure};
use super::tally::{Call, Tally};

/// `Cache-Control: max-age=1`
const FRESH: Duration = Duration::from_secs(1);

pub(crate) struct Edge {
    client: Arc<Client>,
    tally: Arc<Tally>,
    cached: Mutex<Option<(Instant, Arc<Progress>)>>,
}

impl Edge {
    pub(crate) fn new(client: Arc<Client>, tally: Arc<Tally>) -> Self {
        Self { client, tally, cached: Mutex::default() }
    }

    /// The line's progress, a second old at most.
    pub(crate) async fn progress(&self) -> Result<Arc<Progress>, Failure> {
        // Held while the origin is asked: all who come meanwhile get that answer.
        let mut cached = self.cached.lock().await;
        if let Some((read_at, progress)) = &*cached
            && read_at.elapsed() < FRESH
        {
            self.tally.cached_progress();
            return Ok(Arc::clone(progress));
        }
        let asked = Asked::new(Call::Progress, Instant::now(), "/api/status/progress".to_owned());
        let progress: Arc<Progress> = Arc::new(self.client.ask(asked).await?);
        *cached = Some((Instant::now(), Arc::clone(&progress)));
        Ok(progress)
    }
}
