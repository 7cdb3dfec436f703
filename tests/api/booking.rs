//! Booking: the plain form and from holds; replay; reading back; cancelling exactly once.

use futures::future::join_all;
use serde_json::{Value, json};
use support::{Answer, App, Call, OPENS_AT, fresh_event};

async fn read(app: &App, id: &str, token: &str) -> Answer {
    app.send(Call::new("GET", &format!("/api/booking/{id}")).query("token", token)).await
}

async fn cancel(app: &App, id: &str, token: &str) -> Answer {
    app.send(Call::new("DELETE", &format!("/api/booking/{id}")).query("token", token)).await
}

fn id(booked: &Answer) -> String {
    booked.data()["reservationId"].as_str().expect("an id").to_owned()
}

#[tokio::test]
async fn the_plain_form_buys_from_the_default_section_in_one_step() {
    let app = App::start().await;
    let token = app.active().await;
    let booked = app.book(&token, json!({ "seatCount": 2 })).await;
    assert_eq!(booked.status, 201);
    let data = booked.data();
    assert_eq!((&data["seatCount"], &data["amount"], &data["seats"]), (&json!(2), &json!(1_000), &json!([])));
    assert_eq!((&data["status"], &data["remainingSeats"]), (&json!("CONFIRMED"), &json!(26)));
    assert!(id(&booked).starts_with(&format!("{}.", app.event)));
    assert_eq!(booked.header("location"), Some(format!("/api/booking/{}", id(&booked)).as_str()));
}

#[tokio::test]
async fn the_plain_form_finds_named_seats_too() {
    let app = App::start().await;
    let token = app.active().await;
    let booked = app.book(&token, json!({ "seatCount": 3, "offeringId": "T1", "sectionId": "A" })).await;
    assert_eq!(booked.data()["seats"], json!(["1A", "1B", "1C"]));
    let other = app.active().await;
    let refused = app.hold(&other, json!({ "offeringId": "T1", "seats": ["1C"] })).await;
    assert_eq!(refused.code(), "SEAT_TAKEN");
}

#[tokio::test]
async fn the_same_request_again_is_the_same_reservation_and_another_is_refused() {
    let app = App::start().await;
    let token = app.active().await;
    let first = app.book(&token, json!({ "seatCount": 2 })).await;
    let again = app.book(&token, json!({ "seatCount": 2 })).await;
    assert_eq!((again.status, again.data()), (201, first.data()));
    for other in [
        json!({ "seatCount": 1 }),
        json!({}),
        json!({ "seatCount": 2, "offeringId": "T1", "sectionId": "A" }),
    ] {
        let refused = app.book(&token, other).await;
        assert_eq!((refused.status, refused.code()), (409, "ALREADY_BOOKED"));
    }
    assert_eq!(app.remaining().await, 26);
    app.at(OPENS_AT + 86_400_000);
    assert_eq!(app.book(&token, json!({ "seatCount": 2 })).await.status, 201, "also when the sale is over");
}

#[tokio::test]
async fn booking_needs_a_live_session() {
    let app = App::start().await;
    let waiting = app.join().await;
    assert_eq!(app.book(&waiting, json!({ "seatCount": 1 })).await.code(), "NOT_ADMITTED");
    let token = app.active().await;
    app.pass(180_000);
    assert_eq!(app.book(&token, json!({ "seatCount": 1 })).await.code(), "ADMISSION_EXPIRED");
    let unknown = app.book(&token, json!({ "seatCount": 1, "eventId": fresh_event() })).await;
    assert_eq!((unknown.status, unknown.code()), (404, "EVENT_NOT_FOUND"));
    assert_eq!(app.remaining().await, 28);
}

#[tokio::test]
async fn acting_is_arriving() {
    let app = App::start().await;
    let token = app.join().await;
    app.pass(1_000);
    app.tick().await;
    assert_eq!(
        app.book(&token, json!({ "seatCount": 1 })).await.status,
        201,
        "a called token that never polled"
    );
}

#[tokio::test]
async fn what_cannot_be_bought_is_told() {
    let app = App::start().await;
    let token = app.active().await;
    let book = |purchase: Value| app.book(&token, purchase);
    let nothing = book(json!({})).await;
    assert_eq!((nothing.status, nothing.code()), (409, "NOTHING_HELD"));
    let limited = book(json!({ "seatCount": 5 })).await;
    assert_eq!(
        (limited.code(), limited.details()),
        ("PURCHASE_LIMIT_EXCEEDED", &json!({ "limit": 4, "used": 0, "requested": 5 }))
    );
    assert_eq!(book(json!({ "seatCount": 1, "offeringId": "T9" })).await.code(), "OFFERING_NOT_FOUND");
    assert_eq!(
        book(json!({ "seatCount": 1, "offeringId": "T1", "sectionId": "Z" })).await.code(),
        "SECTION_NOT_FOUND"
    );
    let small = book(json!({ "seatCount": 3, "offeringId": "T2", "sectionId": "A" })).await;
    assert_eq!((small.code(), &small.details()["remaining"]), ("SOLD_OUT", &json!(2)));
    app.hold(&token, json!({ "offeringId": "T1", "seats": ["1A"] })).await.data();
    let both = book(json!({ "seatCount": 1 })).await;
    assert_eq!(
        (both.status, both.code(), &both.details()["field"]),
        (400, "INVALID_REQUEST", &json!("seatCount"))
    );
    assert_eq!(app.remaining().await, 27);
}

#[tokio::test]
async fn a_reservation_is_read_by_its_owner_alone() {
    let app = App::start().await;
    let (token, other) = (app.active().await, app.active().await);
    app.hold(&token, json!({ "offeringId": "T1", "seats": ["1A", "1B"] })).await.data();
    app.hold(&token, json!({ "count": 1 })).await.data();
    let id = id(&app.book(&token, json!({})).await);
    let reservation = read(&app, &id, &token).await;
    let data = reservation.data();
    assert_eq!(
        (&data["status"], &data["seatCount"], &data["amount"]),
        (&json!("CONFIRMED"), &json!(3), &json!(2_500))
    );
    assert_eq!(
        data["places"],
        json!([
            { "offeringId": "T1", "sectionId": "A", "price": 1_000, "count": 2, "seats": ["1A", "1B"] },
            { "offeringId": "T1", "sectionId": "G", "price": 500, "count": 1, "seats": [] },
        ])
    );
    assert!(!reservation.text.contains(&token));
    for answer in [read(&app, &id, &other).await, cancel(&app, &id, &other).await] {
        assert_eq!((answer.status, answer.code()), (404, "RESERVATION_NOT_FOUND"));
    }
    let anonymous = app.send(Call::new("GET", &format!("/api/booking/{id}"))).await;
    assert_eq!((anonymous.status, anonymous.code()), (401, "UNAUTHORIZED"));
    for unknown in [
        format!("{}.{}", app.event, domain::Token::random()),
        format!("{}.{}", fresh_event(), domain::Token::random()),
    ] {
        assert_eq!(read(&app, &unknown, &token).await.code(), "RESERVATION_NOT_FOUND");
        assert_eq!(cancel(&app, &unknown, &token).await.code(), "RESERVATION_NOT_FOUND");
    }
}

#[tokio::test]
async fn cancelling_returns_everything_exactly_once() {
    let app = App::start().await;
    let token = app.active().await;
    app.hold(&token, json!({ "offeringId": "T1", "seats": ["1A", "1B"] })).await.data();
    app.hold(&token, json!({ "count": 2 })).await.data();
    let id = id(&app.book(&token, json!({})).await);
    assert_eq!(app.remaining().await, 24);
    let answers = join_all((0..10).map(|_| cancel(&app, &id, &token))).await;
    for answer in &answers {
        assert_eq!(answer.data()["status"], "CANCELLED");
    }
    assert_eq!(app.remaining().await, 28);
    assert_eq!(read(&app, &id, &token).await.data()["status"], "CANCELLED");
    let other = app.active().await;
    app.hold(&other, json!({ "offeringId": "T1", "seats": ["1A", "1B"] })).await.data();
    cancel(&app, &id, &token).await.data();
    assert_eq!(
        app.hold(&other, json!({ "offeringId": "T1", "seats": ["1A", "1B"] })).await.status,
        200,
        "still its own"
    );
    assert_eq!(app.remaining().await, 26);
}

#[tokio::test]
async fn cancelling_goes_on_when_the_sale_is_over() {
    let app = App::start().await;
    let token = app.active().await;
    let id = id(&app.book(&token, json!({ "seatCount": 1 })).await);
    app.at(OPENS_AT + 86_400_000);
    assert_eq!(cancel(&app, &id, &token).await.data()["status"], "CANCELLED");
}

#[tokio::test]
async fn a_deferred_payment_waits_until_its_due_instant() {
    let after =
        App::with(|sale| sale["payment"] = json!({ "mode": "deferred", "dueAfterSeconds": 300 })).await;
    let token = after.active().await;
    let booked = after.book(&token, json!({ "seatCount": 1 })).await;
    assert_eq!(
        (&booked.data()["status"], &booked.data()["paymentDueAt"]),
        (&json!("PENDING_PAYMENT"), &json!(after.now() + 300_000))
    );
    let due_at = OPENS_AT + 3 * 86_400_000;
    let fixed = App::with(|sale| sale["payment"] = json!({ "mode": "deferred", "dueAt": due_at })).await;
    let token = fixed.active().await;
    let booked = fixed.book(&token, json!({ "seatCount": 1 })).await;
    assert_eq!(booked.data()["paymentDueAt"], due_at);
    assert_eq!(read(&fixed, &id(&booked), &token).await.data()["paymentDueAt"], due_at);
}

#[tokio::test]
async fn a_crowd_never_buys_one_seat_too_many() {
    let app = App::with(|sale| sale["admission"] = json!({ "perSecond": 1_000, "maxActive": 1_000 })).await;
    let tokens = join_all((0..100).map(|_| app.join())).await;
    app.pass(1_000);
    assert_eq!(app.tick().await.admitted, 100);
    let answers = join_all(
        tokens.iter().enumerate().map(|(at, token)| app.book(token, json!({ "seatCount": 1 + at % 3 }))),
    )
    .await;
    let sold: u64 = answers
        .iter()
        .filter(|answer| answer.status == 201)
        .map(|answer| answer.data()["seatCount"].as_u64().expect("a count"))
        .sum();
    assert_eq!(sold, 10, "all of the section and no more");
    assert!(answers.iter().filter(|answer| answer.status != 201).all(|answer| answer.code() == "SOLD_OUT"));
    assert_eq!(app.remaining().await, 18);
}
