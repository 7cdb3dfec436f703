//! How many requests are worked on at once. What is more is told to come back before any work is done for it: deployed, API
//! Gateway's limits and each function's concurrency do this. People inside have a lane of their own, so that no crowd
//! before the doors holds up whoever chooses a seat or pays.

use gateway::routes::{self, Guard};
use gateway::{Body, Failure, Gate, Request, Response, answer};
use tokio::sync::{Semaphore, SemaphorePermit};

/// Joins, polls and whatever else proves nothing. One Redis is kept busy by far fewer.
const LINE_REQUESTS: usize = 256;
/// Seats, bookings and payments.
const INSIDE_REQUESTS: usize = 1_024;
/// Most of what is refused finds room a moment later.
const RETRY_SECONDS: u32 = 1;

pub(crate) struct Lanes {
    line: Semaphore,
    inside: Semaphore,
}

impl Lanes {
    pub(crate) fn new() -> Self {
        Self { line: Semaphore::new(LINE_REQUESTS), inside: Semaphore::new(INSIDE_REQUESTS) }
    }

    /// Room for a request until it is answered; none where its lane is full.
    pub(crate) fn enter(&self, request: &Request) -> Option<SemaphorePermit<'_>> {
        let is_inside = routes::of(request).is_ok_and(|(route, _)| route.call.guard() != Guard::Open);
        let lane = if is_inside { &self.inside } else { &self.line };
        lane.try_acquire().ok()
    }
}

/// What a request is told that found no room.
pub(crate) async fn refuse(gate: &Gate, request: &Request) -> Response<Body> {
    let function = routes::of(request).map_or("poll", |(route, _)| route.function);
    answer(gate, function, request, |_| async {
        Err(Failure::Unavailable { retry_after_seconds: RETRY_SECONDS })
    })
    .await
}
