//! SQS out of reach: bookings succeed in their time, and their facts wait where they cannot be lost.

use std::time::{Duration, Instant};

use serde_json::json;
use support::{Fault, wait_until};

use crate::world::{LONG, World, answered, purchase};

/// A booking waits 0.8 s for a queue at most; the rest is room for a busy machine.
const IN_TIME: Duration = Duration::from_secs(6);

/// Books while SQS is like that; all facts are kept, and drain by themselves once it is back.
async fn books_while(faults: &[Fault]) {
    let world = World::new().await;
    let book = world.book().await;
    let told = world.journal().await;
    for fault in faults {
        let token = world.active().await;
        world.sqs.set(*fault);
        world.sqs.cut();
        let started = Instant::now();
        let (status, body) = answered(book.invoke(&purchase(&token)).await);
        let elapsed = started.elapsed();
        assert_eq!(status, 201, "{fault:?}: {body}");
        assert!(elapsed < IN_TIME, "{fault:?}: {elapsed:?}");
    }
    assert_eq!(world.sold().await.len(), faults.len());
    let waiting = world.journal().await;
    assert!(waiting > told);

    // The relay gets nothing off its hands and forgets nothing.
    let relay = world.relay().await;
    let run = json!({});
    let relaying = relay.invoke(&run);
    tokio::pin!(relaying);
    tokio::select! {
        ended = &mut relaying => panic!("the relay ended: {ended:?}"),
        () = wait_until(LONG, "a try", async || relay.said().contains("cannot be reached")) => {}
    }
    assert_eq!(world.journal().await, waiting);
    assert_eq!(world.recorded().await, []);

    world.sqs.set(Fault::Pass);
    tokio::select! {
        ended = &mut relaying => panic!("the relay ended: {ended:?}"),
        () = wait_until(LONG, "an empty journal", async || world.journal().await == 0) => {}
    }
    world.settles().await;
}

#[tokio::test]
async fn bookings_succeed_in_their_time_while_sqs_refuses_or_answers_nothing() {
    books_while(&[Fault::Refuse, Fault::Freeze]).await;
}

#[tokio::test]
async fn a_slow_sqs_costs_a_booking_its_bound_and_no_more() {
    books_while(&[Fault::Delay(Duration::from_secs(20))]).await;
}
