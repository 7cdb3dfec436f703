//! Curves over time as an SVG file: panels one below the other, over the same minutes.

use std::fmt::Write as _;

use crate::figure::number;

const WIDTH: f64 = 900.0;
const PANEL: f64 = 300.0;
const HEAD: f64 = 52.0;
const LEFT: f64 = 96.0;
const RIGHT: f64 = 24.0;
/// Above and below what a panel draws: its title and legend, and the minutes.
const TOP: f64 = 44.0;
const BOTTOM: f64 = 52.0;
/// Lines across a panel, about.
const LINES: f64 = 5.0;

/// Values over minutes.
pub(crate) struct Curve {
    pub(crate) name: &'static str,
    pub(crate) colour: &'static str,
    pub(crate) points: Vec<(f64, f64)>,
}

/// Curves of one scale.
pub(crate) struct Panel {
    pub(crate) title: &'static str,
    pub(crate) curves: Vec<Curve>,
}

/// The picture; `axis` says what the minutes are counted from.
pub(crate) fn svg(title: &str, axis: &str, panels: &[Panel]) -> String {
    let points = || panels.iter().flat_map(|panel| &panel.curves).flat_map(|curve| &curve.points);
    let first = points().map(|(at, _)| *at).fold(f64::INFINITY, f64::min);
    let last = points().map(|(at, _)| *at).fold(f64::NEG_INFINITY, f64::max);
    let height = HEAD + PANEL * panels.len() as f64;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" \
         height=\"{height}\" font-family=\"sans-serif\" font-size=\"13\" fill=\"#333\">\n\
         <rect width=\"{WIDTH}\" height=\"{height}\" fill=\"#fff\"/>\n\
         <text x=\"{LEFT}\" y=\"32\" font-size=\"18\">{title}</text>\n"
    );
    for (at, panel) in panels.iter().enumerate() {
        panel.draw(&mut svg, HEAD + PANEL * at as f64, (first, last.max(first + 0.1)), axis);
    }
    svg + "</svg>\n"
}

impl Panel {
    /// Writing to a text cannot fail.
    fn draw(&self, svg: &mut String, above: f64, (first, last): (f64, f64), axis: &str) {
        let highest = self.curves.iter().flat_map(|curve| &curve.points).map(|(_, value)| *value);
        let highest = highest.fold(1.0, f64::max);
        let step = step(highest / LINES);
        let top = step * (highest / step).ceil();
        let (from, to) = (above + TOP, above + PANEL - BOTTOM);
        let x = |at: f64| LEFT + (WIDTH - LEFT - RIGHT) * (at - first) / (last - first);
        let y = |value: f64| to - (to - from) * value / top;
        let _ = writeln!(
            svg,
            "<text x=\"{LEFT}\" y=\"{:.1}\" font-weight=\"bold\">{}</text>",
            above + 16.0,
            self.title
        );
        for value in marks(0.0, top, step) {
            let _ = writeln!(
                svg,
                "<path d=\"M{LEFT} {y:.1}H{:.1}\" stroke=\"#ddd\"/>\
                 <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
                WIDTH - RIGHT,
                LEFT - 8.0,
                y(value) + 4.0,
                number(value),
                y = y(value),
            );
        }
        for minute in marks(first, last, self::step((last - first) / 12.0)) {
            let _ = writeln!(
                svg,
                "<path d=\"M{x:.1} {to:.1}v5\" stroke=\"#333\"/>\
                 <text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
                to + 20.0,
                number(minute),
                x = x(minute),
            );
        }
        let _ = writeln!(
            svg,
            "<path d=\"M{LEFT} {to:.1}H{:.1}\" stroke=\"#333\"/>\
             <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{axis}</text>",
            WIDTH - RIGHT,
            f64::midpoint(LEFT, WIDTH - RIGHT),
            to + 38.0
        );
        let mut legend = LEFT;
        for curve in &self.curves {
            let Curve { name, colour, points } = curve;
            let _ = writeln!(
                svg,
                "<path d=\"M{legend:.1} {y:.1}h18\" stroke=\"{colour}\" stroke-width=\"3\"/>\
                 <text x=\"{:.1}\" y=\"{:.1}\">{name}</text>",
                legend + 24.0,
                above + 36.0,
                y = above + 32.0,
            );
            legend += 48.0 + 7.5 * name.len() as f64;
            let points: Vec<String> =
                points.iter().map(|(at, value)| format!("{:.1},{:.1}", x(*at), y(*value))).collect();
            let _ = writeln!(
                svg,
                "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"/>",
                points.join(" ")
            );
        }
    }
}

/// The least of 1, 2, 5, 10, 20, 50 … that is no less than this.
fn step(least: f64) -> f64 {
    let ten = 10.0_f64.powf(least.log10().floor());
    [1.0, 2.0, 5.0].map(|times| times * ten).into_iter().find(|step| *step >= least).unwrap_or(10.0 * ten)
}

/// The multiples of a step from one value to another.
fn marks(from: f64, to: f64, step: f64) -> impl Iterator<Item = f64> {
    // A picture has a few dozen of them.
    #[allow(clippy::cast_possible_truncation)]
    let (first, last) = ((from / step).ceil() as i32, (to / step + 1e-9).floor() as i32);
    (first..=last).map(move |mark| f64::from(mark) * step)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[allow(clippy::float_cmp)]
    fn steps_are_round_and_marks_are_their_multiples() {
        assert_eq!([0.3, 1.0, 1.1, 30.0, 400_000.0].map(step), [0.5, 1.0, 2.0, 50.0, 500_000.0]);
        assert_eq!(marks(-1.0, 2.5, 1.0).collect::<Vec<f64>>(), [-1.0, 0.0, 1.0, 2.0]);
    }

    #[test]
    fn every_curve_is_drawn_within_its_panel() {
        let curve = |name, most| Curve {
            name,
            colour: "#06c",
            points: (0..=9).map(|at| (f64::from(at) - 1.0, most * f64::from(at))).collect(),
        };
        let panels = [
            Panel { title: "People", curves: vec![curve("in line", 200_000.0), curve("asking", 10.0)] },
            Panel { title: "Seats", curves: vec![curve("sold", 0.0)] },
        ];
        let svg = svg("A sale", "minutes", &panels);
        assert_eq!((svg.matches("<polyline").count(), svg.matches("<svg").count()), (3, 1));
        assert!(svg.contains(">2 000 000<") && svg.contains(">-1<") && svg.contains(">asking<"), "{svg}");
        for (at, line) in svg.lines().filter(|line| line.starts_with("<polyline")).enumerate() {
            let above = HEAD + if at < 2 { 0.0 } else { PANEL };
            let points = line.split('"').nth(1).unwrap().split([' ', ',']);
            let points: Vec<f64> = points.map(|number| number.parse().unwrap()).collect();
            for point in points.chunks(2) {
                assert!((LEFT - 0.1..=WIDTH - RIGHT + 0.1).contains(&point[0]), "{line}");
                assert!((above + TOP - 0.1..=above + PANEL - BOTTOM + 0.1).contains(&point[1]), "{line}");
            }
        }
    }
}
