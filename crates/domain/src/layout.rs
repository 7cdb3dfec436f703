//! Where every place of an event lies: named seats are bytes of one string in Redis, sections are numbered.
//! A later version of a sale adds to the layout and never moves what is there, so an index means the same
//! seat for ever.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use self::lookup::Lookup;
use crate::items::{Item, Items, Units};
use crate::reservation::ReservedPlaces;
use crate::sale::Sale;
use crate::{OfferingId, SeatName, SectionId};

mod edition;
mod lookup;
mod stored;

pub use self::edition::Change;

/// The most sections of an event, those taken off sale included.
pub const MAX_SECTIONS: u32 = 500;
/// The most named seats on sale in one section: what one step may look through.
pub const MAX_SEATS_A_SECTION: u32 = 2_000;
/// The most places on sale in one event, named or counted.
pub const MAX_PLACES: u32 = 200_000;
/// The most bytes of one event's seat map, rows taken off sale included.
pub const MAX_MAP_LENGTH: u32 = 250_000;

/// One published version of a sale: what Redis keeps as the event's definition.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Edition {
    /// Rises with each `apply`, from 1.
    pub version: u64,
    /// The definition.
    pub sale: Arc<Sale>,
    /// Where its places lie.
    pub layout: Layout,
}

/// Where every place of an event lies. Made by [`Edition`] and never changed in place: what it looks up by name
/// is prepared when it is made or read.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(try_from = "StoredLayout")]
pub struct Layout {
    /// Bytes of the seat map, the ends of rows included.
    pub map_length: u32,
    /// By number, from 0; removed ones keep their number.
    pub sections: Vec<Section>,
    #[serde(skip)]
    lookup: Lookup,
}

/// A layout as it was stored.
#[derive(Deserialize)]
struct StoredLayout {
    map_length: u32,
    sections: Vec<Section>,
}

/// A stored layout that contradicts itself: a bug or a damaged store.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("malformed layout: {0}")]
pub struct MalformedLayout(&'static str);

impl TryFrom<StoredLayout> for Layout {
    type Error = MalformedLayout;

    fn try_from(stored: StoredLayout) -> Result<Self, MalformedLayout> {
        let StoredLayout { map_length, sections } = stored;
        Ok(Self { lookup: Lookup::of(&sections, map_length)?, map_length, sections })
    }
}

/// A section in the layout.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Section {
    /// Its position in [`Layout::sections`].
    pub number: u32,
    /// The offering it is a part of.
    pub offering: OfferingId,
    /// Its id there.
    pub id: SectionId,
    /// Price of one place today.
    pub price: u64,
    /// Whether a later version took it off sale.
    pub removed: bool,
    /// Its places.
    pub places: Places,
}

/// A section's places.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Places {
    /// A capacity, no seat names.
    General {
        /// How many places; 0 once the section is off sale.
        capacity: u32,
    },
    /// Named seats.
    Assigned {
        /// In the order in which they are offered.
        #[serde(with = "stored")]
        rows: Vec<Row>,
    },
}

/// Seats side by side: one run of the map, ended by a byte that is no seat.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// What people read.
    pub name: String,
    /// Index of its first seat.
    pub offset: u32,
    /// Its seats in order.
    pub seats: Vec<SeatName>,
    /// Whether a later version took it off sale.
    pub removed: bool,
}

/// A run of the seat map.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// The section's number.
    pub section: u32,
    /// Its first byte.
    pub offset: u32,
    /// How many bytes.
    pub length: u32,
}

/// Where a named seat lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SeatPlace {
    /// The section's number.
    pub section: u32,
    /// Its byte in the seat map.
    pub index: u32,
}

impl Layout {
    /// The section on sale under this id.
    pub fn section(&self, offering: &OfferingId, section: &SectionId) -> Option<&Section> {
        self.by_number(self.lookup.section(offering, section)?)
    }

    /// The section with this number, also when it is off sale.
    pub fn by_number(&self, number: u32) -> Option<&Section> {
        self.sections.get(number as usize)
    }

    /// The offering's sections on sale, by number; none for an unknown offering.
    pub fn sections_of<'a>(&'a self, offering: &OfferingId) -> impl Iterator<Item = &'a Section> + use<'a> {
        self.lookup.numbers_of(offering).iter().filter_map(|number| self.by_number(*number))
    }

    /// Where a seat on sale lies.
    pub fn seat(&self, offering: &OfferingId, seat: &SeatName) -> Option<SeatPlace> {
        self.lookup.seat(&self.sections, offering, seat)
    }

    /// The name of the seat at `index`, also when it is off sale; `None` for the end of a row.
    pub fn seat_name(&self, index: u32) -> Option<&SeatName> {
        self.lookup.seat_name(&self.sections, index).map(|(_, name)| name)
    }

    /// Places on sale in the whole event.
    pub fn capacity(&self) -> u64 {
        self.sections.iter().map(|section| u64::from(section.capacity())).sum()
    }
}

impl Section {
    /// Whether its places have no names.
    pub fn is_general(&self) -> bool {
        matches!(self.places, Places::General { .. })
    }

    /// Places on sale.
    pub fn capacity(&self) -> u32 {
        match &self.places {
            _ if self.removed => 0,
            Places::General { capacity } => *capacity,
            Places::Assigned { .. } => self.live_rows().map(Row::length).sum(),
        }
    }

    /// Its rows on sale in the order in which they are offered; none in a general section.
    pub fn live_rows(&self) -> impl Iterator<Item = &Row> {
        self.rows().iter().filter(|row| !row.removed)
    }

    /// Where its seats on sale lie. Rows that follow each other share a span, with the bytes that end them in
    /// between; the byte that ends the last row of a span is outside.
    pub fn spans(&self) -> Vec<Span> {
        let mut spans: Vec<Span> = Vec::new();
        for row in self.live_rows() {
            match spans.last_mut() {
                Some(last) if last.offset + last.length + 1 == row.offset => last.length += 1 + row.length(),
                _ => spans.push(row.span(self.number)),
            }
        }
        spans
    }

    /// Where a seat of this name lies: on sale, else where it lay last.
    fn seat(&self, name: &SeatName) -> Option<u32> {
        let mut rows: Vec<&Row> = self.rows().iter().collect();
        rows.sort_by_key(|row| (row.removed, std::cmp::Reverse(row.offset)));
        rows.iter().find_map(|row| {
            let at = row.seats.iter().position(|seat| seat == name)?;
            Some(row.offset + u32::try_from(at).ok()?)
        })
    }

    fn rows(&self) -> &[Row] {
        match &self.places {
            Places::General { .. } => &[],
            Places::Assigned { rows } => rows,
        }
    }
}

impl Row {
    fn length(&self) -> u32 {
        // Bounded by MAX_SEATS_A_SECTION.
        u32::try_from(self.seats.len()).unwrap_or(u32::MAX)
    }

    fn span(&self, section: u32) -> Span {
        Span { section, offset: self.offset, length: self.length() }
    }
}

/// Items that are not in the layout they were read with: a bug or a damaged store, never a caller's input.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UnknownPlace {
    /// No section has this number, or its kind is another.
    #[error("no such section in the layout: {0}")]
    Section(u32),
    /// No seat of the section has this index.
    #[error("no such seat in section {section} of the layout: {index}")]
    Seat {
        /// The section's number.
        section: u32,
        /// The index.
        index: u32,
    },
}

/// What a token holds or bought, in names: for answers and facts. Sections and seats off sale keep their names.
pub fn reserved_places(layout: &Layout, items: &Items) -> Result<Vec<ReservedPlaces>, UnknownPlace> {
    items.0.iter().map(|item| reserved(layout, item)).collect()
}

fn reserved(layout: &Layout, item: &Item) -> Result<ReservedPlaces, UnknownPlace> {
    let number = item.section;
    let section = layout.by_number(number).ok_or(UnknownPlace::Section(number))?;
    let seats = match &item.units {
        Units::Count(_) if section.is_general() => Vec::new(),
        Units::Count(_) => return Err(UnknownPlace::Section(number)),
        Units::Seats(indices) => {
            let name = |&index: &u32| match layout.lookup.seat_name(&layout.sections, index) {
                Some((owner, name)) if owner == number => Ok(name.clone()),
                _ => Err(UnknownPlace::Seat { section: number, index }),
            };
            indices.iter().map(name).collect::<Result<_, _>>()?
        }
    };
    Ok(ReservedPlaces {
        offering_id: section.offering.clone(),
        section_id: section.id.clone(),
        price: item.price,
        count: item.count(),
        seats,
    })
}

/// Names that no edition of the layout has had.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no such place in the layout: {0}")]
pub struct UnknownName(String);

/// The same the other way round: from names, as PostgreSQL keeps them, to where they lie. A name that is on sale means
/// that place; one that is not any more, the last place that had it.
pub fn items_of(layout: &Layout, places: &[ReservedPlaces]) -> Result<Items, UnknownName> {
    places.iter().map(|places| item_of(layout, places)).collect::<Result<_, _>>().map(Items)
}

fn item_of(layout: &Layout, places: &ReservedPlaces) -> Result<Item, UnknownName> {
    let ReservedPlaces { offering_id, section_id, price, count, seats } = places;
    let unknown =
        |seat: &str| UnknownName(format!("{offering_id}/{section_id} {seat}").trim_end().to_owned());
    let live = layout.section(offering_id, section_id);
    let gone = || {
        let mut sections = layout.sections.iter().rev();
        sections.find(|section| section.offering == *offering_id && section.id == *section_id)
    };
    let section = live.or_else(gone).ok_or_else(|| unknown(""))?;
    if section.is_general() != seats.is_empty() {
        return Err(unknown(""));
    }
    let units = if seats.is_empty() {
        Units::Count(*count)
    } else {
        let index = |seat: &SeatName| section.seat(seat).ok_or_else(|| unknown(seat.as_str()));
        Units::Seats(seats.iter().map(index).collect::<Result<_, _>>()?)
    };
    Ok(Item { section: section.number, price: *price, units })
}

#[cfg(test)]
mod tests;
