//! From one version of a sale to the next: what is there never moves, what is new goes to the end.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::{
    Edition, Layout, Lookup, MAX_MAP_LENGTH, MAX_PLACES, MAX_SEATS_A_SECTION, MAX_SECTIONS, Places, Row,
    Section, Span,
};
use crate::OfferingId;
use crate::sale::{NamedRow, Problem, Sale, SaleSection};

/// What a new edition asks of the store, to be done all together or not at all.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Change {
    /// Bytes to put at the end of the seat map: `.` for a seat, `/` after every row.
    pub appended: String,
    /// By section number, at most one entry each: how many free places it gains. Seats of removed rows and
    /// sections are in it as losses; a section that gains and loses nothing is not.
    pub stock: Vec<(u32, i64)>,
    /// Rows taken off sale, one span each: possible only while every seat of them is free.
    pub removed: Vec<Span>,
}

impl Edition {
    /// Version 1 of a checked sale.
    pub fn first(sale: Sale) -> (Self, Change) {
        let (layout, change) = Growth::of(&Layout::default(), &sale);
        (Self { version: 1, sale: Arc::new(sale), layout }, change)
    }

    /// The version after this one. Whether seats that go are still free is for the store to see.
    ///
    /// A section that left and comes back under its old id is a new one. Refused: another event, a section
    /// that changes between named seats and a capacity, a layout that outgrows its bounds.
    pub fn next(&self, sale: Sale) -> Result<(Self, Change), Vec<Problem>> {
        let mut problems = self.contradictions(&sale);
        let (layout, change) = Growth::of(&self.layout, &sale);
        problems.extend(outgrown(&layout));
        if !problems.is_empty() {
            return Err(problems);
        }
        Ok((Self { version: self.version + 1, sale: Arc::new(sale), layout }, change))
    }

    /// Reads what [`Edition::to_json`] wrote.
    pub fn from_json(text: &str) -> Result<Self, serde_json::Error> {
        serde_json::from_str(text)
    }

    /// What Redis keeps.
    pub fn to_json(&self) -> String {
        // Strings, numbers and lists under string keys always serialize.
        serde_json::to_string(self).unwrap_or_default()
    }

    fn contradictions(&self, sale: &Sale) -> Vec<Problem> {
        let mut problems = Vec::new();
        if sale.event_id != self.sale.event_id {
            let reason = format!("must stay {}: another id is another event", self.sale.event_id);
            problems.push(Problem { path: "$.eventId".to_owned(), line: None, reason });
        }
        for (at, offering) in sale.offerings.iter().enumerate() {
            for (section_at, section) in offering.sections.iter().enumerate() {
                let before = self.layout.section(&offering.id, &section.id);
                if before.is_some_and(|before| before.is_general() != section.is_general()) {
                    let reason = format!(
                        "{} cannot change between named seats and a capacity: use a new id",
                        section.id
                    );
                    problems.push(Problem {
                        path: format!("$.offerings[{at}].sections[{section_at}]"),
                        line: None,
                        reason,
                    });
                }
            }
        }
        problems
    }
}

/// The bounds of a layout, broken ones only.
fn outgrown(layout: &Layout) -> Vec<Problem> {
    let problem = |reason: String| Problem { path: "$.offerings".to_owned(), line: None, reason };
    let mut problems = Vec::new();
    let mut bound = |what: &str, is: u64, most: u32| {
        if is > u64::from(most) {
            problems.push(problem(format!("{what}: {is}, at most {most}")));
        }
    };
    bound("sections, those taken off sale included", layout.sections.len() as u64, MAX_SECTIONS);
    bound(
        "bytes of the seat map, rows taken off sale included",
        u64::from(layout.map_length),
        MAX_MAP_LENGTH,
    );
    bound("places", layout.capacity(), MAX_PLACES);
    for section in layout.sections.iter().filter(|section| !section.is_general()) {
        bound(
            &format!("seats of {} {}", section.offering, section.id),
            u64::from(section.capacity()),
            MAX_SEATS_A_SECTION,
        );
    }
    problems
}

/// A layout while it grows.
struct Growth {
    sections: Vec<Section>,
    map_length: u32,
    change: Change,
}

impl Growth {
    fn of(before: &Layout, sale: &Sale) -> (Layout, Change) {
        let mut growth = Self {
            sections: before.sections.clone(),
            map_length: before.map_length,
            change: Change::default(),
        };
        let mut kept = HashSet::new();
        for offering in &sale.offerings {
            for section in &offering.sections {
                let known = before.section(&offering.id, &section.id);
                match known.filter(|known| known.is_general() == section.is_general()) {
                    Some(known) => {
                        kept.insert(known.number);
                        growth.update(known.number, section);
                    }
                    None => growth.append(offering.id.clone(), section),
                }
            }
        }
        for section in before.sections.iter().filter(|section| !section.removed) {
            if !kept.contains(&section.number) {
                growth.remove(section.number);
            }
        }
        growth.change.stock.sort_unstable();
        let Self { sections, map_length, change } = growth;
        // Rows only ever go behind the last one: nothing can overlap.
        let lookup = Lookup::of(&sections, map_length).unwrap_or_default();
        (Layout { map_length, sections, lookup }, change)
    }

    fn append(&mut self, offering: OfferingId, section: &SaleSection) {
        // Bounded by MAX_SECTIONS long before.
        let number = u32::try_from(self.sections.len()).unwrap_or(u32::MAX);
        let places = match section.capacity {
            Some(capacity) => Places::General { capacity },
            None => Places::Assigned {
                rows: section.named_rows().into_iter().map(|row| self.append_row(row)).collect(),
            },
        };
        let section = Section {
            number,
            offering,
            id: section.id.clone(),
            price: section.price,
            removed: false,
            places,
        };
        self.add_stock(number, i64::from(section.capacity()));
        self.sections.push(section);
    }

    fn append_row(&mut self, row: NamedRow) -> Row {
        let offset = self.map_length;
        self.change.appended.extend(std::iter::repeat_n('.', row.seats.len()));
        self.change.appended.push('/');
        self.map_length = offset.saturating_add(u32::try_from(row.seats.len() + 1).unwrap_or(u32::MAX));
        Row { name: row.name, offset, seats: row.seats, removed: false }
    }

    fn update(&mut self, number: u32, section: &SaleSection) {
        let at = number as usize;
        let capacity_before = self.sections[at].capacity();
        self.sections[at].price = section.price;
        let before = std::mem::replace(&mut self.sections[at].places, Places::General { capacity: 0 });
        self.sections[at].places = match before {
            Places::General { capacity } => {
                Places::General { capacity: section.capacity.unwrap_or(capacity) }
            }
            Places::Assigned { rows } => {
                Places::Assigned { rows: self.update_rows(number, rows, section.named_rows()) }
            }
        };
        self.add_stock(number, i64::from(self.sections[at].capacity()) - i64::from(capacity_before));
    }

    /// The rows on sale in the definition's order, then those that are not, for their names.
    fn update_rows(&mut self, section: u32, before: Vec<Row>, wanted: Vec<NamedRow>) -> Vec<Row> {
        let (mut removed, live): (Vec<Row>, Vec<Row>) = before.into_iter().partition(|row| row.removed);
        let mut live: HashMap<String, Row> = live.into_iter().map(|row| (row.name.clone(), row)).collect();
        let mut rows = Vec::with_capacity(wanted.len());
        for row in wanted {
            if live.get(&row.name).is_some_and(|same| same.seats == row.seats) {
                rows.extend(live.remove(&row.name));
            } else {
                rows.push(self.append_row(row));
            }
        }
        let mut gone: Vec<Row> = live.into_values().collect();
        gone.sort_unstable_by_key(|row| row.offset);
        for mut row in gone {
            row.removed = true;
            self.change.removed.push(row.span(section));
            removed.push(row);
        }
        rows.append(&mut removed);
        rows
    }

    fn remove(&mut self, number: u32) {
        let section = &mut self.sections[number as usize];
        let capacity = section.capacity();
        section.removed = true;
        match &mut section.places {
            Places::General { capacity } => *capacity = 0,
            Places::Assigned { rows } => {
                for row in rows.iter_mut().filter(|row| !row.removed) {
                    row.removed = true;
                    self.change.removed.push(row.span(number));
                }
            }
        }
        self.add_stock(number, -i64::from(capacity));
    }

    fn add_stock(&mut self, number: u32, delta: i64) {
        if delta != 0 {
            self.change.stock.push((number, delta));
        }
    }
}
