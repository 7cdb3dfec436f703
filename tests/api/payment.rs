//! Payment: one transition a reservation, whoever tells of it and however often, and the deadline.

use std::sync::Arc;

use domain::fact::{Fact, What};
use domain::reservation::ReservationStatus;
use domain::{Millis, ReservationId};
use futures::FutureExt;
use futures::future::{BoxFuture, join_all};
use gateway::{Gate, PaymentKeys};
use outbox::{Message, Outbox, Queue, unpack};
use serde_json::{Value, json};
use store::Load;
use support::{Answer, App, Call, OPENS_AT, PAYMENT_KEY, gate, signature};

/// The small sale, paid within 100 s of booking.
async fn sale() -> App {
    App::with(|sale| {
        sale["payment"] = json!({ "mode": "deferred", "dueAfterSeconds": 100, "currency": "KRW" });
    })
    .await
}

/// Two places for 1 000: the owner's token and the reservation's id.
async fn booked(app: &App) -> (String, String) {
    let token = app.active().await;
    let booked = app.book(&token, json!({ "seatCount": 2 })).await;
    assert_eq!(
        (&booked.data()["status"], &booked.data()["amount"]),
        (&json!("PENDING_PAYMENT"), &json!(1_000))
    );
    assert_eq!(booked.data()["paymentDueAt"], app.now() + 100_000);
    (token, booked.data()["reservationId"].as_str().expect("an id").to_owned())
}

fn payment(reservation: &str, payment: &str) -> Value {
    json!({
        "paymentId": payment, "reservationId": reservation, "status": "PAID", "amount": 1_000, "currency": "KRW",
    })
}

async fn pay(app: &App, reservation: &str, id: &str) -> Answer {
    app.send(App::webhook(&payment(reservation, id))).await
}

async fn read(app: &App, reservation: &str, token: &str) -> Value {
    let call = Call::new("GET", &format!("/api/booking/{reservation}")).query("token", token);
    app.send(call).await.data().clone()
}

async fn cancel(app: &App, reservation: &str, token: &str) -> Answer {
    app.send(Call::new("DELETE", &format!("/api/booking/{reservation}")).query("token", token)).await
}

/// One tick as the scheduled function makes it: what is overdue expires.
async fn sweep(app: &App) {
    admit::tick_event(&app.store, &app.event, Load::default()).await;
}

/// The journal's facts about payments and reservations.
async fn facts(app: &App) -> Vec<Fact> {
    let until = app.store.redis_time_ms().await.expect("redis answers");
    let page = app.store.journal(&app.event, None, until).await.expect("redis answers");
    assert!(page.unreadable.is_empty(), "{:?}", page.unreadable);
    page.facts.into_iter().filter(|fact| fact.what.is_booking()).collect()
}

async fn kinds(app: &App) -> Vec<&'static str> {
    facts(app).await.iter().map(|fact| fact.what.kind()).collect()
}

#[tokio::test]
async fn a_payment_moves_its_reservation_once_however_often_it_is_told() {
    let app = sale().await;
    let (token, id) = booked(&app).await;
    app.pass(1_000);
    for answer in join_all((0..20).map(|_| pay(&app, &id, "p-1"))).await {
        assert_eq!((answer.status, answer.data()), (200, &json!({ "reservationId": id, "status": "PAID" })));
    }
    let other = pay(&app, &id, "p-2").await;
    assert_eq!((other.status, other.code()), (409, "BOOKING_NOT_PAYABLE"));
    assert_eq!(pay(&app, &id, "p-2").await.code(), "BOOKING_NOT_PAYABLE");
    assert_eq!(read(&app, &id, &token).await["status"], "PAID");
    let facts = facts(&app).await;
    let [_, paid, refund] = &facts[..] else { panic!("{facts:?}") };
    let What::Paid { reservation } = &paid.what else { panic!("{paid:?}") };
    assert_eq!((reservation.status, reservation.version), (ReservationStatus::Paid, 2));
    assert_eq!(reservation.payment_id.as_ref().map(ToString::to_string).as_deref(), Some("p-1"));
    let What::RefundDue { payment, reason } = &refund.what else { panic!("{refund:?}") };
    assert_eq!((payment.payment_id.as_str(), payment.amount, reason.as_str()), ("p-2", 1_000, "PAID"));
    app.pass(200_000);
    sweep(&app).await;
    assert_eq!(read(&app, &id, &token).await["status"], "PAID", "what is paid does not expire");
    assert_eq!(app.remaining().await, 26);
}

#[tokio::test]
async fn a_failed_payment_changes_nothing() {
    let app = sale().await;
    let (token, id) = booked(&app).await;
    let failed = json!({
        "paymentId": "p-1", "reservationId": id, "status": "FAILED", "amount": 1_000, "currency": "KRW",
    });
    let answer = app.send(App::webhook(&failed)).await;
    assert_eq!((answer.status, &answer.data()["status"]), (200, &json!("PENDING_PAYMENT")));
    assert_eq!(kinds(&app).await, ["BOOKED"]);
    assert_eq!(pay(&app, &id, "p-1").await.data()["status"], "PAID", "the second try of the same payment");
    assert_eq!(app.send(App::webhook(&failed)).await.data()["status"], "PAID", "told late");
    assert_eq!(read(&app, &id, &token).await["status"], "PAID");
}

#[tokio::test]
async fn a_wrong_amount_or_currency_is_refused_and_noted_once() {
    let app = sale().await;
    let (token, id) = booked(&app).await;
    for (field, wrong) in [("amount", json!(999)), ("amount", json!(1_001)), ("currency", json!("USD"))] {
        let mut body = payment(&id, &format!("p-{field}-{wrong}"));
        body[field] = wrong;
        for _ in 0..2 {
            let refused = app.send(App::webhook(&body)).await;
            assert_eq!((refused.status, refused.code()), (409, "AMOUNT_MISMATCH"), "{body}");
        }
    }
    assert_eq!(read(&app, &id, &token).await["status"], "PENDING_PAYMENT");
    assert_eq!(kinds(&app).await, ["BOOKED", "PAYMENT_REFUSED", "PAYMENT_REFUSED", "PAYMENT_REFUSED"]);
    assert_eq!(pay(&app, &id, "p-right").await.status, 200);
}

#[tokio::test]
async fn late_money_buys_nothing_and_is_to_be_given_back() {
    let app = sale().await;
    let (token, id) = booked(&app).await;
    app.pass(100_000);
    let late = pay(&app, &id, "p-1").await;
    assert_eq!(
        (late.status, late.code()),
        (409, "BOOKING_NOT_PAYABLE"),
        "judged by the clock, not by the sweep"
    );
    sweep(&app).await;
    assert_eq!(read(&app, &id, &token).await["status"], "EXPIRED");
    assert_eq!(pay(&app, &id, "p-1").await.code(), "BOOKING_NOT_PAYABLE");
    assert_eq!(cancel(&app, &id, &token).await.code(), "BOOKING_NOT_CANCELLABLE");
    assert_eq!(kinds(&app).await, ["BOOKED", "REFUND_DUE", "PAYMENT_DUE_SOON", "BOOKING_EXPIRED"]);
    let refund = facts(&app).await.swap_remove(1);
    assert!(matches!(&refund.what, What::RefundDue { reason, .. } if reason == "LATE"), "{refund:?}");
    assert_eq!(app.remaining().await, 28);
}

#[tokio::test]
async fn whoever_has_the_seat_now_keeps_it() {
    let app = sale().await;
    let token = app.active().await;
    app.hold(&token, json!({ "offeringId": "T2", "seats": ["1A", "1B"] })).await.data();
    let first = app.book(&token, json!({})).await;
    let id = first.data()["reservationId"].as_str().expect("an id");
    cancel(&app, id, &token).await.data();
    let next = app.active().await;
    app.hold(&next, json!({ "offeringId": "T2", "seats": ["1A", "1B"] })).await.data();
    let second = app.book(&next, json!({})).await;
    let second = second.data()["reservationId"].as_str().expect("an id").to_owned();
    let mut late = payment(id, "p-1");
    late["amount"] = json!(14);
    assert_eq!(app.send(App::webhook(&late)).await.code(), "BOOKING_NOT_PAYABLE");
    assert_eq!(read(&app, &second, &next).await["status"], "PENDING_PAYMENT");
    assert_eq!(read(&app, &second, &next).await["seats"], json!(["1A", "1B"]));
    let mut mine = payment(&second, "p-2");
    mine["amount"] = json!(14);
    assert_eq!(app.send(App::webhook(&mine)).await.data()["status"], "PAID");
}

#[tokio::test]
async fn cancelling_what_was_paid_asks_for_a_refund_once() {
    let app = sale().await;
    let (token, id) = booked(&app).await;
    assert_eq!(pay(&app, &id, "p-1").await.status, 200);
    for answer in join_all((0..10).map(|_| cancel(&app, &id, &token))).await {
        assert_eq!(answer.data()["status"], "CANCELLED");
    }
    assert_eq!(kinds(&app).await, ["BOOKED", "PAID", "BOOKING_CANCELLED", "REFUND_DUE"]);
    assert_eq!(pay(&app, &id, "p-1").await.data()["status"], "CANCELLED", "this money is being given back");
    assert_eq!(pay(&app, &id, "p-2").await.code(), "BOOKING_NOT_PAYABLE");
    assert_eq!(kinds(&app).await.len(), 5);
    assert_eq!(app.remaining().await, 28);
}

#[tokio::test]
async fn a_sale_that_asks_for_no_payment_takes_none() {
    let app = App::start().await;
    let token = app.active().await;
    let booked = app.book(&token, json!({ "seatCount": 2 })).await;
    let id = booked.data()["reservationId"].as_str().expect("an id").to_owned();
    assert_eq!(pay(&app, &id, "p-1").await.code(), "BOOKING_NOT_PAYABLE");
    assert_eq!(kinds(&app).await, ["BOOKED", "REFUND_DUE"]);
}

#[tokio::test]
async fn a_reservation_that_is_not_known_is_asked_for_again_and_noted_once() {
    let app = sale().await;
    let id = ReservationId::of(app.event.clone(), domain::Token::random()).to_string();
    for _ in 0..3 {
        let unknown = pay(&app, &id, "p-1").await;
        assert_eq!((unknown.status, unknown.code()), (503, "UNAVAILABLE"));
        assert!(unknown.header("retry-after").is_some());
    }
    let facts = facts(&app).await;
    let [Fact { what: What::PaymentRefused { payment, reason }, .. }] = &facts[..] else {
        panic!("{facts:?}")
    };
    assert_eq!((payment.reservation_id.to_string(), reason.as_str()), (id, "RESERVATION_NOT_FOUND"));
    let nowhere =
        ReservationId::of("no-such-sale".parse().expect("an id"), domain::Token::random()).to_string();
    assert_eq!(pay(&app, &nowhere, "p-1").await.code(), "UNAVAILABLE");
}

#[tokio::test]
async fn the_sweep_gives_back_seats_and_limit_exactly_once() {
    let app = App::with(|sale| {
        sale["payment"] = json!({ "mode": "deferred", "dueAfterSeconds": 100, "currency": "KRW" });
    })
    .await;
    let (token, id) = booked(&app).await;
    app.pass(99_999);
    sweep(&app).await;
    assert_eq!(
        (app.remaining().await, &read(&app, &id, &token).await["status"]),
        (26, &json!("PENDING_PAYMENT"))
    );
    app.pass(1);
    let sweeps = join_all((0..10).map(|_| sweep(&app)));
    sweeps.await;
    sweep(&app).await;
    assert_eq!((app.remaining().await, &read(&app, &id, &token).await["status"]), (28, &json!("EXPIRED")));
    assert_eq!(kinds(&app).await, ["BOOKED", "PAYMENT_DUE_SOON", "BOOKING_EXPIRED"]);
    assert_eq!(app.poll(&token).await.data()["totalTicketCount"], 0);
    let state = app.store.event_state(&app.event).await.expect("redis answers").expect("known");
    assert_eq!(state.reservations, 1);
}

#[tokio::test]
async fn a_payment_and_the_sweep_at_the_same_instant_leave_one_winner() {
    for round in 0..30 {
        let app = sale().await;
        let (token, id) = booked(&app).await;
        // Around the instant itself: the clock decides, then whoever is first.
        app.pass(100_000 - i64::from(round % 3) + 1);
        let (paid, ()) = tokio::join!(pay(&app, &id, "p-1"), sweep(&app));
        let status = read(&app, &id, &token).await["status"].clone();
        if paid.status == 200 {
            assert_eq!((&status, app.remaining().await), (&json!("PAID"), 26), "round {round}");
        } else {
            assert_eq!(paid.code(), "BOOKING_NOT_PAYABLE");
            assert_eq!((&status, app.remaining().await), (&json!("EXPIRED"), 28), "round {round}");
            assert!(kinds(&app).await.contains(&"REFUND_DUE"));
        }
    }
}

#[tokio::test]
async fn a_payment_and_a_cancellation_at_once_leave_one_story() {
    for _ in 0..20 {
        let app = sale().await;
        let (token, id) = booked(&app).await;
        let (paid, cancelled) = tokio::join!(pay(&app, &id, "p-1"), cancel(&app, &id, &token));
        assert_eq!(cancelled.data()["status"], "CANCELLED");
        let kinds = kinds(&app).await;
        match paid.json["data"]["status"].as_str() {
            Some(_) => assert_eq!(kinds, ["BOOKED", "PAID", "BOOKING_CANCELLED", "REFUND_DUE"]),
            None => assert_eq!(kinds, ["BOOKED", "BOOKING_CANCELLED", "REFUND_DUE"]),
        }
        assert_eq!(app.remaining().await, 28);
    }
}

#[tokio::test]
async fn buyers_are_reminded_once_in_the_last_quarter() {
    let app = sale().await;
    let (_, id) = booked(&app).await;
    let (_, paid) = booked(&app).await;
    assert_eq!(pay(&app, &paid, "p-1").await.status, 200);
    let due_at = read_due(&app, &id).await;
    app.at(due_at - 25_001);
    app.tick().await;
    assert!(!kinds(&app).await.contains(&"PAYMENT_DUE_SOON"));
    app.pass(1);
    for _ in 0..3 {
        app.tick().await;
    }
    let facts = facts(&app).await;
    let soon: Vec<&What> =
        facts.iter().map(|fact| &fact.what).filter(|what| what.kind() == "PAYMENT_DUE_SOON").collect();
    let [What::PaymentDueSoon { reservations }] = &soon[..] else { panic!("{soon:?}") };
    let [due] = &reservations[..] else { panic!("{reservations:?}") };
    assert_eq!((due.reservation_id.to_string(), due.payment_due_at), (id, Millis(due_at)));
}

async fn read_due(app: &App, id: &str) -> i64 {
    let reservation = app.store.any_reservation(&id.parse().expect("an id")).await.expect("redis answers");
    reservation.expect("known").payment_due_at.expect("to be paid").0
}

#[tokio::test]
async fn a_due_instant_is_the_same_for_all_and_may_lie_behind_the_sale() {
    let due_at = "2096-10-23T23:59:59+09:00";
    let app = App::with(|sale| {
        sale["payment"] = json!({ "mode": "deferred", "dueAt": due_at, "currency": "KRW" });
    })
    .await;
    let token = app.active().await;
    let booked = app.book(&token, json!({ "seatCount": 2 })).await;
    let id = booked.data()["reservationId"].as_str().expect("an id").to_owned();
    assert_eq!(booked.data()["paymentDueAt"], 4_001_842_799_000_i64);
    const { assert!(4_001_842_799_000 > OPENS_AT + 86_400_000, "behind the end of the sale") };
    app.at(4_001_842_798_999);
    sweep(&app).await;
    assert_eq!(read(&app, &id, &token).await["status"], "PENDING_PAYMENT");
    assert_eq!(pay(&app, &id, "p-1").await.data()["status"], "PAID", "the sale is closed, paying goes on");
}

#[tokio::test]
async fn a_webhook_must_be_signed_lately_by_one_of_two_keys() {
    let app = sale().await;
    let (token, id) = booked(&app).await;
    let next = "the next payment key, also longer than 32 characters";
    let both = Gate { payment_keys: PaymentKeys::new([PAYMENT_KEY, next]), ..gate(&app.event) };
    let both = app.behind(both, None);
    let none = app.behind(Gate { payment_keys: PaymentKeys::default(), ..gate(&app.event) }, None);
    let body = payment(&id, "p-1").to_string();
    let now = Millis::now().0 / 1_000;
    let with = |header: &str| {
        let call = Call::new("POST", "/api/payment/webhook").header("content-type", "application/json");
        call.header("jari-signature", header).text(&body)
    };
    let good = signature(PAYMENT_KEY, now, &body);
    let hex = good.split_once("v1=").expect("a signature").1.to_owned();
    for bad in [
        String::new(),
        "v1=".to_owned() + &hex,
        format!("t={now}"),
        format!("t={now},v1="),
        format!("t={now},v1={}", &hex[1..]),
        format!("t={now},v1={}", "0".repeat(64)),
        format!("t={},v1={hex}", now + 1),
        format!("t={now},t={now},v1={hex}"),
        format!("t={now},v2={hex}"),
        format!("t=+{now},v1={hex}"),
        signature(PAYMENT_KEY, now - 301, &body),
        signature(PAYMENT_KEY, now + 310, &body),
        signature(PAYMENT_KEY, now, &(body.clone() + " ")),
        signature(next, now, &body),
        signature("", now, &body),
        format!("t=99999999999999999999,v1={hex}"),
        format!("{good},{}", "v1=0,".repeat(100)),
    ] {
        let refused = app.send(with(&bad)).await;
        assert_eq!((refused.status, refused.code()), (401, "BAD_SIGNATURE"), "{bad}");
    }
    assert_eq!(none.send(with(&good)).await.code(), "BAD_SIGNATURE", "no key, no payment");
    assert_eq!(read(&app, &id, &token).await["status"], "PENDING_PAYMENT");
    assert_eq!(kinds(&app).await, ["BOOKED"]);
    let rotated = format!("t={now},v1={},v1={}", "0".repeat(64), hex.to_uppercase());
    assert_eq!(app.send(with(&rotated)).await.status, 200, "one good signature is enough");
    assert_eq!(both.send(with(&signature(next, now, &body))).await.status, 200, "the next key");
    assert_eq!(both.send(with(&signature(PAYMENT_KEY, now - 290, &body))).await.status, 200);
}

#[tokio::test]
async fn a_signed_webhook_that_makes_no_sense_names_the_field() {
    let app = sale().await;
    let id = ReservationId::of(app.event.clone(), domain::Token::random()).to_string();
    for (field, wrong) in [
        ("paymentId", json!("")),
        ("paymentId", json!("a\0")),
        ("paymentId", json!("x".repeat(256))),
        ("paymentId", json!(5)),
        ("reservationId", json!("x")),
        ("status", json!("REFUNDED")),
        ("status", Value::Null),
        ("amount", json!(-1)),
        ("amount", json!("1000")),
        ("amount", json!(1.5)),
        ("currency", json!("krw")),
        ("currency", json!("KRWW")),
        ("currency", Value::Null),
    ] {
        let mut body = payment(&id, "p-1");
        body[field] = wrong.clone();
        let refused = app.send(App::webhook(&body)).await;
        assert_eq!((refused.status, &refused.details()["field"]), (400, &json!(field)), "{field} {wrong}");
    }
    assert_eq!(kinds(&app).await.len(), 0);
}

/// A queue that remembers what it was sent.
#[derive(Default)]
struct Taken(std::sync::Mutex<Vec<Fact>>);

impl Outbox for Taken {
    fn send(&self, queue: Queue, messages: Vec<Message>) -> BoxFuture<'_, Vec<bool>> {
        assert_eq!(queue, Queue::Bookings);
        let mut taken = self.0.lock().expect("not poisoned");
        for message in &messages {
            taken.extend(unpack(&message.body).expect("facts").facts);
        }
        futures::future::ready(vec![true; messages.len()]).boxed()
    }
}

#[tokio::test]
async fn a_payment_is_sent_to_the_queue_before_it_is_answered() {
    let app = sale().await;
    let (_, id) = booked(&app).await;
    let queue = Arc::new(Taken::default());
    let app = app.behind(gate(&app.event), Some(Arc::clone(&queue) as Arc<dyn Outbox>));
    pay(&app, &id, "p-1").await.data();
    pay(&app, &id, "p-1").await.data();
    let sent = queue.0.lock().expect("not poisoned").clone();
    assert_eq!(sent, [facts(&app).await.swap_remove(1)], "once, and named as in the journal");
}
