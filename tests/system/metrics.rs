//! What `jari serve` tells Prometheus, over a sale.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::json;
use support::wait_until;

use crate::http::Connection;
use crate::serving::{Folder, Served};

/// Name, with labels where it has some, to value. Fails the test on a line that is no sample of a declared metric.
async fn samples(served: &Served) -> BTreeMap<String, f64> {
    let mut connection = Connection::open(served.address()).await.expect("a connection");
    let answer = connection.request("GET", "/metrics", None).await.expect("an answer");
    assert_eq!(answer.status, 200);
    assert_eq!(answer.header("content-type"), Some("text/plain; version=0.0.4; charset=utf-8"));
    let mut declared = String::new();
    let mut samples = BTreeMap::new();
    for line in answer.text.lines() {
        if let Some(declares) = line.strip_prefix("# TYPE ") {
            let (name, kind) = declares.split_once(' ').expect("a name and a type");
            assert!(["counter", "gauge", "histogram"].contains(&kind), "{line}");
            name.clone_into(&mut declared);
        } else if !line.starts_with("# HELP ") {
            let (name, value) = line.rsplit_once(' ').expect("a name and a value");
            assert!(name.starts_with(&declared), "{line} stands below {declared}");
            samples.insert(name.to_owned(), value.parse().expect("a number"));
        }
    }
    samples
}

#[tokio::test]
async fn a_served_sale_is_told_to_prometheus() {
    let folder = Folder::with_sale(|_| {});
    let served = folder.serve().await;
    let buyer = served.active().await;
    let hold = json!({ "token": buyer, "offeringId": "T1", "seats": ["1A", "1B"] });
    assert_eq!(served.caller.post("/api/seat/select", hold).await.status, 200);
    assert_eq!(served.caller.post("/api/booking", json!({ "token": buyer })).await.status, 201);
    served.join().await;
    let wrong = json!({ "token": "no UUID", "seatCount": 1 });
    assert_eq!(served.caller.post("/api/booking", wrong).await.code(), "INVALID_REQUEST");

    let mut told = BTreeMap::new();
    wait_until(Duration::from_secs(20), "all facts are written", async || {
        told = samples(&served).await;
        // Two joins, a call, a session, a hold and a booking at least.
        told["jari_persisted_total"] >= 6.0 && told.get("jari_remaining") == Some(&26.0)
    })
    .await;
    for (name, value) in [
        ("jari_joins_total", 2.0),
        ("jari_held_total", 2.0),
        ("jari_sold_total", 2.0),
        ("jari_bookings_total", 1.0),
        ("jari_refusals_total{code=\"INVALID_REQUEST\"}", 1.0),
        ("jari_cold_starts_total", 1.0),
        ("jari_guard_violations_total", 0.0),
        ("jari_persist_failures_total", 0.0),
        ("jari_dead_letters_total", 0.0),
    ] {
        assert_eq!(told.get(name), Some(&value), "{name}");
    }
    assert!(told["jari_admitted_total"] >= 1.0 && told["jari_ticks_total"] >= 1.0, "{told:?}");
    assert!(told["jari_polls_exact_total"] >= 1.0, "{told:?}");
    let latency = told["jari_redis_latency_seconds_count"];
    assert_eq!(told.get("jari_redis_latency_seconds_bucket{le=\"+Inf\"}"), Some(&latency));
    assert!(latency > 20.0 && told["jari_redis_latency_seconds_sum"] > 0.0, "{told:?}");
    assert!((0.0..60.0).contains(&told["jari_journal_lag_seconds"]), "{told:?}");

    // Only who asks for it: no route of the product, and nothing that a sale's page could be.
    let mut connection = Connection::open(served.address()).await.expect("a connection");
    assert_eq!(connection.request("POST", "/metrics", None).await.expect("an answer").code(), "NOT_FOUND");
}
