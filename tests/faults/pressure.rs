//! Bookings that wait to be written slow admission, and nobody has to do anything about it: admit's real binary.

use serde_json::json;
use support::{Fault, wait_until};

use crate::world::{LONG, World};

#[tokio::test]
async fn admission_stops_while_bookings_wait_and_goes_on_when_they_are_written() {
    let world = World::with(|sale| {
        sale["admission"] =
            json!({ "perSecond": 5, "maxActive": 1_000, "claimSeconds": 180, "backpressureSeconds": 2 });
    })
    .await;
    for _ in 0..400 {
        world.app.join().await;
    }
    let (admit, run) = (world.admit().await, json!({}));
    let running = admit.invoke(&run);
    tokio::pin!(running);
    let state = async || {
        let state = world.app.store.event_state(&world.app.event).await;
        state.expect("redis answers").expect("the event is known")
    };
    let story = async {
        wait_until(LONG, "people are called", async || state().await.active > 0).await;
        // Five a second, for twice two seconds: nobody comes in where twenty wait.
        for _ in 0..20 {
            world.send("{}").await;
        }
        wait_until(LONG, "nobody is called", async || state().await.pace_factor <= 0.0).await;
        let (stopped, ()) =
            (state().await.active, tokio::time::sleep(std::time::Duration::from_secs(3)).await);
        assert_eq!(state().await.active, stopped);
        world.client.purge_queue().queue_url(&world.bookings_url).send().await.expect("SQS forgets");
        wait_until(LONG, "people are called again", async || state().await.active > stopped).await;
        assert!(state().await.pace_factor >= 1.0);

        // A queue that does not answer takes no bookings either: a while later nobody is called.
        world.sqs.set(Fault::Refuse);
        world.sqs.cut();
        wait_until(LONG, "the unknown counts as too much", async || state().await.pace_factor <= 0.0).await;
        world.sqs.set(Fault::Pass);
        wait_until(LONG, "it ends by itself", async || state().await.pace_factor >= 1.0).await;
    };
    tokio::select! {
        ended = &mut running => panic!("admit ended: {ended:?}\n{}", admit.said()),
        () = story => {}
    }
    assert!(admit.said().contains("\"backpressure\":0.0"), "the metric: {}", admit.said());
}
