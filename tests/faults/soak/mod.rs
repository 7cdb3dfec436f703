//! A sale under steady load and one fault after the other, drawn from a seed, with audits between them. What was answered is
//! held against what is recorded in the end.

mod crowd;
mod fault;
mod ledger;
mod system;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use fastrand::Rng;
use tokio::task::JoinSet;

use crowd::Crowd;
use fault::Fault;
use system::System;

/// People who come again and again at the same time.
const PEOPLE: usize = 24;
/// Faults between two audits.
const FAULTS_AN_AUDIT: usize = 4;
/// Undisturbed time before each fault.
const CALM: Duration = Duration::from_millis(700);
/// Visits get this long to end when no more begin.
const LAST_VISITS: Duration = Duration::from_mins(1);

/// Faults in the order in which they are tried; none once it is enough.
type Plan = Box<dyn FnMut(&mut Rng) -> Option<Fault> + Send>;

/// Runs the plan and prints the figures; fails where anything happened that must not.
async fn soak(seed: u64, mut plan: Plan) {
    let mut random = Rng::with_seed(seed);
    let mut system = System::start().await;
    let crowd = Arc::new(Crowd::of(&system));
    let mut visitors = JoinSet::new();
    for who in 0..PEOPLE {
        let (crowd, random) = (Arc::clone(&crowd), Rng::with_seed(random.u64(..) ^ who as u64));
        visitors.spawn(async move { crowd.come_again_and_again(random).await });
    }
    let started = Instant::now();
    let mut injected: BTreeMap<Fault, u64> = BTreeMap::new();
    let (mut audits, mut faults) = (0, 0);
    while let Some(fault) = plan(&mut random) {
        tokio::time::sleep(CALM).await;
        println!("{:6.1} s  {fault:?}", started.elapsed().as_secs_f64());
        fault.inject(&mut system, &mut random).await;
        *injected.entry(fault).or_default() += 1;
        faults += 1;
        if let Err(what) = system.recovers().await {
            crowd.ledger.violated(format!("after {fault:?}: {what}"));
            break;
        }
        if faults % FAULTS_AN_AUDIT == 0 {
            audits += 1;
            crowd.ledger.violated_by(system.findings(false).await);
        }
    }
    crowd.close();
    let ended = tokio::time::timeout(LAST_VISITS, async {
        while let Some(visitor) = visitors.join_next().await {
            if let Err(error) = visitor {
                crowd.ledger.violated(format!("a visitor was told what no contract has: {error}"));
            }
        }
    });
    if ended.await.is_err() {
        crowd.ledger.violated(format!("visits did not end within {LAST_VISITS:?}"));
    }
    crowd.ledger.judge(&system).await;
    crowd.ledger.violated_by(system.findings(true).await);
    audits += 1;

    let lasted = started.elapsed().as_secs_f64();
    let violations = crowd.ledger.violations();
    println!("\nsoak: seed {seed}, {lasted:.0} s, {PEOPLE} people at a time");
    println!("  {}", crowd.ledger.summary());
    println!("  answers by code: {}", crowd.answers());
    println!("  {faults} faults injected: {injected:?}");
    println!("  {audits} audits");
    println!("  violations: {}", violations.len());
    for violation in violations.iter().take(50) {
        println!("    {violation}");
    }
    assert!(violations.is_empty(), "seed {seed}: {violations:#?}\n{}", system.said());
    assert!(crowd.ledger.sold() > 0, "nothing was sold");
}

/// Each fault once, in an order of the seed's.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sale_survives_each_fault_under_load() {
    let seed = given("JARI_SOAK_SEED").unwrap_or(1);
    let mut faults = Fault::ALL.to_vec();
    Rng::with_seed(seed).shuffle(&mut faults);
    soak(seed, Box::new(move |_| faults.pop())).await;
}

/// Any faults for `JARI_SOAK_MINUTES`, drawn from `JARI_SOAK_SEED`.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "minutes or hours: make soak"]
async fn for_minutes() {
    let seed = given("JARI_SOAK_SEED").unwrap_or_else(|| fastrand::u64(..1_000_000));
    let end = Instant::now() + Duration::from_secs(60 * given("JARI_SOAK_MINUTES").unwrap_or(5));
    soak(
        seed,
        Box::new(move |random| (Instant::now() < end).then(|| Fault::ALL[random.usize(..Fault::ALL.len())])),
    )
    .await;
}

fn given(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok().filter(|text| !text.is_empty())?;
    Some(text.parse().unwrap_or_else(|_| panic!("{variable} is {text}, no number")))
}
