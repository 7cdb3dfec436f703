//! Polls that a key and a view of the line answer: what they tell, and how seldom Redis is asked.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use bootstrap::State;
use bootstrap::config::MasterKeys;
use domain::Millis;
use serde_json::{Value, json};
use store::Store;
use support::{Answer, App, Call, MASTER_KEY, Redis, Topology, access, gate, ripe};

fn asking(app: &App, token: &str, key: &str) -> Call {
    Call::new("GET", "/api/status/poll").query("token", token).query("key", ripe(app, token, key).1)
}

/// One who waits, with the newest key.
struct Waiter {
    token: String,
    key: String,
}

async fn join(app: &App) -> Waiter {
    let joined = app.post("/api/queue/join", json!({})).await;
    let text = |name: &str| joined.data()[name].as_str().expect("a text").to_owned();
    Waiter { token: text("token"), key: text("key") }
}

async fn join_many(app: &App, count: usize) -> Vec<Waiter> {
    let mut waiters = Vec::new();
    for _ in 0..count {
        waiters.push(join(app).await);
    }
    waiters
}

/// A poll with the newest key, whose successor is kept.
async fn poll(app: &App, waiter: &mut Waiter) -> Answer {
    let answer = app.send(asking(app, &waiter.token, &waiter.key)).await;
    if let Some(key) = answer.data()["key"].as_str() {
        key.clone_into(&mut waiter.key);
    }
    answer
}

fn rank(answer: &Answer) -> Option<u64> {
    answer.data()["rank"].as_u64()
}

#[tokio::test]
async fn many_polls_of_a_second_cost_one_call() {
    let redis = Redis::start(Topology::of_one_node());
    let app = App::on(&redis, |_| {}).await;
    let mut waiters = join_many(&app, 40).await;
    app.pass(100);
    let commands = redis.count_commands(async || {
        for (at, waiter) in waiters.iter_mut().enumerate() {
            let answer = poll(&app, waiter).await;
            assert_eq!((rank(&answer), &answer.data()["totalWaiting"]), (Some(at as u64 + 1), &json!(40)));
        }
    });
    let commands = commands.await;
    let asked: u64 = ["evalsha_ro", "eval_ro"].iter().filter_map(|name| commands.get(*name)).sum();
    assert!((1..=2).contains(&asked) && !commands.contains_key("evalsha"), "{commands:?}");
    let none = redis.count_commands(async || assert_eq!(rank(&poll(&app, &mut waiters[20]).await), Some(21)));
    assert_eq!(none.await, BTreeMap::new());
}

#[tokio::test]
async fn whoever_is_called_is_told_at_once() {
    let app = App::start().await;
    let mut waiters = join_many(&app, 30).await;
    app.pass(1_000);
    // Two seconds after the opening, ten a second.
    assert_eq!(app.tick().await.admitted, 20);
    app.pass(1_001);
    for (at, waiter) in waiters.iter_mut().enumerate() {
        let answer = poll(&app, waiter).await;
        let expected = if at < 20 { "ACTIVE" } else { "WAITING" };
        assert_eq!(answer.data()["status"], expected, "{at}");
        assert_eq!(answer.data()["accessToken"].is_string(), at < 20);
    }
}

#[tokio::test]
async fn a_told_rank_is_never_better_than_the_truth_and_never_worse_than_before() {
    fastrand::seed(7);
    let app = App::with(|sale| {
        sale["admission"]["perSecond"] = json!(6);
        sale["offerings"][0]["sections"][1]["capacity"] = json!(1_000);
    })
    .await;
    let mut waiters = join_many(&app, 90).await;
    let mut told: Vec<u64> = (1..=90).collect();
    let mut from_views = 0;
    for _ in 0..14 {
        app.pass(1_000);
        app.tick().await;
        if fastrand::bool() {
            let gone = fastrand::usize(..waiters.len());
            let leave = Call::new("DELETE", "/api/queue/leave").query("token", waiters.remove(gone).token);
            app.send(leave.from(&format!("198.51.100.{}", fastrand::u8(..)))).await.data();
            told.remove(gone);
        }
        app.pass(fastrand::i64(0..900));
        for (waiter, told) in waiters.iter_mut().zip(&mut told) {
            let truth = rank(&app.poll(&waiter.token).await);
            let before = ripe(&app, &waiter.token, &waiter.key).0;
            let answer = poll(&app, waiter).await;
            let Some(rank) = rank(&answer) else {
                assert_eq!((truth, answer.data()["status"] == "ACTIVE"), (None, true), "{}", answer.text);
                // Called: it plays no part any more, but for its place in the list.
                *waiter = join(&app).await;
                *told = app_rank(&app, &waiter.token).await;
                continue;
            };
            assert!(rank >= truth.expect("waiting as well"), "{rank} is better than {truth:?}");
            assert!(rank <= *told, "{rank} is worse than {told}");
            *told = rank;
            let after = ripe(&app, &waiter.token, &waiter.key).0;
            if after.last_read() == before.last_read() {
                from_views += 1;
            } else {
                assert_eq!(Some(rank), truth, "read again, it is the truth");
            }
        }
    }
    assert!(from_views > 500, "{from_views} answers from views");
}

async fn app_rank(app: &App, token: &str) -> u64 {
    rank(&app.poll(token).await).expect("waiting")
}

#[tokio::test]
async fn a_key_from_before_gains_nothing() {
    let app = App::start().await;
    let mut waiters = join_many(&app, 50).await;
    let old = waiters[40].key.clone();
    app.pass(1_000);
    app.tick().await;
    app.pass(1_001);
    let newest = rank(&poll(&app, &mut waiters[40]).await);
    assert_eq!(newest, Some(21));
    let replayed = app.send(asking(&app, &waiters[40].token, &old)).await;
    assert_eq!(rank(&replayed), newest, "an old key, in the same view");
    let foreign = Call::new("GET", "/api/status/poll").query("token", &waiters[45].token).query("key", &old);
    assert_eq!(rank(&app.send(foreign).await), Some(26), "somebody else's counts as none");
    // Too early is no question at all.
    let early = Call::new("GET", "/api/status/poll")
        .query("token", &waiters[40].token)
        .query("key", &waiters[40].key);
    assert_eq!(app.send(early).await.code(), "RATE_LIMIT");
    // Who has left is told so once the place is read, and a key lets nobody in.
    app.leave(&waiters[40].token).await.data();
    app.pass(600_001);
    assert_eq!(poll(&app, &mut waiters[40]).await.data()["status"], "NOT_FOUND");
}

#[tokio::test]
async fn half_of_the_way_ten_minutes_or_the_end_of_the_sale_ask_for_the_place_itself() {
    let app = App::with(|sale| {
        sale["admission"]["perSecond"] = json!(500);
        sale["admission"]["maxActive"] = json!(100_000);
        sale["offerings"][0]["sections"][1]["capacity"] = json!(100_000);
    })
    .await;
    let mut waiters = join_many(&app, 5_201).await;
    let key_of = |waiter: &Waiter| ripe(&app, &waiter.token, &waiter.key).0.last_read();
    let first = key_of(&waiters[5_200]);
    // Two seconds of credit, then one each.
    for _ in 0..4 {
        app.pass(1_000);
        app.tick().await;
    }
    app.pass(1_501);
    assert_eq!(rank(&poll(&app, &mut waiters[5_200]).await), Some(2_701));
    assert_eq!(key_of(&waiters[5_200]), first, "told from the view");
    app.tick().await;
    app.pass(1_501);
    assert_eq!(rank(&poll(&app, &mut waiters[5_200]).await), Some(1_951));
    let second = key_of(&waiters[5_200]);
    assert_eq!(second.rank, Some(1_951), "3 250 of 5 201 are gone: read");
    let waiter = &mut waiters[5_200];
    app.store
        .change(&app.event, "tests", &store::StatusChange::Pause)
        .await
        .expect("redis answers")
        .expect("changed");
    app.pass(600_000 - 1);
    assert_eq!(rank(&poll(&app, waiter).await), Some(1_951), "paused, the line stands");
    assert_eq!(key_of(waiter), second);
    app.pass(1_502);
    assert_eq!(rank(&poll(&app, waiter).await), Some(1_951));
    assert_ne!(key_of(waiter), second, "ten minutes");
    app.store
        .change(&app.event, "tests", &store::StatusChange::Close)
        .await
        .expect("redis answers")
        .expect("changed");
    app.pass(1_501);
    assert_eq!(poll(&app, waiter).await.data()["status"], "EXPIRED");
}

#[tokio::test]
async fn before_the_opening_the_line_is_told_from_views_too() {
    let app = App::with(|sale| sale["preQueue"] = json!("shuffle")).await;
    app.at(support::OPENS_AT - 30_000);
    let mut waiters = join_many(&app, 5).await;
    let before = ripe(&app, &waiters[0].token, &waiters[0].key).0;
    app.pass(2_000);
    let answer = poll(&app, &mut waiters[0]).await;
    assert_eq!((&answer.data()["status"], rank(&answer)), (&json!("WAITING"), None));
    assert_eq!(
        (&answer.data()["totalWaiting"], &answer.data()["opensAt"]),
        (&json!(5), &json!(support::OPENS_AT))
    );
    assert_eq!(answer.data().get("score"), None);
    assert_eq!(ripe(&app, &waiters[0].token, &waiters[0].key).0.last_read(), before.last_read());
    app.at(support::OPENS_AT);
    assert!(rank(&poll(&app, &mut waiters[0]).await).is_some(), "the opening is read");
}

/// One function instance as Lambda runs them: views and a connection of its own.
struct Instance {
    state: State,
    store: Store,
}

impl Instance {
    fn of(app: &App, redis: &Redis) -> Self {
        let store = Store::new(&redis.config()).expect("an address of Redis");
        let master = MasterKeys::new(MASTER_KEY, None).expect("a master key");
        Self { state: State::new(store.clone(), gate(&app.event), master, access()), store }
    }

    async fn poll(&self, app: &App, waiter: &Waiter, now_ms: i64) -> Value {
        self.store.drive_clock(Millis(now_ms));
        let event = asking(app, &waiter.token, &waiter.key).event();
        let request = gateway::accept(serde_json::from_value(event).expect("an API Gateway event"));
        let response = poll::handle(&self.state, request).await;
        let gateway::Body::Text(text) = response.into_body() else { panic!("an answer is text") };
        serde_json::from_str(&text).expect("JSON")
    }
}

/// Steps that Redis has run for functions.
async fn steps(redis: &Redis) -> u64 {
    let stats: String = redis::cmd("INFO")
        .arg("commandstats")
        .query_async(&mut redis.connection().await)
        .await
        .expect("redis answers");
    let calls = |line: &str| line.split_once("calls=")?.1.split(',').next()?.parse::<u64>().ok();
    stats.lines().filter(|line| line.starts_with("cmdstat_eval")).filter_map(calls).sum()
}

#[tokio::test]
async fn ten_thousand_who_poll_as_told_ask_redis_for_one_poll_in_seven_at_most() {
    // Counted at one server's statistics; a cluster's would be the same, spread.
    let redis = Redis::start(Topology::Single);
    let app = App::on(&redis, |sale| {
        sale["admission"] =
            json!({ "perSecond": 70, "maxActive": 100_000, "activeSeconds": 600, "claimSeconds": 60 });
        sale["offerings"][0]["sections"][1]["capacity"] = json!(100_000);
    })
    .await;
    fastrand::seed(11);
    let mut waiters = join_many(&app, 10_000).await;
    let start = app.now();
    let mut due: BinaryHeap<Reverse<(i64, usize)>> =
        (0..waiters.len()).map(|at| Reverse((start + fastrand::i64(1_000..5_000), at))).collect();
    let mut instances: Vec<Instance> = Vec::new();
    let (mut polls, mut others, mut this_second, mut last_second) = (0_u64, 0_u64, 0_usize, 3_000_usize);
    let before = steps(&redis).await;
    let mut next_tick = start + 1_000;
    while let Some(Reverse((now, at))) = due.pop() {
        while next_tick <= now {
            app.at(next_tick);
            app.tick().await;
            others += 1;
            next_tick += 1_000;
            (last_second, this_second) = (this_second.max(1), 0);
        }
        // Ten requests a second each, as many instances as that takes.
        let instance = this_second % last_second.div_ceil(10);
        while instances.len() <= instance {
            instances.push(Instance::of(&app, &redis));
        }
        let answer = instances[instance].poll(&app, &waiters[at], now).await;
        (polls, this_second) = (polls + 1, this_second + 1);
        let data = &answer["data"];
        match data["status"].as_str() {
            Some("WAITING") => {
                data["key"].as_str().expect("a key").clone_into(&mut waiters[at].key);
                due.push(Reverse((now + data["nextPollMs"].as_i64().expect("an interval"), at)));
            }
            // The claim of a session is a second step, once.
            Some("ACTIVE") => others += 1,
            // On a busy machine Redis may take longer than a poll waits.
            _ => {
                assert_eq!(answer["error"]["code"], "UNAVAILABLE");
                due.push(Reverse((now + 2_000, at)));
            }
        }
    }
    let asked = steps(&redis).await - before - others;
    let share = asked as f64 / polls as f64;
    println!("{polls} polls on {} instances: {asked} calls, {share:.3} each", instances.len());
    assert!(share <= 0.15, "{asked} calls for {polls} polls");
    assert!(polls > 100_000 && instances.len() > 100, "{polls} polls, {} instances", instances.len());
}
