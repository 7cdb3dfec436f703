//! Opens sockets, lets them follow places, and forgets those that are gone: closed ones as API Gateway tells, and
//! those that a push did not find any more.

use std::collections::BTreeMap;

use aws_lambda_events::event::sqs::{SqsBatchResponse, SqsEvent, SqsMessage};
use bootstrap::{Answered, State};
use domain::{ConnectionId, EventId};
use futures::future::try_join_all;
use gateway::socket::{self, Message, SocketEvent, SocketEventType, SocketReply};
use outbox::unpack_gone;
use serde::{Deserialize, Serialize};
use store::StoreError;

/// What this function is invoked with.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub enum Event {
    /// By the WebSocket API.
    Socket(Box<SocketEvent>),
    /// By the queue of gone sockets.
    Gone(SqsEvent),
}

/// What it answers.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub enum Answer {
    /// To the WebSocket API.
    Socket(SocketReply),
    /// To the queue: the messages that are to come again.
    Gone(SqsBatchResponse),
}

/// Answers an event.
pub async fn handle(state: &State, event: Event) -> Answer {
    match event {
        Event::Socket(event) => Answer::Socket(answer(state, &event).await),
        Event::Gone(event) => Answer::Gone(forget_gone(state, event).await),
    }
}

/// Answers an event of the WebSocket API. A body in the answer goes to the socket.
pub async fn answer(state: &State, event: &SocketEvent) -> SocketReply {
    match event.request_context.event_type {
        SocketEventType::Connect => socket::open(&state.gate, event),
        SocketEventType::Disconnect => {
            if let Err(error) = forget_everywhere(state, &event.request_context.connection_id).await {
                // The first push to it tries again.
                tracing::warn!(%error, "a closed socket is not forgotten yet");
            }
            SocketReply::done()
        }
        SocketEventType::Message => SocketReply::told(told(state, event).await),
    }
}

async fn told(state: &State, event: &SocketEvent) -> String {
    let message = Message::read(&state.gate, event);
    let connect = match &message.connect {
        Ok(connect) => connect,
        Err(failure) => return message.refusal(failure),
    };
    match state.store.connect(connect).await.answered() {
        Ok(followed) => message.answer(&connect.event, followed.as_ref()),
        Err(failure) => message.refusal(&failure),
    }
}

/// A closed socket's event is not told: there are few, and it is looked for in each.
async fn forget_everywhere(state: &State, connection: &ConnectionId) -> Result<(), StoreError> {
    let events = state.store.events().await?;
    let connections = std::slice::from_ref(connection);
    try_join_all(events.iter().map(|event| state.store.disconnect(event, connections))).await.map(drop)
}

/// Forgets what pushes did not find any more; messages that Redis could not be asked for come again.
async fn forget_gone(state: &State, event: SqsEvent) -> SqsBatchResponse {
    let mut response = SqsBatchResponse::default();
    for message in event.records {
        if let Err(error) = forget_named(state, &message).await {
            tracing::warn!(%error, "gone sockets are not forgotten yet");
            response.add_failure(message.message_id.unwrap_or_default());
        }
    }
    response
}

async fn forget_named(state: &State, message: &SqsMessage) -> Result<(), StoreError> {
    let gone = unpack_gone(message.body.as_deref().unwrap_or_default()).unwrap_or_else(|error| {
        // It would not become readable by coming again.
        tracing::error!(message_id = message.message_id, %error, "a message cannot be read");
        Vec::new()
    });
    let mut events: BTreeMap<EventId, Vec<ConnectionId>> = BTreeMap::new();
    for gone in gone {
        events.entry(gone.event).or_default().push(gone.connection);
    }
    for (event, connections) in &events {
        state.store.disconnect(event, connections).await?;
    }
    Ok(())
}
