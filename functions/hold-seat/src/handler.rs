//! Keep seats, or give them back.

use bootstrap::{Answered, State, metrics};
use domain::Token;
use gateway::routes::Call;
use gateway::{Answer, Body, Failure, Request, Response, answer, request, response};

/// Answers a request to this function.
pub async fn handle(state: &State, request: Request) -> Response<Body> {
    let request = &request;
    answer(&state.gate, "hold-seat", request, |call| async move {
        match call {
            Call::Hold => hold(state, request).await,
            Call::Release => {
                let release = request::release(&state.gate, request)?;
                response::released(state.store.release(&release).await.answered()?)
            }
            _ => Err(Failure::NotFound),
        }
    })
    .await
}

async fn hold(state: &State, request: &Request) -> Answer {
    let asked = request::hold(&state.gate, request)?;
    // A name for this request, by which the step knows its own repetition over a broken connection.
    let name = Token::random().to_string();
    let held = state.store.hold(&asked, &name).await.answered()?;
    metrics::HELD.add(held.seat_count.into());
    let access_token = held.prolonged.then(|| {
        let account = held.account.clone();
        state.access_token(request, &asked.event, asked.token, account, held.active_expires_at)
    });
    response::held(&held, access_token.transpose()?)
}
