//! Prometheus' text format, version 0.0.4: <https://prometheus.io/docs/instrumenting/exposition_formats/>.

use std::fmt::Write as _;

use crate::kinds::BOUNDS_MICROS;
use crate::{Distribution, Kind, Metric, Unit};

/// The media type of [`text`].
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// What Prometheus calls a metric: in seconds what is a time, `_total` at the end of what grows.
pub fn name(metric: &Metric) -> String {
    let unit = if metric.unit == Unit::Milliseconds { "_seconds" } else { "" };
    let total = if matches!(metric.kind, Kind::Counter(_) | Kind::Codes(_)) { "_total" } else { "" };
    format!("jari_{}{unit}{total}", metric.name)
}

/// All that was counted since the process began.
pub fn text(table: &[Metric]) -> String {
    let mut text = String::new();
    for metric in table {
        // Writing to a String does not fail.
        let _ = write_metric(&mut text, metric);
    }
    text
}

fn write_metric(text: &mut String, metric: &Metric) -> std::fmt::Result {
    let name = name(metric);
    let kind = match metric.kind {
        Kind::Counter(_) | Kind::Codes(_) => "counter",
        Kind::Gauge(_) => "gauge",
        Kind::Distribution(_) => "histogram",
    };
    writeln!(text, "# HELP {name} {}\n# TYPE {name} {kind}", metric.means)?;
    match metric.kind {
        Kind::Counter(counter) => writeln!(text, "{name} {}", counter.total())?,
        Kind::Gauge(gauge) => {
            if let Some(value) = gauge.value() {
                let in_seconds = if metric.unit == Unit::Milliseconds { 1_000.0 } else { 1.0 };
                writeln!(text, "{name} {}", value / in_seconds)?;
            }
        }
        Kind::Distribution(distribution) => write_distribution(text, &name, distribution)?,
        Kind::Codes(codes) => {
            for (code, counter) in codes.met() {
                writeln!(text, "{name}{{code=\"{code}\"}} {}", counter.total())?;
            }
        }
    }
    Ok(())
}

fn write_distribution(text: &mut String, name: &str, distribution: &Distribution) -> std::fmt::Result {
    let (mut count, mut micros) = (0, 0);
    let bounds = BOUNDS_MICROS.iter().map(|bound| seconds(*bound).to_string());
    for (part, bound) in distribution.totals().iter().zip(bounds.chain(["+Inf".to_owned()])) {
        count += part.count;
        micros += part.micros;
        writeln!(text, "{name}_bucket{{le=\"{bound}\"}} {count}")?;
    }
    writeln!(text, "{name}_sum {}\n{name}_count {count}", seconds(micros))
}

fn seconds(micros: u64) -> f64 {
    micros as f64 / 1_000_000.0
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::{Codes, Counter, Gauge};

    #[test]
    fn the_text_tells_totals_in_seconds_and_by_codes() {
        static COUNTER: Counter = Counter::new();
        static LAG: Gauge = Gauge::new();
        static UNSET: Gauge = Gauge::new();
        static TIMES: Distribution = Distribution::new();
        static CODES: Codes = Codes::new();
        COUNTER.add(3);
        LAG.set(1_500.0);
        TIMES.observe(Duration::from_micros(150));
        TIMES.observe(Duration::from_secs(2_000));
        CODES.add("SOLD_OUT");
        let metric = |name, unit, kind| Metric { name, unit, kind, means: "what it means" };
        let text = text(&[
            metric("joins", Unit::Count, Kind::Counter(&COUNTER)),
            metric("lag", Unit::Milliseconds, Kind::Gauge(&LAG)),
            metric("unset", Unit::Count, Kind::Gauge(&UNSET)),
            metric("latency", Unit::Milliseconds, Kind::Distribution(&TIMES)),
            metric("refusals", Unit::Count, Kind::Codes(&CODES)),
        ]);
        for line in [
            "# HELP jari_joins_total what it means",
            "# TYPE jari_joins_total counter",
            "jari_joins_total 3",
            "# TYPE jari_lag_seconds gauge",
            "jari_lag_seconds 1.5",
            "# TYPE jari_latency_seconds histogram",
            "jari_latency_seconds_bucket{le=\"0.0001\"} 0",
            "jari_latency_seconds_bucket{le=\"0.0002\"} 1",
            "jari_latency_seconds_bucket{le=\"900\"} 1",
            "jari_latency_seconds_bucket{le=\"+Inf\"} 2",
            "jari_latency_seconds_sum 2000.00015",
            "jari_latency_seconds_count 2",
            "jari_refusals_total{code=\"SOLD_OUT\"} 1",
        ] {
            assert!(text.lines().any(|written| written == line), "{line}\n{text}");
        }
        assert!(!text.lines().any(|line| line.starts_with("jari_unset")), "{text}");
    }
}
