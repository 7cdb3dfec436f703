//! Ask where one stands, how the whole line moves, and whether all is well.

use bootstrap::{Answered, State, metrics};
use domain::Millis;
use domain::command::Poll;
use domain::outcome::{LineView, Place, Polled, Refusal, Standing};
use gateway::response::{self, Asker};
use gateway::routes::Call;
use gateway::{Answer, Body, Failure, PlaceKey, Request, Response, Success, Window, answer, request};

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
    if let Some(key) = key.as_ref().filter(|_| !limited)
        && let Some(answer) = from_view(state, &poll, key).await?
    {
        metrics::POLLS_KEYED.add(1);
        return Ok(answer);
    }
    let mut polled = state.store.poll(&poll, limited).await.answered()?;
    metrics::POLLS_EXACT.add(1);
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
    let asker = Asker {
        keys: &state.keys,
        event: &poll.event,
        token: poll.token,
        ticket_number,
        ticket_count: Some(polled.ticket_count),
        last_read: None,
    };
    response::polled(asker, &polled, access_token)
}

/// The answer to a poll that needs nothing but its key and a view of the line that many share; `None` where the place
/// itself must be read. A key never lets anybody in: whose turn may have come is read.
async fn from_view(state: &State, poll: &Poll, key: &PlaceKey) -> Result<Option<Success>, Failure> {
    let Some(ticket_count) = key.ticket_count else { return Ok(None) };
    let last_read = key.last_read();
    let view = state.store.view(&poll.event, last_read.view_age_ms()).await.answered()?;
    let Ok(rank) = last_read.in_view(&view) else { return Ok(None) };
    let standing =
        Standing { place: Place::Waiting { score: key.score, rank }, view: LineView::clone(&view) };
    let asker = Asker {
        keys: &state.keys,
        event: &poll.event,
        token: poll.token,
        ticket_number: key.ticket_number,
        ticket_count: key.ticket_count,
        last_read: Some(last_read),
    };
    response::polled(asker, &Polled { standing, ticket_count }, None).map(Some)
}

async fn progress(state: &State, request: &Request) -> Answer {
    let progress = request::progress(&state.gate, request)?;
    let view = state.store.progress(&progress).await.answered()?;
    response::progress(&view, Some(&state.seed(&progress.event)))
}
