//! Take a place in the line, or come back to it.

use bootstrap::{Answered, State, metrics};
use domain::outcome::Joined;
use domain::{Account, Token};
use gateway::response::{self, Asker};
use gateway::routes::Call;
use gateway::{Answer, Body, Failure, PlaceKey, Request, Response, answer, request};

/// Answers a request to this function.
pub async fn handle(state: &State, request: Request) -> Response<Body> {
    let request = &request;
    answer(&state.gate, "join", request, |call| async move {
        match call {
            Call::Join => join(state, request).await,
            Call::Rejoin => rejoin(state, request).await,
            _ => Err(Failure::NotFound),
        }
    })
    .await
}

async fn join(state: &State, request: &Request) -> Answer {
    let join = request::join(&state.gate, request)?;
    let draw = |token| state.drawn(&join.event, token);
    let new = Token::of(&join.event, join.account.as_ref());
    let (token, joined) = state.store.join(&join, draw(new), draw).await.answered()?;
    count(&joined);
    let asker = Asker {
        keys: &state.keys,
        event: &join.event,
        token,
        ticket_number: joined.ticket_number,
        ticket_count: bought(join.account.as_ref()),
        last_read: None,
    };
    response::joined(asker, &joined)
}

async fn rejoin(state: &State, request: &Request) -> Answer {
    let rejoin = request::rejoin(&state.gate, request)?;
    let key = rejoin.key.as_deref().and_then(|key| state.keys.check(&rejoin.event, rejoin.token, key));
    let proven = key.as_ref().map(PlaceKey::proven);
    let draw = |token| state.drawn(&rejoin.event, token);
    let new = Token::of(&rejoin.event, rejoin.account.as_ref());
    let (token, mut joined) = state.store.rejoin(&rejoin, proven, draw(new), draw).await.answered()?;
    count(&joined);
    if joined.joined_at.is_none() && joined.ticket_number.is_none() && token == rejoin.token {
        // A drawn place: only its key remembers when it came.
        joined.ticket_number = key.and_then(|key| key.ticket_number);
    }
    let asker = Asker {
        keys: &state.keys,
        event: &rejoin.event,
        token,
        ticket_number: joined.ticket_number,
        ticket_count: None,
        last_read: None,
    };
    let access_token = state.access_token_of(request, &rejoin.event, token, &joined.standing)?;
    response::rejoined(asker, &joined, access_token)
}

/// A place that was known is no new one.
fn count(joined: &Joined) {
    if joined.joined_at.is_some() {
        metrics::JOINS.add(1);
    }
}

/// What a token that has just joined has bought: nothing, unless it has an account, of which the first poll tells.
fn bought(account: Option<&Account>) -> Option<u32> {
    account.is_none().then_some(0)
}
