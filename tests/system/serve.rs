//! A system in one process, from outside: HTTP, signals, restarts, and what lies in its data folder.

use std::time::Duration;

use domain::reservation::ReservationStatus;
use serde_json::json;
use support::wait_until;

use crate::deliver::reservations;
use crate::http::request;
use crate::serving::{Folder, Served};

/// The line of people stands still while one of them is inside.
fn one_at_a_time() -> Folder {
    Folder::with_sale(|sale| sale["admission"]["maxActive"] = json!(1))
}

/// Books one place of the default section; the reservation's path.
async fn book(served: &Served) -> (String, String) {
    let token = served.active().await;
    let booked = served.caller.post("/api/booking", json!({ "token": token, "seatCount": 1 })).await;
    assert_eq!(booked.status, 201, "{}", booked.text);
    (booked.header("location").expect("a location").to_owned(), token)
}

async fn is_written(served: &Served, location: &str, status: ReservationStatus) -> bool {
    let written = reservations(&served.records(), &served.event).await;
    written.iter().any(|row| location.ends_with(&row.reservation_id.to_string()) && row.status == status)
}

#[tokio::test]
async fn a_buyer_goes_from_the_line_to_a_row_in_postgres() {
    let folder = Folder::with_sale(|_| {});
    let served = folder.serve().await;
    let caller = &served.caller;
    let joined = caller.post("/api/queue/join", json!({ "eventId": folder.event })).await;
    assert_eq!((&joined.data()["rank"], &joined.data()["ticketNumber"]), (&json!(1), &json!(1)));
    let token = joined.data()["token"].as_str().expect("a token");
    served.let_in(token).await;
    let found = caller.get(&format!("/trains/search?token={token}&from=%EC%84%9C%EC%9A%B8")).await;
    assert_eq!(found.data()["offerings"][0]["offeringId"], "T1");
    let held = json!({ "token": token, "offeringId": "T1", "seats": ["1A", "1B"] });
    assert_eq!(caller.post("/api/seat/select", held).await.data()["seats"], json!(["1A", "1B"]));
    let map = caller.get(&format!("/api/seats?token={token}&offeringId=T1&sectionId=A")).await;
    assert_eq!(map.data()["sections"][0]["taken"], json!({ "1A": "HELD", "1B": "HELD" }));
    let booked = caller.post("/api/booking", json!({ "token": token })).await;
    assert_eq!((booked.status, &booked.data()["amount"]), (201, &json!(2_000)));
    let location = booked.header("location").expect("a location").to_owned();
    let read = caller.get(&format!("{location}?token={token}")).await;
    assert_eq!(read.data()["status"], "CONFIRMED", "read back at once");

    let written = async |status| is_written(&served, &location, status).await;
    let soon = Duration::from_secs(10);
    wait_until(soon, "a row", async || written(ReservationStatus::Confirmed).await).await;
    let cancelled = caller.delete(&format!("{location}?token={token}")).await;
    assert_eq!(cancelled.data()["status"], "CANCELLED");
    wait_until(soon, "a cancelled row", async || written(ReservationStatus::Cancelled).await).await;
    let report = served.audit().await;
    assert_eq!((&report.findings, report.checked.rows), (&Vec::new(), 1), "{report:?}");
}

#[tokio::test]
async fn callers_with_odd_manners_get_an_answer_and_harm_nobody() {
    let folder = Folder::with_sale(|_| {});
    let served = folder.serve().await;
    let mut kept = served.caller.connect().await;
    for _ in 0..3 {
        assert_eq!(kept.request("GET", "/health", None).await.expect("an answer").status, 200);
    }
    // Two requests in one go are answered one after the other.
    let twice = request("GET", "/health", None).repeat(2);
    kept.write(twice.as_bytes()).await.expect("the server reads");
    for _ in 0..2 {
        assert_eq!(kept.read(true).await.expect("an answer").status, 200);
    }
    let head = kept.request("HEAD", "/health", None).await.expect("an answer");
    assert!(head.status < 500 && head.text.is_empty(), "{head:?}");
    let unknown = kept.request("GET", "/no/such/path?token=x", None).await.expect("an answer");
    assert_eq!((unknown.status, unknown.code()), (404, "NOT_FOUND"));
    let wrong = kept.request("DELETE", "/api/queue/join", None).await.expect("an answer");
    assert_eq!((wrong.status, wrong.code()), (405, "METHOD_NOT_ALLOWED"));

    for bytes in [10_240, 100_000] {
        let mut large = served.caller.connect().await;
        let body = json!({ "eventId": "x".repeat(bytes) });
        let answer = large.request("POST", "/api/queue/join", Some(&body)).await.expect("an answer");
        assert_eq!((answer.status, answer.code()), (413, "PAYLOAD_TOO_LARGE"), "{bytes}");
    }
    let mut nonsense = served.caller.connect().await;
    nonsense.write(b"\x16\x03\x01 hello\r\n\r\n").await.expect("the server reads");
    assert_eq!(nonsense.read(true).await.map_or(400, |answer| answer.status), 400);
    assert!(nonsense.is_closed().await);

    // A body that never ends is given up on, and the caller told.
    let mut slow = served.caller.connect().await;
    let head = "POST /api/queue/join HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{";
    slow.write(head.as_bytes()).await.expect("the server reads");
    let answer = slow.read(true).await.expect("an answer within 30 s");
    assert_eq!((answer.status, answer.code()), (413, "PAYLOAD_TOO_LARGE"));
    assert_eq!(kept.request("GET", "/health", None).await.expect("an answer").status, 200);
}

#[tokio::test]
async fn an_interrupt_ends_all_it_started_and_a_restart_goes_on_from_there() {
    let folder = one_at_a_time();
    let served = folder.serve().await;
    let (location, buyer) = book(&served).await;
    let holder = served.active().await;
    let (second, third) = (served.join().await, served.join().await);
    let hold = json!({ "token": holder, "offeringId": "T1", "seats": ["2A"] });
    assert_eq!(served.caller.post("/api/seat/select", hold).await.status, 200);
    // Neither idle callers nor one in the middle of its headers keep the server from ending.
    let mut idle = served.caller.connect().await;
    assert_eq!(idle.request("GET", "/health", None).await.expect("an answer").status, 200);
    let mut half = served.caller.connect().await;
    half.write(b"GET /health HTTP/1.1\r\nhost: loc").await.expect("the server reads");
    let services = served.services;
    served.interrupt().await;
    assert!(services.are_gone(), "the server ended before what it started");
    assert!(!folder.is_described(), "serve.json names a system that is gone");
    assert!(idle.is_closed().await);

    let served = folder.serve().await;
    let rejoin = async |token: &str| served.caller.post("/api/queue/rejoin", json!({ "token": token })).await;
    for (token, rank) in [(&second, 1), (&third, 2)] {
        let place = rejoin(token).await;
        let data = place.data();
        assert_eq!(
            (&data["token"], &data["rank"], &data["rejoined"]),
            (&json!(token), &json!(rank), &json!(true))
        );
    }
    assert_eq!(rejoin(&holder).await.data()["status"], "ACTIVE");
    assert_eq!(rejoin(&buyer).await.code(), "ALREADY_BOOKED");
    let read = served.caller.get(&format!("{location}?token={buyer}")).await;
    assert_eq!(read.data()["status"], "CONFIRMED");
    assert!(is_written(&served, &location, ReservationStatus::Confirmed).await, "written before the end");
    // Redis may have lost its last second: nothing is sold until PostgreSQL has been asked.
    let mut booked = served.caller.post("/api/booking", json!({ "token": holder })).await;
    wait_until(Duration::from_secs(30), "sales go on", async || {
        if booked.status == 503 {
            booked = served.caller.post("/api/booking", json!({ "token": holder })).await;
        }
        booked.status != 503
    })
    .await;
    assert_eq!((booked.status, &booked.data()["seats"]), (201, &json!(["2A"])), "{}", booked.text);
    served.let_in(&second).await;
    assert_eq!(served.audit().await.findings, []);
}

#[tokio::test]
async fn a_killed_server_loses_nothing_that_it_answered() {
    let folder = one_at_a_time();
    let mut served = folder.serve().await;
    let (first, first_buyer) = book(&served).await;
    let (second, _) = book(&served).await;
    let cancelled = served.caller.delete(&format!("{first}?token={first_buyer}")).await;
    assert_eq!(cancelled.data()["status"], "CANCELLED");
    let waiting = served.join().await;
    let services = served.services;
    served.process.signal("KILL");
    assert!(!served.process.ends().await.success());
    services.end().await;

    let served = folder.serve().await;
    let place = served.caller.post("/api/queue/rejoin", json!({ "token": waiting })).await;
    assert_eq!((&place.data()["token"], &place.data()["rejoined"]), (&json!(waiting), &json!(true)));
    wait_until(Duration::from_secs(10), "both rows in their last state", async || {
        is_written(&served, &first, ReservationStatus::Cancelled).await
            && is_written(&served, &second, ReservationStatus::Confirmed).await
    })
    .await;
    let report = served.audit().await;
    assert_eq!((&report.findings, report.checked.rows), (&Vec::new(), 2), "{report:?}");
}

#[tokio::test]
async fn a_server_started_right_after_a_kill_serves_the_same_sale() {
    let folder = one_at_a_time();
    let mut served = folder.serve().await;
    let (location, buyer) = book(&served).await;
    served.process.signal("KILL");
    served.process.ends().await;
    // What the killed one started is still ending now.
    let again = folder.serve().await;
    let read = again.caller.get(&format!("{location}?token={buyer}")).await;
    assert_eq!(read.data()["status"], "CONFIRMED");
    served.services.end().await;
    let (other, _) = book(&again).await;
    wait_until(Duration::from_secs(10), "both rows", async || {
        is_written(&again, &location, ReservationStatus::Confirmed).await
            && is_written(&again, &other, ReservationStatus::Confirmed).await
    })
    .await;
    let services = again.services;
    again.interrupt().await;
    assert!(services.are_gone());
    let last = folder.serve().await;
    assert_eq!(last.audit().await.findings, []);
}

#[tokio::test]
async fn one_data_folder_has_one_server() {
    let folder = Folder::with_sale(|_| {});
    let served = folder.serve().await;
    let mut second = folder.spawn("second.log");
    assert!(!second.ends().await.success());
    assert!(second.said().contains("another `jari serve` runs on"), "{}", second.said());
    assert!(folder.is_described(), "the first one is still described");
    assert_eq!(served.caller.get("/health").await.status, 200);
    book(&served).await;
}
