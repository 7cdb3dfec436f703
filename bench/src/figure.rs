//! One line of the table: what was measured, beside what, and what it should be.

use serde::Serialize;

/// What a figure has to reach.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Target {
    /// At most so many times the baseline.
    Times(f64),
    /// At least so many times the baseline.
    AtLeastTimes(f64),
    /// At most this, in the figure's unit.
    AtMost(f64),
    /// At least this, in the figure's unit.
    AtLeast(f64),
    /// Within these, in the figure's unit.
    Within(f64, f64),
}

impl Target {
    fn text(self) -> String {
        match self {
            Self::Times(times) => format!("≤ {times} ×"),
            Self::AtLeastTimes(times) => format!("≥ {times} ×"),
            Self::AtMost(most) => format!("≤ {}", number(most)),
            Self::AtLeast(least) => format!("≥ {}", number(least)),
            Self::Within(least, most) => format!("{} – {}", number(least), number(most)),
        }
    }

    fn is_met(self, value: f64, ratio: Option<f64>) -> Option<bool> {
        match self {
            Self::Times(times) => ratio.map(|ratio| ratio <= times),
            Self::AtLeastTimes(times) => ratio.map(|ratio| ratio >= times),
            Self::AtMost(most) => Some(value <= most),
            Self::AtLeast(least) => Some(value >= least),
            Self::Within(least, most) => Some((least..=most).contains(&value)),
        }
    }
}

/// What was measured. Without a value: not measured, and not met.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Figure {
    pub(crate) name: &'static str,
    pub(crate) value: Option<f64>,
    pub(crate) unit: &'static str,
    pub(crate) baseline: Option<f64>,
    pub(crate) ratio: Option<f64>,
    pub(crate) target: String,
    pub(crate) met: Option<bool>,
    /// What the table's foot says of it.
    #[serde(skip)]
    pub(crate) note: Option<String>,
}

impl Figure {
    /// A figure without a baseline.
    pub(crate) fn new(name: &'static str, unit: &'static str, target: Target, value: f64) -> Self {
        let met = target.is_met(value, None);
        Self {
            name,
            value: Some(value),
            unit,
            baseline: None,
            ratio: None,
            target: target.text(),
            met,
            note: None,
        }
    }

    /// A figure whose ratio was taken round by round, which bears a busy machine better than a ratio of medians.
    pub(crate) fn beside(
        name: &'static str,
        unit: &'static str,
        target: Target,
        (value, baseline, ratio): (f64, f64, f64),
    ) -> Self {
        let met = target.is_met(value, Some(ratio));
        let figure = Self::new(name, unit, target, value);
        Self { baseline: Some(baseline), ratio: Some(ratio), met, ..figure }
    }

    /// What could not be measured, and why.
    pub(crate) fn missing(name: &'static str, why: impl Into<String>) -> Self {
        let note = Some(format!("not measured: {}", why.into()));
        Self {
            name,
            value: None,
            unit: "",
            baseline: None,
            ratio: None,
            target: String::new(),
            met: None,
            note,
        }
    }

    /// Not met at any speed where what was counted is wrong.
    #[must_use]
    pub(crate) fn only_if(self, exact: bool) -> Self {
        Self { met: self.met.map(|met| met && exact), ..self }
    }

    #[must_use]
    pub(crate) fn noting(self, note: impl Into<String>) -> Self {
        Self { note: Some(note.into()), ..self }
    }
}

/// The table, 80 columns wide, and under it what there is to say of its rows.
pub(crate) fn table(figures: &[Figure]) -> String {
    let mut lines = vec![row("what", "target", "measured", "baseline", "ratio", "met")];
    for figure in figures {
        let measured = figure.value.map_or_else(
            || "not measured".to_owned(),
            |value| format!("{} {}", number(value), figure.unit).trim_end().to_owned(),
        );
        let baseline = figure.baseline.map(number).unwrap_or_default();
        let ratio = figure.ratio.map(|ratio| format!("{ratio:.2}")).unwrap_or_default();
        let met = match figure.met {
            Some(true) => "yes",
            Some(false) => "NO",
            None => "–",
        };
        lines.push(row(figure.name, &figure.target, &measured, &baseline, &ratio, met));
    }
    let notes: Vec<String> = figures
        .iter()
        .filter_map(|figure| figure.note.as_ref().map(|note| format!("{}: {note}", figure.name)))
        .collect();
    if !notes.is_empty() {
        lines.push(String::new());
        lines.extend(notes);
    }
    lines.join("\n")
}

fn row(name: &str, target: &str, measured: &str, baseline: &str, ratio: &str, met: &str) -> String {
    format!("{name:<27} {target:>13} {measured:>16} {baseline:>9} {ratio:>6} {met:>4}")
}

/// Three digits that matter, thousands apart.
pub(crate) fn number(value: f64) -> String {
    if value.abs() < 10.0 && value.fract() != 0.0 {
        return format!("{value:.2}");
    }
    if value.abs() < 100.0 && value.fract() != 0.0 {
        return format!("{value:.1}");
    }
    let digits = format!("{value:.0}");
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(' ');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_eighty_columns_and_says_whether_it_is_met() {
        let figures = [
            Figure::beside("join_redis", "µs", Target::Times(6.0), (9.0, 1.5, 6.0)),
            Figure::beside("poll_redis", "µs", Target::Times(5.0), (9.0, 1.5, 6.0)),
            Figure::new("bookings_general", "/s", Target::AtLeast(20_000.0), 1_234_567.0),
            Figure::missing("start_first", "no time"),
        ];
        let table = table(&figures);
        let lines: Vec<&str> = table.lines().collect();
        assert!(lines[..5].iter().all(|line| line.chars().count() == 80), "{table}");
        for (line, end) in lines[1..].iter().zip(["yes", "NO", "yes", "–"]) {
            assert!(line.ends_with(end), "{line}");
        }
        assert!(lines[3].contains("1 234 567 /s"), "{}", lines[3]);
        assert_eq!(lines[6], "start_first: not measured: no time");
    }

    #[test]
    fn what_was_not_measured_is_null_and_not_met() {
        let json = serde_json::to_value(Figure::missing("a", "b")).unwrap();
        assert_eq!((&json["value"], &json["met"]), (&serde_json::Value::Null, &serde_json::Value::Null));
        let names: Vec<&String> = json.as_object().unwrap().keys().collect();
        assert_eq!(names.len(), 7, "{names:?}");
    }
}
