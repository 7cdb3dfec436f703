//! What a request costs the function that handles it, in instructions, which are the same on a busy machine: from the
//! event's bytes to the answer's, with commands to Redis written and replies read. They need valgrind, so they are asked
//! for: `cargo test --workspace --test instructions -- --ignored`; infra/local/test.sh does where there is one.
#![cfg(test)]

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::json;
use support::{App, Call, Redis, Scratch, Topology};

/// Requests of the first run, whose cost is the program's start too; the second run has `MORE` on top of them.
const FIRST: usize = 50;
const MORE: usize = 200;

/// Fails where a request takes more than a tenth more or less instructions than `committed`, so that speed neither rots
/// unseen nor is gained without being written down. The figures are those of the development profile.
fn check(app: &App, redis: &Redis, committed: u64, requests: &[Call]) {
    let folder = Scratch::new().expect("a temporary folder");
    let count = |requests: &[Call]| {
        let lines: Vec<String> = requests.iter().map(|request| request.event().to_string()).collect();
        let file = folder.path().join("events");
        fs::write(&file, lines.join("\n")).expect("a temporary folder takes files");
        count(app, redis, folder.path(), &file)
    };
    assert_eq!(requests.len(), 2 * FIRST + MORE);
    let (first, second) = requests.split_at(FIRST);
    let more = count(second) - count(first);
    let instructions = more / MORE as u64;
    println!("\n{instructions} instructions a request");
    let tenth = committed / 10;
    assert!(
        (committed - tenth..=committed + tenth).contains(&instructions),
        "{instructions} instructions a request in place of {committed}: if that is meant, write it here"
    );
}

/// Instructions of a whole run.
fn count(app: &App, redis: &Redis, folder: &Path, events: &Path) -> u64 {
    let mut valgrind = Command::new("valgrind");
    valgrind.arg("--tool=callgrind");
    valgrind.arg(format!("--callgrind-out-file={}", folder.join("callgrind.out").display()));
    valgrind
        .arg(support::binary("examples/handler"))
        .args([redis.url(), app.event.as_str(), &app.now().to_string()])
        .arg(events);
    let output = valgrind.output().expect("valgrind runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    // `==7== Collected : 123456`
    let collected = said.lines().find_map(|line| line.split_once("Collected :")?.1.trim().parse().ok());
    collected.unwrap_or_else(|| panic!("callgrind counts nothing: {said}"))
}

async fn opened() -> (Redis, App) {
    let redis = Redis::start(Topology::Single);
    let app = App::on(&redis, |sale| {
        sale["admission"] =
            json!({ "perSecond": 500, "maxActive": 10_000, "activeSeconds": 600, "claimSeconds": 60 });
        sale["offerings"][0]["sections"][1]["capacity"] = json!(10_000);
        sale["offerings"][0]["sections"][0]["seats"] = json!([{ "rows": "1-500", "seats": "A-D" }]);
    })
    .await;
    (redis, app)
}

/// For each request an address of its own.
fn requests(request: impl Fn(usize) -> Call) -> Vec<Call> {
    (0..2 * FIRST + MORE).map(|at| request(at).from(&format!("10.0.{}.{}", at / 200, at % 200))).collect()
}

async fn joined(app: &App) -> Vec<String> {
    let mut tokens = Vec::new();
    for _ in 0..2 * FIRST + MORE {
        tokens.push(app.join().await);
    }
    tokens
}

/// In live sessions.
async fn seated(app: &App) -> Vec<String> {
    let tokens = joined(app).await;
    app.pass(1_000);
    app.tick().await;
    for token in &tokens {
        assert_eq!(app.poll(token).await.data()["status"], "ACTIVE");
    }
    tokens
}

fn poll(token: &str) -> Call {
    Call::new("GET", "/api/status/poll").query("token", token)
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs valgrind"]
async fn join() {
    let (redis, app) = opened().await;
    let request = |_| Call::new("POST", "/api/queue/join").json(&json!({ "eventId": app.event }));
    check(&app, &redis, 165_400, &requests(request));
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs valgrind"]
async fn poll_without_a_key() {
    let (redis, app) = opened().await;
    let tokens = joined(&app).await;
    check(&app, &redis, 140_800, &requests(|at| poll(&tokens[at])));
}

/// As of those who have waited as told: only the first reaches Redis.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs valgrind"]
async fn poll_with_a_key() {
    let (redis, app) = opened().await;
    let tokens = joined(&app).await;
    let mut keys = Vec::new();
    for token in &tokens {
        let answer = app.poll(token).await;
        keys.push(support::ripe(&app, token, answer.data()["key"].as_str().expect("a key")).1);
    }
    check(&app, &redis, 105_400, &requests(|at| poll(&tokens[at]).query("key", &keys[at])));
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs valgrind"]
async fn book() {
    let (redis, app) = opened().await;
    let tokens = seated(&app).await;
    let request =
        |at: usize| Call::new("POST", "/api/booking").json(&json!({ "token": tokens[at], "seatCount": 2 }));
    check(&app, &redis, 218_200, &requests(request));
}

/// Four seats of a row.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs valgrind"]
async fn hold() {
    let (redis, app) = opened().await;
    let tokens = seated(&app).await;
    let request = |at: usize| {
        let seats = ["A", "B", "C", "D"].map(|letter| format!("{}{letter}", at + 1));
        let hold = json!({ "token": tokens[at], "sectionId": "A", "seats": seats });
        Call::new("POST", "/api/seat/select").json(&hold)
    };
    check(&app, &redis, 156_800, &requests(request));
}
