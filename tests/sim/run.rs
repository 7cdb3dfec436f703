//! A list of commands against both sales: answers, facts and all that Redis keeps must agree.

use std::collections::{BTreeMap, BTreeSet};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use domain::reservation::ReservationStatus;
use futures::FutureExt;
use serde_json::Value;
use store::{Bench, Load, Snapshot, StoreConfig};
use support::{Answer, MASTER_KEY};

use crate::command::{Ask, Command, Named, back, brink, overtaken, settled};
use crate::model::{Expect, Model};
use crate::real::{Got, Real, on_a_bench};
use crate::rules::{JOINS_PER_ADDRESS, Rules, SeatState};

/// Leaves that one address may send in a second.
const LEAVES_PER_ADDRESS: u32 = 5;
/// How far before the opening a sale begins.
const BEFORE_MS: i64 = 10_000;
/// Requests that may come once more.
const REMEMBERED: usize = 12;
/// Commands between two readings of the journal, and of all that Redis keeps.
const FACTS_EACH: usize = 5;
const SNAPSHOT_EACH: usize = 25;

/// What was seen to happen.
#[derive(Default)]
pub(crate) struct Seen {
    /// `state action` while the sale was open.
    pub(crate) tried: BTreeSet<(&'static str, &'static str)>,
    /// From one state to another, and by what.
    pub(crate) moved: BTreeSet<(&'static str, &'static str, &'static str)>,
    pub(crate) commands: usize,
    /// Action → how often, and with success.
    pub(crate) asked: BTreeMap<&'static str, (usize, usize)>,
}

/// Where both sales did not agree.
#[derive(Debug)]
pub(crate) struct Difference {
    /// The command's position in its list.
    pub(crate) at: usize,
    pub(crate) what: String,
}

/// Runs the commands, each with its position in the seed's list.
pub(crate) async fn run(
    config: &StoreConfig,
    bench: &Arc<Bench>,
    seed: u64,
    commands: &[(usize, Command)],
    seen: &mut Seen,
) -> Result<(), Difference> {
    let config = on_a_bench(config, bench);
    let mut at = 0;
    let ran = AssertUnwindSafe(async {
        let mut sim = Sim::start(&config, seed, seen).await;
        for (position, command) in commands {
            at = *position;
            sim.command(*position, *command).await.map_err(|what| format!("{command:?}: {what}"))?;
        }
        sim.compare_facts().await?;
        sim.compare_all().await
    });
    match ran.catch_unwind().await {
        Ok(Ok(())) => Ok(()),
        Ok(Err(what)) => Err(Difference { at, what }),
        Err(panic) => {
            let text = panic.downcast_ref::<String>().cloned();
            let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
            Err(Difference { at, what: text.unwrap_or_default() })
        }
    }
}

struct Sim<'a> {
    real: Real,
    model: Model,
    last: Vec<Ask>,
    asked: usize,
    seen: &'a mut Seen,
}

impl<'a> Sim<'a> {
    async fn start(config: &StoreConfig, seed: u64, seen: &'a mut Seen) -> Self {
        let rules = Rules::of_seed(seed);
        let now = rules.opens_at - BEFORE_MS;
        let real = Real::start(config, &rules, now).await;
        let mut model = Model::new(real.app().event.clone(), MASTER_KEY, rules, now);
        // The sale was made at another time of its driven clock.
        model.facts.clear();
        let mut sim = Self { real, model, last: Vec::new(), asked: 0, seen };
        sim.real.facts().await.expect("a journal");
        sim
    }

    async fn command(&mut self, position: usize, command: Command) -> Result<(), String> {
        let instance = usize::from(position.is_multiple_of(3));
        self.seen.commands += 1;
        match command {
            Command::NoSuchSale => return self.real.no_such_sale().await,
            Command::Burst(kind) => return self.burst(kind).await,
            Command::Sweep => self.sweep(instance).await?,
            Command::Brink(moment, off, pick) => {
                if let Some((ms, asks)) = brink(moment, off, pick, &self.model) {
                    self.ask(&Ask::Pass(ms), instance).await?;
                    for ask in asks {
                        self.ask(&ask, instance).await?;
                    }
                }
            }
            Command::Overtaken(pick) => {
                if let Some((change, ask)) = overtaken(pick, &self.model) {
                    self.ask(&Ask::Change(change), instance).await?;
                    self.ask(&ask, 1 - instance).await?;
                }
            }
            Command::Back(pick, in_a_failover) => {
                for ask in back(pick, in_a_failover, &self.model).into_iter().flatten() {
                    self.ask(&ask, instance).await?;
                }
            }
            Command::Again(ago) => {
                let ask = self.last.len().checked_sub(1 + usize::from(ago)).map(|at| self.last[at].clone());
                if let Some(ask) = ask {
                    self.ask(&ask, instance).await?;
                }
            }
            _ => {
                if let Some(ask) = settled(command, &self.model) {
                    self.ask(&ask, instance).await?;
                    if !matches!(ask, Ask::Pass(_) | Ask::Change(_) | Ask::Failover { .. } | Ask::Lose { .. })
                    {
                        self.last.push(ask);
                        self.last.drain(..self.last.len().saturating_sub(REMEMBERED));
                    }
                }
            }
        }
        self.asked += 1;
        if self.asked.is_multiple_of(FACTS_EACH) {
            self.compare_facts().await?;
        }
        if self.asked.is_multiple_of(SNAPSHOT_EACH) {
            self.compare_all().await?;
        }
        Ok(())
    }

    async fn ask(&mut self, ask: &Ask, instance: usize) -> Result<(), String> {
        if let Ask::Pass(ms) = ask {
            let before = self.states();
            self.model.now += ms;
            self.real.at(self.model.now);
            self.note_moves(&before, "time");
            return Ok(());
        }
        let before = self.states();
        self.note_try(ask);
        let got = self.real.ask(ask, &self.model, instance).await;
        agree(&mut self.model, ask, &got)?;
        let asked = self.seen.asked.entry(action_of(ask)).or_default();
        asked.0 += 1;
        asked.1 += usize::from(!matches!(&got, Got::Http(answer) if answer.status >= 400));
        self.note_moves(&before, action_of(ask));
        Ok(())
    }

    /// A scheduler's whole tick: what is overdue expires, each by its own step.
    async fn sweep(&mut self, instance: usize) -> Result<(), String> {
        self.ask(&Ask::Tick(Load::default()), instance).await?;
        for id in self.model.overdue() {
            let at = self.model.reservations.iter().position(|known| known.id.to_string() == id);
            self.ask(&Ask::Expire { reservation: at }, instance).await?;
        }
        Ok(())
    }

    async fn burst(&mut self, kind: u8) -> Result<(), String> {
        let (ask, allowed) = match kind {
            0 => (Ask::Join { account: None }, JOINS_PER_ADDRESS),
            1 => (Ask::Rejoin { who: None, account: None }, JOINS_PER_ADDRESS),
            2 => (Ask::Leave { who: None }, LEAVES_PER_ADDRESS),
            _ => (Ask::Poll { who: None, keyed: false }, JOINS_PER_ADDRESS),
        };
        self.real.burst(&ask, &mut self.model, allowed, |model, got| agree(model, &ask, got)).await
    }

    fn states(&self) -> Vec<&'static str> {
        (0..self.model.places.len()).map(|at| self.model.name_of(Some(at))).collect()
    }

    fn note_moves(&mut self, before: &[&'static str], by: &'static str) {
        let after = self.states();
        for (at, state) in after.iter().enumerate() {
            let was = before.get(at).copied().unwrap_or("none");
            if was != *state {
                self.seen.moved.insert((was, state, by));
            }
        }
    }

    fn note_try(&mut self, ask: &Ask) {
        let is_sale = matches!(ask, Ask::Hold { .. } | Ask::Book { .. });
        let sells = !(self.model.maintenance || is_sale && self.model.is_recovering());
        if matches!(self.model.standing(), "OPEN" | "PAUSED") && sells {
            let who = match ask {
                Ask::Rejoin { who, .. }
                | Ask::Leave { who }
                | Ask::Poll { who, .. }
                | Ask::Search { who }
                | Ask::Map { who, .. }
                | Ask::Session { who }
                | Ask::Hold { who, .. }
                | Ask::Release { who, .. }
                | Ask::Book { who, .. } => *who,
                _ => return,
            };
            self.seen.tried.insert((self.model.name_of(who), action_of(ask)));
        }
    }

    async fn compare_facts(&mut self) -> Result<(), String> {
        let facts = self.real.facts().await?;
        let expected = std::mem::take(&mut self.model.facts);
        if facts == expected {
            return Ok(());
        }
        let at = facts.iter().zip(&expected).take_while(|(fact, expected)| fact == expected).count();
        Err(format!("facts: {:?} instead of {:?}", facts.get(at), expected.get(at)))
    }

    async fn compare_all(&mut self) -> Result<(), String> {
        let snapshot = self.real.snapshot().await?;
        let model = &self.model;
        same("places", &seats_of(&snapshot)?, &seats_in(model))?;
        same("remaining", &snapshot.remaining, &i64::try_from(model.remaining()).unwrap_or(-1))?;
        let units = units_in(model);
        same("holds", &(snapshot.hold_counts, snapshot.holds.len()), &((units, units), usize_of(units)))?;
        let is_same_unit = snapshot.holds.keys().eq(snapshot.due.keys());
        same("holds and due name the same units", &is_same_unit, &true)?;
        let tickets: BTreeMap<String, i64> =
            snapshot.tickets.iter().filter(|(_, count)| **count != 0).map(|(k, v)| (k.clone(), *v)).collect();
        let bought = model.reservations.iter().filter_map(|known| known.account.as_ref());
        let bought = bought.map(|account| (account.clone(), i64::from(model.bought(Some(account)))));
        same("tickets", &tickets, &bought.filter(|(_, count)| *count != 0).collect())?;
        same("places of accounts", &self.real.places_of_accounts().await, &places_of_accounts(model))?;
        same("twice in the line", &snapshot.twice_in_line, &Vec::new())?;
        let known = snapshot.reservations.iter();
        let known: BTreeMap<String, (ReservationStatus, u32)> =
            known.map(|known| (known.reservation_id.to_string(), (known.status, known.version))).collect();
        let expected = model.reservations.iter().map(|known| {
            let status = ReservationStatus::from_word(known.status).unwrap_or(ReservationStatus::Confirmed);
            (known.id.to_string(), (status, known.version))
        });
        same("reservations", &known, &expected.collect())
    }
}

fn usize_of(count: u64) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX)
}

fn same<T: PartialEq + std::fmt::Debug>(what: &str, is: &T, expected: &T) -> Result<(), String> {
    if is == expected { Ok(()) } else { Err(format!("{what}: {is:?} instead of {expected:?}")) }
}

/// Offering, section → free places and the state of each named seat.
type Places = BTreeMap<String, (i64, BTreeMap<String, char>)>;

fn seats_of(snapshot: &Snapshot) -> Result<Places, String> {
    let mut places = Places::new();
    for section in snapshot.edition.layout.sections.iter().filter(|section| !section.removed) {
        let mut seats = BTreeMap::new();
        for row in section.live_rows() {
            for (at, seat) in row.seats.iter().enumerate() {
                let byte = snapshot.map.as_bytes().get(row.offset as usize + at);
                seats.insert(seat.to_string(), char::from(*byte.ok_or("the map is too short")?));
            }
        }
        let free = snapshot.stock.get(&section.number).copied().unwrap_or(0);
        places.insert(format!("{}/{}", section.offering, section.id), (free, seats));
    }
    Ok(places)
}

fn seats_in(model: &Model) -> Places {
    let sections = model.rules.sections.iter().map(|section| {
        let seats = section.seats.iter().filter(|seat| !seat.name.is_empty()).map(|seat| {
            let byte = match seat.state {
                SeatState::Free => '.',
                SeatState::Held { .. } => 'h',
                SeatState::Sold { .. } => 's',
            };
            (seat.name.clone(), byte)
        });
        let free = i64::try_from(section.free()).unwrap_or(-1);
        (format!("{}/{}", section.offering, section.id), (free, seats.collect()))
    });
    sections.collect()
}

/// Account → token of its place.
fn places_of_accounts(model: &Model) -> BTreeMap<String, String> {
    let places = model.accounts.iter();
    places.map(|(account, who)| (account.clone(), model.places[*who].token.to_string())).collect()
}

/// Named seats held, and counts held of one section at one price by one token.
fn units_in(model: &Model) -> u64 {
    let mut units = BTreeSet::new();
    for (at, section) in model.rules.sections.iter().enumerate() {
        for seat in &section.seats {
            if let SeatState::Held { by, price, .. } = seat.state {
                units.insert((at, seat.name.clone(), if section.is_general { (by, price) } else { (0, 0) }));
            }
        }
    }
    units.len() as u64
}

pub(crate) fn action_of(ask: &Ask) -> &'static str {
    match ask {
        Ask::Join { .. } => "join",
        Ask::Rejoin { .. } => "rejoin",
        Ask::Leave { .. } => "leave",
        Ask::Poll { .. } => "poll",
        Ask::Progress => "progress",
        Ask::Search { .. } => "search",
        Ask::Map { .. } => "map",
        Ask::Session { .. } => "session",
        Ask::Hold { .. } => "hold",
        Ask::Release { .. } => "release",
        Ask::Book { .. } => "book",
        Ask::Read { .. } => "read",
        Ask::Cancel { .. } => "cancel",
        Ask::Pay { .. } => "pay",
        Ask::Expire { .. } => "expire",
        Ask::Lose { .. } => "lose",
        Ask::Tick(_) => "tick",
        Ask::Change(_) => "change",
        Ask::Failover { .. } => "failover",
        Ask::Mislay { .. } => "mislay",
        Ask::Recover => "recover",
        Ask::Recovered { .. } => "recovered",
        Ask::Pass(_) => "time",
    }
}

/// The model takes the step too, and must come to the same answer.
fn agree(model: &mut Model, ask: &Ask, got: &Got) -> Result<(), String> {
    let replayed = is_replay_of_what_went(model, ask);
    let expected = model.step(ask, got.json()).map_err(|what| format!("{ask:?}: {what}; got {got:?}"))?;
    let answered = match (&expected, got) {
        (Expect::Text(expected), Got::Text(got)) => same("answer", got, expected),
        (Expect::Success { status, data }, Got::Http(answer)) => {
            if answer.status == *status {
                same_fields(data, &answer.json["data"])
            } else {
                Err(format!("status {} instead of {status}", answer.status))
            }
        }
        // An instance that has not read the newest edition still knows the name, and finds the key.
        (Expect::Refusal { status: 404, .. }, Got::Http(answer)) if replayed && is_of_a_key(answer) => Ok(()),
        (Expect::Refusal { status, code, details }, Got::Http(answer)) => {
            let error = &answer.json["error"];
            match (answer.status == *status, error["code"].as_str() == Some(code)) {
                (true, true) => same_fields(details, &error["details"]),
                _ => Err(format!("{} {error} instead of {status} {code}", answer.status)),
            }
        }
        _ => Err("another kind of answer".to_owned()),
    };
    answered
        .map_err(|what| format!("{what}\n  asked: {ask:?}\n  got: {}\n  expected: {expected:?}", shown(got)))
}

fn is_replay_of_what_went(model: &Model, ask: &Ask) -> bool {
    match ask {
        Ask::Hold { who, key, .. } => model.is_replay(*who, *key),
        Ask::Release { who, key, named: Named::Seats { .. } } => model.is_replay(*who, *key),
        _ => false,
    }
}

fn is_of_a_key(answer: &Answer) -> bool {
    answer.status == 200 || answer.json["error"]["code"] == "IDEMPOTENCY_KEY_REUSED"
}

fn shown(got: &Got) -> String {
    match got {
        Got::Http(answer) => format!("{} {}", answer.status, answer.text),
        Got::Text(text) => text.clone(),
    }
}

fn same_fields(expected: &Value, is: &Value) -> Result<(), String> {
    let Some(fields) = expected.as_object() else { return Ok(()) };
    for (name, expected) in fields {
        let value = &is[name];
        let agrees = match name.as_str() {
            "accessToken" => *expected == value.is_string(),
            "shuffleSeed" | "shuffleCommitment" => expected == value,
            // Both are kept to a thousandth; a wait is rounded up to whole seconds.
            "admittedPerSecond" => near(expected, value, 0.02, 0.01),
            "estimatedWaitSeconds" => {
                expected.is_null() == value.is_null() && near(expected, value, 1.01, 0.02)
            }
            "seats" if expected.is_array() => sorted(expected) == sorted(value),
            "offerings" | "sections" => contains(expected, value),
            _ => expected == value,
        };
        if !agrees {
            return Err(format!("{name}: {value} instead of {expected}"));
        }
    }
    Ok(())
}

fn near(expected: &Value, value: &Value, absolute: f64, relative: f64) -> bool {
    let (expected, value) = (expected.as_f64().unwrap_or(0.0), value.as_f64().unwrap_or(0.0));
    (expected - value).abs() <= absolute + relative * expected.abs()
}

fn sorted(value: &Value) -> Vec<&str> {
    let mut names: Vec<&str> = value.as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    names.sort_unstable();
    names
}

/// Whether all that is expected is there, on every level.
fn contains(expected: &Value, value: &Value) -> bool {
    match (expected, value) {
        (Value::Array(expected), Value::Array(values)) => {
            expected.len() == values.len()
                && expected.iter().zip(values).all(|(one, other)| contains(one, other))
        }
        (Value::Object(expected), Value::Object(values)) if expected.contains_key("taken") => {
            expected.iter().all(|(name, expected)| values.get(name) == Some(expected))
        }
        (Value::Object(expected), Value::Object(values)) => expected
            .iter()
            .all(|(name, expected)| values.get(name).is_some_and(|value| contains(expected, value))),
        _ => expected == value,
    }
}
