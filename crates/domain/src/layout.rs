//! Where every place of an event lies: named seats are bytes of one string in Redis, sections are numbered.
//! A later version of a sale adds to the layout and never moves what is there, so an index means the same
//! seat for ever.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::sale::Sale;
use crate::{OfferingId, SeatName, SectionId};

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

/// Where every place of an event lies.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Layout {
    /// Bytes of the seat map, the ends of rows included.
    pub map_length: u32,
    /// By number, from 0; removed ones keep their number.
    pub sections: Vec<Section>,
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
        /// How many places.
        capacity: u32,
    },
    /// Named seats.
    Assigned {
        /// In the order in which they are offered.
        rows: Vec<Row>,
    },
}

/// Seats side by side: one run of the map, ended by a byte that is no seat.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
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
