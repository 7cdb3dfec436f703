//! An instance that Lambda lets have several requests at once, on its managed instances.

use futures::future::join_all;
use serde_json::{Value, json};
use support::{Call, Fault, ripe, wait_until};

use crate::world::{LONG, World, answered};

const CONCURRENCY: usize = 8;

/// The event of a poll by somebody who has joined and waited as told.
async fn ripe_poll(world: &World) -> Value {
    let joined = world.app.post("/api/queue/join", json!({})).await;
    let text = |name: &str| joined.data()[name].as_str().expect("a text").to_owned();
    let token = text("token");
    let key = ripe(&world.app, &token, &text("key")).1;
    Call::new("GET", "/api/status/poll").query("token", token).query("key", key).event()
}

#[tokio::test]
async fn an_instance_answers_several_requests_at_once_from_one_view() {
    let world = World::new().await;
    let poll = world.poll(&CONCURRENCY.to_string()).await;
    let mut polls = Vec::new();
    for _ in 0..3 * CONCURRENCY {
        polls.push(ripe_poll(&world).await);
    }

    let commands = world.server.count_commands(async || {
        world.redis.set(Fault::Freeze);
        let all = join_all(polls.iter().map(|event| poll.invoke(event)));
        let released = async {
            wait_until(LONG, "as many in hand as it may have", async || poll.in_hand() == CONCURRENCY).await;
            world.redis.set(Fault::Pass);
        };
        for (at, invoked) in tokio::join!(all, released).0.into_iter().enumerate() {
            let (status, body) = answered(invoked);
            assert_eq!((status, &body["data"]["rank"]), (200, &json!(at + 1)), "{body}");
        }
    });
    let commands = commands.await;
    let asked: u64 = ["evalsha_ro", "eval_ro"].iter().filter_map(|name| commands.get(*name)).sum();
    assert!((1..=2).contains(&asked) && !commands.contains_key("evalsha"), "{commands:?}");
}
