//! A sale's editions, one made from the other as they were published, so that every place lies where it lay.

use std::sync::Arc;

use domain::EventId;
use domain::fact::What;
use domain::layout::Edition;
use domain::sale::Sale;
use records::Records;
use store::Standing;

use crate::RecoveryError;

/// Editions that Redis may have had and whose facts were lost with it: their versions are not given out again.
const VERSIONS_SKIPPED: u64 = 1_000;

/// How a sale last stood.
#[derive(Debug, Default)]
pub(crate) struct Editions {
    newest: Option<Edition>,
    was_deleted: bool,
    /// Status, message and maintenance.
    pub(crate) standing: Standing,
    /// Why a definition could not be followed.
    pub(crate) unreadable: Option<String>,
}

impl Editions {
    pub(crate) async fn read(records: &Records, event: &EventId) -> Result<Self, RecoveryError> {
        let mut editions = Self::default();
        records.each_fact(event, "EVENT_CHANGED", |fact| editions.changed(&fact.what)).await?;
        Ok(editions)
    }

    /// A change of the sale; they come in the journal's order.
    pub(crate) fn changed(&mut self, what: &What) {
        let What::EventChanged { change, value, version, definition, .. } = what else { return };
        if change == "delete" {
            self.newest = None;
            self.was_deleted = true;
        }
        if let Some(definition) = definition {
            if self.was_deleted {
                // Whose line and reservations those of PostgreSQL are, nothing tells.
                self.unreadable = Some(format!("version {version} came after it was deleted"));
            }
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

#[cfg(test)]
mod tests {
    use super::*;

    fn changed(change: &str, value: Option<&str>, version: u64, capacity: u32) -> What {
        let definition = value.is_none().then(|| {
            let text = format!(
                r#"{{"eventId": "e", "title": "E", "opensAt": 1790000000000, "closesAt": 1790003600000,
                    "anonymous": "accepted", "admission": {{"perSecond": 10, "maxActive": 100}},
                    "offerings": [{{"id": "o", "date": "2026-09-24", "sections": [
                        {{"id": "g", "name": "G", "price": 10, "capacity": {capacity}}}]}}]}}"#
            );
            serde_json::to_value(domain::sale::check(&text).unwrap_or_else(|problems| panic!("{problems:?}")))
                .ok()
        });
        let value = value.map(str::to_owned);
        let definition = definition.flatten().filter(|_| change != "delete");
        What::EventChanged { by: "kim".to_owned(), change: change.to_owned(), value, version, definition }
    }

    fn after(changes: &[What]) -> Editions {
        let mut editions = Editions::default();
        for change in changes {
            editions.changed(change);
        }
        editions
    }

    #[test]
    fn the_last_edition_counts_and_how_the_sale_last_stood() {
        let editions = after(&[
            changed("apply", None, 1, 5),
            changed("pause", Some("PAUSED"), 1, 5),
            changed("message", Some("later"), 1, 5),
            changed("maintenance", Some("1"), 1, 5),
            changed("apply", None, 2, 9),
            changed("maintenance", Some("0"), 2, 9),
        ]);
        let edition = editions.edition().unwrap();
        assert_eq!((edition.version, edition.layout.capacity()), (1_002, 9));
        let expected = Standing { status: "PAUSED".into(), message: "later".into(), maintenance: false };
        assert_eq!((editions.standing, editions.unreadable), (expected, None));
    }

    #[test]
    fn what_was_deleted_is_gone_and_what_came_under_its_name_is_not_taken_for_it() {
        let mut changes = vec![changed("apply", None, 1, 5), changed("delete", None, 1, 5)];
        let editions = after(&changes);
        assert!(editions.edition().is_none() && editions.unreadable.is_none());
        changes.push(changed("apply", None, 1, 5));
        assert!(after(&changes).unreadable.is_some_and(|why| why.contains("deleted")));
    }
}
