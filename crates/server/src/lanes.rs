//! How many requests are worked on at once. What is more is told to come back before any work is done for it: deployed, API
//! Gateway's limits and each function's concurrency do this. People inside have a lane of their own, so that no crowd
//! before the doors holds up whoever chooses a seat or pays.

use gateway::routes::{self, Guard};
use gateway::{Body, Failure, Gate, Request, Response, answer};
use tokio::sync::{Semaphore, SemaphorePermit};

/// Joins, polls and whatever else proves nothing: at work and in wait of it.
const LINE_REQUESTS: usize = 256;
/// Of those, at work. As many keep one Redis busy; more would only take turns with people inside.
const LINE_REQUESTS_AT_WORK: usize = 64;
/// Seats, bookings and payments.
const INSIDE_REQUESTS: usize = 1_024;
/// Most of what is refused finds room a moment later.
const RETRY_SECONDS: u32 = 1;

pub(crate) struct Lanes {
    line: Semaphore,
    line_at_work: Semaphore,
    inside: Semaphore,
}

/// Room for a request until it is answered.
pub(crate) struct Room<'a> {
    _lane: SemaphorePermit<'a>,
    _work: Option<SemaphorePermit<'a>>,
}

impl Lanes {
    pub(crate) fn new() -> Self {
        Self {
            line: Semaphore::new(LINE_REQUESTS),
            line_at_work: Semaphore::new(LINE_REQUESTS_AT_WORK),
            inside: Semaphore::new(INSIDE_REQUESTS),
        }
    }

    /// Waits for its turn; none at once where the request's lane is full.
    pub(crate) async fn enter(&self, request: &Request) -> Option<Room<'_>> {
        let is_inside = routes::of(request).is_ok_and(|(route, _)| route.call.guard() != Guard::Open);
        if is_inside {
            return Some(Room { _lane: self.inside.try_acquire().ok()?, _work: None });
        }
        let lane = self.line.try_acquire().ok()?;
        let work = self.line_at_work.acquire().await.ok()?;
        Some(Room { _lane: lane, _work: Some(work) })
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
