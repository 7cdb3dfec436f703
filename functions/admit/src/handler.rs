//! Ticks: each second, every sale calls who is next. Runs overlap without harm: credit is counted by Redis'
//! clock, so a second scheduler, a late tick or a repeated one admits nobody more.

mod push;

pub use push::{PUSH_INTERVAL, push_all, push_event, run_pushing};

use std::time::Duration;

use bootstrap::metrics;
use domain::outcome::SaleStatus;
use domain::{EventId, ReservationId};
use futures::future::join_all;
use store::{Store, StoreError, Tick};
use tokio::time::{Instant, MissedTickBehavior, interval};

/// How long a scheduled run ticks: twice the schedule's minute, so that no gap opens.
pub const RUN: Duration = Duration::from_mins(2);
/// Between two ticks.
pub const INTERVAL: Duration = Duration::from_secs(1);
/// Calls of one event's step in one tick at most, where one alone does not get through.
const CALLS_A_TICK: u32 = 20;

/// Tick every sale each second for `run`; end at once where no sale is open or about to open.
pub async fn run(store: &Store, run: Duration) -> Result<(), StoreError> {
    let end = Instant::now() + run;
    let mut ticks = interval(INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    loop {
        ticks.tick().await;
        let alive = tick_all(store).await?;
        metrics::flush();
        if !alive || Instant::now() + INTERVAL > end {
            return Ok(());
        }
    }
}

/// One tick of every sale. Whether any sale is open, about to open, or still has people inside. A sale whose tick
/// fails is logged and does not hold up the others.
pub async fn tick_all(store: &Store) -> Result<bool, StoreError> {
    let events = store.events().await?;
    let ticked = join_all(events.iter().map(|event| tick_event(store, event))).await;
    count(&ticked);
    Ok(ticked.into_iter().any(|ticked| ticked.alive))
}

/// What a tick of a sale came to.
#[derive(Debug, Clone, PartialEq, Eq)]
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
}

/// One tick of a sale.
pub async fn tick_event(store: &Store, event: &EventId) -> Ticked {
    let mut last = None;
    for _ in 0..CALLS_A_TICK {
        match store.admit(event).await {
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
