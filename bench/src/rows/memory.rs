//! Bytes of Redis for one who waits, of all keys, beside a plain sorted set of as many UUIDs.

use domain::Account;
use support::{Redis, Topology};

use crate::Bench;
use crate::figure::{Figure, Target};
use crate::world::{Sale, forget_counters, memory, patient};

pub(crate) const FIGURES: &[&str] = &["memory_anonymous", "memory_accounts"];

pub(crate) async fn run(bench: &Bench) -> anyhow::Result<Vec<Figure>> {
    let full = bench.full().await?;
    let waiting = bench.waiting as f64;
    let plain = full.plain_bytes as f64 / waiting;
    let anonymous = full.line_bytes as f64 / waiting;
    let accounts = with_accounts(bench.waiting).await? as f64 / waiting;
    let beside = |name, target, bytes: f64| {
        Figure::beside(name, "B", Target::Times(target), (bytes, plain, bytes / plain))
    };
    Ok(vec![
        beside(FIGURES[0], 1.05, anonymous),
        beside(FIGURES[1], 2.0, accounts).noting("an account is a UUID, as sign-in services give them"),
    ])
}

async fn with_accounts(waiting: usize) -> anyhow::Result<u64> {
    let redis = Redis::start(Topology::Single);
    let sale = Sale::open(&patient(&redis), |_| {}).await?;
    let account = |_| domain::Token::random().to_string().parse::<Account>().ok();
    sale.join_many(waiting, account).await?;
    forget_counters(&redis).await?;
    memory(&mut redis.connection().await).await
}
