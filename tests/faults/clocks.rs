//! Clocks that step back or differ, and instants that a calendar makes tricky: nobody is let in too fast or held up for long,
//! and a payment and its deadline never both win.

use std::collections::BTreeMap;

use domain::Millis;
use futures::FutureExt;
use futures::future::{LocalBoxFuture, join_all};
use gateway::PlaceKey;
use serde_json::{Value, json};
use store::Load;
use support::{Answer, App, Call, OPENS_AT, Redis, Topology};

/// How far instances' clocks are apart.
const APART_MS: i64 = 3 * 60_000;

async fn pay(app: &App, reservation: &str) -> Answer {
    let payment = json!({
        "paymentId": format!("p-{reservation}"), "reservationId": reservation, "status": "PAID", "amount": 500,
        "currency": "KRW",
    });
    app.send(App::webhook(&payment)).await
}

/// One place for 500: owner and reservation.
async fn booked(app: &App) -> (String, Value) {
    let token = app.active().await;
    let booked = app.book(&token, json!({ "seatCount": 1 })).await;
    assert_eq!(booked.status, 201, "{}", booked.text);
    (token, booked.data().clone())
}

async fn status(app: &App, token: &str, reservation: &str) -> Value {
    let call = Call::new("GET", &format!("/api/booking/{reservation}")).query("token", token);
    app.send(call).await.data()["status"].clone()
}

async fn sweep(app: &App) {
    admit::tick_event(&app.store, &app.event, Load::default()).await;
}

/// How often the journal tells each kind.
async fn told(app: &App) -> BTreeMap<&'static str, usize> {
    let page = app.store.journal(&app.event, None, u64::MAX >> 1).await.expect("redis answers");
    let mut told = BTreeMap::new();
    for fact in page.facts {
        *told.entry(fact.what.kind()).or_default() += 1;
    }
    told
}

/// Ticks a second apart: how many each let in.
async fn ticks(app: &App, count: usize) -> Vec<u64> {
    let mut admitted = Vec::new();
    for _ in 0..count {
        app.pass(1_000);
        admitted.push(app.tick().await.admitted);
    }
    admitted
}

#[tokio::test]
async fn a_clock_that_steps_back_holds_up_the_line_for_a_tick_and_lets_in_nobody_more() {
    for back_ms in [500, 2_000, 5_000, 3_600_000] {
        let app = App::with(|sale| {
            sale["opensAt"] = json!(OPENS_AT - 86_400_000);
            sale["admission"] = json!({ "perSecond": 10, "maxActive": 1_000 });
        })
        .await;
        let token = app.active().await;
        for _ in 0..150 {
            app.join().await;
        }
        assert_eq!(ticks(&app, 4).await[1..], [10, 10, 10]);
        assert_eq!(app.hold(&token, json!({ "offeringId": "T1", "seats": ["1A"] })).await.status, 200);

        app.pass(-back_ms);
        let admitted = ticks(&app, 5).await;
        let most = 10 * 5 + 20;
        assert!(admitted.iter().sum::<u64>() <= most, "{back_ms} ms back: {admitted:?}");
        assert_eq!(admitted[3..], [10, 10], "{back_ms} ms back: {admitted:?}");
        // What was held stays held, and is sold.
        let other = app.join().await;
        assert_eq!(app.poll(&other).await.status, 200);
        assert_eq!(app.book(&token, json!({})).await.data()["seats"], json!(["1A"]));
        assert_eq!(app.remaining().await, 27);
    }
}

#[tokio::test]
async fn instances_whose_clocks_are_minutes_apart_hold_up_nobody_who_waits() {
    let app = App::start().await;
    let (first, token) = (app.join().await, app.join().await);
    let token = token.parse().expect("a token");
    for apart_ms in [-APART_MS, APART_MS] {
        // The key of an answer by the other instance, a moment ago by any clock that is right.
        let answered_at = Millis::now().plus(apart_ms);
        let place = PlaceKey {
            epoch: 1,
            score: 2,
            rank: Some(2),
            ticket_number: Some(2),
            ticket_count: Some(0),
            net: 0,
            read_at: Millis(app.now()),
            earliest_at: PlaceKey::earliest_after(answered_at, 1_000),
            interval_ms: 1_000,
        };
        let key = app.state().keys.sign(&app.event, token, &place);
        let poll = Call::new("GET", "/api/status/poll").query("token", token).query("key", key);
        let answer = app.send(poll).await;
        assert_eq!((answer.status, &answer.data()["rank"]), (200, &json!(2)), "{apart_ms} ms");
    }
    assert_eq!(app.poll(&first).await.data()["rank"], 1);
}

/// Due instants as a sale's file writes them, and what they are.
const DUE: [(&str, i64); 6] = [
    ("2096-10-06T23:59:59+09:00", 4_000_373_999_000),
    ("2096-10-06T23:59:59.999+09:00", 4_000_373_999_999),
    // Half past two comes twice in this night of Berlin's.
    ("2096-10-28T02:30:00+02:00", 4_002_222_600_000),
    ("2096-10-28T02:30:00+01:00", 4_002_226_200_000),
    // And here a second before three is a second before two.
    ("2097-03-31T01:59:59+01:00", 4_015_529_999_000),
    ("2097-03-31T03:00:00+02:00", 4_015_530_000_000),
];

#[tokio::test]
async fn a_payment_is_due_at_the_instant_that_its_offset_says() {
    for (text, due_at) in DUE {
        let app = App::with(|sale| {
            sale["payment"] = json!({ "mode": "deferred", "dueAt": text, "currency": "KRW" });
        })
        .await;
        let ((prompt, paid), (late, unpaid)) = (booked(&app).await, booked(&app).await);
        assert_eq!(paid["paymentDueAt"], due_at, "{text}");
        let id = |reservation: &Value| reservation["reservationId"].as_str().expect("an id").to_owned();
        let (paid, unpaid) = (id(&paid), id(&unpaid));
        app.at(due_at - 1);
        sweep(&app).await;
        assert_eq!(pay(&app, &paid).await.data()["status"], "PAID", "{text}: a millisecond early");
        app.pass(1);
        let answer = pay(&app, &unpaid).await;
        assert_eq!(
            (answer.status, answer.code()),
            (409, "BOOKING_NOT_PAYABLE"),
            "{text}: in that millisecond"
        );
        sweep(&app).await;
        assert_eq!(status(&app, &prompt, &paid).await, "PAID");
        assert_eq!(status(&app, &late, &unpaid).await, "EXPIRED");
    }
}

/// Eight reservations, paid by an instance with one clock while another one sweeps by its own, `payer_ms` and `sweeper_ms`
/// from the due instant. How many were paid; all others have expired.
async fn race(payer_ms: i64, sweeper_ms: i64, payer_first: bool) -> usize {
    let payer = App::with(|sale| {
        sale["payment"] = json!({ "mode": "deferred", "dueAfterSeconds": 3_600, "currency": "KRW" });
    })
    .await;
    let mut reservations = Vec::new();
    for _ in 0..8 {
        reservations.push(booked(&payer).await);
    }
    let due_at = |at: usize| reservations[at].1["paymentDueAt"].as_i64().expect("an instant");
    // All are due by then, or none is yet.
    let (first, last) = (due_at(0), due_at(7));
    let at = |off_ms: i64| if off_ms < 0 { first + off_ms } else { last + off_ms };
    let sweeper = payer.instance(&Redis::shared(Topology::chosen()).config());
    payer.at(at(payer_ms));
    sweeper.at(at(sweeper_ms));
    let mut calls: Vec<LocalBoxFuture<'_, ()>> = Vec::new();
    for (_, reservation) in &reservations {
        let id = reservation["reservationId"].as_str().expect("an id");
        let payer = &payer;
        calls.push(
            async move {
                let answer = pay(payer, id).await;
                assert!(answer.status == 200 || answer.code() == "BOOKING_NOT_PAYABLE", "{}", answer.text);
            }
            .boxed_local(),
        );
        calls.push(sweep(&sweeper).boxed_local());
    }
    if !payer_first {
        calls.reverse();
    }
    join_all(calls).await;
    sweep(&sweeper).await;

    let told = told(&payer).await;
    let count = |kind| told.get(kind).copied().unwrap_or_default();
    let (paid, expired) = (count("PAID"), count("BOOKING_EXPIRED"));
    let mut statuses = BTreeMap::new();
    for (token, reservation) in &reservations {
        let id = reservation["reservationId"].as_str().expect("an id");
        *statuses.entry(status(&payer, token, id).await.to_string()).or_insert(0) += 1;
    }
    assert_eq!(statuses.get("\"PAID\"").copied().unwrap_or(0), paid, "{told:?}");
    assert_eq!(statuses.get("\"EXPIRED\"").copied().unwrap_or(0), expired, "{told:?}");
    if sweeper_ms >= 0 || payer_ms < 0 {
        assert_eq!(paid + expired, 8, "{told:?}");
    }
    assert_eq!(count("REFUND_DUE"), 8 - paid, "money that bought nothing goes back: {told:?}");
    assert_eq!(payer.remaining().await, 28 - 8 + u64::try_from(expired).expect("a count"));
    paid
}

#[tokio::test]
async fn a_payment_and_the_sweep_at_the_same_instant_have_one_winner() {
    for payer_first in [true, false] {
        assert_eq!(race(-1_000, -1_000, payer_first).await, 8, "a second early: the sweep finds nothing");
        assert_eq!(race(0, 0, payer_first).await, 0, "due: paying is late");
        assert_eq!(race(1_000, 1_000, payer_first).await, 0);
        // Clocks that differ: whoever comes first wins, and the other one finds it so.
        let mut paid = 0;
        for _ in 0..5 {
            paid += race(-1_000, 1_000, payer_first).await;
        }
        println!("{paid} of 40 paid where the payment is in time and the sweep is not early");
    }
}
