//! A whole sale in simulated time: everybody comes within minutes, asks as told, and those who are called buy, with real
//! handlers before a real Redis, and relay and persist beside them. Then the audit: one finding is not met at any speed.

mod crowd;
mod person;

use std::time::{Duration, Instant};

use admin::{AdminState, AuditReport, Command, Reply, admin};
use anyhow::bail;
use bootstrap::config::MasterKeys;
use bootstrap::metrics::POLLS_EXACT;
use domain::fact::What;
use domain::{EventId, Millis};
use records::{Records, RecordsConfig};
use serde_json::{Value, json};
use store::{Load, Store};
use support::{MASTER_KEY, OPENS_AT, Postgres, Redis, Topology};
use tokio::sync::watch;

use self::crowd::Crowd;
use self::person::{Desk, Tally};
use super::persist::{Between, deliver};
use crate::Bench;
use crate::figure::{Figure, Target, number};
use crate::handlers::Instance;
use crate::plot::{Curve, Panel, svg};
use crate::world::{NAMED, Sale, patient, remaining};

pub(crate) const FIGURES: &[&str] = &["sale_of_all"];

/// Minutes that it may take.
const MINUTES: f64 = 10.0;
/// Polls a person, on average, at least.
const POLLS: f64 = 10.0;
/// Instances of the functions.
const INSTANCES: usize = 4;
/// Seconds before the opening that people come.
const EARLY: i64 = 60;
/// Seconds after it until the last one has come.
const LATE: i64 = 360;
/// A sale that is not over by then never will be.
const LAST: i64 = 7_200;
/// Seconds that seats are held.
const HOLD: i64 = 180;
/// Calls of a tick's step at once, as in the function that ticks.
const CALLS_A_TICK: usize = 20;

pub(crate) async fn run(bench: &Bench) -> anyhow::Result<Vec<Figure>> {
    let (redis, postgres) = (Redis::start(Topology::Single), Postgres::start());
    let config = RecordsConfig::new(postgres.database().await);
    records::migrate(&config).await?;
    let records = Records::open(&config)?;
    let sale = Sale::open(&patient(&redis), |sale| shape(sale, bench.waiting)).await?;
    let hall = Hall { event: sale.event.clone(), store: Store::new(&patient(&redis))?, records };
    hall.store.drive_clock(at(-EARLY));
    let capacity = remaining(&hall.store, &hall.event).await?;
    let mut crowds = Vec::new();
    for _ in 0..INSTANCES {
        crowds.push(Crowd::before(Desk::of(Instance::of(&patient(&redis), &sale.event)?, &sale.event)?));
    }
    let (started, exact_before) = (Instant::now(), POLLS_EXACT.total());
    let (seconds, ticking) = watch::channel(());
    // The relay asks by Redis' own clock, which nobody drives.
    let (records, store) = (hall.records.clone(), sale.store.clone());
    let delivering = tokio::spawn(async move {
        deliver(&records, |queue| async move { relay_on(&store, &queue, ticking).await }).await
    });
    let told = hall.play(crowds, bench.waiting, capacity, &seconds).await?;
    let played = started.elapsed();
    let delivery = Instant::now();
    drop(seconds);
    delivering.await??;
    let delivered = delivery.elapsed();
    let judging = Instant::now();
    let report = hall.audit().await?;
    let in_turn = hall.called_in_turn().await?;
    let judged = judging.elapsed();
    let minutes = started.elapsed().as_secs_f64() / 60.0;
    let outcome = Outcome {
        people: bench.waiting as u64,
        capacity,
        left: remaining(&hall.store, &hall.event).await?,
        exact: POLLS_EXACT.total() - exact_before,
        tally: told.tally,
        called: told.called,
        in_turn,
        report,
    };
    let picture = bench.folder.join("sale.svg");
    std::fs::write(&picture, told.picture(bench.waiting))?;
    let note = outcome.note(&told, [played, delivered, judged]);
    let figure = Figure::new(FIGURES[0], "min", Target::AtMost(MINUTES), minutes);
    Ok(vec![figure.only_if(outcome.is_exact()).noting(format!("{note}; drawn in {}", picture.display()))])
}

/// Simulated time, so many seconds after the opening.
fn at(second: i64) -> Millis {
    Millis(OPENS_AT + 1_000 * second)
}

/// Seats for one in thirteen, and a pace that sells them in five minutes: for two million people those of every sale
/// here, and 250 a second.
fn shape(sale: &mut Value, people: usize) {
    sale["opensAt"] = OPENS_AT.into();
    sale["closesAt"] = (OPENS_AT + 86_400_000).into();
    sale["admission"] = json!({
        "perSecond": people as f64 / 8_000.0,
        "maxActive": (people / 20).max(10),
        "activeSeconds": 240,
        "claimSeconds": 30,
        "compensateNoShows": true,
    });
    sale["holdSeconds"] = HOLD.into();
    let rows = (people / 4_000).max(1);
    let sections = sale["offerings"][0]["sections"].as_array_mut().into_iter().flatten();
    for (number, section) in sections.enumerate() {
        if number < NAMED {
            let rows = format!("{}-{}", number * rows + 1, (number + 1) * rows);
            section["seats"] = json!([{ "rows": rows, "seats": "A-D" }]);
        } else {
            section["capacity"] = (people / 20).into();
        }
    }
}

/// How many of all have come by the end of a second: a tenth stands before the doors in the last minute, then most come
/// within two.
fn come_by(people: usize, second: i64) -> usize {
    let part = if second < 0 {
        0.1 * (second + EARLY + 1) as f64 / EARLY as f64
    } else {
        let surge = |second: i64| 1.0 - (-(second as f64) / 60.0).exp();
        0.1 + 0.9 * surge(second.min(LATE)) / surge(LATE)
    };
    // A part of the people is no more than they are.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let come = (people as f64 * part).round() as usize;
    come.min(people)
}

/// Relay, round after round, until the sale is over and nothing is left.
async fn relay_on(store: &Store, queue: &Between, mut seconds: watch::Receiver<()>) -> anyhow::Result<()> {
    loop {
        let taken = relay::relay(store, queue, 0).await?;
        if taken == 0 && seconds.changed().await.is_err() {
            // What came between the round and the end.
            while relay::relay(store, queue, 0).await? > 0 {}
            return Ok(());
        }
    }
}

/// What was seen as a second ended.
struct Moment {
    second: i64,
    /// In line, those among them whose tab is closed.
    waiting: u64,
    /// With an open tab, in line or inside.
    present: u64,
    called: u64,
    came: u64,
    sold: u64,
}

/// All of it.
struct Told {
    /// While anybody is there.
    moments: Vec<Moment>,
    tally: Tally,
    /// Closed tabs are called too, while anything is free.
    called: u64,
}

struct Hall {
    event: EventId,
    store: Store,
    records: Records,
}

impl Hall {
    /// Second by second, until everybody has gone and every hold is over.
    async fn play(
        &self,
        mut crowds: Vec<Crowd>,
        people: usize,
        capacity: u64,
        seconds: &watch::Sender<()>,
    ) -> anyhow::Result<Told> {
        let (mut moments, mut called, mut come) = (Vec::new(), 0, 0);
        let started = Instant::now();
        let mut until = None;
        for second in -EARLY..LAST {
            let now = at(second);
            self.store.drive_clock(now);
            let (more, waiting) = self.tick().await?;
            called += more;
            let new = come_by(people, second) - come;
            come += new;
            let acting = crowds.into_iter().enumerate().map(|(number, mut crowd)| {
                let newcomers = new / INSTANCES + usize::from(number < new % INSTANCES);
                tokio::spawn(async move { crowd.second(now, newcomers).await.map(|()| crowd) })
            });
            crowds = Vec::with_capacity(INSTANCES);
            for crowd in acting.collect::<Vec<_>>() {
                crowds.push(crowd.await??);
            }
            seconds.send_replace(());
            let tally = crowds.iter().map(|crowd| &crowd.tally).fold(Tally::default(), Tally::and);
            let present = crowds.iter().map(Crowd::present).sum::<usize>() as u64;
            if present == 0 && come == people {
                // What is held may still be given back.
                if *until.get_or_insert(second + HOLD + 1) <= second {
                    return Ok(Told { moments, tally, called });
                }
                continue;
            }
            let Tally { came, seats: sold, .. } = tally;
            moments.push(Moment { second, waiting, present, called, came, sold });
            if second % 60 == 0 {
                eprintln!(
                    "bench: minute {}, after {} s: {} in line, {} ask, {} called, {} of {} seats sold",
                    second / 60,
                    started.elapsed().as_secs(),
                    number(waiting as f64),
                    number(present as f64),
                    number(called as f64),
                    number(sold as f64),
                    number(capacity as f64)
                );
            }
        }
        bail!("the sale is not over after {LAST} seconds")
    }

    /// A tick: how many it called, and how many wait.
    async fn tick(&self) -> anyhow::Result<(u64, u64)> {
        let mut called = 0;
        for _ in 0..CALLS_A_TICK {
            let tick = self.store.admit(&self.event, Load::default()).await?;
            let tick = tick.map_err(|refusal| anyhow::anyhow!("{refusal:?}"))?;
            called += tick.admitted;
            if !tick.more {
                return Ok((called, tick.waiting));
            }
        }
        bail!("a tick that does not end")
    }

    /// As `jari audit` does.
    async fn audit(&self) -> anyhow::Result<AuditReport> {
        let master = MasterKeys::new(MASTER_KEY, None)?;
        let state = AdminState::new(self.store.clone(), self.records.clone(), master);
        let (event, by) = (self.event.clone(), "bench".to_owned());
        match admin(&state, Command::Audit { event, patience_seconds: 0, repair: false, by }).await? {
            Reply::Audited(report) => Ok(report),
            refused => bail!("no audit: {refused:?}"),
        }
    }

    /// Calls as PostgreSQL has them, where each is behind the one before it; nobody comes back in this sale.
    async fn called_in_turn(&self) -> anyhow::Result<Option<u64>> {
        let (mut last, mut calls, mut in_turn) = (0, 0, true);
        self.records
            .each_fact(&self.event, "USER_ADMITTED", |fact| {
                let What::UserAdmitted { places } = fact.what else { return };
                for place in places {
                    in_turn &= place.score > last;
                    (last, calls) = (place.score, calls + 1);
                }
            })
            .await?;
        Ok(in_turn.then_some(calls))
    }
}

/// What is judged.
struct Outcome {
    people: u64,
    capacity: u64,
    left: u64,
    /// Polls that read a place in Redis.
    exact: u64,
    tally: Tally,
    called: u64,
    in_turn: Option<u64>,
    report: AuditReport,
}

impl Outcome {
    fn is_exact(&self) -> bool {
        let Tally { joined, polls, late, seats, bookings, .. } = self.tally;
        let AuditReport { findings, left_out, checked, .. } = &self.report;
        findings.is_empty()
            && left_out.is_empty()
            && (checked.places, checked.rows) == (self.capacity, bookings)
            && (checked.admitted, checked.journal) == (self.called, 0)
            && seats + self.left == self.capacity
            && self.in_turn == Some(self.called)
            && joined == self.people
            && late == 0
            && polls as f64 >= POLLS * self.people as f64
    }

    fn note(&self, told: &Told, [played, delivered, judged]: [Duration; 3]) -> String {
        let count = |value: u64| number(value as f64);
        let Tally { turned_away, joined, polls, came, late, closed, left, abandoned, bookings, seats } =
            self.tally;
        let simulated = told.moments.len() as f64 / 60.0;
        let findings = self.report.findings.len() as u64 + self.report.more;
        let found: String = (self.report.findings.iter().take(3))
            .map(|finding| format!(" ({finding:?})"))
            .chain(self.report.left_out.iter().map(|left_out| format!(", left out: {left_out}")))
            .collect();
        format!(
            "{} people, {turned_away} joins refused for a while, {} polls, {:.1} each, {} of them reached Redis \
             ({:.1} %); {} called, {}, {} came and {late} too late; {} bookings of {} seats, {} of {} gone, \
             {abandoned} holds left lying; {} tabs closed, {} left; {findings} findings{found} in {} rows and \
             {} places; {simulated:.0} simulated minutes in {} s, {} s until PostgreSQL had it, {} s for the audit",
            count(joined),
            count(polls),
            polls as f64 / joined as f64,
            count(self.exact),
            100.0 * self.exact as f64 / polls as f64,
            count(self.called),
            if self.in_turn == Some(self.called) { "nobody out of turn" } else { "OUT OF TURN" },
            count(came),
            count(bookings),
            count(seats),
            count(self.capacity.saturating_sub(self.left)),
            count(self.capacity),
            count(closed),
            count(left),
            count(self.report.checked.rows),
            count(self.report.checked.places),
            played.as_secs(),
            delivered.as_secs(),
            judged.as_secs(),
        )
    }
}

impl Told {
    fn picture(&self, people: usize) -> String {
        let curve = |name, colour, of: fn(&Moment) -> u64| {
            let points = self.moments.iter().map(|moment| (moment.second as f64 / 60.0, of(moment) as f64));
            Curve { name, colour, points: points.collect() }
        };
        let panels = [
            Panel {
                title: "People",
                curves: vec![
                    curve("in line", "#1f6fb4", |moment| moment.waiting),
                    curve("with an open tab", "#e08214", |moment| moment.present),
                ],
            },
            Panel {
                title: "Seats, and people let in",
                curves: vec![
                    curve("seats sold", "#1b7837", |moment| moment.sold),
                    curve("people called", "#b2182b", |moment| moment.called),
                    curve("people who came in", "#762a83", |moment| moment.came),
                ],
            },
        ];
        svg(
            &format!("A sale of {} people", number(people as f64)),
            "simulated minutes after the opening",
            &panels,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everybody_comes_once_and_most_within_two_minutes() {
        let come: Vec<usize> = (-EARLY..=LATE).map(|second| come_by(1_000_000, second)).collect();
        assert!(come.is_sorted() && come[0] > 0);
        assert_eq!((come_by(1_000_000, -1), come.last()), (100_000, Some(&1_000_000)));
        assert!((850_000..900_000).contains(&come_by(1_000_000, 120)), "{}", come_by(1_000_000, 120));
        assert_eq!(come_by(12_345, LAST), 12_345);
    }
}
