//! What waits behind a sale slows it: bookings that wait to be written, facts that wait for the queues.

use std::time::Duration;

use admit::AdmitState;
use domain::Millis;
use futures::FutureExt;
use futures::future::{BoxFuture, pending};
use outbox::{Backlog, BacklogError, Push, Pushes};
use serde_json::json;
use store::{BookingsWaiting, Load, Tick};
use support::{Answer, App, Redis, Topology};

/// Ten people a second, who wait in a line long enough, and bookings that may wait five seconds.
async fn under_pressure() -> App {
    let app = App::with(|sale| {
        sale["admission"] = json!({ "perSecond": 10, "maxActive": 100_000, "backpressureSeconds": 5 });
    })
    .await;
    for _ in 0..120 {
        app.join().await;
    }
    app.tick().await;
    app
}

/// A tick a second later, that is told of so many bookings.
async fn tick(app: &App, backlog: BookingsWaiting) -> Tick {
    app.pass(1_000);
    app.tick_under(Load { backlog, ..Load::default() }).await
}

fn paced(tick: &Tick) -> (u64, f64) {
    (tick.admitted, tick.pace_factor)
}

#[tokio::test]
async fn admission_slows_with_the_bookings_that_wait_and_recovers_by_itself() {
    let app = under_pressure().await;
    let messages = BookingsWaiting::Messages;
    for (waiting, expected) in [
        (messages(0), (10, 1.0)),
        // Five seconds' worth may wait.
        (messages(50), (10, 1.0)),
        (messages(75), (5, 0.5)),
        (messages(90), (2, 0.2)),
        (messages(100), (0, 0.0)),
        (messages(1_000_000), (0, 0.0)),
        (messages(75), (5, 0.5)),
        (messages(10), (10, 1.0)),
        // Nothing was saved up meanwhile.
        (messages(0), (10, 1.0)),
    ] {
        let tick = tick(&app, waiting).await;
        assert_eq!(paced(&tick), expected, "{waiting:?}");
    }
}

#[tokio::test]
async fn what_is_not_known_yet_changes_nothing_and_what_is_unknown_for_long_stops_admission() {
    let app = under_pressure().await;
    assert_eq!(paced(&tick(&app, BookingsWaiting::Unknown).await), (10, 1.0));
    assert_eq!(paced(&tick(&app, BookingsWaiting::Messages(75)).await), (5, 0.5));
    assert_eq!(paced(&tick(&app, BookingsWaiting::Unknown).await), (5, 0.5), "a new run goes on as the last");
    assert_eq!(paced(&tick(&app, BookingsWaiting::TooMany).await), (0, 0.0));
    assert_eq!(paced(&tick(&app, BookingsWaiting::Unknown).await), (0, 0.0));
    let state = app.store.event_state(&app.event).await.expect("redis answers").expect("the event is known");
    assert!(state.pace_factor.abs() < f64::EPSILON, "an operator sees it: {state:?}");
    assert_eq!(paced(&tick(&app, BookingsWaiting::Messages(0)).await), (10, 1.0));
}

#[tokio::test]
async fn a_sale_that_does_not_ask_for_it_is_never_slowed() {
    let app = App::with(|sale| sale["admission"]["maxActive"] = json!(1_000)).await;
    for _ in 0..60 {
        app.join().await;
    }
    app.tick().await;
    for waiting in
        [BookingsWaiting::TooMany, BookingsWaiting::Messages(u64::from(u32::MAX)), BookingsWaiting::Unknown]
    {
        assert_eq!(paced(&tick(&app, waiting).await), (10, 1.0));
    }
}

/// Takes pushes and a question, and never answers.
struct Silent;

impl Pushes for Silent {
    fn push(&self, _: Vec<Push>) -> BoxFuture<'_, ()> {
        pending().boxed()
    }
}

impl Backlog for Silent {
    fn bookings(&self) -> BoxFuture<'_, Result<u64, BacklogError>> {
        pending().boxed()
    }
}

#[tokio::test]
async fn ticks_wait_for_no_queue() {
    // A Redis of its own: a run ticks all sales that it finds.
    let redis = Redis::start(Topology::of_one_node());
    let app = App::on(&redis, |sale| {
        sale["opensAt"] = json!(Millis::now().0 - 60_000);
        sale["closesAt"] = json!(Millis::now().0 + 60_000);
        sale["admission"]["backpressureSeconds"] = json!(5);
    })
    .await;
    // Redis' own clock.
    app.at(0);
    for _ in 0..20 {
        app.join().await;
    }
    let state = AdmitState {
        store: app.store.clone(),
        pushes: Box::new(Silent),
        backlog: Box::new(Silent),
        journal_limit: store::JOURNAL_LIMIT,
    };
    admit::run(&state, Duration::from_secs(2)).await.expect("redis answers");
    let ticked = app.tick().await;
    assert!(ticked.active > 0, "{ticked:?}");
}

/// A tick that bears so many facts.
async fn bear(app: &App, journal_limit: u64) -> Tick {
    app.tick_under(Load { journal_limit, ..Load::default() }).await
}

/// What a relay does.
async fn forget_all_but(app: &App, left: u64) {
    let page = app.store.journal(&app.event, None, u64::MAX >> 1).await.expect("redis answers");
    let left = usize::try_from(left).expect("few");
    let ids: Vec<_> = page.facts.iter().rev().skip(left).map(|fact| fact.id).collect();
    app.store.forget(&app.event, &ids).await.expect("redis answers");
    assert_eq!(app.journal_length().await, left as u64);
}

fn assert_refused(answer: &Answer) {
    assert_eq!((answer.status, answer.code()), (503, "UNAVAILABLE"));
    assert_eq!(answer.header("retry-after"), Some("10"));
}

#[tokio::test]
async fn a_full_journal_refuses_new_places_and_nothing_else() {
    let app = App::with(|sale| sale["admission"]["maxActive"] = json!(1)).await;
    let expired = app.active().await;
    app.pass(180_000);
    app.tick().await;
    let lapsed = app.join().await;
    for ms in [1_000, 15_000] {
        app.pass(ms);
        app.tick().await;
    }
    let (buyer, waiting) = (app.active().await, app.join().await);
    let limit = app.journal_length().await;
    assert!(!bear(&app, limit + 1).await.joins_refused);
    assert!(bear(&app, limit).await.joins_refused);

    assert_refused(&app.post("/api/queue/join", json!({})).await);
    let stranger = "6f9619ff-8b86-4d01-b42d-00cf4fc964ff";
    assert_refused(&app.rejoin(stranger).await);
    assert_refused(&app.rejoin(&expired).await);
    assert_eq!(app.poll(&expired).await.data()["status"], "EXPIRED", "refused, and nothing half done");
    assert_eq!(app.rejoin(&lapsed).await.data()["status"], "WAITING", "its place was there before");
    assert_eq!(app.rejoin(&waiting).await.data()["status"], "WAITING");
    assert_eq!(app.poll(&waiting).await.data()["rank"], 2);
    app.hold(&buyer, json!({ "offeringId": "T1", "seats": ["1A"] })).await.data();
    let booked = app.book(&buyer, json!({})).await;
    assert_eq!(booked.status, 201);
    assert_eq!(app.leave(&waiting).await.data()["removed"], true);
    let written = app.journal_length().await;
    assert!(written > limit, "no fact is left out");

    // It ends by itself, once half of what is bearable is left, and not before.
    forget_all_but(&app, limit / 2 + 1).await;
    assert!(bear(&app, limit).await.joins_refused);
    assert_refused(&app.post("/api/queue/join", json!({})).await);
    forget_all_but(&app, limit / 2).await;
    assert!(!bear(&app, limit).await.joins_refused);
    app.join().await;
    assert_eq!(app.rejoin(&expired).await.data()["status"], "WAITING");
}
