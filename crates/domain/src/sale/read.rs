//! Reading fields so that every mistake is noted and reading goes on: `None` where a value must be means that a
//! problem was noted.

use std::collections::HashSet;
use std::fmt::Display;
use std::ops::RangeInclusive;
use std::str::FromStr;

use time::format_description::well_known::Rfc3339;
use time::{Date, Month, OffsetDateTime};

use super::Problem;
use super::node::{Node, Value};
use crate::Millis;

/// 2000-01-01: an earlier instant is a mistake, most likely Unix seconds.
const EARLIEST: Millis = Millis(946_684_800_000);
/// 2100-01-01.
const LATEST: Millis = Millis(4_102_444_800_000);

/// A value and where it stands.
#[derive(Debug, Clone)]
pub(super) struct Found<'n> {
    pub(super) path: String,
    pub(super) node: &'n Node,
}

/// An object's fields and where it stands.
#[derive(Debug)]
pub(super) struct Object<'n> {
    pub(super) found: Found<'n>,
    fields: &'n [(String, Node)],
}

impl<'n> Object<'n> {
    pub(super) fn get(&self, name: &str) -> Option<Found<'n>> {
        let (_, node) = self.fields.iter().find(|(field, _)| field == name)?;
        Some(Found { path: field_path(&self.found.path, name), node })
    }

    /// Fields under any other name than these, each name once.
    pub(super) fn others(&self, known: &[&str]) -> Vec<(&'n str, Found<'n>)> {
        let mut seen = HashSet::new();
        let others =
            self.fields.iter().filter(|(name, _)| !known.contains(&name.as_str()) && seen.insert(name));
        others
            .map(|(name, node)| (name.as_str(), Found { path: field_path(&self.found.path, name), node }))
            .collect()
    }
}

fn field_path(path: &str, name: &str) -> String {
    let plain = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'$');
    if plain && (1..=64).contains(&name.len()) {
        format!("{path}.{name}")
    } else {
        format!("{path}[{:?}]", name.chars().take(64).collect::<String>())
    }
}

/// Collects problems.
#[derive(Debug, Default)]
pub(super) struct Reader {
    pub(super) problems: Vec<Problem>,
}

impl Reader {
    pub(super) fn problem(&mut self, at: &Found<'_>, reason: impl Into<String>) {
        self.problems.push(Problem {
            path: at.path.clone(),
            line: Some(at.node.line),
            reason: reason.into(),
        });
    }

    fn wrong<T>(&mut self, at: &Found<'_>, reason: impl Into<String>) -> Option<T> {
        self.problem(at, reason);
        None
    }

    /// An object that may have other fields; one name twice is a problem.
    pub(super) fn open_object<'n>(&mut self, at: &Found<'n>) -> Option<Object<'n>> {
        let Value::Object(fields) = &at.node.value else { return self.wrong(at, "must be an object") };
        let mut seen = HashSet::new();
        for (name, node) in fields {
            if !seen.insert(name) {
                self.problem(&Found { path: field_path(&at.path, name), node }, "stands here a second time");
            }
        }
        Some(Object { found: at.clone(), fields })
    }

    /// An object with these fields only.
    pub(super) fn object<'n>(&mut self, at: &Found<'n>, known: &[&str]) -> Option<Object<'n>> {
        let object = self.open_object(at)?;
        for (name, field) in object.others(known) {
            self.problem(&field, unknown_field(name, known));
        }
        Some(object)
    }

    pub(super) fn list<'n>(&mut self, at: &Found<'n>) -> Option<Vec<Found<'n>>> {
        match &at.node.value {
            Value::List(items) if items.is_empty() => self.wrong(at, "must not be empty"),
            Value::List(items) => {
                let items = items.iter().enumerate();
                Some(
                    items
                        .map(|(index, node)| Found { path: format!("{}[{index}]", at.path), node })
                        .collect(),
                )
            }
            _ => self.wrong(at, "must be a list"),
        }
    }

    /// A field that must be there.
    pub(super) fn required<'n, T>(
        &mut self,
        object: &Object<'n>,
        name: &str,
        read: impl FnOnce(&mut Self, &Found<'n>) -> Option<T>,
    ) -> Option<T> {
        if let Some(found) = object.get(name) {
            return read(self, &found);
        }
        let path = field_path(&object.found.path, name);
        self.wrong(&Found { path, node: object.found.node }, "is missing")
    }

    /// A field that has a default.
    pub(super) fn or<'n, T>(
        &mut self,
        object: &Object<'n>,
        name: &str,
        default: T,
        read: impl FnOnce(&mut Self, &Found<'n>) -> Option<T>,
    ) -> Option<T> {
        object.get(name).map_or(Some(default), |found| read(self, &found))
    }

    /// A field that may be absent.
    pub(super) fn optional<'n, T>(
        &mut self,
        object: &Object<'n>,
        name: &str,
        read: impl FnOnce(&mut Self, &Found<'n>) -> Option<T>,
    ) -> Option<T> {
        object.get(name).and_then(|found| read(self, &found))
    }

    pub(super) fn boolean(&mut self, at: &Found<'_>) -> Option<bool> {
        match at.node.value {
            Value::Boolean(value) => Some(value),
            _ => self.wrong(at, "must be true or false"),
        }
    }

    /// A whole number.
    pub(super) fn whole<T: TryFrom<i64> + Into<i64> + Copy + Display>(
        &mut self,
        at: &Found<'_>,
        range: RangeInclusive<T>,
    ) -> Option<T> {
        let (least, most) = (*range.start(), *range.end());
        match whole_number(at.node) {
            Some(number) if (least.into()..=most.into()).contains(&number) => T::try_from(number).ok(),
            _ => self.wrong(at, format!("must be a whole number from {least} to {most}")),
        }
    }

    pub(super) fn number(&mut self, at: &Found<'_>, least: f64, most: f64) -> Option<f64> {
        let number = match &at.node.value {
            Value::Number(number) => number.as_f64(),
            _ => None,
        };
        match number.filter(|number| (least..=most).contains(number)) {
            Some(number) => Some(number),
            None => self.wrong(at, format!("must be a number from {least} to {most}")),
        }
    }

    /// Any text.
    pub(super) fn text<'n>(&mut self, at: &Found<'n>) -> Option<&'n str> {
        match &at.node.value {
            Value::Text(text) => Some(text),
            _ => self.wrong(at, "must be text"),
        }
    }

    /// Text for people.
    pub(super) fn title(&mut self, at: &Found<'_>, most: usize) -> Option<String> {
        let text = self.text(at)?;
        let characters = text.chars().count();
        if characters > most || text.chars().all(char::is_whitespace) {
            return self.wrong(at, format!("must have 1 to {most} characters, not only spaces"));
        }
        if text.chars().any(char::is_control) {
            return self.wrong(at, "must not have line breaks or other control characters");
        }
        Some(text.to_owned())
    }

    /// One of these words.
    pub(super) fn word<T: Copy>(&mut self, at: &Found<'_>, words: &[(&str, T)]) -> Option<T> {
        let known: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
        if let Value::Text(text) = &at.node.value {
            if let Some((_, value)) = words.iter().find(|(word, _)| word == text) {
                return Some(*value);
            }
            if let Some(near) = nearest(text, &known) {
                return self.wrong(at, format!("must be {}: did you mean {near}?", known.join(" or ")));
            }
        }
        self.wrong(at, format!("must be {}", known.join(" or ")))
    }

    pub(super) fn id<T: FromStr<Err: Display>>(&mut self, at: &Found<'_>) -> Option<T> {
        match self.text(at)?.parse() {
            Ok(id) => Some(id),
            Err(invalid) => self.wrong(at, invalid.to_string()),
        }
    }

    /// Unix milliseconds, or RFC 3339 text with its offset.
    pub(super) fn instant(&mut self, at: &Found<'_>) -> Option<Millis> {
        let instant = match &at.node.value {
            Value::Text(text) => instant_of(text),
            _ => whole_number(at.node),
        };
        match instant.map(Millis) {
            None => self.wrong(at, "must be Unix milliseconds or a text such as 2026-09-01T07:00:00+09:00"),
            Some(instant) if instant < EARLIEST => {
                self.wrong(at, "is before 2000: Unix times are in milliseconds here")
            }
            Some(instant) if instant > LATEST => self.wrong(at, "is after 2099"),
            instant => instant,
        }
    }

    /// A day of the calendar as `YYYY-MM-DD`.
    pub(super) fn date(&mut self, at: &Found<'_>) -> Option<String> {
        if let Value::Text(text) = &at.node.value
            && is_date(text)
        {
            return Some(text.clone());
        }
        self.wrong(at, "must be a day as YYYY-MM-DD, such as 2026-09-24")
    }
}

fn whole_number(node: &Node) -> Option<i64> {
    let Value::Number(number) = &node.value else { return None };
    // JSON does not tell 180 from 180.0, and up to 2^53 a float is exact.
    let exact = |float: f64| float.fract() == 0.0 && float.abs() <= 9_007_199_254_740_992.0;
    #[allow(clippy::cast_possible_truncation)]
    let from_float = || number.as_f64().filter(|float| exact(*float)).map(|float| float as i64);
    number.as_i64().or_else(from_float)
}

fn instant_of(text: &str) -> Option<i64> {
    // RFC 3339 lets any sign stand between date and time; here it is the T that people know.
    let usual = text.as_bytes().get(10) == Some(&b'T') && !text.ends_with('z');
    let instant = usual.then(|| OffsetDateTime::parse(text, &Rfc3339).ok()).flatten()?;
    i64::try_from(instant.unix_timestamp_nanos().div_euclid(1_000_000)).ok()
}

fn is_date(text: &str) -> bool {
    let parts: Vec<&str> = text.split('-').collect();
    let &[year, month, day] = parts.as_slice() else { return false };
    let digits = parts.iter().all(|part| part.bytes().all(|byte| byte.is_ascii_digit()));
    let widths = (year.len(), month.len(), day.len()) == (4, 2, 2);
    let date = || {
        let month = Month::try_from(month.parse::<u8>().ok()?).ok()?;
        Date::from_calendar_date(year.parse().ok()?, month, day.parse().ok()?).ok()
    };
    digits && widths && date().is_some()
}

pub(super) fn unknown_field(name: &str, known: &[&str]) -> String {
    match nearest(name, known) {
        Some(near) => format!("is not a known field: did you mean {near}?"),
        None => format!("is not a known field: {}", known.join(", ")),
    }
}

/// The known word that `text` was probably meant to be: two slips of the finger away at most, or the same
/// letters written otherwise.
fn nearest<'k>(text: &str, known: &[&'k str]) -> Option<&'k str> {
    let letters =
        |text: &str| -> String { text.chars().filter(|at| at.is_alphanumeric()).take(64).collect() };
    let text = letters(text).to_lowercase();
    let distance = |word: &str| strsim::osa_distance(&text, &letters(word).to_lowercase());
    let (distance, word) = known.iter().map(|word| (distance(word), *word)).min()?;
    (distance <= 2 && distance * 2 < word.len()).then_some(word)
}
