//! Curves as inline SVG: colours and letters come from the page's style.

use std::fmt::Write as _;

use crate::output::number;

const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 220.0;
const LEFT: f64 = 64.0;
/// Half of the last moment's label stands there.
const RIGHT: f64 = 32.0;
const TOP: f64 = 12.0;
const BOTTOM: f64 = 28.0;
/// More points than this say nothing more.
const POINTS: usize = 720;

/// Values at rising moments, in seconds.
pub(crate) struct Curve {
    pub(crate) name: &'static str,
    pub(crate) points: Vec<(f64, f64)>,
}

/// A plot over time.
pub(crate) struct Plot {
    pub(crate) title: &'static str,
    pub(crate) unit: &'static str,
    pub(crate) curves: Vec<Curve>,
}

impl Plot {
    /// As a figure of an HTML page.
    pub(crate) fn svg(&self) -> String {
        let points = || self.curves.iter().flat_map(|curve| &curve.points);
        let end = points().map(|(at, _)| *at).fold(1.0, f64::max);
        let top = nice(points().map(|(_, value)| *value).fold(1.0, f64::max));
        let x = |at: f64| LEFT + (WIDTH - LEFT - RIGHT) * at / end;
        let y = |value: f64| HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * value / top;
        let mut svg = format!(
            "<figure><figcaption>{}</figcaption>\n<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{}\">\n",
            self.title, self.title
        );
        for part in [0.0, 0.25, 0.5, 0.75, 1.0] {
            let (value, at) = (top * part, end * part);
            let _ = writeln!(
                svg,
                "<path class=\"grid\" d=\"M{LEFT} {y:.1}H{}\"/><text x=\"{}\" y=\"{:.1}\" class=\"value\">{}</text>\
                 <text x=\"{:.1}\" y=\"{}\" class=\"time\">{at:.0} s</text>",
                WIDTH - RIGHT,
                LEFT - 6.0,
                y(value) + 4.0,
                label(value),
                x(at),
                HEIGHT - 8.0,
                y = y(value),
            );
        }
        for (at, curve) in self.curves.iter().enumerate() {
            let _ = writeln!(svg, "<path class=\"curve c{at}\" d=\"{}\"/>", path(&curve.points, x, y));
        }
        svg.push_str("</svg>\n<p>");
        for (at, curve) in self.curves.iter().enumerate() {
            let _ = write!(svg, "<span class=\"key c{at}\"></span>{} ", curve.name);
        }
        let _ = writeln!(svg, "({})</p></figure>", self.unit);
        svg
    }
}

fn path(points: &[(f64, f64)], x: impl Fn(f64) -> f64, y: impl Fn(f64) -> f64) -> String {
    let mut path = String::new();
    // Of neighbours that fall together the highest is drawn: a peak must be seen.
    for group in points.chunks(points.len().div_ceil(POINTS).max(1)) {
        let highest = group.iter().copied().max_by(|(_, one), (_, other)| one.total_cmp(other));
        if let Some((at, value)) = highest {
            let _ = write!(path, "{}{:.1} {:.1}", if path.is_empty() { 'M' } else { 'L' }, x(at), y(value));
        }
    }
    path
}

/// The next of 1, 2, 4, 10, 20, 40, …
fn nice(value: f64) -> f64 {
    let power = 10_f64.powf(value.log10().floor());
    [1.0, 2.0, 4.0, 10.0].into_iter().map(|step| step * power).find(|step| *step >= value).unwrap_or(value)
}

fn label(value: f64) -> String {
    // Values of a plot are far below 2^53 and not negative.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let whole = value as u64;
    if value.fract() == 0.0 { number(whole) } else { format!("{value:.2}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plot_stays_in_its_frame_and_keeps_a_peak() {
        let mut points: Vec<(f64, f64)> = (0..10_000).map(|at| (f64::from(at), 1.0)).collect();
        points[5_001].1 = 399.0;
        let plot = Plot { title: "T", unit: "a second", curves: vec![Curve { name: "n", points }] };
        let svg = plot.svg();
        let curve = svg.split("class=\"curve c0\" d=\"M").nth(1).unwrap().split('"').next().unwrap();
        let drawn: Vec<(f64, f64)> = curve
            .split('L')
            .map(|point| {
                point.split_once(' ').map(|(x, y)| (x.parse().unwrap(), y.parse().unwrap())).unwrap()
            })
            .collect();
        assert!(drawn.len() <= POINTS, "{}", drawn.len());
        assert!(drawn.iter().all(|(x, y)| (LEFT..=WIDTH).contains(x) && (TOP..=HEIGHT).contains(y)));
        assert!(drawn.iter().any(|(_, y)| *y < TOP + 1.0), "the peak of 399 of 400");
        assert!(svg.contains(">400<") && svg.contains(">9999 s<"), "{svg}");
        // Labels stand in the middle of their moment: a letter of 11 is 7 wide at most.
        let last = svg.split("<text x=\"").find(|text| text.contains(">9999 s<")).unwrap();
        let at: f64 = last.split('"').next().unwrap().parse().unwrap();
        assert!(at + 7.0 * 7.0 / 2.0 <= WIDTH, "{at}");
    }

    #[test]
    fn an_empty_plot_is_a_frame() {
        let plot = Plot { title: "T", unit: "u", curves: vec![Curve { name: "n", points: Vec::new() }] };
        assert!(plot.svg().contains("d=\"\""));
    }

    #[test]
    fn axes_end_at_round_numbers() {
        for (value, end) in [(1.0, 1.0), (3.0, 4.0), (41.0, 100.0), (1_999.0, 2_000.0)] {
            assert!((nice(value) - end).abs() < 1e-9, "{value}");
        }
        assert_eq!((label(2_500.0), label(0.25)), ("2,500".to_owned(), "0.25".to_owned()));
    }
}
