//! A sale and the handlers in front of it: what tests of the API talk to.
//!
//! Each [`App`] has an event of its own in the shared Redis and drives that event's clock. Requests are the events
//! that API Gateway sends; every answer is held against openapi.yaml.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use book::BookState;
use bootstrap::State;
use bootstrap::config::{Access, MasterKeys};
use domain::layout::Edition;
use domain::{EventId, Millis, Token};
use futures::FutureExt;
use futures::future::BoxFuture;
use gateway::{Body, Gate, KeyRing, PaymentKeys, PlaceKey, Request, Response, routes};
use hmac::{Hmac, KeyInit, Mac};
use keys::KeysState;
use outbox::{Message, Outbox, Queue};
use pay::PayState;
use redis::aio::MultiplexedConnection;
use serde_json::{Value, json};
use sha2::Sha256;
use store::{Applied, Load, Store, StoreConfig, Tick};

use crate::contract;
use crate::{Redis, Topology};

/// When every test sale opens, unless its test says otherwise: in 2096. What ends with a sale, access tokens and keys of
/// Redis, ends by the machine's clock too, which must not come so far.
pub const OPENS_AT: i64 = 4_000_000_000_000;
/// What signs places in tests.
pub const MASTER_KEY: &str = "a master key for tests, of more than 32 characters";

/// What signs access tokens in tests, and nowhere else: making a key takes a tenth of a second in each process.
pub const ACCESS_TOKEN_KEY: &str = include_str!("access_token_key.pem");

/// What signs and checks access tokens in tests.
pub fn access() -> Access {
    Access::new(ACCESS_TOKEN_KEY, None, None).expect("a key for access tokens")
}

/// What the payment provider signs with in tests.
pub const PAYMENT_KEY: &str = "a payment key for tests, of more than 32 characters";

/// A gate that asks for nothing special.
pub fn gate(event: &EventId) -> Gate {
    Gate {
        default_event: Some(event.clone()),
        payment_keys: PaymentKeys::new([PAYMENT_KEY]),
        ..Gate::default()
    }
}

/// What a payment provider that has `key` writes over a body.
pub fn signature(key: &str, seconds: i64, body: &str) -> String {
    let mac = Hmac::<Sha256>::new_from_slice(key.as_bytes()).expect("a key of any length");
    let signed = mac.chain_update(format!("{seconds}.{body}")).finalize().into_bytes();
    format!("t={seconds},v1={}", domain::shuffle::hex(&signed))
}

/// A queue that takes nothing: facts wait in the journal, as while SQS is away.
struct NoQueue;

impl Outbox for NoQueue {
    fn send(&self, _: Queue, messages: Vec<Message>) -> BoxFuture<'_, Vec<bool>> {
        futures::future::ready(vec![false; messages.len()]).boxed()
    }
}

/// A queue that takes everything at once.
#[derive(Debug)]
pub struct TakesAll;

impl Outbox for TakesAll {
    fn send(&self, _: Queue, messages: Vec<Message>) -> BoxFuture<'_, Vec<bool>> {
        futures::future::ready(vec![true; messages.len()]).boxed()
    }
}

/// A small sale: two offerings; `T1` with a section `A` of 4 rows × 4 named seats (`1A` … `4D`, price 1 000), a
/// general section `G` of 10 (price 500) that is the default, and `T2` with one named section `A` of 1 × 2 (price 7).
pub fn sale(event: &str) -> Value {
    json!({
        "eventId": event,
        "title": "A test sale",
        "opensAt": OPENS_AT,
        "closesAt": OPENS_AT + 86_400_000,
        "preQueue": "fifo",
        "admission": { "perSecond": 10, "maxActive": 100, "activeSeconds": 180, "claimSeconds": 15 },
        "holdSeconds": 120,
        "limitPerAccount": 4,
        "anonymous": "accepted",
        "joinsPerAddressPerSecond": 100_000,
        "default": { "offeringId": "T1", "sectionId": "G" },
        "offerings": [
            { "id": "T1", "date": "2027-02-05", "from": "서울", "to": "부산", "sections": [
                { "id": "A", "name": "일반실", "price": 1000, "seats": [{ "rows": "1-4", "seats": "A-D" }] },
                { "id": "G", "name": "입석", "price": 500, "capacity": 10 },
            ] },
            { "id": "T2", "date": "2027-02-06", "from": "부산", "to": "서울", "sections": [
                { "id": "A", "name": "일반실", "price": 7, "seats": [{ "rows": "1", "seats": "A-B" }] },
            ] },
        ],
    })
}

/// An event id that no other test uses.
pub fn fresh_event() -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    format!("test-{:08x}-{}-{count}", fastrand::u32(..), std::process::id())
}

/// An answer to a request.
#[derive(Debug, Clone)]
pub struct Answer {
    /// The status.
    pub status: u16,
    /// Lower-case names.
    pub headers: Vec<(String, String)>,
    /// The body as it was sent.
    pub text: String,
    /// The body as JSON; null where it is none.
    pub json: Value,
}

impl Answer {
    /// `data` of a success; fails the test on anything else.
    pub fn data(&self) -> &Value {
        assert_eq!(self.json["success"], true, "{} {}", self.status, self.text);
        &self.json["data"]
    }

    /// The code of a failure; fails the test on a success.
    pub fn code(&self) -> &str {
        self.json["error"]["code"]
            .as_str()
            .unwrap_or_else(|| panic!("no failure: {} {}", self.status, self.text))
    }

    /// Details of a failure.
    pub fn details(&self) -> &Value {
        &self.json["error"]["details"]
    }

    /// A header's value.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

/// A request about to be sent.
#[derive(Debug, Clone)]
pub struct Call {
    method: String,
    path: String,
    query: Vec<(String, String)>,
    headers: Vec<(String, String)>,
    body: Option<(String, bool)>,
    source_ip: String,
}

impl Call {
    /// A request without query or body, from 203.0.113.7.
    pub fn new(method: &str, path: &str) -> Self {
        Self {
            method: method.to_owned(),
            path: path.to_owned(),
            query: Vec::new(),
            headers: Vec::new(),
            body: None,
            source_ip: "203.0.113.7".to_owned(),
        }
    }

    /// With a query parameter; the value is escaped.
    #[must_use]
    pub fn query(mut self, name: &str, value: impl ToString) -> Self {
        self.query.push((name.to_owned(), value.to_string()));
        self
    }

    /// With a header.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// With a JSON body.
    #[must_use]
    pub fn json(self, body: &Value) -> Self {
        self.header("content-type", "application/json").text(&body.to_string())
    }

    /// With a body as it is.
    #[must_use]
    pub fn text(mut self, body: &str) -> Self {
        self.body = Some((body.to_owned(), false));
        self
    }

    /// With a body that is said to be base64.
    #[must_use]
    pub fn base64(mut self, body: &str) -> Self {
        self.body = Some((body.to_owned(), true));
        self
    }

    /// From another address.
    #[must_use]
    pub fn from(mut self, source_ip: &str) -> Self {
        source_ip.clone_into(&mut self.source_ip);
        self
    }

    /// The event that API Gateway's HTTP API sends for it, payload format 2.0.
    pub fn event(&self) -> Value {
        let escape = |text: &str| {
            percent_encoding::utf8_percent_encode(text, percent_encoding::NON_ALPHANUMERIC).to_string()
        };
        let query: Vec<String> =
            self.query.iter().map(|(name, value)| format!("{}={}", escape(name), escape(value))).collect();
        let mut headers = serde_json::Map::new();
        headers.insert("host".to_owned(), json!("abc123.execute-api.ap-northeast-2.amazonaws.com"));
        for (name, value) in &self.headers {
            headers.insert(name.to_lowercase(), json!(value));
        }
        let mut event = json!({
            "version": "2.0",
            "routeKey": "$default",
            "rawPath": self.path,
            "rawQueryString": query.join("&"),
            "headers": headers,
            "requestContext": {
                "accountId": "123456789012",
                "apiId": "abc123",
                "domainName": "abc123.execute-api.ap-northeast-2.amazonaws.com",
                "domainPrefix": "abc123",
                "http": {
                    "method": self.method,
                    "path": self.path,
                    "protocol": "HTTP/1.1",
                    "sourceIp": self.source_ip,
                    "userAgent": "tests",
                },
                "requestId": "JKJaXmPLvHcESHA=",
                "routeKey": "$default",
                "stage": "$default",
                "time": "02/Oct/2096:07:06:40 +0000",
                "timeEpoch": OPENS_AT,
            },
            "isBase64Encoded": self.body.as_ref().is_some_and(|(_, base64)| *base64),
        });
        if let Some((body, _)) = &self.body {
            event["body"] = json!(body);
        }
        event
    }
}

/// A sale in Redis and all HTTP functions in front of it.
pub struct App {
    /// The sale's id.
    pub event: EventId,
    /// The sale's store; its clock is this app's.
    pub store: Store,
    functions: BookState,
    now: AtomicI64,
    /// To where writes go, where a replica answers too.
    replication: Option<MultiplexedConnection>,
}

/// What the function that has the request's route answers.
async fn answer(functions: &BookState, request: Request) -> Response<Body> {
    let BookState { state, outbox } = functions;
    match routes::of(&request).map_or("poll", |(route, _)| route.function) {
        "pay" => {
            let outbox = outbox.as_ref();
            pay::handle(PayState { store: &state.store, gate: &state.gate, outbox }, request).await
        }
        "join" => join::handle(state, request).await,
        "leave" => leave::handle(state, request).await,
        "seats" => seats::handle(state, request).await,
        "hold-seat" => hold_seat::handle(state, request).await,
        "book" => book::handle(functions, request).await,
        "keys" => keys::handle(&KeysState::new(&state.gate, state.access.clone()), request).await,
        _ => poll::handle(state, request).await,
    }
}

/// What the Runtime API is handed for an event that it handed out: both as bytes of JSON.
pub async fn handled(functions: &BookState, event: &[u8]) -> serde_json::Result<Vec<u8>> {
    let response = answer(functions, gateway::accept(serde_json::from_slice(event)?)).await;
    serde_json::to_vec(&gateway::into_event(response))
}

/// Whether what [`handled`] returns is a success.
pub fn has_succeeded(answer: &[u8]) -> bool {
    answer.starts_with(b"{\"statusCode\":20")
}

/// Functions that reach Redis by `store`, with tests' own keys and a queue that takes nothing.
pub fn functions(store: Store, gate: Gate, access: Access, outbox: Option<Arc<dyn Outbox>>) -> BookState {
    let master = MasterKeys::new(MASTER_KEY, None).expect("a master key");
    let outbox = outbox.unwrap_or_else(|| Arc::new(NoQueue));
    BookState { state: State::new(store, gate, master, access), outbox }
}

/// A key as it is once the caller has waited as told, and what it says: the window is the functions' own clock's
/// matter, so it is made wide enough for a busy machine.
pub fn ripe(app: &App, token: &str, key: &str) -> (PlaceKey, String) {
    let ring = KeyRing::new(MASTER_KEY.as_bytes(), None);
    let token: Token = token.parse().expect("a token");
    let place = ring.check(&app.event, token, key).expect("a key of ours");
    let place = PlaceKey { earliest_at: Millis::now(), interval_ms: 60_000, ..place };
    let key = ring.sign(&app.event, token, &place);
    (place, key)
}

impl App {
    /// The small sale of [`sale`], one second after its opening.
    pub async fn start() -> Self {
        Self::with(|_| {}).await
    }

    /// The small sale as `change` makes it, one second after [`OPENS_AT`].
    pub async fn with(change: impl FnOnce(&mut Value)) -> Self {
        Self::on(Redis::shared(Topology::chosen()), change).await
    }

    /// The same on a Redis of the caller's.
    pub async fn on(redis: &Redis, change: impl FnOnce(&mut Value)) -> Self {
        Self::reaching(redis, &redis.config(), change).await
    }

    /// The same, reached as the caller says.
    pub async fn reaching(redis: &Redis, config: &StoreConfig, change: impl FnOnce(&mut Value)) -> Self {
        let app = Self::reached_by(config, change).await;
        match redis.topology() {
            Topology::Replica => Self { replication: Some(redis.connection().await), ..app },
            _ => app,
        }
    }

    /// The same by a store that the caller describes, whose replica is no matter.
    pub async fn reached_by(config: &StoreConfig, change: impl FnOnce(&mut Value)) -> Self {
        let event = fresh_event();
        let mut definition = sale(&event);
        change(&mut definition);
        let store = Store::new(config).expect("an address of Redis");
        let event: EventId = event.parse().expect("an event id");
        let functions = functions(store.clone(), gate(&event), access(), None);
        let app = Self { event, store, functions, now: AtomicI64::new(0), replication: None };
        app.at(OPENS_AT + 1_000);
        app.apply(&definition).await;
        app
    }

    /// The same sale behind another gate or queue.
    #[must_use]
    pub fn behind(&self, gate: Gate, outbox: Option<Arc<dyn Outbox>>) -> Self {
        self.with_state(gate, access(), outbox)
    }

    /// The same sale where other keys sign and check access tokens.
    #[must_use]
    pub fn signing_with(&self, access: Access) -> Self {
        self.with_state(gate(&self.event), access, None)
    }

    /// The same sale behind another instance of the functions, with a store and a clock of its own.
    #[must_use]
    pub fn instance(&self, config: &StoreConfig) -> Self {
        let store = Store::new(config).expect("an address of Redis");
        let functions = functions(store.clone(), self.state().gate.clone(), access(), None);
        let instance = Self {
            event: self.event.clone(),
            store,
            functions,
            now: AtomicI64::new(0),
            replication: self.replication.clone(),
        };
        instance.at(self.now());
        instance
    }

    fn with_state(&self, gate: Gate, access: Access, outbox: Option<Arc<dyn Outbox>>) -> Self {
        Self {
            event: self.event.clone(),
            store: self.store.clone(),
            functions: functions(self.store.clone(), gate, access, outbox),
            now: AtomicI64::new(self.now()),
            replication: self.replication.clone(),
        }
    }

    /// What the functions share.
    pub fn state(&self) -> &State {
        &self.functions.state
    }

    /// Create the sale or bring it to this definition; fails the test where that is refused.
    pub async fn apply(&self, definition: &Value) -> u64 {
        let sale = domain::sale::check(&definition.to_string()).expect("a valid definition");
        let known = self.store.newest_edition(&self.event).await.expect("redis answers");
        let (edition, change) = match known {
            Some(edition) => edition.next(sale).expect("a next edition"),
            None => Edition::first(sale),
        };
        match self.store.apply(&edition, &change, "tests", "apply").await.expect("redis answers") {
            Applied::Applied { version } => version,
            refused => panic!("{refused:?}"),
        }
    }

    /// The sale's clock.
    pub fn now(&self) -> i64 {
        self.now.load(Ordering::Relaxed)
    }

    /// Set the sale's clock.
    pub fn at(&self, now_ms: i64) {
        self.now.store(now_ms, Ordering::Relaxed);
        self.store.drive_clock(Millis(now_ms));
    }

    /// Move the sale's clock.
    pub fn pass(&self, ms: i64) {
        self.at(self.now() + ms);
    }

    /// Facts that wait for the queues.
    pub async fn journal_length(&self) -> u64 {
        let page = self.store.journal(&self.event, None, u64::MAX >> 1).await.expect("redis answers");
        page.facts.len() as u64
    }

    /// One tick now.
    pub async fn tick(&self) -> Tick {
        self.tick_under(Load::default()).await
    }

    /// One tick now that is told of what waits.
    pub async fn tick_under(&self, load: Load) -> Tick {
        self.store.admit(&self.event, load).await.expect("redis answers").expect("the event is known")
    }

    /// The same app in front of a replica that need not have what was written.
    #[must_use]
    pub fn lagging(self) -> Self {
        Self { replication: None, ..self }
    }

    /// Waits until a replica, where there is one, has all that was written so far: tests say what is seen after what,
    /// and what lag does is for tests of its own.
    pub async fn replicated(&self) {
        let Some(mut connection) = self.replication.clone() else { return };
        // WAIT looks at the writes of its own connection, and whatever came before is replicated before.
        let mut both = redis::pipe();
        both.cmd("SET").arg("tests:written").arg(1).ignore().cmd("WAIT").arg(1).arg(5_000);
        let [replicas]: [u64; 1] = both.query_async(&mut connection).await.expect("redis answers");
        assert_eq!(replicas, 1, "the replica does not follow");
    }

    /// Send a request. The answer has been held against openapi.yaml.
    pub async fn send(&self, call: Call) -> Answer {
        self.replicated().await;
        let answer = self.send_event(call.event()).await;
        contract::check(&call.method, &call.path, &answer);
        answer
    }

    /// Send an event as it is; the answer is not held against anything.
    pub async fn send_event(&self, event: Value) -> Answer {
        let request = gateway::accept(serde_json::from_value(event).expect("an API Gateway event"));
        let response = answer(&self.functions, request).await;
        let (parts, body) = response.into_parts();
        let text = match body {
            Body::Text(text) => text,
            Body::Binary(bytes) => String::from_utf8(bytes).expect("answers are text"),
            _ => String::new(),
        };
        let headers = parts.headers.iter().map(|(name, value)| {
            (name.as_str().to_owned(), value.to_str().expect("headers are ASCII").to_owned())
        });
        Answer {
            status: parts.status.as_u16(),
            headers: headers.collect(),
            json: serde_json::from_str(&text).unwrap_or(Value::Null),
            text,
        }
    }

    /// `POST` with a JSON body.
    pub async fn post(&self, path: &str, body: Value) -> Answer {
        self.send(Call::new("POST", path).json(&body)).await
    }

    /// A new place: its token.
    pub async fn join(&self) -> String {
        let answer = self.post("/api/queue/join", json!({})).await;
        answer.data()["token"].as_str().expect("a token").to_owned()
    }

    /// Come back with a token.
    pub async fn rejoin(&self, token: &str) -> Answer {
        self.post("/api/queue/rejoin", json!({ "token": token })).await
    }

    /// Give up a place.
    pub async fn leave(&self, token: &str) -> Answer {
        self.send(Call::new("DELETE", "/api/queue/leave").query("token", token)).await
    }

    /// Ask where a token stands, without a key.
    pub async fn poll(&self, token: &str) -> Answer {
        self.send(Call::new("GET", "/api/status/poll").query("token", token)).await
    }

    /// A token in a live session: joined, called by as many ticks as it takes, claimed.
    pub async fn active(&self) -> String {
        let token = self.join().await;
        for _ in 0..100 {
            self.pass(1_000);
            self.tick().await;
            if self.poll(&token).await.data()["status"] == "ACTIVE" {
                return token;
            }
        }
        panic!("not admitted in 100 ticks");
    }

    /// Hold places: `choice` is the body without token.
    pub async fn hold(&self, token: &str, mut choice: Value) -> Answer {
        choice["token"] = json!(token);
        self.post("/api/seat/select", choice).await
    }

    /// Buy: `purchase` is the body without token.
    pub async fn book(&self, token: &str, mut purchase: Value) -> Answer {
        purchase["token"] = json!(token);
        self.post("/api/booking", purchase).await
    }

    /// A webhook of the payment provider, signed now.
    pub fn webhook(body: &Value) -> Call {
        let (body, seconds) = (body.to_string(), Millis::now().0 / 1_000);
        let call = Call::new("POST", "/api/payment/webhook").header("content-type", "application/json");
        call.header("jari-signature", &signature(PAYMENT_KEY, seconds, &body)).text(&body)
    }

    /// Free places in the whole event, as `redis-cli GET` tells them.
    pub async fn remaining(&self) -> u64 {
        self.replicated().await;
        let progress = domain::command::Progress { event: self.event.clone() };
        let progress =
            self.store.progress(&progress).await.expect("redis answers").expect("the event is known");
        progress.view.remaining_seats
    }
}
