//! The way of one buyer, from the line to a reservation and back.

use serde_json::json;
use support::{App, Call};

#[tokio::test]
async fn a_buyer_joins_is_let_in_holds_books_and_cancels() {
    let app = App::start().await;
    let joined = app.post("/api/queue/join", json!({})).await;
    let token = joined.data()["token"].as_str().expect("a token").to_owned();
    assert_eq!(joined.data()["rank"], 1);
    assert_eq!(joined.data()["ticketNumber"], 1);
    assert_eq!(app.poll(&token).await.data()["status"], "WAITING");
    let refused = app.hold(&token, json!({ "offeringId": "T1", "seats": ["1A"] })).await;
    assert_eq!((refused.status, refused.code()), (403, "NOT_ADMITTED"));

    app.pass(1_000);
    assert_eq!(app.tick().await.admitted, 1);
    let polled = app.poll(&token).await;
    assert_eq!(polled.data()["status"], "ACTIVE");
    assert_eq!(polled.data()["activeExpiresAt"], app.now() + 180_000);

    let found =
        app.send(Call::new("GET", "/trains/search").query("token", &token).query("from", "서울")).await;
    assert_eq!(found.data()["offerings"][0]["offeringId"], "T1");
    assert_eq!(found.data()["offerings"].as_array().expect("a list").len(), 1);

    let held = app.hold(&token, json!({ "offeringId": "T1", "seats": ["1A", "1B"] })).await;
    assert_eq!(held.data()["seats"], json!(["1A", "1B"]));
    assert_eq!(held.data()["holdExpiresAt"], app.now() + 120_000);
    assert_eq!(app.remaining().await, 26);
    let map = app.send(Call::new("GET", "/api/seats").query("token", &token).query("offeringId", "T1")).await;
    assert_eq!(map.data()["sections"][0]["taken"], json!({ "1A": "HELD", "1B": "HELD" }));

    let booked = app.book(&token, json!({})).await;
    assert_eq!(booked.status, 201);
    assert_eq!(booked.data()["seats"], json!(["1A", "1B"]));
    assert_eq!(booked.data()["amount"], 2_000);
    assert_eq!(booked.data()["status"], "CONFIRMED");
    let location = booked.header("location").expect("a location").to_owned();
    assert_eq!(app.book(&token, json!({})).await.data(), booked.data());
    assert_eq!(app.poll(&token).await.data()["status"], "BOOKED");

    let read = app.send(Call::new("GET", &location).query("token", &token)).await;
    assert_eq!(read.data()["status"], "CONFIRMED");
    for _ in 0..3 {
        let cancelled = app.send(Call::new("DELETE", &location).query("token", &token)).await;
        assert_eq!(cancelled.data()["status"], "CANCELLED");
        assert_eq!(app.remaining().await, 28);
    }
    assert_eq!(app.book(&token, json!({})).await.code(), "ALREADY_BOOKED");
}
