//! One view of each event's line, shared by all requests of this process, as old as whoever asks can bear.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use domain::EventId;
use domain::command::Progress;
use domain::outcome::{LineView, Outcome};
use tokio::sync::Mutex;
use tokio::time::Instant;

use crate::{Store, StoreError};

/// Views kept at most; a deployment has a handful of sales. Past it all are forgotten and read anew.
const CAPACITY: usize = 64;

/// A view, and when it was read by this process' clock: the sale's own may be a driver's.
struct Read {
    view: Arc<LineView>,
    at: Instant,
}

/// Whoever finds a view too old reads it for all who wait for the lock.
#[derive(Default)]
pub(crate) struct Views(std::sync::Mutex<HashMap<EventId, Arc<Mutex<Option<Read>>>>>);

impl Views {
    fn of(&self, event: &EventId) -> Arc<Mutex<Option<Read>>> {
        // A poisoned lock holds a whole map all the same: nothing here leaves one half changed.
        let mut views = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if views.len() >= CAPACITY && !views.contains_key(event) {
            views.clear();
        }
        Arc::clone(views.entry(event.clone()).or_default())
    }
}

impl Store {
    /// The event's line as it was at most `age_ms` ago. Costs a round trip where nobody has asked since.
    pub async fn view(&self, event: &EventId, age_ms: u32) -> Result<Outcome<Arc<LineView>>, StoreError> {
        let slot = self.0.views.of(event);
        let mut slot = slot.lock().await;
        if let Some(read) = slot.as_ref().filter(|read| self.is_fresh(read, age_ms)) {
            return Ok(Ok(Arc::clone(&read.view)));
        }
        // The answer is as old as the question at most.
        let at = Instant::now();
        let progress = match self.progress(&Progress { event: event.clone() }).await? {
            Ok(progress) => progress,
            Err(refusal) => return Ok(Err(refusal)),
        };
        let view = Arc::new(progress.view);
        *slot = Some(Read { view: Arc::clone(&view), at });
        Ok(Ok(view))
    }

    /// A view that came with another answer. Whoever is reading one now reads a newer one.
    pub(crate) fn saw(&self, event: &EventId, view: &LineView) {
        if let Ok(mut slot) = self.0.views.of(event).try_lock() {
            *slot = Some(Read { view: Arc::new(view.clone()), at: Instant::now() });
        }
    }

    fn is_fresh(&self, read: &Read, age_ms: u32) -> bool {
        match self.now_ms() {
            0 => read.at.elapsed() <= Duration::from_millis(age_ms.into()),
            driven => (0..=i64::from(age_ms)).contains(&(driven - read.view.now.0)),
        }
    }
}
