//! What a request costs a function beside the network: CPU in the program itself of the thread that answers, from the
//! event's bytes to the answer's. What the kernel does for it is the network's part, and is left out; everything that is
//! done to talk to Redis (commands written, replies read) is in it.

use domain::{Millis, Token};
use gateway::KeyRing;
use support::MASTER_KEY;

use crate::cpu::Cpu;
use crate::figure::{Figure, Target};
use crate::handlers::{Instance, Template, joining, parse, polling};
use crate::rounds::beside;
use crate::world::patient;
use crate::{Bench, Full};

pub(crate) const FIGURES: &[&str] = &["poll_keyed_handler", "poll_handler", "join_handler"];

/// Requests a round: long beside the ticks in which the kernel counts.
const REQUESTS: usize = 20_000;
/// Parsing is quicker.
const PARSINGS: usize = 100_000;

/// On a thread of its own, as a function's instance is.
pub(crate) async fn run(bench: &Bench) -> anyhow::Result<Vec<Figure>> {
    let full = bench.full().await?;
    let rounds = bench.rounds;
    let pairs = std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            runtime.block_on(measure(full, rounds))
        });
        tokio::task::block_in_place(|| thread.join()).map_err(|_| anyhow::anyhow!("a handler panicked"))?
    })?;
    let targets = [12.0, 25.0, 25.0];
    let figures = FIGURES.iter().zip(targets).zip(&pairs);
    Ok(figures
        .map(|((name, target), pairs)| Figure::beside(name, "µs CPU", Target::AtMost(target), beside(pairs)))
        .collect())
}

async fn measure(full: &Full, rounds: usize) -> anyhow::Result<[Vec<(f64, f64)>; 3]> {
    let event = &full.sale.event;
    let instance = Instance::of(&patient(&full.redis), event)?;
    let (poll, join) = (Template::poll()?, Template::join()?);
    let mut pairs: [Vec<(f64, f64)>; 3] = Default::default();
    for round in 0..=rounds {
        let tokens = some_waiting(full);
        let keyed = keyed_polls(full, &instance, &poll, &tokens).await?;
        let keyed = measured(&instance, &keyed).await?;
        let polls: Vec<Vec<u8>> = tokens.iter().map(|token| polling(&poll, event, *token, None)).collect();
        let exact = measured(&instance, &polls).await?;
        let joins: Vec<Vec<u8>> = tokens.iter().map(|_| joining(&join, event)).collect();
        let joined = measured(&instance, &joins).await?;
        full.sale.drain().await?;
        // The first round is for caches to fill.
        if round > 0 {
            for (pairs, pair) in pairs.iter_mut().zip([keyed, exact, joined]) {
                pairs.push(pair);
            }
        }
    }
    Ok(pairs)
}

/// Anybody but those at the front, who were called.
fn some_waiting(full: &Full) -> Vec<Token> {
    let waiting = &full.tokens[full.tokens.len() / 2..];
    (0..REQUESTS).map(|_| waiting[fastrand::usize(..waiting.len())]).collect()
}

/// Polls with keys whose time has come: as of whoever has waited as told.
async fn keyed_polls(
    full: &Full,
    instance: &Instance,
    template: &Template,
    tokens: &[Token],
) -> anyhow::Result<Vec<Vec<u8>>> {
    let event = &full.sale.event;
    let ring = KeyRing::new(MASTER_KEY.as_bytes(), None);
    let mut places = Vec::with_capacity(tokens.len());
    for token in tokens {
        let (_, body) = instance.call(&polling(template, event, *token, None)).await?;
        let key = body["data"]["key"].as_str().and_then(|key| ring.check(event, *token, key));
        places.push((*token, key.ok_or_else(|| anyhow::anyhow!("no key in {body}"))?));
    }
    let now = Millis::now();
    Ok(places
        .into_iter()
        .map(|(token, mut place)| {
            place.earliest_at = now;
            polling(template, event, token, Some(&ring.sign(event, token, &place)))
        })
        .collect())
}

/// Microseconds of CPU a request, and of parsing its event alone.
async fn measured(instance: &Instance, events: &[Vec<u8>]) -> anyhow::Result<(f64, f64)> {
    let before = Cpu::of_this_thread()?;
    for event in events {
        let answer = instance.answer(event).await?;
        anyhow::ensure!(support::has_succeeded(&answer), "{}", String::from_utf8_lossy(&answer));
    }
    let handled = Cpu::of_this_thread()?.since(before).user;
    let before = Cpu::of_this_thread()?;
    for event in events.iter().cycle().take(PARSINGS) {
        std::hint::black_box(parse(event)?);
    }
    let parsed = Cpu::of_this_thread()?.since(before).user;
    Ok((1e6 * handled / events.len() as f64, 1e6 * parsed / PARSINGS as f64))
}
