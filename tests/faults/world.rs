//! A sale on servers of its own by their own clock, faults between them and the functions' real binaries.

use std::time::Duration;

use ::outbox::{Backlog, SqsQueue};
use aws_sdk_sqs::Client;
use aws_sdk_sqs::types::Message;
use domain::reservation::Reservation;
use domain::{EventId, Millis};
use records::{Records, RecordsConfig};
use serde_json::{Value, json};
use store::StoreConfig;
use support::{
    ACCESS_TOKEN_KEY, App, Call, FaultProxy, Function, Invoked, MASTER_KEY, PAYMENT_KEY, Postgres, Redis,
    Sqs, Topology, wait_until,
};

/// Far more than anything takes here, on a machine that other tests keep busy.
pub(crate) const LONG: Duration = Duration::from_mins(1);
/// Messages that a batch may have.
const BATCH: i32 = 10;
/// Until a message that was handed out and not taken off its queue is handed out again.
const INVISIBLE_SECONDS: i32 = 1;

pub(crate) struct World {
    pub(crate) app: App,
    /// Stand before what only functions reach; the test itself does without.
    pub(crate) redis: FaultProxy,
    pub(crate) sqs: FaultProxy,
    pub(crate) postgres: FaultProxy,
    pub(crate) client: Client,
    pub(crate) bookings_url: String,
    pub(crate) dead_letters_url: String,
    pub(crate) line_url: String,
    pub(crate) line_dead_letters_url: String,
    pub(crate) database_url: String,
    pub(crate) records: Records,
    pub(crate) server: Redis,
}

impl World {
    pub(crate) async fn new() -> Self {
        Self::with(|_| {}).await
    }

    /// With the small sale, open since a minute, as `change` makes it.
    pub(crate) async fn with(change: impl FnOnce(&mut Value)) -> Self {
        Self::around(Redis::start(Topology::Single), false, change).await
    }

    /// On this Redis. `behind`: the handlers of the test's own reach it through the proxy too.
    pub(crate) async fn around(server: Redis, behind: bool, change: impl FnOnce(&mut Value)) -> Self {
        Self::of(server, behind, Postgres::shared(), change).await
    }

    /// Recorded by this PostgreSQL.
    pub(crate) async fn recorded_by(postgres: &Postgres) -> Self {
        Self::of(Redis::start(Topology::Single), false, postgres, |_| {}).await
    }

    async fn of(server: Redis, behind: bool, postgres: &Postgres, change: impl FnOnce(&mut Value)) -> Self {
        let redis = FaultProxy::before(server.url());
        let url = if behind { redis.url() } else { server.url() };
        let app = App::reached_by(&StoreConfig::new(url.to_owned(), false), |sale| {
            sale["opensAt"] = json!(Millis::now().0 - 60_000);
            sale["closesAt"] = json!(Millis::now().0 + 86_400_000);
            change(sale);
        })
        .await;
        // Redis' own clock: functions have no other.
        app.at(0);
        let sqs = Sqs::shared();
        let (bookings_url, dead_letters_url) = sqs.queue_with_dead_letters("bookings").await;
        let (line_url, line_dead_letters_url) = sqs.queue_with_dead_letters("line").await;
        let database_url = postgres.database().await;
        let config = RecordsConfig::new(&database_url);
        records::migrate(&config).await.expect("the tables are made");
        Self {
            app,
            redis,
            sqs: FaultProxy::before(sqs.endpoint()),
            postgres: FaultProxy::before(&database_url),
            client: sqs.client(),
            bookings_url,
            dead_letters_url,
            line_url,
            line_dead_letters_url,
            records: Records::open(&config).expect("a URL of PostgreSQL"),
            database_url,
            server,
        }
    }

    async fn function(&self, name: &str, more: &[(&str, &str)]) -> Function {
        let variables = [
            ("REDIS_URL", self.redis.url()),
            ("BOOKINGS_QUEUE_URL", &self.bookings_url),
            ("LINE_QUEUE_URL", &self.line_url),
        ];
        Function::start(name, Some(self.sqs.url()), &[&variables, more].concat()).await
    }

    pub(crate) async fn book(&self) -> Function {
        let event = self.app.event.as_str();
        let access = [("ACCESS_TOKEN_KEY", ACCESS_TOKEN_KEY), ("MASTER_KEY", MASTER_KEY)];
        self.function("book", &[&access[..], &[("DEFAULT_EVENT_ID", event)]].concat()).await
    }

    /// An instance that Lambda lets have as many requests at once.
    pub(crate) async fn poll(&self, concurrency: &str) -> Function {
        let event = self.app.event.as_str();
        let signing = [("ACCESS_TOKEN_KEY", ACCESS_TOKEN_KEY), ("MASTER_KEY", MASTER_KEY)];
        let more = [("DEFAULT_EVENT_ID", event), ("AWS_LAMBDA_MAX_CONCURRENCY", concurrency)];
        self.function("poll", &[&signing[..], &more].concat()).await
    }

    pub(crate) async fn pay(&self) -> Function {
        let event = self.app.event.as_str();
        let access = [("ACCESS_TOKEN_KEY", ACCESS_TOKEN_KEY), ("PAYMENT_KEY", PAYMENT_KEY)];
        self.function("pay", &[&access[..], &[("DEFAULT_EVENT_ID", event)]].concat()).await
    }

    /// A replica, where there is one, has all that was written.
    pub(crate) async fn replicated(&self) {
        let mut connection = self.server.connection().await;
        let mut both = redis::pipe();
        both.cmd("SET").arg("tests:written").arg(1).ignore().cmd("WAIT").arg(1).arg(5_000);
        let [replicas]: [u64; 1] = both.query_async(&mut connection).await.expect("redis answers");
        assert_eq!(replicas, 1, "the replica does not follow");
    }

    pub(crate) async fn relay(&self) -> Function {
        self.function("relay", &[("DATABASE_URL", self.postgres.url())]).await
    }

    pub(crate) async fn admit(&self) -> Function {
        // Nobody listens at a socket here.
        self.function("admit", &[("PUSHES_QUEUE_URL", &self.line_url)]).await
    }

    pub(crate) async fn persist(&self) -> Function {
        Function::start("persist", None, &[("DATABASE_URL", self.postgres.url())]).await
    }

    /// A token in a live session.
    pub(crate) async fn active(&self) -> String {
        let token = self.app.join().await;
        wait_until(LONG, "a session", async || {
            self.app.tick().await;
            self.app.poll(&token).await.data()["status"] == "ACTIVE"
        })
        .await;
        token
    }

    /// A place sold, by handlers of the test's own that reach no queue: the fact is in the journal alone.
    pub(crate) async fn sell(&self) -> String {
        let token = self.active().await;
        let booked = self.app.book(&token, json!({ "seatCount": 1 })).await;
        assert_eq!(booked.status, 201, "{}", booked.text);
        token
    }

    /// All that Redis sold, by id.
    pub(crate) async fn sold(&self) -> Vec<Reservation> {
        let mut sold = self.app.store.reservations(&self.app.event).await.expect("redis answers");
        sold.sort_by(|one, other| one.reservation_id.cmp(&other.reservation_id));
        sold
    }

    /// All that PostgreSQL has, by id.
    pub(crate) async fn recorded(&self) -> Vec<Reservation> {
        recorded(&self.records, &self.app.event).await
    }

    pub(crate) async fn journal(&self) -> usize {
        let page = self.app.store.journal(&self.app.event, None, u64::MAX >> 1).await.expect("redis answers");
        assert_eq!((page.unreadable, page.next), (Vec::new(), None));
        page.facts.len()
    }

    /// Messages in the queue of bookings, or in another one. Those to be seen and those handed out are counted one after
    /// the other: a message that comes back between the two is in neither count, but in the next.
    pub(crate) async fn messages(&self, url: &str) -> u64 {
        let queue = SqsQueue::with_client(url.to_owned(), self.client.clone());
        let count = async || queue.bookings().await.expect("SQS answers");
        count().await.max(count().await)
    }

    pub(crate) async fn send(&self, body: &str) {
        let send = self.client.send_message().queue_url(&self.bookings_url).message_body(body);
        send.send().await.expect("SQS takes it");
    }

    /// What Lambda does behind the queue of bookings: hands over what waits, and takes off the queue what was not handed
    /// back. What came of it, and the ids that were handed over; nothing where nothing waits.
    pub(crate) async fn deliver(&self, persist: &Function) -> Option<(Invoked, Vec<String>)> {
        self.deliver_from(&self.bookings_url, persist).await
    }

    async fn deliver_from(&self, url: &str, persist: &Function) -> Option<(Invoked, Vec<String>)> {
        let receive = self.client.receive_message().queue_url(url);
        let receive = receive.max_number_of_messages(BATCH).visibility_timeout(INVISIBLE_SECONDS);
        let messages = receive.send().await.expect("SQS answers").messages.unwrap_or_default();
        if messages.is_empty() {
            return None;
        }
        let records =
            messages.iter().map(|message| json!({ "messageId": message.message_id, "body": message.body }));
        let invoked = persist.invoke(&json!({ "Records": records.collect::<Vec<_>>() })).await;
        if let Invoked::Answered(answer) = &invoked {
            let failed = handed_back(answer);
            let is_taken = |message: &&Message| !failed.contains(&message.message_id().unwrap_or_default());
            for message in messages.iter().filter(is_taken) {
                let receipt = message.receipt_handle().expect("a receipt");
                let delete = self.client.delete_message().queue_url(url).receipt_handle(receipt);
                delete.send().await.expect("deleted");
            }
        }
        Some((invoked, messages.into_iter().map(|message| message.message_id.expect("an id")).collect()))
    }

    /// Until both queues are empty, each of their messages is written.
    pub(crate) async fn deliver_all(&self, persist: &Function) {
        for url in [&self.bookings_url, &self.line_url] {
            wait_until(LONG, "an empty queue", async || {
                while let Some((invoked, _)) = self.deliver_from(url, persist).await {
                    assert_eq!(handed_back(&invoked.answer()), Vec::<&str>::new());
                }
                self.messages(url).await == 0
            })
            .await;
        }
    }

    /// The schedules go on, and everything written to the queue is delivered, until `reached`.
    pub(crate) async fn run_until(&self, what: &str, mut reached: impl AsyncFnMut() -> bool) {
        let (relay, persist) = (self.relay().await, self.persist().await);
        let run = json!({});
        tokio::select! {
            ended = relay.invoke(&run) => panic!("the relay ended: {ended:?}\n{}", relay.said()),
            () = wait_until(LONG, what, async || {
                let _ = self.app.store.admit(&self.app.event, store::Load::default()).await;
                while self.deliver(&persist).await.is_some() {}
                reached().await
            }) => {}
        }
    }

    /// Everything as it should be in the end: a new relay empties the journal, a new persist the queues, and PostgreSQL has
    /// what Redis sold, each reservation once and in its last state.
    pub(crate) async fn settles(&self) {
        let relay = self.relay().await;
        let run = json!({});
        tokio::select! {
            ended = relay.invoke(&run) => panic!("the relay ended: {ended:?}\n{}", relay.said()),
            () = wait_until(LONG, "an empty journal", async || self.journal().await == 0) => {}
        }
        self.deliver_all(&self.persist().await).await;
        assert_eq!(self.recorded().await, self.sold().await);
    }
}

/// The ids that persist handed back.
pub(crate) fn handed_back(answer: &Value) -> Vec<&str> {
    let failures = answer["batchItemFailures"].as_array().expect("a partial batch response");
    failures.iter().map(|failure| failure["itemIdentifier"].as_str().expect("an id")).collect()
}

async fn recorded(records: &Records, event: &EventId) -> Vec<Reservation> {
    let mut recorded = records.reservations(event, None, 1_000).await.expect("PostgreSQL answers");
    recorded.sort_by(|one, other| one.reservation_id.cmp(&other.reservation_id));
    recorded
}

/// The event of a purchase.
pub(crate) fn purchase(token: &str) -> Value {
    Call::new("POST", "/api/booking").json(&json!({ "token": token, "seatCount": 1 })).event()
}

/// Status and body of an answer to API Gateway.
pub(crate) fn answered(invoked: Invoked) -> (u64, Value) {
    let answer = invoked.answer();
    let body = answer["body"].as_str().expect("a body");
    (answer["statusCode"].as_u64().expect("a status"), serde_json::from_str(body).expect("JSON"))
}
