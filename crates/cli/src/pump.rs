//! What Lambda does by itself and `sam local` does not: functions started by a schedule, and queues that are emptied
//! into functions.

mod delivery;
mod functions;

use std::time::Duration;

use anyhow::bail;
use aws_sdk_lambda::config::{BehaviorVersion, Credentials, Region};
use serde::Serialize;
use serde_json::json;
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval, sleep};

use crate::Ending;
use crate::arguments::PumpArguments;
use crate::output::{self, Output};
use delivery::{Queue, Queues};
use functions::Functions;

/// What is emptied into what, as template.yaml has it.
const DELIVERIES: [(&str, &str); 4] =
    [("Bookings", "Persist"), ("Line", "Persist"), ("Pushes", "Push"), ("Gone", "Socket")];
/// What a schedule starts.
const SCHEDULED: [&str; 2] = ["Admit", "Relay"];
/// Failures in a row before it is no use to go on.
const MAX_FAILURES: u32 = 10;
const AFTER_A_FAILURE: Duration = Duration::from_secs(1);

/// What was done.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
struct Done {
    /// Runs that a schedule started.
    runs: u64,
    /// Messages that a function took.
    delivered: u64,
    /// Messages that a function handed back.
    handed_back: u64,
}

impl Done {
    fn and(self, other: Self) -> Self {
        Self {
            runs: self.runs + other.runs,
            delivered: self.delivered + other.delivered,
            handed_back: self.handed_back + other.handed_back,
        }
    }
}

/// Pump until Ctrl-C, until the time is over, or until nothing answers any more.
pub(crate) async fn run(arguments: PumpArguments, output: &mut Output) -> anyhow::Result<Ending> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let functions = Functions::at(&arguments.lambda_endpoint);
    let queues = Queues::at(&arguments.queue_endpoint);
    let mut works = JoinSet::new();
    let (stop, stopping) = tokio::sync::watch::channel(false);
    for (queue, function) in DELIVERIES {
        let queue = queues.named(&format!("{}-{queue}", arguments.queue_prefix)).await?;
        works.spawn(deliver(functions.clone(), queue, function, stopping.clone()));
    }
    for function in SCHEDULED {
        let every = Duration::from_secs(arguments.every);
        works.spawn(schedule(functions.clone(), function, every, stopping.clone()));
    }
    let over = async {
        match arguments.seconds {
            Some(seconds) => sleep(Duration::from_secs(seconds)).await,
            None => std::future::pending().await,
        }
    };
    // A work ends by itself only when it gives up.
    let gave_up = tokio::select! {
        _ = interrupt.recv() => None,
        _ = terminate.recv() => None,
        () = over => None,
        ended = works.join_next() => ended,
    };
    let _ = stop.send(true);
    let mut done = Done::default();
    if let Some(ended) = gave_up {
        ended??;
    }
    while let Some(ended) = works.join_next().await {
        done = done.and(ended??);
    }
    tell(done, arguments.json, output)?;
    Ok(Ending::Fine)
}

fn tell(done: Done, is_json: bool, output: &mut Output) -> anyhow::Result<()> {
    if is_json {
        return output.json(&done);
    }
    let Done { runs, delivered, handed_back } = done;
    Ok(output.line(format!("{runs} runs, {delivered} messages delivered, {handed_back} handed back"))?)
}

type Stopping = tokio::sync::watch::Receiver<bool>;

/// Starts a function at each tick. A run that is longer than the time between two ticks is followed by the next one at
/// once: here a function has one instance, and does one thing at a time.
async fn schedule(
    functions: Functions,
    function: &'static str,
    every: Duration,
    mut stopping: Stopping,
) -> anyhow::Result<Done> {
    let mut ticks = interval(every);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let (mut done, mut failures) = (Done::default(), Failures::default());
    let payload = functions::scheduled(function);
    loop {
        let run = async {
            ticks.tick().await;
            functions.invoke(function, &payload).await
        };
        // A run that goes on when all is over is left to itself.
        let ran = tokio::select! {
            ran = run => ran,
            _ = stopping.changed() => return Ok(done),
        };
        match ran {
            Ok(_) => done.runs += 1,
            Err(error) => failures.note(&error)?,
        }
    }
}

/// Empties a queue into a function. What it hands back stays in the queue, as does all of a batch that failed.
async fn deliver(
    functions: Functions,
    queue: Queue,
    function: &'static str,
    mut stopping: Stopping,
) -> anyhow::Result<Done> {
    let (mut done, mut failures) = (Done::default(), Failures::default());
    loop {
        // A batch that was taken is brought to its end.
        let batch = tokio::select! {
            batch = queue.receive() => batch,
            _ = stopping.changed() => return Ok(done),
        };
        let delivered = async {
            let batch = batch?;
            if batch.is_empty() {
                return Ok(Done::default());
            }
            let answer = functions.invoke(function, &json!({"Records": queue.records(&batch)})).await?;
            let kept = delivery::handed_back(&answer, &batch)?;
            let delivered = queue.delete(&batch, &kept).await?;
            anyhow::Ok(Done { runs: 0, delivered, handed_back: kept.len() as u64 })
        };
        match delivered.await {
            Ok(delivered) => {
                failures = Failures::default();
                done = done.and(delivered);
            }
            Err(error) => {
                failures.note(&error)?;
                sleep(AFTER_A_FAILURE).await;
            }
        }
    }
}

/// How often it failed in a row.
#[derive(Default)]
struct Failures(u32);

impl Failures {
    fn note(&mut self, error: &anyhow::Error) -> anyhow::Result<()> {
        self.0 += 1;
        output::complain(format!("{error:#}"));
        if self.0 >= MAX_FAILURES {
            bail!("{MAX_FAILURES} failures in a row, the last: {error:#}");
        }
        Ok(())
    }
}

/// Local services ask for a signature and do not look at it.
fn anybody() -> Credentials {
    Credentials::new("local", "local", None, None, "jari pump")
}

fn somewhere() -> Region {
    Region::from_static("us-east-1")
}

fn latest() -> BehaviorVersion {
    BehaviorVersion::latest()
}
