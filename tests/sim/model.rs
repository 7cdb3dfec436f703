//! A sale in memory, simple enough to be obviously right: people in one list, seats in another, and counting instead
//! of counters. It says what every request must be answered with and which facts it leaves.
//!
//! What a sale leaves open (new tokens, which of the free seats) is taken from the real answer, once it is allowed.

use std::collections::{BTreeMap, BTreeSet};

use domain::shuffle::{AFTER_THE_DRAW, Seed};
use domain::{EventId, ReservationId, Token};
use serde_json::{Value, json};
use store::{BookingsWaiting, Load};

use crate::command::{Ask, Change, Choice, Money, Named, Owner, UNKNOWN};
use crate::rules::{Rules, Seat, SeatState, Section};

const REENTRY_MS: i64 = 600_000;
const DAY_MS: i64 = 86_400_000;

/// A place of the line and what became of it.
pub(crate) struct Place {
    pub(crate) token: Token,
    /// Until it has left or booked.
    pub(crate) account: Option<String>,
    /// For good: whose token it is.
    made_for: Option<String>,
    pub(crate) state: State,
    /// What its key says since it last came to the end of the line.
    pub(crate) key: Key,
}

/// Made in an epoch; the score is not told before the opening.
#[derive(Clone, Copy, Default)]
pub(crate) struct Key {
    pub(crate) epoch: u64,
    pub(crate) score: u64,
    pub(crate) number: u64,
}

#[derive(Clone, Copy, PartialEq)]
pub(crate) enum State {
    Waiting {
        score: u64,
        reentered: bool,
    },
    /// `slot`: counted as active until a tick or its owner ends the visit.
    Called {
        score: u64,
        claim_by: i64,
        reentered: bool,
        slot: bool,
    },
    Active {
        score: u64,
        expires_at: i64,
        hold_expires_at: Option<i64>,
        slot: bool,
    },
    Booked {
        reservation: usize,
    },
    Left,
    /// Redis knew it, and does not any more.
    Lost,
}

pub(crate) struct Reservation {
    pub(crate) id: ReservationId,
    pub(crate) token: Token,
    pub(crate) account: Option<String>,
    pub(crate) status: &'static str,
    pub(crate) version: u32,
    pub(crate) places: Vec<Held>,
    pub(crate) created_at: i64,
    pub(crate) updated_at: i64,
    pub(crate) due_at: Option<i64>,
    pub(crate) remind_at: Option<i64>,
    pub(crate) payment: Option<String>,
    /// What was asked for, to know the same request again.
    pub(crate) request: String,
}

/// A place held or bought: section, price, name (empty in a general section).
pub(crate) type Held = (usize, u64, String);

/// What must be answered.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Expect {
    /// Fields of `data`; null: not there. An access token is true where there is one.
    Success {
        status: u16,
        data: Value,
    },
    Refusal {
        status: u16,
        code: &'static str,
        details: Value,
    },
    /// What comes from the store itself.
    Text(String),
}

pub(crate) struct Model {
    pub(crate) event: EventId,
    pub(crate) now: i64,
    pub(crate) rules: Rules,
    pub(crate) version: u64,
    pub(crate) status: &'static str,
    pub(crate) maintenance: bool,
    pub(crate) message: String,
    pub(crate) epoch: u64,
    /// Redis is another one than any tick has seen.
    replaced: bool,
    recovering_since: Option<i64>,
    /// Who brought the key of its place last.
    came_back: Option<usize>,
    pub(crate) places: Vec<Place>,
    pub(crate) reservations: Vec<Reservation>,
    /// Account → its place.
    pub(crate) accounts: BTreeMap<String, usize>,
    /// Facts not compared yet.
    pub(crate) facts: Vec<String>,
    seed: Seed,
    last_number: u64,
    head_score: u64,
    net: i64,
    credit: f64,
    call_credit: f64,
    ticked_at: i64,
    pace: f64,
    /// The part of the pace that is used.
    pace_factor: f64,
    joins_refused: bool,
    /// Facts that were ever written: nobody takes them away.
    pub(crate) journal: u64,
    /// Token and Idempotency-Key → what was asked and answered.
    kept: BTreeMap<(Token, u8), (Ask, Expect)>,
    /// Payment → why it was refused last.
    refused: BTreeMap<String, &'static str>,
}

type Refused = Result<(), Expect>;

fn refusal<T>(status: u16, code: &'static str, details: Value) -> Result<T, Expect> {
    Err(Expect::Refusal { status, code, details })
}

impl Model {
    pub(crate) fn new(event: EventId, master_key: &str, rules: Rules, now: i64) -> Self {
        let seed = Seed::of(master_key.as_bytes(), &event);
        Self {
            event,
            now,
            version: 1,
            status: "OPEN",
            maintenance: false,
            message: String::new(),
            epoch: 1,
            replaced: false,
            recovering_since: None,
            came_back: None,
            places: Vec::new(),
            reservations: Vec::new(),
            accounts: BTreeMap::new(),
            facts: vec![format!("{now} changed apply 1")],
            seed,
            last_number: 0,
            head_score: 0,
            net: 0,
            credit: 0.0,
            call_credit: 0.0,
            ticked_at: 0,
            pace: rules.per_second,
            pace_factor: 1.0,
            joins_refused: false,
            journal: 1,
            kept: BTreeMap::new(),
            refused: BTreeMap::new(),
            rules,
        }
    }

    pub(crate) fn standing(&self) -> &'static str {
        if self.status == "CLOSED" || self.now >= self.rules.closes_at {
            "CLOSED"
        } else if self.now < self.rules.opens_at {
            "UPCOMING"
        } else {
            self.status
        }
    }

    /// The state's name in the diagram of a token's life.
    pub(crate) fn name_of(&self, who: Option<usize>) -> &'static str {
        match who.map(|who| self.places[who].state) {
            None => "none",
            Some(State::Waiting { .. }) => "WAITING",
            Some(State::Called { claim_by, .. }) if claim_by <= self.now => "LAPSED",
            Some(State::Called { .. }) => "CALLED",
            Some(State::Active { expires_at, .. }) if expires_at <= self.now => "EXPIRED",
            Some(State::Active { .. }) if self.held_by(who).is_empty() => "ACTIVE",
            Some(State::Active { .. }) => "holding",
            Some(State::Booked { .. }) => "BOOKED",
            Some(State::Left) => "LEFT",
            Some(State::Lost) => "LOST",
        }
    }

    /// What must be answered to `ask`; `Err` where the real answer took what it must not. Everything that `ask`
    /// changes is changed.
    pub(crate) fn step(&mut self, ask: &Ask, got: &Value) -> Result<Expect, String> {
        let learned = &got["data"];
        let answer = match ask {
            Ask::Join { account } => {
                self.came_back = None;
                self.join(account.as_deref(), learned)
            }
            Ask::Rejoin { who, account } => {
                self.came_back = *who;
                self.rejoin(*who, account.as_deref(), learned, true)
            }
            Ask::Leave { who } => Ok(self.leave(*who)),
            Ask::Poll { who, .. } => Ok(self.poll(*who)),
            Ask::Progress => Ok(self.progress()),
            Ask::Search { who } => self.search(*who),
            Ask::Map { who, offering } => self.map(*who, offering),
            Ask::Session { who } => Ok(self.session(*who)),
            Ask::Hold { who, choice, key } => {
                let resolved = self.resolve(choice);
                self.once(*who, *key, ask, resolved, |model| model.hold(*who, choice, learned))?
            }
            Ask::Release { who, named, key } => {
                let resolved = self.resolve_named(named);
                self.once(*who, *key, ask, resolved, |model| Ok(model.release(*who, named)))?
            }
            Ask::Book { who, plain, key } => {
                self.once(*who, *key, ask, Ok(()), |model| model.book(*who, *plain, learned))?
            }
            Ask::Read { reservation, owner } => self.read(*reservation, owner).map(|at| self.reservation(at)),
            Ask::Cancel { reservation, owner } => self.cancel(*reservation, owner),
            Ask::Pay { reservation, payment, money } => self.pay(*reservation, *payment, *money),
            Ask::Expire { reservation } => Ok(self.expire(*reservation)),
            Ask::Tick(load) => Ok(self.tick(*load)),
            Ask::Lose { reservation, whole } => Ok(self.lose(*reservation, *whole)),
            Ask::Change(change) => Ok(self.change(change)),
            Ask::Failover { lost } => Ok(self.failover(*lost)),
            Ask::Mislay { who } => Ok(self.mislay(*who)),
            Ask::Recover => Ok(self.recover()),
            Ask::Recovered { epoch } => Ok(self.recovered(*epoch)),
            Ask::Pass(ms) => {
                self.now += ms;
                Ok(Expect::Text(String::new()))
            }
        };
        Ok(answer.unwrap_or_else(|refused| refused))
    }

    /// A request with an Idempotency-Key: a success is remembered and answered again, before anything is looked at.
    fn once(
        &mut self,
        who: Option<usize>,
        key: Option<u8>,
        ask: &Ask,
        resolved: Refused,
        act: impl FnOnce(&mut Self) -> Result<Result<Expect, Expect>, String>,
    ) -> Result<Result<Expect, Expect>, String> {
        let key = key.and_then(|key| Some((self.places[who?].token, key)));
        if let Some((asked, answer)) = key.as_ref().and_then(|key| self.kept.get(key)) {
            return Ok(if asked == ask {
                Ok(answer.clone())
            } else {
                refusal(409, "IDEMPOTENCY_KEY_REUSED", Value::Null)
            });
        }
        if let Err(refused) = resolved {
            return Ok(Err(refused));
        }
        let Some(key) = key else { return act(self) };
        let answer = act(self)?;
        if let Ok(success) = &answer {
            self.kept.insert(key, (ask.clone(), success.clone()));
        }
        Ok(answer)
    }

    /// Whether this very request was answered under its Idempotency-Key before.
    pub(crate) fn is_replay(&self, who: Option<usize>, key: Option<u8>) -> bool {
        let key = key.and_then(|key| Some((self.places[who?].token, key)));
        key.is_some_and(|key| self.kept.contains_key(&key))
    }

    fn note(&mut self, fact: &str) {
        self.journal += 1;
        self.facts.push(format!("{} {fact}", self.now));
    }

    // The line.

    fn waiting(&self) -> Vec<(u64, usize)> {
        let scored = self.places.iter().enumerate().filter_map(|(at, place)| match place.state {
            State::Waiting { score, .. } => Some((score, at)),
            _ => None,
        });
        let mut line: Vec<(u64, usize)> = scored.collect();
        line.sort_unstable();
        line
    }

    fn is_opened(&self) -> bool {
        self.now >= self.rules.opens_at
    }

    /// The arrival number behind a score; a drawn one stands for none.
    fn number_of(&self, score: u64) -> Value {
        match self.rules.pre_queue {
            "shuffle" if score > AFTER_THE_DRAW => json!(score - AFTER_THE_DRAW),
            "shuffle" => Value::Null,
            _ => json!(score),
        }
    }

    /// The same for whoever came back with a key, which remembers it.
    fn known_number(&self, who: usize, score: u64) -> Value {
        match self.number_of(score) {
            Value::Null if self.came_back == Some(who) => json!(self.places[who].key.number),
            number => number,
        }
    }

    fn rank(&self, who: usize) -> Option<usize> {
        let at = self.waiting().iter().position(|(_, at)| *at == who)?;
        self.is_opened().then_some(at + 1)
    }

    fn joined(&self, who: usize, number: &Value, is_new: bool, rejoin: bool) -> Expect {
        let rank = self.rank(who);
        let mut data = json!({
            "token": self.places[who].token.to_string(),
            "eventId": self.event.as_str(),
            "joinedAt": is_new.then_some(self.now),
            "ticketNumber": number,
            "rank": rank,
            "ahead": rank.map(|rank| rank - 1),
            "rejoined": !is_new,
            "message": self.message(),
        });
        if rejoin {
            let is_active = matches!(self.places[who].state, State::Active { .. });
            data["status"] = json!(if is_active { "ACTIVE" } else { "WAITING" });
            data["accessToken"] = json!(is_active);
        }
        Expect::Success { status: 200, data }
    }

    fn message(&self) -> Option<&str> {
        Some(self.message.as_str()).filter(|message| !message.is_empty())
    }

    fn may_enter(&self, account: Option<&str>) -> Refused {
        if account.is_none() && self.rules.require_account {
            return refusal(403, "ACCOUNT_REQUIRED", Value::Null);
        }
        if self.standing() == "UPCOMING" && self.rules.pre_queue == "closed" {
            return refusal(409, "NOT_OPEN", json!({ "opensAt": self.rules.opens_at }));
        }
        Ok(())
    }

    fn join(&mut self, account: Option<&str>, learned: &Value) -> Result<Expect, Expect> {
        if self.standing() == "CLOSED" {
            return refusal(403, "EVENT_CLOSED", Value::Null);
        }
        self.may_enter(account)?;
        if let Some(known) = account.and_then(|account| self.accounts.get(account)).copied() {
            // One account, one place: the same token from any device.
            return self.rejoin(Some(known), account, learned, false);
        }
        self.new_place(account, learned, false)
    }

    /// Only who gets a new place is refused.
    fn may_lengthen_the_line(&self) -> Refused {
        if self.joins_refused { refusal(503, "UNAVAILABLE", Value::Null) } else { Ok(()) }
    }

    fn new_place(&mut self, account: Option<&str>, learned: &Value, rejoin: bool) -> Result<Expect, Expect> {
        self.may_lengthen_the_line()?;
        // A token is random: nobody but the answer knows it.
        let token = learned["token"].as_str().and_then(|token| token.parse().ok());
        let token: Token = token.unwrap_or_else(Token::random);
        let who = self.places.len();
        let made_for = account.map(str::to_owned);
        self.places.push(Place { token, account: None, made_for, state: State::Left, key: Key::default() });
        self.enter_at_the_end(who, account);
        Ok(self.joined(who, &json!(self.last_number), true, rejoin))
    }

    fn enter_at_the_end(&mut self, who: usize, account: Option<&str>) {
        self.watch_epoch();
        self.last_number += 1;
        let token = self.places[who].token;
        let score = match self.rules.pre_queue {
            "shuffle" if self.standing() == "UPCOMING" => self.seed.score(token),
            "shuffle" => AFTER_THE_DRAW + self.last_number,
            _ => self.last_number,
        };
        self.places[who].state = State::Waiting { score, reentered: false };
        let told = if self.is_opened() { score } else { 0 };
        self.places[who].key = Key { epoch: self.epoch, score: told, number: self.last_number };
        if let Some(account) = account {
            self.places[who].account = Some(account.to_owned());
            self.accounts.insert(account.to_owned(), who);
        }
        let number = self.last_number;
        self.note(&format!("enter {token} {number} {score} {}", account.unwrap_or("-")));
    }

    fn rejoin(
        &mut self,
        who: Option<usize>,
        account: Option<&str>,
        learned: &Value,
        rejoin: bool,
    ) -> Result<Expect, Expect> {
        let state = who.map_or(State::Left, |who| self.places[who].state);
        if let State::Booked { reservation } = state {
            return self.already_booked(reservation);
        }
        let owner = who.and_then(|who| self.places[who].account.clone());
        if owner.is_some() && account.is_some() && owner.as_deref() != account {
            return refusal(401, "UNAUTHORIZED", Value::Null);
        }
        if self.standing() == "CLOSED" {
            return refusal(403, "EVENT_CLOSED", Value::Null);
        }
        let Some(who) = who.filter(|_| !matches!(state, State::Left | State::Lost)) else {
            self.may_enter(account)?;
            let elsewhere = account.and_then(|account| self.accounts.get(account)).copied();
            if let Some(elsewhere) = elsewhere {
                return self.rejoin(Some(elsewhere), account, learned, rejoin);
            }
            return match who.and_then(|who| Some((who, self.proven_score(who, account)?))) {
                Some((who, score)) => Ok(self.restored(who, score, account, rejoin)),
                None => self.new_place(account, learned, rejoin),
            };
        };
        if self.is_over(state) && !self.may_reenter(state) {
            self.may_lengthen_the_line()?;
        }
        match state {
            State::Waiting { score, .. } => {
                Ok(self.joined(who, &self.known_number(who, score), false, rejoin))
            }
            State::Called { score, claim_by, .. } if claim_by > self.now => {
                self.claim(who);
                Ok(self.joined(who, &self.known_number(who, score), false, rejoin))
            }
            State::Active { score, expires_at, .. } if expires_at > self.now => {
                Ok(self.joined(who, &self.known_number(who, score), false, rejoin))
            }
            State::Called { score, slot, .. } => {
                if slot {
                    self.note(&format!("lapsed {}", self.places[who].token));
                }
                if self.may_reenter(state) {
                    self.net -= 1;
                    self.places[who].state = State::Waiting { score, reentered: true };
                    self.note(&format!("enter {} - {score} -", self.places[who].token));
                    return Ok(self.joined(who, &self.known_number(who, score), false, rejoin));
                }
                Ok(self.requeued(who, owner.as_deref(), rejoin))
            }
            State::Active { slot, .. } => {
                if slot {
                    self.note(&format!("expired {}", self.places[who].token));
                }
                Ok(self.requeued(who, owner.as_deref(), rejoin))
            }
            State::Booked { .. } | State::Left | State::Lost => unreachable!("told apart above"),
        }
    }

    /// Where a lost place stood, as its key proves it: made before the loss, and nobody behind it was served. Of a sale
    /// of accounts alone, an account gets none but its own.
    fn proven_score(&self, who: usize, account: Option<&str>) -> Option<u64> {
        let Place { token, made_for, state, key, .. } = &self.places[who];
        if self.rules.require_account && made_for.as_deref() != account {
            return None;
        }
        if *state != State::Lost || (key.epoch >= self.epoch && !self.replaced) {
            return None;
        }
        let score = match (key.score, self.rules.pre_queue) {
            (0, "shuffle") => self.seed.score(*token),
            (0, _) => key.number,
            (score, _) => score,
        };
        Some(score).filter(|score| *score > self.head_score)
    }

    fn restored(&mut self, who: usize, score: u64, account: Option<&str>, rejoin: bool) -> Expect {
        self.places[who].state = State::Waiting { score, reentered: false };
        let account = account.filter(|account| self.places[who].made_for.as_deref() == Some(account));
        if let Some(account) = account {
            self.places[who].account = Some(account.to_owned());
            self.accounts.insert(account.to_owned(), who);
        }
        self.note(&format!("enter {} - {score} {}", self.places[who].token, account.unwrap_or("-")));
        self.joined(who, &self.known_number(who, score), false, rejoin)
    }

    fn requeued(&mut self, who: usize, account: Option<&str>, rejoin: bool) -> Expect {
        self.enter_at_the_end(who, account);
        self.joined(who, &json!(self.last_number), true, rejoin)
    }

    /// Whether a visit was not used in time.
    fn is_over(&self, state: State) -> bool {
        match state {
            State::Called { claim_by: until, .. } | State::Active { expires_at: until, .. } => {
                until <= self.now
            }
            _ => false,
        }
    }

    fn may_reenter(&self, state: State) -> bool {
        matches!(state, State::Called { claim_by, reentered: false, .. } if self.now - claim_by <= REENTRY_MS)
    }

    fn claim(&mut self, who: usize) {
        let State::Called { score, .. } = self.places[who].state else { return };
        let expires_at = self.now + self.rules.active_ms;
        self.places[who].state = State::Active { score, expires_at, hold_expires_at: None, slot: true };
        self.note(&format!("issued {} {expires_at}", self.places[who].token));
    }

    fn leave(&mut self, who: Option<usize>) -> Expect {
        let removed = matches!(self.name_of(who), "WAITING" | "CALLED" | "ACTIVE" | "holding");
        if let Some(who) = who.filter(|_| removed) {
            let held = self.held_by(Some(who));
            if !held.is_empty() {
                self.free(&held, who);
                self.note(&format!("released {} {}", self.places[who].token, self.written(&held)));
            }
            self.places[who].state = State::Left;
            self.give_up_account(who);
            self.note(&format!("left {}", self.places[who].token));
        }
        Expect::Success { status: 200, data: json!({ "removed": removed }) }
    }

    /// The account may take another place.
    fn give_up_account(&mut self, who: usize) {
        if let Some(account) = self.places[who].account.take() {
            self.accounts.remove(&account);
        }
    }

    fn poll(&mut self, who: Option<usize>) -> Expect {
        let is_closed = self.standing() == "CLOSED";
        let mut is_claim = false;
        if let Some(who) = who.filter(|_| !is_closed && self.name_of(who) == "CALLED") {
            self.claim(who);
            is_claim = true;
        }
        let state = who.map_or(State::Left, |who| self.places[who].state);
        let rank = who.filter(|_| !is_closed).and_then(|who| self.rank(who));
        let waiting = self.waiting().len();
        let status = match self.name_of(who) {
            "none" | "LEFT" | "LOST" => "NOT_FOUND",
            "BOOKED" => "BOOKED",
            "ACTIVE" | "holding" if !is_closed => "ACTIVE",
            "WAITING" if !is_closed => "WAITING",
            _ => "EXPIRED",
        };
        let expires_at = match state {
            State::Active { expires_at, .. } if status == "ACTIVE" => Some(expires_at),
            _ => None,
        };
        let score = match state {
            State::Waiting { score, .. } if rank.is_some() => Some(score),
            _ => None,
        };
        let reservation = match state {
            State::Booked { reservation } => Some(self.reservations[reservation].id.to_string()),
            _ => None,
        };
        let reentry = status == "EXPIRED" && !is_closed && self.may_reenter(state);
        let pace = if self.standing() == "PAUSED" { 0.0 } else { self.pace };
        let wait = rank.filter(|_| pace > 0.0).map(|rank| (rank - 1) as f64 / pace);
        Expect::Success {
            status: 200,
            data: json!({
                "status": status,
                "rank": rank,
                "totalWaiting": waiting,
                "ahead": rank.map(|rank| rank - 1),
                "behind": rank.map(|rank| waiting - rank),
                "remainingSeats": self.remaining(),
                "activeExpiresAt": expires_at,
                "expiresIn": expires_at.map(|expires_at| (expires_at - self.now) / 1_000),
                "totalTicketCount": self.tickets_shown(who),
                "estimatedWaitSeconds": wait,
                "net": self.net,
                "score": score,
                "accessToken": is_claim,
                "reservationId": reservation,
                "reentry": reentry.then_some(true),
                "opensAt": (!self.is_opened()).then_some(self.rules.opens_at),
                "message": self.message(),
            }),
        }
    }

    /// Places that whoever asks has bought: over all visits of an account, else by this token.
    fn tickets_shown(&self, who: Option<usize>) -> u32 {
        let Some(who) = who else { return 0 };
        match self.places[who].state {
            State::Booked { reservation } => {
                let reservation = &self.reservations[reservation];
                match &reservation.account {
                    Some(account) => self.bought(Some(account)),
                    None if matches!(reservation.status, "CANCELLED" | "EXPIRED") => 0,
                    None => count(&reservation.places),
                }
            }
            _ => self.bought(self.places[who].account.as_ref()),
        }
    }

    /// What an account has bought and not given back.
    pub(crate) fn bought(&self, account: Option<&String>) -> u32 {
        let kept = self.reservations.iter().filter(|reservation| {
            account.is_some()
                && reservation.account.as_ref() == account
                && !matches!(reservation.status, "CANCELLED" | "EXPIRED")
        });
        kept.map(|reservation| count(&reservation.places)).sum()
    }

    fn progress(&self) -> Expect {
        let is_drawn = self.rules.pre_queue == "shuffle";
        Expect::Success {
            status: 200,
            data: json!({
                "status": self.standing(),
                "headScore": self.head_score,
                "net": self.net,
                "totalWaiting": self.waiting().len(),
                "remainingSeats": self.remaining(),
                "admittedPerSecond": if self.standing() == "PAUSED" { 0.0 } else { self.pace },
                "opensAt": self.rules.opens_at,
                "message": self.message(),
                "shuffleCommitment": is_drawn.then(|| self.seed.commitment()),
                "shuffleSeed": (is_drawn && self.is_opened()).then(|| self.seed.reveal()),
                "updatedAt": self.now,
            }),
        }
    }

    // Admission.

    fn tick(&mut self, load: Load) -> Expect {
        self.watch_epoch();
        let reaped = self.reap();
        let (mut lapsed, mut expired) = (Vec::new(), Vec::new());
        for place in &mut self.places {
            match &mut place.state {
                State::Called { claim_by, slot, .. } if *slot && *claim_by <= self.now => {
                    *slot = false;
                    lapsed.push(place.token.to_string());
                }
                State::Active { expires_at, slot, .. } if *slot && *expires_at <= self.now => {
                    *slot = false;
                    expired.push(place.token.to_string());
                }
                _ => {}
            }
        }
        for (word, tokens) in [("lapsed", &mut lapsed), ("expired", &mut expired)] {
            if !tokens.is_empty() {
                tokens.sort();
                self.note(&format!("{word} {}", tokens.join(" ")));
            }
        }
        let mut overdue = Vec::new();
        if !self.is_recovering() {
            self.remind();
            overdue = self.overdue();
        }
        self.bear(load);
        let admitted = self.admit(lapsed.len());
        Expect::Text(format!(
            "{} admitted {admitted} lapsed {} expired {} reaped {reaped} more false waiting {} active {} remaining {} \
             epoch {} recovering {} pace factor {} joins refused {} overdue {overdue:?}",
            self.standing(),
            lapsed.len(),
            expired.len(),
            self.waiting().len(),
            self.active(),
            self.remaining(),
            self.epoch,
            self.is_recovering(),
            self.pace_factor,
            self.joins_refused,
        ))
    }

    /// How much of the pace bookings leave that wait to be written, in hundredths; whether the journal is too long.
    fn bear(&mut self, load: Load) {
        let Rules { per_second, backpressure_seconds, .. } = self.rules;
        self.pace_factor = match (backpressure_seconds, load.backlog) {
            (None, _) => 1.0,
            (_, BookingsWaiting::Unknown) => self.pace_factor,
            (_, BookingsWaiting::TooMany) => 0.0,
            (Some(bearable), BookingsWaiting::Messages(messages)) => {
                let waited_seconds = messages as f64 / per_second;
                let left = 2.0 - waited_seconds / f64::from(bearable);
                (left.clamp(0.0, 1.0) * 100.0 + 0.5).floor() / 100.0
            }
        };
        if self.journal >= load.journal_limit {
            self.joins_refused = true;
        } else if self.journal * 2 <= load.journal_limit {
            self.joins_refused = false;
        }
    }

    /// Calls and sessions that count against maxActive.
    fn active(&self) -> usize {
        let in_a_slot = |place: &&Place| {
            matches!(place.state, State::Called { slot: true, .. } | State::Active { slot: true, .. })
        };
        self.places.iter().filter(in_a_slot).count()
    }

    /// Credit grows with time and is spent by calling; two seconds and a part of a person are kept at most.
    fn admit(&mut self, lapsed: usize) -> usize {
        let Rules { per_second, compensate, opens_at, .. } = self.rules;
        let per_second = per_second * self.pace_factor;
        if self.ticked_at - self.now > 2_000 {
            // The clock was set.
            self.ticked_at = self.now;
        }
        let elapsed = (self.now - self.ticked_at.max(opens_at)).max(0) as f64;
        let back = if compensate { lapsed as f64 * 1_000.0 } else { 0.0 };
        self.credit = (self.credit + per_second * elapsed + back).min(per_second * 2_000.0 + 999.0);
        self.call_credit = (self.call_credit + 2.0 * per_second * elapsed).min(per_second * 4_000.0 + 999.0);
        let mut admitted = Vec::new();
        let is_open = self.standing() == "OPEN";
        let calls = is_open && !self.is_recovering();
        if calls && self.remaining() > 0 {
            let credit = if compensate { self.credit.min(self.call_credit) } else { self.credit };
            let mut may_call = (credit / 1_000.0).floor();
            for (score, who) in self.waiting() {
                if may_call < 1.0 || self.active() >= self.rules.max_active {
                    break;
                }
                may_call -= 1.0;
                admitted.push((score, who));
                let State::Waiting { reentered, .. } = self.places[who].state else { continue };
                let claim_by = self.now + self.rules.claim_ms;
                self.places[who].state = State::Called { score, claim_by, reentered, slot: true };
            }
        }
        if let Some((last, _)) = admitted.last() {
            self.head_score = self.head_score.max(*last);
            let places: Vec<String> =
                admitted.iter().map(|(score, who)| format!("{}:{score}", self.places[*who].token)).collect();
            self.note(&format!("admitted {}", places.join(" ")));
        }
        let count = admitted.len() as f64;
        self.net += i64::try_from(admitted.len()).unwrap_or(0);
        self.credit -= count * 1_000.0;
        self.call_credit -= count * 1_000.0;
        if !calls {
            (self.credit, self.call_credit) = (0.0, 0.0);
        }
        // Redis keeps both to a thousandth.
        for credit in [&mut self.credit, &mut self.call_credit] {
            *credit = (*credit * 1_000.0).round() / 1_000.0;
        }
        if is_open && !self.waiting().is_empty() && elapsed > 0.0 {
            self.pace += (1_000.0 * count / elapsed - self.pace) * (1.0 - (-elapsed / 30_000.0).exp());
            self.pace = (self.pace * 1_000.0).round() / 1_000.0;
        }
        self.ticked_at = self.ticked_at.max(self.now);
        admitted.len()
    }

    fn remind(&mut self) {
        let mut soon = Vec::new();
        for reservation in &mut self.reservations {
            if reservation.remind_at.is_some_and(|at| at <= self.now) {
                reservation.remind_at = None;
                soon.push(format!("{}:{}", reservation.id, reservation.due_at.unwrap_or(0)));
            }
        }
        if !soon.is_empty() {
            soon.sort();
            self.note(&format!("soon {}", soon.join(" ")));
        }
    }

    pub(crate) fn overdue(&self) -> Vec<String> {
        let is_overdue = |reservation: &&Reservation| {
            reservation.status == "PENDING_PAYMENT" && reservation.due_at.is_some_and(|due| due <= self.now)
        };
        let mut ids: Vec<String> = self
            .reservations
            .iter()
            .filter(is_overdue)
            .map(|reservation| reservation.id.to_string())
            .collect();
        ids.sort();
        ids
    }

    // Seats.

    pub(crate) fn remaining(&self) -> usize {
        self.rules.sections.iter().map(Section::free).sum()
    }

    /// What a token holds now; what its last visit left behind counts no more.
    fn held_by(&self, who: Option<usize>) -> Vec<Held> {
        let mut held = Vec::new();
        for (at, section) in self.rules.sections.iter().enumerate() {
            for seat in &section.seats {
                match seat.state {
                    SeatState::Held { by, until, price } if Some(by) == who && until > self.now => {
                        held.push((at, price, seat.name.clone()));
                    }
                    _ => {}
                }
            }
        }
        held
    }

    fn free(&mut self, held: &[Held], by_who: usize) {
        let now = self.now;
        for (section, price, name) in held {
            let mut seats = self.rules.sections[*section].seats.iter_mut();
            let seat = seats.find(|seat| {
                let SeatState::Held { by, until, price: held_at } = seat.state else { return false };
                by == by_who && until > now && held_at == *price && seat.name == *name
            });
            if let Some(seat) = seat {
                seat.state = SeatState::Free;
            }
        }
    }

    /// Gives back every hold whose time is over: how many seats and counts that were.
    fn reap(&mut self) -> usize {
        let now = self.now;
        self.reap_those(|_, _, _, until| until <= now)
    }

    fn reap_those(&mut self, is_due: impl Fn(usize, &Seat, usize, i64) -> bool) -> usize {
        let mut units = BTreeSet::new();
        let mut freed = Vec::new();
        for (at, section) in self.rules.sections.iter_mut().enumerate() {
            for seat in &mut section.seats {
                if let SeatState::Held { by, until, price } = seat.state
                    && is_due(at, seat, by, until)
                {
                    let owner = if seat.name.is_empty() { by } else { 0 };
                    units.insert((at, seat.name.clone(), price, owner));
                    freed.push((at, price, seat.name.clone()));
                    seat.state = SeatState::Free;
                }
            }
        }
        if !freed.is_empty() {
            let written = self.written(&freed);
            self.note(&format!("released - {written}"));
        }
        units.len()
    }

    /// Places as a fact names them, in no order.
    fn written(&self, held: &[Held]) -> String {
        let mut items: BTreeMap<(usize, u64), Vec<&str>> = BTreeMap::new();
        for (section, price, name) in held {
            items.entry((*section, *price)).or_default().push(name);
        }
        let items = items.into_iter().map(|((section, price), mut names)| {
            let section = &self.rules.sections[section];
            names.sort_unstable();
            let seats: Vec<&str> = names.iter().copied().filter(|name| !name.is_empty()).collect();
            format!("{}/{}@{price}*{}={}", section.offering, section.id, names.len(), seats.join(","))
        });
        let mut items: Vec<String> = items.collect();
        items.sort();
        items.join(";")
    }

    fn already_booked<T>(&self, reservation: usize) -> Result<T, Expect> {
        let id = self.reservations[reservation].id.to_string();
        refusal(409, "ALREADY_BOOKED", json!({ "reservationId": id }))
    }

    /// Whoever looks must have been let in; looking claims nothing.
    fn may_look(&self, who: Option<usize>) -> Refused {
        if self.standing() == "CLOSED" {
            return refusal(403, "EVENT_CLOSED", Value::Null);
        }
        match self.name_of(who) {
            "BOOKED" | "CALLED" | "ACTIVE" | "holding" | "LAPSED" | "EXPIRED" => {}
            _ => return refusal(403, "NOT_ADMITTED", Value::Null),
        }
        match who.map(|who| self.places[who].state) {
            Some(State::Booked { reservation }) => self.already_booked(reservation),
            _ if matches!(self.name_of(who), "LAPSED" | "EXPIRED") => {
                refusal(403, "ADMISSION_EXPIRED", Value::Null)
            }
            _ => Ok(()),
        }
    }

    fn session(&self, who: Option<usize>) -> Expect {
        match self.may_look(who) {
            Err(Expect::Refusal { code, .. }) => Expect::Text(code.to_owned()),
            _ => match who.map(|who| self.places[who].state) {
                Some(State::Called { claim_by: until, .. } | State::Active { expires_at: until, .. }) => {
                    Expect::Text(format!("LIVE {until}"))
                }
                _ => Expect::Text(String::new()),
            },
        }
    }

    fn search(&self, who: Option<usize>) -> Result<Expect, Expect> {
        self.may_look(who)?;
        let section = |section: &Section| {
            json!({
                "sectionId": section.id, "name": section.id, "price": section.price, "remaining": section.free(),
            })
        };
        let offering = |id: &str| -> Value {
            let sections = self.rules.sections.iter().filter(|section| section.offering == id).map(section);
            json!({ "offeringId": id, "date": "2027-02-05", "sections": sections.collect::<Vec<_>>() })
        };
        let data = json!({ "offerings": [offering("T1"), offering("T2")] });
        Ok(Expect::Success { status: 200, data })
    }

    fn map(&self, who: Option<usize>, offering: &str) -> Result<Expect, Expect> {
        let sections = self.rules.sections.iter().filter(|section| section.offering == offering);
        let sections: Vec<&Section> = sections.collect();
        if sections.is_empty() {
            return refusal(404, "OFFERING_NOT_FOUND", Value::Null);
        }
        self.may_look(who)?;
        let section = |section: &&Section| {
            let taken = section.seats.iter().filter_map(|seat| match seat.state {
                SeatState::Held { .. } => Some((seat.name.clone(), json!("HELD"))),
                SeatState::Sold { .. } => Some((seat.name.clone(), json!("SOLD"))),
                SeatState::Free => None,
            });
            let taken: serde_json::Map<String, Value> = taken.filter(|(name, _)| !name.is_empty()).collect();
            json!({
                "sectionId": section.id, "rows": section.rows(), "taken": taken, "remaining": section.free(),
            })
        };
        let data = json!({ "sections": sections.iter().map(section).collect::<Vec<_>>() });
        Ok(Expect::Success { status: 200, data })
    }

    /// Names that are none, before anybody asks for a session.
    fn resolve(&self, choice: &Choice) -> Refused {
        match choice {
            Choice::Seats { offering, names } => {
                self.resolve_named(&Named::Seats { offering, names: names.clone() })
            }
            Choice::Counted { .. } => Ok(()),
        }
    }

    fn resolve_named(&self, named: &Named) -> Refused {
        let Named::Seats { offering, names } = named else { return Ok(()) };
        let unknown: Vec<&String> =
            names.iter().filter(|name| self.seat_at(offering, name).is_none()).collect();
        if unknown.is_empty() { Ok(()) } else { refusal(404, "SEAT_NOT_FOUND", json!({ "seats": unknown })) }
    }

    fn seat_at(&self, offering: &str, name: &str) -> Option<(usize, usize)> {
        self.rules.sections.iter().enumerate().find_map(|(at, section)| {
            let seat = section.seats.iter().position(|seat| seat.name == *name)?;
            (section.offering == offering).then_some((at, seat))
        })
    }

    /// Who acts must be in a live session; a called token that acts has come.
    fn act(&mut self, who: Option<usize>) -> Result<usize, Expect> {
        match who.map(|who| (who, self.places[who].state)) {
            Some((_, State::Booked { reservation })) => self.already_booked(reservation),
            Some((_, State::Active { hold_expires_at: Some(end), .. })) if end <= self.now => {
                refusal(410, "HOLD_EXPIRED", Value::Null)
            }
            Some((_, State::Active { expires_at: end, .. } | State::Called { claim_by: end, .. }))
                if end <= self.now =>
            {
                refusal(403, "ADMISSION_EXPIRED", Value::Null)
            }
            Some((who, State::Active { .. } | State::Called { .. })) => {
                self.claim(who);
                Ok(who)
            }
            _ => refusal(403, "NOT_ADMITTED", Value::Null),
        }
    }

    fn may_sell(&self) -> Refused {
        if self.standing() == "CLOSED" {
            return refusal(403, "EVENT_CLOSED", Value::Null);
        }
        if self.maintenance {
            return refusal(503, "UNAVAILABLE", Value::Null);
        }
        self.may_change_reservations()
    }

    // A loss of Redis.

    pub(crate) fn is_recovering(&self) -> bool {
        self.replaced || self.recovering_since.is_some()
    }

    /// Nothing else of the token would be left than what a loss takes.
    pub(crate) fn may_be_lost(&self, who: usize) -> bool {
        matches!(self.places[who].state, State::Waiting { reentered: false, .. })
    }

    fn failover(&mut self, lost: Option<usize>) -> Expect {
        self.replaced = true;
        lost.map_or(Expect::Text(String::new()), |who| self.mislay(who))
    }

    fn mislay(&mut self, who: usize) -> Expect {
        self.places[who].state = State::Lost;
        self.give_up_account(who);
        Expect::Text(String::new())
    }

    fn watch_epoch(&mut self) {
        if std::mem::take(&mut self.replaced) {
            self.epoch += 1;
            self.last_number += 1_000_000;
            self.recovering_since = Some(self.now);
            self.note(&format!("changed epoch {}", self.version));
        }
    }

    fn recover(&mut self) -> Expect {
        self.watch_epoch();
        Expect::Text(match self.recovering_since {
            Some(since) => format!("epoch {} recovers since {since} at {}", self.epoch, self.now),
            None => format!("epoch {} is healthy", self.epoch),
        })
    }

    fn recovered(&mut self, epoch: u64) -> Expect {
        let ends = epoch == self.epoch && !self.replaced;
        if ends && self.recovering_since.take().is_some() {
            self.note(&format!("changed recovered {}", self.version));
        }
        Expect::Text(ends.to_string())
    }

    /// What Redis knows of a reservation may not be the newest.
    fn may_change_reservations(&self) -> Refused {
        if self.is_recovering() { refusal(503, "UNAVAILABLE", Value::Null) } else { Ok(()) }
    }

    fn within_limit(&self, used: u32, requested: usize) -> Refused {
        let limit = self.rules.limit;
        if used as usize + requested > limit as usize {
            let details = json!({ "limit": limit, "used": used, "requested": requested });
            return refusal(409, "PURCHASE_LIMIT_EXCEEDED", details);
        }
        Ok(())
    }

    fn hold(
        &mut self,
        who: Option<usize>,
        choice: &Choice,
        learned: &Value,
    ) -> Result<Result<Expect, Expect>, String> {
        Ok(match self.may_sell().and_then(|()| self.act(who)) {
            Err(refused) => Err(refused),
            Ok(who) => match choice {
                Choice::Seats { offering, names } => self.hold_named(who, offering, names),
                Choice::Counted { section, count, best } => {
                    let used = self.used(who);
                    match self.within_limit(used, *count) {
                        Err(refused) => Err(refused),
                        Ok(()) => match self.pick(*section, *count, *best, &learned["seats"])? {
                            Err(refused) => Err(refused),
                            Ok(seats) => Ok(self.hold_seats(who, *section, &seats, *count)),
                        },
                    }
                }
            },
        })
    }

    fn used(&self, who: usize) -> u32 {
        self.bought(self.places[who].account.as_ref()) + count(&self.held_by(Some(who)))
    }

    fn hold_named(&mut self, who: usize, offering: &str, names: &[String]) -> Result<Expect, Expect> {
        let found: Vec<(usize, usize)> =
            names.iter().filter_map(|name| self.seat_at(offering, name)).collect();
        let (mut wanted, mut taken) = (Vec::new(), Vec::new());
        for ((section, seat), name) in found.iter().zip(names) {
            match self.rules.sections[*section].seats[*seat].state {
                SeatState::Free => wanted.push(*seat),
                SeatState::Held { until, .. } if until <= self.now => wanted.push(*seat),
                SeatState::Held { by, .. } if by == who => {}
                SeatState::Held { .. } | SeatState::Sold { .. } => taken.push(name),
            }
        }
        let section = found.first().map_or(0, |(section, _)| *section);
        if !wanted.is_empty() || !taken.is_empty() {
            self.within_limit(self.used(who), wanted.len())?;
            if !taken.is_empty() {
                return refusal(409, "SEAT_TAKEN", json!({ "seats": taken }));
            }
            let now = self.now;
            let wanted_names: BTreeSet<String> =
                wanted.iter().map(|seat| self.rules.sections[section].seats[*seat].name.clone()).collect();
            self.reap_those(|at, seat, _, until| {
                at == section && until <= now && wanted_names.contains(&seat.name)
            });
        }
        let Expect::Success { status, mut data } = self.hold_seats(who, section, &wanted, names.len()) else {
            return refusal(500, "", Value::Null);
        };
        data["seats"] = json!(names);
        Ok(Expect::Success { status, data })
    }

    /// One budget a token: its first hold starts it, and the session ends with it.
    fn hold_seats(&mut self, who: usize, section: usize, seats: &[usize], asked: usize) -> Expect {
        let State::Active { score, expires_at, hold_expires_at, .. } = self.places[who].state else {
            return Expect::Text("no session".to_owned());
        };
        let until = hold_expires_at.unwrap_or(self.now + self.rules.hold_ms);
        let is_first = hold_expires_at.is_none();
        let ends = if is_first { until } else { expires_at };
        self.places[who].state =
            State::Active { score, expires_at: ends, hold_expires_at: Some(until), slot: true };
        let price = self.rules.sections[section].price;
        if self.rules.sections[section].is_general {
            // What the visit before left behind makes way for this one.
            let now = self.now;
            self.reap_those(|at, seat, by, until| {
                let at_this_price =
                    matches!(seat.state, SeatState::Held { price: held, .. } if held == price);
                at == section && by == who && until <= now && at_this_price
            });
        }
        let mut held = Vec::new();
        for seat in seats {
            let seat = &mut self.rules.sections[section].seats[*seat];
            seat.state = SeatState::Held { by: who, until, price };
            held.push((section, price, seat.name.clone()));
        }
        if !held.is_empty() {
            let written = self.written(&held);
            self.note(&format!("held {} {written} {until}", self.places[who].token));
        }
        let names: Vec<&String> =
            held.iter().map(|(_, _, name)| name).filter(|name| !name.is_empty()).collect();
        Expect::Success {
            status: 200,
            data: json!({
                "seats": names,
                "seatCount": asked,
                "holdExpiresAt": until,
                "activeExpiresAt": ends,
                "expiresIn": (until - self.now) / 1_000,
                "totalTicketCount": self.bought(self.places[who].account.as_ref()),
                "accessToken": ends > expires_at,
            }),
        }
    }

    /// Which places a request for a number of them got. In a row side by side where that can be, leaving no single
    /// seat alone where a choice exists.
    fn pick(
        &mut self,
        section: usize,
        count: usize,
        best: bool,
        learned: &Value,
    ) -> Result<Result<Vec<usize>, Expect>, String> {
        let has = |model: &Self| {
            let section = &model.rules.sections[section];
            let side_by_side = section.is_general || !best || !section.runs(count).is_empty();
            (section.free() >= count, side_by_side)
        };
        if has(self) != (true, true) {
            self.reap();
        }
        let section = &self.rules.sections[section];
        match has(self) {
            (false, _) => return Ok(refusal(409, "SOLD_OUT", json!({ "remaining": section.free() }))),
            (_, false) => return Ok(refusal(409, "NO_ADJACENT_SEATS", Value::Null)),
            _ => {}
        }
        let free: Vec<usize> = (0..section.seats.len()).filter(|at| section.seats[*at].is_free()).collect();
        let Some(names) = learned.as_array().filter(|_| !section.is_general) else {
            return Ok(Ok(free.into_iter().take(count).collect()));
        };
        let named = |name: &Value| section.seats.iter().position(|seat| name == seat.name.as_str());
        let got: Vec<usize> = names.iter().filter_map(named).collect();
        if got.len() != count || got.iter().any(|seat| !free.contains(seat)) {
            return Err(format!("{names:?} are not {count} free seats of {}", section.id));
        }
        let runs = section.runs(count);
        let is_run = runs.iter().find(|(run, _)| *run == got);
        match is_run {
            None if !runs.is_empty() => Err(format!("{names:?} are not side by side, though {runs:?} are")),
            Some((_, orphans)) if *orphans > 0 && runs.iter().any(|(_, orphans)| *orphans == 0) => {
                Err(format!("{names:?} leave a single seat alone without need"))
            }
            _ => Ok(Ok(got)),
        }
    }

    fn release(&mut self, who: Option<usize>, named: &Named) -> Result<Expect, Expect> {
        let who = self.act(who)?;
        let mut held = self.held_by(Some(who));
        held.retain(|(section, _, name)| {
            let of = self.rules.sections[*section].offering;
            match named {
                Named::All => true,
                Named::Offering(offering) => *offering == of,
                Named::Seats { offering, names } => *offering == of && names.contains(name),
            }
        });
        if !held.is_empty() {
            self.free(&held, who);
            self.note(&format!("released {} {}", self.places[who].token, self.written(&held)));
        }
        Ok(Expect::Success { status: 200, data: json!({ "released": held.len() }) })
    }

    // Booking and payment.

    fn book(
        &mut self,
        who: Option<usize>,
        plain: Option<(usize, usize)>,
        learned: &Value,
    ) -> Result<Result<Expect, Expect>, String> {
        let request = format!("{plain:?}");
        if let Some(State::Booked { reservation }) = who.map(|who| self.places[who].state) {
            let known = &self.reservations[reservation];
            let is_same = known.request == request && !matches!(known.status, "CANCELLED" | "EXPIRED");
            return Ok(if is_same { Ok(self.booked(reservation)) } else { self.already_booked(reservation) });
        }
        let who = match self.may_sell().and_then(|()| self.act(who)) {
            Err(refused) => return Ok(Err(refused)),
            Ok(who) => who,
        };
        let bought = self.bought(self.places[who].account.as_ref());
        let held = self.held_by(Some(who));
        let places = match plain {
            None if held.is_empty() => return Ok(refusal(409, "NOTHING_HELD", Value::Null)),
            Some(_) if !held.is_empty() => {
                return Ok(refusal(400, "INVALID_REQUEST", json!({ "field": "seatCount" })));
            }
            None => match self.within_limit(bought, held.len()) {
                Err(refused) => return Ok(Err(refused)),
                Ok(()) => held,
            },
            Some((section, count)) => {
                if let Err(refused) = self.within_limit(bought, count) {
                    return Ok(Err(refused));
                }
                let price = self.rules.sections[section].price;
                match self.pick(section, count, false, &learned["seats"])? {
                    Err(refused) => return Ok(Err(refused)),
                    Ok(seats) => {
                        let sold = seats.iter().map(|seat| {
                            (section, price, self.rules.sections[section].seats[*seat].name.clone())
                        });
                        sold.collect()
                    }
                }
            }
        };
        let reservation = self.sell(who, places, request);
        Ok(Ok(self.booked(reservation)))
    }

    fn sell(&mut self, who: usize, places: Vec<Held>, request: String) -> usize {
        let reservation = self.reservations.len();
        for (section, price, name) in &places {
            let now = self.now;
            let mut seats = self.rules.sections[*section].seats.iter_mut();
            let seat = seats.find(|seat| {
                let is_for_sale = match seat.state {
                    SeatState::Free => request != "None",
                    SeatState::Held { by, until, price: held_at } => {
                        request == "None" && by == who && until > now && held_at == *price
                    }
                    SeatState::Sold { .. } => false,
                };
                is_for_sale && seat.name == *name
            });
            if let Some(seat) = seat {
                seat.state = SeatState::Sold { reservation };
            }
        }
        let token = self.places[who].token;
        let due_at = self.rules.due_after_ms.map(|due_after_ms| self.now + due_after_ms);
        self.reservations.push(Reservation {
            id: ReservationId::of(self.event.clone(), token),
            token,
            account: self.places[who].account.clone(),
            status: if due_at.is_some() { "PENDING_PAYMENT" } else { "CONFIRMED" },
            version: 1,
            places,
            created_at: self.now,
            updated_at: self.now,
            due_at,
            // In the last quarter, at most a day before.
            remind_at: due_at.map(|due_at| due_at - ((due_at - self.now) / 4).min(DAY_MS)),
            payment: None,
            request,
        });
        self.places[who].state = State::Booked { reservation };
        self.give_up_account(who);
        self.note_reservation("BOOKED", reservation);
        reservation
    }

    fn note_reservation(&mut self, kind: &str, at: usize) {
        let Reservation { id, token, account, status, version, places, .. } = &self.reservations[at];
        let account = account.as_deref().unwrap_or("-");
        let fact = format!(
            "{kind} {id} {token} {account} {status} v{version} {} {} {}",
            self.written(places),
            amount(places),
            self.reservations[at].payment.as_deref().unwrap_or("-"),
        );
        self.note(&fact);
    }

    fn booked(&self, at: usize) -> Expect {
        let Expect::Success { mut data, .. } = self.reservation(at) else {
            return Expect::Text("no reservation".to_owned());
        };
        if let Some(fields) = data.as_object_mut() {
            for only_read in ["eventId", "currency", "createdAt", "updatedAt"] {
                fields.remove(only_read);
            }
        }
        data["remainingSeats"] = json!(self.remaining());
        Expect::Success { status: 201, data }
    }

    fn reservation(&self, at: usize) -> Expect {
        let reservation = &self.reservations[at];
        let mut seats: Vec<&String> =
            reservation.places.iter().map(|(_, _, name)| name).filter(|name| !name.is_empty()).collect();
        seats.sort();
        Expect::Success {
            status: 200,
            data: json!({
                "reservationId": reservation.id.to_string(),
                "eventId": self.event.as_str(),
                "status": reservation.status,
                "seats": seats,
                "seatCount": reservation.places.len(),
                "amount": amount(&reservation.places),
                "currency": "KRW",
                "createdAt": reservation.created_at,
                "updatedAt": reservation.updated_at,
                "paymentDueAt": reservation.due_at,
            }),
        }
    }

    /// The reservation, where it is the asker's.
    fn read(&self, at: Option<usize>, owner: &Owner) -> Result<usize, Expect> {
        let is_owner = |at: &usize| match owner {
            Owner::Token(token) => self.reservations[*at].token == *token,
            Owner::Account(account) => self.reservations[*at].account.as_ref() == Some(account),
            Owner::Operator => true,
        };
        match at.filter(is_owner) {
            Some(at) => Ok(at),
            None if at.is_none() && self.is_recovering() => refusal(503, "UNAVAILABLE", Value::Null),
            None => refusal(404, "RESERVATION_NOT_FOUND", Value::Null),
        }
    }

    fn cancel(&mut self, at: Option<usize>, owner: &Owner) -> Result<Expect, Expect> {
        self.may_change_reservations()?;
        let at = self.read(at, owner)?;
        match self.reservations[at].status {
            "CANCELLED" => return Ok(self.reservation(at)),
            "EXPIRED" => return refusal(409, "BOOKING_NOT_CANCELLABLE", Value::Null),
            _ => {}
        }
        let was_paid = self.reservations[at].status == "PAID";
        self.give_back(at, "CANCELLED", "BOOKING_CANCELLED");
        if was_paid {
            let Reservation { id, places, payment, .. } = &self.reservations[at];
            let payment = payment.clone().unwrap_or_default();
            let fact = format!("refund {id} {payment} {} KRW CANCELLED", amount(places));
            self.note(&fact);
        }
        Ok(self.reservation(at))
    }

    fn give_back(&mut self, at: usize, status: &'static str, kind: &str) {
        for section in &mut self.rules.sections {
            for seat in &mut section.seats {
                if seat.state == (SeatState::Sold { reservation: at }) {
                    seat.state = SeatState::Free;
                }
            }
        }
        self.move_to(at, status, kind);
    }

    fn move_to(&mut self, at: usize, status: &'static str, kind: &str) {
        let reservation = &mut self.reservations[at];
        reservation.status = status;
        reservation.version += 1;
        reservation.updated_at = self.now;
        reservation.remind_at = None;
        self.note_reservation(kind, at);
    }

    fn expire(&mut self, at: Option<usize>) -> Expect {
        let overdue = if self.is_recovering() { Vec::new() } else { self.overdue() };
        match at.filter(|at| overdue.contains(&self.reservations[*at].id.to_string())) {
            Some(at) => {
                self.give_back(at, "EXPIRED", "BOOKING_EXPIRED");
                Expect::Text("true".to_owned())
            }
            None => Expect::Text("false".to_owned()),
        }
    }

    /// What is lost and put back leaves no trace, but that what was due is given back where seats are looked for.
    fn lose(&mut self, at: usize, whole: bool) -> Expect {
        if whole && !matches!(self.reservations[at].status, "CANCELLED" | "EXPIRED") {
            self.reap();
        }
        Expect::Text("restored".to_owned())
    }

    fn pay(&mut self, at: Option<usize>, payment: u8, money: Money) -> Result<Expect, Expect> {
        self.may_change_reservations()?;
        let Some(at) = at else {
            if money != Money::Failed {
                let id = ReservationId::of(self.event.clone(), *UNKNOWN);
                self.refuse_payment(
                    &id,
                    payment,
                    money.sent(0),
                    "RESERVATION_NOT_FOUND",
                    "RESERVATION_NOT_FOUND",
                );
            }
            return refusal(503, "UNAVAILABLE", Value::Null);
        };
        let Reservation { id, places, status, due_at, payment: paid_by, .. } = &self.reservations[at];
        let (id, owed, status) = (id.clone(), amount(places), *status);
        let sent = money.sent(owed);
        let answer = |status: &str| {
            let data = json!({ "reservationId": id.to_string(), "status": status });
            Ok(Expect::Success { status: 200, data })
        };
        let name = payment_name(&id, payment);
        if money == Money::Failed || paid_by.as_ref() == Some(&name) {
            return answer(status);
        }
        let is_late = due_at.is_some_and(|due_at| due_at <= self.now);
        if status != "PENDING_PAYMENT" || is_late {
            let reason = if status == "PENDING_PAYMENT" { "LATE" } else { status };
            self.refuse_payment(&id, payment, sent, "BOOKING_NOT_PAYABLE", reason);
            return refusal(409, "BOOKING_NOT_PAYABLE", Value::Null);
        }
        if sent != (owed, "KRW") {
            self.refuse_payment(&id, payment, sent, "AMOUNT_MISMATCH", "AMOUNT_MISMATCH");
            return refusal(409, "AMOUNT_MISMATCH", Value::Null);
        }
        self.reservations[at].payment = Some(name);
        self.move_to(at, "PAID", "PAID");
        answer("PAID")
    }

    /// A fact the first time that this payment meets this answer.
    fn refuse_payment(
        &mut self,
        id: &ReservationId,
        payment: u8,
        (amount, currency): (u64, &str),
        code: &'static str,
        reason: &str,
    ) {
        let name = payment_name(id, payment);
        if self.refused.insert(name.clone(), code) != Some(code) {
            let word = if code == "BOOKING_NOT_PAYABLE" { "refund" } else { "refused" };
            self.note(&format!("{word} {id} {name} {amount} {currency} {reason}"));
        }
    }

    // What operators do.

    fn change(&mut self, change: &Change) -> Expect {
        let (what, field) = match change {
            Change::Status(status, what) => {
                self.status = status;
                (*what, Expect::Text(format!("changed {}", self.version)))
            }
            Change::Message(message) => {
                (*message).clone_into(&mut self.message);
                ("message", Expect::Text(format!("changed {}", self.version)))
            }
            Change::Maintenance(on) => {
                self.maintenance = *on;
                ("maintenance", Expect::Text(format!("changed {}", self.version)))
            }
            Change::Conflict => return Expect::Text(format!("conflict {}", self.version)),
            Change::Repeat => return Expect::Text(format!("applied {}", self.version)),
            Change::Edit(_) if self.is_recovering() => return Expect::Text("recovering".to_owned()),
            Change::Edit(edit) => {
                self.reap();
                let Some(rules) = self.rules.edited(*edit, self.now) else {
                    return Expect::Text("in use".to_owned());
                };
                self.rules = rules;
                self.version += 1;
                ("apply", Expect::Text(format!("applied {}", self.version)))
            }
        };
        self.note(&format!("changed {what} {}", self.version));
        field
    }
}

pub(crate) fn payment_name(id: &ReservationId, payment: u8) -> String {
    format!("pay-{}-{payment}", id.uuid())
}

fn count(places: &[Held]) -> u32 {
    u32::try_from(places.len()).unwrap_or(u32::MAX)
}

pub(crate) fn amount(places: &[Held]) -> u64 {
    places.iter().map(|(_, price, _)| price).sum()
}
