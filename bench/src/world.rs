//! A sale in a Redis of the bench's own, and people in it.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::atomic::{AtomicI64, Ordering};

use anyhow::{Context, bail, ensure};
use domain::command::{Join, Progress};
use domain::layout::Edition;
use domain::outcome::{Address, Place};
use domain::{Account, EventId, Millis, Token};
use futures::{StreamExt, TryStreamExt};
use redis::aio::MultiplexedConnection;
use serde_json::{Value, json};
use store::{Applied, Drawn, Load, Store, StoreConfig};
use support::{Redis, TakesAll};

/// Requests under way at once: enough that Redis never waits for the bench.
pub(crate) const AT_ONCE: usize = 128;
/// Joins between two drains of the journal, far below what lets joins be refused.
const DRAIN_EVERY: usize = 100_000;
/// Places of the general section.
pub(crate) const GENERAL: u32 = 100_000;
/// Named sections, each of 500 rows of four.
pub(crate) const NAMED: usize = 25;
pub(crate) const ROWS: usize = 500;

/// The section of a row, counted from 0 over all sections, and its four seats. No two sections have a row in common.
pub(crate) fn row_of_four(row: usize) -> (String, [String; 4]) {
    (format!("A{}", row / ROWS), ["A", "B", "C", "D"].map(|letter| format!("{}{letter}", row + 1)))
}

/// A sale that is open since a minute, by Redis' clock. Its ticks have a clock of their own, a second from one to the
/// next, so that a tick calls as many as its pace says.
pub(crate) struct Sale {
    pub(crate) event: EventId,
    pub(crate) store: Store,
    ticker: Store,
    ticked_at: AtomicI64,
}

/// As the bench's sales are unless one needs it otherwise: 25 sections of 500 rows of four seats, and a general section.
/// Holds end before their sessions: one that made its session longer would sign an access token anew, which costs its
/// function more than all the rest.
fn definition(event: &str, now: Millis) -> Value {
    let mut sections: Vec<Value> = (0..NAMED)
        .map(|number| {
            json!({ "id": format!("A{number}"), "name": "일반실", "price": 59_800,
                "seats": [{ "rows": format!("{}-{}", number * ROWS + 1, (number + 1) * ROWS), "seats": "A-D" }] })
        })
        .collect();
    sections.push(json!({ "id": "G", "name": "입석", "price": 8_400, "capacity": GENERAL }));
    json!({
        "eventId": event,
        "title": "A sale to measure",
        "opensAt": now.plus(-60_000).0,
        "closesAt": now.plus(7 * 86_400_000).0,
        "preQueue": "fifo",
        "admission": { "perSecond": 500, "maxActive": 100_000, "activeSeconds": 3_600, "claimSeconds": 600 },
        "holdSeconds": 600,
        "limitPerAccount": 8,
        "anonymous": "accepted",
        "joinsPerAddressPerSecond": 100_000,
        "default": { "offeringId": "T1", "sectionId": "G" },
        "offerings": [{ "id": "T1", "date": "2027-02-05", "sections": sections }],
    })
}

impl Sale {
    /// A new sale, as `change` makes it.
    pub(crate) async fn open(config: &StoreConfig, change: impl FnOnce(&mut Value)) -> anyhow::Result<Self> {
        let now = Millis::now();
        let event = support::fresh_event();
        let mut definition = definition(&event, now);
        change(&mut definition);
        let (store, ticker) = (Store::new(config)?, Store::new(config)?);
        let sale = domain::sale::check(&definition.to_string());
        let sale = sale.map_err(|problems| anyhow::anyhow!("the sale to measure: {problems:?}"))?;
        let (edition, change) = Edition::first(sale);
        match store.apply(&edition, &change, "bench", "apply").await? {
            Applied::Applied { .. } => {}
            refused => bail!("{refused:?}"),
        }
        Ok(Self { event: event.parse()?, store, ticker, ticked_at: AtomicI64::new(now.0) })
    }

    /// One joins, from an address that nobody has joined from lately: Redis sees a new counter each time.
    pub(crate) async fn join(&self, account: Option<Account>) -> anyhow::Result<Token> {
        let new = Drawn { token: Token::of(&self.event, account.as_ref()), score: 0 };
        let join = Join { event: self.event.clone(), address: address(), account };
        let joined = self.store.join(&join, new, |token| Drawn { token, score: 0 }).await?;
        let (token, _) = joined.map_err(|refusal| anyhow::anyhow!("a join was refused: {refusal:?}"))?;
        Ok(token)
    }

    /// So many join, in the order of the answer; the journal is drained meanwhile, as by the relay.
    pub(crate) async fn join_many(
        &self,
        count: usize,
        account: impl Fn(usize) -> Option<Account>,
    ) -> anyhow::Result<Vec<Token>> {
        let mut tokens = Vec::with_capacity(count);
        while tokens.len() < count {
            let (from, until) = (tokens.len(), count.min(tokens.len() + DRAIN_EVERY));
            let joins = futures::stream::iter((from..until).map(|at| self.join(account(at))));
            tokens.extend(joins.buffered(AT_ONCE).try_collect::<Vec<_>>().await?);
            self.drain().await?;
        }
        Ok(tokens)
    }

    /// The journal's facts are handed over, until none is left.
    pub(crate) async fn drain(&self) -> anyhow::Result<()> {
        while relay::relay(&self.store, &TakesAll, 0).await? > 0 {}
        Ok(())
    }

    /// A tick, a second after the last one: how many it called.
    pub(crate) async fn tick(&self) -> anyhow::Result<u64> {
        let now = self.ticked_at.fetch_add(1_000, Ordering::Relaxed) + 1_000;
        self.ticker.drive_clock(Millis(now));
        let ticked = self.ticker.admit(&self.event, Load::default()).await?;
        Ok(ticked.map_err(|refusal| anyhow::anyhow!("{refusal:?}"))?.admitted)
    }

    /// So many in live sessions: called in the order of `line`, come.
    pub(crate) async fn seat(&self, line: &[Token], count: usize) -> anyhow::Result<Vec<Token>> {
        let mut called = 0;
        while called < count as u64 {
            let more = self.tick().await?;
            ensure!(more > 0, "nobody more is called after {called}");
            called += more;
        }
        let claims = futures::stream::iter(line.iter().map(|token| async move {
            let polled = self.store.claim(&self.event, *token).await?;
            let place = polled.map_err(|refusal| anyhow::anyhow!("{refusal:?}"))?.standing.place;
            anyhow::Ok(matches!(place, Place::Active { .. }).then_some(*token))
        }));
        let claimed = claims.buffered(AT_ONCE).try_filter_map(|token| async move { Ok(token) });
        let seated: Vec<Token> = claimed.take(count).try_collect().await?;
        ensure!(seated.len() == count, "{} of {count} are in", seated.len());
        Ok(seated)
    }
}

/// A Redis as the product reaches it, with time for an answer where hundreds are asked for at once.
pub(crate) fn patient(redis: &Redis) -> StoreConfig {
    StoreConfig { answer_timeout: std::time::Duration::from_secs(30), ..redis.config() }
}

/// Free places of a whole sale.
pub(crate) async fn remaining(store: &Store, event: &EventId) -> anyhow::Result<u64> {
    let progress = store.progress(&Progress { event: event.clone() }).await?;
    Ok(progress.map_err(|refusal| anyhow::anyhow!("{refusal:?}"))?.view.remaining_seats)
}

/// Any address; a sale of millions sees hardly one twice in a second.
pub(crate) fn address() -> Address {
    Address::of(IpAddr::V4(Ipv4Addr::from_bits(fastrand::u32(..))))
}

/// Hands all keys that match to `work`, a portion at a time.
async fn scan(
    connection: &mut MultiplexedConnection,
    pattern: &str,
    mut work: impl AsyncFnMut(&mut MultiplexedConnection, Vec<String>) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let mut cursor = 0_u64;
    loop {
        let mut command = redis::cmd("SCAN");
        command.arg(cursor).arg("MATCH").arg(pattern).arg("COUNT").arg(10_000);
        let (next, keys): (u64, Vec<String>) = command.query_async(connection).await?;
        if !keys.is_empty() {
            work(connection, keys).await?;
        }
        cursor = next;
        if cursor == 0 {
            return Ok(());
        }
    }
}

/// Bytes of all keys by MEMORY USAGE, but those that end by themselves within seconds.
pub(crate) async fn memory(connection: &mut MultiplexedConnection) -> anyhow::Result<u64> {
    let mut bytes = 0_u64;
    let add = async |connection: &mut MultiplexedConnection, keys: Vec<String>| {
        for key in keys {
            let mut usage = redis::cmd("MEMORY");
            usage.arg("USAGE").arg(&key).arg("SAMPLES").arg(0);
            bytes += usage.query_async::<Option<u64>>(connection).await?.unwrap_or_default();
        }
        Ok(())
    };
    scan(connection, "*", add).await?;
    Ok(bytes)
}

/// Fill a sorted set with so many UUIDs, as plainly as one can.
pub(crate) async fn plain_line(
    connection: &mut MultiplexedConnection,
    key: &str,
    count: usize,
) -> anyhow::Result<Vec<String>> {
    let tokens: Vec<String> = (0..count).map(|_| Token::random().to_string()).collect();
    for (at, chunk) in tokens.chunks(1_000).enumerate() {
        let mut command = redis::cmd("ZADD");
        command.arg(key);
        for (position, token) in chunk.iter().enumerate() {
            command.arg(at * 1_000 + position).arg(token);
        }
        command.exec_async(connection).await.context("ZADD")?;
    }
    Ok(tokens)
}

/// Waits until counters of single seconds have ended, and Redis has forgotten them.
pub(crate) async fn forget_counters(redis: &Redis) -> anyhow::Result<()> {
    tokio::time::sleep(std::time::Duration::from_millis(1_100)).await;
    let mut connection = redis.connection().await;
    // Whoever looks at a key that has ended deletes it.
    let look = async |connection: &mut MultiplexedConnection, keys: Vec<String>| {
        Ok(redis::cmd("EXISTS").arg(keys).exec_async(connection).await?)
    };
    scan(&mut connection, "*:rate:*", look).await
}
