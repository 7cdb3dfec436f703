//! How long Redis works for one step while everybody waits, and how that grows.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use domain::command::{Book, Choice, Hold, Poll, Purchase};
use domain::{SeatName, Token};
use futures::{StreamExt, TryStreamExt};
use redis::aio::MultiplexedConnection;

use crate::figure::{Figure, Target};
use crate::redis_time::micros_a_call;
use crate::rounds::beside;
use crate::world::{AT_ONCE, Sale, address, patient, row_of_four};
use crate::{Bench, Full};

pub(crate) const FIGURES: &[&str] = &[
    "poll_redis",
    "join_redis",
    "book_2_redis",
    "hold_4_redis",
    "admit_500_redis",
    "growth_poll",
    "growth_join",
];

/// Calls a round.
const CALLS: usize = 2_000;
/// Holds and bookings a round: each takes a session of its own.
const SESSIONS: usize = 500;
/// The line that a long one is held against.
const SHORT: usize = 1_000;
/// Joins a round of the short line, which must stay short.
const FEW: usize = 200;

pub(crate) async fn run(bench: &Bench) -> anyhow::Result<Vec<Figure>> {
    let full = bench.full().await?;
    let mut stage = Stage::set(bench, full).await?;
    let mut pairs: [Vec<(f64, f64)>; 7] = Default::default();
    for _ in 0..bench.rounds {
        let empty = stage.empty().await?;
        let zrank = stage.zrank().await?;
        let poll = stage.poll(&full.sale, &full.tokens).await?;
        let join = stage.join(&full.sale, CALLS).await?;
        let hold = stage.hold().await?;
        let book = stage.book().await?;
        let zadd = stage.zadd().await?;
        let admit = stage.admit().await?;
        let (few_poll, few_join) = stage.in_a_short_line().await?;
        let measured = [
            (poll, zrank),
            (join, empty),
            (book, empty),
            (hold, empty),
            (admit, 500.0 * zadd),
            (poll, few_poll),
            (join, few_join),
        ];
        for (pairs, pair) in pairs.iter_mut().zip(measured) {
            pairs.push(pair);
        }
    }
    let targets = [5.0, 6.0, 14.0, 20.0, 5.0, 1.6, 1.6];
    let figures = FIGURES.iter().zip(targets).zip(&pairs);
    Ok(figures
        .map(|((name, target), pairs)| Figure::beside(name, "µs", Target::Times(target), beside(pairs)))
        .collect())
}

/// What the rounds need.
struct Stage<'a> {
    full: &'a Full,
    short: Arc<Sale>,
    short_tokens: Vec<Token>,
    connection: MultiplexedConnection,
    empty: String,
    /// In live sessions, each for one hold or booking.
    live: Vec<Token>,
    held: AtomicUsize,
}

impl<'a> Stage<'a> {
    async fn set(bench: &Bench, full: &'a Full) -> anyhow::Result<Self> {
        let short = Arc::new(Sale::open(&patient(&full.redis), |_| {}).await?);
        let short_tokens = short.join_many(SHORT, |_| None).await?;
        let mut connection = full.redis.connection().await;
        let empty = redis::cmd("SCRIPT").arg("LOAD").arg("return 1").query_async(&mut connection).await?;
        let live = full.sale.seat(&full.tokens, 2 * SESSIONS * bench.rounds).await?;
        Ok(Self { full, short, short_tokens, connection, empty, live, held: AtomicUsize::new(0) })
    }

    async fn empty(&mut self) -> anyhow::Result<f64> {
        let connection = self.connection.clone();
        let mut command = redis::cmd("EVALSHA");
        command.arg(&self.empty).arg(0);
        let command = &command;
        let work = each(CALLS, |_| {
            let mut connection = connection.clone();
            async move { Ok(command.exec_async(&mut connection).await?) }
        });
        micros_a_call(&mut self.connection, "evalsha", work).await
    }

    async fn zrank(&mut self) -> anyhow::Result<f64> {
        let (connection, full) = (self.connection.clone(), self.full);
        let work = each(CALLS, |_| {
            let mut connection = connection.clone();
            async move {
                let mut command = redis::cmd("ZRANK");
                command.arg(crate::PLAIN).arg(&full.plain[fastrand::usize(..full.plain.len())]);
                Ok(command.exec_async(&mut connection).await?)
            }
        });
        micros_a_call(&mut self.connection, "zrank", work).await
    }

    async fn zadd(&mut self) -> anyhow::Result<f64> {
        let connection = self.connection.clone();
        let score = self.full.plain.len();
        let work = each(CALLS, |at| {
            let mut connection = connection.clone();
            async move {
                let mut command = redis::cmd("ZADD");
                command.arg(crate::PLAIN).arg(score + at).arg(Token::random().to_string());
                Ok(command.exec_async(&mut connection).await?)
            }
        });
        micros_a_call(&mut self.connection, "zadd", work).await
    }

    async fn poll(&mut self, sale: &Sale, tokens: &[Token]) -> anyhow::Result<f64> {
        // Those at the front were called.
        let waiting = &tokens[tokens.len() / 2..];
        let work = each(CALLS, |_| async {
            let token = waiting[fastrand::usize(..waiting.len())];
            let poll = Poll { event: sale.event.clone(), token, key: None, address: address() };
            sale.store.poll(&poll, false).await?.map(drop).map_err(|refusal| refused(&refusal))
        });
        micros_a_call(&mut self.connection, "evalsha_ro", work).await
    }

    async fn join(&mut self, sale: &Sale, count: usize) -> anyhow::Result<f64> {
        let work = each(count, |_| async { sale.join(None).await.map(drop) });
        micros_a_call(&mut self.connection, "evalsha", work).await
    }

    /// Four seats of a row.
    async fn hold(&mut self) -> anyhow::Result<f64> {
        let tokens = self.live.split_off(self.live.len() - SESSIONS);
        let (sale, rows) = (&self.full.sale, &self.held);
        let work = each(SESSIONS, |at| {
            let row = rows.fetch_add(1, Ordering::Relaxed);
            let token = tokens[at];
            async move {
                let (section, seats) = row_of_four(row);
                let seats = seats.iter().map(|seat| seat.parse::<SeatName>()).collect::<Result<_, _>>()?;
                let hold = Hold {
                    event: sale.event.clone(),
                    token,
                    offering: None,
                    section: Some(section.parse()?),
                    choice: Choice::Seats(seats),
                    repeatable: None,
                };
                sale.store
                    .hold(&hold, &Token::random().to_string())
                    .await?
                    .map(drop)
                    .map_err(|refusal| refused(&refusal))
            }
        });
        micros_a_call(&mut self.connection, "evalsha", work).await
    }

    /// Two places of the general section.
    async fn book(&mut self) -> anyhow::Result<f64> {
        let tokens = self.live.split_off(self.live.len() - SESSIONS);
        let sale = &self.full.sale;
        let work = each(SESSIONS, |at| {
            let token = tokens[at];
            async move {
                let purchase = Purchase::Plain { seat_count: 2, offering: None, section: None };
                let book = Book { event: sale.event.clone(), token, purchase, repeatable: None };
                sale.store.book(&book).await?.map(drop).map_err(|refusal| refused(&refusal))
            }
        });
        micros_a_call(&mut self.connection, "evalsha", work).await
    }

    /// One tick that calls 500.
    async fn admit(&mut self) -> anyhow::Result<f64> {
        let sale = &self.full.sale;
        let mut called = 0;
        let tick = async {
            called = sale.tick().await?;
            Ok(())
        };
        let micros = micros_a_call(&mut self.connection, "evalsha", tick).await?;
        anyhow::ensure!(called == 500, "a tick called {called}");
        Ok(micros)
    }

    async fn in_a_short_line(&mut self) -> anyhow::Result<(f64, f64)> {
        let short = Arc::clone(&self.short);
        let tokens = self.short_tokens.clone();
        let poll = self.poll(&short, &tokens).await?;
        let join = self.join(&short, FEW).await?;
        let mut last = redis::cmd("ZPOPMAX");
        last.arg(format!("ticket:{{{}}}:queue:waiting", short.event)).arg(FEW);
        last.exec_async(&mut self.connection).await?;
        Ok((poll, join))
    }
}

fn refused(refusal: &domain::outcome::Refusal) -> anyhow::Error {
    anyhow::anyhow!("refused: {refusal:?}")
}

/// So many calls, many under way at once.
async fn each<F: Future<Output = anyhow::Result<()>>>(
    count: usize,
    call: impl Fn(usize) -> F,
) -> anyhow::Result<()> {
    futures::stream::iter((0..count).map(call)).buffer_unordered(AT_ONCE).try_collect().await
}
