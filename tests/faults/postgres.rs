//! PostgreSQL out of reach, slow, restarted, or disagreeing: nothing is acknowledged that was not written, the function says
//! so in its metrics, and goes on by itself.

use std::time::{Duration, Instant};

use domain::fact::{Fact, StreamId, What};
use domain::{Millis, ReservationId, Token};
use serde_json::json;
use support::{Fault, Function, Invoked, Postgres, wait_until};

use crate::world::{LONG, World, answered, handed_back, purchase};

/// A persist gives up after 2 s without a connection and 11 s without an answer; the rest is room.
const BOUND: Duration = Duration::from_secs(40);

/// One more booking in the queue.
async fn sell(world: &World, book: &Function) {
    let token = world.active().await;
    assert_eq!(answered(book.invoke(&purchase(&token)).await).0, 201);
}

/// A batch that cannot be written is not taken off its queue, and fails in time.
async fn fails(world: &World, persist: &Function, what: &str) {
    let before = (world.recorded().await, world.messages(&world.bookings_url).await);
    wait_until(LONG, what, async || {
        let started = Instant::now();
        let Some((invoked, _)) = world.deliver(persist).await else { return false };
        assert!(matches!(invoked, Invoked::Failed(_)), "{what}: {invoked:?}");
        assert!(started.elapsed() < BOUND, "{what}: {:?}", started.elapsed());
        true
    })
    .await;
    assert_eq!((world.recorded().await, world.messages(&world.bookings_url).await), before, "{what}");
}

#[tokio::test]
async fn an_outage_acknowledges_nothing_and_ends_by_itself() {
    let world = World::new().await;
    let (book, persist) = (world.book().await, world.persist().await);
    sell(&world, &book).await;
    world.deliver_all(&persist).await;
    assert_eq!(world.recorded().await.len(), 1);

    // Down: connections are cut, and new ones refused.
    sell(&world, &book).await;
    world.postgres.set(Fault::Refuse);
    world.postgres.cut();
    fails(&world, &persist, "down").await;
    // It takes connections and says nothing.
    world.postgres.set(Fault::Freeze);
    fails(&world, &persist, "silent").await;
    // The same instance goes on.
    world.postgres.set(Fault::Pass);
    world.deliver_all(&persist).await;
    assert_eq!(world.recorded().await, world.sold().await);
    wait_until(LONG, "the alarm's metric", async || {
        let _ = persist.invoke(&json!({ "Records": [] })).await;
        persist.counted("persist_failures") >= 2
    })
    .await;

    // Slow, but in its time.
    sell(&world, &book).await;
    world.postgres.set(Fault::Delay(Duration::from_millis(100)));
    world.deliver_all(&persist).await;
    world.postgres.set(Fault::Pass);
    assert_eq!(world.recorded().await, world.sold().await);
    world.settles().await;
}

#[tokio::test]
async fn a_restart_and_a_reply_cut_in_its_middle_cost_a_delivery_at_most() {
    let world = World::new().await;
    let (book, persist) = (world.book().await, world.persist().await);
    for piece in 1..=6 {
        sell(&world, &book).await;
        world.postgres.cut_reply(piece);
        let (invoked, _) = world.deliver(&persist).await.expect("a message");
        match &invoked {
            // Whatever was cut: who says written has written.
            Invoked::Answered(answer) if handed_back(answer).is_empty() => {
                assert_eq!(world.recorded().await, world.sold().await, "piece {piece}");
            }
            Invoked::Answered(_) | Invoked::Failed(_) => {}
            Invoked::Died => panic!("a cut connection ended the instance: {}", persist.said()),
        }
        world.postgres.cut_reply(0);
        world.deliver_all(&persist).await;
        assert_eq!(world.recorded().await, world.sold().await, "piece {piece}");
    }
    // What a client sees of a restart: the server ends its sessions with a word of its own.
    sell(&world, &book).await;
    let client = Postgres::shared().connection(&world.database_url).await;
    let others = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
                  WHERE datname = current_database() AND pid <> pg_backend_pid()";
    let ended = client.query(others, &[]).await.expect("PostgreSQL answers");
    assert!(!ended.is_empty(), "persist was connected");
    wait_until(LONG, "a delivery", async || {
        let _ = world.deliver(&persist).await;
        world.messages(&world.bookings_url).await == 0
    })
    .await;
    assert_eq!(world.recorded().await, world.sold().await);
}

#[tokio::test]
async fn the_same_instance_writes_to_a_server_that_was_restarted() {
    let mut postgres = Postgres::start();
    let world = World::recorded_by(&postgres).await;
    let (book, persist) = (world.book().await, world.persist().await);
    sell(&world, &book).await;
    world.deliver_all(&persist).await;
    assert_eq!(world.recorded().await.len(), 1);

    sell(&world, &book).await;
    postgres.stop();
    let (invoked, _) = world.deliver(&persist).await.expect("a message");
    assert!(matches!(invoked, Invoked::Failed(_)), "{invoked:?}");
    postgres.start_again();
    world.deliver_all(&persist).await;
    assert_eq!(world.recorded().await, world.sold().await);
    world.settles().await;
}

#[tokio::test]
async fn a_seat_that_postgresql_gave_to_somebody_else_is_an_alarm_and_holds_up_nobody() {
    let world = World::new().await;
    let (book, persist) = (world.book().await, world.persist().await);
    let token = world.active().await;
    world.app.hold(&token, json!({ "offeringId": "T1", "seats": ["1A"] })).await.data();
    world.app.book(&token, json!({})).await;
    let sold = world.sold().await;
    // Somebody else's reservation of that very seat, which Redis has never heard of.
    let mut stranger = sold[0].clone();
    stranger.token = Token::random();
    stranger.reservation_id = ReservationId::of(world.app.event.clone(), stranger.token);
    let fact = |sequence, reservation| Fact {
        event: world.app.event.clone(),
        epoch: 1,
        id: StreamId { ms: 1_790_000_000_000, sequence },
        at: Millis(1_790_000_000_000),
        what: What::Booked { reservation },
    };
    let body = |fact: &Fact| json!({ "facts": [fact] }).to_string();
    world.send(&body(&fact(1, stranger.clone()))).await;
    world.deliver_all(&persist).await;

    world.send(&body(&fact(2, sold[0].clone()))).await;
    for _ in 0..3 {
        sell(&world, &book).await;
    }
    let (invoked, handed_over) = world.deliver(&persist).await.expect("messages");
    assert_eq!((handed_back(&invoked.answer()).len(), handed_over.len()), (1, 4), "it alone comes again");
    let recorded = world.recorded().await;
    assert_eq!(recorded.len(), 1 + 3);
    assert!(recorded.iter().any(|known| known.reservation_id == stranger.reservation_id));
    wait_until(LONG, "the alarm's metric", async || {
        let _ = persist.invoke(&json!({ "Records": [] })).await;
        persist.counted("guard_violations") == 1
    })
    .await;
    // It ends among the dead letters, where an operator finds it.
    wait_until(LONG, "a dead letter", async || {
        let _ = world.deliver(&persist).await;
        world.messages(&world.dead_letters_url).await == 1
    })
    .await;
}
