//! Idempotency-Key: a success is answered again as it was, and nothing happens twice.

use futures::future::join_all;
use serde_json::{Value, json};
use support::{Answer, App, Call, OPENS_AT};

async fn keyed(app: &App, key: &str, path: &str, body: &Value) -> Answer {
    app.send(Call::new("POST", path).header("Idempotency-Key", key).json(body)).await
}

fn count(token: &str, count: u32) -> Value {
    json!({ "token": token, "count": count })
}

const SELECT: &str = "/api/seat/select";
const RELEASE: &str = "/api/seat/cancel";
const BOOKING: &str = "/api/booking";

#[tokio::test]
async fn a_repeated_select_adds_nothing() {
    let app = App::start().await;
    let token = app.active().await;
    let first = keyed(&app, "a", SELECT, &count(&token, 2)).await;
    assert_eq!((first.status, app.remaining().await), (200, 26));
    app.pass(5_000);
    let body = count(&token, 2);
    for again in join_all((0..20).map(|_| keyed(&app, "a", SELECT, &body))).await {
        assert_eq!((again.status, again.data()), (200, first.data()));
    }
    assert_eq!(app.remaining().await, 26);
    assert_eq!(keyed(&app, "b", SELECT, &count(&token, 2)).await.status, 200, "another key is another wish");
    assert_eq!(app.remaining().await, 24);
}

#[tokio::test]
async fn parallel_requests_of_one_name_are_one() {
    let app = App::start().await;
    let token = app.active().await;
    let body = json!({ "token": token, "offeringId": "T1", "sectionId": "A", "best": 2 });
    let answers = join_all((0..20).map(|_| keyed(&app, "best", SELECT, &body))).await;
    assert!(answers.iter().all(|answer| answer.status == 200 && answer.data() == answers[0].data()));
    assert_eq!(app.remaining().await, 26);
}

#[tokio::test]
async fn the_same_key_with_another_body_is_refused_and_changes_nothing() {
    let app = App::start().await;
    let token = app.active().await;
    assert_eq!(keyed(&app, "a", SELECT, &count(&token, 1)).await.status, 200);
    for (path, body) in [
        (SELECT, count(&token, 2)),
        (RELEASE, json!({ "token": token })),
        (BOOKING, json!({ "token": token })),
    ] {
        let refused = keyed(&app, "a", path, &body).await;
        assert_eq!((refused.status, refused.code()), (409, "IDEMPOTENCY_KEY_REUSED"), "{path}");
    }
    assert_eq!(app.remaining().await, 27);
    let held = json!({ "token": token });
    assert_eq!(keyed(&app, "book", BOOKING, &held).await.status, 201);
}

#[tokio::test]
async fn a_key_is_the_tokens_own() {
    let app = App::start().await;
    let (token, other) = (app.active().await, app.active().await);
    assert_eq!(keyed(&app, "a", SELECT, &count(&token, 1)).await.status, 200);
    assert_eq!(keyed(&app, "a", SELECT, &count(&other, 2)).await.data()["seatCount"], 2);
    assert_eq!(app.remaining().await, 25);
}

#[tokio::test]
async fn a_replay_comes_before_everything_but_the_signature() {
    let app = App::start().await;
    let token = app.active().await;
    let selected = keyed(&app, "select", SELECT, &count(&token, 1)).await;
    let general = json!({ "token": token, "offeringId": "T1" });
    let released = keyed(&app, "release", RELEASE, &general).await;
    assert_eq!(released.data()["released"], 1);
    let purchase = json!({ "token": token, "seatCount": 2 });
    let booked = keyed(&app, "book", BOOKING, &purchase).await;
    assert_eq!(booked.status, 201);
    let location = booked.header("location").expect("a location").to_owned();
    app.send(Call::new("DELETE", &location).query("token", &token)).await.data();
    // The session is over, the booking given back, the sale closed.
    app.at(OPENS_AT + 86_400_000);
    assert_eq!(keyed(&app, "select", SELECT, &count(&token, 1)).await.data(), selected.data());
    assert_eq!(keyed(&app, "release", RELEASE, &general).await.data(), released.data());
    let again = keyed(&app, "book", BOOKING, &purchase).await;
    assert_eq!((again.status, again.data()), (201, booked.data()));
    assert_eq!(again.header("location"), Some(location.as_str()));
    assert_eq!(
        app.book(&token, json!({ "seatCount": 2 })).await.code(),
        "ALREADY_BOOKED",
        "without its name"
    );
    let forged = Call::new("POST", BOOKING)
        .header("Idempotency-Key", "book")
        .header("authorization", "Bearer x.y.z")
        .json(&purchase);
    assert_eq!(app.send(forged).await.code(), "UNAUTHORIZED");
    assert_eq!(app.remaining().await, 28);
}

#[tokio::test]
async fn only_successes_are_kept() {
    let app = App::start().await;
    let (token, other) = (app.active().await, app.active().await);
    let seat = json!({ "token": token, "offeringId": "T1", "seatId": "1A" });
    let theirs = json!({ "token": other, "offeringId": "T1", "seatId": "1A" });
    assert_eq!(app.post(SELECT, theirs.clone()).await.status, 200);
    assert_eq!(keyed(&app, "a", SELECT, &seat).await.code(), "SEAT_TAKEN");
    assert_eq!(app.post(RELEASE, theirs).await.status, 200);
    assert_eq!(keyed(&app, "a", SELECT, &seat).await.status, 200);
}

#[tokio::test]
async fn a_key_is_bounded_and_may_hold_whatever_is_visible() {
    let app = App::start().await;
    let token = app.active().await;
    for bad in ["", " ", "a b", "é", "a\tb", &"x".repeat(256)] {
        let refused = keyed(&app, bad, SELECT, &count(&token, 1)).await;
        assert_eq!(
            (refused.status, &refused.details()["field"]),
            (400, &json!("Idempotency-Key")),
            "{bad:?}"
        );
    }
    assert_eq!(app.remaining().await, 28);
    for good in ["{E}:*?", &"x".repeat(255)] {
        assert_eq!(keyed(&app, good, SELECT, &count(&token, 1)).await.status, 200, "{good:?}");
    }
}

#[tokio::test]
async fn a_replay_comes_before_the_seats_that_are_gone() {
    let app = App::start().await;
    let token = app.active().await;
    let seat = json!({ "token": token, "offeringId": "T1", "seatId": "4D" });
    let selected = keyed(&app, "select", SELECT, &seat).await;
    let released = keyed(&app, "release", RELEASE, &seat).await;
    assert_eq!((selected.status, released.status), (200, 200));
    let mut shorter = support::sale(app.event.as_str());
    shorter["offerings"][0]["sections"][0]["seats"] = json!([{ "rows": "1-3", "seats": "A-D" }]);
    app.apply(&shorter).await;
    assert_eq!(app.post(SELECT, seat.clone()).await.code(), "SEAT_NOT_FOUND");
    assert_eq!(keyed(&app, "another", SELECT, &seat).await.code(), "SEAT_NOT_FOUND");
    assert_eq!(keyed(&app, "select", SELECT, &seat).await.data(), selected.data());
    assert_eq!(keyed(&app, "release", RELEASE, &seat).await.data(), released.data());
    let other = json!({ "token": token, "offeringId": "T1", "seatId": "4C" });
    for (key, path) in [("select", SELECT), ("release", RELEASE)] {
        assert_eq!(keyed(&app, key, path, &other).await.code(), "IDEMPOTENCY_KEY_REUSED");
    }
}
