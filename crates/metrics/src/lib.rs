//! What is counted: one table of atomics that every function of a process adds to, told as EMF lines in Lambda
//! ([`Emf`]) and as Prometheus' text by `jari serve` ([`prometheus::text`]). Counting is an atomic add and never waits.
//!
//! Names, units and meanings: [`TABLE`], which docs/metrics.md shows.

mod emf;
mod kinds;
pub mod prometheus;

pub use emf::{Emf, NAMESPACE, flush, flushed, tell_by};
pub use kinds::{Codes, Counter, Distribution, Gauge};

/// How CloudWatch calls a unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)] // CloudWatch's own words.
pub enum Unit {
    Count,
    Milliseconds,
    None,
}

impl Unit {
    /// CloudWatch's word.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Count => "Count",
            Self::Milliseconds => "Milliseconds",
            Self::None => "None",
        }
    }
}

/// Where a metric's value is kept.
#[derive(Debug, Clone, Copy)]
#[allow(missing_docs)] // Each type says what it is.
pub enum Kind {
    Counter(&'static Counter),
    Gauge(&'static Gauge),
    Distribution(&'static Distribution),
    Codes(&'static Codes),
}

/// One metric.
#[derive(Debug, Clone, Copy)]
pub struct Metric {
    /// CloudWatch's name of it; one by codes has a name for each, `{name}_{code}` in small letters.
    pub name: &'static str,
    /// Its unit in CloudWatch.
    pub unit: Unit,
    /// Where its value is kept.
    pub kind: Kind,
    /// What it tells.
    pub means: &'static str,
}

macro_rules! table {
    ($($kind:ident $name:ident $text:literal $unit:ident $means:literal)*) => {
        $(#[doc = $means] pub static $name: $kind = $kind::new();)*

        /// Every metric, each once.
        pub const TABLE: &[Metric] = &[$(Metric {
            name: $text, unit: Unit::$unit, kind: Kind::$kind(&$name), means: $means,
        }),*];
    };
}

table! {
    Counter JOINS "joins" Count "new places in a line"
    Counter POLLS_EXACT "polls_exact" Count "polls that read the place in Redis"
    Counter POLLS_KEYED "polls_keyed" Count "polls answered from their key and a shared view of the line"
    Counter TICKS "ticks" Count "rounds in which every sale was ticked"
    Counter ADMITTED "admitted" Count "people called"
    Gauge WAITING "waiting" Count "people waiting, over all sales, as of the last tick"
    Gauge ACTIVE "active" Count "calls and sessions alive, over all sales, as of the last tick"
    Gauge REMAINING "remaining" Count "free places, over all sales, as of the last tick"
    Counter HELD "held" Count "places that holds were answered with"
    Counter SOLD "sold" Count "places sold"
    Counter BOOKINGS "bookings" Count "reservations made"
    Codes REFUSALS "refusals" Count "requests without success, by the code of the answer"
    Distribution REDIS_LATENCY "redis_latency" Milliseconds "a command to Redis, from sending to its answer or failure"
    Gauge JOURNAL_LAG "journal_lag" Milliseconds "age of the oldest fact that no queue had taken when the relay looked"
    Counter PERSISTED "persisted" Count "facts written to PostgreSQL, repeated ones included"
    Distribution PERSIST_LAG "persist_lag" Milliseconds "from a fact in Redis to its row in PostgreSQL"
    Counter PERSIST_FAILURES "persist_failures" Count "batches that PostgreSQL could not be asked to write"
    Counter FACTS_REFUSED "facts_refused" Count "facts that could not be read or that PostgreSQL refused, each time they came"
    Counter GUARD_VIOLATIONS "guard_violations" Count "those of them that broke a guard of PostgreSQL: never, while all is well"
    Counter DEAD_LETTERS "dead_letters" Count "messages that jari serve put among its dead letters"
    Gauge BACKPRESSURE "backpressure" None "the part of the pace that waiting bookings leave, of the sale where it is least; 1: all of it"
    Counter EPOCH_CHANGES "epoch_changes" Count "times that Redis turned out to be another one"
    Counter COLD_STARTS "cold_starts" Count "processes started"
}

// What one directive of EMF may name.
const _: () = assert!(TABLE.len() - 1 + kinds::CODES <= 100);
