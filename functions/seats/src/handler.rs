//! Look for offerings and at their seats.

use bootstrap::{Answered, State};
use gateway::routes::Call;
use gateway::{Body, Failure, Request, Response, answer, request, response};

/// Answers a request to this function.
pub async fn handle(state: &State, request: Request) -> Response<Body> {
    let request = &request;
    answer(&state.gate, "seats", request, |call| async move {
        match call {
            Call::Search => {
                let search = request::search(&state.gate, request)?;
                response::offerings(&state.store.search(&search).await.answered()?)
            }
            Call::SeatMap => {
                let seat_map = request::seat_map(&state.gate, request)?;
                response::seat_map(request, &state.store.seat_map(&seat_map).await.answered()?)
            }
            _ => Err(Failure::NotFound),
        }
    })
    .await
}
