//! The rules a sale has had, edition by edition: what is judged is judged by the rules of its time.

use domain::fact::{Fact, StreamId, What};
use domain::layout::Edition;
use domain::sale::Sale;
use domain::{EventId, Millis};
use records::Records;

use super::Pending;
use crate::AdminError;

/// A fact's place in an event's journal.
pub(crate) type Position = (u64, StreamId);

pub(crate) fn position(fact: &Fact) -> Position {
    (fact.epoch, fact.id)
}

/// What one edition allowed.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Rules {
    pub(crate) opens_at: Millis,
    pub(crate) closes_at: Millis,
    pub(crate) limit_per_account: u32,
    pub(crate) max_active: u32,
    /// The most people called a second.
    pub(crate) calls_per_second: f64,
}

impl Rules {
    fn of(sale: &Sale) -> Self {
        let admission = &sale.admission;
        Self {
            opens_at: sale.opens_at,
            closes_at: sale.closes_at,
            limit_per_account: sale.limit_per_account,
            max_active: admission.max_active,
            // Making up for no-shows calls up to twice the pace.
            calls_per_second: admission.per_second * if admission.compensate_no_shows { 2.0 } else { 1.0 },
        }
    }
}

#[derive(Debug, Clone)]
struct Entry {
    from: Position,
    at: Millis,
    rules: Rules,
}

/// All editions, oldest first; one at least.
#[derive(Debug, Clone)]
pub(crate) struct History {
    entries: Vec<Entry>,
    /// The newest version that PostgreSQL or the journal has.
    pub(crate) version: u64,
    /// Whether that is the one in place.
    pub(crate) is_complete: bool,
}

impl History {
    pub(crate) async fn read(
        records: &Records,
        event: &EventId,
        pending: &Pending,
        edition: &Edition,
    ) -> Result<Self, AdminError> {
        let mut facts = Vec::new();
        records.each_fact(event, "EVENT_CHANGED", |fact| facts.push(fact)).await?;
        facts.extend(pending.changes.iter().cloned());
        Ok(Self::of(facts, edition))
    }

    /// From the facts that changed a sale, in any order, and the edition in place.
    pub(crate) fn of(mut facts: Vec<Fact>, edition: &Edition) -> Self {
        facts.sort_by_key(position);
        facts.dedup_by_key(|fact| position(fact));
        let mut newest = 0;
        let mut entries: Vec<Entry> = Vec::new();
        for fact in facts {
            let (from, at) = (position(&fact), fact.at);
            let What::EventChanged { version, definition: Some(definition), .. } = fact.what else {
                continue;
            };
            let Ok(sale) = serde_json::from_value::<Sale>(definition) else { continue };
            newest = newest.max(version);
            entries.push(Entry { from, at, rules: Rules::of(&sale) });
        }
        let is_complete = newest >= edition.version;
        if !is_complete {
            // It holds from some moment after the last one that is known.
            let from = entries.last().map_or((0, StreamId { ms: 0, sequence: 0 }), |last| last.from);
            let at = entries.last().map_or(Millis(0), |last| last.at);
            entries.push(Entry { from, at, rules: Rules::of(&edition.sale) });
        }
        Self { entries, version: newest, is_complete }
    }

    /// The rules in force right before this fact, and those since `after`, oldest first.
    pub(crate) fn between(&self, after: Option<Position>, until: Position) -> impl Iterator<Item = &Rules> {
        let in_force = |at: Position| self.entries.partition_point(|entry| entry.from <= at).max(1);
        let first = after.map_or_else(|| in_force(until), in_force) - 1;
        self.entries[first..in_force(until).max(first + 1)].iter().map(|entry| &entry.rules)
    }

    /// The rules in force at an instant.
    pub(crate) fn at(&self, at: Millis) -> &Rules {
        let behind = self.entries.partition_point(|entry| entry.at <= at).max(1);
        &self.entries[behind - 1].rules
    }

    /// The most that any edition allowed.
    pub(crate) fn most(&self, what: impl Fn(&Rules) -> u32) -> u32 {
        self.entries.iter().map(|entry| what(&entry.rules)).max().unwrap_or_default()
    }
}
