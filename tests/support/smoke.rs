//! The servers that other tests stand on.

#![cfg(test)]

use std::collections::BTreeMap;
use std::net::TcpStream;
use std::time::Duration;

use redis::AsyncCommands;
use support::{AppendOnly, Postgres, Redis, Sqs, Topology, wait_until};

fn counts<const N: usize>(expected: [(&str, u64); N]) -> BTreeMap<String, u64> {
    expected.into_iter().map(|(name, count)| (name.to_owned(), count)).collect()
}

fn takes_connections(url: &str) -> bool {
    TcpStream::connect(url.trim_start_matches("redis://").trim_end_matches('/')).is_ok()
}

async fn information(redis: &Redis, section: &str) -> String {
    redis::cmd("INFO").arg(section).query_async(&mut redis.connection().await).await.unwrap()
}

#[tokio::test]
async fn redis_has_the_chosen_topology() {
    let redis = Redis::shared(Topology::chosen());
    let cluster_enabled = u8::from(redis.topology().is_cluster());
    let answer = information(redis, "cluster").await;
    assert!(answer.contains(&format!("cluster_enabled:{cluster_enabled}")), "{answer}");
}

#[tokio::test]
async fn a_cluster_of_one_node_serves_every_slot() {
    let redis = Redis::start(Topology::Cluster);
    let client = redis::cluster::ClusterClient::new([redis.url()]).unwrap();
    let mut connection = client.get_async_connection().await.unwrap();
    for number in 0..1_000 {
        let () = connection.set(format!("key-{number}"), number).await.unwrap();
    }
    let keys: u64 = redis::cmd("DBSIZE").query_async(&mut redis.connection().await).await.unwrap();
    assert_eq!(keys, 1_000);
}

#[tokio::test]
async fn two_redises_are_two_and_end_when_dropped() {
    let (one, other) = (Redis::start(Topology::Single), Redis::start(Topology::Single));
    let () = one.connection().await.set("key", 1).await.unwrap();
    let elsewhere: Option<i64> = other.connection().await.get("key").await.unwrap();
    assert_eq!(elsewhere, None);
    let url = one.url().to_owned();
    assert!(takes_connections(&url));
    drop(one);
    assert!(!takes_connections(&url));
    assert!(takes_connections(other.url()));
}

#[tokio::test]
async fn the_append_only_file_is_off_unless_asked_for() {
    for (append_only, enabled) in [(AppendOnly::Off, 0), (AppendOnly::On, 1)] {
        let redis = Redis::start_with(Topology::of_one_node(), append_only);
        let answer = information(&redis, "persistence").await;
        assert!(answer.contains(&format!("aof_enabled:{enabled}")), "{answer}");
    }
}

#[tokio::test]
async fn counting_sees_what_clients_send_and_not_what_scripts_call() {
    let redis = Redis::start(Topology::of_one_node());
    let mut connection = redis.connection().await;
    let script = "redis.call('SET', KEYS[1], 1); return redis.call('GET', KEYS[1])";
    let hash: String =
        redis::cmd("SCRIPT").arg("LOAD").arg(script).query_async(&mut connection).await.unwrap();
    let counted = redis
        .count_commands(async || {
            let evalsha = |hash: &str| redis::cmd("EVALSHA").arg(hash).arg(1).arg("{e}:key").clone();
            for _ in 0..3 {
                let () = evalsha(&hash).query_async(&mut connection).await.unwrap();
            }
            evalsha(&"0".repeat(40)).exec_async(&mut connection).await.unwrap_err();
            let read_only = "return redis.call('GET', KEYS[1])";
            let mut eval = redis::cmd("EVAL_RO");
            eval.arg(read_only).arg(1).arg("{e}:key").exec_async(&mut connection).await.unwrap();
            let mut pipeline = redis::pipe();
            pipeline.get("{e}:key").hset("{e}:\"lua] \"", "field", "value").get("{e}:key");
            pipeline.exec_async(&mut connection).await.unwrap();
        })
        .await;
    assert_eq!(counted, counts([("evalsha", 4), ("eval_ro", 1), ("get", 2), ("hset", 1)]));
    assert_eq!(redis.count_commands(async || ()).await, counts([]));
}

#[tokio::test]
async fn counting_sees_every_client() {
    let redis = Redis::start(Topology::of_one_node());
    let (mut one, mut other) = (redis.connection().await, redis.connection().await);
    let work = async || {
        let (first, second): (redis::RedisResult<()>, redis::RedisResult<()>) =
            tokio::join!(one.set("{e}:one", 1), other.set("{e}:other", 1));
        first.and(second).unwrap();
    };
    assert_eq!(redis.count_commands(work).await, counts([("set", 2)]));
}

#[tokio::test]
#[should_panic(expected = "a shared Redis would count the commands of other tests too")]
async fn counting_on_a_shared_redis_is_refused() {
    Redis::shared(Topology::chosen()).count_commands(async || ()).await;
}

#[tokio::test]
async fn every_database_is_new_and_empty() {
    let postgres = Postgres::shared();
    let (one, other) = (postgres.database().await, postgres.database().await);
    let (one, other) = (postgres.connection(&one).await, postgres.connection(&other).await);
    one.batch_execute("CREATE TABLE seats (id int); INSERT INTO seats VALUES (1)").await.unwrap();
    other.batch_execute("CREATE TABLE seats (id int)").await.unwrap();
    for (client, rows) in [(one, 1), (other, 0)] {
        let counted: i64 = client.query_one("SELECT count(*) FROM seats", &[]).await.unwrap().get(0);
        assert_eq!(counted, rows);
    }
}

#[tokio::test]
async fn a_queue_gives_back_what_it_took_and_forgets_what_is_deleted() {
    let sqs = Sqs::shared();
    let (client, queue, other) = (sqs.client(), sqs.queue("facts").await, sqs.queue("facts").await);
    client.send_message().queue_url(&queue).message_body("자리").send().await.unwrap();
    let received = client.receive_message().queue_url(&queue).send().await.unwrap();
    let [message] = received.messages() else { panic!("one message, not {received:?}") };
    assert_eq!(message.body(), Some("자리"));
    let receipt = message.receipt_handle().unwrap();
    client.delete_message().queue_url(&queue).receipt_handle(receipt).send().await.unwrap();
    for queue in [queue, other] {
        let left = client.receive_message().queue_url(queue).send().await.unwrap();
        assert!(left.messages().is_empty(), "{left:?}");
    }
}

#[tokio::test]
async fn waiting_ends_when_the_answer_is_yes() {
    let mut asked = 0;
    let third_time = async || {
        asked += 1;
        asked == 3
    };
    wait_until(Duration::from_secs(10), "the third time", third_time).await;
    assert_eq!(asked, 3);
}

#[tokio::test]
#[should_panic(expected = "not within 20ms: an answer")]
async fn waiting_has_a_bound_even_without_an_answer() {
    wait_until(Duration::from_millis(20), "an answer", async || std::future::pending().await).await;
}
