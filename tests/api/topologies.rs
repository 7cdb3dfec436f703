//! What a layout of Redis may do to a sale: a replica that lags or is gone, a slot that moves, TLS that is not trusted.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use serde_json::{Value, json};
use store::{KeyName, Keys, Load, Store, Tick};
use support::{Answer, App, Call, Redis, Topology};

async fn connected(url: &str) -> MultiplexedConnection {
    let client = redis::Client::open(url).expect("a Redis URL");
    client.get_multiplexed_async_connection().await.expect("Redis takes a connection")
}

/// A poll that only reads: with a good key, in its time.
async fn keyed_poll(app: &App, token: &str) -> Answer {
    let key = app.rejoin(token).await.data()["key"].as_str().expect("a key").to_owned();
    // Half of the shortest interval.
    tokio::time::sleep(Duration::from_millis(600)).await;
    app.send(Call::new("GET", "/api/status/poll").query("token", token).query("key", &key)).await
}

async fn remaining(app: &App, token: &str) -> Value {
    let found = app.send(Call::new("GET", "/trains/search").query("token", token)).await;
    found.data()["offerings"][0]["sections"][1]["remaining"].clone()
}

#[tokio::test]
async fn what_only_reads_is_asked_of_the_replica_alone() {
    let redis = Redis::start(Topology::Replica);
    let app = App::on(&redis, |_| {}).await;
    let (active, token) = (app.active().await, app.join().await);
    app.replicated().await;
    // Once, so that the replica has the scripts.
    let looks = async || {
        assert_eq!(keyed_poll(&app, &token).await.data()["rank"], 1);
        assert_eq!(remaining(&app, &active).await, 10);
        let map = Call::new("GET", "/api/seats").query("token", &active).query("offeringId", "T1");
        assert_eq!(app.send(map).await.status, 200);
        assert_eq!(app.send(Call::new("GET", "/api/status/progress")).await.data()["totalWaiting"], 1);
    };
    looks().await;
    let counted = redis.count_commands(looks).await;
    let read = counted.keys().filter(|command| command.ends_with("_ro") || command.starts_with("get"));
    assert_eq!(read.count(), 0, "the primary was asked too: {counted:?}");
}

#[tokio::test]
async fn a_replica_that_lags_refuses_nobody() {
    let redis = Redis::start(Topology::Replica);
    let app = App::on(&redis, |_| {}).await;
    let known = app.join().await;
    app.replicated().await;
    // From here on it answers as things were.
    let mut replica = connected(redis.read_url().expect("a replica")).await;
    redis::cmd("REPLICAOF").arg("NO").arg("ONE").exec_async(&mut replica).await.expect("the replica lets go");
    let app = app.lagging();

    let fresh = app.join().await;
    assert_eq!(keyed_poll(&app, &fresh).await.data()["rank"], 2, "NOT_FOUND there");
    assert_eq!(keyed_poll(&app, &known).await.data()["rank"], 1);
    let other = App::on(&redis, |_| {}).await.lagging();
    let progress = other.send(Call::new("GET", "/api/status/progress")).await;
    assert_eq!(progress.data()["status"], "OPEN", "EVENT_NOT_FOUND there");

    app.pass(1_000);
    assert_eq!(app.tick().await.admitted, 2);
    app.rejoin(&fresh).await.data();
    assert_eq!(remaining(&app, &fresh).await, 10, "NOT_ADMITTED there");
    let mut larger = support::sale(app.event.as_str());
    larger["offerings"][0]["sections"][1]["capacity"] = json!(12);
    assert_eq!(app.apply(&larger).await, 2);
    assert_eq!(remaining(&app, &fresh).await, 12, "STALE there");
    let booked = app.book(&fresh, json!({ "seatCount": 1 })).await;
    let location = booked.header("location").expect("a location").to_owned();
    let read = Call::new("GET", &location).query("token", &fresh);
    assert_eq!(app.send(read.clone()).await.data()["status"], "CONFIRMED", "unknown there");
    app.send(Call::new("DELETE", &location).query("token", &fresh)).await.data();
    assert_eq!(app.send(read).await.data()["status"], "CANCELLED");

    let asked: String =
        redis::cmd("INFO").arg("commandstats").query_async(&mut replica).await.expect("the replica answers");
    assert!(asked.contains("evalsha_ro"), "the replica was asked: {asked}");
}

#[tokio::test]
async fn a_replica_that_hangs_or_is_gone_stops_nobody() {
    let mut redis = Redis::start(Topology::Replica);
    let app = App::on(&redis, |_| {}).await.lagging();
    let token = app.join().await;
    let mut replica = connected(redis.read_url().expect("a replica")).await;
    redis::cmd("CLIENT").arg("PAUSE").arg(60_000).exec_async(&mut replica).await.expect("the replica pauses");
    for _ in 0..3 {
        assert_eq!(keyed_poll(&app, &token).await.data()["rank"], 1);
    }
    redis.stop_replica();
    for _ in 0..3 {
        assert_eq!(keyed_poll(&app, &token).await.data()["rank"], 1);
    }
}

#[tokio::test]
async fn tls_that_is_not_trusted_and_a_wrong_password_are_no_way_in() {
    let redis = Redis::start(Topology::Tls);
    let good = redis.config();
    let answers =
        async |config: &store::StoreConfig| Store::new(config).expect("an address").ping().await.is_ok();
    assert!(answers(&good).await);
    let mut untrusted = good.clone();
    untrusted.ca = None;
    assert!(!answers(&untrusted).await, "a certificate that nobody signed for");
    let mut stranger = good.clone();
    stranger.url = good.url.replace("rediss://:", "rediss://:not-");
    assert!(!answers(&stranger).await, "a wrong password");
    let mut plain = good.clone();
    plain.url = good.url.replace("rediss:", "redis:");
    assert!(!answers(&plain).await, "no TLS");
}

/// A slot's node and another one, and the slot.
struct Move {
    slot: u16,
    from: String,
    to: String,
}

impl Move {
    /// Of the slot that has an event's keys.
    async fn of(redis: &Redis, app: &App) -> Self {
        let key = Keys::of(&app.event).name(KeyName::Meta);
        let mut connection = redis.connection_of(&key).await;
        let slot = redis::cmd("CLUSTER").arg("KEYSLOT").arg(&key).query_async(&mut connection).await;
        let own: String =
            redis::cmd("CLUSTER").arg("MYID").query_async(&mut connection).await.expect("an id");
        let mut urls = Vec::new();
        for url in redis.node_urls() {
            let is_own = id_of(url).await == own;
            urls.push((is_own, url.to_owned()));
        }
        let find = |own: bool| urls.iter().find(|(is_own, _)| *is_own == own).expect("a node").1.clone();
        Self { slot: slot.expect("a slot"), from: find(true), to: find(false) }
    }

    async fn begin(&self) {
        let (from_id, to_id) = (id_of(&self.from).await, id_of(&self.to).await);
        self.set(&self.to, &["IMPORTING", &from_id]).await;
        self.set(&self.from, &["MIGRATING", &to_id]).await;
    }

    /// Carries some keys over; how many.
    async fn carry(&self, at_most: usize) -> usize {
        let mut from = connected(&self.from).await;
        let mut keys = redis::cmd("CLUSTER");
        keys.arg("GETKEYSINSLOT").arg(self.slot).arg(at_most);
        let keys: Vec<String> = keys.query_async(&mut from).await.expect("keys of the slot");
        if keys.is_empty() {
            return 0;
        }
        let port = self.to.trim_end_matches('/').rsplit(':').next().expect("a port");
        let mut migrate = redis::cmd("MIGRATE");
        migrate.arg("127.0.0.1").arg(port).arg("").arg(0).arg(5_000).arg("KEYS").arg(&keys);
        migrate.exec_async(&mut from).await.expect("keys move");
        keys.len()
    }

    async fn end(&self, redis: &Redis) {
        let to_id = id_of(&self.to).await;
        self.set(&self.to, &["NODE", &to_id]).await;
        for url in redis.node_urls() {
            self.set(url, &["NODE", &to_id]).await;
        }
    }

    async fn set(&self, url: &str, state: &[&str]) {
        let mut command = redis::cmd("CLUSTER");
        command.arg("SETSLOT").arg(self.slot).arg(state);
        command.exec_async(&mut connected(url).await).await.expect("the slot's state");
    }
}

async fn id_of(url: &str) -> String {
    redis::cmd("CLUSTER").arg("MYID").query_async(&mut connected(url).await).await.expect("an id")
}

/// Sends until it is not told to come back.
async fn persistently(app: &App, call: &Call) -> Answer {
    loop {
        let answer = app.send(call.clone()).await;
        if answer.status != 503 {
            return answer;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Joins, is let in and buys one place; the ticket number.
async fn buys(app: Arc<App>) -> i64 {
    let joined = persistently(&app, &Call::new("POST", "/api/queue/join").json(&json!({}))).await;
    let (token, number) = (joined.data()["token"].clone(), joined.data()["ticketNumber"].clone());
    let again = Call::new("POST", "/api/queue/rejoin").json(&json!({ "token": token }));
    while persistently(&app, &again).await.data()["status"] != "ACTIVE" {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let book = Call::new("POST", "/api/booking").json(&json!({ "token": token, "seatCount": 1 }));
    let booked = persistently(&app, &book).await;
    assert_eq!(booked.status, 201, "{}", booked.text);
    number.as_i64().expect("a number")
}

#[tokio::test]
async fn a_slot_moves_while_its_sale_runs_and_nothing_is_lost() {
    const PEOPLE: u64 = 40;
    let redis = Redis::start(Topology::Cluster3);
    let app = App::on(&redis, |sale| {
        sale["offerings"][0]["sections"][1]["capacity"] = json!(100);
        sale["admission"] = json!({ "perSecond": 1_000, "maxActive": 1_000 });
    });
    let app = Arc::new(app.await);
    let ended = Arc::new(AtomicBool::new(false));
    let ticking = tokio::spawn({
        let (app, ended) = (Arc::clone(&app), Arc::clone(&ended));
        async move {
            while !ended.load(Ordering::Relaxed) {
                app.pass(10);
                // While keys are here and there a tick finds nothing to work on; the next one comes.
                // Another node is another Redis; nothing was lost, so relay would find nothing to put back.
                if let Ok(Ok(Tick { recovering: true, epoch, .. })) =
                    app.store.admit(&app.event, Load::default()).await
                {
                    let _ = app.store.recovered(&app.event, epoch).await;
                }
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        }
    });
    let moving = Move::of(&redis, &app).await;
    let first = futures::future::join_all((0..PEOPLE / 2).map(|_| tokio::spawn(buys(Arc::clone(&app)))));
    let numbers_before = first.await;
    moving.begin().await;
    let during = futures::future::join_all((0..PEOPLE / 2).map(|_| tokio::spawn(buys(Arc::clone(&app)))));
    let carrying = async {
        while moving.carry(3).await > 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        moving.end(&redis).await;
    };
    let (numbers_after, ()) = tokio::join!(during, carrying);
    ended.store(true, Ordering::Relaxed);
    ticking.await.expect("no tick failed");
    let numbers: Vec<i64> = numbers_before
        .into_iter()
        .chain(numbers_after)
        .map(|number| number.expect("everybody bought"))
        .collect();
    // A join whose answer was lost is made again, so numbers may be left out; none comes twice.
    assert_eq!(numbers.iter().collect::<BTreeSet<_>>().len() as u64, PEOPLE, "{numbers:?}");
    assert_eq!(app.remaining().await, 118 - PEOPLE);
    let moved = connected(&moving.to).await;
    let key = Keys::of(&app.event).name(KeyName::Meta);
    let there: bool = redis::cmd("EXISTS").arg(key).query_async(&mut { moved }).await.expect("its new node");
    assert!(there, "the sale has moved");
}

#[tokio::test]
async fn sales_are_spread_over_the_nodes_of_a_cluster() {
    let redis = Redis::start(Topology::Cluster3);
    let mut at: BTreeMap<String, u32> = BTreeMap::new();
    // A node has none of 300 sales once in 10^52 runs; mostly a handful is enough.
    for _ in 0..300 {
        if at.len() == 3 {
            break;
        }
        let app = App::on(&redis, |_| {}).await;
        let mut connection = redis.connection_of(&Keys::of(&app.event).name(KeyName::Meta)).await;
        let id = redis::cmd("CLUSTER").arg("MYID").query_async(&mut connection).await.expect("an id");
        *at.entry(id).or_default() += 1;
        let token = app.active().await;
        assert_eq!(app.book(&token, json!({ "seatCount": 1 })).await.status, 201);
    }
    assert_eq!(at.len(), 3, "{at:?}");
}
