//! `--opens-at`.

use std::str::FromStr;

use domain::Millis;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// When a sale is to open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Opening {
    /// So many milliseconds from now.
    In(i64),
    /// At this instant.
    At(Millis),
}

impl Opening {
    /// The instant.
    pub(crate) fn instant(self, now: Millis) -> Millis {
        match self {
            Self::In(ms) => now.plus(ms),
            Self::At(at) => at,
        }
    }
}

impl FromStr for Opening {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, &'static str> {
        let wrong = "must be now, +N followed by s, m, h or d, such as +2m or +1h30m, or a time such as \
                     2026-09-01T07:00:00+09:00";
        if text == "now" {
            return Ok(Self::In(0));
        }
        if let Some(span) = text.strip_prefix('+') {
            return span_ms(span).map(Self::In).ok_or(wrong);
        }
        let instant = OffsetDateTime::parse(text, &Rfc3339).map_err(|_| wrong)?;
        let ms = instant.unix_timestamp_nanos().div_euclid(1_000_000);
        i64::try_from(ms).map(|ms| Self::At(Millis(ms))).map_err(|_| wrong)
    }
}

/// `90s`, `2m`, `1h30m`, `1d`: milliseconds.
pub(crate) fn span_ms(text: &str) -> Option<i64> {
    let mut rest = text;
    let mut sum_ms = 0_i64;
    while !rest.is_empty() {
        let digits = rest.find(|letter: char| !letter.is_ascii_digit())?;
        let (number, behind) = rest.split_at(digits);
        let mut letters = behind.chars();
        let unit_ms = match letters.next()? {
            's' => 1_000,
            'm' => 60_000,
            'h' => 3_600_000,
            'd' => 86_400_000,
            _ => return None,
        };
        let number = i64::from(number.parse::<u32>().ok()?);
        sum_ms = sum_ms.checked_add(number.checked_mul(unit_ms)?)?;
        rest = letters.as_str();
    }
    (!text.is_empty()).then_some(sum_ms)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_opening_is_now_later_or_a_time() {
        for (text, expected) in [
            ("now", Opening::In(0)),
            ("+0s", Opening::In(0)),
            ("+2m", Opening::In(120_000)),
            ("+1h30m", Opening::In(5_400_000)),
            ("+1d", Opening::In(86_400_000)),
            ("2026-09-01T07:00:00+09:00", Opening::At(Millis(1_788_213_600_000))),
            ("2026-08-31T22:00:00.5Z", Opening::At(Millis(1_788_213_600_500))),
        ] {
            assert_eq!(text.parse(), Ok(expected), "{text}");
        }
    }

    #[test]
    fn anything_else_is_refused() {
        let texts =
            ["", "+", "2m", "+2", "+m", "+-2m", "+2분", "+2m3", "+99999999999d", "tomorrow", "2026-09-01"];
        for text in texts {
            assert!(text.parse::<Opening>().is_err(), "{text:?}");
        }
    }

    #[test]
    fn later_counts_from_now() {
        assert_eq!(Opening::In(5).instant(Millis(10)), Millis(15));
        assert_eq!(Opening::At(Millis(5)).instant(Millis(10)), Millis(5));
    }
}
