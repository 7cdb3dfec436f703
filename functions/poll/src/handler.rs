//! Ask where one stands, how the whole line moves, and whether all is well.

use bootstrap::{Answered, State};
use domain::Millis;
use domain::outcome::{Place, Refusal};
use gateway::response::{self, Asker};
use gateway::routes::Call;
use gateway::{Answer, Body, Failure, Request, Response, Window, answer, request};

/// Answers a request to this function.
pub async fn handle(state: &State, request: Request) -> Response<Body> {
    let request = &request;
    answer(&state.gate, "poll", request, |call| async move {
        match call {
            Call::Poll => poll(state, request).await,
            Call::Progress => progress(state, request).await,
            Call::Health => response::health(state.store.ping().await.is_ok(), Millis::now()),
            _ => Err(Failure::NotFound),
        }
    })
    .await
}

async fn poll(state: &State, request: &Request) -> Answer {
    let poll = request::poll(&state.gate, request)?;
    let key = poll.key.as_deref().and_then(|key| state.keys.check(&poll.event, poll.token, key));
    let limited = match key.as_ref().map(|key| key.window(Millis::now())) {
        Some(Window::TooEarly { wait_ms }) => {
            return Err(Refusal::RateLimit { retry_after_ms: wait_ms }.into());
        }
        Some(Window::Open) => false,
        Some(Window::Over) | None => true,
    };
    let mut polled = state.store.poll(&poll, limited).await.answered()?;
    let mut access_token = None;
    if polled.standing.place == Place::Called {
        // The first answer that says ACTIVE is the one that begins the session.
        polled = state.store.claim(&poll.event, poll.token).await.answered()?;
        // A script can be read by any page.
        if !request::is_jsonp(request) {
            access_token = state.access_token_of(request, &poll.event, poll.token, &polled.standing)?;
        }
    }
    let ticket_number = key.and_then(|key| key.ticket_number);
    let asker = Asker { keys: &state.keys, event: &poll.event, token: poll.token, ticket_number };
    response::polled(asker, &polled, access_token)
}

async fn progress(state: &State, request: &Request) -> Answer {
    let progress = request::progress(&state.gate, request)?;
    let view = state.store.progress(&progress).await.answered()?;
    response::progress(&view, Some(&state.seed(&progress.event)))
}
