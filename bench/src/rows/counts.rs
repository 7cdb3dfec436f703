//! What is exact is held by tests, which run here and say the figure.

use std::path::Path;
use std::process::Command;

use anyhow::Context;

use crate::Bench;
use crate::figure::{Figure, Target};

pub(crate) const FIGURES: &[&str] =
    &["round_trips", "calls_a_poll", "admitted_a_minute", "origin_calls_an_hour"];

/// A test of tests/api, and what it says before and behind its figure. A test that says none holds its target exactly.
struct Test {
    name: &'static str,
    unit: &'static str,
    target: Target,
    said: Option<(&'static str, &'static str)>,
}

const TESTS: [Test; 3] = [
    Test {
        name: "round_trips::every_request_is_one_round_trip_and_the_claim_a_second",
        unit: "a request",
        target: Target::AtMost(1.0),
        said: None,
    },
    Test {
        name: "keyed::ten_thousand_who_poll_as_told_ask_redis_for_one_poll_in_seven_at_most",
        unit: "calls",
        target: Target::AtMost(0.15),
        said: Some((" calls, ", " each")),
    },
    Test {
        name: "admission::two_schedulers_with_late_ticks_keep_the_pace",
        unit: "people",
        target: Target::Within(4_130.0, 4_270.0),
        said: Some(("\n", " admitted in a minute")),
    },
];

pub(crate) fn run(_: &Bench) -> anyhow::Result<Vec<Figure>> {
    let mut figures = Vec::new();
    for (name, test) in FIGURES.iter().zip(TESTS) {
        figures.push(tokio::task::block_in_place(|| run_test(name, &test))?.noting(test.name));
    }
    let why = "held by tests/browser/test_client.py, an hour at rank 1 000 000, in make test-browser";
    figures.push(Figure::missing(FIGURES[3], why));
    Ok(figures)
}

fn run_test(figure: &'static str, test: &Test) -> anyhow::Result<Figure> {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join(".."));
    cargo.args(["test", "--workspace", "--test", "api", "--", "--exact", test.name, "--nocapture"]);
    let output = cargo.output().context("cargo test")?;
    let said = String::from_utf8_lossy(&output.stdout);
    if !output.status.success() || !said.contains("1 passed") {
        return Ok(Figure { met: Some(false), ..Figure::missing(figure, "its test fails") });
    }
    let value = match test.said {
        Some(around) => between(&said, around).with_context(|| format!("no figure in {said}"))?,
        None => 1.0,
    };
    Ok(Figure::new(figure, test.unit, test.target, value))
}

fn between(said: &str, (before, behind): (&str, &str)) -> Option<f64> {
    let (start, _) = said.split_once(behind)?;
    start.rsplit_once(before)?.1.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_found_in_what_tests_say() {
        let said =
            "\nrunning 1 test\n200000 polls on 300 instances: 22000 calls, 0.110 each\ntest a ... ok\n";
        assert_eq!(between(said, (" calls, ", " each")), Some(0.11));
        let said = "\nrunning 1 test\n4207 admitted in a minute\n";
        assert_eq!(between(said, ("\n", " admitted in a minute")), Some(4_207.0));
    }
}
