//! The report as one HTML page: no script, nothing from elsewhere.

use std::fmt::Write as _;

use super::plot::{Curve, Plot};
use super::report::{Report, name, seconds, told};
use super::tally::Second;
use crate::output::number;

const STYLE: &str = "
:root { color-scheme: light dark; font: 15px/1.5 system-ui, sans-serif; }
body { max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.4rem; } h2 { font-size: 1.1rem; margin-top: 2rem; }
.wide { overflow-x: auto; } table { border-collapse: collapse; } th, td { padding: .15rem .8rem .15rem 0; text-align: left; }
td.n, th.n { text-align: right; white-space: nowrap; font-variant-numeric: tabular-nums; }
figure { margin: 1.5rem 0; overflow-x: auto; } figcaption { font-weight: 600; } figure p { margin: 0; opacity: .8; }
svg { width: 100%; min-width: 36rem; } svg text { font-size: 11px; fill: currentColor; opacity: .7; }
.value { text-anchor: end; } .time { text-anchor: middle; }
.grid { stroke: currentColor; opacity: .15; } .curve { fill: none; stroke-width: 1.5; }
.c0 { stroke: #2a78d6; background: #2a78d6; } .c1 { stroke: #e07b1a; background: #e07b1a; }
.c2 { stroke: #2f9e5b; background: #2f9e5b; }
.key { display: inline-block; width: 1rem; height: .2rem; margin: 0 .3rem .25rem .6rem; }
.bad { color: #d22; font-weight: 600; } .good { color: #2f9e5b; font-weight: 600; }
";

/// A text inside of HTML.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// The whole page.
pub(crate) fn page(report: &Report) -> String {
    let title = escaped(&report.headline());
    let verdict = if report.is_clean() {
        "<p class=\"good\">all is well</p>"
    } else {
        "<p class=\"bad\">what must never happen has happened</p>"
    };
    format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>jari crowd: {title}</title>\n\
         <meta name=\"viewport\" content=\"width=device-width\"><style>{STYLE}</style></head><body>\n\
         <h1>{title}</h1>\n{verdict}\n{}{}{}{}</body></html>\n",
        figures(report),
        plots(report),
        calls(report),
        checks(report),
    )
}

fn table(headers: &[&str], rows: &[Vec<String>]) -> String {
    let mut html = String::from("<div class=\"wide\"><table><tr>");
    let class = |at: usize| if at == 0 || at > 5 { "" } else { " class=\"n\"" };
    for (at, header) in headers.iter().enumerate() {
        let _ = write!(html, "<th{}>{header}</th>", class(at));
    }
    for row in rows {
        html.push_str("</tr>\n<tr>");
        for (at, cell) in row.iter().enumerate() {
            let _ = write!(html, "<td{}>{}</td>", class(at), escaped(cell));
        }
    }
    html + "</tr></table></div>\n"
}

fn figures(report: &Report) -> String {
    let ends = report.ends.iter().map(|(end, count)| vec![told(*end).to_owned(), number(*count)]);
    let waits = [("people", report.waits_ms), ("programs", report.bot_waits_ms)].into_iter();
    let waits = waits.filter(|(_, spread)| spread.count > 0).map(|(who, spread)| {
        let [p50, p90, p99, max] = [spread.p50, spread.p90, spread.p99, spread.max].map(seconds);
        vec![who.to_owned(), number(spread.count), p50, p90, p99, max]
    });
    format!(
        "<h2>How visits ended</h2>\n{}<p>{} places sold.</p>\n<h2>From coming to being in</h2>\n{}",
        table(&["", "people"], &ends.collect::<Vec<_>>()),
        number(report.sold),
        table(&["", "let in", "p50", "p90", "p99", "max"], &waits.collect::<Vec<_>>()),
    )
}

fn curve(name: &'static str, report: &Report, value: impl Fn(&Second) -> Option<f64>) -> Curve {
    let seconds = report.seconds.iter().enumerate();
    let points = seconds.filter_map(|(at, second)| Some((at as f64, value(second)?))).collect();
    Curve { name, points }
}

fn plots(report: &Report) -> String {
    let each = |name, value: fn(&Second) -> u32| curve(name, report, |second| Some(f64::from(value(second))));
    let mut sold = 0;
    let mut plots = vec![
        Plot {
            title: "Arrivals",
            unit: "people a second",
            curves: vec![each("arrivals", |second| second.arrivals)],
        },
        Plot {
            title: "Waiting",
            unit: "people",
            curves: vec![curve("waiting", report, |second| second.waiting.map(|waiting| waiting as f64))],
        },
        admission(report),
        Plot {
            title: "Answers",
            unit: "a second",
            curves: vec![
                each("all", |second| second.answers),
                each("no success", |second| second.failures),
                each("polls", |second| second.polls),
            ],
        },
    ];
    let total = report.seconds.iter().enumerate().map(|(at, second)| {
        sold += second.sold;
        (at as f64, f64::from(sold))
    });
    let curves = vec![Curve { name: "sold", points: total.collect() }];
    plots.push(Plot { title: "Places sold", unit: "since the start", curves });
    plots.iter().map(Plot::svg).collect()
}

/// People called since the start, against what the pace allows from the first call on.
fn admission(report: &Report) -> Plot {
    let first = report.seconds.iter().find_map(|second| second.net).unwrap_or(0);
    let called = curve("called", report, |second| Some(second.net?.saturating_sub(first) as f64));
    let mut curves = Vec::new();
    let begins = called.points.iter().rposition(|(_, called)| *called == 0.0).unwrap_or(0);
    if let (Some(pace), Some((begin, _)), Some((end, most))) =
        (report.pace, called.points.get(begins).copied(), called.points.last().copied())
    {
        let until = end.min(begin + most / pace.max(f64::MIN_POSITIVE));
        curves.push(Curve { name: "pace", points: vec![(begin, 0.0), (until, (until - begin) * pace)] });
    }
    curves.insert(0, called);
    let mut seen = 0;
    let seen = report.seconds.iter().enumerate().map(|(at, second)| {
        seen += second.admitted;
        (at as f64, f64::from(seen))
    });
    curves.push(Curve { name: "know that they are in", points: seen.collect() });
    Plot { title: "Admission", unit: "people since the start", curves }
}

fn calls(report: &Report) -> String {
    let rows = report.latencies_ms.iter().map(|(call, spread)| {
        let codes = report.answers.get(call).into_iter().flatten();
        let codes: Vec<String> = codes.map(|(code, count)| format!("{} {code}", number(*count))).collect();
        let [p50, p90, p99, max] =
            [spread.p50, spread.p90, spread.p99, spread.max].map(|ms| format!("{ms:.1} ms"));
        vec![name(*call), number(spread.count), p50, p90, p99, max, codes.join(", ")]
    });
    format!(
        "<h2>Answers</h2>\n<p>Latency counts from when a call was to be made.</p>\n{}\
         <p>{} readings of the line's progress came from a cache of one second, as an edge keeps it.</p>\n",
        table(&["call", "count", "p50", "p90", "p99", "max", "codes"], &rows.collect::<Vec<_>>()),
        number(report.cached_progress),
    )
}

fn checks(report: &Report) -> String {
    let rows = report.checks.iter().filter(|check| check.looked_at > 0);
    let rows = rows.map(|check| vec![check.rule.to_owned(), number(check.looked_at), number(check.broken)]);
    let mut html = String::from("<h2>What must hold</h2>\n");
    html.push_str(&table(&["rule", "looked at", "broken"], &rows.collect::<Vec<_>>()));
    let findings = report.findings.iter();
    let findings = findings
        .map(|finding| format!("{}: {} instead of {}", finding.place, finding.found, finding.expected));
    for told in report.broken.iter().cloned().chain(findings) {
        let _ = writeln!(html, "<p class=\"bad\">{}</p>", escaped(&told));
    }
    for what in &report.left_out {
        let _ = writeln!(html, "<p>Not checked: {}</p>", escaped(what));
    }
    html
}

#[cfg(test)]
mod tests {
    use super::super::report::tests::report;
    use super::*;

    #[test]
    fn a_page_has_every_curve_and_nothing_from_elsewhere() {
        let mut report = report();
        report.event = Some("<b>".to_owned());
        let html = page(&report);
        assert_eq!(html.matches("<svg").count(), 5);
        for part in
            ["Arrivals", "Waiting", "Admission", "Answers", "Places sold", "p99", "RATE_LIMIT", "all is well"]
        {
            assert!(html.contains(part), "{part}");
        }
        assert!(html.contains("&lt;b&gt;") && !html.contains("<b>"));
        for outside in ["<script", "src=", "href=", "url(", "@import"] {
            assert!(!html.contains(outside), "{outside}");
        }
        assert_eq!(html.matches("<tr>").count(), html.matches("</tr>").count());
    }

    #[test]
    fn called_people_are_drawn_against_the_pace_from_the_first_call_on() {
        let mut report = report();
        for (at, second) in report.seconds.iter_mut().enumerate() {
            second.net = Some(500 + 30 * (at as u64).saturating_sub(10));
        }
        let plot = admission(&report);
        assert_eq!(plot.curves[0].points[29], (29.0, 570.0));
        assert_eq!(plot.curves[1].points, [(10.0, 0.0), (29.0, 570.0)]);
    }
}
