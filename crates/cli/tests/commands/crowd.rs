//! `jari crowd`.

use std::fs;

use serde_json::Value;

use crate::served::{Served, complained, jari, said, sale};

fn report(output: &std::process::Output) -> Value {
    serde_json::from_str(&said(output)).unwrap_or_else(|error| panic!("{error}: {}", complained(output)))
}

#[test]
fn a_crowd_goes_through_a_sale_and_everything_holds() {
    let served = Served::with("crowd", &sale(50, "1-30", 500));
    let page = served.folder.file("crowd.html");
    let people = "crowd --users 400 --arrive 20s --think 2s --speed 5 --bots 2% --tabs 10% --reloads 20% --json --report";
    let mut arguments: Vec<&str> = people.split(' ').collect();
    arguments.push(&page);
    let output = served.jari(&arguments);
    let report = report(&output);
    assert_eq!(output.status.code(), Some(0), "{report:#}");
    assert_eq!(report["event"], "train-1");
    assert_eq!(report["leftOut"], serde_json::json!([]), "everything was checked");
    let ends = report["ends"].as_object().expect("how visits ended");
    assert_eq!(ends.values().filter_map(Value::as_u64).sum::<u64>(), 400, "{ends:?}");
    let booked = ends["booked"].as_u64().expect("a count");
    assert!((250..400).contains(&booked), "{ends:?}");
    assert!(report["sold"].as_u64() >= Some(booked));
    for check in report["checks"].as_array().expect("checks") {
        assert!(check["lookedAt"].as_u64() > Some(0), "{check}");
        assert_eq!(check["broken"], 0, "{check}");
    }
    // 50 a second, and everybody came within 4 s: the last ones waited for at least some of the rest.
    let waits = &report["waitsMs"];
    assert!(
        waits["max"].as_f64() > waits["p50"].as_f64() && waits["p99"].as_f64() > Some(2_000.0),
        "{waits}"
    );
    let page = fs::read_to_string(page).expect("the page");
    assert_eq!(page.matches("<svg").count(), 5);
    assert!(page.contains("all is well"));
}

#[test]
fn what_must_never_happen_is_exit_code_1() {
    let served = Served::with("broken", &sale(50, "1-9", 500));
    let url = served.running()["redis"].as_str().expect("an address").to_owned();
    let mut redis = redis::Client::open(url).and_then(|client| client.get_connection()).expect("Redis");
    let event = "train-1".parse().expect("an event id");
    let remaining = store::Keys::of(&event).name(store::KeyName::Remaining);
    let broken = redis::cmd("INCRBY").arg(remaining).arg(3).exec(&mut redis);
    broken.expect("a counter");
    let output =
        served.jari(&["crowd", "--users", "20", "--arrive", "10s", "--think", "1s", "--speed", "10"]);
    let text = said(&output);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.ends_with("what must never happen has happened\n"), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
}

#[test]
fn nobody_there_is_exit_code_2() {
    let nowhere = jari(&["crowd", "--url", "http://127.0.0.1:9", "--users", "1"]);
    assert_eq!(nowhere.status.code(), Some(2));
    assert!(complained(&nowhere).contains("does not answer at http://127.0.0.1:9: OFFLINE"), "{nowhere:?}");
}
