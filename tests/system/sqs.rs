//! Facts on their way through real queues: from handlers and the relay, to the persist handler.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use aws_sdk_sqs::Client;
use aws_sdk_sqs::error::ProvideErrorMetadata;
use domain::fact::{Fact, What};
use domain::reservation::ReservationStatus;
use gateway::Gate;
use outbox::{Backlog, SqsConfig, SqsOutbox, SqsQueue};
use serde_json::json;
use support::{Answer, App, Call, Redis, Sqs, Topology};

use crate::deliver::{Database, batch, journal};

/// Two queues of the test's own.
struct Queues {
    client: Client,
    bookings_url: String,
    line_url: String,
}

impl Queues {
    async fn fresh() -> Self {
        let sqs = Sqs::shared();
        let (bookings_url, line_url) = (sqs.queue("bookings").await, sqs.queue("line").await);
        Self { client: sqs.client(), bookings_url, line_url }
    }

    fn outbox(&self) -> SqsOutbox {
        let config = SqsConfig {
            bookings_url: self.bookings_url.clone(),
            line_url: self.line_url.clone(),
            operation_timeout: Duration::from_secs(5),
        };
        SqsOutbox::with_client(config, self.client.clone())
    }

    async fn delete(&self, url: &str) {
        self.client.delete_queue().queue_url(url).send().await.expect("SQS deletes a queue");
        let gone = self.client.receive_message().queue_url(url).send().await.expect_err("the queue is gone");
        assert!(gone.code().is_some_and(|code| code.contains("NonExistentQueue")), "{gone:?}");
    }

    async fn take(&self, url: &str) -> Vec<(String, String)> {
        take(&self.client, url).await
    }

    async fn take_facts(&self, url: &str) -> Vec<Fact> {
        facts(&self.take(url).await)
    }
}

/// All messages of a queue, taken off it: id and body.
pub(crate) async fn take(client: &Client, url: &str) -> Vec<(String, String)> {
    let mut taken = Vec::new();
    loop {
        let received = client.receive_message().queue_url(url).max_number_of_messages(10).send().await;
        let received = received.expect("SQS answers");
        if received.messages().is_empty() {
            return taken;
        }
        for message in received.messages() {
            let receipt = message.receipt_handle().expect("a receipt");
            let deleted = client.delete_message().queue_url(url).receipt_handle(receipt).send().await;
            deleted.expect("deleted");
            let id = message.message_id().expect("an id").to_owned();
            taken.push((id, message.body().expect("a body").to_owned()));
        }
    }
}

fn facts(messages: &[(String, String)]) -> Vec<Fact> {
    let unpacked = messages.iter().map(|(_, body)| outbox::unpack(body).expect("a body of facts"));
    unpacked.flat_map(|unpacked| unpacked.facts).collect()
}

/// The app's handlers, sending to these queues.
fn sending(app: &App, queues: &Queues) -> App {
    let gate = Gate { default_event: Some(app.event.clone()), ..Gate::default() };
    app.behind(gate, Some(Arc::new(queues.outbox())))
}

/// A sale in a Redis of its own, where a relay finds no other test's facts.
async fn alone() -> (Redis, App) {
    let redis = Redis::start(Topology::of_one_node());
    let app = App::on(&redis, |sale| sale["admission"]["maxActive"] = json!(1_000)).await;
    (redis, app)
}

async fn cancel(app: &App, booked: &Answer, token: &str) -> Answer {
    app.send(Call::new("DELETE", booked.header("location").expect("a location")).query("token", token)).await
}

#[tokio::test]
async fn booking_and_cancelling_send_their_own_fact_before_they_answer() {
    let queues = Queues::fresh().await;
    let app = sending(&App::start().await, &queues);
    let token = app.active().await;
    app.hold(&token, json!({ "offeringId": "T1", "seats": ["1A"] })).await.data();
    let booked = app.book(&token, json!({})).await;
    assert_eq!(booked.status, 201);
    let sent = queues.take_facts(&queues.bookings_url).await;
    let [Fact { what: What::Booked { reservation }, .. }] = sent.as_slice() else { panic!("{sent:?}") };
    assert_eq!(booked.data()["reservationId"], reservation.reservation_id.to_string());
    assert_eq!(journal(&app).await.last(), sent.last(), "the journal keeps the very same fact");

    cancel(&app, &booked, &token).await.data();
    let sent = queues.take_facts(&queues.bookings_url).await;
    let [Fact { what: What::BookingCancelled { reservation }, .. }] = sent.as_slice() else {
        panic!("{sent:?}")
    };
    assert_eq!((reservation.status, reservation.version), (ReservationStatus::Cancelled, 2));
    assert_eq!(journal(&app).await.last(), sent.last());

    // What had been true already is not sent again.
    cancel(&app, &booked, &token).await.data();
    assert_eq!(app.book(&token, json!({})).await.code(), "ALREADY_BOOKED");
    assert_eq!(queues.take_facts(&queues.bookings_url).await, []);
    assert_eq!(queues.take_facts(&queues.line_url).await, [], "the line's facts are the relay's");
}

#[tokio::test]
async fn the_relay_sends_each_fact_to_its_queue_packed_and_forgets_it() {
    let queues = Queues::fresh().await;
    let (_redis, app) = alone().await;
    for _ in 0..3 {
        let token = app.active().await;
        app.book(&token, json!({ "seatCount": 1 })).await.data();
    }
    let told = journal(&app).await;
    let outbox = queues.outbox();
    // Nothing is this old.
    assert_eq!(relay::relay(&app.store, &outbox, 3_600_000).await.expect("redis answers"), 0);
    assert_eq!(journal(&app).await, told);
    assert_eq!(relay::relay(&app.store, &outbox, 0).await.expect("redis answers"), told.len());
    assert_eq!(journal(&app).await, []);
    assert_eq!(relay::relay(&app.store, &outbox, 0).await.expect("redis answers"), 0);

    let (bookings, line) = (queues.take(&queues.bookings_url).await, queues.take(&queues.line_url).await);
    assert_eq!((bookings.len(), line.len()), (1, 1), "small facts share a message");
    let (about_bookings, about_the_line): (Vec<Fact>, Vec<Fact>) =
        told.into_iter().partition(|fact| fact.what.is_booking());
    assert_eq!(about_bookings.len(), 3);
    assert_eq!((facts(&bookings), facts(&line)), (about_bookings, about_the_line));
}

#[tokio::test]
async fn a_queue_that_is_gone_keeps_its_facts_in_the_journal_and_no_booking_from_its_answer() {
    let mut queues = Queues::fresh().await;
    let (_redis, app) = alone().await;
    queues.delete(&queues.bookings_url).await;
    let app = sending(&app, &queues);
    let token = app.active().await;
    let booked = app.book(&token, json!({ "seatCount": 1 })).await;
    assert_eq!(booked.status, 201);
    assert_eq!(cancel(&app, &booked, &token).await.data()["status"], "CANCELLED");
    let told = journal(&app).await;
    let kept: Vec<Fact> = told.iter().filter(|fact| fact.what.is_booking()).cloned().collect();
    assert_eq!(kept.len(), 2);
    let relayed = relay::relay(&app.store, &queues.outbox(), 0).await.expect("redis answers");
    assert_eq!(relayed, told.len() - kept.len());
    assert_eq!(journal(&app).await, kept, "exactly what no queue took");

    queues.bookings_url = Sqs::shared().queue("bookings").await;
    assert_eq!(relay::relay(&app.store, &queues.outbox(), 0).await.expect("redis answers"), 2);
    assert_eq!(queues.take_facts(&queues.bookings_url).await, kept);
    assert_eq!(journal(&app).await, []);
}

#[tokio::test]
async fn bookings_never_wait_behind_a_line_that_no_queue_takes() {
    let queues = Queues::fresh().await;
    let (_redis, app) = alone().await;
    queues.delete(&queues.line_url).await;
    let buyer = app.active().await;
    // More than the relay reads at once.
    let joins = (0..store::JOURNAL_PAGE + 200).map(|_| app.join());
    futures::future::join_all(joins).await;
    app.book(&buyer, json!({ "seatCount": 1 })).await.data();
    assert_eq!(relay::relay(&app.store, &queues.outbox(), 0).await.expect("redis answers"), 1);
    let sent = queues.take_facts(&queues.bookings_url).await;
    assert!(matches!(sent.as_slice(), [Fact { what: What::Booked { .. }, .. }]), "{sent:?}");
}

#[tokio::test]
async fn the_backlog_is_what_waits_and_what_is_being_worked_on() {
    let queues = Queues::fresh().await;
    let (url, client) = (&queues.bookings_url, &queues.client);
    let alone = SqsQueue::with_client(url.clone(), client.clone());
    let backlog = async || {
        let counted = queues.outbox().bookings().await.expect("SQS answers");
        assert_eq!(alone.bookings().await.expect("SQS answers"), counted);
        counted
    };
    assert_eq!(backlog().await, 0);
    for delay_seconds in [0, 0, 900] {
        let send = client.send_message().queue_url(url).message_body("{}").delay_seconds(delay_seconds);
        send.send().await.expect("SQS takes it");
    }
    assert_eq!(backlog().await, 3);
    let received = client.receive_message().queue_url(url).send().await.expect("SQS answers");
    let receipt = received.messages()[0].receipt_handle().expect("a receipt");
    assert_eq!(backlog().await, 3, "who works on a message has not written it");
    client.delete_message().queue_url(url).receipt_handle(receipt).send().await.expect("deleted");
    assert_eq!(backlog().await, 2);
    queues.delete(url).await;
    assert!(alone.bookings().await.is_err());
}

/// Messages of a sale in which eight people booked and half of them cancelled: from the handlers, and once more
/// from the relay.
async fn some_messages(app: &App, queues: &Queues) -> Vec<(String, String)> {
    let app = sending(app, queues);
    for at in 0..8 {
        let token = app.active().await;
        let booked = app.book(&token, json!({ "seatCount": 1 })).await;
        assert_eq!(booked.status, 201);
        if at % 2 == 0 {
            cancel(&app, &booked, &token).await.data();
        }
    }
    relay::relay(&app.store, &queues.outbox(), 0).await.expect("redis answers");
    let mut messages = queues.take(&queues.bookings_url).await;
    assert_eq!(messages.len(), 8 + 4 + 1, "each fact by its handler, and all by the relay");
    messages.extend(queues.take(&queues.line_url).await);
    messages
}

#[tokio::test]
async fn however_messages_arrive_each_reservation_is_one_row_in_its_last_state() {
    let queues = Queues::fresh().await;
    let (_redis, app) = alone().await;
    let messages = some_messages(&app, &queues).await;
    let identities: BTreeSet<_> = facts(&messages).iter().map(|fact| (fact.epoch, fact.id)).collect();
    let mut sold = app.store.reservations(&app.event).await.expect("redis answers");
    sold.sort_by(|one, other| one.reservation_id.cmp(&other.reservation_id));
    assert_eq!(sold.iter().filter(|one| one.status == ReservationStatus::Cancelled).count(), 4);

    let mut deliveries = vec![messages; 5].concat();
    // Youngest first: every cancellation before its booking.
    deliveries.reverse();
    let mut random = fastrand::Rng::with_seed(3);
    for round in 0..5 {
        let database = Database::fresh().await;
        for deliveries in deliveries.chunks(7) {
            let response =
                persist::persist(&database.records, batch(deliveries)).await.expect("PostgreSQL answers");
            assert!(response.batch_item_failures.is_empty(), "round {round}: {response:?}");
        }
        assert_eq!(database.reservations(&app.event).await, sold, "round {round}");
        let counted = usize::try_from(database.count_facts().await).expect("a count");
        assert_eq!(counted, identities.len(), "round {round}");
        random.shuffle(&mut deliveries);
    }
}

#[tokio::test]
async fn a_poisoned_message_comes_back_alone() {
    let queues = Queues::fresh().await;
    let app = sending(&App::start().await, &queues);
    let poison = r#"{"facts":[{"event":"a","epoch":1,"id":"1-1","at":1,"kind":"USER_FLEW"}]}"#;
    for at in 0..9 {
        let token = app.active().await;
        assert_eq!(app.book(&token, json!({ "seatCount": 1 })).await.status, 201);
        if at == 4 {
            let send = queues.client.send_message().queue_url(&queues.bookings_url).message_body(poison);
            send.send().await.expect("SQS takes it");
        }
    }
    let messages = queues.take(&queues.bookings_url).await;
    assert_eq!(messages.len(), 10);
    let poisoned: Vec<&String> =
        messages.iter().filter(|(_, body)| body == poison).map(|(message_id, _)| message_id).collect();
    let database = Database::fresh().await;
    let response = persist::persist(&database.records, batch(&messages)).await.expect("PostgreSQL answers");
    let failed: Vec<&String> =
        response.batch_item_failures.iter().map(|failure| &failure.item_identifier).collect();
    assert_eq!(failed, poisoned);
    let mut sold = app.store.reservations(&app.event).await.expect("redis answers");
    sold.sort_by(|one, other| one.reservation_id.cmp(&other.reservation_id));
    assert_eq!(database.reservations(&app.event).await, sold);
    assert_eq!(sold.len(), 9);
}
