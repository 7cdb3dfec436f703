//! The real sale: two instances of the functions, and of the schedulers, on one Redis.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::str::FromStr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use domain::fact::{Fact, StreamId, What};
use domain::layout::{self, Edition};
use domain::outcome::{Address, Refusal};
use domain::reservation::{Reservation, ReservedPlaces};
use domain::{EventId, Millis, ReservationId, SeatName, Token};
use gateway::{Gate, KeyRing, PlaceKey};
use serde_json::{Value, json};
use store::{Applied, Bench, KeyName, Keys, Load, Recovery, Snapshot, StatusChange, StoreConfig, Tick};
use support::{Answer, App, Call, MASTER_KEY, gate};

use crate::command::{Ask, Change, Choice, Named, Owner, UNKNOWN};
use crate::loss;
use crate::model::{Model, amount, payment_name};
use crate::rules::Rules;

const SECRET: &str = "what only the front door knows";

/// Redis forgets a limit's count a second after the first call; this is far from it.
const WITHIN_A_SECOND: Duration = Duration::from_millis(700);

/// Longer than a busy machine keeps Redis waiting.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);

/// What came back.
#[derive(Debug)]
pub(crate) enum Got {
    Http(Box<Answer>),
    Text(String),
}

impl Got {
    pub(crate) fn json(&self) -> &Value {
        static NOTHING: Value = Value::Null;
        match self {
            Self::Http(answer) => &answer.json,
            Self::Text(_) => &NOTHING,
        }
    }
}

pub(crate) struct Real {
    config: StoreConfig,
    apps: [App; 2],
    places: KeyRing,
    requests: u32,
    read_until: Option<StreamId>,
    /// How the newest edition came about.
    newest: (Arc<Edition>, layout::Change),
    before: Arc<Edition>,
    redis: redis::Client,
}

impl Real {
    pub(crate) async fn start(config: &StoreConfig, rules: &Rules, now: i64) -> Self {
        let first = App::reached_by(config, |sale| {
            let event = sale["eventId"].as_str().unwrap_or_default().to_owned();
            *sale = rules.definition(&event);
        })
        .await;
        let first = first.behind(door(&first), None);
        let second = first.instance(config);
        let edition = first.store.newest_edition(&first.event).await.expect("redis answers").expect("a sale");
        let real = Self {
            config: config.clone(),
            apps: [first, second],
            places: KeyRing::new(MASTER_KEY.as_bytes(), None),
            requests: 0,
            read_until: None,
            newest: (Arc::clone(&edition), layout::Change::default()),
            before: edition,
            redis: redis::Client::open(config.url.as_str()).expect("an address"),
        };
        real.at(now);
        real
    }

    pub(crate) fn app(&self) -> &App {
        &self.apps[0]
    }

    pub(crate) fn at(&self, now: i64) {
        for app in &self.apps {
            app.at(now);
        }
    }

    /// An address that nobody has called from.
    fn address(&mut self) -> String {
        self.requests += 1;
        let [_, a, b, c] = self.requests.to_be_bytes();
        format!("10.{a}.{b}.{c}")
    }

    /// Ask one of the two instances.
    pub(crate) async fn ask(&mut self, ask: &Ask, model: &Model, instance: usize) -> Got {
        let address = self.address();
        self.ask_from(&address, ask, model, instance).await
    }

    async fn ask_from(&mut self, address: &str, ask: &Ask, model: &Model, instance: usize) -> Got {
        if let Some(call) = self.call(ask, model) {
            return Got::Http(Box::new(self.send(call.from(address), instance).await));
        }
        let app = &self.apps[instance];
        let text = match ask {
            Ask::Session { who } => match app.store.session(&app.event, token(*who, model)).await {
                Ok(Ok(until)) => format!("LIVE {until}"),
                Ok(Err(refusal)) => code_of(&refusal),
                Err(error) => error.to_string(),
            },
            Ask::Expire { reservation } => {
                match app.store.expire(&reservation_id(*reservation, model)).await {
                    Ok(expired) => expired.to_string(),
                    Err(error) => error.to_string(),
                }
            }
            Ask::Lose { reservation, whole } => {
                let id = reservation_id(Some(*reservation), model);
                loss::lose(&self.config, &app.store, &id, *whole).await
            }
            Ask::Tick(load) => match app.store.admit(&app.event, *load).await {
                Ok(Ok(tick)) => tick_text(&tick),
                other => format!("{other:?}"),
            },
            Ask::Read { reservation, .. } => {
                let known = app.store.any_reservation(&reservation_id(*reservation, model)).await;
                return from_store(known.map(|known| known.map(|known| reservation_body(&known))));
            }
            Ask::Cancel { reservation, .. } => {
                let known = app.store.cancel_any(&reservation_id(*reservation, model)).await;
                let body = known.map(|known| known.map(|(booked, _)| reservation_body(&booked.reservation)));
                return from_store(body);
            }
            Ask::Change(change) => self.change(*change, model, instance).await,
            Ask::Failover { lost } => self.failover(*lost, model).await,
            Ask::Mislay { who } => self.mislay(*who, model).await,
            Ask::Recover => match app.store.recover(&app.event).await {
                Ok(Ok(Recovery::Healthy { epoch })) => format!("epoch {epoch} is healthy"),
                Ok(Ok(Recovery::Recovering { epoch, since, now })) => {
                    format!("epoch {epoch} recovers since {since} at {now}")
                }
                other => format!("{other:?}"),
            },
            Ask::Recovered { epoch } => match app.store.recovered(&app.event, *epoch).await {
                Ok(Ok(ended)) => ended.to_string(),
                other => format!("{other:?}"),
            },
            _ => String::new(),
        };
        Got::Text(text)
    }

    async fn send(&self, call: Call, instance: usize) -> Answer {
        let call = call.header("x-origin-secret", SECRET);
        // Each answer in eight is held against openapi.yaml too.
        if self.requests.is_multiple_of(8) {
            self.apps[instance].send(call).await
        } else {
            self.apps[instance].send_event(call.event()).await
        }
    }

    /// The request, where it is one.
    fn call(&self, ask: &Ask, model: &Model) -> Option<Call> {
        let token = |who: &Option<usize>| token(*who, model).to_string();
        let section = |at: usize| {
            let section = &model.rules.sections[at];
            json!({ "offeringId": section.offering, "sectionId": section.id })
        };
        Some(match ask {
            Ask::Join { account } => signed_in(Call::new("POST", "/api/queue/join"), account.as_deref()),
            Ask::Rejoin { who, account } => {
                let key = self.place_key(*who, model);
                let call =
                    Call::new("POST", "/api/queue/rejoin").json(&json!({ "token": token(who), "key": key }));
                signed_in(call, account.as_deref())
            }
            Ask::Leave { who } => Call::new("DELETE", "/api/queue/leave").query("token", token(who)),
            Ask::Poll { who, keyed } => {
                let call = Call::new("GET", "/api/status/poll").query("token", token(who));
                if *keyed { call.query("key", self.key(*who, model)) } else { call }
            }
            Ask::Progress => Call::new("GET", "/api/status/progress"),
            Ask::Search { who } => Call::new("GET", "/api/offerings").query("token", token(who)),
            Ask::Map { who, offering } => {
                Call::new("GET", "/api/seats").query("token", token(who)).query("offeringId", offering)
            }
            Ask::Hold { who, choice, key } => {
                let mut body = match choice {
                    Choice::Seats { offering, names } => json!({ "offeringId": offering, "seats": names }),
                    Choice::Counted { section: at, count, best } => {
                        let mut body = section(*at);
                        body[if *best { "best" } else { "count" }] = json!(count);
                        body
                    }
                };
                body["token"] = json!(token(who));
                named(Call::new("POST", "/api/seat/select").json(&body), *key)
            }
            Ask::Release { who, named: places, key } => {
                let body = match places {
                    Named::All => json!({ "token": token(who) }),
                    Named::Offering(offering) => json!({ "token": token(who), "offeringId": offering }),
                    Named::Seats { offering, names } => {
                        json!({ "token": token(who), "offeringId": offering, "seats": names })
                    }
                };
                named(Call::new("POST", "/api/seat/cancel").json(&body), *key)
            }
            Ask::Book { who, plain, key } => {
                let mut body = plain.map_or_else(|| json!({}), |(at, _)| section(at));
                if let Some((_, count)) = plain {
                    body["seatCount"] = json!(count);
                }
                body["token"] = json!(token(who));
                named(Call::new("POST", "/api/booking").json(&body), *key)
            }
            Ask::Read { reservation, owner } => owned("GET", *reservation, owner, model)?,
            Ask::Cancel { reservation, owner } => owned("DELETE", *reservation, owner, model)?,
            Ask::Pay { reservation, payment, money } => {
                let owed = reservation.map_or(0, |at| amount(&model.reservations[at].places));
                let id = reservation_id(*reservation, model);
                let (amount, currency) = money.sent(owed);
                App::webhook(&json!({
                    "paymentId": payment_name(&id, *payment),
                    "reservationId": id.to_string(),
                    "status": if *money == crate::command::Money::Failed { "FAILED" } else { "PAID" },
                    "amount": amount,
                    "currency": currency,
                }))
            }
            _ => return None,
        })
    }

    /// The key that a place was given when it last came to the end of the line.
    fn place_key(&self, who: Option<usize>, model: &Model) -> Option<String> {
        let who = who?;
        let key = model.places[who].key;
        let place = PlaceKey {
            epoch: key.epoch,
            score: key.score,
            rank: None,
            ticket_number: Some(key.number),
            ticket_count: None,
            net: 0,
            read_at: Millis(model.now),
            earliest_at: Millis::now(),
            interval_ms: 1_000,
        };
        Some(self.places.sign(&self.app().event, model.places[who].token, &place))
    }

    /// What a failover leaves: another replication id, and a place that was written too late to be kept.
    async fn failover(&self, lost: Option<usize>, model: &Model) -> String {
        let mut connection =
            self.redis.get_multiplexed_async_connection().await.expect("Redis takes a connection");
        redis::cmd("DEBUG").arg("CHANGE-REPL-ID").exec_async(&mut connection).await.expect("another id");
        match lost {
            Some(who) => self.mislay(who, model).await,
            None => String::new(),
        }
    }

    async fn mislay(&self, who: usize, model: &Model) -> String {
        let mut connection =
            self.redis.get_multiplexed_async_connection().await.expect("Redis takes a connection");
        let place = &model.places[who];
        let token = place.token.to_string();
        let name = |name| Keys::of(&self.app().event).name(name);
        let mut lose = redis::pipe();
        lose.zrem(name(KeyName::Waiting), &token);
        if place.account.is_some() {
            lose.hdel(name(KeyName::Accounts), place.token.halves().0);
        }
        lose.exec_async(&mut connection).await.expect("lost");
        String::new()
    }

    /// Account → token, as `accounts` has them.
    pub(crate) async fn places_of_accounts(&self) -> BTreeMap<String, String> {
        let mut connection =
            self.redis.get_multiplexed_async_connection().await.expect("Redis takes a connection");
        let key = Keys::of(&self.app().event).name(KeyName::Accounts);
        let entries: BTreeMap<String, String> =
            redis::cmd("HGETALL").arg(key).query_async(&mut connection).await.expect("Redis answers");
        let told = entries.into_iter().map(|(first, entry)| {
            let (second, account) = entry.split_at(first.len());
            (account.to_owned(), first + second)
        });
        told.collect()
    }

    /// A key whose window is open: such a poll is not counted against its address. It says too little to be answered
    /// without the place itself.
    fn key(&self, who: Option<usize>, model: &Model) -> String {
        let place = PlaceKey {
            epoch: 1,
            score: 0,
            rank: None,
            ticket_number: None,
            ticket_count: None,
            net: 0,
            read_at: Millis(model.now),
            earliest_at: Millis::now().plus(-1),
            interval_ms: 60_000,
        };
        self.places.sign(&self.app().event, token(who, model), &place)
    }

    async fn change(&mut self, change: Change, model: &Model, instance: usize) -> String {
        let app = &self.apps[instance];
        let status = match change {
            Change::Status("OPEN", _) => StatusChange::Open,
            Change::Status("PAUSED", _) => StatusChange::Pause,
            Change::Status(..) => StatusChange::Close,
            Change::Message(message) => StatusChange::Message(message.to_owned()),
            Change::Maintenance(on) => StatusChange::Maintenance(on),
            Change::Edit(edit) => return self.edit(edit, model, instance).await,
            Change::Conflict => {
                let Ok((edition, change)) = self.before.next((*self.newest.0.sale).clone()) else {
                    return "the edition before has no next".to_owned();
                };
                if edition.version == self.newest.0.version + 1 {
                    return format!("conflict {}", self.newest.0.version);
                }
                let different = Edition { sale: Arc::new(renamed(&edition)), ..edition };
                return self.apply(&different, &change, instance).await;
            }
            Change::Repeat => return self.apply(&self.newest.0, &self.newest.1, instance).await,
        };
        match app.store.change(&app.event, "tests", &status).await {
            Ok(Ok(version)) => format!("changed {version}"),
            other => format!("{other:?}"),
        }
    }

    async fn apply(&self, edition: &Edition, change: &layout::Change, instance: usize) -> String {
        match self.apps[instance].store.apply(edition, change, "tests", "apply").await {
            Ok(Applied::Applied { version }) => format!("applied {version}"),
            Ok(Applied::Conflict { version }) => format!("conflict {version}"),
            Ok(Applied::InUse { .. }) => "in use".to_owned(),
            Ok(Applied::Recovering) => "recovering".to_owned(),
            Err(error) => error.to_string(),
        }
    }

    async fn edit(&mut self, edit: crate::rules::Edit, model: &Model, instance: usize) -> String {
        // Also where the change will be refused: what is sent is the file.
        let rules = model.rules.file_edited(edit, model.now);
        let definition = rules.definition(self.app().event.as_str());
        let sale = match domain::sale::check(&definition.to_string()) {
            Ok(sale) => sale,
            Err(problems) => return format!("{problems:?}"),
        };
        let Ok((edition, change)) = self.newest.0.next(sale) else { return "no next edition".to_owned() };
        let edition = Arc::new(edition);
        let applied = self.apply(&edition, &change, instance).await;
        if applied.starts_with("applied") {
            self.before = std::mem::replace(&mut self.newest, (edition, change)).0;
        }
        applied
    }

    /// Calls from one address until it is refused; `Err` where it is not.
    pub(crate) async fn burst(
        &mut self,
        ask: &Ask,
        model: &mut Model,
        allowed: u32,
        mut compare: impl FnMut(&mut Model, &Got) -> Result<(), String>,
    ) -> Result<(), String> {
        let address = self.address();
        let started = Instant::now();
        for _ in 0..allowed {
            let got = self.ask_from(&address, ask, model, 0).await;
            if matches!(&got, Got::Http(answer) if answer.status == 429) {
                return Err(format!("refused before its time: {ask:?}"));
            }
            compare(model, &got)?;
        }
        let got = self.ask_from(&address, ask, model, 0).await;
        match &got {
            Got::Http(answer) if answer.status == 429 && answer.code() == "RATE_LIMIT" => {
                let wait = answer.header("retry-after").is_some();
                if wait { Ok(()) } else { Err("no Retry-After".to_owned()) }
            }
            // The machine was too slow for its second.
            _ if started.elapsed() >= WITHIN_A_SECOND => compare(model, &got),
            got => Err(format!("a limit of {allowed} let {ask:?} through: {got:?}")),
        }
    }

    /// Every request of a sale that there is none of.
    pub(crate) async fn no_such_sale(&mut self) -> Result<(), String> {
        let token = UNKNOWN.to_string();
        let with = |method: &str, path: &str| Call::new(method, path).query("token", &token);
        let body = json!({ "token": token, "eventId": "no-such-sale" });
        let mut hold = body.clone();
        hold["count"] = json!(1);
        let calls = [
            Call::new("POST", "/api/queue/join").json(&body),
            Call::new("POST", "/api/queue/rejoin").json(&body),
            with("DELETE", "/api/queue/leave").query("eventId", "no-such-sale"),
            with("GET", "/api/status/poll").query("eventId", "no-such-sale"),
            Call::new("GET", "/api/status/progress").query("eventId", "no-such-sale"),
            with("GET", "/api/offerings").query("eventId", "no-such-sale"),
            with("GET", "/api/seats").query("eventId", "no-such-sale"),
            Call::new("POST", "/api/seat/select").json(&hold),
            Call::new("POST", "/api/seat/cancel").json(&body),
            Call::new("POST", "/api/booking").json(&body),
        ];
        for call in calls {
            let address = self.address();
            let said = format!("{call:?}");
            let answer = self.send(call.from(&address), 1).await;
            if (answer.status, answer.json["error"]["code"].as_str()) != (404, Some("EVENT_NOT_FOUND")) {
                return Err(format!("{said}: {}", answer.text));
            }
        }
        self.nothing_in_the_store().await
    }

    /// The same by what is no request, and by those that answer otherwise.
    async fn nothing_in_the_store(&mut self) -> Result<(), String> {
        let nowhere = EventId::from_str("no-such-sale").map_err(|error| error.reason.to_owned())?;
        let store = &self.apps[1].store;
        let poll = domain::command::Poll {
            event: nowhere.clone(),
            token: *UNKNOWN,
            key: None,
            address: Address::of(IpAddr::V4(Ipv4Addr::LOCALHOST)),
        };
        let outcomes = [
            store.admit(&nowhere, Load::default()).await.map(|known| known.map(drop)),
            store.session(&nowhere, *UNKNOWN).await.map(|known| known.map(drop)),
            store.change(&nowhere, "tests", &StatusChange::Close).await.map(|known| known.map(drop)),
            store.snapshot(&nowhere).await.map(|known| known.map(drop)),
            store.poll(&poll, false).await.map(|known| known.map(drop)),
            store.claim(&nowhere, *UNKNOWN).await.map(|known| known.map(drop)),
            store.recover(&nowhere).await.map(|known| known.map(drop)),
            store.recovered(&nowhere, 1).await.map(|known| known.map(drop)),
        ];
        for outcome in outcomes {
            if !matches!(outcome, Ok(Err(Refusal::EventNotFound))) {
                return Err(format!("no such sale: {outcome:?}"));
            }
        }
        let payment = json!({
            "paymentId": "pay-nothing",
            "reservationId": ReservationId::of(nowhere, *UNKNOWN).to_string(),
            "status": "PAID",
            "amount": 1,
            "currency": "KRW",
        });
        let answer = self.send(App::webhook(&payment), 1).await;
        if answer.code() == "UNAVAILABLE" { Ok(()) } else { Err(answer.text) }
    }

    /// The facts since the last time, in the model's words.
    pub(crate) async fn facts(&mut self) -> Result<Vec<String>, String> {
        let mut facts = Vec::new();
        loop {
            let app = &self.apps[0];
            let page = app.store.journal(&app.event, self.read_until, u64::MAX).await;
            let page = page.map_err(|error| error.to_string())?;
            if !page.unreadable.is_empty() {
                return Err(format!("{:?}", page.unreadable));
            }
            if let Some(last) = page.facts.last() {
                self.read_until = Some(StreamId { ms: last.id.ms, sequence: last.id.sequence + 1 });
            }
            facts.extend(page.facts.iter().map(fact_text));
            if page.next.is_none() {
                return Ok(facts);
            }
        }
    }

    pub(crate) async fn snapshot(&self) -> Result<Snapshot, String> {
        let app = &self.apps[0];
        match app.store.snapshot(&app.event).await {
            Ok(Ok(snapshot)) => Ok(snapshot),
            other => Err(format!("{other:?}")),
        }
    }
}

fn door(app: &App) -> Gate {
    Gate {
        origin_secret: Some(SECRET.to_owned()),
        trusted_account_header: Some(gateway::HeaderName::from_static("x-account")),
        ..gate(&app.event)
    }
}

fn renamed(edition: &Edition) -> domain::sale::Sale {
    domain::sale::Sale { title: "Another operator's".to_owned(), ..(*edition.sale).clone() }
}

fn signed_in(call: Call, account: Option<&str>) -> Call {
    match account {
        Some(account) => call.header("x-account", account),
        None => call,
    }
}

fn named(call: Call, key: Option<u8>) -> Call {
    match key {
        Some(key) => call.header("idempotency-key", &format!("key-{key}")),
        None => call,
    }
}

fn token(who: Option<usize>, model: &Model) -> Token {
    who.map_or(*UNKNOWN, |who| model.places[who].token)
}

fn reservation_id(at: Option<usize>, model: &Model) -> ReservationId {
    match at {
        Some(at) => model.reservations[at].id.clone(),
        None => ReservationId::of(model.event.clone(), *UNKNOWN),
    }
}

/// None for the operator, who comes another way.
fn owned(method: &str, at: Option<usize>, owner: &Owner, model: &Model) -> Option<Call> {
    let call = Call::new(method, &format!("/api/booking/{}", reservation_id(at, model)));
    match owner {
        Owner::Token(token) => Some(call.query("token", token)),
        Owner::Account(account) => Some(call.header("x-account", account)),
        Owner::Operator => None,
    }
}

fn code_of(refusal: &Refusal) -> String {
    let code = match refusal {
        Refusal::EventClosed => "EVENT_CLOSED",
        Refusal::AlreadyBooked { .. } => "ALREADY_BOOKED",
        Refusal::NotAdmitted => "NOT_ADMITTED",
        Refusal::AdmissionExpired => "ADMISSION_EXPIRED",
        other => return format!("{other:?}"),
    };
    code.to_owned()
}

/// What an operator gets, as its owner would have got it.
fn from_store(known: Result<Result<Value, Refusal>, store::StoreError>) -> Got {
    let (status, json) = match known {
        Ok(Ok(data)) => (200, json!({ "success": true, "data": data })),
        Ok(Err(Refusal::ReservationNotFound)) => {
            (404, json!({ "error": { "code": "RESERVATION_NOT_FOUND" } }))
        }
        Ok(Err(Refusal::Recovering)) => (503, json!({ "error": { "code": "UNAVAILABLE" } })),
        Ok(Err(Refusal::BookingNotCancellable)) => {
            (409, json!({ "error": { "code": "BOOKING_NOT_CANCELLABLE" } }))
        }
        other => (500, json!({ "error": { "code": format!("{other:?}") } })),
    };
    Got::Http(Box::new(Answer { status, headers: Vec::new(), text: json.to_string(), json }))
}

fn reservation_body(reservation: &Reservation) -> Value {
    let seats: Vec<&str> =
        reservation.places.iter().flat_map(|places| &places.seats).map(SeatName::as_str).collect();
    let mut body = json!(reservation);
    body["eventId"] = json!(reservation.reservation_id.event());
    body["seats"] = json!(seats);
    body
}

fn tick_text(tick: &Tick) -> String {
    let mut overdue: Vec<String> = tick.overdue.iter().map(ToString::to_string).collect();
    overdue.sort();
    format!(
        "{} admitted {} lapsed {} expired {} reaped {} more {} waiting {} active {} remaining {} epoch {} \
         recovering {} pace factor {} joins refused {} overdue {overdue:?}",
        tick.status.as_str(),
        tick.admitted,
        tick.lapsed,
        tick.expired,
        tick.reaped,
        tick.more,
        tick.waiting,
        tick.active,
        tick.remaining,
        tick.epoch,
        tick.recovering,
        tick.pace_factor,
        tick.joins_refused,
    )
}

fn places_text(places: &[ReservedPlaces]) -> String {
    let mut items: Vec<String> = places
        .iter()
        .map(|places| {
            let mut seats: Vec<&str> = places.seats.iter().map(SeatName::as_str).collect();
            seats.sort_unstable();
            let ReservedPlaces { offering_id, section_id, price, count, .. } = places;
            format!("{offering_id}/{section_id}@{price}*{count}={}", seats.join(","))
        })
        .collect();
    items.sort();
    items.join(";")
}

fn tokens_text(tokens: &[Token]) -> String {
    let mut tokens: Vec<String> = tokens.iter().map(ToString::to_string).collect();
    tokens.sort();
    tokens.join(" ")
}

fn reservation_text(kind: &str, reservation: &Reservation) -> String {
    format!(
        "{kind} {} {} {} {} v{} {} {} {}",
        reservation.reservation_id,
        reservation.token,
        reservation.account.as_ref().map_or("-", |account| account.as_str()),
        reservation.status.as_str(),
        reservation.version,
        places_text(&reservation.places),
        reservation.amount,
        reservation.payment_id.as_ref().map_or("-", |payment| payment.as_str()),
    )
}

fn fact_text(fact: &Fact) -> String {
    let said = match &fact.what {
        What::UserEnterQueue { token, ticket_number, score, account } => format!(
            "enter {token} {} {score} {}",
            ticket_number.map_or("-".to_owned(), |number| number.to_string()),
            account.as_ref().map_or("-", |account| account.as_str()),
        ),
        What::UserLeftQueue { token } => format!("left {token}"),
        What::UserAdmitted { places } => {
            let places: Vec<String> =
                places.iter().map(|place| format!("{}:{}", place.token, place.score)).collect();
            format!("admitted {}", places.join(" "))
        }
        What::TokenIssued { token, expires_at } => format!("issued {token} {expires_at}"),
        What::AdmissionLapsed { tokens } => format!("lapsed {}", tokens_text(tokens)),
        What::AdmissionExpired { tokens } => format!("expired {}", tokens_text(tokens)),
        What::SeatsHeld { token, places, expires_at } => {
            format!("held {token} {} {expires_at}", places_text(places))
        }
        What::SeatsReleased { token, places } => {
            let token = token.map_or("-".to_owned(), |token| token.to_string());
            format!("released {token} {}", places_text(places))
        }
        What::Booked { reservation }
        | What::BookingCancelled { reservation }
        | What::BookingExpired { reservation }
        | What::Paid { reservation } => reservation_text(fact.what.kind(), reservation),
        What::RefundDue { payment, reason } | What::PaymentRefused { payment, reason } => {
            let word = if matches!(fact.what, What::RefundDue { .. }) { "refund" } else { "refused" };
            format!(
                "{word} {} {} {} {} {reason}",
                payment.reservation_id,
                payment.payment_id.as_str(),
                payment.amount,
                payment.currency
            )
        }
        What::PaymentDueSoon { reservations } => {
            let mut soon: Vec<String> = reservations
                .iter()
                .map(|known| format!("{}:{}", known.reservation_id, known.payment_due_at))
                .collect();
            soon.sort();
            format!("soon {}", soon.join(" "))
        }
        What::EventChanged { change, version, .. } => format!("changed {change} {version}"),
    };
    format!("{} {said}", fact.at)
}

/// A store's address with a bench, and with time for an answer: what is repeated over a slow connection has another
/// answer, and tests of their own.
pub(crate) fn on_a_bench(config: &StoreConfig, bench: &Arc<Bench>) -> StoreConfig {
    StoreConfig { bench: Some(Arc::clone(bench)), answer_timeout: ANSWER_TIMEOUT, ..config.clone() }
}
