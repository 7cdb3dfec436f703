//! One tick of an event.

use domain::outcome::{Outcome, SaleStatus};
use domain::{EventId, Millis, ReservationId};

use crate::keys::Keys;
use crate::step::{ADMIT, Call};
use crate::{Store, StoreError};

/// What a tick is told of what lies beyond Redis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Load {
    /// What waits for PostgreSQL.
    pub backlog: BookingsWaiting,
    /// Facts in a sale's journal from which on nobody new joins, until half of them are left.
    pub journal_limit: u64,
}

/// What waits for PostgreSQL.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum BookingsWaiting {
    /// It has not been asked for yet: the last tick's answer goes on.
    #[default]
    Unknown,
    /// So many messages about bookings.
    Messages(u64),
    /// It has not been known for too long: more than is bearable.
    TooMany,
}

/// Facts of a sale's journal, by default, from which on nobody new joins. As joins (97 bytes each) they take 200 MB, less
/// than the line of as many people does.
pub const JOURNAL_LIMIT: u64 = 2_000_000;

impl Default for Load {
    fn default() -> Self {
        Self { backlog: BookingsWaiting::Unknown, journal_limit: JOURNAL_LIMIT }
    }
}

/// What a tick did and found.
#[derive(Debug, Clone, PartialEq)]
pub struct Tick {
    /// Redis' clock.
    pub now: Millis,
    /// Whether the sale lets people in.
    pub status: SaleStatus,
    /// When it opens.
    pub opens_at: Millis,
    /// When it ends.
    pub closes_at: Millis,
    /// People called.
    pub admitted: u64,
    /// Called people who did not come.
    pub lapsed: u64,
    /// Sessions ended without a booking.
    pub expired: u64,
    /// Units of expired holds given back.
    pub reaped: u64,
    /// Whether another call at once would go on.
    pub more: bool,
    /// People waiting.
    pub waiting: u64,
    /// Calls and sessions alive.
    pub active: u64,
    /// Free places in the whole event.
    pub remaining: u64,
    /// The epoch that the sale is in.
    pub epoch: u64,
    /// Whether what was answered before a loss of Redis is still being put back.
    pub recovering: bool,
    /// The part of the set pace that what waits for PostgreSQL leaves, 0 to 1.
    pub pace_factor: f64,
    /// Whether nobody new joins, as the journal is too long.
    pub joins_refused: bool,
    /// Reservations whose time to be paid is over, each to be expired: as many as a step names.
    pub overdue: Vec<ReservationId>,
}

impl Store {
    /// One tick: give back what is due, end what is over, call who is next.
    pub async fn admit(&self, event: &EventId, load: Load) -> Result<Outcome<Tick>, StoreError> {
        let backlog = match load.backlog {
            BookingsWaiting::Unknown => String::new(),
            BookingsWaiting::Messages(messages) => messages.to_string(),
            BookingsWaiting::TooMany => "full".to_owned(),
        };
        let call = Call::new(&ADMIT, Keys::of(event)).arg(self.now_ms()).arg(backlog).arg(load.journal_limit);
        let mut reply = self.run(call).await?;
        if reply.word() != "TICKED" {
            return reply.refusal().map(Err);
        }
        Ok(Ok(Tick {
            now: reply.millis()?,
            status: reply.status()?,
            opens_at: reply.millis()?,
            closes_at: reply.millis()?,
            admitted: reply.count()?,
            lapsed: reply.count()?,
            expired: reply.count()?,
            reaped: reply.count()?,
            more: reply.integer()? == 1,
            waiting: reply.count()?,
            active: reply.count()?,
            remaining: reply.count()?,
            epoch: reply.count()?,
            recovering: reply.integer()? == 1,
            pace_factor: reply.parsed()?,
            joins_refused: reply.integer()? == 1,
            overdue: reply.array()?.rest()?,
        }))
    }
}
