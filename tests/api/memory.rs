//! Bytes that Redis keeps for one who waits, in all keys of the sale, the journal drained: beside a plain sorted set of
//! as many UUIDs.

use std::net::{IpAddr, Ipv4Addr};

use domain::command::Join;
use domain::outcome::Address;
use domain::{Account, Token};
use futures::StreamExt;
use redis::aio::MultiplexedConnection;
use store::Drawn;
use support::{App, Redis, TakesAll, Topology};

/// What the sale keeps whoever comes is in both, so the second less the first is what those between have added.
const FEW: usize = 5_000;
const MANY: usize = 25_000;

async fn usage(connection: &mut MultiplexedConnection, pattern: &str) -> u64 {
    let keys: Vec<String> =
        redis::cmd("KEYS").arg(pattern).query_async(connection).await.expect("redis answers");
    let mut bytes = 0;
    for key in keys {
        let mut usage = redis::cmd("MEMORY");
        usage.arg("USAGE").arg(key).arg("SAMPLES").arg(0);
        bytes += usage.query_async::<Option<u64>>(connection).await.expect("redis answers").unwrap_or(0);
    }
    bytes
}

/// Times the bytes of a plain sorted set.
async fn beside_a_plain_line(account: impl Fn() -> Option<Account>) -> f64 {
    let redis = Redis::start(Topology::of_one_node());
    let app = App::on(&redis, |_| {}).await;
    let pattern = format!("ticket:{{{}}}:*", app.event);
    let mut connection = redis.connection_of(&format!("ticket:{{{}}}:", app.event)).await;
    let mut bytes = Vec::new();
    for count in [FEW, MANY - FEW] {
        let joins = (0..count).map(|_| async {
            let (account, address) = (account(), Address::of(IpAddr::V4(Ipv4Addr::LOCALHOST)));
            let token = Token::of(&app.event, account.as_ref());
            let join = Join { event: app.event.clone(), address, account };
            let joined = app.store.join(&join, Drawn { token, score: 0 }, |token| Drawn { token, score: 0 });
            joined.await.expect("redis answers").expect("a place");
        });
        futures::stream::iter(joins).buffer_unordered(64).collect::<Vec<()>>().await;
        while relay::relay(&app.store, &TakesAll, 0).await.expect("redis answers") > 0 {}
        let ours = usage(&mut connection, &pattern).await;
        let plain = format!("plain:{{{}}}", app.event);
        for score in 0..count {
            let mut add = redis::cmd("ZADD");
            add.arg(&plain).arg(bytes.len() * FEW + score).arg(Token::random().to_string());
            add.exec_async(&mut connection).await.expect("redis answers");
        }
        bytes.push((ours, usage(&mut connection, &plain).await));
    }
    let [few, many] = [bytes[0], bytes[1]];
    (many.0 - few.0) as f64 / (many.1 - few.1) as f64
}

#[tokio::test]
async fn who_waits_costs_a_plain_line_s_bytes() {
    let ratio = beside_a_plain_line(|| None).await;
    println!("\n{ratio:.3} times a plain line");
    assert!(ratio <= 1.05, "{ratio}");
}

#[tokio::test]
async fn an_account_doubles_them() {
    let ratio = beside_a_plain_line(|| Token::random().to_string().parse().ok()).await;
    println!("\n{ratio:.3} times a plain line");
    assert!(ratio <= 2.0, "{ratio}");
}
