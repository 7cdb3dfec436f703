//! Rows and ranges of a definition, written out as named seats.

use super::SeatBlock;
use crate::SeatName;
use crate::layout::MAX_SEATS_A_SECTION;

/// The longest name of one row or seat in a list, before prefix and row are put before it.
const MAX_NAME_LENGTH: usize = 16;

/// Seats side by side, as a block names them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedRow {
    /// Prefix and row.
    pub name: String,
    /// In the order in which they stand side by side.
    pub seats: Vec<SeatName>,
}

/// Why a block names no seats.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {reason}")]
pub struct InvalidBlock {
    /// The field at fault: rows, seats or prefix.
    pub field: &'static str,
    /// What is wrong with it.
    pub reason: String,
}

impl SeatBlock {
    /// Every row with its seats; at most [`MAX_SEATS_A_SECTION`] seats.
    ///
    /// A seat is named prefix + row + seat, with a `-` between row and seat where both are digits there.
    pub fn named_rows(&self) -> Result<Vec<NamedRow>, InvalidBlock> {
        let invalid = |field| move |reason| InvalidBlock { field, reason };
        let rows = written_out(&self.rows).map_err(invalid("rows"))?;
        let seats = written_out(&self.seats).map_err(invalid("seats"))?;
        if rows.len() * seats.len() > MAX_SEATS_A_SECTION as usize {
            let reason = format!(
                "{} rows of {} seats are more than {MAX_SEATS_A_SECTION} seats",
                rows.len(),
                seats.len()
            );
            return Err(invalid("rows")(reason));
        }
        if !self.prefix.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-') {
            return Err(invalid("prefix")("must be of A-Z, a-z, 0-9 and -".to_owned()));
        }
        rows.iter().map(|row| self.named_row(row, &seats).map_err(invalid("seats"))).collect()
    }

    fn named_row(&self, row: &str, seats: &[String]) -> Result<NamedRow, String> {
        let name = format!("{}{row}", self.prefix);
        let ends_in_digit = row.ends_with(|last: char| last.is_ascii_digit());
        let seat_name = |seat: &String| -> Result<SeatName, String> {
            let joined = ends_in_digit && seat.starts_with(|first: char| first.is_ascii_digit());
            let text = format!("{name}{}{seat}", if joined { "-" } else { "" });
            text.parse().map_err(|invalid| format!("seat {text}: {invalid}"))
        };
        let seats = seats.iter().map(seat_name).collect::<Result<_, _>>()?;
        Ok(NamedRow { name, seats })
    }
}

/// The names in a list such as `1-15`, `A-D` or `1-3,7,AA`; none twice.
fn written_out(list: &str) -> Result<Vec<String>, String> {
    let mut names = Vec::new();
    for part in list.split(',').map(|part| part.trim_matches(' ')) {
        match part.split_once('-') {
            Some((first, end)) => names.extend(range(part, first.trim_matches(' '), end.trim_matches(' '))?),
            None if is_name(part) => names.push(part.to_owned()),
            None => {
                return Err(format!(
                    "{part:?} is neither a name of A-Z, a-z, 0-9 nor a range such as 1-15 or A-D"
                ));
            }
        }
        if names.len() > MAX_SEATS_A_SECTION as usize {
            return Err(format!("names more than {MAX_SEATS_A_SECTION}"));
        }
    }
    let mut sorted: Vec<&String> = names.iter().collect();
    sorted.sort_unstable();
    match sorted.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => Err(format!("names {} twice", pair[0])),
        None => Ok(names),
    }
}

fn is_name(text: &str) -> bool {
    (1..=MAX_NAME_LENGTH).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

fn range(part: &str, first: &str, last: &str) -> Result<Vec<String>, String> {
    let backwards = || format!("{part:?} runs backwards");
    if let (Some(first), Some(last)) = (number(first), number(last)) {
        let size = last.checked_sub(first).ok_or_else(backwards)?;
        if size >= MAX_SEATS_A_SECTION {
            return Err(format!("{part:?} names more than {MAX_SEATS_A_SECTION}"));
        }
        return Ok((first..=last).map(|number| number.to_string()).collect());
    }
    match (first.as_bytes(), last.as_bytes()) {
        (&[first], &[last])
            if (first.is_ascii_uppercase() && last.is_ascii_uppercase())
                || (first.is_ascii_lowercase() && last.is_ascii_lowercase()) =>
        {
            if first > last {
                Err(backwards())
            } else {
                Ok((first..=last).map(|byte| char::from(byte).to_string()).collect())
            }
        }
        _ => Err(format!(
            "{part:?} is no range: two numbers without leading zeros or two single letters, such as 1-15 or A-D"
        )),
    }
}

fn number(text: &str) -> Option<u32> {
    let plain = text == "0" || !text.starts_with('0');
    (plain && text.len() <= 6 && text.bytes().all(|byte| byte.is_ascii_digit()))
        .then(|| text.parse().ok())
        .flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(rows: &str, seats: &str, prefix: &str) -> SeatBlock {
        SeatBlock { rows: rows.to_owned(), seats: seats.to_owned(), prefix: prefix.to_owned() }
    }

    fn written_out(rows: &str, seats: &str, prefix: &str) -> Vec<String> {
        let rows = block(rows, seats, prefix).named_rows().unwrap();
        rows.iter()
            .map(|row| {
                format!(
                    "{}: {}",
                    row.name,
                    row.seats.iter().map(SeatName::as_str).collect::<Vec<_>>().join(" ")
                )
            })
            .collect()
    }

    #[test]
    fn ranges_name_rows_and_seats() {
        assert_eq!(written_out("1-2", "A-C", "3-"), ["3-1: 3-1A 3-1B 3-1C", "3-2: 3-2A 3-2B 3-2C"]);
        assert_eq!(written_out("A, B", "9-10", ""), ["A: A9 A10", "B: B9 B10"]);
        assert_eq!(
            written_out("1,VIP", "a-b,7", "F2-"),
            ["F2-1: F2-1a F2-1b F2-1-7", "F2-VIP: F2-VIPa F2-VIPb F2-VIP7"]
        );
    }

    #[test]
    fn what_names_no_seats_says_which_field_and_why() {
        for (rows, seats, prefix, field, reason) in [
            ("", "A", "", "rows", "neither a name"),
            ("1", "A,,B", "", "seats", "neither a name"),
            ("1", "좌석", "", "seats", "neither a name"),
            ("5-1", "A", "", "rows", "backwards"),
            ("1", "D-A", "", "seats", "backwards"),
            ("1", "A-d", "", "seats", "no range"),
            ("1", "AA-AC", "", "seats", "no range"),
            ("01-09", "A", "", "rows", "no range"),
            ("1-", "A", "", "rows", "no range"),
            ("1-3,2", "A", "", "rows", "2 twice"),
            ("1-2001", "A", "", "rows", "more than 2000"),
            ("1-999999", "A", "", "rows", "more than 2000"),
            ("1-100", "1-21", "", "rows", "more than 2000"),
            ("1", "A", "1{", "prefix", "must be of"),
            ("1", "A", "0123456789-0123456789-0123456789-", "seats", "must be 1 to 32"),
        ] {
            let problem = block(rows, seats, prefix).named_rows().unwrap_err();
            assert_eq!(problem.field, field, "{problem}");
            assert!(problem.reason.contains(reason), "{problem} should say {reason:?}");
        }
    }
}
