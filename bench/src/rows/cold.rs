//! From a process' start to the answer of its first request: real binaries before a Runtime API and a Redis behind TLS,
//! beside a function that does nothing, plus one connection to that Redis.

use std::time::Instant;

use anyhow::ensure;
use serde_json::Value;
use store::Store;
use support::{ACCESS_TOKEN_KEY, Function, Invoked, MASTER_KEY, Redis, Topology};

use crate::Bench;
use crate::figure::{Figure, Target};
use crate::handlers::{Template, joining, polling};
use crate::rounds::beside;
use crate::world::{Sale, patient};

pub(crate) const FIGURES: &[&str] = &["cold_join", "cold_poll", "cold_book"];

pub(crate) async fn run(bench: &Bench) -> anyhow::Result<Vec<Figure>> {
    let redis = Redis::start(Topology::Tls);
    let config = patient(&redis);
    let sale = Sale::open(&config, |_| {}).await?;
    let token = sale.join(None).await?;
    let event = &sale.event;
    let ca = config.ca.clone().unwrap_or_default();
    let variables = [
        ("REDIS_URL", config.url.as_str()),
        ("REDIS_CA", &ca),
        ("MASTER_KEY", MASTER_KEY),
        ("ACCESS_TOKEN_KEY", ACCESS_TOKEN_KEY),
        ("DEFAULT_EVENT_ID", event.as_str()),
        // Nobody listens: a first request that buys nothing sends nothing.
        ("BOOKINGS_QUEUE_URL", "http://127.0.0.1:9/bookings"),
        ("LINE_QUEUE_URL", "http://127.0.0.1:9/line"),
    ];
    let (join, poll) = (joining(&Template::join()?, event), polling(&Template::poll()?, event, token, None));
    let book =
        Template::book()?.saying(&serde_json::json!({ "token": token, "eventId": event, "seatCount": 1 }));
    let mut pairs: [Vec<(f64, f64)>; 3] = Default::default();
    for round in 0..=bench.rounds {
        let empty = start("examples/empty", &[], &poll, 200).await?;
        let connecting = Instant::now();
        Store::new(&config)?.ping().await?;
        let baseline = empty + millis(connecting);
        let started = [
            start("join", &variables, &join, 200).await?,
            start("poll", &variables, &poll, 200).await?,
            // Waiting, not admitted.
            start("book", &variables, &book, 403).await?,
        ];
        // The first round is for files to be in memory.
        if round > 0 {
            for (pairs, started) in pairs.iter_mut().zip(started) {
                pairs.push((started, baseline));
            }
        }
    }
    let targets = [1.5, 1.5, 3.0];
    let figures = FIGURES.iter().zip(targets).zip(&pairs);
    let figures = figures
        .map(|((name, target), pairs)| Figure::beside(name, "ms", Target::Times(target), beside(pairs)));
    Ok(figures.collect())
}

/// Milliseconds from the start of the process to its first answer.
async fn start(function: &str, variables: &[(&str, &str)], event: &[u8], status: u16) -> anyhow::Result<f64> {
    let event: Value = serde_json::from_slice(event)?;
    let started = Instant::now();
    let instance = Function::start(function, None, variables).await;
    let invoked = instance.invoke(&event).await;
    let took = millis(started);
    let Invoked::Answered(answer) = invoked else {
        anyhow::bail!("{function}: {invoked:?}\n{}", instance.said())
    };
    ensure!(answer["statusCode"] == status, "{function}: {answer}");
    Ok(took)
}

fn millis(since: Instant) -> f64 {
    1e3 * since.elapsed().as_secs_f64()
}
