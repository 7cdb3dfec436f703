//! The handler against a real server.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a step that fails fails its test")]

#[path = "../../../crates/records/tests/postgres/facts.rs"]
mod facts;
#[path = "../../../crates/records/tests/postgres/server.rs"]
mod server;

use aws_lambda_events::event::sqs::{SqsBatchResponse, SqsEvent};
use domain::fact::Fact;
use domain::reservation::ReservationStatus::Cancelled;
use facts::{booked, cancelled, changed, entered, event, general, named, reservation};
use persist::{PersistError, persist};
use records::{Records, RecordsConfig, RecordsError};
use serde_json::{Value, json};
use server::Database;

/// A message as Lambda delivers it.
fn message(id: &str, body: &str) -> Value {
    json!({
        "messageId": id,
        "receiptHandle": "AQEBwJnKyrHigUMZj6rYigCgxlaS3SLy0a",
        "body": body,
        "attributes": {"ApproximateReceiveCount": "1", "SentTimestamp": "1790000000000"},
        "messageAttributes": {},
        "md5OfBody": "e4e68fb7bd0e697a0ae8f1bb342846b3",
        "eventSource": "aws:sqs",
        "eventSourceARN": "arn:aws:sqs:ap-northeast-2:123456789012:bookings",
        "awsRegion": "ap-northeast-2",
    })
}

fn body(facts: &[Fact]) -> String {
    json!({ "facts": facts }).to_string()
}

fn batch(messages: &[Value]) -> SqsEvent {
    serde_json::from_value(json!({ "Records": messages })).unwrap()
}

fn failed(response: &SqsBatchResponse) -> Vec<&str> {
    response.batch_item_failures.iter().map(|failure| failure.item_identifier.as_str()).collect()
}

#[tokio::test]
async fn only_messages_with_something_bad_come_back_and_all_that_is_good_is_written() {
    let database = Database::fresh().await;
    let owner = reservation(0, vec![named("KTX-101", "standard", 1, &["1A"])]);
    let late = reservation(1, vec![named("KTX-101", "standard", 1, &["1A"])]);
    let standing = reservation(2, vec![general("KTX-101", "standing", 1, 2)]);
    let unknown = json!({"event": "a", "epoch": 1, "id": "1-1", "at": 1, "kind": "USER_FLEW"});
    let messages = [
        message("good", &body(&[booked(1, &owner), entered(2)])),
        message("no JSON", "hello"),
        message("no facts", r#"{"facts":7}"#),
        message("unknown fact", &json!({ "facts": [entered(3), unknown, entered(4)] }).to_string()),
        message("taken seat", &body(&[entered(5), booked(6, &late)])),
        message("also good", &body(&[booked(7, &standing)])),
        json!({"messageId": "no body"}),
    ];
    for _ in 0..2 {
        let response = persist(&database.records, batch(&messages)).await.unwrap();
        assert_eq!(failed(&response), ["no JSON", "no facts", "unknown fact", "taken seat", "no body"]);
        assert_eq!(database.count("facts").await, 6);
    }
    let recorded = database.records.reservations(&event(), None, 10).await.unwrap();
    assert_eq!(recorded, [owner.clone(), standing.clone()]);

    // Once the seat was given back, the message that was delivered too early is taken.
    let messages = [
        message("taken seat", &body(&[booked(6, &late)])),
        message("given back", &body(&[cancelled(8, &owner)])),
    ];
    let response = persist(&database.records, batch(&messages)).await.unwrap();
    assert!(failed(&response).is_empty(), "{response:?}");
    let recorded = database.records.reservations(&event(), None, 10).await.unwrap();
    assert_eq!(recorded, [changed(&owner, Cancelled), late, standing]);
}

#[tokio::test]
async fn the_answer_is_what_lambda_expects() {
    let database = Database::fresh().await;
    let response = persist(&database.records, batch(&[message("m-1", "x")])).await.unwrap();
    let answer = serde_json::to_value(response).unwrap();
    assert_eq!(answer, json!({"batchItemFailures": [{"itemIdentifier": "m-1"}]}));
    let response = persist(&database.records, batch(&[])).await.unwrap();
    assert_eq!(serde_json::to_value(response).unwrap(), json!({"batchItemFailures": []}));
}

#[tokio::test]
async fn without_a_database_nothing_counts_as_written() {
    let records = Records::open(&RecordsConfig::new("postgres://postgres@127.0.0.1:9/none")).unwrap();
    let error = persist(&records, batch(&[message("good", &body(&[entered(1)]))])).await.unwrap_err();
    assert!(matches!(error, PersistError::Records(RecordsError::Connect(_))), "{error:?}");
}

#[tokio::test]
async fn a_message_without_an_id_fails_the_batch_as_a_whole() {
    let database = Database::fresh().await;
    let messages = [message("good", &body(&[entered(1)])), json!({"body": "x"})];
    let error = persist(&database.records, batch(&messages)).await.unwrap_err();
    assert!(matches!(error, PersistError::NoMessageId), "{error:?}");
    assert_eq!(database.count("facts").await, 0);
}
