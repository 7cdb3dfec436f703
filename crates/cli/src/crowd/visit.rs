//! One person's visit, as the page would make it: into the line, along it, and in.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep, sleep_until};

use super::answers::{Anything, Joined, Polled, SaleStatus, Status};
use super::cast::{Manner, Person};
use super::client::{Asked, Client, Failure, Proof};
use super::edge::Edge;
use super::tab::Tab;
use super::tally::{Call, End, Tally};
use super::witness::Witness;

/// Farther back than this the shared progress tells the rank.
const PROGRESS_BEYOND: u64 = 10_000;
/// So often the place itself is asked for, at least, while progress tells the rank.
const REREAD: Duration = Duration::from_mins(10);
/// Everybody asks at the opening: so many a second at most, within so long.
const OPENING_ASKS_PER_SECOND: f64 = 5_000.0;
const OPENING_SPREAD_SECONDS: f64 = 8.0;
/// An action is repeated for so long where the network or the server is at fault.
const ACTION_PATIENCE: Duration = Duration::from_secs(20);
/// How often a program asks.
const BOT_INTERVAL: Duration = Duration::from_millis(200);
/// Whoever is away when called comes back after so many times the time they think.
const AWAY_THINKS: u32 = 10;

/// What all people share.
pub(crate) struct World {
    pub(crate) client: Arc<Client>,
    pub(crate) edge: Edge,
    pub(crate) tally: Arc<Tally>,
    pub(crate) witness: Witness,
    /// The sale, as the first answer named it.
    pub(crate) event: OnceLock<String>,
}

/// Somebody who has a place, and what their page knows of it.
pub(crate) struct Visit {
    pub(crate) world: Arc<World>,
    pub(crate) person: Person,
    /// When they came.
    came: Instant,
    pub(crate) token: String,
    pub(crate) access_token: Option<String>,
    key: Option<String>,
    ticket: Option<u64>,
    score: Option<u64>,
    rank: Option<u64>,
    /// Whether the sale has not opened.
    is_upcoming: bool,
    net: u64,
    read_at: Instant,
    /// When to ask for the place again; not before the other, which the last answer told.
    due: Instant,
    not_before: Instant,
    /// Whether they stood at the front once and were away.
    has_returned: bool,
    /// Polls until the page is loaded anew.
    reloads_in: Option<u32>,
}

/// A whole visit. It ends by itself: patience and sessions do.
pub(crate) async fn visit(world: Arc<World>, person: Person, came: Instant) -> End {
    let end = async {
        let mut visit = Visit::join(world, person, came).await?;
        let _tab = visit.person.has_second_tab.then(|| Tab::open(&visit.world, &visit.token, visit.ticket));
        visit.follow().await?;
        visit.world.tally.admitted(came.elapsed(), visit.person.is_bot);
        visit.shop().await
    };
    end.await.unwrap_or_else(|end| end)
}

fn jittered(span: Duration, random: &mut fastrand::Rng) -> Duration {
    span.mul_f64(0.8 + 0.4 * random.f64())
}

/// How a visit ends that an answer ended.
pub(crate) fn end_of(failure: &Failure) -> End {
    match failure.code.as_str() {
        "EVENT_CLOSED" => End::Closed,
        "NOT_ADMITTED" | "ADMISSION_EXPIRED" | "HOLD_EXPIRED" => End::Expired,
        _ => End::Refused,
    }
}

impl Visit {
    async fn join(world: Arc<World>, mut person: Person, came: Instant) -> Result<Self, End> {
        let (mut due, mut failures) = (came, 0);
        let joined: Joined = loop {
            let asked = Asked::new(Call::Join, due, "/api/queue/join".to_owned()).with(json!({}));
            let wait = match world.client.ask(asked).await {
                Ok(joined) => break joined,
                Err(failure) if failure.is_passing() => {
                    failures += 1;
                    failure.wait(failures, &mut person.random)
                }
                Err(Failure { code, opens_at: Some(opens_at), .. }) if code == "NOT_OPEN" => {
                    until_opening(opens_at, &mut person.random)
                }
                Err(failure) => return Err(end_of(&failure)),
            };
            due = Instant::now() + wait;
            if due > came + person.patience {
                return Err(End::OutOfPatience);
            }
            sleep_until(due).await;
        };
        let _ = world.event.set(joined.event_id.clone());
        let now = Instant::now();
        let reloads_in = person.reloads.then(|| person.random.u32(1..4));
        let mut visit = Self {
            world,
            person,
            came,
            token: joined.token.clone(),
            access_token: None,
            key: None,
            ticket: None,
            score: None,
            rank: None,
            is_upcoming: false,
            net: 0,
            read_at: now,
            due: now,
            not_before: now,
            has_returned: false,
            reloads_in,
        };
        visit.placed(&joined);
        Ok(visit)
    }

    fn placed(&mut self, joined: &Joined) {
        self.token.clone_from(&joined.token);
        self.key = Some(joined.key.clone());
        self.ticket = joined.ticket_number.or(self.ticket);
        self.rank = joined.rank;
        self.is_upcoming = joined.rank.is_none() && joined.status != Some(Status::Active);
        if joined.access_token.is_some() {
            self.access_token.clone_from(&joined.access_token);
        }
        self.wait_for(joined.next_poll_ms);
        // Asked first as told, wherever it stands: only a poll tells the line's net.
        self.due = self.not_before;
    }

    /// When to ask again, as told.
    fn wait_for(&mut self, next_poll_ms: u64) {
        let told = if self.person.is_bot { BOT_INTERVAL } else { Duration::from_millis(next_poll_ms) };
        self.not_before = Instant::now() + told;
        self.due = if self.is_far() {
            Instant::now() + jittered(REREAD, &mut self.person.random)
        } else {
            self.not_before
        };
    }

    fn is_far(&self) -> bool {
        !self.person.is_bot && (self.is_upcoming || self.rank.is_some_and(|rank| rank > PROGRESS_BEYOND))
    }

    /// Along the line, until they are in.
    async fn follow(&mut self) -> Result<(), End> {
        match self.person.manner {
            Manner::NoShow { comes_back: false } => return Err(End::NoShow),
            Manner::NoShow { comes_back: true } => {
                sleep(self.person.think * AWAY_THINKS).await;
                if self.reload().await? {
                    return Ok(());
                }
            }
            Manner::Buys | Manner::LeavesLine | Manner::LeavesHeld => {}
        }
        let (leaves_at, end) = if self.person.manner == Manner::LeavesLine {
            (self.came + self.person.think() * 4, End::Left)
        } else {
            (self.came + self.person.patience, End::OutOfPatience)
        };
        loop {
            if Instant::now() >= leaves_at {
                return Err(self.leave(end).await);
            }
            if Instant::now() < self.due {
                let next = if self.is_far() { self.read_progress().await } else { self.due };
                sleep_until(next.min(self.due).min(leaves_at)).await;
            } else if self.ask().await? {
                return Ok(());
            }
        }
    }

    /// One poll, or what the page does instead. Whether they are in.
    async fn ask(&mut self) -> Result<bool, End> {
        if self.reloads_in == Some(0) {
            self.reloads_in = None;
            return self.reload().await;
        }
        self.reloads_in = self.reloads_in.map(|polls| polls - 1);
        let sent = Instant::now();
        let polled = self.poll().await?;
        match polled.status {
            Status::Waiting => self.waits(&polled, sent),
            Status::Active => {
                self.is_in(&polled);
                return Ok(true);
            }
            Status::Booked => return Err(End::Booked),
            Status::Expired if polled.reentry => return self.come_back().await,
            Status::Expired => return Err(self.over().await),
            // A server that lost it may know it by its key.
            Status::NotFound => return self.reload().await,
        }
        Ok(false)
    }

    /// The answer to a poll, however long it takes; due from when it was to be made.
    pub(crate) async fn poll(&mut self) -> Result<Polled, End> {
        let mut failures = 0;
        loop {
            let key = self.key.as_ref().map_or_else(String::new, |key| format!("&key={key}"));
            let target = format!("/api/status/poll?token={}{key}", self.token);
            let asked = Asked::new(Call::Poll, self.due.min(Instant::now()), target);
            match self.world.client.ask::<Polled>(asked).await {
                Ok(polled) => {
                    self.key.clone_from(&polled.key);
                    return Ok(polled);
                }
                Err(failure) if failure.is_passing() => {
                    failures += 1;
                    let told = failure.wait(failures, &mut self.person.random);
                    self.due = Instant::now() + if self.person.is_bot { BOT_INTERVAL } else { told };
                }
                Err(failure) => return Err(end_of(&failure)),
            }
            if self.due > self.came + self.person.patience * 2 {
                return Err(End::OutOfPatience);
            }
            sleep_until(self.due).await;
        }
    }

    fn waits(&mut self, polled: &Polled, sent: Instant) {
        let witness = &self.world.witness;
        let interval = Duration::from_millis(polled.next_poll_ms).mul_f64(1.25);
        if let (Some(score), false) = (polled.score, self.has_returned) {
            witness.waits(score, sent, interval);
        }
        if let (Some(before), Some(now), false) = (self.rank, polled.rank, self.has_returned) {
            witness.rank(before, now);
        }
        self.score = polled.score.or(self.score);
        (self.rank, self.net, self.read_at) = (polled.rank, polled.net, Instant::now());
        self.is_upcoming = polled.opens_at.is_some();
        self.wait_for(polled.next_poll_ms);
    }

    fn is_in(&mut self, polled: &Polled) {
        if let (Some(score), false) = (self.score, self.has_returned) {
            self.world.witness.is_in(score, Instant::now());
        }
        if polled.access_token.is_some() {
            self.access_token.clone_from(&polled.access_token);
        }
        (self.rank, self.is_upcoming) = (None, false);
        self.wait_for(polled.next_poll_ms);
    }

    /// F5: the place comes back by its token and key. Whether they are in.
    async fn reload(&mut self) -> Result<bool, End> {
        let before = (self.token.clone(), self.ticket);
        let joined = self.rejoin().await?;
        self.world.witness.same_place((&before.0, before.1), (&joined.token, joined.ticket_number));
        Ok(joined.status == Some(Status::Active))
    }

    /// Called while away: the old place is there once more.
    async fn come_back(&mut self) -> Result<bool, End> {
        self.has_returned = true;
        self.world.witness.returned();
        let joined = self.rejoin().await?;
        Ok(joined.status == Some(Status::Active))
    }

    async fn rejoin(&mut self) -> Result<Joined, End> {
        let body = json!({ "token": self.token, "key": self.key });
        let joined: Joined = self
            .act(Call::Rejoin, "/api/queue/rejoin".to_owned(), Some(body))
            .await
            .map_err(|failure| end_of(&failure))?;
        self.placed(&joined);
        Ok(joined)
    }

    /// The session or the sale is over.
    pub(crate) async fn over(&mut self) -> End {
        let progress = self.world.edge.progress().await;
        let is_closed = progress.is_ok_and(|progress| progress.status == SaleStatus::Closed);
        if is_closed { End::Closed } else { End::Expired }
    }

    /// Gives the place up; where that cannot be said, the page is closed all the same.
    pub(crate) async fn leave(&mut self, end: End) -> End {
        let target = format!("/api/queue/leave?token={}", self.token);
        let left: Result<Anything, _> = self.act(Call::Leave, target, None).await;
        match left {
            Err(failure) if !failure.is_passing() => end_of(&failure),
            _ => end,
        }
    }

    /// The line's pulse, from the cache; when to read it again. Asks for the place itself once the turn is near.
    async fn read_progress(&mut self) -> Instant {
        let now = Instant::now();
        let Ok(progress) = self.world.edge.progress().await else {
            return now + jittered(Duration::from_secs(5), &mut self.person.random);
        };
        let random = &mut self.person.random;
        if self.is_upcoming {
            let until_ms = progress.opens_at - progress.updated_at;
            if until_ms <= 0 || progress.status == SaleStatus::Open {
                let spread =
                    (progress.total_waiting as f64 / OPENING_ASKS_PER_SECOND).min(OPENING_SPREAD_SECONDS);
                let asks_at = now + Duration::from_secs_f64(spread * random.f64());
                self.due = self.due.min(asks_at.max(self.not_before));
            }
            let interval_ms = domain::line::poll_interval_ms(None, until_ms.max(1));
            let interval = jittered(Duration::from_millis(interval_ms.into()), random);
            let opening = u64::try_from(until_ms).map_or(interval, |ms| Duration::from_millis(ms + 300));
            return now + interval.min(opening);
        }
        let rank = self.rank.unwrap_or(1);
        let place = rank.saturating_sub(progress.net.saturating_sub(self.net)).max(1);
        let has_come = self.score.is_some_and(|score| progress.head_score >= score);
        if has_come || place <= rank / 2 || self.read_at.elapsed() > REREAD.mul_f64(1.5) {
            let asks_at = now + Duration::from_secs_f64(random.f64());
            self.due = self.due.min(asks_at.max(self.not_before));
        }
        now + jittered(Duration::from_secs(if place > 100_000 { 10 } else { 5 }), random)
    }

    /// A change, repeated under one name until its answer is known.
    pub(crate) async fn act<T: DeserializeOwned>(
        &mut self,
        call: Call,
        target: String,
        body: Option<Value>,
    ) -> Result<T, Failure> {
        let name = self.person.idempotency_key();
        let until = Instant::now() + ACTION_PATIENCE;
        let (mut due, mut failures) = (Instant::now(), 0);
        loop {
            let mut asked = Asked::new(call, due, target.clone());
            asked.body.clone_from(&body);
            asked.idempotency_key = matches!(call, Call::Select | Call::Book).then_some(&name);
            let is_proven = !matches!(call, Call::Leave | Call::Rejoin);
            if let (Some(token), true) = (&self.access_token, is_proven) {
                asked.proof = Proof::Bearer(token);
            }
            let failure = match self.world.client.ask(asked).await {
                Ok(answer) => return Ok(answer),
                Err(failure) => failure,
            };
            failures += 1;
            if failure.code == "UNAUTHORIZED" && self.access_token.take().is_some() {
                // The token itself proves as well.
                continue;
            }
            due = Instant::now() + failure.wait(failures, &mut self.person.random);
            if !failure.is_passing() || due > until {
                return Err(failure);
            }
            sleep_until(due).await;
        }
    }

    /// Thinks for a while, asking meanwhile as the page does.
    pub(crate) async fn think(&mut self) -> Result<(), End> {
        let until = Instant::now() + self.person.think();
        while self.due < until {
            sleep_until(self.due).await;
            let polled = self.poll().await?;
            match polled.status {
                Status::Active => self.wait_for(polled.next_poll_ms),
                Status::Booked => return Err(End::Booked),
                _ => return Err(self.over().await),
            }
        }
        sleep_until(until).await;
        Ok(())
    }
}

/// Asked again now and then: an opening may be moved.
fn until_opening(opens_at: i64, random: &mut fastrand::Rng) -> Duration {
    let until_ms = u64::try_from(opens_at - domain::Millis::now().0).unwrap_or(0);
    if until_ms > 60_000 {
        jittered(Duration::from_secs(30), random)
    } else {
        Duration::from_millis(until_ms.max(500)) + Duration::from_secs_f64(2.0 * random.f64())
    }
}
