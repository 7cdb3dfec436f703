//! Create, change and list sales.

use std::sync::Arc;

use domain::layout::{Change, Edition};
use domain::outcome::{LineView, Outcome, Refusal};
use domain::sale::{PaymentMode, PreQueue, Sale};
use domain::{EventId, Millis};
use redis::Value;

use crate::keys::{EVENTS, KeyName, Keys};
use crate::step::{APPLY, CHANGE, Call};
use crate::{Store, StoreError};

/// What applying an edition came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Applied {
    /// It is in place.
    Applied {
        /// Its version.
        version: u64,
    },
    /// Somebody else changed the event since it was read.
    Conflict {
        /// The version in place.
        version: u64,
    },
    /// Redis may have lost what was sold: until that is back no edition is taken.
    Recovering,
    /// It takes off sale what is held or sold.
    InUse {
        /// The section's number in the edition's layout.
        section: u32,
    },
}

/// What an operator changes of a running sale without a new edition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StatusChange {
    /// Let people in again.
    Open,
    /// Admit nobody.
    Pause,
    /// End the sale.
    Close,
    /// What every waiting person is told; empty for nothing.
    Message(String),
    /// Whether holds and bookings are refused.
    Maintenance(bool),
}

impl StatusChange {
    fn words(&self) -> (&'static str, &'static str, &str) {
        match self {
            Self::Open => ("open", "status", "OPEN"),
            Self::Pause => ("pause", "status", "PAUSED"),
            Self::Close => ("close", "status", "CLOSED"),
            Self::Message(message) => ("message", "message", message),
            Self::Maintenance(true) => ("maintenance", "maintenance", "1"),
            Self::Maintenance(false) => ("maintenance", "maintenance", "0"),
        }
    }
}

/// An event as an operator sees it.
#[derive(Debug, Clone, PartialEq)]
pub struct EventState {
    /// Its edition.
    pub edition: Arc<Edition>,
    /// Its line.
    pub view: LineView,
    /// Calls and sessions alive.
    pub active: u64,
    /// Reservations made, cancelled ones included.
    pub reservations: u64,
    /// Facts not yet taken by the queue.
    pub journal: u64,
    /// Whether holds and bookings are refused.
    pub maintenance: bool,
    /// The part of the set pace that what waits for PostgreSQL leaves, 0 to 1.
    pub pace_factor: f64,
    /// Whether nobody new joins, as the journal is too long.
    pub joins_refused: bool,
    /// When the last tick was; none before the first.
    pub ticked_at: Option<Millis>,
    /// When a relay last looked at it; none before the first.
    pub relayed_at: Option<Millis>,
}

impl Store {
    /// Bring an event to `edition`, made from the version before it by `change`, or create it.
    pub async fn apply(
        &self,
        edition: &Edition,
        change: &Change,
        by: &str,
        what: &str,
    ) -> Result<Applied, StoreError> {
        let event = &edition.sale.event_id;
        let fields = meta_fields(&edition.sale);
        let sale = serde_json::to_string(&edition.sale).map_err(|error| StoreError::Definition {
            event: event.to_string(),
            reason: error.to_string(),
        })?;
        loop {
            let mut call = Call::new(&APPLY, Keys::of(event))
                .arg(self.now_ms())
                .arg(by)
                .arg(what)
                .arg(edition.version - 1)
                .arg(edition.version)
                .arg(edition.to_json())
                .arg(&sale)
                .arg(&change.appended)
                .arg(fields.len())
                .arg(change.stock.len())
                .arg(change.removed.len());
            for (field, value) in &fields {
                call = call.arg(*field).arg(value);
            }
            for (section, delta) in &change.stock {
                call = call.arg(*section).arg(*delta);
            }
            for span in &change.removed {
                call = call.arg(span.section).arg(span.offset).arg(span.length);
            }
            let mut reply = self.run(call).await?;
            return match reply.word() {
                // Each turn gives back expired holds, of which there are at most as many as places.
                "AGAIN" => continue,
                "APPLIED" => {
                    let version = reply.count()?;
                    self.query("SADD", redis::cmd("SADD").arg(EVENTS).arg(event.as_str())).await?;
                    Ok(Applied::Applied { version })
                }
                "CONFLICT" => Ok(Applied::Conflict { version: reply.count()? }),
                "RECOVERING" => Ok(Applied::Recovering),
                "IN_USE" => Ok(Applied::InUse { section: reply.small()? }),
                _ => Err(reply.malformed("not an outcome")),
            };
        }
    }

    /// Change a running sale.
    pub async fn change(
        &self,
        event: &EventId,
        by: &str,
        change: &StatusChange,
    ) -> Result<Outcome<u64>, StoreError> {
        let (what, field, value) = change.words();
        let call =
            Call::new(&CHANGE, Keys::of(event)).arg(self.now_ms()).arg(by).arg(what).arg(field).arg(value);
        let mut reply = self.run(call).await?;
        match reply.word() {
            "CHANGED" => reply.count().map(Ok),
            _ => reply.refusal().map(Err),
        }
    }

    /// The ids of all events, in order.
    pub async fn events(&self) -> Result<Vec<EventId>, StoreError> {
        let members: Vec<String> = self.read("SMEMBERS", redis::cmd("SMEMBERS").arg(EVENTS)).await?;
        let mut events: Vec<EventId> = members.iter().filter_map(|id| id.parse().ok()).collect();
        events.sort();
        Ok(events)
    }

    /// An event as an operator sees it.
    pub async fn event_state(&self, event: &EventId) -> Result<Outcome<EventState>, StoreError> {
        let Some(edition) = self.newest_edition(event).await? else { return Ok(Err(Refusal::EventNotFound)) };
        let progress = domain::command::Progress { event: event.clone() };
        let view = match self.progress(&progress).await? {
            Ok(progress) => progress.view,
            Err(refusal) => return Ok(Err(refusal)),
        };
        let mut meta = redis::cmd("HMGET");
        meta.arg(Keys::of(event).name(KeyName::Meta)).arg(&[
            "maintenance",
            "paceFactor",
            "joinsRefused",
            "clock",
            "relayedAt",
        ]);
        let [maintenance, pace_factor, joins_refused, ticked_at, relayed_at]: [Option<String>; 5] =
            self.read("HMGET", &meta).await?;
        let is_set = |flag: Option<String>| flag.as_deref() == Some("1");
        // A sale that nobody has ticked yet has a clock of 0.
        let instant = |at: Option<String>| at.and_then(|at| at.parse().ok()).filter(|at| *at > 0).map(Millis);
        Ok(Ok(EventState {
            edition,
            view,
            active: self.size("ZCARD", event, KeyName::Active).await?,
            reservations: self.size("ZCARD", event, KeyName::Reservations).await?,
            journal: self.size("XLEN", event, KeyName::Journal).await?,
            maintenance: is_set(maintenance),
            // Before its first tick a sale has none.
            pace_factor: pace_factor.and_then(|factor| factor.parse().ok()).unwrap_or(1.0),
            joins_refused: is_set(joins_refused),
            ticked_at: instant(ticked_at),
            relayed_at: instant(relayed_at),
        }))
    }

    pub(crate) async fn size(
        &self,
        command: &'static str,
        event: &EventId,
        name: KeyName,
    ) -> Result<u64, StoreError> {
        match self.query(command, redis::cmd(command).arg(Keys::of(event).name(name))).await? {
            Value::Int(size) => Ok(u64::try_from(size).unwrap_or(0)),
            other => Err(StoreError::Malformed { step: command, reply: format!("{other:?}") }),
        }
    }
}

/// What the steps read of a definition, in meta.
pub(crate) fn meta_fields(sale: &Sale) -> Vec<(&'static str, String)> {
    let flag = |on: bool| String::from(if on { "1" } else { "0" });
    let ms = |seconds: u32| (i64::from(seconds) * 1000).to_string();
    let instant = |at: Option<Millis>| at.map(|at| at.to_string()).unwrap_or_default();
    let pre_queue = match sale.pre_queue {
        PreQueue::Closed => "closed",
        PreQueue::Fifo => "fifo",
        PreQueue::Shuffle => "shuffle",
    };
    let payment_mode = match sale.payment.mode {
        PaymentMode::None => "none",
        PaymentMode::Deferred => "deferred",
    };
    vec![
        ("title", sale.title.clone()),
        ("opensAt", sale.opens_at.to_string()),
        ("closesAt", sale.closes_at.to_string()),
        ("preQueue", pre_queue.to_owned()),
        ("perSecond", sale.admission.per_second.to_string()),
        ("maxActive", sale.admission.max_active.to_string()),
        ("activeMs", ms(sale.admission.active_seconds)),
        ("claimMs", ms(sale.admission.claim_seconds)),
        ("compensateNoShows", flag(sale.admission.compensate_no_shows)),
        ("backpressureSeconds", sale.admission.backpressure_seconds.unwrap_or(0).to_string()),
        ("holdMs", ms(sale.hold_seconds)),
        ("limitPerAccount", sale.limit_per_account.to_string()),
        ("requireAccount", flag(sale.require_account)),
        ("joinsPerAddressPerSecond", sale.joins_per_address_per_second.to_string()),
        ("paymentMode", payment_mode.to_owned()),
        ("paymentDueAt", instant(sale.payment.due_at)),
        ("paymentDueAfterMs", sale.payment.due_after_seconds.map(ms).unwrap_or_default()),
        ("currency", sale.payment.currency.clone()),
        // More than 64 bytes make a table of the hash, whose fields are found at once; else Redis keeps it as a list
        // and searches that for each of the fifteen fields that a join reads.
        ("asTable", "-".repeat(65)),
    ]
}
