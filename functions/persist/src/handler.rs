//! Writes what the queues bring. A message with something bad in it is handed back alone, and in the end goes to
//! the dead-letter queue; everything good in it, and every other message, is written.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use aws_lambda_events::event::sqs::{SqsBatchResponse, SqsEvent, SqsMessage};
use bootstrap::metrics;
use domain::fact::Fact;
use outbox::unpack;
use records::{Records, RecordsError, WriteResult};

/// Why nothing of a batch counts as written: all of it is delivered again.
#[derive(Debug, thiserror::Error)]
pub enum PersistError {
    /// PostgreSQL could not be asked: no message's fault.
    #[error(transparent)]
    Records(#[from] RecordsError),
    /// A message cannot be handed back without its id.
    #[error("a message has no id")]
    NoMessageId,
}

/// Writes the facts of all messages and names those that are not wholly written.
pub async fn persist(records: &Records, event: SqsEvent) -> Result<SqsBatchResponse, PersistError> {
    let deliveries = event.records.into_iter().map(Delivery::of).collect::<Result<Vec<_>, _>>()?;
    let (deliveries, facts): (Vec<Delivery>, Vec<Vec<Fact>>) = deliveries.into_iter().unzip();
    let written = records.write(&facts).await;
    let results = written.inspect_err(|_| metrics::PERSIST_FAILURES.add(1))?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let mut response = SqsBatchResponse::default();
    for ((delivery, facts), result) in deliveries.into_iter().zip(&facts).zip(&results) {
        delivery.report_refused(facts, result);
        count_written(facts, result, now);
        if !(delivery.is_whole && result.is_written()) {
            response.add_failure(delivery.message_id);
        }
    }
    Ok(response)
}

/// The lag is from Redis' clock to this one: a little off where they differ, and never below zero.
fn count_written(facts: &[Fact], result: &WriteResult, now: Duration) {
    let is_refused = |position| result.refused.iter().any(|refused| refused.position == position);
    for (_, fact) in facts.iter().enumerate().filter(|(position, _)| !is_refused(*position)) {
        metrics::PERSISTED.add(1);
        metrics::PERSIST_LAG.observe(now.saturating_sub(Duration::from_millis(fact.id.ms)));
    }
}

struct Delivery {
    message_id: String,
    /// Whether all of its body could be read.
    is_whole: bool,
}

impl Delivery {
    fn of(message: SqsMessage) -> Result<(Self, Vec<Fact>), PersistError> {
        let message_id = message.message_id.ok_or(PersistError::NoMessageId)?;
        let (is_whole, facts) = match unpack(message.body.as_deref().unwrap_or_default()) {
            Ok(unpacked) => {
                for bad in &unpacked.bad {
                    tracing::error!(message_id, %bad, "a fact cannot be read");
                    metrics::FACTS_REFUSED.add(1);
                }
                (unpacked.bad.is_empty(), unpacked.facts)
            }
            Err(error) => {
                tracing::error!(message_id, %error, "a message cannot be read");
                metrics::FACTS_REFUSED.add(1);
                (false, Vec::new())
            }
        };
        Ok((Self { message_id, is_whole }, facts))
    }

    fn report_refused(&self, facts: &[Fact], result: &WriteResult) {
        for refused in &result.refused {
            metrics::FACTS_REFUSED.add(1);
            metrics::GUARD_VIOLATIONS.add(refused.broke_guard.into());
            let Some(fact) = facts.get(refused.position) else { continue };
            let (event, epoch, id, kind) = (&fact.event, fact.epoch, fact.id, fact.what.kind());
            let reason = &refused.reason;
            tracing::error!(message_id = self.message_id, %event, epoch, %id, kind, reason, "a fact was refused");
        }
    }
}
