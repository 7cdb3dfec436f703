//! Rows as an edition keeps them: rows that are alike are one entry. A hall of fifty thousand seats is a megabyte
//! otherwise, which every new instance of a function fetches and reads before its first answer.

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{MAX_MAP_LENGTH, Row};
use crate::SeatName;

/// One row by its name, or so many from a first one on: each named by the next number, each right behind the one before.
#[derive(Serialize, Deserialize)]
struct StoredRows {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    /// In place of a name: a reader that knows rows by their names alone fails rather than reads it wrongly.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    from: Option<(String, u32)>,
    offset: u32,
    /// Names or, of several rows, what follows the row's name in each.
    seats: Vec<String>,
    removed: bool,
}

pub(super) fn serialize<S: Serializer>(rows: &[Row], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(stored(rows))
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Row>, D::Error> {
    let mut rows = Vec::new();
    for stored in Vec::<StoredRows>::deserialize(deserializer)? {
        add_rows(&mut rows, stored).ok_or_else(|| D::Error::custom("rows that are none"))?;
    }
    Ok(rows)
}

fn stored(rows: &[Row]) -> Vec<StoredRows> {
    let mut stored = Vec::new();
    let mut rest = rows;
    while let [first, ..] = rest {
        let alike = alike(rest);
        let name = first.name.clone();
        // Rows are at most as many as bytes of the map.
        let (name, from, seats) = match (u32::try_from(alike), endings(first)) {
            (Ok(count @ 2..), Some(endings)) => (None, Some((name, count)), endings),
            _ => (Some(name), None, first.seats.iter().map(SeatName::as_str).collect()),
        };
        let seats = seats.into_iter().map(str::to_owned).collect();
        stored.push(StoredRows { name, from, offset: first.offset, seats, removed: first.removed });
        rest = &rest[alike..];
    }
    stored
}

/// How many rows from the first on are one entry.
fn alike(rows: &[Row]) -> usize {
    let [first, others @ ..] = rows else { return 0 };
    let (Some(endings), Some(numbered)) = (endings(first), Numbered::of(&first.name)) else { return 1 };
    let mut offset = first.offset;
    let is_next = |(number, row): &(u32, &Row)| {
        offset = offset.saturating_add(first.length()).saturating_add(1);
        row.offset == offset
            && row.removed == first.removed
            && numbered.plus(*number).is_some_and(|name| name == row.name)
            && self::endings(row).is_some_and(|others| others == endings)
    };
    1 + (1..).zip(others).take_while(is_next).count()
}

/// What follows the row's name in its seats' names.
fn endings(row: &Row) -> Option<Vec<&str>> {
    row.seats.iter().map(|seat| seat.as_str().strip_prefix(row.name.as_str())).collect()
}

fn add_rows(rows: &mut Vec<Row>, stored: StoredRows) -> Option<()> {
    let StoredRows { name, from, offset, seats, removed } = stored;
    if let Some(name) = name {
        let seats = seats.into_iter().map(|seat| seat.parse().ok()).collect::<Option<_>>()?;
        rows.push(Row { name, offset, seats, removed });
        return Some(());
    }
    let (name, count) = from?;
    let numbered = Numbered::of(&name)?;
    let step = u32::try_from(seats.len()).ok()?.checked_add(1)?;
    if u64::from(offset) + u64::from(step) * u64::from(count) > u64::from(MAX_MAP_LENGTH) {
        return None;
    }
    for number in 0..count {
        let name = numbered.plus(number)?;
        let seats = seats.iter().map(|ending| format!("{name}{ending}").parse().ok());
        let seats = seats.collect::<Option<_>>()?;
        rows.push(Row { name, offset: offset + number * step, seats, removed });
    }
    Some(())
}

/// A name that ends in a number without leading zeros.
struct Numbered<'a> {
    before: &'a str,
    number: u32,
}

impl<'a> Numbered<'a> {
    fn of(name: &'a str) -> Option<Self> {
        let before = name.trim_end_matches(|letter: char| letter.is_ascii_digit());
        let digits = &name[before.len()..];
        let has_zeros = digits.len() > 1 && digits.starts_with('0');
        Some(Self { before, number: digits.parse().ok().filter(|_| !has_zeros)? })
    }

    fn plus(&self, more: u32) -> Option<String> {
        let number = self.number.checked_add(more)?;
        Some(format!("{}{number}", self.before))
    }
}
