//! Bookings through handlers: a general section that too many want at once, and fifty thousand seats, by fours.

use std::collections::HashSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use anyhow::{Context, ensure};
use domain::Token;
use domain::command::Progress;
use futures::{StreamExt, TryStreamExt};
use redis::aio::MultiplexedConnection;
use serde_json::{Value, json};
use support::{AppendOnly, Redis, Topology};
use tokio::sync::Mutex;

use crate::Bench;
use crate::figure::{Figure, Target};
use crate::handlers::{Instance, Template};
use crate::rounds::beside;
use crate::world::{GENERAL, NAMED, ROWS, Sale, patient, row_of_four};

pub(crate) const FIGURES: &[&str] = &["bookings_general", "bookings_seats"];

/// Instances, each with a connection of its own; and baselines over as many.
const INSTANCES: usize = 4;
/// Requests under way at once on each.
const AT_ONCE: usize = 32;
/// Parts that a sale is measured in, each beside its baseline.
const PARTS: usize = 5;

pub(crate) async fn run(bench: &Bench) -> anyhow::Result<Vec<Figure>> {
    Ok(vec![general(bench).await?, seats(bench).await?])
}

/// A sale with an append-only file, and the functions before it.
struct Hall {
    sale: Sale,
    instances: Vec<Instance>,
    connections: Vec<MultiplexedConnection>,
    empty: String,
    _redis: Redis,
}

impl Hall {
    async fn open() -> anyhow::Result<Self> {
        let redis = Redis::start_with(Topology::Single, AppendOnly::On);
        let sale = Sale::open(&patient(&redis), |sale| {
            sale["admission"]["perSecond"] = json!(1_000);
            sale["limitPerAccount"] = json!(4);
        })
        .await?;
        let instances =
            (0..INSTANCES).map(|_| Instance::of(&patient(&redis), &sale.event)).collect::<Result<_, _>>()?;
        let mut connections = Vec::new();
        for _ in 0..INSTANCES {
            connections.push(redis.connection().await);
        }
        let load = redis::cmd("SCRIPT").arg("LOAD").arg("return 1").clone();
        let empty = load.query_async(&mut connections[0]).await?;
        Ok(Self { sale, instances, connections, empty, _redis: redis })
    }

    /// So many people in live sessions.
    async fn filled(&self, people: usize) -> anyhow::Result<Vec<Token>> {
        let joined = self.sale.join_many(people, |_| None).await?;
        let live = self.sale.seat(&joined, people).await?;
        self.sale.drain().await?;
        Ok(live)
    }

    /// Each person's part on one of the instances, all of them at once. A second's worth of what `part` counts.
    async fn rate<F: Future<Output = anyhow::Result<u64>>>(
        &self,
        people: &[Token],
        part: impl Fn(usize, Token) -> F,
    ) -> anyhow::Result<f64> {
        let started = Instant::now();
        let parts = people.iter().enumerate().map(|(at, token)| part(at, *token));
        let parts = futures::stream::iter(parts).buffer_unordered(INSTANCES * AT_ONCE);
        let done: u64 = parts.try_fold(0, |done, more| async move { Ok(done + more) }).await?;
        Ok(done as f64 / started.elapsed().as_secs_f64())
    }

    /// Empty steps a second over as many connections.
    async fn empty_rate(&self, people: &[Token]) -> anyhow::Result<f64> {
        let mut command = redis::cmd("EVALSHA");
        command.arg(&self.empty).arg(0);
        let command = &command;
        self.rate(people, |at, _| {
            let mut connection = self.connections[at % INSTANCES].clone();
            async move { Ok(command.query_async::<u64>(&mut connection).await?) }
        })
        .await
    }

    async fn remaining(&self) -> anyhow::Result<u64> {
        let progress = Progress { event: self.sale.event.clone() };
        let progress = self.sale.store.progress(&progress).await?;
        Ok(progress.map_err(|refusal| anyhow::anyhow!("{refusal:?}"))?.view.remaining_seats)
    }
}

/// A fifth more people than the section has places for, two places each.
async fn general(bench: &Bench) -> anyhow::Result<Figure> {
    let hall = Hall::open().await?;
    let before = hall.remaining().await?;
    let people = hall.filled(GENERAL as usize / 2 / 5 * 6).await?;
    let (template, sold) = (Template::book()?, AtomicU64::new(0));
    let mut pairs = Vec::new();
    for people in people.chunks(people.len().div_ceil(PARTS * bench.rounds)) {
        let sold_before = sold.load(Ordering::Relaxed);
        let booked = hall.rate(people, |at, token| {
            let event = template.saying(&json!({ "token": token, "seatCount": 2 }));
            let (instance, sold) = (&hall.instances[at % INSTANCES], &sold);
            async move {
                let (status, body) = instance.call(&event).await?;
                let seats = if status == 201 { body["data"]["seatCount"].as_u64() } else { None };
                ensure!(seats.is_some() || body["error"]["code"] == "SOLD_OUT", "{body}");
                sold.fetch_add(seats.unwrap_or_default(), Ordering::Relaxed);
                Ok(u64::from(seats.is_some()))
            }
        });
        let booked = booked.await?;
        let empty = hall.empty_rate(people).await?;
        // What is sold out is refused: no rate of bookings.
        if sold.load(Ordering::Relaxed) - sold_before == 2 * people.len() as u64 {
            pairs.push((booked, empty));
        }
    }
    let (sold, left) = (sold.into_inner(), hall.remaining().await?);
    let exact = sold == u64::from(GENERAL) && before - left == sold;
    let figure = Figure::beside(FIGURES[0], "/s", Target::AtLeast(20_000.0), beside(&pairs));
    Ok(figure.only_if(exact).noting(format!("{sold} places of {GENERAL} sold, {} wanted", 2 * people.len())))
}

/// Every row of every section is held by one and then bought; a fifth comes too late for its row.
async fn seats(bench: &Bench) -> anyhow::Result<Figure> {
    let hall = Hall::open().await?;
    let rows = NAMED * ROWS;
    let people = hall.filled(rows / 5 * 6).await?;
    let (holds, books) = (Template::hold()?, Template::book()?);
    let bought: Mutex<Vec<String>> = Mutex::default();
    let mut pairs = Vec::new();
    let part = people.len().div_ceil(PARTS * bench.rounds);
    for (number, people) in people.chunks(part).enumerate() {
        let reserved = hall.rate(people, |at, token| {
            let row = (number * part + at) % rows;
            let (section, seats) = row_of_four(row);
            let held = holds.saying(&json!({ "token": token, "sectionId": section, "seats": seats }));
            let booked = books.saying(&json!({ "token": token }));
            let (instance, bought) = (&hall.instances[at % INSTANCES], &bought);
            async move {
                let (status, body) = instance.call(&held).await?;
                if status != 200 {
                    ensure!(body["error"]["code"] == "SEAT_TAKEN", "{body}");
                    return Ok(0);
                }
                let (status, body) = instance.call(&booked).await?;
                ensure!(status == 201, "{body}");
                let seats =
                    body["data"]["seats"].as_array().with_context(|| format!("no seats in {body}"))?;
                bought.lock().await.extend(seats.iter().map(Value::to_string));
                Ok(1)
            }
        });
        let reserved = reserved.await?;
        let empty = hall.empty_rate(people).await?;
        if (number + 1) * part <= rows {
            pairs.push((reserved, empty));
        }
    }
    let (bought, left) = (bought.into_inner(), hall.remaining().await?);
    let once: HashSet<&String> = bought.iter().collect();
    let exact = once.len() == bought.len() && bought.len() == 4 * rows && left == u64::from(GENERAL);
    let figure = Figure::beside(FIGURES[1], "/s", Target::AtLeast(5_000.0), beside(&pairs));
    Ok(figure.only_if(exact).noting(format!("{} seats of {} sold, no seat twice", bought.len(), 4 * rows)))
}
