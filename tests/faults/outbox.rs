//! No gap between what was answered and what is recorded: functions killed (-9) where it hurts most.

use std::collections::BTreeMap;

use ::outbox::{MAX_BODY_BYTES, Outbox, Queue, SqsConfig, SqsOutbox, pack};
use aws_lambda_events::event::sqs::{SqsEvent, SqsMessage};
use domain::fact::{Fact, StreamId, What};
use domain::{Millis, Token};
use serde_json::json;
use support::{FaultProxy, Function, Invoked, Verdict, Way, wait_until};

use crate::world::{LONG, World, answered, handed_back, purchase};

/// Kills the function once these bytes come by, which are lost with it.
fn kill_at(proxy: &FaultProxy, way: Way, bytes: &[u8], function: &Function) {
    let kill = function.killer();
    proxy.on(way, bytes, move || {
        kill();
        Verdict::Cut
    });
}

/// The buyer repeats what was not answered, and gets what was sold.
async fn repeat(world: &World, token: &str) {
    let (status, body) = answered(world.book().await.invoke(&purchase(token)).await);
    let sold = world.sold().await;
    assert_eq!((status, sold.len()), (201, 1), "{body}");
    assert_eq!(body["data"]["reservationId"], sold[0].reservation_id.to_string());
}

#[tokio::test]
async fn book_killed_between_the_step_and_its_answer() {
    let world = World::new().await;
    let token = world.active().await;
    let book = world.book().await;
    // The reply: the step has run, and only Redis knows.
    kill_at(&world.redis, Way::Reply, b"BOOKED", &book);
    assert_eq!(book.invoke(&purchase(&token)).await, Invoked::Died);
    world.redis.forget_hooks();
    assert_eq!(world.sold().await.len(), 1);
    assert_eq!(world.messages(&world.bookings_url).await, 0);
    repeat(&world, &token).await;
    world.settles().await;
}

#[tokio::test]
async fn book_killed_as_it_sends_to_the_queue() {
    let world = World::new().await;
    let token = world.active().await;
    let book = world.book().await;
    kill_at(&world.sqs, Way::Request, b"SendMessageBatch", &book);
    assert_eq!(book.invoke(&purchase(&token)).await, Invoked::Died);
    world.sqs.forget_hooks();
    assert_eq!(world.messages(&world.bookings_url).await, 0);
    repeat(&world, &token).await;
    world.settles().await;
}

#[tokio::test]
async fn relay_killed_after_the_queue_took_a_batch_and_before_it_forgot() {
    let world = World::new().await;
    for _ in 0..3 {
        world.sell().await;
    }
    let told = world.journal().await;
    let relay = world.relay().await;
    kill_at(&world.sqs, Way::Reply, b"Successful", &relay);
    assert_eq!(relay.invoke(&json!({})).await, Invoked::Died);
    world.sqs.forget_hooks();
    assert_eq!(world.messages(&world.bookings_url).await, 1, "the queue has them");
    assert_eq!(world.journal().await, told, "and so has the journal");
    world.settles().await;
}

/// Three sales in the queue of bookings, and a persist that dies once these bytes pass on their way.
async fn persist_killed_at(way: Way, bytes: &[u8]) -> World {
    let world = World::new().await;
    let book = world.book().await;
    for _ in 0..3 {
        let token = world.active().await;
        assert_eq!(answered(book.invoke(&purchase(&token)).await).0, 201);
    }
    assert_eq!(world.messages(&world.bookings_url).await, 3);
    let persist = world.persist().await;
    kill_at(&world.postgres, way, bytes, &persist);
    let (invoked, handed_over) = world.deliver(&persist).await.expect("messages");
    assert_eq!((invoked, handed_over.len()), (Invoked::Died, 3));
    world.postgres.forget_hooks();
    assert_eq!(world.messages(&world.bookings_url).await, 3, "they come again");
    world
}

#[tokio::test]
async fn persist_killed_before_its_commit() {
    let world = persist_killed_at(Way::Request, b"COMMIT").await;
    assert_eq!(world.recorded().await, []);
    world.settles().await;
}

#[tokio::test]
async fn persist_killed_after_its_commit() {
    let world = persist_killed_at(Way::Reply, b"COMMIT").await;
    assert_eq!(world.recorded().await.len(), 3, "written, though nobody heard of it");
    world.settles().await;
}

#[tokio::test]
async fn one_poisoned_message_among_ten_is_retried_alone_and_ends_among_the_dead_letters() {
    let world = World::new().await;
    let book = world.book().await;
    let poison = r#"{"facts":[{"event":"a","epoch":1,"id":"1-1","at":1,"kind":"USER_FLEW"}]}"#;
    for at in 0..9 {
        let token = world.active().await;
        assert_eq!(answered(book.invoke(&purchase(&token)).await).0, 201);
        if at == 4 {
            world.send(poison).await;
        }
    }
    let persist = world.persist().await;
    let mut deliveries: BTreeMap<String, u32> = BTreeMap::new();
    let mut poisoned = Vec::new();
    wait_until(LONG, "a dead letter", async || {
        if let Some((invoked, ids)) = world.deliver(&persist).await {
            for id in ids {
                *deliveries.entry(id).or_default() += 1;
            }
            poisoned.extend(handed_back(&invoked.answer()).into_iter().map(str::to_owned));
        }
        world.messages(&world.dead_letters_url).await == 1
    })
    .await;
    assert_eq!(world.messages(&world.bookings_url).await, 0);
    assert_eq!(deliveries.len(), 10);
    poisoned.dedup();
    let [poisoned] = poisoned.as_slice() else { panic!("{poisoned:?}") };
    for (id, count) in &deliveries {
        assert_eq!(*count, if id == poisoned { 5 } else { 1 }, "{id}");
    }
    assert_eq!(world.recorded().await, world.sold().await);
    wait_until(LONG, "a metric of it", async || {
        let _ = persist.invoke(&json!({ "Records": [] })).await;
        persist.counted("facts_refused") == 5
    })
    .await;
}

/// A fact of a line in which `people` are called, near the longest that a step writes.
fn called(world: &World, sequence: u64, people: usize) -> Fact {
    let places = (0..people).map(|at| domain::fact::CalledPlace { token: Token::random(), score: at as u64 });
    Fact {
        event: world.app.event.clone(),
        epoch: 1,
        id: StreamId { ms: 1_790_000_000_000, sequence },
        at: Millis(1_790_000_000_000),
        what: What::UserAdmitted { places: places.collect() },
    }
}

#[tokio::test]
async fn batches_of_the_largest_size_are_taken_and_written_whole() {
    let world = World::new().await;
    // Two to a message, and what is left of each is too small for a third.
    let facts: Vec<Fact> = (0..20).map(|at| called(&world, at, 1_000)).collect();
    let packed = pack(&facts);
    let [(Queue::Line, messages)] = packed.as_slice() else { panic!("one queue") };
    assert!(messages.iter().any(|message| message.body.len() > MAX_BODY_BYTES / 2));
    let config = SqsConfig {
        bookings_url: world.bookings_url.clone(),
        line_url: world.line_url.clone(),
        operation_timeout: LONG,
    };
    let outbox = SqsOutbox::with_client(config, world.client.clone());
    let taken = outbox.send(Queue::Line, messages.clone()).await;
    assert!(taken.iter().all(|taken| *taken), "{taken:?}");

    let mut batch = SqsEvent::default();
    batch.records = messages
        .iter()
        .enumerate()
        .map(|(at, message)| {
            let mut record = SqsMessage::default();
            (record.message_id, record.body) = (Some(at.to_string()), Some(message.body.clone()));
            record
        })
        .collect();
    let response = persist::persist(&world.records, batch).await.expect("PostgreSQL answers");
    assert!(response.batch_item_failures.is_empty(), "{response:?}");
    let recorded = world
        .records
        .facts(&world.app.event, "USER_ADMITTED", None, 1_000)
        .await
        .expect("PostgreSQL answers");
    assert_eq!(recorded.len(), facts.len());
}

#[tokio::test]
async fn two_relays_at_once_lose_and_double_nothing() {
    let world = World::new().await;
    for _ in 0..3 {
        world.sell().await;
    }
    let (one, other, run) = (world.relay().await, world.relay().await, json!({}));
    tokio::select! {
        ended = one.invoke(&run) => panic!("a relay ended: {ended:?}"),
        ended = other.invoke(&run) => panic!("a relay ended: {ended:?}"),
        () = wait_until(LONG, "an empty journal", async || world.journal().await == 0) => {}
    }
    world.settles().await;
}
