//! What a crowd can be told.

use std::fmt::{self, Display};
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use clap::{Args, ValueEnum};
use domain::EventId;
use serde::{Serialize, Serializer};

use crate::opening::span_ms;

/// Everything but the people is as real as the system: nobody knows more than the answers tell.
#[derive(Debug, Clone, Args)]
#[command(after_help = "Example: jari crowd --users 5000 --arrive 30s --think 2s --report crowd.html")]
pub(crate) struct CrowdArguments {
    /// Address of the endpoints [default: the local system's]
    #[arg(long, value_name = "URL")]
    pub(crate) url: Option<String>,
    /// The sale [default: the one of requests that name none]
    #[arg(long, value_name = "EVENT")]
    pub(crate) event: Option<EventId>,
    /// How many people come
    #[arg(long, value_name = "N", default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) users: u32,
    /// Within how long they come
    #[arg(long, value_name = "SPAN", default_value = "10s")]
    pub(crate) arrive: Span,
    /// How they are spread over that time
    #[arg(long, value_enum, default_value_t = Curve::Even)]
    pub(crate) curve: Curve,
    /// How many places each wants: one number, or a range
    #[arg(long, value_name = "N-M", default_value = "1-4")]
    pub(crate) seats: Counts,
    /// How long they think before each thing they do inside, on average
    #[arg(long, value_name = "SPAN", default_value = "5s")]
    pub(crate) think: Span,
    /// How long they wait in the line before they leave it, on average
    #[arg(long, value_name = "SPAN", default_value = "30m")]
    pub(crate) patience: Span,
    /// How many go without booking: half out of the line, half with places held
    #[arg(long, value_name = "SHARE", default_value = "10%")]
    pub(crate) abandon: Share,
    /// How many are away when they are called; every other one comes back
    #[arg(long, value_name = "SHARE", default_value = "3%")]
    pub(crate) no_shows: Share,
    /// How many press F5 while they wait
    #[arg(long, value_name = "SHARE", default_value = "10%")]
    pub(crate) reloads: Share,
    /// How many follow their place in a second tab, on another device
    #[arg(long, value_name = "SHARE", default_value = "3%")]
    pub(crate) tabs: Share,
    /// How many are programs: they ask five times a second, whatever they are told
    #[arg(long, value_name = "SHARE", default_value = "0%")]
    pub(crate) bots: Share,
    /// How many buy without choosing: any places of the sale's default section
    #[arg(long, value_name = "SHARE", default_value = "10%")]
    pub(crate) plain: Share,
    /// Makes people come, think and lose patience so many times faster
    #[arg(long, value_name = "X", default_value_t = 1.0, value_parser = speed)]
    pub(crate) speed: f64,
    /// Connections at most; what waits for one is counted as waiting
    #[arg(long, value_name = "N", default_value_t = 256, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) connections: u32,
    /// Ends whatever still goes on then [default: arrival, twice the patience and 10 minutes]
    #[arg(long, value_name = "SPAN")]
    pub(crate) within: Option<Span>,
    /// The same people again
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Write the report with its curves as one HTML page
    #[arg(long, value_name = "FILE.html")]
    pub(crate) report: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// How arrivals are spread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Curve {
    /// The same number each moment
    Even,
    /// Half of all within the first tenth
    Rush,
    /// Few, then many, then few
    Bell,
}

/// `10s`, `2m`, `1h30m`
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Span(pub(crate) Duration);

impl FromStr for Span {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, &'static str> {
        let ms = if text == "0" { Some(0) } else { span_ms(text) };
        let ms = ms.filter(|ms| *ms <= 7 * 86_400_000).and_then(|ms| u64::try_from(ms).ok());
        let ms = ms.ok_or("must be N followed by s, m or h, such as 90s or 1h30m, and at most a week")?;
        Ok(Self(Duration::from_millis(ms)))
    }
}

/// `10%`, as a fraction.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Share(pub(crate) f64);

impl Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}%", self.0 * 100.0)
    }
}

impl Serialize for Share {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl FromStr for Share {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, &'static str> {
        let percent = text.strip_suffix('%').and_then(|number| number.parse::<f64>().ok());
        let percent = percent.filter(|percent| (0.0..=100.0).contains(percent));
        Ok(Self(percent.ok_or("must be a share such as 10%")? / 100.0))
    }
}

/// `1-4`, or `2`
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) least: u32,
    pub(crate) most: u32,
}

impl FromStr for Counts {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, &'static str> {
        let (least, most) = text.split_once('-').unwrap_or((text, text));
        let read = |number: &str| number.parse::<u32>().ok().filter(|number| (1..=100).contains(number));
        match (read(least), read(most)) {
            (Some(least), Some(most)) if least <= most => Ok(Self { least, most }),
            _ => Err("must be a number from 1 to 100, or a range such as 1-4"),
        }
    }
}

fn speed(text: &str) -> Result<f64, &'static str> {
    let speed = text.parse::<f64>().ok().filter(|speed| (0.01..=1_000.0).contains(speed));
    speed.ok_or("must be a number from 0.01 to 1000")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_shares_and_counts_read_as_written() {
        assert_eq!("90s".parse(), Ok(Span(Duration::from_secs(90))));
        assert_eq!("0".parse(), Ok(Span(Duration::ZERO)));
        assert_eq!("12.5%".parse(), Ok(Share(0.125)));
        assert_eq!("1-4".parse(), Ok(Counts { least: 1, most: 4 }));
        assert_eq!("2".parse(), Ok(Counts { least: 2, most: 2 }));
        for text in ["", "10", "8d", "-1s"] {
            assert!(text.parse::<Span>().is_err(), "{text}");
        }
        for text in ["10", "101%", "-1%", "%", "NaN%"] {
            assert!(text.parse::<Share>().is_err(), "{text}");
        }
        for text in ["0", "4-1", "1-", "1-101", "x"] {
            assert!(text.parse::<Counts>().is_err(), "{text}");
        }
        assert!(speed("0").is_err() && speed("inf").is_err() && speed("10").is_ok());
    }
}
