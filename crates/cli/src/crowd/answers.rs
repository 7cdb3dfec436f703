//! What of the answers somebody in the crowd reads.

use std::collections::HashMap;

use serde::Deserialize;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub(crate) enum Status {
    Waiting,
    Active,
    Booked,
    Expired,
    NotFound,
}

/// join, rejoin
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Joined {
    pub(crate) token: String,
    pub(crate) event_id: String,
    pub(crate) ticket_number: Option<u64>,
    pub(crate) rank: Option<u64>,
    pub(crate) next_poll_ms: u64,
    pub(crate) key: String,
    /// Of a rejoin only.
    pub(crate) status: Option<Status>,
    pub(crate) access_token: Option<String>,
}

/// poll
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Polled {
    pub(crate) status: Status,
    pub(crate) rank: Option<u64>,
    pub(crate) net: u64,
    pub(crate) next_poll_ms: u64,
    pub(crate) key: Option<String>,
    pub(crate) score: Option<u64>,
    pub(crate) access_token: Option<String>,
    pub(crate) opens_at: Option<i64>,
    #[serde(default)]
    pub(crate) reentry: bool,
}

/// progress
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Progress {
    pub(crate) status: SaleStatus,
    pub(crate) head_score: u64,
    pub(crate) net: u64,
    pub(crate) total_waiting: u64,
    pub(crate) opens_at: i64,
    pub(crate) updated_at: i64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub(crate) enum SaleStatus {
    Upcoming,
    Open,
    Paused,
    Closed,
}

/// search
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Found {
    pub(crate) offerings: Vec<Offering>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Offering {
    pub(crate) offering_id: String,
    pub(crate) sections: Vec<Section>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Section {
    pub(crate) section_id: String,
    pub(crate) remaining: u64,
}

/// seats
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct SeatMap {
    pub(crate) sections: Vec<MapSection>,
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct MapSection {
    pub(crate) rows: Vec<Row>,
    pub(crate) taken: HashMap<String, String>,
    pub(crate) remaining: u64,
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Row {
    pub(crate) seats: Vec<String>,
}

/// select
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Held {
    pub(crate) seat_count: u32,
    pub(crate) access_token: Option<String>,
}

/// book
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Booked {
    pub(crate) reservation_id: String,
    pub(crate) seats: Vec<String>,
    pub(crate) seat_count: u32,
    pub(crate) amount: u64,
}

/// A reservation as it is read.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
#[allow(clippy::struct_field_names, reason = "the contract's name")]
pub(crate) struct Reservation {
    pub(crate) reservation_id: String,
    pub(crate) seats: Vec<String>,
    pub(crate) places: Vec<Places>,
    pub(crate) seat_count: u32,
    pub(crate) amount: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Places {
    pub(crate) offering_id: String,
    pub(crate) count: u32,
    pub(crate) seats: Vec<String>,
}

/// An answer of which nothing is read.
#[derive(Debug, Clone, Copy, Deserialize)]
pub(crate) struct Anything {}
