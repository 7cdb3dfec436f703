//! Ticks: each second, every sale calls who is next. Runs overlap without harm: credit is counted by Redis'
//! clock, so a second scheduler, a late tick or a repeated one admits nobody more.

mod pressure;
mod push;

pub use pressure::Pressure;
pub use push::{PUSH_INTERVAL, push_all, push_event};

use std::time::Duration;

use bootstrap::metrics;
use domain::outcome::SaleStatus;
use domain::{EventId, ReservationId};
use futures::future::{join, join_all};
use outbox::{Backlog, Pushes};
use store::{Load, Store, StoreError, Tick};
use tokio::time::{Instant, MissedTickBehavior, interval};

/// How long a scheduled run ticks: twice the schedule's minute, so that no gap opens.
pub const RUN: Duration = Duration::from_mins(2);
/// Between two ticks.
pub const INTERVAL: Duration = Duration::from_secs(1);
/// Calls of one event's step in one tick at most, where one alone does not get through.
const CALLS_A_TICK: u32 = 20;

/// What a run works with.
pub struct AdmitState {
    /// Where the sales are.
    pub store: Store,
    /// Takes what sockets are told.
    pub pushes: Box<dyn Pushes>,
    /// Tells how many bookings wait for PostgreSQL.
    pub backlog: Box<dyn Backlog>,
    /// Facts in a sale's journal from which on nobody new joins.
    pub journal_limit: u64,
}

/// Ticks for `run`. Beside the ticks it asks what waits for PostgreSQL, and tells sockets what is new; where no sale is
/// alive, what is left to tell.
pub async fn run(state: &AdmitState, run: Duration) -> Result<(), StoreError> {
    let end = Instant::now() + run;
    let (store, pressure) = (&state.store, Pressure::new(state.journal_limit));
    let beside = join(push::push_on(store, &*state.pushes), pressure.follow(&*state.backlog));
    let ticked = tokio::select! {
        ticked = run_ticks(store, &pressure, run) => ticked,
        _ = beside => Ok(()),
    };
    push::last_words(store, &*state.pushes, end).await;
    ticked
}

/// Tick every sale each second for `run`; end at once where no sale is open or about to open.
pub async fn run_ticks(store: &Store, pressure: &Pressure, run: Duration) -> Result<(), StoreError> {
    let end = Instant::now() + run;
    let mut ticks = interval(INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    loop {
        ticks.tick().await;
        let alive = tick_all(store, pressure.load()).await?;
        metrics::flush();
        if !alive || Instant::now() + INTERVAL > end {
            return Ok(());
        }
    }
}

/// One tick of every sale. Whether any sale is open, about to open, or still has people inside. A sale whose tick
/// fails is logged and does not hold up the others.
pub async fn tick_all(store: &Store, load: Load) -> Result<bool, StoreError> {
    let events = store.events().await?;
    let ticked = join_all(events.iter().map(|event| tick_event(store, event, load))).await;
    count(&ticked);
    Ok(ticked.into_iter().any(|ticked| ticked.alive))
}

/// What a tick of a sale came to.
#[derive(Debug, Clone, PartialEq)]
pub struct Ticked {
    /// Whether another should follow.
    pub alive: bool,
    /// What the last step did and found; none where it failed or was refused.
    pub tick: Option<Tick>,
}

/// Sums over some of the sales would tell of a shorter line than there is.
fn count(ticked: &[Ticked]) {
    if ticked.iter().any(|ticked| ticked.alive && ticked.tick.is_none()) {
        return;
    }
    let ticks: Vec<&Tick> = ticked.iter().filter_map(|ticked| ticked.tick.as_ref()).collect();
    let sum = |of: fn(&Tick) -> u64| ticks.iter().map(|tick| of(tick)).sum::<u64>() as f64;
    metrics::TICKS.add(1);
    metrics::WAITING.set(sum(|tick| tick.waiting));
    metrics::ACTIVE.set(sum(|tick| tick.active));
    metrics::REMAINING.set(sum(|tick| tick.remaining));
    metrics::BACKPRESSURE.set(ticks.iter().map(|tick| tick.pace_factor).fold(1.0, f64::min));
}

/// One tick of a sale.
pub async fn tick_event(store: &Store, event: &EventId, load: Load) -> Ticked {
    let mut last = None;
    for _ in 0..CALLS_A_TICK {
        match store.admit(event, load).await {
            Ok(Ok(tick)) => {
                metrics::ADMITTED.add(tick.admitted);
                expire(store, &tick.overdue).await;
                if !tick.more {
                    return Ticked { alive: is_alive(&tick), tick: Some(tick) };
                }
                last = Some(tick);
            }
            Ok(Err(refusal)) => {
                tracing::warn!(%event, ?refusal, "tick refused");
                return Ticked { alive: false, tick: None };
            }
            Err(error) => {
                tracing::error!(%event, %error, "tick failed");
                return Ticked { alive: true, tick: None };
            }
        }
    }
    Ticked { alive: true, tick: last }
}

/// End what was not paid in time, each by its own step: a payment at the same instant wins or loses whole. One that
/// fails is logged; the next tick meets it again.
async fn expire(store: &Store, overdue: &[ReservationId]) {
    let expired = overdue.iter().map(|id| async move {
        if let Err(error) = store.expire(id).await {
            tracing::error!(%id, %error, "an overdue reservation was not expired");
        }
    });
    join_all(expired).await;
}

fn is_alive(tick: &Tick) -> bool {
    // A Duration of two minutes is far below i64::MAX milliseconds.
    let run_ms = i64::try_from(RUN.as_millis()).unwrap_or(i64::MAX);
    match tick.status {
        SaleStatus::Open | SaleStatus::Paused => true,
        SaleStatus::Upcoming => tick.opens_at.0 - tick.now.0 <= run_ms,
        SaleStatus::Closed => tick.active > 0,
    }
}
