//! `jari crowd`: many people who behave as the page does, over HTTP, and what they saw.
//!
//! Open loop: people come when the curve says so, however slow the answers are, and what a call waits is counted
//! from when it was to be made.

mod answers;
mod arguments;
mod cast;
mod client;
mod edge;
mod page;
mod plot;
mod report;
mod shop;
mod tab;
mod tally;
mod verdict;
mod visit;
mod witness;

pub(crate) use arguments::{CrowdArguments, Curve, Share, Span};

use std::collections::BTreeMap;
use std::fs;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use anyhow::Context;
use indicatif::{ProgressBar, ProgressStyle};
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep_until};

use self::cast::Cast;
use self::client::Client;
use self::edge::Edge;
use self::report::{Report, Spread};
use self::tally::{End, Tally};
use self::visit::{World, visit};
use self::witness::Witness;
use crate::Ending;
use crate::arguments::SystemArguments;
use crate::output::{Output, complain, number};
use crate::system;

/// Visits that were cut off by an end get this long to be counted.
const SLACK: Duration = Duration::from_mins(10);

pub(crate) async fn run(
    system: &SystemArguments,
    arguments: CrowdArguments,
    output: &mut Output,
) -> anyhow::Result<Ending> {
    let url = match &arguments.url {
        Some(url) => url.clone(),
        None => system::running(system)?.url,
    };
    let tally = Arc::new(Tally::since(Instant::now())?);
    let event = arguments.event.as_ref().map(ToString::to_string);
    let client = Arc::new(Client::new(&url, event, arguments.connections, Arc::clone(&tally))?);
    let edge = Edge::new(Arc::clone(&client), Arc::clone(&tally));
    edge.progress()
        .await
        .map_err(|failure| anyhow::anyhow!("the sale does not answer at {url}: {}", failure.code))?;
    let world = Arc::new(World { client, edge, tally, witness: Witness::default(), event: OnceLock::new() });
    let bar = bar(&arguments);
    gather(&world, &arguments, &bar).await;
    bar.finish_and_clear();
    let mut report = seen(&world, &arguments, url);
    verdict::reach(system, &world, &arguments, &mut report).await;
    if let Some(file) = &arguments.report {
        fs::write(file, page::page(&report)).with_context(|| format!("cannot write {}", file.display()))?;
    }
    if arguments.json {
        output.json(&report)?;
    } else {
        output.text(report.text())?;
    }
    Ok(if report.is_clean() { Ending::Fine } else { Ending::Found })
}

/// Seen in a terminal only.
fn bar(arguments: &CrowdArguments) -> ProgressBar {
    let bar = if arguments.json { ProgressBar::hidden() } else { ProgressBar::new(arguments.users.into()) };
    let style = ProgressStyle::with_template("{elapsed_precise} {bar:20} {pos}/{len} done  {msg}");
    bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}

/// All visits, from the first arrival until the last has ended, time is over or Ctrl-C.
async fn gather(world: &Arc<World>, arguments: &CrowdArguments, bar: &ProgressBar) {
    let start = world.tally.start();
    let faster = |span: Duration| span.div_f64(arguments.speed);
    let within = match arguments.within {
        Some(span) => span.0,
        None => faster(arguments.arrive.0) + faster(arguments.patience.0) * 2 + SLACK,
    };
    let (mut visits, cast) = (JoinSet::new(), Cast(arguments));
    let mut next = Some(cast.person(0));
    let mut seconds = interval(Duration::from_secs(1));
    seconds.set_missed_tick_behavior(MissedTickBehavior::Skip);
    let watched = Arc::clone(world);
    let watching = tokio::spawn(async move { watch(&watched).await });
    loop {
        let arrival = next.as_ref().map(|person| start + person.arrives);
        tokio::select! {
            biased;
            () = sleep_until(arrival.unwrap_or(start)), if arrival.is_some() => {
                let Some(person) = next.take() else { continue };
                next = Some(person.number + 1).filter(|at| *at < arguments.users).map(|at| cast.person(at));
                world.tally.arrived();
                // Due when the curve says, however late this loop is.
                visits.spawn(visit(Arc::clone(world), person, arrival.unwrap_or(start)));
            }
            ended = visits.join_next(), if !visits.is_empty() => match ended {
                Some(Ok(end)) => world.tally.ended(end),
                _ => world.tally.ended(End::Unfinished),
            },
            _ = seconds.tick() => tell(world, bar),
            () = sleep_until(start + within) => break,
            _ = tokio::signal::ctrl_c() => break,
        }
        if next.is_none() && visits.is_empty() {
            break;
        }
    }
    watching.abort();
    for _ in 0..visits.len() {
        world.tally.ended(End::Unfinished);
    }
    visits.shutdown().await;
}

fn tell(world: &World, bar: &ProgressBar) {
    let (arrived, admitted, ended, sold) = world.tally.summary();
    bar.set_position(ended);
    bar.set_message(format!("{} came, {} in, {} sold", number(arrived), number(admitted), number(sold)));
}

/// Reads the line once a second, for the curves.
async fn watch(world: &World) {
    let mut seconds = interval(Duration::from_secs(1));
    seconds.set_missed_tick_behavior(MissedTickBehavior::Skip);
    loop {
        seconds.tick().await;
        if let Ok(progress) = world.edge.progress().await {
            world.tally.line(&progress);
            world.witness.line(&progress);
        }
    }
}

fn seen(world: &World, arguments: &CrowdArguments, url: String) -> Report {
    let lasted = Instant::now() - world.tally.start();
    let mut report = Report {
        url,
        event: world.event.get().cloned(),
        users: arguments.users,
        lasted_ms: u64::try_from(lasted.as_millis()).unwrap_or(u64::MAX),
        ends: BTreeMap::new(),
        waits_ms: Spread::default(),
        bot_waits_ms: Spread::default(),
        admitted: 0,
        sold: 0,
        pace: None,
        latencies_ms: BTreeMap::new(),
        answers: BTreeMap::new(),
        cached_progress: 0,
        checks: Vec::new(),
        broken: Vec::new(),
        findings: Vec::new(),
        left_out: Vec::new(),
        seconds: Vec::new(),
    };
    report.count(world.tally.counts());
    if report.event.is_none() {
        complain("nobody got a place");
    }
    report
}
