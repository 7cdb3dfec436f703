//! A served system under far more than it takes at once: most of it is refused before any work, and people inside go on.

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use futures::future::join_all;
use serde_json::json;
use support::{Fault, FaultProxy, Redis, Topology, wait_until};
use tokio::task::JoinSet;

use crate::http::{Caller, Connection, request};
use crate::serving::{Folder, Served};
use crate::world::LONG;

/// Connections that each want an answer: ten times what `jari serve` takes from the line at once.
const FLOOD: usize = 2_560;
const ROUNDS: usize = 3;
/// People inside, and calls of each of them that are measured in a round.
const INSIDE: [&str; 4] = ["1A", "1B", "1C", "1D"];
const CALLS: usize = 26;
/// What Redis takes to answer: so the system, not the machine that the test shares with it, is what is too small.
const REDIS_DELAY: Duration = Duration::from_millis(40);

/// Where the flood goes, for the process that it comes from.
const TARGET: &str = "JARI_FLOOD_TARGET";

/// What the 99th of 100 calls inside may take, against calm.
const SLOWER: f64 = 3.0;

/// The crowd: a process of its own, which leaves the machine to those whom it is held against.
struct Flood(Child);

impl Flood {
    fn begin(served: &Served) -> Self {
        let mut command = Command::new("nice");
        command.arg(std::env::current_exe().expect("the path of this test"));
        command.args(["capacity::flood", "--exact", "--ignored"]);
        command.env(TARGET, format!("{} {}", served.address(), served.event));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        Self(command.spawn().expect("the test starts once more"))
    }
}

impl Drop for Flood {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Not a test of its own: joins and polls over many connections, each as soon as the last one was answered, or a second
/// after it was refused.
#[tokio::test]
#[ignore = "the crowd of another test"]
async fn flood() {
    let target = std::env::var(TARGET).expect("an address and an event");
    let (address, event) = target.split_once(' ').expect("an address and an event");
    let mut callers = JoinSet::new();
    for at in 0..FLOOD {
        let token = domain::Token::random();
        let request = match at % 2 {
            0 => request("POST", "/api/queue/join", Some(&json!({ "eventId": event }))),
            _ => request("GET", &format!("/api/status/poll?eventId={event}&token={token}"), None),
        };
        callers.spawn(ask_without_end(address.to_owned(), request));
    }
    tokio::time::timeout(LONG, callers.join_next()).await.expect_err("nobody gives up");
}

async fn ask_without_end(address: String, request: String) {
    loop {
        if let Ok(mut connection) = Connection::open(&address).await {
            while connection.write(request.as_bytes()).await.is_ok()
                && connection.read(true).await.is_ok_and(|answer| answer.status == 200)
            {}
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}

/// What calls of somebody inside took, in milliseconds.
async fn calls(caller: &Caller, token: &str, seat: &str) -> Vec<f64> {
    let seats = json!({ "token": token, "offeringId": "T1", "seats": [seat] });
    let mut took = Vec::new();
    for at in 0..CALLS {
        let path = if at % 2 == 0 { "/api/seat/select" } else { "/api/seat/cancel" };
        let started = Instant::now();
        let answer = caller.post(path, seats.clone()).await;
        assert_eq!(answer.status, 200, "people inside have a lane of their own: {}", answer.text);
        took.push(started.elapsed().as_secs_f64() * 1_000.0);
    }
    took
}

/// The time that 99 of 100 calls inside keep to.
async fn p99(caller: &Caller, inside: &[String]) -> f64 {
    let everybody = inside.iter().zip(INSIDE).map(|(token, seat)| calls(caller, token, seat));
    let mut took = join_all(everybody).await.concat();
    took.sort_by(f64::total_cmp);
    took[took.len() * 99 / 100]
}

/// Whether somebody who comes now is refused, as every refusal is.
async fn is_refused(caller: &Caller) -> bool {
    let answer = caller.post("/api/queue/join", json!({})).await;
    match answer.status {
        200 => false,
        503 => {
            assert!(answer.header("retry-after").is_some(), "{:?}", answer.headers);
            true
        }
        _ => panic!("{}", answer.text),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_times_too_many_are_refused_early_and_people_inside_hold_and_book() {
    let folder = Folder::with_sale(|sale| {
        sale["holdSeconds"] = json!(600);
        sale["admission"]["activeSeconds"] = json!(900);
    });
    let redis = Redis::start(Topology::Single);
    let proxy = FaultProxy::before(redis.url());
    let served = folder.serve_with(&[("SERVE_REDIS_URL", proxy.url())]).await;
    let holder = served.active().await;
    let held = json!({ "token": holder, "offeringId": "T1", "seats": ["4D"] });
    assert_eq!(served.caller.post("/api/seat/select", held).await.status, 200);
    let mut inside = Vec::new();
    for _ in INSIDE {
        inside.push(served.active().await);
    }
    proxy.set(Fault::Delay(REDIS_DELAY));

    let mut ratios = Vec::new();
    for _ in 0..ROUNDS {
        let calm = p99(&served.caller, &inside).await;
        let flood = Flood::begin(&served);
        wait_until(LONG, "the flood stands", async || is_refused(&served.caller).await).await;
        let flooded = p99(&served.caller, &inside).await;
        wait_until(LONG, "the flood still stands", async || is_refused(&served.caller).await).await;
        drop(flood);
        wait_until(LONG, "the flood is over", async || !is_refused(&served.caller).await).await;
        println!("p99 inside: {calm:.1} ms calm, {flooded:.1} ms flooded");
        ratios.push(flooded / calm);
    }
    ratios.sort_by(f64::total_cmp);
    assert!(ratios[ROUNDS / 2] <= SLOWER, "people inside waited {ratios:.1?} times as long");

    // What was held before is held, and sold.
    let booked = served.caller.post("/api/booking", json!({ "token": holder })).await;
    assert_eq!((booked.status, &booked.data()["seats"]), (201, &json!(["4D"])), "{}", booked.text);
}
