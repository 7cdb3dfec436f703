//! What can be counted, kept in atomics that only grow. Each number remembers how much of it an EMF line has told.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// A number that grows, and how much of it has been told.
#[derive(Debug, Default)]
struct Tally {
    total: AtomicU64,
    told: AtomicU64,
}

impl Tally {
    const fn new() -> Self {
        Self { total: AtomicU64::new(0), told: AtomicU64::new(0) }
    }

    fn add(&self, count: u64) {
        self.total.fetch_add(count, Ordering::Relaxed);
    }

    fn total(&self) -> u64 {
        self.total.load(Ordering::Relaxed)
    }

    /// What has come since this was last asked. For one asker at a time.
    fn untold(&self) -> u64 {
        let total = self.total();
        total.saturating_sub(self.told.swap(total, Ordering::Relaxed))
    }
}

/// How often something happened.
#[derive(Debug, Default)]
pub struct Counter(Tally);

impl Counter {
    /// One at 0.
    pub const fn new() -> Self {
        Self(Tally::new())
    }

    /// It happened `count` times more.
    pub fn add(&self, count: u64) {
        self.0.add(count);
    }

    /// How often since the process began.
    pub fn total(&self) -> u64 {
        self.0.total()
    }

    pub(crate) fn untold(&self) -> u64 {
        self.0.untold()
    }
}

/// How things stand.
#[derive(Debug, Default)]
pub struct Gauge {
    bits: AtomicU64,
    sets: Tally,
}

impl Gauge {
    /// One that was never set.
    pub const fn new() -> Self {
        Self { bits: AtomicU64::new(0), sets: Tally::new() }
    }

    /// Things stand at `value` now, in the metric's unit.
    pub fn set(&self, value: f64) {
        self.bits.store(value.to_bits(), Ordering::Relaxed);
        self.sets.add(1);
    }

    /// How things stood last; nothing where nobody has ever said.
    pub fn value(&self) -> Option<f64> {
        (self.sets.total() > 0).then(|| f64::from_bits(self.bits.load(Ordering::Relaxed)))
    }

    pub(crate) fn untold(&self) -> Option<f64> {
        if self.sets.untold() > 0 { self.value() } else { None }
    }
}

/// The longest times of a distribution's parts, in microseconds; a last part takes what is longer.
pub(crate) const BOUNDS_MICROS: [u64; 20] = [
    100,
    200,
    500,
    1_000,
    2_000,
    5_000,
    10_000,
    20_000,
    50_000,
    100_000,
    200_000,
    500_000,
    1_000_000,
    2_000_000,
    5_000_000,
    10_000_000,
    30_000_000,
    60_000_000,
    300_000_000,
    900_000_000,
];
const PARTS: usize = BOUNDS_MICROS.len() + 1;

/// How long something took, each time.
#[derive(Debug)]
pub struct Distribution {
    parts: [Part; PARTS],
}

#[derive(Debug)]
struct Part {
    count: Tally,
    micros: Tally,
}

/// How many times fell into a part of a distribution, and their sum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PartSum {
    pub(crate) count: u64,
    pub(crate) micros: u64,
}

impl Distribution {
    /// An empty one.
    pub const fn new() -> Self {
        Self { parts: [const { Part { count: Tally::new(), micros: Tally::new() } }; PARTS] }
    }

    /// It took so long, once more.
    pub fn observe(&self, took: Duration) {
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        let at = BOUNDS_MICROS.partition_point(|bound| *bound < micros);
        self.parts[at].count.add(1);
        self.parts[at].micros.add(micros);
    }

    /// How many times were observed since the process began.
    pub fn count(&self) -> u64 {
        self.totals().iter().map(|part| part.count).sum()
    }

    pub(crate) fn totals(&self) -> [PartSum; PARTS] {
        self.parts.each_ref().map(|part| PartSum { count: part.count.total(), micros: part.micros.total() })
    }

    pub(crate) fn untold(&self) -> [PartSum; PARTS] {
        self.parts.each_ref().map(|part| PartSum { count: part.count.untold(), micros: part.micros.untold() })
    }
}

impl Default for Distribution {
    fn default() -> Self {
        Self::new()
    }
}

/// Codes that one metric tells apart at most; what is beyond is not counted.
pub(crate) const CODES: usize = 64;

/// How often each code occurred.
#[derive(Debug)]
pub struct Codes {
    slots: [Slot; CODES],
}

#[derive(Debug)]
struct Slot {
    code: OnceLock<&'static str>,
    count: Counter,
}

impl Codes {
    /// None has occurred.
    pub const fn new() -> Self {
        Self { slots: [const { Slot { code: OnceLock::new(), count: Counter::new() } }; CODES] }
    }

    /// `code` occurred once more. A code takes the first slot that is free when it is first met.
    pub fn add(&self, code: &'static str) {
        let slot = self.slots.iter().find(|slot| *slot.code.get_or_init(|| code) == code);
        if let Some(slot) = slot {
            slot.count.add(1);
        }
    }

    /// How often a code occurred since the process began.
    pub fn total(&self, code: &str) -> u64 {
        self.met().find(|(met, _)| *met == code).map_or(0, |(_, count)| count.total())
    }

    /// The codes that have occurred.
    pub(crate) fn met(&self) -> impl Iterator<Item = (&'static str, &Counter)> {
        self.slots.iter().map_while(|slot| slot.code.get().map(|code| (*code, &slot.count)))
    }
}

impl Default for Codes {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counter_is_told_once() {
        let counter = Counter::new();
        assert_eq!((counter.total(), counter.untold()), (0, 0));
        counter.add(2);
        counter.add(1);
        assert_eq!((counter.untold(), counter.untold(), counter.total()), (3, 0, 3));
    }

    #[test]
    fn a_gauge_is_told_when_it_was_set() {
        let gauge = Gauge::new();
        assert_eq!((gauge.value(), gauge.untold()), (None, None));
        gauge.set(0.0);
        assert_eq!((gauge.untold(), gauge.untold(), gauge.value()), (Some(0.0), None, Some(0.0)));
        gauge.set(0.0);
        assert_eq!(gauge.untold(), Some(0.0), "it was said again");
    }

    #[test]
    fn a_time_falls_into_the_first_part_that_holds_it() {
        let distribution = Distribution::new();
        for micros in [0, 100, 101, 1_000_000_000] {
            distribution.observe(Duration::from_micros(micros));
        }
        let totals = distribution.totals();
        assert_eq!(totals[0], PartSum { count: 2, micros: 100 });
        assert_eq!(totals[1], PartSum { count: 1, micros: 101 });
        assert_eq!(totals[PARTS - 1], PartSum { count: 1, micros: 1_000_000_000 });
        assert_eq!((distribution.count(), distribution.untold() == totals), (4, true));
        assert!(distribution.untold().iter().all(|part| part.count == 0));
    }

    #[test]
    fn codes_are_bounded_and_counted_apart() {
        let codes = Codes::new();
        codes.add("B");
        codes.add("A");
        codes.add("B");
        assert_eq!((codes.total("A"), codes.total("B"), codes.total("C")), (1, 2, 0));
        let many: Vec<&'static str> = (0..CODES).map(|at| &*format!("code {at}").leak()).collect();
        for code in &many {
            codes.add(code);
        }
        assert_eq!(codes.met().count(), CODES);
        assert_eq!(codes.total(many[CODES - 1]), 0, "there was no room for it");
    }

    #[test]
    fn counting_from_many_threads_loses_nothing() {
        static COUNTER: Counter = Counter::new();
        static CODES: Codes = Codes::new();
        let count = || {
            for _ in 0..1_000 {
                COUNTER.add(1);
                CODES.add("X");
                CODES.add("Y");
            }
        };
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(count);
            }
        });
        assert_eq!((COUNTER.total(), CODES.total("X"), CODES.total("Y")), (4_000, 4_000, 4_000));
    }
}
