//! `make bench`: every figure that the product has to reach, in one table and in a JSON file.

mod cpu;
mod figure;
mod handlers;
mod load;
mod plot;
mod redis_time;
mod rounds;
mod rows;
mod wheel;
mod world;

use std::path::PathBuf;

use anyhow::{Context, ensure};
use clap::Parser;
use domain::Token;
use support::{Redis, Topology};
use tokio::sync::OnceCell;

use figure::Figure;
use world::{Sale, patient};

/// A plain sorted set of as many UUIDs as there are people.
const PLAIN: &str = "plain";

/// What `make bench` passes on.
#[derive(Debug, Parser)]
struct Arguments {
    /// Only this row, or the row of this figure
    #[arg(long)]
    only: Option<String>,
    /// People who wait
    #[arg(long, default_value_t = 2_000_000)]
    waiting: usize,
    /// Rounds that medians are taken of
    #[arg(long, default_value_t = 7)]
    rounds: usize,
    /// The folder of a `server.js` to measure the whole system beside
    #[arg(long)]
    peer: Option<PathBuf>,
    /// Where the figures go as JSON
    #[arg(long, default_value = "target/bench.json")]
    output: PathBuf,
}

/// What rows share.
struct Bench {
    waiting: usize,
    rounds: usize,
    peer: Option<PathBuf>,
    /// Where pictures go.
    folder: PathBuf,
    full: OnceCell<Full>,
}

/// Everybody waits in one line, and in a plain sorted set beside it.
struct Full {
    redis: Redis,
    sale: Sale,
    tokens: Vec<Token>,
    plain: Vec<String>,
    line_bytes: u64,
    plain_bytes: u64,
}

impl Bench {
    async fn full(&self) -> anyhow::Result<&Full> {
        self.full.get_or_try_init(|| Full::of(self.waiting)).await
    }
}

impl Full {
    async fn of(waiting: usize) -> anyhow::Result<Self> {
        let redis = Redis::start(Topology::Single);
        let sale = Sale::open(&patient(&redis), |_| {}).await?;
        eprintln!("bench: {waiting} people join");
        let tokens = sale.join_many(waiting, |_| None).await?;
        world::forget_counters(&redis).await?;
        let mut connection = redis.connection().await;
        let line_bytes = world::memory(&mut connection).await?;
        let plain = world::plain_line(&mut connection, PLAIN, waiting).await?;
        let mut usage = redis::cmd("MEMORY");
        usage.arg("USAGE").arg(PLAIN).arg("SAMPLES").arg(0);
        let plain_bytes = usage.query_async(&mut connection).await?;
        Ok(Self { redis, sale, tokens, plain, line_bytes, plain_bytes })
    }
}

#[tokio::main(worker_threads = 2)]
async fn main() -> anyhow::Result<()> {
    let Arguments { only, waiting, rounds, peer, output } = Arguments::parse();
    ensure!(waiting >= 10_000 && rounds >= 1, "at least 10 000 waiting and a round");
    let folder = output.parent().map(PathBuf::from).unwrap_or_default();
    let bench = Bench { waiting, rounds, peer, folder, full: OnceCell::new() };
    let chosen: Vec<_> =
        rows::ROWS.iter().filter(|row| only.as_ref().is_none_or(|only| row.is_called(only))).collect();
    let names = || rows::ROWS.iter().map(|row| row.name).collect::<Vec<_>>().join(", ");
    ensure!(!chosen.is_empty(), "no such row; there are {}", names());
    let mut figures: Vec<Figure> = Vec::new();
    for row in chosen {
        eprintln!("bench: {}", row.name);
        figures.extend(row.run(&bench).await);
        // Each time, so that a run that is cut short has told something.
        std::fs::write(&output, serde_json::to_string_pretty(&figures)? + "\n")
            .with_context(|| output.display().to_string())?;
    }
    println!("{}", figure::table(&figures));
    Ok(())
}
