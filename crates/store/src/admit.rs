//! One tick of an event.

use domain::outcome::{Outcome, SaleStatus};
use domain::{EventId, Millis, ReservationId};

use crate::keys::Keys;
use crate::step::{ADMIT, Call};
use crate::{Store, StoreError};

/// What a tick did and found.
#[derive(Debug, Clone, PartialEq, Eq)]
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
    /// Reservations whose time to be paid is over, each to be expired: as many as a step names.
    pub overdue: Vec<ReservationId>,
}

impl Store {
    /// One tick: give back what is due, end what is over, call who is next.
    pub async fn admit(&self, event: &EventId) -> Result<Outcome<Tick>, StoreError> {
        let mut reply = self.run(Call::new(&ADMIT, Keys::of(event)).arg(self.now_ms())).await?;
        if reply.word() != "TICKED" {
            return reply.refusal().map(Err);
        }
        let now = reply.millis()?;
        let status = reply.text()?;
        Ok(Ok(Tick {
            now,
            status: SaleStatus::from_word(&status).ok_or_else(|| reply.malformed(&status))?,
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
            overdue: reply.array()?.rest()?,
        }))
    }
}
