//! Ten thousand open sockets and seventy admissions a second, three in ten of the sockets dying without a word: who is
//! admitted hears within two seconds, the dead are pruned, nobody else is harmed. Takes minutes and both of a small
//! machine's cores: `make sockets` runs it.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use domain::Millis;
use futures::{StreamExt, stream};
use serde_json::json;
use store::KeyName;
use support::wait_until;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::serving::{Folder, Served};
use crate::socket::Socket;

const SOCKETS: u64 = 10_000;
const PER_SECOND: u64 = 70;
/// From a call to its news at most.
const HEARD_MS: i64 = 2_000;
/// A mute socket says nothing to three pings, twenty seconds apart.
const PRUNED_WITHIN: Duration = Duration::from_secs(90);

/// What becomes of a socket once all are open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Stays,
    /// Its machine vanishes: the connection breaks without a farewell.
    Breaks,
    /// Its network vanishes: the connection stands, and nothing comes from it any more.
    GoesMute,
}

impl Fate {
    /// Three in ten die, all over the line.
    fn of(at: u64) -> Self {
        match at % 20 {
            3 | 9 | 14 => Self::Breaks,
            6 | 11 | 17 => Self::GoesMute,
            _ => Self::Stays,
        }
    }
}

/// What the sockets heard.
#[derive(Default)]
struct Heard {
    ready: AtomicU64,
    ranks: AtomicU64,
    errors: AtomicU64,
}

struct Crowd {
    heard: Heard,
    dying: watch::Sender<bool>,
    over: watch::Sender<bool>,
}

/// Until this has come, now or before.
async fn come(what: &watch::Sender<bool>) {
    what.subscribe().wait_for(|come| *come).await.expect("the test goes on");
}

/// Follows a token until all is over, or until it dies. When it was told that its turn has come.
async fn listen(crowd: Arc<Crowd>, mut socket: Socket, token: String, fate: Fate) -> Option<(String, i64)> {
    let listening = async {
        loop {
            let told = socket.next().await.expect("nobody ends a socket that lives");
            match told["status"].as_str() {
                Some("ready") => {
                    crowd.heard.ready.fetch_add(1, Ordering::Relaxed);
                    return Millis::now().0;
                }
                Some("waiting") => _ = crowd.heard.ranks.fetch_add(1, Ordering::Relaxed),
                _ => _ = crowd.heard.errors.fetch_add(1, Ordering::Relaxed),
            }
        }
    };
    if fate == Fate::Stays {
        let heard = listening.await;
        // Keeps reading, and so answering pings, while others wait.
        tokio::select! {
            () = come(&crowd.over) => {}
            () = async { while socket.0.next().await.is_some() {} } => {}
        }
        return Some((token, heard));
    }
    tokio::select! {
        _ = listening => {}
        () = come(&crowd.dying) => {}
    }
    if fate == Fate::GoesMute {
        come(&crowd.over).await;
    }
    None
}

fn a_patient_sale() -> Folder {
    Folder::with_sale(|sale| {
        sale["admission"] = json!({ "perSecond": PER_SECOND, "maxActive": 100_000 });
        sale["offerings"] = json!([{ "id": "T1", "date": "2027-02-05", "sections": [
            { "id": "G", "name": "입석", "price": 500, "capacity": 1_000 },
        ] }]);
    })
}

async fn count(served: &Served, name: KeyName) -> u64 {
    let key = store::Keys::of(&served.event).name(name);
    redis::cmd("HLEN").arg(key).query_async(&mut served.redis().await).await.expect("a count")
}

/// When each token was called, as Redis noted it.
async fn calls(served: &Served) -> HashMap<String, i64> {
    let key = store::Keys::of(&served.event).name(KeyName::Called);
    let called: HashMap<String, String> =
        redis::cmd("HGETALL").arg(key).query_async(&mut served.redis().await).await.expect("a hash");
    let called_at = |call: &str| call.split(':').nth(2).and_then(|at| at.parse().ok()).expect("an instant");
    called.iter().map(|(token, call)| (token.clone(), called_at(call))).collect()
}

/// Memory of the serving process, in MB.
fn resident_mb(served: &Served) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", served.pid())).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok()).unwrap_or(0) / 1_024
}

/// Opens all sockets, a few at a time, each following a place of its own; their tasks.
async fn gather(served: &Served, crowd: &Arc<Crowd>) -> Vec<JoinHandle<Option<(String, i64)>>> {
    let opened = stream::iter(0..SOCKETS).map(async |at| {
        let token = served.join().await;
        let mut socket = Socket::open(served.address()).await;
        assert_eq!(socket.follow(&token).await["status"], "waiting");
        (at, socket, token)
    });
    let listening = opened
        .buffered(64)
        .map(|(at, socket, token)| tokio::spawn(listen(Arc::clone(crowd), socket, token, Fate::of(at))));
    listening.collect().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "minutes of both cores: make sockets"]
async fn of_ten_thousand_sockets_who_is_admitted_hears_at_once_and_the_dead_are_pruned() {
    let folder = a_patient_sale();
    let served = folder.serve().await;
    let crowd = Arc::new(Crowd {
        heard: Heard::default(),
        dying: watch::Sender::new(false),
        over: watch::Sender::new(false),
    });
    served.ask(admin::Command::Pause { event: served.event.clone(), by: "tests".to_owned() }).await;
    let (begun, empty_mb) = (Instant::now(), resident_mb(&served));
    let tasks = gather(&served, &crowd).await;
    assert_eq!(count(&served, KeyName::Connections).await, SOCKETS);
    let mut report = format!("{SOCKETS} sockets open in {:.1?}", begun.elapsed());
    let _ = write!(report, ", {empty_mb} MB → {} MB", resident_mb(&served));

    let opened = Instant::now();
    served.ask(admin::Command::Open { event: served.event.clone(), by: "tests".to_owned() }).await;
    tokio::time::sleep(Duration::from_secs(10)).await;
    let dying = (0..SOCKETS).filter(|at| Fate::of(*at) != Fate::Stays).count() as u64;
    crowd.dying.send_replace(true);
    let died = Instant::now();
    wait_until(PRUNED_WITHIN, "the dead are pruned", async || {
        count(&served, KeyName::Connections).await == SOCKETS - dying
    })
    .await;
    let _ = write!(report, "\n{dying} died, all forgotten after {:.1?}", died.elapsed());
    let patience = Duration::from_secs(SOCKETS / PER_SECOND + 60);
    wait_until(patience, "all are called", async || count(&served, KeyName::Called).await == SOCKETS).await;
    let _ = write!(report, "\nall called {:.1?} after the opening", opened.elapsed());
    wait_until(Duration::from_secs(10), "all who live have heard", async || {
        crowd.heard.ready.load(Ordering::Relaxed) >= SOCKETS - dying
    })
    .await;
    assert_eq!(count(&served, KeyName::Connections).await, SOCKETS - dying, "nobody else was harmed");
    crowd.over.send_replace(true);
    let told: Vec<(String, i64)> = futures::future::join_all(tasks)
        .await
        .into_iter()
        .filter_map(|task| task.expect("no task failed"))
        .collect();
    assert_eq!(told.len() as u64, SOCKETS - dying);

    let calls = calls(&served).await;
    let mut waits: Vec<i64> = told.iter().map(|(token, heard_at)| heard_at - calls[token]).collect();
    waits.sort_unstable();
    let of = |part: usize| waits[(waits.len() - 1) * part / 1_000];
    let _ = write!(
        report,
        "\nfrom call to news: median {} ms, 99 % {} ms, last {} ms",
        of(500),
        of(990),
        of(1_000)
    );
    let mut ticks: Vec<i64> = calls.values().copied().collect();
    ticks.sort_unstable();
    ticks.dedup();
    let gap = ticks.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap_or(0);
    let _ = write!(report, "\n{} ticks that called, {gap} ms apart at most", ticks.len());
    let heard = &crowd.heard;
    let (ranks, errors) = (heard.ranks.load(Ordering::Relaxed), heard.errors.load(Ordering::Relaxed));
    let _ = write!(report, "\n{ranks} rank updates, {} MB at the end", resident_mb(&served));
    println!("{report}");
    assert_eq!(errors, 0, "anything but a rank or a call");
    assert!(of(1_000) <= HEARD_MS, "the last heard after {} ms", of(1_000));
}
