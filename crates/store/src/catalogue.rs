//! The editions this process has read. A step that meets a newer one says so, and it is read again then: no
//! request asks for it otherwise.

use std::collections::HashMap;
use std::sync::{Arc, RwLock};

use domain::EventId;
use domain::layout::Edition;
use redis::Value;

use crate::keys::{KeyName, Keys};
use crate::{Store, StoreError};

/// Editions kept at most; a deployment has a handful of sales. Past it all are forgotten and read anew.
const CAPACITY: usize = 64;

#[derive(Default)]
pub(crate) struct Catalogue(RwLock<HashMap<EventId, Arc<Edition>>>);

impl Catalogue {
    fn get(&self, event: &EventId) -> Option<Arc<Edition>> {
        // A poisoned lock holds a whole map all the same: nothing here leaves one half changed.
        let editions = self.0.read().unwrap_or_else(std::sync::PoisonError::into_inner);
        editions.get(event).cloned()
    }

    fn put(&self, edition: &Arc<Edition>) {
        let mut editions = self.0.write().unwrap_or_else(std::sync::PoisonError::into_inner);
        if editions.len() >= CAPACITY {
            editions.clear();
        }
        editions.insert(edition.sale.event_id.clone(), Arc::clone(edition));
    }
}

impl Store {
    /// The event's edition as last read here; `None` for an unknown event.
    pub async fn edition(&self, event: &EventId) -> Result<Option<Arc<Edition>>, StoreError> {
        match self.0.catalogue.get(event) {
            Some(edition) => Ok(Some(edition)),
            None => self.newest_edition(event).await,
        }
    }

    /// The event's edition as it is in Redis now.
    pub async fn newest_edition(&self, event: &EventId) -> Result<Option<Arc<Edition>>, StoreError> {
        let key = Keys::of(event).name(KeyName::Definition);
        let text = match self.query("GET", redis::cmd("GET").arg(key)).await? {
            Value::Nil => return Ok(None),
            Value::BulkString(bytes) => bytes,
            other => return Err(StoreError::Malformed { step: "GET", reply: format!("{other:?}") }),
        };
        let edition = std::str::from_utf8(&text)
            .map_err(|error| error.to_string())
            .and_then(|text| Edition::from_json(text).map_err(|error| error.to_string()));
        let edition =
            edition.map_err(|reason| StoreError::Definition { event: event.to_string(), reason })?;
        let edition = Arc::new(edition);
        self.0.catalogue.put(&edition);
        Ok(Some(edition))
    }
}

/// The edition a command needs, or its refusal: an event whose definition is unknown is an unknown event.
macro_rules! edition_or_refuse {
    ($store:expr, $event:expr) => {
        match $store.edition($event).await? {
            Some(edition) => edition,
            None => return Ok(Err(domain::outcome::Refusal::EventNotFound)),
        }
    };
}
pub(crate) use edition_or_refuse;

/// How often one command reads a newer edition or goes on reaping before it gives up as unavailable: far more
/// than any sale needs.
pub(crate) const ATTEMPTS: u32 = 500;

/// The step kept asking to be called again.
pub(crate) fn gave_up(step: &'static str) -> StoreError {
    StoreError::Exhausted { step, times: ATTEMPTS }
}
