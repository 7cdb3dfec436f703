//! From names to indices and back. Every hold asks, so nothing here walks over a section's seats.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, OnceLock};

use super::{MalformedLayout, Places, Row, SeatPlace, Section};
use crate::{OfferingId, SeatName, SectionId};

/// Made once with its layout and shared by its copies; it says nothing that the sections do not say, so two
/// of them never differ.
#[derive(Clone, Default)]
pub(super) struct Lookup(Arc<Index>);

#[derive(Default)]
struct Index {
    /// Every row, removed ones too, by the index of its first seat.
    rows: Vec<RowAt>,
    offerings: HashMap<OfferingId, OfferingIndex>,
}

#[derive(Clone, Copy)]
struct RowAt {
    offset: u32,
    section: u32,
    row: u32,
}

#[derive(Default)]
struct OfferingIndex {
    /// Numbers of the sections on sale, rising.
    live: Vec<u32>,
    by_id: HashMap<SectionId, u32>,
    /// Every seat on sale, by name: sorted when one is looked up first, for many a function never does.
    seats: OnceLock<Vec<SeatAt>>,
}

#[derive(Clone, Copy)]
struct SeatAt {
    section: u32,
    row: u32,
    position: u32,
}

impl PartialEq for Lookup {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl fmt::Debug for Lookup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Lookup")
    }
}

impl Lookup {
    /// Refuses sections whose numbers or rows contradict each other.
    pub(super) fn of(sections: &[Section], map_length: u32) -> Result<Self, MalformedLayout> {
        let mut index = Index::default();
        for (number, section) in (0u32..).zip(sections) {
            if section.number != number {
                return Err(MalformedLayout("a section is not at its number"));
            }
            index.add(section);
        }
        index.rows.sort_unstable_by_key(|row| row.offset);
        let mut end = 0;
        for row in &index.rows {
            let seats = row_of(sections, row.section, row.row).map_or(0, |row| row.seats.len());
            if u64::from(row.offset) < end || seats == 0 {
                return Err(MalformedLayout("rows overlap or are empty"));
            }
            end = u64::from(row.offset) + seats as u64 + 1;
        }
        if end > u64::from(map_length) {
            return Err(MalformedLayout("a row ends behind the map"));
        }
        Ok(Self(Arc::new(index)))
    }

    pub(super) fn section(&self, offering: &OfferingId, section: &SectionId) -> Option<u32> {
        self.0.offerings.get(offering)?.by_id.get(section).copied()
    }

    pub(super) fn numbers_of(&self, offering: &OfferingId) -> &[u32] {
        self.0.offerings.get(offering).map_or(&[], |offering| &offering.live)
    }

    pub(super) fn seat(
        &self,
        sections: &[Section],
        offering: &OfferingId,
        seat: &SeatName,
    ) -> Option<SeatPlace> {
        let offering = self.0.offerings.get(offering)?;
        let seats = offering.seats.get_or_init(|| by_name(sections, &offering.live));
        let found = seats.binary_search_by(|at| name_at(sections, *at).cmp(&Some(seat))).ok()?;
        let SeatAt { section, row, position } = seats[found];
        Some(SeatPlace { section, index: row_of(sections, section, row)?.offset + position })
    }

    /// The section and the name, of removed seats too.
    pub(super) fn seat_name<'a>(&self, sections: &'a [Section], index: u32) -> Option<(u32, &'a SeatName)> {
        let behind = self.0.rows.partition_point(|row| row.offset <= index);
        let at = self.0.rows[..behind].last()?;
        let name = row_of(sections, at.section, at.row)?.seats.get((index - at.offset) as usize)?;
        Some((at.section, name))
    }
}

impl Index {
    fn add(&mut self, section: &Section) {
        let number = section.number;
        if !section.removed {
            let offering = self.offerings.entry(section.offering.clone()).or_default();
            offering.live.push(number);
            offering.by_id.insert(section.id.clone(), number);
        }
        let rows = (0u32..).zip(section.rows());
        self.rows.extend(rows.map(|(at, row)| RowAt { offset: row.offset, section: number, row: at }));
    }
}

/// Every seat of these sections, by name.
fn by_name(sections: &[Section], live: &[u32]) -> Vec<SeatAt> {
    let mut seats = Vec::new();
    for section in live.iter().filter_map(|number| sections.get(*number as usize)) {
        for (row, named) in (0u32..).zip(section.rows()).filter(|(_, row)| !row.removed) {
            let positions = (0u32..).zip(&named.seats);
            seats.extend(positions.map(|(position, _)| SeatAt { section: section.number, row, position }));
        }
    }
    seats.sort_unstable_by_key(|at| name_at(sections, *at));
    seats
}

fn row_of(sections: &[Section], section: u32, row: u32) -> Option<&Row> {
    match &sections.get(section as usize)?.places {
        Places::Assigned { rows } => rows.get(row as usize),
        Places::General { .. } => None,
    }
}

fn name_at(sections: &[Section], at: SeatAt) -> Option<&SeatName> {
    row_of(sections, at.section, at.row)?.seats.get(at.position as usize)
}
