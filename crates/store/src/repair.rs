//! Put right what can only be right in one way: counters, the map, facts that were lost.

use std::collections::BTreeMap;

use domain::outcome::Outcome;
use domain::{EventId, ReservationId};

use crate::keys::Keys;
use crate::step::{Call, RECOUNT, REFILE};
use crate::{Store, StoreError};

/// What one call puts right at most.
const ITEMS_A_CALL: usize = 500;

/// What is to be set, all of it worked out from one reading.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Recount {
    /// The sequence that the reading saw.
    pub sequence: i64,
    /// Free places in the whole event.
    pub remaining: i64,
    /// Section number → free places; none for a counter of no section.
    pub stock: BTreeMap<u32, Option<i64>>,
    /// Offset in the map → bytes.
    pub bytes: Vec<(usize, String)>,
    /// Held unit → when it is due; none where nothing is held.
    pub due: Vec<(String, Option<i64>)>,
    /// Holds that do not read.
    pub dropped: Vec<String>,
    /// Account → places bought; none for nothing.
    pub tickets: Vec<(String, Option<i64>)>,
}

/// What became of a recount.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recounted {
    /// All is set.
    Recounted,
    /// Places have moved since they were read: some or nothing is set, each rightly; read again.
    Stale,
}

/// The lists of one call, each an argument or two an item.
#[derive(Default)]
struct Part {
    stock: Vec<String>,
    bytes: Vec<String>,
    due: Vec<String>,
    dropped: Vec<String>,
    tickets: Vec<String>,
    items: usize,
}

impl Recount {
    /// How many things are to be set, beside the counter of the whole event.
    pub fn len(&self) -> u64 {
        let Self { stock, bytes, due, dropped, tickets, .. } = self;
        (stock.len() + bytes.len() + due.len() + dropped.len() + tickets.len()) as u64
    }

    /// Whether nothing is, but perhaps that counter.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Calls of at most [`ITEMS_A_CALL`] items; one at least.
    fn parts(&self) -> Vec<Part> {
        let text = |value: Option<i64>| value.map(|value| value.to_string()).unwrap_or_default();
        let mut parts = vec![Part::default()];
        let mut put = |to: fn(&mut Part) -> &mut Vec<String>, item: Vec<String>| {
            if parts.last().is_none_or(|part| part.items == ITEMS_A_CALL) {
                parts.push(Part::default());
            }
            if let Some(part) = parts.last_mut() {
                part.items += 1;
                to(part).extend(item);
            }
        };
        for (section, free) in &self.stock {
            put(|part| &mut part.stock, vec![section.to_string(), text(*free)]);
        }
        for (offset, bytes) in &self.bytes {
            put(|part| &mut part.bytes, vec![offset.to_string(), bytes.clone()]);
        }
        for (unit, at) in &self.due {
            put(|part| &mut part.due, vec![unit.clone(), text(*at)]);
        }
        for unit in &self.dropped {
            put(|part| &mut part.dropped, vec![unit.clone()]);
        }
        for (account, count) in &self.tickets {
            put(|part| &mut part.tickets, vec![account.clone(), text(*count)]);
        }
        parts
    }
}

impl Store {
    /// Set what a reading came to, unless places have moved since.
    pub async fn recount(
        &self,
        event: &EventId,
        by: &str,
        recount: &Recount,
    ) -> Result<Outcome<Recounted>, StoreError> {
        let mut sequence = recount.sequence;
        for part in recount.parts() {
            let call = Call::new(&RECOUNT, Keys::of(event))
                .arg(self.now_ms())
                .arg(by)
                .arg(sequence)
                .arg(recount.remaining)
                .arg(part.stock.len() / 2)
                .arg(part.bytes.len() / 2)
                .arg(part.due.len() / 2)
                .arg(part.dropped.len())
                .arg(part.tickets.len() / 2)
                .arg(part.stock)
                .arg(part.bytes)
                .arg(part.due)
                .arg(part.dropped)
                .arg(part.tickets);
            let mut reply = self.run(call).await?;
            match reply.word() {
                "RECOUNTED" => sequence = reply.integer()?,
                "STALE" => return Ok(Ok(Recounted::Stale)),
                _ => return reply.refusal().map(Err),
            }
        }
        Ok(Ok(Recounted::Recounted))
    }

    /// File a reservation's fact once more, so that it reaches PostgreSQL; false where it has changed since or is gone.
    pub async fn refile(&self, id: &ReservationId, version: u32) -> Result<bool, StoreError> {
        let call = Call::new(&REFILE, Keys::of(id.event()).reservation(id)).arg(version);
        Ok(self.run(call).await?.word() == "REFILED")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recount_is_cut_into_calls_that_a_step_may_do() {
        assert_eq!(Recount::default().parts().len(), 1, "the counter of the whole event");
        let due = (0..1_200).map(|at| (at.to_string(), None)).collect();
        let stock = BTreeMap::from([(7, Some(3)), (8, None)]);
        let parts = Recount { stock, due, ..Recount::default() }.parts();
        assert_eq!(parts.iter().map(|part| part.items).collect::<Vec<_>>(), [500, 500, 202]);
        assert_eq!(parts[0].stock, ["7", "3", "8", ""]);
        assert_eq!(parts.iter().map(|part| part.due.len()).sum::<usize>(), 2_400);
    }
}
