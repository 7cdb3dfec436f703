//! Messages that could not be written: what they say, why they are refused, and back to their queue with them.

use std::collections::BTreeSet;

use domain::fact::StreamId;
use domain::{EventId, Millis};
use outbox::{DeadLetter, Replayed, unpack};
use records::Records;
use serde::{Deserialize, Serialize};

use crate::reply::{Refused, Reply};
use crate::{AdminError, AdminState};

/// Facts of a letter that are told one by one, at most.
const FACTS_TOLD: usize = 10;
/// Characters of a reason, at most.
const REASON_CHARACTERS: usize = 500;

/// A message that could not be written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DeadLetterReport {
    /// Names it while it lies there.
    pub id: String,
    /// Which queue it comes from, where that is known: `bookings` or `line`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<String>,
    /// When it was sent first or, where nobody noted it, when its oldest fact became true.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Millis>,
    /// Why it would be refused now; none where it would be written, as after what stood in its way has been mended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// How many facts of it can be read.
    pub fact_count: usize,
    /// The first of them.
    pub facts: Vec<DeadFact>,
}

/// A fact of such a message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeadFact {
    /// Its event.
    pub event: EventId,
    /// Its epoch.
    pub epoch: u64,
    /// Its place in the journal.
    pub id: StreamId,
    /// What kind of fact it is.
    pub kind: String,
}

pub(crate) async fn list(state: &AdminState) -> Result<Reply, AdminError> {
    let letters = state.dead_letters()?.list().await?;
    let mut reports = Vec::with_capacity(letters.len());
    for letter in letters {
        reports.push(report(state.records.as_ref(), letter).await);
    }
    reports.sort_by(|one, other| (one.since, &one.id).cmp(&(other.since, &other.id)));
    Ok(Reply::DeadLetters { letters: reports })
}

/// Moves the named ones back, all without names.
pub(crate) async fn replay(state: &AdminState, ids: Vec<String>) -> Result<Reply, AdminError> {
    let ids: BTreeSet<String> = ids.into_iter().collect();
    let is_chosen = |id: &str| ids.is_empty() || ids.contains(id);
    let Replayed { replayed, kept } = state.dead_letters()?.replay(&is_chosen).await?;
    match ids.first() {
        Some(id) if replayed.is_empty() && kept.is_empty() => {
            Ok(Reply::Refused(Refused::value("id", format!("{id} names no dead letter"))))
        }
        _ => Ok(Reply::Replayed { replayed, kept }),
    }
}

async fn report(records: Option<&Records>, letter: DeadLetter) -> DeadLetterReport {
    let DeadLetter { id, queue, sent_at, body } = letter;
    let (unpacked, malformed) = match unpack(&body) {
        Ok(unpacked) => (unpacked, None),
        Err(error) => (outbox::Unpacked::default(), Some(error.to_string())),
    };
    let unreadable = malformed.or_else(|| unpacked.bad.first().map(ToString::to_string));
    let facts = unpacked.facts;
    let told = facts.iter().take(FACTS_TOLD).map(|fact| DeadFact {
        event: fact.event.clone(),
        epoch: fact.epoch,
        id: fact.id,
        kind: fact.what.kind().to_owned(),
    });
    let (told, fact_count) = (told.collect(), facts.len());
    let since = sent_at.or_else(|| facts.iter().map(|fact| fact.at).min());
    let reason = match (unreadable, records) {
        (Some(reason), _) => Some(reason),
        (None, None) => Some("not known: no database is named".to_owned()),
        (None, Some(records)) => match records.check(&[facts]).await {
            Ok(results) => results.iter().flat_map(|result| &result.refused).next().map(ToString::to_string),
            Err(error) => Some(format!("not known: {error}")),
        },
    };
    let reason = reason.map(|reason| reason.chars().take(REASON_CHARACTERS).collect());
    let queue = queue.map(|queue| queue.as_str().to_owned());
    DeadLetterReport { id, queue, since, reason, fact_count, facts: told }
}
