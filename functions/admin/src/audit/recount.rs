//! What counters, map, due times and tickets must be, where only one thing can be right.

use std::collections::BTreeMap;

use domain::Millis;
use domain::layout::{Places, Section};
use domain::reservation::Reservation;
use store::{Besides, Recount, Snapshot, holder_of};

use super::places::{FREE, KEPT, OFF_SALE, Owners, ROW_END, SOLD, seats, ticket_counts};

/// What counters, map, due times and tickets must be by holds and reservations; none where they are. A section of
/// which more is held and sold than it has is left as it is: no count of it is right. Only a snapshot that stood still
/// tells.
pub(crate) fn recount(
    snapshot: &Snapshot,
    forgotten: &[Reservation],
    besides: &Besides,
    now: Millis,
) -> Option<Recount> {
    let mut owners = Owners::of(&snapshot.edition.layout);
    let mut recount = Recount { sequence: snapshot.sequence, ..Recount::default() };
    for (unit, hold) in &snapshot.holds {
        let unreadable = owners.findings.count();
        owners.hold(unit, hold);
        if owners.findings.count() > unreadable {
            recount.dropped.push(unit.clone());
        } else if !snapshot.due.contains_key(unit) {
            let session = holder_of(unit, hold).and_then(|token| besides.sessions.get(&token));
            // A hold that no session knows is over at once.
            recount
                .due
                .push((unit.clone(), Some(session.and_then(|known| known.hold_expires_at).unwrap_or(0))));
        }
    }
    let stray = snapshot.due.keys().filter(|unit| !snapshot.holds.contains_key(*unit));
    recount.due.extend(stray.map(|unit| (unit.clone(), None)));
    for reservation in snapshot.reservations.iter().chain(forgotten) {
        owners.reservation(reservation);
    }
    let map = owners.map();
    recount.bytes = differing_runs(snapshot.map.as_bytes(), &map);
    let mut remaining = 0;
    for section in &snapshot.edition.layout.sections {
        let counted = snapshot.stock.get(&section.number).copied();
        let free = owners.free(section, &map);
        if free >= 0 && counted != Some(free) {
            recount.stock.insert(section.number, Some(free));
        }
        remaining += if free >= 0 { free } else { counted.unwrap_or(0) };
    }
    let unknown =
        snapshot.stock.keys().filter(|number| snapshot.edition.layout.by_number(**number).is_none());
    recount.stock.extend(unknown.map(|number| (*number, None)));
    recount.remaining = remaining;
    if now.0 < snapshot.edition.sale.closes_at.0 {
        for (account, (has, counted)) in ticket_counts(snapshot) {
            if has != counted {
                recount.tickets.push((account.to_owned(), Some(has).filter(|has| *has > 0)));
            }
        }
    }
    (!recount.is_empty() || remaining != snapshot.remaining).then_some(recount)
}

/// Where the map is another than it must be: runs of bytes, each with its offset.
fn differing_runs(is: &[u8], must: &[u8]) -> Vec<(usize, String)> {
    let mut runs: Vec<(usize, String)> = Vec::new();
    for (at, byte) in must.iter().enumerate().filter(|(at, byte)| is.get(*at) != Some(byte)) {
        match runs.last_mut() {
            Some((offset, run)) if *offset + run.len() == at => run.push(char::from(*byte)),
            _ => runs.push((at, char::from(*byte).to_string())),
        }
    }
    runs
}

impl Owners<'_> {
    /// The map as holds and reservations make it.
    fn map(&self) -> Vec<u8> {
        let mut map = vec![OFF_SALE; self.layout.map_length as usize];
        for section in &self.layout.sections {
            let Places::Assigned { rows } = &section.places else { continue };
            for row in rows {
                for index in seats(row) {
                    map[index as usize] = match (self.sold_seats.contains_key(&index), row.removed) {
                        (true, _) => SOLD,
                        (false, true) => OFF_SALE,
                        (false, false) if self.held_seats.contains(&index) => KEPT,
                        (false, false) => FREE,
                    };
                }
                map[seats(row).end as usize] = ROW_END;
            }
        }
        map
    }

    /// Free places of a section by that map, or by what is held and sold; negative where more is than there are.
    fn free(&self, section: &Section, map: &[u8]) -> i64 {
        match &section.places {
            Places::Assigned { rows } => {
                let bytes = rows.iter().filter(|row| !row.removed).flat_map(seats);
                bytes.map(|index| i64::from(map[index as usize] == FREE)).sum()
            }
            Places::General { .. } => {
                let of = |counts: &BTreeMap<u32, u64>| counts.get(&section.number).copied().unwrap_or(0);
                i64::from(section.capacity()) - (of(&self.held) + of(&self.sold)).cast_signed()
            }
        }
    }
}
