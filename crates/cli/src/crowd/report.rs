//! What a crowd came to: as text for 80 columns, and as JSON.

use std::collections::BTreeMap;

use admin::Finding;
use hdrhistogram::Histogram;
use serde::Serialize;

use super::tally::{Call, Counts, End, Second};
use super::witness::Check;
use crate::audit;
use crate::output::{Side, Table, counted, cut, number, span, text};

/// Everything that was seen. All times in milliseconds.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Report {
    pub(crate) url: String,
    /// None: nobody got an answer.
    pub(crate) event: Option<String>,
    pub(crate) users: u32,
    pub(crate) lasted_ms: u64,
    /// How visits ended.
    pub(crate) ends: BTreeMap<End, u64>,
    /// From coming to knowing that one is in, later tries for a place included.
    pub(crate) waits_ms: Spread,
    /// The same of programs that ask five times a second.
    pub(crate) bot_waits_ms: Spread,
    pub(crate) admitted: u64,
    pub(crate) sold: u64,
    /// Per second, as set; known where the system is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) pace: Option<f64>,
    /// From when a call was to be made to its answer.
    pub(crate) latencies_ms: BTreeMap<Call, Spread>,
    /// By call and code; OK is success.
    pub(crate) answers: BTreeMap<Call, BTreeMap<String, u64>>,
    /// What people read of the line's progress without a call.
    pub(crate) cached_progress: u64,
    pub(crate) checks: Vec<Check>,
    /// What broke a rule, some of it.
    pub(crate) broken: Vec<String>,
    /// What an audit of the system found.
    pub(crate) findings: Vec<Finding>,
    /// What was not checked, and why.
    pub(crate) left_out: Vec<String>,
    pub(crate) seconds: Vec<Second>,
}

/// How values are spread.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub(crate) struct Spread {
    pub(crate) count: u64,
    pub(crate) p50: f64,
    pub(crate) p90: f64,
    pub(crate) p99: f64,
    pub(crate) max: f64,
}

impl Spread {
    /// Of values so many of which are a millisecond.
    pub(crate) fn of(values: &Histogram<u64>, in_a_ms: f64) -> Self {
        if values.is_empty() {
            return Self::default();
        }
        let at = |quantile| values.value_at_quantile(quantile) as f64 / in_a_ms;
        let max = values.max() as f64 / in_a_ms;
        // A bucket's upper end may lie beyond what was seen.
        let [p50, p90, p99] = [0.5, 0.9, 0.99].map(|quantile| at(quantile).min(max));
        Self { count: values.len(), p50, p90, p99, max }
    }
}

impl Report {
    /// What was counted, into the figures of a report.
    pub(crate) fn count(&mut self, counts: Counts) {
        let Counts { latencies_us, answers, waits_ms, bot_waits_ms, ends, seconds, .. } = counts;
        self.waits_ms = Spread::of(&waits_ms, 1.0);
        self.bot_waits_ms = Spread::of(&bot_waits_ms, 1.0);
        let called = latencies_us.iter().filter(|(_, values)| !values.is_empty());
        self.latencies_ms = called.map(|(call, values)| (*call, Spread::of(values, 1_000.0))).collect();
        (self.answers, self.ends, self.seconds) = (answers, ends, seconds);
        (self.admitted, self.sold) = (counts.admitted, counts.sold);
        self.cached_progress = counts.cached_progress;
    }

    /// Whether nothing was seen that must never happen.
    pub(crate) fn is_clean(&self) -> bool {
        self.findings.is_empty() && self.checks.iter().all(|check| check.broken == 0)
    }

    /// Answers to all calls, and those that no client can be asked to bear.
    pub(crate) fn bugs(&self) -> (u64, u64) {
        let all = self.answers.values().flat_map(BTreeMap::values).sum();
        let bugs = self
            .answers
            .values()
            .flat_map(|codes| ["INTERNAL_ERROR", "BACK_OFF"].map(|code| codes.get(code)));
        (all, bugs.flatten().sum())
    }

    /// The most of something in any second.
    pub(crate) fn peak(&self, what: impl Fn(&Second) -> u32) -> u32 {
        self.seconds.iter().map(what).max().unwrap_or(0)
    }

    /// For people.
    pub(crate) fn text(&self) -> String {
        let mut lines = vec![self.headline(), String::new()];
        lines.extend(self.people());
        lines.push(String::new());
        let mut page = text(&lines) + &self.calls();
        page.push('\n');
        page.push_str(&self.verdict());
        page
    }

    pub(crate) fn headline(&self) -> String {
        let event = self.event.as_deref().unwrap_or("no sale");
        let lasted = span(i64::try_from(self.lasted_ms).unwrap_or(i64::MAX));
        format!("{} people, {event} at {}, {lasted}", number(self.users.into()), self.url)
    }

    fn people(&self) -> Vec<String> {
        let ends = self.ends.iter().map(|(end, count)| format!("{} {}", number(*count), told(*end)));
        let ends: Vec<String> = ends.collect();
        let mut lines = Vec::new();
        for (at, line) in folded(&ends, 66).into_iter().enumerate() {
            lines.push(format!("  {:<10}  {line}", if at == 0 { "ended" } else { "" }));
        }
        let wait = |spread: &Spread| {
            let [p50, p90, p99, max] = [spread.p50, spread.p90, spread.p99, spread.max].map(seconds);
            format!("{p50} median, {p90} 90 %, {p99} 99 %, {max} at most")
        };
        lines.push(format!("  {:<10}  {}", "waited", wait(&self.waits_ms)));
        if self.bot_waits_ms.count > 0 {
            lines.push(format!("  {:<10}  {}", "programs", wait(&self.bot_waits_ms)));
        }
        let pace = self.pace.map_or_else(String::new, |pace| format!("; {pace} a second set"));
        let most = number(self.peak(|second| second.admitted).into());
        lines.push(format!(
            "  {:<10}  {}; {most} learnt it in one second at most{pace}",
            "let in",
            number(self.admitted)
        ));
        lines.push(format!("  {:<10}  {}", "sold", counted(self.sold, "place")));
        let (answers, polls) = (self.peak(|second| second.answers), self.peak(|second| second.polls));
        let load = format!(
            "{} answers in a second at most, {} to polls",
            number(answers.into()),
            number(polls.into())
        );
        lines.push(format!("  {:<10}  {load}", "load"));
        lines
    }

    fn calls(&self) -> String {
        let mut table = Table::new([
            ("CALL", Side::Left),
            ("COUNT", Side::Right),
            ("P50 ms", Side::Right),
            ("P99 ms", Side::Right),
            ("MAX ms", Side::Right),
            ("NO SUCCESS", Side::Left),
        ]);
        for (call, spread) in &self.latencies_ms {
            let codes = self.answers.get(call).into_iter().flatten().filter(|(code, _)| *code != "OK");
            let codes: Vec<String> =
                codes.map(|(code, count)| format!("{} {code}", number(*count))).collect();
            table.row([
                name(*call),
                number(spread.count),
                format!("{:.1}", spread.p50),
                format!("{:.1}", spread.p99),
                format!("{:.1}", spread.max),
                cut(&codes.join(", "), 36),
            ]);
        }
        table.text()
    }

    fn verdict(&self) -> String {
        let mut lines = Vec::new();
        for Check { rule, looked_at, broken } in self.checks.iter().filter(|check| check.looked_at > 0) {
            let verdict =
                if *broken == 0 { "holds".to_owned() } else { format!("BROKEN {}×", number(*broken)) };
            lines.push(format!("{rule}: {verdict}, {} looked at", number(*looked_at)));
        }
        lines.extend(self.left_out.iter().map(|what| format!("not checked: {what}")));
        lines.extend(self.broken.iter().cloned());
        let verdict = if self.is_clean() { "all is well" } else { "what must never happen has happened" };
        text(&lines) + &audit::findings(&self.findings, 0) + verdict + "\n"
    }
}

/// Texts joined by commas into lines that are no longer.
fn folded(texts: &[String], width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for text in texts {
        match lines.last_mut() {
            Some(line) if line.chars().count() + text.chars().count() + 2 <= width => {
                line.push_str(", ");
                line.push_str(text);
            }
            _ => lines.push(text.clone()),
        }
    }
    lines
}

/// Three digits: `0.12 s`, `12.3 s`, `754 s`
pub(crate) fn seconds(ms: f64) -> String {
    let seconds = ms / 1_000.0;
    match seconds {
        ..10.0 => format!("{seconds:.2} s"),
        ..100.0 => format!("{seconds:.1} s"),
        _ => format!("{seconds:.0} s"),
    }
}

pub(crate) fn name(call: Call) -> String {
    format!("{call:?}").to_lowercase()
}

pub(crate) fn told(end: End) -> &'static str {
    match end {
        End::Booked => "booked",
        End::Left => "left",
        End::NoShow => "away when called",
        End::OutOfPatience => "out of patience",
        End::SoldOut => "found nothing left",
        End::Expired => "out of time",
        End::Closed => "too late",
        End::Refused => "refused",
        End::Unfinished => "still there",
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn report() -> Report {
        let seconds = (0..30_u32).map(|at| Second {
            arrivals: 100,
            answers: 500 + at,
            polls: 400,
            failures: 3,
            admitted: 30,
            sold: 60,
            waiting: (at % 2 == 0).then_some(u64::from(at) * 70),
            net: (at % 2 == 0).then_some(u64::from(at) * 30),
        });
        let spread = Spread { count: 1_234, p50: 1.25, p90: 20.0, p99: 300.0, max: 12_345.6 };
        Report {
            url: "http://127.0.0.1:3000".to_owned(),
            event: Some("ktx-2026-chuseok".to_owned()),
            users: 3_000,
            lasted_ms: 71_500,
            ends: [
                End::Booked,
                End::Left,
                End::NoShow,
                End::OutOfPatience,
                End::SoldOut,
                End::Expired,
                End::Closed,
                End::Refused,
                End::Unfinished,
            ]
            .map(|end| (end, 1_000_000))
            .into(),
            waits_ms: spread,
            bot_waits_ms: spread,
            admitted: 900,
            sold: 1_800,
            pace: Some(30.0),
            latencies_ms: [(Call::Join, spread), (Call::Poll, spread)].into(),
            answers: [(
                Call::Poll,
                [("OK", 1_000), ("RATE_LIMIT", 200), ("UNAVAILABLE", 30), ("TIMEOUT", 4)]
                    .map(|(code, count)| (code.to_owned(), count))
                    .into(),
            )]
            .into(),
            cached_progress: 7,
            checks: vec![
                Check { rule: "no seat is sold twice", looked_at: 1_800, broken: 0 },
                Check { rule: "nobody buys more than the limit", looked_at: 0, broken: 0 },
            ],
            broken: Vec::new(),
            findings: Vec::new(),
            left_out: vec!["the audit".to_owned()],
            seconds: seconds.collect(),
        }
    }

    #[test]
    fn a_report_fits_80_columns_and_tells_what_was_and_was_not_checked() {
        let mut report = report();
        let text = report.text();
        for line in text.lines() {
            assert!(line.chars().count() <= 80, "{line}");
        }
        for part in [
            "3,000 people, ktx-2026-chuseok at http://127.0.0.1:3000, 1 min 12 s\n",
            "  waited      0.00 s median, 0.02 s 90 %, 0.30 s 99 %, 12.3 s at most\n",
            "  let in      900; 30 learnt it in one second at most; 30 a second set\n",
            "CALL  COUNT  P50 ms  P99 ms   MAX ms  NO SUCCESS\n",
            "poll  1,234     1.2   300.0  12345.6  200 RATE_LIMIT, 4 TIMEOUT, 30 UNAVA…\n",
            "no seat is sold twice: holds, 1,800 looked at\nnot checked: the audit\nall is well\n",
        ] {
            assert!(text.contains(part), "{part}\n{text}");
        }
        assert!(!text.contains("limit:"), "{text}");
        report.checks[0].broken = 2;
        report.broken.push("no seat is sold twice: T1/1A".to_owned());
        let text = report.text();
        assert!(
            text.ends_with("no seat is sold twice: T1/1A\nwhat must never happen has happened\n"),
            "{text}"
        );
        assert!(text.contains("BROKEN 2×") && !report.is_clean());
    }

    #[test]
    fn bugs_are_counted_among_all_answers() {
        let mut report = report();
        assert_eq!(report.bugs(), (1_234, 0));
        report.answers.entry(Call::Book).or_default().insert("INTERNAL_ERROR".to_owned(), 2);
        assert_eq!(report.bugs(), (1_236, 2));
    }
}
