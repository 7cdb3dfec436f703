//! What people read: numbers, times and tables for 80 columns, and what programs read: JSON.

use std::fmt::Display;
use std::io::{self, BufWriter, IsTerminal, Write};

use anyhow::Context;
use domain::Millis;
use serde::Serialize;
use time::{OffsetDateTime, UtcOffset};
use unicode_width::UnicodeWidthStr;

/// Standard output, and how times are told there.
pub(crate) struct Output {
    writer: Box<dyn Write>,
    times: Times,
}

impl Output {
    /// Standard output, times in this machine's offset.
    pub(crate) fn standard() -> Self {
        Self { writer: Box::new(BufWriter::new(io::stdout())), times: Times::local() }
    }

    pub(crate) fn times(&self) -> Times {
        self.times
    }

    pub(crate) fn line(&mut self, line: impl AsRef<str>) -> io::Result<()> {
        writeln!(self.writer, "{}", line.as_ref())
    }

    pub(crate) fn text(&mut self, text: impl AsRef<str>) -> io::Result<()> {
        self.writer.write_all(text.as_ref().as_bytes())
    }

    pub(crate) fn json(&mut self, value: &impl Serialize) -> anyhow::Result<()> {
        let text = serde_json::to_string_pretty(value).context("cannot write JSON")?;
        Ok(self.line(text)?)
    }

    pub(crate) fn flush(&mut self) -> io::Result<()> {
        self.writer.flush()
    }
}

/// Says on standard error why there is nothing else to say. Where that is closed, nobody wants to know.
pub(crate) fn complain(what: impl Display) {
    let _ = writeln!(io::stderr(), "jari: {what}");
}

/// How far long work has come: a line on standard error that is written over, and only in a terminal.
pub(crate) struct Progress {
    is_shown: bool,
}

impl Progress {
    pub(crate) fn new(is_shown: bool) -> Self {
        Self { is_shown: is_shown && io::stderr().is_terminal() }
    }

    pub(crate) fn tell(&self, how_far: impl Display) {
        if self.is_shown {
            let _ = write!(io::stderr(), "\r{how_far} …");
        }
    }

    /// Take the line away.
    pub(crate) fn end(&self) {
        if self.is_shown {
            let _ = write!(io::stderr(), "\r\x1b[K");
        }
    }
}

/// How times are told: always with the offset.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Times(UtcOffset);

impl Times {
    pub(crate) const UTC: Self = Self(UtcOffset::UTC);

    fn local() -> Self {
        Self(UtcOffset::current_local_offset().unwrap_or(UtcOffset::UTC))
    }

    /// `2026-09-01 07:00:00 +09:00`
    pub(crate) fn long(self, at: Millis) -> String {
        match self.parts(at) {
            Some((day, hour, second)) => format!("{day} {hour}:{second:02} {}", self.offset()),
            None => at.to_string(),
        }
    }

    /// `2026-09-01 07:00`
    pub(crate) fn short(self, at: Millis) -> String {
        self.parts(at).map_or_else(|| at.to_string(), |(day, hour, _)| format!("{day} {hour}"))
    }

    /// RFC 3339 with milliseconds: `2026-09-01T07:00:00.000+09:00`
    pub(crate) fn exact(self, at: Millis) -> String {
        let offset = if self.0.is_utc() { "Z".to_owned() } else { self.offset() };
        match self.parts(at) {
            Some((day, hour, second)) => {
                format!("{day}T{hour}:{second:02}.{:03}{offset}", at.0.rem_euclid(1_000))
            }
            None => at.to_string(),
        }
    }

    fn offset(self) -> String {
        let (hours, minutes, _) = self.0.as_hms();
        let sign = if self.0.is_negative() { '-' } else { '+' };
        format!("{sign}{:02}:{:02}", hours.unsigned_abs(), minutes.unsigned_abs())
    }

    /// The day, hour and minute, and the second.
    fn parts(self, at: Millis) -> Option<(String, String, u8)> {
        let time =
            OffsetDateTime::from_unix_timestamp(at.0.div_euclid(1_000)).ok()?.checked_to_offset(self.0)?;
        let day = format!("{:04}-{:02}-{:02}", time.year(), u8::from(time.month()), time.day());
        Some((day, format!("{:02}:{:02}", time.hour(), time.minute()), time.second()))
    }
}

/// `12,345`
pub(crate) fn number(number: u64) -> String {
    let digits = number.to_string();
    let mut grouped = String::with_capacity(digits.len() * 4 / 3 + 1);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// The same with its sign.
pub(crate) fn signed(signed: i64) -> String {
    format!("{}{}", if signed < 0 { "-" } else { "" }, number(signed.unsigned_abs()))
}

/// `1 place`, `12,345 places`
pub(crate) fn counted(count: u64, noun: &str) -> String {
    format!("{} {noun}{}", number(count), if count == 1 { "" } else { "s" })
}

/// A length of time in its two largest units: `1 min 58 s`.
pub(crate) fn span(ms: i64) -> String {
    let seconds = ms.unsigned_abs().div_ceil(1_000);
    let units = [
        (seconds / 86_400, "d"),
        (seconds / 3_600 % 24, "h"),
        (seconds / 60 % 60, "min"),
        (seconds % 60, "s"),
    ];
    let first = units.iter().position(|(count, _)| *count > 0).unwrap_or(units.len() - 1);
    let shown = units[first..].iter().take(2).filter(|(count, _)| *count > 0 || first == units.len() - 1);
    shown.map(|(count, unit)| format!("{count} {unit}")).collect::<Vec<_>>().join(" ")
}

/// Lines as a text.
pub(crate) fn text(lines: &[String]) -> String {
    lines.iter().flat_map(|line| [line, "\n"]).collect()
}

/// Which side of its column a text stands at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    Left,
    Right,
}

/// Rows under headers, aligned by the width of their texts in a terminal: a Korean letter takes two columns.
pub(crate) struct Table {
    columns: Vec<Side>,
    rows: Vec<Vec<String>>,
}

impl Table {
    pub(crate) fn new<const N: usize>(columns: [(&str, Side); N]) -> Self {
        let headers = columns.iter().map(|(header, _)| (*header).to_owned()).collect();
        Self { columns: columns.iter().map(|(_, side)| *side).collect(), rows: vec![headers] }
    }

    pub(crate) fn row<const N: usize>(&mut self, cells: [String; N]) {
        self.rows.push(cells.into());
    }

    pub(crate) fn text(&self) -> String {
        let width = |column: usize| {
            self.rows
                .iter()
                .filter_map(|row| row.get(column))
                .map(|cell| cell.width())
                .max()
                .unwrap_or_default()
        };
        let widths: Vec<usize> = (0..self.columns.len()).map(width).collect();
        let mut text = String::new();
        for row in &self.rows {
            let mut line = String::new();
            for ((cell, side), width) in row.iter().zip(&self.columns).zip(&widths) {
                let padding = " ".repeat(width.saturating_sub(cell.width()));
                if !line.is_empty() {
                    line.push_str("  ");
                }
                match side {
                    Side::Left => line.extend([cell.as_str(), &padding]),
                    Side::Right => line.extend([padding.as_str(), cell]),
                }
            }
            text.push_str(line.trim_end());
            text.push('\n');
        }
        text
    }
}

/// A text cut to a width in a terminal, with a sign that it was.
pub(crate) fn cut(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let mut cut = String::new();
    for letter in text.chars() {
        let mut next = cut.clone();
        next.push(letter);
        if next.width() + 1 > width {
            break;
        }
        cut = next;
    }
    cut.push('…');
    cut
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_tell_their_offset() {
        let seoul = Times(UtcOffset::from_hms(9, 0, 0).unwrap());
        let at = Millis(1_788_213_600_123);
        assert_eq!(seoul.long(at), "2026-09-01 07:00:00 +09:00");
        assert_eq!(seoul.short(at), "2026-09-01 07:00");
        assert_eq!(Times::UTC.exact(at), "2026-08-31T22:00:00.123Z");
        assert_eq!(seoul.exact(at), "2026-09-01T07:00:00.123+09:00");
        let newfoundland = Times(UtcOffset::from_hms(-3, -30, 0).unwrap());
        assert_eq!(newfoundland.long(at), "2026-08-31 18:30:00 -03:30");
        assert_eq!(Times::UTC.long(Millis(i64::MAX)), i64::MAX.to_string());
    }

    #[test]
    fn numbers_are_grouped() {
        for (value, text) in [(0, "0"), (999, "999"), (1_000, "1,000"), (1_234_567, "1,234,567")] {
            assert_eq!(number(value), text);
        }
        assert_eq!(signed(-1_234), "-1,234");
        assert_eq!((counted(1, "place"), counted(2_000, "place")), ("1 place".into(), "2,000 places".into()));
    }

    #[test]
    fn spans_have_two_units_at_most() {
        for (ms, text) in [
            (0, "0 s"),
            (1, "1 s"),
            (118_000, "1 min 58 s"),
            (120_000, "2 min"),
            (3_600_000, "1 h"),
            (-11_100_000, "3 h 5 min"),
            (90_061_000, "1 d 1 h"),
        ] {
            assert_eq!(span(ms), text, "{ms}");
        }
    }

    #[test]
    fn tables_align_by_columns_of_the_terminal() {
        let mut table = Table::new([("NAME", Side::Left), ("FREE", Side::Right), ("TITLE", Side::Left)]);
        table.row(["특실".into(), "1".into(), "추석".into()]);
        table.row(["standing".into(), "12,345".into(), String::new()]);
        assert_eq!(table.text(), "NAME        FREE  TITLE\n특실           1  추석\nstanding  12,345\n");
    }

    #[test]
    fn what_is_too_wide_is_cut_between_letters() {
        assert_eq!(cut("가을밤", 6), "가을밤");
        assert_eq!(cut("가을밤", 5), "가을…");
        assert_eq!(cut("가을밤", 4), "가…");
        assert_eq!(cut("abc", 2), "a…");
    }
}
