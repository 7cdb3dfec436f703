//! The whole system over HTTP, `jari serve` as it is, beside a peer: a server before a Redis of its own.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use domain::{Millis, Token};
use gateway::KeyRing;
use serde_json::{Value, json};
use store::StatusChange;
use support::{Postgres, Redis, Scratch, Topology};

use crate::Bench;
use crate::cpu::Cpu;
use crate::figure::{Figure, Target};
use crate::load::{CONNECTIONS, Came, Load, send};
use crate::rounds::{beside, median};
use crate::world::{Sale, patient, plain_line};

pub(crate) const FIGURES: &[&str] = &[
    "http_join",
    "http_join_cpu",
    "http_poll",
    "http_poll_cpu",
    "http_poll_keyed",
    "http_poll_keyed_cpu",
    "http_book",
    "http_book_cpu",
    "bookings_http",
];

const ROUNDS: usize = 3;
const SECONDS: u32 = 3;
/// Bookings are counted: each takes a session of its own.
const BOOKING_SECONDS: u32 = 1;
const SESSIONS: usize = 30_000;
/// Polls that are asked in turn, from all over the line.
const POLLS: usize = 100_000;
const START: Duration = Duration::from_mins(1);

#[derive(Clone, Copy)]
enum Kind {
    Join,
    Poll,
    KeyedPoll,
    Book,
}

pub(crate) async fn run(bench: &Bench) -> anyhow::Result<Vec<Figure>> {
    let scratch = Scratch::new()?;
    let ours = Ours::start(bench, scratch.path()).await?;
    let peer = match &bench.peer {
        Some(folder) => Some(Peer::start(bench, folder).await?),
        None => None,
    };
    let mut figures = Vec::new();
    let mut booked = Vec::new();
    for (kind, names) in
        [Kind::Join, Kind::Poll, Kind::KeyedPoll, Kind::Book].into_iter().zip(FIGURES.chunks(2))
    {
        // What fails with one kind of request says nothing of the others.
        match in_turns(scratch.path(), &ours, peer.as_ref(), kind).await {
            Ok(rounds) => {
                if matches!(kind, Kind::Book) {
                    booked = rounds.iter().map(|(own, _)| own.came.a_second).collect();
                }
                figures.extend(compared(names, &rounds));
            }
            Err(error) => {
                figures.extend(names.iter().map(|name| Figure::missing(name, format!("{error:#}"))));
            }
        }
    }
    figures.push(match booked[..] {
        [] => Figure::missing(FIGURES[8], "see http_book"),
        _ => Figure::new(FIGURES[8], "/s", Target::AtLeast(5_000.0), median(&booked)),
    });
    Ok(figures)
}

async fn in_turns(
    folder: &Path,
    ours: &Ours,
    peer: Option<&Peer>,
    kind: Kind,
) -> anyhow::Result<Vec<(Measured, Option<Measured>)>> {
    let mut rounds = Vec::new();
    for _ in 0..ROUNDS {
        let own = ours.measure(folder, kind).await.context("jari serve")?;
        let other = peer.map(|peer| peer.measure(folder, kind).context("the peer")).transpose()?;
        rounds.push((own, other));
    }
    Ok(rounds)
}

/// A second's requests, and the CPU of one.
fn compared(names: &[&'static str], rounds: &[(Measured, Option<Measured>)]) -> Vec<Figure> {
    let own =
        |value: fn(&Measured) -> f64| median(&rounds.iter().map(|(own, _)| value(own)).collect::<Vec<_>>());
    let both = |value: fn(&Measured) -> f64| {
        let pairs = rounds.iter().filter_map(|(own, other)| Some((value(own), value(other.as_ref()?))));
        let pairs: Vec<(f64, f64)> = pairs.collect();
        (!pairs.is_empty()).then(|| beside(&pairs))
    };
    let figure = |name, unit, target, value: fn(&Measured) -> f64| match both(value) {
        Some(triple) => Figure::beside(name, unit, target, triple),
        None => Figure::new(name, unit, target, own(value)).noting("no peer beside it: PEER=folder"),
    };
    let latency = format!(
        "99 of 100 within {:.1} ms at half that rate{}",
        own(|measured| measured.p99_ms),
        both(|measured| measured.p99_ms)
            .map_or(String::new(), |(_, peer, _)| format!(", the peer's {peer:.1} ms")),
    );
    let rate = figure(names[0], "/s", Target::AtLeastTimes(5.0), |measured| measured.came.a_second);
    let noted = rate.note.clone().map_or(latency.clone(), |note| format!("{note}; {latency}"));
    vec![rate.noting(noted), figure(names[1], "µs", Target::Times(0.2), |measured| measured.cpu_micros)]
}

#[derive(Clone, Copy)]
struct Measured {
    came: Came,
    /// Of the serving process and its Redis, a request.
    cpu_micros: f64,
    p99_ms: f64,
}

/// A load at full speed with the CPU that it takes, then for latencies at half of that.
fn measure(folder: &Path, url: &str, pids: [u32; 2], load: &Load) -> anyhow::Result<Measured> {
    let cpu = || anyhow::Ok(Cpu::of_process(pids[0])?.total() + Cpu::of_process(pids[1])?.total());
    let seconds = if load.once { BOOKING_SECONDS } else { SECONDS };
    tokio::task::block_in_place(|| {
        let before = cpu()?;
        let came = send(folder, url, load, seconds, None)?;
        let cpu_micros = 1e6 * (cpu()? - before) / came.requests as f64;
        // What is good once has been used up to there, and what was under way at the end was not waited for.
        let used = if load.once { came.requests + CONNECTIONS as usize } else { 0 };
        let rest = load.lines.get(used..).context("too few lines")?.to_vec();
        let slower = Load { lines: rest, ..*load };
        let p99_ms = send(folder, url, &slower, seconds, Some(came.a_second / 2.0))?.p99_ms;
        Ok(Measured { came, cpu_micros, p99_ms })
    })
}

/// Ends with its owner.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

struct Ours {
    process: Process,
    url: String,
    keys: KeyRing,
    sale: Sale,
    tokens: Vec<Token>,
    /// From there on nobody has been called.
    waiting_from: usize,
    /// For each round of bookings some.
    live: std::cell::RefCell<Vec<Token>>,
    redis_pid: u32,
    _postgres: Postgres,
    _redis: Redis,
}

impl Ours {
    async fn start(bench: &Bench, folder: &Path) -> anyhow::Result<Self> {
        let (redis, postgres) = (Redis::start(Topology::Single), Postgres::start());
        let sale = Sale::open(&patient(&redis), |sale| {
            sale["admission"]["perSecond"] = json!(1_000);
            sale["admission"]["activeSeconds"] = json!(36_000);
        })
        .await?;
        let tokens = sale.join_many(bench.waiting + ROUNDS * SESSIONS, |_| None).await?;
        let live = sale.seat(&tokens, ROUNDS * SESSIONS).await?;
        sale.drain().await?;
        // Who waits goes on waiting: polls are of people in the line.
        let paused = sale.store.change(&sale.event, "bench", &StatusChange::Pause).await?;
        paused.map_err(|refusal| anyhow::anyhow!("{refusal:?}"))?;
        let data = folder.join("data");
        let mut jari = Command::new(std::env::current_exe()?.with_file_name("jari"));
        jari.args(["serve", "--port", "0", "--data"]).arg(&data).args(["--redis", redis.url()]);
        jari.args(["--database", &postgres.url()]).stdin(Stdio::null());
        let log = std::fs::File::create(folder.join("jari.log"))?;
        jari.stdout(log.try_clone()?).stderr(log);
        let process = Process(jari.spawn().context("jari: build it beside the bench")?);
        let running = serving(&data.join("serve.json"), &folder.join("jari.log")).await?;
        let text =
            |name: &str| running[name].as_str().map(str::to_owned).with_context(|| format!("no {name}"));
        let redis_pid = redis_pid(&redis).await?;
        Ok(Self {
            process,
            url: text("url")?,
            keys: KeyRing::new(text("masterKey")?.as_bytes(), None),
            sale,
            waiting_from: tokens.len() - bench.waiting / 2,
            tokens,
            live: live.into(),
            redis_pid,
            _postgres: postgres,
            _redis: redis,
        })
    }

    async fn measure(&self, folder: &Path, kind: Kind) -> anyhow::Result<Measured> {
        let event = &self.sale.event;
        let load = match kind {
            Kind::Join => {
                let body = json!({ "eventId": event }).to_string();
                Load { path: Some("/api/queue/join"), lines: vec![body], once: false }
            }
            Kind::Poll | Kind::KeyedPoll => {
                let mut lines = Vec::with_capacity(POLLS);
                for _ in 0..POLLS {
                    let token = self.tokens[fastrand::usize(self.waiting_from..self.tokens.len())];
                    lines.push(format!("/api/status/poll?eventId={event}&token={token}"));
                }
                if matches!(kind, Kind::KeyedPoll) {
                    self.add_keys(&mut lines).await?;
                }
                Load { path: None, lines, once: false }
            }
            Kind::Book => {
                let mut live = self.live.borrow_mut();
                let from = live.len().checked_sub(SESSIONS).context("sessions")?;
                let body = |token| json!({ "token": token, "eventId": event, "seatCount": 1 }).to_string();
                let lines = live.split_off(from).into_iter().map(body).collect();
                Load { path: Some("/api/booking"), lines, once: true }
            }
        };
        measure(folder, &self.url, [self.process.0.id(), self.redis_pid], &load)
    }

    /// With the key that each would have, had it waited as told.
    async fn add_keys(&self, lines: &mut [String]) -> anyhow::Result<()> {
        let event = &self.sale.event;
        let token_of = |line: &String| line.rsplit('=').next().and_then(|token| token.parse::<Token>().ok());
        let mut keyed = Vec::with_capacity(lines.len());
        for line in lines.iter() {
            let token = token_of(line).context("a token")?;
            let poll = domain::command::Poll {
                event: event.clone(),
                token,
                key: None,
                address: crate::world::address(),
            };
            let polled = self.sale.store.poll(&poll, false).await?;
            let standing = polled.map_err(|refusal| anyhow::anyhow!("{refusal:?}"))?.standing;
            let domain::outcome::Place::Waiting { score, rank } = standing.place else {
                bail!("{token} waits no more")
            };
            let view = &standing.view;
            keyed.push((
                token,
                gateway::PlaceKey {
                    epoch: view.epoch,
                    score,
                    rank,
                    ticket_number: None,
                    ticket_count: Some(0),
                    net: view.net,
                    read_at: view.now,
                    earliest_at: view.now,
                    interval_ms: 10_000,
                },
            ));
        }
        let now = Millis::now();
        for (line, (token, mut key)) in lines.iter_mut().zip(keyed) {
            key.earliest_at = now;
            line.push_str("&key=");
            line.push_str(&self.keys.sign(event, token, &key));
        }
        Ok(())
    }
}

async fn serving(path: &Path, log: &PathBuf) -> anyhow::Result<Value> {
    let started = Instant::now();
    while started.elapsed() < START {
        if let Ok(text) = std::fs::read_to_string(path) {
            return Ok(serde_json::from_str(&text)?);
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    bail!("jari does not serve: {}", std::fs::read_to_string(log)?)
}

async fn redis_pid(redis: &Redis) -> anyhow::Result<u32> {
    let about: String = redis::cmd("INFO").arg("server").query_async(&mut redis.connection().await).await?;
    let pid = about.lines().find_map(|line| line.strip_prefix("process_id:")).context("a process id")?;
    Ok(pid.trim().parse()?)
}

struct Peer {
    process: Process,
    url: String,
    tokens: Vec<String>,
    live: std::cell::RefCell<Vec<String>>,
    redis_pid: u32,
    _redis: Redis,
}

impl Peer {
    async fn start(bench: &Bench, folder: &Path) -> anyhow::Result<Self> {
        let redis = Redis::start(Topology::Single);
        let mut connection = redis.connection().await;
        let event = "peer";
        let key = |name: &str| format!("ticket:{{{event}}}:{name}");
        let tokens = plain_line(&mut connection, &key("queue:waiting"), bench.waiting).await?;
        let until = Millis::now().plus(36_000_000).0;
        let live: Vec<String> = (0..ROUNDS * SESSIONS).map(|_| Token::random().to_string()).collect();
        for chunk in live.chunks(1_000) {
            let mut active = redis::cmd("ZADD");
            active.arg(key("active:users"));
            for token in chunk {
                active.arg(until).arg(token);
            }
            active.exec_async(&mut connection).await?;
        }
        redis::cmd("SET").arg(key("seats:remaining")).arg(1_000_000).exec_async(&mut connection).await?;
        let redis_port = redis.url().trim_end_matches('/').rsplit(':').next().context("a port")?.to_owned();
        let port = std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../infra/local/peer.sh");
        let mut server = Command::new(script);
        server.arg("run").arg(folder).env("PORT", port.to_string()).env("REDIS_PORT", redis_port);
        server.env("EVENT_ID", event).stdin(Stdio::null()).stdout(Stdio::null());
        let process = Process(server.spawn()?);
        let started = Instant::now();
        while std::net::TcpStream::connect(("127.0.0.1", port)).is_err() {
            ensure!(started.elapsed() < START, "the peer does not serve");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        let redis_pid = redis_pid(&redis).await?;
        let url = format!("http://127.0.0.1:{port}");
        Ok(Self { process, url, tokens, live: live.into(), redis_pid, _redis: redis })
    }

    fn measure(&self, folder: &Path, kind: Kind) -> anyhow::Result<Measured> {
        let load = match kind {
            Kind::Join => Load { path: Some("/api/queue/join"), lines: vec!["{}".to_owned()], once: false },
            // It has no keys.
            Kind::Poll | Kind::KeyedPoll => {
                let token = |_| &self.tokens[fastrand::usize(..self.tokens.len())];
                let lines =
                    (0..POLLS).map(token).map(|token| format!("/api/status/poll?token={token}")).collect();
                Load { path: None, lines, once: false }
            }
            Kind::Book => {
                let mut live = self.live.borrow_mut();
                let from = live.len().checked_sub(SESSIONS).context("sessions")?;
                let body = |token| json!({ "token": token, "seatCount": 1 }).to_string();
                let lines = live.split_off(from).into_iter().map(body).collect();
                Load { path: Some("/api/booking"), lines, once: true }
            }
        };
        measure(folder, &self.url, [self.process.0.id(), self.redis_pid], &load)
    }
}
