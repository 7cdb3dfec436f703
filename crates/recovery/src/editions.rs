//! A sale's editions, one made from the other as they were published, so that every place lies where it lay.

use std::sync::Arc;

use domain::EventId;
use domain::fact::{Fact, What};
use domain::layout::Edition;
use domain::sale::Sale;
use records::Records;
use store::Standing;

use crate::RecoveryError;

/// Changes read at once.
const PAGE: u32 = 1_000;
/// Editions that Redis may have had and whose facts were lost with it: their versions are not given out again.
const VERSIONS_SKIPPED: u64 = 1_000;

/// How a sale last stood.
#[derive(Debug, Default)]
pub(crate) struct Editions {
    newest: Option<Edition>,
    /// Status, message and maintenance.
    pub(crate) standing: Standing,
    /// Why a definition could not be followed.
    pub(crate) unreadable: Option<String>,
}

impl Editions {
    pub(crate) async fn read(records: &Records, event: &EventId) -> Result<Self, RecoveryError> {
        let mut editions = Self::default();
        let mut last: Option<Fact> = None;
        loop {
            let page = records.facts(event, "EVENT_CHANGED", last.as_ref(), PAGE).await?;
            for fact in &page {
                editions.changed(&fact.what);
            }
            match page.into_iter().next_back() {
                Some(fact) => last = Some(fact),
                None => return Ok(editions),
            }
        }
    }

    /// A change of the sale; they come in the journal's order.
    pub(crate) fn changed(&mut self, what: &What) {
        let What::EventChanged { change, value, version, definition, .. } = what else { return };
        if let Some(definition) = definition {
            match self.next(definition, *version) {
                Ok(edition) => self.newest = Some(edition),
                Err(reason) => self.unreadable = Some(format!("version {version}: {reason}")),
            }
        }
        let Some(value) = value else { return };
        match change.as_str() {
            "open" | "pause" | "close" => self.standing.status.clone_from(value),
            "message" => self.standing.message.clone_from(value),
            "maintenance" => self.standing.maintenance = value == "1",
            _ => {}
        }
    }

    fn next(&self, definition: &serde_json::Value, version: u64) -> Result<Edition, String> {
        let sale: Sale = serde_json::from_value(definition.clone()).map_err(|error| error.to_string())?;
        let edition = match &self.newest {
            None => Edition::first(sale).0,
            Some(before) => {
                let next = before.next(sale);
                next.map_err(|problems| problems.first().map_or_else(String::new, ToString::to_string))?.0
            }
        };
        Ok(Edition { version, ..edition })
    }

    /// The newest one, in a version above all that were.
    pub(crate) fn edition(&self) -> Option<Arc<Edition>> {
        let newest = self.newest.clone()?;
        Some(Arc::new(Edition { version: newest.version + VERSIONS_SKIPPED, ..newest }))
    }
}
