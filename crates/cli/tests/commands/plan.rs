//! `jari plan`, alone and against what a crowd measures.

use serde_json::Value;

use crate::served::{Served, complained, jari, said, sale};

fn json(output: &std::process::Output) -> Value {
    serde_json::from_str(&said(output)).unwrap_or_else(|error| panic!("{error}: {}", complained(output)))
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("a number, not {value}"))
}

/// A figure of the plan and of the crowd: apart by less than such a part of the plan.
fn is_near(what: &str, planned: f64, measured: f64, part: f64) {
    println!("{what}: planned {planned:.1}, measured {measured:.1}");
    assert!((planned - measured).abs() <= planned * part, "{what}: planned {planned}, measured {measured}");
}

/// A time: within a fifth, and later by what a person learns of it by: a tick, and a poll each 2 s with its jitter.
fn is_soon(what: &str, planned: f64, measured: f64) {
    println!("{what}: planned {planned:.1} s, measured {measured:.1} s");
    let is_near = (planned * 0.8..=planned * 1.2 + 3.4).contains(&measured);
    assert!(is_near, "{what}: planned {planned}, measured {measured}");
}

/// The most a second over any five of them: a machine that other tests keep busy answers in gushes.
fn most(seconds: &[f64]) -> f64 {
    seconds.windows(5).map(|window| window.iter().sum::<f64>() / 5.0).fold(0.0, f64::max)
}

/// The bands are those of docs/plan.md.
#[test]
fn a_crowd_measures_what_the_plan_says() {
    let served = Served::with("plan", &sale(40, "1-99", 3_000));
    let crowd = "crowd --users 800 --arrive 8s --think 2s --abandon 0% --no-shows 0% --reloads 0% --tabs 0% \
                 --plain 0% --json";
    let crowd = served.jari(&crowd.split_whitespace().collect::<Vec<_>>());
    assert_eq!(crowd.status.code(), Some(0), "{}", said(&crowd));
    let crowd = json(&crowd);
    // Inside: five thoughts of two seconds.
    let plan = "plan --users 800 --seats 3792 --arrive 8s --curve even --tps 40 --ratio 1 --inside 10 --buyers 100% \
                --places 2.5 --actions 5 --json";
    let plan = json(&jari(&plan.split_whitespace().collect::<Vec<_>>()));

    let second = |name: &str| {
        let seconds = crowd["seconds"].as_array().expect("seconds");
        seconds.iter().filter_map(|second| second[name].as_f64()).collect::<Vec<f64>>()
    };
    let polling = &plan["ways"][0];
    assert_eq!(polling["name"], "polling");
    for (what, quantile) in [("median wait", "p50"), ("99 % wait", "p99"), ("longest wait", "max")] {
        let measured = number(&crowd["waitsMs"][quantile]) / 1_000.0;
        is_soon(what, number(&plan["waitSeconds"][quantile]), measured);
    }
    let polls: f64 = second("polls").iter().sum();
    is_near("polls", number(&polling["polls"]), polls, 0.25);
    is_near("polls a second", number(&polling["peakPollsPerSecond"]), most(&second("polls")), 0.25);
    // The plan has people act as they come in; they think first, so the peaks of both do not fall together.
    is_near("answers a second", number(&polling["peakRequestsPerSecond"]), most(&second("answers")), 0.33);
    is_near("waiting", number(&plan["peakWaiting"]), most(&second("waiting")), 0.2);
    is_near("joins a second", number(&plan["peakJoinsPerSecond"]), most(&second("arrivals")), 0.1);
}

#[test]
fn a_plan_is_for_people_or_programs_and_refuses_nonsense() {
    let text = jari(&["plan", "--users", "2000000", "--seats", "300000", "--arrive", "10m"]);
    assert_eq!(text.status.code(), Some(0));
    let text = said(&text);
    assert!(
        text.starts_with("2,000,000 people within 10 min, 300,000 places, 70 let in a second\n"),
        "{text}"
    );
    assert!(text.contains("warning: polling: ") && text.contains("--redis-us 20"), "{text}");
    for wrong in ["--users 0", "--users 10 --tps 0", "--users 10 --ratio 1.5", "--users 10 --buyers 85", ""] {
        let arguments: Vec<&str> = std::iter::once("plan").chain(wrong.split_whitespace()).collect();
        assert_eq!(jari(&arguments).status.code(), Some(2), "{wrong}");
    }
}
