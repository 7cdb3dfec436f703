//! Buy, read what was bought, give it back.

use std::sync::Arc;

use bootstrap::{Answered, State, metrics};
use gateway::routes::Call;
use gateway::{Answer, Body, Failure, Request, Response, answer, request, response};
use outbox::Outbox;

/// What this function has: the shared state and the way to the queue.
pub struct BookState {
    /// What every HTTP function has.
    pub state: State,
    /// Where facts go before anybody is told.
    pub outbox: Arc<dyn Outbox>,
}

/// Answers a request to this function.
pub async fn handle(book_state: &BookState, request: Request) -> Response<Body> {
    let request = &request;
    answer(&book_state.state.gate, "book", request, |call| async move {
        match call {
            Call::Book => book(book_state, request).await,
            Call::ReadReservation => read(&book_state.state, request).await,
            Call::CancelReservation => cancel(book_state, request).await,
            _ => Err(Failure::NotFound),
        }
    })
    .await
}

async fn book(BookState { state, outbox }: &BookState, request: &Request) -> Answer {
    let book = request::book(&state.gate, request)?;
    let (booked, fact) = state.store.book(&book).await.answered()?;
    // A repeat brings no fact.
    if fact.is_some() {
        metrics::BOOKINGS.add(1);
        metrics::SOLD.add(booked.reservation.seat_count.into());
    }
    outbox::send_first(outbox.as_ref(), fact).await;
    response::booked(&booked)
}

async fn read(state: &State, request: &Request) -> Answer {
    let reserved = request::reserved(&state.gate, request)?;
    response::reservation(&state.store.reservation(&reserved).await.answered()?)
}

async fn cancel(BookState { state, outbox }: &BookState, request: &Request) -> Answer {
    let reserved = request::reserved(&state.gate, request)?;
    let (cancelled, fact) = state.store.cancel(&reserved).await.answered()?;
    outbox::send_first(outbox.as_ref(), fact).await;
    response::reservation(&cancelled.reservation)
}
