//! One Redis round trip a request, and one for a tick: counted at the server.

use std::collections::BTreeMap;

use serde_json::json;
use support::{App, Call, Redis, Topology};

/// What clients sent while `work` ran.
async fn sent(redis: &Redis, work: impl AsyncFnOnce()) -> BTreeMap<String, u64> {
    redis.count_commands(work).await
}

fn one(command: &str) -> BTreeMap<String, u64> {
    BTreeMap::from([(command.to_owned(), 1)])
}

#[tokio::test]
async fn every_request_is_one_round_trip_and_the_claim_a_second() {
    let redis = Redis::start(Topology::of_one_node());
    let app = App::on(&redis, |sale| {
        sale["limitPerAccount"] = json!(8);
        sale["payment"] = json!({ "mode": "deferred", "dueAfterSeconds": 600, "currency": "KRW" });
    })
    .await;
    // Once through everything: scripts are loaded, the definition is read.
    walk(&app).await;
    for token in [app.active().await, app.active().await] {
        app.leave(&token).await.data();
    }

    let mut token = String::new();
    assert_eq!(sent(&redis, async || token = app.join().await).await, one("evalsha"), "join");
    assert_eq!(sent(&redis, async || drop(app.rejoin(&token).await)).await, one("evalsha"), "rejoin");
    assert_eq!(
        sent(&redis, async || drop(app.poll(&token).await)).await,
        one("evalsha"),
        "a poll without a key"
    );
    let key = app.rejoin(&token).await.data()["key"].as_str().expect("a key").to_owned();
    tokio::time::sleep(std::time::Duration::from_millis(600)).await;
    let keyed = Call::new("GET", "/api/status/poll").query("token", &token).query("key", &key);
    assert_eq!(sent(&redis, async || drop(app.send(keyed).await)).await, one("evalsha_ro"), "a poll");
    let progress = Call::new("GET", "/api/status/progress");
    assert_eq!(sent(&redis, async || drop(app.send(progress).await)).await, one("evalsha_ro"), "progress");
    app.pass(1_000);
    assert_eq!(
        sent(&redis, async || assert_eq!(app.tick().await.admitted, 1)).await,
        one("evalsha"),
        "a tick"
    );
    let claim = BTreeMap::from([("evalsha".to_owned(), 2)]);
    assert_eq!(sent(&redis, async || drop(app.poll(&token).await)).await, claim, "the poll that claims");
    let search = Call::new("GET", "/trains/search").query("token", &token);
    assert_eq!(sent(&redis, async || drop(app.send(search).await)).await, one("evalsha_ro"), "search");
    let seats = Call::new("GET", "/api/seats").query("token", &token).query("offeringId", "T1");
    assert_eq!(sent(&redis, async || drop(app.send(seats).await)).await, one("evalsha_ro"), "seats");
    for choice in [
        json!({ "offeringId": "T1", "seats": ["1A", "1B"] }),
        json!({ "offeringId": "T1", "sectionId": "A", "best": 2 }),
        json!({ "count": 1 }),
    ] {
        let hold =
            sent(&redis, async || assert_eq!(app.hold(&token, choice.clone()).await.status, 200)).await;
        assert_eq!(hold, one("evalsha"), "hold {choice}");
    }
    let release = json!({ "token": token, "offeringId": "T1", "seats": ["1A"] });
    assert_eq!(
        sent(&redis, async || drop(app.post("/api/seat/cancel", release).await)).await,
        one("evalsha"),
        "release"
    );
    let (mut location, mut amount) = (String::new(), json!(null));
    let booked = sent(&redis, async || {
        let booked = app.book(&token, json!({})).await;
        location = booked.header("location").expect("a location").to_owned();
        amount = booked.data()["amount"].clone();
    });
    assert_eq!(booked.await, one("evalsha"), "book what is held");
    assert_eq!(
        sent(&redis, async || drop(app.book(&token, json!({})).await)).await,
        one("evalsha"),
        "book again"
    );
    let read = Call::new("GET", &location).query("token", &token);
    assert_eq!(sent(&redis, async || drop(app.send(read).await)).await, one("evalsha_ro"), "read");
    let reservation = location.rsplit('/').next().expect("an id");
    let payment = json!({
        "paymentId": "p-1", "reservationId": reservation, "status": "PAID", "amount": amount, "currency": "KRW",
    });
    let paid = sent(&redis, async || assert_eq!(app.send(App::webhook(&payment)).await.status, 200)).await;
    assert_eq!(paid, one("evalsha"), "pay");
    let cancel = Call::new("DELETE", &location).query("token", &token);
    assert_eq!(sent(&redis, async || drop(app.send(cancel).await)).await, one("evalsha"), "cancel");
    let plain = app.active().await;
    let booked =
        sent(&redis, async || assert_eq!(app.book(&plain, json!({ "seatCount": 2 })).await.status, 201))
            .await;
    assert_eq!(booked, one("evalsha"), "the plain booking");
    let named = app.active().await;
    let select = || {
        let call = Call::new("POST", "/api/seat/select").header("idempotency-key", "a");
        call.json(&json!({ "token": named, "count": 1 }))
    };
    for what in ["a named request", "its replay"] {
        assert_eq!(sent(&redis, async || drop(app.send(select()).await)).await, one("evalsha"), "{what}");
    }
    let leaver = app.active().await;
    assert_eq!(sent(&redis, async || drop(app.leave(&leaver).await)).await, one("evalsha"), "leave");
}

/// Every call once.
async fn walk(app: &App) {
    let token = app.active().await;
    app.rejoin(&token).await.data();
    for path in ["/trains/search", "/api/seats"] {
        app.send(Call::new("GET", path).query("token", &token).query("offeringId", "T1")).await.data();
    }
    app.send(Call::new("GET", "/api/status/progress")).await.data();
    let key = app.rejoin(&token).await.data()["key"].as_str().expect("a key").to_owned();
    tokio::time::sleep(std::time::Duration::from_millis(1_100)).await;
    app.send(Call::new("GET", "/api/status/poll").query("token", &token).query("key", &key)).await.data();
    app.hold(&token, json!({ "offeringId": "T1", "seats": ["4A"] })).await.data();
    app.post("/api/seat/cancel", json!({ "token": token })).await.data();
    let booked = app.book(&token, json!({ "seatCount": 1 })).await;
    let location = booked.header("location").expect("a location");
    app.send(Call::new("GET", location).query("token", &token)).await.data();
    app.send(Call::new("DELETE", location).query("token", &token)).await.data();
    let payment = json!({
        "paymentId": "p-0", "reservationId": location.rsplit('/').next(), "status": "FAILED", "amount": 1, "currency": "KRW",
    });
    app.send(App::webhook(&payment)).await.data();
}

#[tokio::test]
async fn a_script_that_redis_forgot_is_sent_again_by_itself() {
    let redis = Redis::start(Topology::of_one_node());
    let app = App::on(&redis, |_| {}).await;
    let token = app.join().await;
    let flushed = redis::cmd("SCRIPT").arg("FLUSH").exec_async(&mut redis.connection().await).await;
    flushed.expect("redis flushes");
    let polled = sent(&redis, async || assert_eq!(app.poll(&token).await.data()["rank"], 1)).await;
    assert_eq!(polled, BTreeMap::from([("evalsha".to_owned(), 1), ("eval".to_owned(), 1)]));
    assert_eq!(sent(&redis, async || drop(app.poll(&token).await)).await, one("evalsha"));
}

#[tokio::test]
async fn a_new_edition_costs_one_read_more_once() {
    let redis = Redis::start(Topology::of_one_node());
    let app = App::on(&redis, |_| {}).await;
    let token = app.active().await;
    let other = App::on(&redis, |_| {}).await;
    drop(other);
    app.hold(&token, json!({ "offeringId": "T1", "seats": ["1A"] })).await.data();
    // Somebody else's process changes the sale.
    let elsewhere = store::Store::new(&redis.config()).expect("an address");
    elsewhere.drive_clock(domain::Millis(app.now()));
    let known = elsewhere.newest_edition(&app.event).await.expect("redis answers").expect("known");
    let (edition, change) = known.next((*known.sale).clone()).expect("a next edition");
    elsewhere.apply(&edition, &change, "tests", "apply").await.expect("redis answers");
    let hold = |seat: &'static str| app.hold(&token, json!({ "offeringId": "T1", "seats": [seat] }));
    let first = sent(&redis, async || assert_eq!(hold("1B").await.status, 200)).await;
    assert_eq!(first, BTreeMap::from([("evalsha".to_owned(), 2), ("get".to_owned(), 1)]));
    assert_eq!(sent(&redis, async || assert_eq!(hold("1C").await.status, 200)).await, one("evalsha"));
}
