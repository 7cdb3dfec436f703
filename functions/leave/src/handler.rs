//! Give up a place or a session.

use bootstrap::{Answered, State};
use gateway::{Body, Request, Response, answer, request, response};

/// Answers a request to this function.
pub async fn handle(state: &State, request: Request) -> Response<Body> {
    let request = &request;
    answer(&state.gate, "leave", request, |_| async move {
        let leave = request::leave(&state.gate, request)?;
        response::left(state.store.leave(&leave).await.answered()?)
    })
    .await
}
