//! Sales as an operator sees them.

use std::sync::Arc;

use domain::sale::{PreQueue, Sale};
use domain::{EventId, Millis, OfferingId, SectionId};
use serde::{Deserialize, Serialize};
use store::{EventState, Store};

use crate::reply::{Refused, Reply};
use crate::{AdminError, AdminState};

/// A sale in a line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EventSummary {
    /// Its id.
    pub event: EventId,
    /// What people read.
    pub title: String,
    /// UPCOMING, OPEN, PAUSED or CLOSED.
    pub status: String,
    /// Whether holds and bookings are refused.
    pub maintenance: bool,
    /// The definition's version.
    pub version: u64,
    /// Redis' clock.
    pub now: Millis,
    /// When it opens or opened.
    pub opens_at: Millis,
    /// When it ends.
    pub closes_at: Millis,
    /// People waiting.
    pub waiting: u64,
    /// Calls and sessions alive.
    pub active: u64,
    /// The most of them at once.
    pub max_active: u32,
    /// People a second, as set.
    pub per_second: f64,
    /// People a second, as seen lately.
    pub admitted_per_second: f64,
    /// The part of the set pace that bookings waiting to be written leave, 0 to 1.
    pub pace_factor: f64,
    /// Whether nobody new joins, as too many facts wait for the queues.
    pub joins_refused: bool,
    /// Free places.
    pub remaining: u64,
    /// Places on sale.
    pub capacity: u64,
    /// Reservations made, cancelled ones included.
    pub reservations: u64,
    /// Facts that no queue has taken yet.
    pub journal: u64,
    /// When the last tick was; none before the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ticked_at: Option<Millis>,
    /// When a relay last looked at it; none before the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub relayed_at: Option<Millis>,
    /// What waiting people are told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// A sale with its sections.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EventDetail {
    /// The sale in a line.
    #[serde(flatten)]
    pub summary: EventSummary,
    /// What is sold, in the definition's order.
    pub sections: Vec<SectionState>,
    /// How the places before the opening are drawn, where they are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub draw: Option<Draw>,
    /// The definition.
    pub sale: Arc<Sale>,
}

/// One section.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SectionState {
    /// The offering it is a part of.
    pub offering_id: OfferingId,
    /// Its id there.
    pub section_id: SectionId,
    /// What people read.
    pub name: String,
    /// Price of one place, in the currency's smallest unit.
    pub price: u64,
    /// Free places; below zero only where something is broken.
    pub remaining: i64,
    /// Held places, seconds old where very many are; what is neither free nor held is sold.
    #[serde(default)]
    pub held: u64,
    /// Places on sale.
    pub capacity: u32,
}

/// What is public of a draw.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Draw {
    /// SHA-256 of the seed in hex, public from the start.
    pub commitment: String,
    /// The seed in hex, public from the opening on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<String>,
}

pub(crate) async fn list(store: &Store) -> Result<Reply, AdminError> {
    let mut events = Vec::new();
    for event in store.events().await? {
        if let Ok(state) = store.event_state(&event).await? {
            events.push(summary(&state));
        }
    }
    Ok(Reply::Listed { events })
}

pub(crate) async fn show(state: &AdminState, event: &EventId) -> Result<Reply, AdminError> {
    let store = state.store();
    let Ok(event_state) = store.event_state(event).await? else {
        return Ok(Reply::Refused(Refused::EventNotFound { event: event.clone() }));
    };
    let (stock, held) = (store.stock(event).await?, state.held(event).await?);
    let sale = Arc::clone(&event_state.edition.sale);
    let is_drawn = sale.pre_queue == PreQueue::Shuffle;
    // Without the master key the rest can be shown all the same.
    let seed = is_drawn.then(|| state.seed(event).ok()).flatten();
    let draw = seed.map(|seed| Draw {
        commitment: seed.commitment(),
        seed: event_state.view.is_opened().then(|| seed.reveal()),
    });
    let sections = sale.offerings.iter().flat_map(|offering| {
        offering.sections.iter().filter_map(|section| {
            let laid_out = event_state.edition.layout.section(&offering.id, &section.id)?;
            Some(SectionState {
                offering_id: offering.id.clone(),
                section_id: section.id.clone(),
                name: section.name.clone(),
                price: section.price,
                remaining: stock.get(&laid_out.number).copied().unwrap_or_default(),
                held: held.get(&laid_out.number).copied().unwrap_or_default(),
                capacity: laid_out.capacity(),
            })
        })
    });
    let detail = EventDetail {
        summary: summary(&event_state),
        sections: sections.collect(),
        draw,
        sale: Arc::clone(&sale),
    };
    Ok(Reply::Shown(Box::new(detail)))
}

fn summary(state: &EventState) -> EventSummary {
    let EventState { edition, view, .. } = state;
    let sale = &edition.sale;
    EventSummary {
        event: sale.event_id.clone(),
        title: sale.title.clone(),
        status: view.status.as_str().to_owned(),
        maintenance: state.maintenance,
        version: edition.version,
        now: view.now,
        opens_at: sale.opens_at,
        closes_at: sale.closes_at,
        waiting: view.total_waiting,
        active: state.active,
        max_active: sale.admission.max_active,
        per_second: sale.admission.per_second,
        admitted_per_second: view.admitted_per_second,
        pace_factor: state.pace_factor,
        joins_refused: state.joins_refused,
        remaining: view.remaining_seats,
        capacity: edition.layout.capacity(),
        reservations: state.reservations,
        journal: state.journal,
        ticked_at: state.ticked_at,
        relayed_at: state.relayed_at,
        message: view.message.clone(),
    }
}
