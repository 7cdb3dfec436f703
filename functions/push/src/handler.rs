//! Tells open sockets what the queue brings, and reports those that are gone. It knows no Redis: in the network of
//! Redis nothing leads to API Gateway's sockets.

use aws_lambda_events::event::sqs::SqsEvent;
use futures::{StreamExt, stream};
use outbox::{Departures, Gone, Posted, Push, Sockets, unpack_pushes};

/// Sockets told at once. Each has its time, so that a slow one keeps one of these places and holds up nobody else.
const TOLD_AT_ONCE: usize = 64;

/// Tells all sockets of a batch. Pushes perish, so none is handed back: what could not be told now is told better by
/// the next one.
pub async fn push(sockets: &dyn Sockets, departures: &dyn Departures, event: SqsEvent) {
    let mut pushes = Vec::new();
    for message in event.records {
        match unpack_pushes(message.body.as_deref().unwrap_or_default()) {
            Ok(unpacked) => pushes.extend(unpacked),
            Err(error) => {
                tracing::error!(message_id = message.message_id, %error, "a message cannot be read");
            }
        }
    }
    deliver(sockets, departures, pushes).await;
}

/// Tells sockets, each in the order of its texts, and reports those that are gone.
pub async fn deliver(sockets: &dyn Sockets, departures: &dyn Departures, pushes: Vec<Push>) {
    let told = stream::iter(pushes).map(|push| tell(sockets, push)).buffer_unordered(TOLD_AT_ONCE);
    let gone: Vec<Gone> = told.filter_map(async |gone| gone).collect().await;
    if !gone.is_empty() {
        tracing::info!(count = gone.len(), "sockets are gone");
        departures.depart(gone).await;
    }
}

/// Tells one socket; its name where it is gone.
async fn tell(sockets: &dyn Sockets, push: Push) -> Option<Gone> {
    for body in &push.bodies {
        match sockets.post(&push.connection, body).await {
            Posted::Sent => {}
            Posted::Failed => return None,
            Posted::Gone => return Some(Gone { event: push.event, connection: push.connection }),
        }
    }
    None
}
