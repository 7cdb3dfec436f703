//! The sale against a model of it: the same random commands, the same answers. See ARCHITECTURE.md, "How it is proven".
//!
//! | environment variable | meaning |
//! |---|---|
//! | `JARI_SIM_CASES` | seeds of each test, by default 50 |
//! | `JARI_SIM_MUTATIONS` | `all`: every deliberate fault, not only a few of them; or a part of what is said of one |
//! | `JARI_SIM_SEED` | this seed alone |
//! | `JARI_SIM_KEEP` | of its commands those at these positions alone: `3,17,20` |
#![cfg(test)]
#![allow(clippy::similar_names, clippy::match_same_arms, reason = "the field's words, and tables of cases")]

mod command;
mod coverage;
mod loss;
mod model;
mod mutations;
mod real;
mod rules;
mod run;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use command::Command;
use mutations::{MUTATIONS, Mutation};
use run::{Difference, Seen};
use store::{Bench, StoreConfig};
use support::{Redis, Topology};

/// Commands of a seed.
const COMMANDS: usize = 500;
/// Seeds of a test.
const CASES: u64 = 50;
/// Seeds that a deliberate fault may survive.
const MUTATION_CASES: u64 = 400;
/// One in so many is tried by every run of the tests.
const MUTATIONS_SKIPPED: usize = 12;
/// Runs that a failure is shortened by at most.
const SHRINKING_RUNS: usize = 400;

fn environment<T: std::str::FromStr>(name: &str) -> Option<T> {
    std::env::var(name).ok()?.parse().ok()
}

fn listed(seed: u64) -> Vec<(usize, Command)> {
    command::commands(seed, COMMANDS).into_iter().enumerate().collect()
}

/// The shortest list found that fails as well: ever smaller parts are left out, as long as that goes.
async fn shrunk(
    config: &StoreConfig,
    bench: &Arc<Bench>,
    seed: u64,
    mut list: Vec<(usize, Command)>,
    mut difference: Difference,
) -> (Vec<(usize, Command)>, Difference) {
    list.retain(|(at, _)| *at <= difference.at);
    let (mut part, mut runs) = (list.len().div_ceil(2), 0);
    while part > 0 && runs < SHRINKING_RUNS {
        let mut from = 0;
        while from < list.len() && runs < SHRINKING_RUNS {
            let mut shorter = list.clone();
            shorter.drain(from..(from + part).min(list.len()));
            runs += 1;
            match run::run(config, bench, seed, &shorter, &mut Seen::default()).await {
                Err(found) => (list, difference) = (shorter, found),
                Ok(()) => from += part,
            }
        }
        part = if part == 1 { 0 } else { part.div_ceil(2) };
    }
    (list, difference)
}

async fn fail(
    config: &StoreConfig,
    bench: &Arc<Bench>,
    seed: u64,
    list: Vec<(usize, Command)>,
    difference: Difference,
) {
    let (list, difference) = shrunk(config, bench, seed, list, difference).await;
    let keep: Vec<String> = list.iter().map(|(at, _)| at.to_string()).collect();
    let commands: Vec<String> = list.iter().map(|(at, command)| format!("  {at}: {command:?}")).collect();
    panic!(
        "both sales differ: {}\nafter\n{}\nagain by JARI_SIM_SEED={seed} JARI_SIM_KEEP={}",
        difference.what,
        commands.join("\n"),
        keep.join(","),
    );
}

/// The seeds of one test. Each test's are others, and all of its own cover everything.
async fn seeds(part: u64) {
    let redis = Redis::start(Topology::chosen());
    let bench = Arc::new(Bench::new());
    let mut seen = Seen::default();
    let cases = environment("JARI_SIM_CASES").unwrap_or(CASES);
    for seed in part * 1_000..part * 1_000 + cases {
        let list = listed(seed);
        if let Err(difference) = run::run(&redis.config(), &bench, seed, &list, &mut seen).await {
            fail(&redis.config(), &bench, seed, list, difference).await;
        }
    }
    println!("{} commands; asked, and with success: {:?}", seen.commands, seen.asked);
    let undefined = coverage::undefined(&seen);
    assert!(undefined.is_empty(), "not in the diagram: {undefined:?}");
    // Fewer seeds than usual need not come everywhere.
    if cases >= CASES {
        let missing = coverage::missing(&seen, &bench);
        assert!(missing.is_empty(), "never walked:\n{}", missing.join("\n"));
    }
}

macro_rules! parts {
    ($($name:ident $part:literal)*) => {
        $(#[tokio::test]
        async fn $name() {
            seeds($part).await;
        })*
    };
}

// Each in a process of its own, where cargo-nextest runs them.
parts! { seeds_1 1 seeds_2 2 seeds_3 3 seeds_4 4 seeds_5 5 seeds_6 6 seeds_7 7 seeds_8 8 }

/// After how many commands both sales differed; `None` where they never did.
async fn caught(redis: &Redis, &(file, text, replacement, why): &Mutation) -> Option<usize> {
    let lua = Path::new(env!("CARGO_MANIFEST_DIR")).join("../lua");
    let source = std::fs::read_to_string(lua.join(file)).expect("a file of lua/");
    assert_eq!(source.matches(text).count(), 1, "{why}: {file} has no or no single {text}");
    let changes = BTreeMap::from([(file, source.replacen(text, replacement, 1))]);
    let bench = Bench::changed(&lua, &changes).expect("readable steps");
    assert!(bench.changes() > 0, "{why}: no step has changed");
    let bench = Arc::new(bench);
    let mut seen = Seen::default();
    for seed in 0..MUTATION_CASES {
        let list = listed(seed);
        if run::run(&redis.config(), &bench, seed, &list, &mut seen).await.is_err() {
            return Some(seen.commands);
        }
    }
    None
}

#[tokio::test]
async fn deliberate_faults_do_not_survive() {
    let chosen: Option<String> = environment("JARI_SIM_MUTATIONS");
    let redis = Redis::start(Topology::chosen());
    let mut survivors = Vec::new();
    for (at, mutation) in MUTATIONS.iter().enumerate() {
        let (file, _, _, why) = mutation;
        let is_chosen = match chosen.as_deref() {
            None => at % MUTATIONS_SKIPPED == 0,
            Some("all") => true,
            Some(part) => why.contains(part) || file.contains(part),
        };
        if !is_chosen {
            continue;
        }
        let commands = caught(&redis, mutation).await;
        if let Some(commands) = commands {
            println!("caught after {commands:>6}  {file:<20}  {why}");
        } else {
            println!("SURVIVED             {file:<20}  {why}");
            survivors.push(*why);
        }
    }
    assert!(survivors.is_empty(), "survived: {survivors:#?}");
}

#[tokio::test]
async fn the_seed_that_was_asked_for() {
    let Some(seed) = environment::<u64>("JARI_SIM_SEED") else { return };
    let redis = Redis::start(Topology::chosen());
    let bench = Arc::new(Bench::new());
    let keep: Option<BTreeSet<usize>> = environment::<String>("JARI_SIM_KEEP")
        .map(|text| text.split(',').filter_map(|at| at.trim().parse().ok()).collect());
    let mut list = listed(seed);
    list.retain(|(at, _)| keep.as_ref().is_none_or(|keep| keep.contains(at)));
    if let Err(difference) = run::run(&redis.config(), &bench, seed, &list, &mut Seen::default()).await {
        fail(&redis.config(), &bench, seed, list, difference).await;
    }
}
