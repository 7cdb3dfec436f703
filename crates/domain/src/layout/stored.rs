//! Rows as an edition keeps them: rows that are alike are one entry. A hall of fifty thousand seats is a megabyte
//! otherwise, which every new instance of a function fetches and reads before its first answer.

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{MAX_MAP_LENGTH, Row};
use crate::SeatName;

/// One row or, where it has a count, so many: each named by the next number, each right behind the one before.
#[derive(Serialize, Deserialize)]
struct StoredRows {
    name: String,
    offset: u32,
    /// Names or, where there is a count, what follows the row's name in each.
    seats: Vec<String>,
    removed: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    count: Option<u32>,
}

pub(super) fn serialize<S: Serializer>(rows: &[Row], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(stored(rows))
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Row>, D::Error> {
    let mut rows = Vec::new();
    for stored in Vec::<StoredRows>::deserialize(deserializer)? {
        add_rows(&mut rows, stored).ok_or_else(|| D::Error::custom("rows without end or with bad names"))?;
    }
    Ok(rows)
}

fn stored(rows: &[Row]) -> Vec<StoredRows> {
    let mut stored = Vec::new();
    let mut rest = rows;
    while let [first, ..] = rest {
        let alike = alike(rest);
        let seats = if alike > 1 { endings(first).unwrap_or_default() } else { names(first) };
        stored.push(StoredRows {
            name: first.name.clone(),
            offset: first.offset,
            seats: seats.into_iter().map(str::to_owned).collect(),
            removed: first.removed,
            // Rows are at most as many as bytes of the map.
            count: u32::try_from(alike).ok().filter(|count| *count > 1),
        });
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
        offset += first.length() + 1;
        row.offset == offset
            && row.removed == first.removed
            && numbered.plus(*number).is_some_and(|name| name == row.name)
            && self::endings(row).is_some_and(|others| others == endings)
    };
    1 + (1..).zip(others).take_while(is_next).count()
}

fn names(row: &Row) -> Vec<&str> {
    row.seats.iter().map(SeatName::as_str).collect()
}

/// What follows the row's name in its seats' names.
fn endings(row: &Row) -> Option<Vec<&str>> {
    row.seats.iter().map(|seat| seat.as_str().strip_prefix(row.name.as_str())).collect()
}

fn add_rows(rows: &mut Vec<Row>, stored: StoredRows) -> Option<()> {
    let StoredRows { name, offset, seats, removed, count } = stored;
    let Some(count) = count else {
        let seats = seats.into_iter().map(|seat| seat.parse().ok()).collect::<Option<_>>()?;
        rows.push(Row { name, offset, seats, removed });
        return Some(());
    };
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
