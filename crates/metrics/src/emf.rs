//! CloudWatch's embedded metric format: a line on standard output that Lambda's log takes and CloudWatch counts.
//! <https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/CloudWatch_Embedded_Metric_Format_Specification.html>
//!
//! At most one line a second and process, written within an answer and never after it: a Lambda that has answered
//! stands still. What is counted too late for one line comes with the next; what an instance has not told when it is
//! ended is lost.

use std::io::Write as _;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Map, Value, json};

use crate::kinds::PartSum;
use crate::{Kind, Metric, TABLE, Unit};

/// The namespace of all metrics.
pub const NAMESPACE: &str = "Jari";
/// Between two lines.
const INTERVAL_MS: i64 = 1_000;
/// Values of one metric in a line at most, by the specification.
const MAX_VALUES: u64 = 100;

/// Who tells.
#[derive(Debug)]
pub struct Emf {
    system: String,
    function: String,
    /// When the last line was made, Unix milliseconds.
    told_at_ms: Mutex<i64>,
}

impl Emf {
    /// Tells as `system`, the one dimension of all metrics; `function` is a property of each line.
    pub fn new(system: impl Into<String>, function: impl Into<String>) -> Self {
        Self { system: system.into(), function: function.into(), told_at_ms: Mutex::new(0) }
    }

    /// What has been counted since the last line, as a line without its end. None within a second of it, and where
    /// nothing was counted.
    pub fn line(&self, table: &[Metric], now_ms: i64) -> Option<String> {
        // Held to the end: numbers are told to one asker at a time.
        let mut told_at_ms = self.told_at_ms.lock().unwrap_or_else(PoisonError::into_inner);
        // A clock that was set back starts a second anew.
        if (0..INTERVAL_MS).contains(&now_ms.saturating_sub(*told_at_ms)) {
            return None;
        }
        let mut line = Line::default();
        for metric in table {
            line.tell(metric);
        }
        if line.named.is_empty() {
            return None;
        }
        *told_at_ms = now_ms;
        let directive = json!({ "Namespace": NAMESPACE, "Dimensions": [["system"]], "Metrics": line.named });
        let mut members = line.values;
        members.insert("_aws".into(), json!({ "Timestamp": now_ms, "CloudWatchMetrics": [directive] }));
        members.insert("system".into(), json!(self.system));
        members.insert("function".into(), json!(self.function));
        Some(Value::Object(members).to_string())
    }
}

#[derive(Default)]
struct Line {
    named: Vec<Value>,
    values: Map<String, Value>,
}

impl Line {
    fn tell(&mut self, metric: &Metric) {
        match metric.kind {
            Kind::Counter(counter) => self.count(metric.name.to_owned(), metric.unit, counter.untold()),
            Kind::Gauge(gauge) => {
                if let Some(value) = gauge.untold() {
                    self.add(metric.name.to_owned(), metric.unit, json!(value));
                }
            }
            Kind::Distribution(distribution) => {
                let values = values(&distribution.untold());
                if !values.is_empty() {
                    self.add(metric.name.to_owned(), metric.unit, json!(values));
                }
            }
            Kind::Codes(codes) => {
                for (code, counter) in codes.met() {
                    let name = format!("{}_{}", metric.name, code.to_lowercase());
                    self.count(name, metric.unit, counter.untold());
                }
            }
        }
    }

    fn count(&mut self, name: String, unit: Unit, count: u64) {
        if count > 0 {
            self.add(name, unit, json!(count));
        }
    }

    fn add(&mut self, name: String, unit: Unit, value: Value) {
        self.named.push(json!({ "Name": name, "Unit": unit.as_str() }));
        self.values.insert(name, value);
    }
}

/// Milliseconds: each part's mean as often as times fell into it, all in proportion where they are more than a line may
/// hold. So the mean is exact, and a percentile is the mean of the part it falls into.
fn values(parts: &[PartSum]) -> Vec<f64> {
    let count: u64 = parts.iter().map(|part| part.count).sum();
    let mut values = Vec::new();
    for part in parts.iter().filter(|part| part.count > 0) {
        let mean_ms = part.micros as f64 / part.count as f64 / 1_000.0;
        let times = if count <= MAX_VALUES { part.count } else { part.count * MAX_VALUES / count };
        values.extend((0..times).map(|_| mean_ms));
    }
    values
}

static TELLER: OnceLock<Emf> = OnceLock::new();

/// From now on [`flush`] writes lines. Once a process; naming another one changes nothing.
pub fn tell_by(emf: Emf) {
    let _ = TELLER.set(emf);
}

/// Writes a line of what was counted where one is due. Does nothing where nobody tells by EMF.
pub fn flush() {
    let Some(emf) = TELLER.get() else { return };
    let now_ms = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis());
    if let Some(line) = emf.line(TABLE, i64::try_from(now_ms).unwrap_or(i64::MAX)) {
        // A log that takes nothing is no reason to fail a request.
        let _ = writeln!(std::io::stdout().lock(), "{line}");
    }
}

/// What `answer` comes to; a line is written before, where one is due.
pub async fn flushed<T>(answer: impl Future<Output = T>) -> T {
    let answer = answer.await;
    flush();
    answer
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::{Codes, Counter, Distribution, Gauge};

    const NOW_MS: i64 = 1_790_000_000_000;

    fn metric(name: &'static str, unit: Unit, kind: Kind) -> Metric {
        Metric { name, unit, kind, means: "" }
    }

    fn read(line: Option<String>) -> Value {
        serde_json::from_str(&line.unwrap()).unwrap()
    }

    #[test]
    fn a_line_names_what_was_counted_and_nothing_else() {
        static COUNTER: Counter = Counter::new();
        static IDLE: Counter = Counter::new();
        static GAUGE: Gauge = Gauge::new();
        static TIMES: Distribution = Distribution::new();
        static CODES: Codes = Codes::new();
        let table = [
            metric("joins", Unit::Count, Kind::Counter(&COUNTER)),
            metric("idle", Unit::Count, Kind::Counter(&IDLE)),
            metric("factor", Unit::None, Kind::Gauge(&GAUGE)),
            metric("latency", Unit::Milliseconds, Kind::Distribution(&TIMES)),
            metric("refusals", Unit::Count, Kind::Codes(&CODES)),
        ];
        let emf = Emf::new("jari-test", "join");
        assert_eq!(emf.line(&table, NOW_MS), None, "nothing was counted");
        COUNTER.add(3);
        GAUGE.set(0.5);
        TIMES.observe(Duration::from_micros(1_500));
        TIMES.observe(Duration::from_micros(1_700));
        CODES.add("SOLD_OUT");
        assert_eq!(
            read(emf.line(&table, NOW_MS + 1)),
            json!({
                "_aws": { "Timestamp": NOW_MS + 1, "CloudWatchMetrics": [{
                    "Namespace": "Jari",
                    "Dimensions": [["system"]],
                    "Metrics": [
                        { "Name": "joins", "Unit": "Count" },
                        { "Name": "factor", "Unit": "None" },
                        { "Name": "latency", "Unit": "Milliseconds" },
                        { "Name": "refusals_sold_out", "Unit": "Count" },
                    ],
                }] },
                "system": "jari-test", "function": "join",
                "joins": 3, "factor": 0.5, "latency": [1.6, 1.6], "refusals_sold_out": 1,
            })
        );
    }

    #[test]
    fn a_second_has_one_line_and_nothing_is_lost_between_two() {
        static COUNTER: Counter = Counter::new();
        let table = [metric("joins", Unit::Count, Kind::Counter(&COUNTER))];
        let emf = Emf::new("jari", "join");
        COUNTER.add(1);
        assert_eq!(read(emf.line(&table, NOW_MS))["joins"], 1);
        COUNTER.add(1);
        assert_eq!(emf.line(&table, NOW_MS + 999), None);
        COUNTER.add(1);
        assert_eq!(read(emf.line(&table, NOW_MS + 1_000))["joins"], 2);
        assert_eq!(emf.line(&table, NOW_MS + 9_000), None, "a quiet second has no line");
        COUNTER.add(1);
        assert_eq!(read(emf.line(&table, NOW_MS + 9_001))["joins"], 1, "and delays none");
        COUNTER.add(1);
        assert_eq!(read(emf.line(&table, NOW_MS - 1))["joins"], 1, "a clock that was set back");
    }

    #[test]
    fn many_times_are_told_in_proportion() {
        let part = |count, micros| PartSum { count, micros };
        assert_eq!(values(&[part(0, 0), part(2, 400), part(1, 1_000)]), [0.2, 0.2, 1.0]);
        let many = values(&[part(9_000, 9_000_000), part(1_000, 10_000_000)]);
        assert_eq!((many.len(), many[0], many[89], many[90]), (100, 1.0, 1.0, 10.0));
        // One among many is not told: percentiles below 99 do not need it, and the mean hardly moves.
        assert_eq!(values(&[part(999, 999_000), part(1, 500_000)]).len(), 99);
    }
}
