//! What is measured: a file a row of the design's table, or of several that need the same line.

mod bookings;
mod cold;
mod counts;
mod handlers;
mod http;
mod memory;
mod persist;
mod sale;
mod sizes;
mod steps;

use futures::FutureExt;
use futures::future::{LocalBoxFuture, ready};

use crate::Bench;
use crate::figure::Figure;

/// What runs together.
pub(crate) struct Row {
    /// Its name, for `ONLY`.
    pub(crate) name: &'static str,
    /// The figures it gives, in order.
    pub(crate) figures: &'static [&'static str],
    run: for<'a> fn(&'a Bench) -> LocalBoxFuture<'a, anyhow::Result<Vec<Figure>>>,
}

impl Row {
    /// Its figures; where something failed, each of them as not measured.
    pub(crate) async fn run(&self, bench: &Bench) -> Vec<Figure> {
        match (self.run)(bench).await {
            Ok(figures) => figures,
            Err(error) => {
                self.figures.iter().map(|name| Figure::missing(name, format!("{error:#}"))).collect()
            }
        }
    }

    /// Whether `only` names it or one of its figures.
    pub(crate) fn is_called(&self, only: &str) -> bool {
        self.name == only || self.figures.contains(&only)
    }
}

/// Every row, those that share a line one after the other.
pub(crate) const ROWS: &[Row] = &[
    Row { name: "counts", figures: counts::FIGURES, run: |bench| ready(counts::run(bench)).boxed_local() },
    Row { name: "memory", figures: memory::FIGURES, run: |bench| memory::run(bench).boxed_local() },
    Row { name: "steps", figures: steps::FIGURES, run: |bench| steps::run(bench).boxed_local() },
    Row { name: "handlers", figures: handlers::FIGURES, run: |bench| handlers::run(bench).boxed_local() },
    Row { name: "bookings", figures: bookings::FIGURES, run: |bench| bookings::run(bench).boxed_local() },
    Row { name: "persist", figures: persist::FIGURES, run: |bench| persist::run(bench).boxed_local() },
    Row { name: "http", figures: http::FIGURES, run: |bench| http::run(bench).boxed_local() },
    Row { name: "cold", figures: cold::FIGURES, run: |bench| cold::run(bench).boxed_local() },
    Row { name: "sizes", figures: sizes::FIGURES, run: |bench| ready(sizes::run(bench)).boxed_local() },
    Row { name: "sale", figures: sale::FIGURES, run: |bench| sale::run(bench).boxed_local() },
    Row {
        name: "starts",
        figures: &["start_first", "start_second"],
        run: |_| ready(Ok(not_here())).boxed_local(),
    },
];

/// What another command measures: said, not left out.
fn not_here() -> Vec<Figure> {
    vec![
        Figure::missing("start_first", "infra/local/check-run.sh, which needs a machine without a build"),
        Figure::missing("start_second", "infra/local/check-run.sh"),
    ]
}
