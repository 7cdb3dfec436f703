//! One frame: readable at 80 × 24.

use admin::{EventSummary, SectionState};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Paragraph, Sparkline};

use super::history::{History, Reading};
use crate::output::{cut, number, signed, span};

const LABEL: Style = Style::new().add_modifier(Modifier::DIM);
const BAD: Style = Style::new().fg(Color::Red).add_modifier(Modifier::BOLD);
/// How full a section is, in letters.
const BAR: usize = 20;

/// Draws the last reading, and the curves of all.
pub(crate) fn draw(frame: &mut Frame, history: &History) {
    let Some(reading) = history.last() else { return };
    let rows = Layout::vertical([
        Constraint::Length(2),
        Constraint::Length(5),
        Constraint::Length(5),
        Constraint::Min(3),
        Constraint::Length(2),
    ]);
    let [head, figures, curves, sections, foot] = rows.areas(frame.area());
    frame.render_widget(Paragraph::new(title(&reading.detail.summary, head.width)), head);
    frame.render_widget(Paragraph::new(numbers(history, reading)), figures);
    draw_curves(frame, curves, history);
    let lines = stock(&reading.detail.sections, sections.height.into());
    frame.render_widget(Paragraph::new(lines), sections);
    frame.render_widget(Paragraph::new(refusals(reading, foot.width)), foot);
}

fn title(summary: &EventSummary, width: u16) -> Vec<Line<'static>> {
    let style = if summary.status == "OPEN" { Style::new().fg(Color::Green) } else { BAD };
    let mut standing = vec![Span::styled(summary.status.clone(), style)];
    for (is_so, what) in [
        (summary.maintenance, "maintenance: no holds and bookings"),
        (summary.joins_refused, "nobody new joins: the journal is full"),
    ] {
        if is_so {
            standing.push(Span::styled(format!("  {what}"), BAD));
        }
    }
    let (what, at) = if summary.opens_at > summary.now {
        ("opens in", summary.opens_at)
    } else {
        ("closes in", summary.closes_at)
    };
    if summary.status != "CLOSED" {
        standing.push(Span::raw(format!("  {what} {}", span((at.0 - summary.now.0).max(0)))));
    }
    standing.push(Span::styled("  q quits", LABEL));
    let name = cut(&format!("{}  {}", summary.event, summary.title), width.into());
    vec![Line::styled(name, Modifier::BOLD), Line::from(standing)]
}

/// One digit behind the point where it says something.
fn rate(value: Option<f64>) -> String {
    let Some(value) = value else { return "–".to_owned() };
    // The sum of nothing is -0.
    let text = format!("{:.1}", value + 0.0);
    text.strip_suffix(".0").map_or_else(|| text.clone(), str::to_owned)
}

fn numbers(history: &History, reading: &Reading) -> Vec<Line<'static>> {
    let summary = &reading.detail.summary;
    let backlog = |name: &str| {
        let seconds = reading.metrics.as_ref().and_then(|metrics| metrics.value(name));
        seconds.map_or_else(|| "–".to_owned(), |seconds| format!("{seconds:.1} s"))
    };
    let pace = if summary.pace_factor < 1.0 {
        format!("{} of {:.0}%", rate(Some(summary.per_second)), summary.pace_factor * 100.0)
    } else {
        rate(Some(summary.per_second))
    };
    let booked = history.risen(|reading| Some(reading.detail.summary.reservations as f64));
    let refused: Option<f64> = reading.metrics.as_ref().map(|metrics| {
        let codes: Vec<String> =
            metrics.refusals().map(|(code, _)| format!("jari_refusals_total{{code=\"{code}\"}}")).collect();
        codes.iter().filter_map(|name| history.rate(name)).sum()
    });
    [
        [
            ("waiting", number(summary.waiting)),
            ("let in/s", rate(Some(summary.admitted_per_second))),
            ("joins/s", rate(history.rate("jari_joins_total"))),
        ],
        [
            ("inside", format!("{} of {}", number(summary.active), number(summary.max_active.into()))),
            ("pace/s", pace),
            ("exact polls/s", rate(history.rate("jari_polls_exact_total"))),
        ],
        [
            ("free", format!("{} of {}", number(summary.remaining), number(summary.capacity))),
            ("bookings/s", rate(booked)),
            ("keyed polls/s", rate(history.rate("jari_polls_keyed_total"))),
        ],
        [
            ("reserved", number(summary.reservations)),
            ("held/s", rate(history.rate("jari_held_total"))),
            ("refused/s", rate(refused)),
        ],
        [
            ("backlog", format!("{} facts", number(summary.journal))),
            ("sold/s", rate(history.rate("jari_sold_total"))),
            ("journal lag", backlog("jari_journal_lag_seconds")),
        ],
    ]
    .map(|cells| {
        let [first, second, third] = cells;
        let cell = |(label, value): (&'static str, String), label_width: usize, width: usize| {
            [Span::styled(format!("{label:<label_width$}"), LABEL), Span::raw(format!("{value:<width$}"))]
        };
        Line::from_iter([cell(first, 10, 20), cell(second, 12, 14), cell(third, 15, 9)].concat())
    })
    .into()
}

fn draw_curves(frame: &mut Frame, area: Rect, history: &History) {
    let columns = Layout::horizontal([Constraint::Ratio(1, 3); 3]).spacing(2).areas::<3>(area);
    let whole = |reading: &Reading| {
        // People a second: small and not negative.
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let whole = reading.detail.summary.admitted_per_second.max(0.0).round() as u64;
        whole
    };
    let curves = [
        ("waiting", history.curve(|reading| reading.detail.summary.waiting), Color::Blue),
        ("let in a second", history.curve(whole), Color::Green),
        ("places taken", history.taking(), Color::Yellow),
    ];
    for (column, (name, values, colour)) in columns.into_iter().zip(curves) {
        let [title, plot] = Layout::vertical([Constraint::Length(1), Constraint::Min(1)]).areas(column);
        let most = values.iter().max().copied().unwrap_or(0);
        let heading = format!("{name}, max {}", number(most));
        frame.render_widget(Paragraph::new(Line::styled(heading, LABEL)), title);
        // The newest ones, at the right.
        let shown = &values[values.len().saturating_sub(plot.width.into())..];
        let padding = usize::from(plot.width) - shown.len();
        let points: Vec<u64> = std::iter::repeat_n(0, padding).chain(shown.iter().copied()).collect();
        frame.render_widget(Sparkline::default().data(points).max(most.max(1)).style(colour), plot);
    }
}

/// The fullest sections first, as many as there is room for.
fn stock(sections: &[SectionState], height: usize) -> Vec<Line<'static>> {
    let taken = |section: &SectionState| i64::from(section.capacity) - section.remaining;
    let part = |section: &SectionState| taken(section) as f64 / f64::from(section.capacity.max(1));
    let mut sections: Vec<&SectionState> = sections.iter().collect();
    sections.sort_by(|one, other| part(other).total_cmp(&part(one)));
    let heading = format!("{:<26}{:>8}{:>8}{:>8}{:>8}  taken", "section", "free", "held", "sold", "of");
    let mut lines = vec![Line::styled(heading, LABEL)];
    let room = height.saturating_sub(1);
    let shown = if sections.len() > room { room.saturating_sub(1) } else { sections.len() };
    for section in &sections[..shown] {
        let name = cut(&format!("{}/{}", section.offering_id, section.section_id), 25);
        // A part of a bar of twenty.
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let full = (part(section).clamp(0.0, 1.0) * BAR as f64).round() as usize;
        let style = if section.remaining < 0 { BAD } else { Style::new() };
        let line = format!(
            "{name:<26}{:>8}{:>8}{:>8}{:>8}  {}{}",
            signed(section.remaining),
            number(section.held),
            signed(taken(section) - i64::try_from(section.held).unwrap_or(i64::MAX)),
            number(section.capacity.into()),
            "█".repeat(full),
            "░".repeat(BAR - full),
        );
        lines.push(Line::styled(line, style));
    }
    if shown < sections.len() {
        let more = number((sections.len() - shown) as u64);
        lines.push(Line::styled(format!("and {more} more, less full"), LABEL));
    }
    lines
}

fn refusals(reading: &Reading, width: u16) -> Vec<Line<'static>> {
    let message = reading.detail.summary.message.as_ref();
    let message = message.map_or_else(String::new, |message| format!("message: {message}"));
    let told = match &reading.metrics {
        None => "this system tells no metrics: what they count is left out".to_owned(),
        Some(metrics) => {
            let mut codes: Vec<(&str, f64)> = metrics.refusals().collect();
            codes.sort_by(|one, other| other.1.total_cmp(&one.1));
            let codes: Vec<String> = codes.iter().map(|(code, count)| format!("{code} {count}")).collect();
            format!("refused: {}", if codes.is_empty() { "nobody".to_owned() } else { codes.join(", ") })
        }
    };
    vec![Line::styled(cut(&told, width.into()), LABEL), Line::raw(cut(&message, width.into()))]
}

/// A frame as text.
pub(crate) fn text(history: &History, width: u16, height: u16) -> String {
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    // Drawing into memory cannot fail.
    let Ok(mut terminal) = Terminal::new(TestBackend::new(width, height));
    let Ok(_) = terminal.draw(|frame| draw(frame, history));
    let buffer = terminal.backend().buffer();
    let mut text = String::new();
    for row in buffer.content().chunks(width.into()) {
        let line = row.iter().scan(0_usize, |covered, cell| {
            // Behind a letter that is two columns wide stands an empty cell.
            let symbol = if *covered > 0 { "" } else { cell.symbol() };
            *covered = unicode_width::UnicodeWidthStr::width(symbol)
                .saturating_sub(1)
                .max(covered.saturating_sub(1));
            Some(symbol)
        });
        text.push_str(line.collect::<String>().trim_end());
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use admin::EventDetail;
    use domain::Millis;

    use super::super::metrics::Metrics;
    use super::*;

    fn reading(at: i64) -> Reading {
        let sale =
            domain::sale::check(include_str!("../../../../infra/sales/ktx-2026-chuseok.json")).unwrap();
        let passed = u64::try_from(at).unwrap();
        let summary = EventSummary {
            event: sale.event_id.clone(),
            title: sale.title.clone(),
            status: "OPEN".to_owned(),
            maintenance: false,
            version: 1,
            now: sale.opens_at.plus(at * 1_000),
            opens_at: sale.opens_at,
            closes_at: sale.closes_at,
            waiting: 1_000_000 - 70 * passed,
            active: 4_200,
            max_active: 12_600,
            per_second: 70.0,
            admitted_per_second: 69.6,
            pace_factor: 1.0,
            joins_refused: false,
            remaining: 20_000 - 140 * passed,
            capacity: 20_000,
            reservations: 60 * passed,
            journal: 12,
            ticked_at: None,
            relayed_at: None,
            message: Some("가".repeat(60)),
        };
        let sections = (0..40_i64).map(|section| SectionState {
            offering_id: "KTX-101-0924".parse().unwrap(),
            section_id: format!("s{section}").parse().unwrap(),
            name: "특실".to_owned(),
            price: 1,
            remaining: 100 - section * 2,
            held: 8,
            capacity: 100,
        });
        let detail = EventDetail { summary, sections: sections.collect(), draw: None, sale: Arc::new(sale) };
        let metrics = format!(
            "jari_joins_total {}\njari_polls_keyed_total {}\njari_refusals_total{{code=\"SOLD_OUT\"}} {}\n",
            at * 500,
            at * 12_345,
            at * 2
        );
        Reading { detail: Box::new(detail), metrics: Some(Metrics::read(&metrics)) }
    }

    #[test]
    fn a_frame_of_80_by_24_tells_all_of_it() {
        let mut history = History::default();
        (0..30).for_each(|at| history.push(reading(at)));
        let text = text(&history, 80, 24);
        assert_eq!(text.lines().count(), 24);
        for part in [
            "ktx-2026-chuseok  2026년 추석 승차권 예매\n",
            "OPEN  closes in 2 d 5 h  q quits\n",
            "waiting   997,970             let in/s    69.6          joins/s        500\n",
            "inside    4,200 of 12,600     pace/s      70            exact polls/s  –\n",
            "free      15,940 of 20,000    bookings/s  60            keyed polls/s  12345\n",
            "waiting, max 1,000,000     let in a second, max 70     places taken, max 140\n",
            "KTX-101-0924/s39                22       8      70     100  ████████████████░░░░\n",
            " more, less full\n",
            "refused: SOLD_OUT 58\n",
            "message: 가가",
        ] {
            assert!(text.contains(part), "{part}\n{text}");
        }
        assert!(text.contains('▇') || text.contains('█'), "{text}");
        let widest = text.lines().map(unicode_width::UnicodeWidthStr::width).max();
        assert!(widest <= Some(80), "{text}");
    }

    #[test]
    fn what_is_wrong_is_said_and_small_terminals_are_borne() {
        let mut history = History::default();
        let mut bad = reading(1);
        bad.metrics = None;
        bad.detail.summary.joins_refused = true;
        bad.detail.summary.pace_factor = 0.25;
        bad.detail.summary.now = Millis(bad.detail.summary.opens_at.0 - 60_000);
        bad.detail.summary.status = "UPCOMING".to_owned();
        history.push(bad);
        let text = text(&history, 100, 24);
        for part in
            ["nobody new joins", "70 of 25%", "opens in 1 min", "tells no metrics", "joins/s        –"]
        {
            assert!(text.contains(part), "{part}\n{text}");
        }
        for (width, height) in [(1, 1), (20, 5), (300, 100)] {
            super::text(&history, width, height);
        }
        super::text(&History::default(), 80, 24);
    }
}
