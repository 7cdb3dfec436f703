//! What is held, section by section. Nothing counts it but the holds themselves, of which a large sale has as many as
//! people inside may take, and an operator who watches asks each second.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use domain::EventId;
use store::{Store, StoreError};
use tokio::time::Instant;

/// Held places for which a reading is kept for a millisecond: reading a thousand takes Redis one or two, so that those
/// who look cost it a fiftieth of its time at most, however many they are.
const PLACES_A_MS: u64 = 10;
/// So few are read each time.
const FEW: u64 = 1_000;

/// The last readings of each sale.
#[derive(Default)]
pub(crate) struct HeldReadings(Mutex<HashMap<EventId, Reading>>);

#[derive(Clone)]
struct Reading {
    until: Instant,
    held: Arc<BTreeMap<u32, u64>>,
}

impl HeldReadings {
    /// Held places by the section's number, read now or not long ago.
    pub(crate) async fn read(
        &self,
        store: &Store,
        event: &EventId,
    ) -> Result<Arc<BTreeMap<u32, u64>>, StoreError> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner).get(event).cloned();
        if let Some(kept) = kept.filter(|kept| Instant::now() < kept.until) {
            return Ok(kept.held);
        }
        let held = Arc::new(store.held(event).await?);
        let reading = Reading { until: Instant::now() + kept_for(&held), held: Arc::clone(&held) };
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(event.clone(), reading);
        Ok(held)
    }
}

fn kept_for(held: &BTreeMap<u32, u64>) -> Duration {
    match held.values().sum() {
        0..=FEW => Duration::ZERO,
        places => Duration::from_millis(places / PLACES_A_MS),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_more_is_held_the_longer_a_reading_is_kept() {
        let kept = |of: &[u64]| kept_for(&(0..).zip(of.iter().copied()).collect()).as_millis();
        assert_eq!(kept(&[]), 0);
        assert_eq!(kept(&[600, 400]), 0);
        assert_eq!(kept(&[600, 401]), 100);
        assert_eq!(kept(&[50_000, 400]), 5_040);
    }
}
