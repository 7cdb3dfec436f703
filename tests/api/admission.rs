//! Admission: credit by elapsed time, limits, no-shows, schedulers that overlap.

use admit::Pressure;
use futures::future::join_all;
use serde_json::{Value, json};
use store::Load;
use support::{App, OPENS_AT, Redis, Topology};

/// A sale that admits `per_second` and keeps as many as it likes, with `waiting` people in its line.
async fn sale_with(per_second: u32, waiting: usize, change: impl FnOnce(&mut Value)) -> (App, Vec<String>) {
    let app = App::with(|sale| {
        sale["admission"]["perSecond"] = json!(per_second);
        sale["admission"]["maxActive"] = json!(100_000);
        change(sale);
    })
    .await;
    app.at(OPENS_AT);
    let mut tokens = Vec::with_capacity(waiting);
    for _ in 0..waiting {
        tokens.push(app.join().await);
    }
    (app, tokens)
}

#[tokio::test]
async fn credit_grows_with_time_and_banks_two_seconds() {
    let (app, _) = sale_with(10, 60, |_| {}).await;
    assert_eq!(app.tick().await.admitted, 0, "nothing at the very opening");
    app.pass(500);
    assert_eq!(app.tick().await.admitted, 5);
    assert_eq!(app.tick().await.admitted, 0, "no time, no credit");
    app.pass(1_000);
    assert_eq!(app.tick().await.admitted, 10);
    app.pass(60_000);
    assert_eq!(app.tick().await.admitted, 20, "one second and one missed tick are banked, no more");
    app.at(OPENS_AT);
    assert_eq!(app.tick().await.admitted, 0, "a clock that goes back gives nothing");
}

#[tokio::test]
async fn parts_of_a_person_add_up() {
    let (app, _) = sale_with(3, 20, |sale| sale["admission"]["perSecond"] = json!(0.7)).await;
    let mut admitted = 0;
    for _ in 0..20 {
        app.pass(1_000);
        admitted += app.tick().await.admitted;
    }
    assert_eq!(admitted, 14);
}

#[tokio::test]
async fn nobody_is_admitted_before_the_opening_and_nothing_is_banked() {
    let (app, _) = sale_with(10, 50, |_| {}).await;
    app.at(OPENS_AT - 10_000);
    assert_eq!(app.tick().await.admitted, 0);
    app.at(OPENS_AT + 100);
    assert_eq!(app.tick().await.admitted, 1);
}

#[tokio::test]
async fn people_are_called_in_order() {
    let (app, tokens) = sale_with(7, 21, |_| {}).await;
    for round in 0..3 {
        app.pass(1_000);
        assert_eq!(app.tick().await.admitted, 7);
        for (at, token) in tokens.iter().enumerate() {
            let expected = if at < 7 * (round + 1) { "ACTIVE" } else { "WAITING" };
            assert_eq!(app.poll(token).await.data()["status"], expected, "{at} in round {round}");
        }
    }
}

#[tokio::test]
async fn two_schedulers_with_late_ticks_keep_the_pace() {
    let per_second = 70_u64;
    let (app, _) = sale_with(70, 0, |_| {}).await;
    join_many(&app, 4_500).await;
    // Runs that start at 5, 50 and 20 s of their minutes and tick for 120 s, each tick late by up to a second.
    let mut ticks: Vec<i64> = Vec::new();
    let mut random = fastrand::Rng::with_seed(7);
    for start_ms in [-55_000_i64, -10_000, 20_000] {
        ticks.extend((0..120).map(|tick| start_ms + tick * 1_000 + random.i64(0..1_000)));
    }
    ticks.retain(|at| (0..=60_000).contains(at));
    ticks.sort_unstable();
    let mut history: Vec<(i64, u64)> = Vec::new();
    for at in ticks {
        app.at(OPENS_AT + at);
        history.push((at, app.tick().await.admitted));
    }
    let total: u64 = history.iter().map(|(_, admitted)| admitted).sum();
    println!("{total} admitted in a minute");
    assert!((4_130..=4_270).contains(&total), "{total}");
    for from in 0..history.len() {
        let mut within = 0;
        for (at, admitted) in &history[from..] {
            within += admitted;
            let window_ms = u64::try_from(at - history[from].0).expect("sorted");
            // What the pace allows in the window, and what one late tick had banked before it.
            assert!(within <= per_second * window_ms / 1_000 + 2 * per_second, "{within} in {window_ms} ms");
        }
    }
}

/// Joins without the HTTP layer, many at a time.
async fn join_many(app: &App, count: usize) {
    let address = domain::outcome::Address::of("203.0.113.8".parse().expect("an address"));
    let join = domain::command::Join { event: app.event.clone(), address, account: None };
    let draw = |token| store::Drawn { token, score: 0 };
    for chunk in (0..count).collect::<Vec<_>>().chunks(500) {
        let joins = chunk.iter().map(|_| app.store.join(&join, draw(domain::Token::random()), draw));
        for joined in join_all(joins).await {
            joined.expect("redis answers").expect("joined");
        }
    }
}

#[tokio::test]
async fn two_schedulers_at_the_same_instant_admit_once() {
    let (app, tokens) = sale_with(10, 40, |_| {}).await;
    let mut admitted = 0;
    for _ in 0..3 {
        app.pass(1_000);
        let ticks = join_all((0..8).map(|_| app.tick())).await;
        admitted += ticks.iter().map(|tick| tick.admitted).sum::<u64>();
    }
    assert_eq!(admitted, 30);
    assert_eq!(app.poll(&tokens[30]).await.data()["rank"], 1);
}

#[tokio::test]
async fn max_active_holds_and_free_slots_are_taken_at_the_next_tick() {
    let (app, tokens) = sale_with(10, 20, |sale| sale["admission"]["maxActive"] = json!(3)).await;
    app.pass(1_000);
    assert_eq!(app.tick().await.admitted, 3);
    app.pass(1_000);
    assert_eq!(app.tick().await.admitted, 0);
    app.poll(&tokens[0]).await.data();
    app.book(&tokens[0], json!({ "seatCount": 1 })).await.data();
    app.leave(&tokens[1]).await.data();
    app.pass(1_000);
    let tick = app.tick().await;
    assert_eq!((tick.admitted, tick.active), (2, 3));
    // Nobody comes: all three lapse, and three follow in the same tick.
    app.pass(15_000);
    let tick = app.tick().await;
    assert_eq!((tick.lapsed, tick.admitted), (3, 3));
}

#[tokio::test]
async fn sessions_that_end_free_their_slots() {
    let (app, tokens) = sale_with(10, 5, |sale| sale["admission"]["maxActive"] = json!(2)).await;
    app.pass(1_000);
    app.tick().await;
    for token in &tokens[..2] {
        assert_eq!(app.poll(token).await.data()["status"], "ACTIVE");
    }
    app.pass(180_000);
    let tick = app.tick().await;
    assert_eq!((tick.expired, tick.lapsed, tick.admitted), (2, 0, 2));
}

#[tokio::test]
async fn nobody_is_admitted_while_nothing_is_free() {
    let (app, _) = sale_with(10, 0, |sale| {
        sale["offerings"] = json!([{ "id": "T1", "date": "2027-02-05", "sections": [
            { "id": "G", "name": "입석", "price": 5, "capacity": 2 }] }]);
    })
    .await;
    let holder = app.active().await;
    let held = app.hold(&holder, json!({ "count": 2 })).await;
    app.join().await;
    app.pass(1_000);
    assert_eq!(app.tick().await.admitted, 0, "all are held");
    app.at(held.data()["holdExpiresAt"].as_i64().expect("an instant"));
    let tick = app.tick().await;
    assert_eq!((tick.reaped, tick.admitted), (1, 1), "the tick that gives them back goes on");
}

#[tokio::test]
async fn a_paused_sale_admits_nobody_and_banks_nothing() {
    let (app, tokens) = sale_with(10, 50, |_| {}).await;
    let change = |change| app.store.change(&app.event, "tests", change);
    change(&store::StatusChange::Pause).await.expect("redis answers").expect("known");
    app.pass(10_000);
    assert_eq!(app.tick().await.admitted, 0);
    let polled = app.poll(&tokens[5]).await;
    assert_eq!(
        (&polled.data()["status"], &polled.data()["estimatedWaitSeconds"]),
        (&json!("WAITING"), &Value::Null)
    );
    app.join().await;
    change(&store::StatusChange::Open).await.expect("redis answers").expect("known");
    app.pass(1_000);
    assert_eq!(app.tick().await.admitted, 10);
}

#[tokio::test]
async fn no_shows_are_made_up_for_up_to_twice_the_pace() {
    let (app, tokens) = sale_with(10, 400, |sale| sale["admission"]["compensateNoShows"] = json!(true)).await;
    let mut calls = Vec::new();
    let mut arrivals = 0_u64;
    let mut next = 0_usize;
    for second in 1..=60_i64 {
        app.pass(1_000);
        let tick = app.tick().await;
        calls.push(tick.admitted);
        // Every second called person comes.
        let called = usize::try_from(tick.admitted).expect("a small number");
        for token in tokens.iter().skip(next).take(called).step_by(2) {
            app.poll(token).await.data();
            arrivals += 1;
        }
        next += called;
        assert!(tick.admitted <= 20, "{} calls in a second", tick.admitted);
        assert!(arrivals <= 10 * u64::try_from(second).expect("positive") + 20, "{arrivals} in {second} s");
        if next + 20 > tokens.len() {
            break;
        }
    }
    assert!(calls.iter().skip(16).any(|called| *called > 10), "no-shows were not made up for: {calls:?}");
    assert!(calls[..15].iter().all(|called| *called <= 10), "nobody had lapsed yet: {calls:?}");
}

#[tokio::test]
async fn a_new_pace_holds_from_the_next_tick() {
    let (app, _) = sale_with(10, 60, |_| {}).await;
    app.pass(1_000);
    assert_eq!(app.tick().await.admitted, 10);
    let mut faster = support::sale(app.event.as_str());
    faster["admission"] = json!({ "perSecond": 25, "maxActive": 100_000 });
    assert_eq!(app.apply(&faster).await, 2);
    app.pass(1_000);
    assert_eq!(app.tick().await.admitted, 25);
}

#[tokio::test]
async fn a_scheduled_run_ticks_every_sale_and_ends_at_once_without_one() {
    // A Redis of its own: a run ticks all sales that it finds.
    let redis = Redis::start(Topology::of_one_node());
    let app = App::on(&redis, |_| {}).await;
    let token = app.join().await;
    app.pass(1_000);
    assert!(
        admit::tick_all(&app.store, Load::default()).await.expect("redis answers"),
        "an open sale goes on"
    );
    assert_eq!(app.poll(&token).await.data()["status"], "ACTIVE");
    let pressure = Pressure::new(store::JOURNAL_LIMIT);
    for ended_at in [OPENS_AT - 120_001, OPENS_AT + 86_400_000] {
        app.at(ended_at);
        let run =
            tokio::time::timeout(admit::INTERVAL, admit::run_ticks(&app.store, &pressure, admit::RUN)).await;
        run.expect("nothing to tick").expect("redis answers");
    }
    app.at(OPENS_AT - 120_000);
    assert!(admit::tick_all(&app.store, Load::default()).await.expect("redis answers"), "about to open");
}
