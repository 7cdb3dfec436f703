//! A small sale through the handlers, and what they counted. One test, in a process of its own: counts are the process'.
#![cfg(test)]

use aws_lambda_events::event::sqs::{SqsEvent, SqsMessage};
use domain::Millis;
use domain::fact::Fact;
use futures::FutureExt;
use futures::future::BoxFuture;
use gateway::{KeyRing, PlaceKey};
use metrics::{Emf, Kind, TABLE, prometheus};
use outbox::{Message, Outbox, Queue};
use records::{Records, RecordsConfig};
use serde_json::{Value, json};
use store::Load;
use support::{App, Call, MASTER_KEY, Postgres, Redis, Topology};

/// Counted elsewhere than in the handlers of this sale; each has a test where it is.
const ELSEWHERE: [&str; 4] = ["dead_letters", "backpressure", "epoch_changes", "cold_starts"];

/// Queues without a queue: what is sent is persisted before it counts as taken.
struct Straight(Records);

impl Outbox for Straight {
    fn send(&self, _: Queue, messages: Vec<Message>) -> BoxFuture<'_, Vec<bool>> {
        async move {
            let taken = vec![true; messages.len()];
            let bodies = messages.into_iter().map(|message| message.body);
            let response = persist::persist(&self.0, batch(bodies)).await.expect("PostgreSQL answers");
            assert!(response.batch_item_failures.is_empty(), "{response:?}");
            taken
        }
        .boxed()
    }
}

fn batch(bodies: impl IntoIterator<Item = String>) -> SqsEvent {
    let mut event = SqsEvent::default();
    event.records = bodies
        .into_iter()
        .enumerate()
        .map(|(at, body)| {
            let mut message = SqsMessage::default();
            message.message_id = Some(at.to_string());
            message.body = Some(body);
            message
        })
        .collect();
    event
}

/// A line, held against the specification: its form, and that what it names is there.
fn line(emf: &Emf, now_ms: i64) -> Value {
    let text = emf.line(TABLE, now_ms).expect("something was counted");
    assert!(!text.contains('\n') && text.len() < 256 * 1024, "{text}");
    let line: Value = serde_json::from_str(&text).expect("JSON");
    let schema = serde_json::from_str(include_str!("emf.schema.json")).expect("a schema");
    jsonschema::validate(&schema, &line).unwrap_or_else(|error| panic!("{error}: {text}"));
    for directive in line["_aws"]["CloudWatchMetrics"].as_array().expect("directives") {
        for dimension in directive["Dimensions"].as_array().expect("sets").iter().filter_map(Value::as_array)
        {
            assert!(dimension.iter().all(|name| line[name.as_str().expect("a name")].is_string()), "{text}");
        }
        for metric in directive["Metrics"].as_array().expect("metrics") {
            let value = &line[metric["Name"].as_str().expect("a name")];
            let values = value.as_array().map_or(std::slice::from_ref(value), Vec::as_slice);
            assert!((1..=100).contains(&values.len()) && values.iter().all(Value::is_number), "{metric}");
        }
    }
    line
}

/// A poll that its key answers.
async fn poll_keyed(app: &App, token: &str) {
    let key = app.rejoin(token).await.data()["key"].as_str().expect("a key").to_owned();
    let (ring, token) = (KeyRing::new(MASTER_KEY.as_bytes(), None), token.parse().expect("a token"));
    let place = ring.check(&app.event, token, &key).expect("a key of ours");
    let place = PlaceKey { earliest_at: Millis::now(), ticket_count: Some(0), ..place };
    let key = ring.sign(&app.event, token, &place);
    let poll = Call::new("GET", "/api/status/poll").query("token", token).query("key", key);
    assert_eq!(app.send(poll).await.data()["status"], "WAITING");
}

/// The line: 25 joins, two of which a tick lets wait, polls of both kinds; everything is told as it was.
async fn the_line(app: &App, emf: &Emf) -> Vec<String> {
    let mut tokens = Vec::new();
    for _ in 0..25 {
        tokens.push(app.join().await);
    }
    assert_eq!(app.rejoin(&tokens[0]).await.status, 200, "a known place is no new one");
    app.pass(1_000);
    assert!(admit::tick_all(&app.store, Load::default()).await.expect("redis answers"));
    for token in &tokens[..3] {
        assert_eq!(app.poll(token).await.data()["status"], "ACTIVE");
    }
    poll_keyed(app, &tokens[24]).await;
    let line = line(emf, app.now());
    for (name, value) in [
        ("joins", 25),
        ("ticks", 1),
        // Two seconds after the opening, ten a second.
        ("admitted", 20),
        ("polls_exact", 3),
        ("polls_keyed", 1),
    ] {
        assert_eq!(line[name], json!(value), "{name}: {line}");
    }
    for (name, value) in [("waiting", 5.0), ("active", 20.0), ("remaining", 28.0)] {
        assert_eq!(line[name], json!(value), "{name}: {line}");
    }
    assert_eq!((&line["system"], &line["function"]), (&json!("jari-test"), &json!("all")));
    tokens
}

/// Holds and bookings, taken and refused.
async fn the_sale(app: &App, emf: &Emf, tokens: &[String]) {
    let seats = |seats: &[&str]| json!({ "offeringId": "T1", "sectionId": "A", "seats": seats });
    assert_eq!(app.hold(&tokens[0], seats(&["1A", "1B", "1C"])).await.status, 200);
    assert_eq!(app.hold(&tokens[1], seats(&["1C"])).await.code(), "SEAT_TAKEN");
    assert_eq!(app.hold(&tokens[2], seats(&["1C"])).await.code(), "SEAT_TAKEN");
    assert_eq!(app.book(&tokens[0], json!({})).await.status, 201);
    assert_eq!(app.book(&tokens[0], json!({})).await.status, 201, "the same again sells nothing");
    assert_eq!(app.book(&tokens[1], json!({ "seatCount": 1 })).await.status, 201);
    assert_eq!(app.hold(&tokens[24], seats(&["2A"])).await.code(), "NOT_ADMITTED");
    let line = line(emf, app.now() + 1_000);
    for (name, value) in
        [("held", 3), ("bookings", 2), ("sold", 4), ("refusals_seat_taken", 2), ("refusals_not_admitted", 1)]
    {
        assert_eq!(line[name], json!(value), "{name}: {line}");
    }
    assert!(line["joins"].is_null() && line["waiting"].is_null(), "told before: {line}");
}

/// One command a poll, each timed.
async fn the_latency(app: &App, emf: &Emf, tokens: &[String]) {
    for _ in 0..5 {
        app.poll(&tokens[24]).await;
    }
    let line = line(emf, app.now() + 2_000);
    let times = line["redis_latency"].as_array().expect("times");
    assert_eq!((times.len(), &line["polls_exact"]), (5, &json!(5)), "{line}");
    assert!(times.iter().all(|time| time.as_f64().is_some_and(|ms| ms > 0.0 && ms < 5_000.0)), "{line}");
}

/// The journal's way to PostgreSQL, with what goes wrong on it.
async fn the_records(app: &App, emf: &Emf) {
    let url = Postgres::shared().database().await;
    let config = RecordsConfig::new(&url);
    records::migrate(&config).await.expect("the tables are made");
    let records = Records::open(&config).expect("a URL of PostgreSQL");
    let journal = app.store.journal(&app.event, None, u64::MAX >> 1).await.expect("redis answers").facts;
    tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    let taken = relay::relay(&app.store, &Straight(records.clone()), 0).await.expect("redis answers");
    assert_eq!(taken, journal.len());
    let written = line(emf, app.now() + 3_000);
    assert_eq!(written["persisted"], json!(taken), "{written}");
    assert!(written["journal_lag"].as_f64().is_some_and(|ms| (20.0..60_000.0).contains(&ms)), "{written}");
    let lags = written["persist_lag"].as_array().expect("lags");
    assert_eq!(lags.len(), taken, "{written}");
    assert!(
        lags.iter().all(|lag| lag.as_f64().is_some_and(|ms| (20.0..60_000.0).contains(&ms))),
        "{written}"
    );

    // A seat that is another's, a message that is none, and nobody to ask.
    let stolen = json!({ "facts": [sold_again(&journal)] }).to_string();
    let response = persist::persist(&records, batch([stolen, "{".to_owned()])).await.expect("an answer");
    assert_eq!(response.batch_item_failures.len(), 2);
    let nobody = Records::open(&RecordsConfig::new("postgres://nobody@127.0.0.1:1/none")).expect("a URL");
    assert!(persist::persist(&nobody, batch([])).await.is_err());
    let failed = line(emf, app.now() + 4_000);
    for (name, value) in [("facts_refused", 2), ("guard_violations", 1), ("persist_failures", 1)] {
        assert_eq!(failed[name], json!(value), "{name}: {failed}");
    }
    assert!(failed["persisted"].is_null(), "{failed}");
}

/// The journal's booking of named seats once more, as another token's reservation.
fn sold_again(journal: &[Fact]) -> Value {
    let sold = journal.iter().map(|fact| serde_json::to_value(fact).expect("JSON"));
    let mut sold =
        sold.into_iter().find(|fact| fact.to_string().contains("\"1A\"") && fact["kind"] == "BOOKED");
    let fact = sold.as_mut().expect("a booking");
    let token = domain::Token::random().to_string();
    let id = fact["reservation"]["reservationId"].as_str().expect("an id");
    let (event, _) = id.split_once('.').expect("an event and a UUID");
    fact["reservation"]["reservationId"] = json!(format!("{event}.{token}"));
    fact["reservation"]["token"] = json!(token);
    fact["id"] = json!("1-1");
    fact.clone()
}

#[tokio::test]
async fn a_sale_is_told_with_the_right_values() {
    let redis = Redis::start(Topology::of_one_node());
    let app = App::on(&redis, |sale| sale["admission"]["activeSeconds"] = json!(600)).await;
    let emf = Emf::new("jari-test", "all");
    let tokens = the_line(&app, &emf).await;
    the_sale(&app, &emf, &tokens).await;
    the_latency(&app, &emf, &tokens).await;
    the_records(&app, &emf).await;
    assert_eq!(emf.line(TABLE, app.now() + 5_000), None, "all has been told");

    // Prometheus is told of all of it, whatever EMF told.
    let text = prometheus::text(TABLE);
    for sample in ["jari_joins_total 25", "jari_sold_total 4", "jari_refusals_total{code=\"SEAT_TAKEN\"} 2"] {
        assert!(text.lines().any(|line| line == sample), "{sample}\n{text}");
    }
    for metric in TABLE.iter().filter(|metric| !ELSEWHERE.contains(&metric.name)) {
        let was_counted = match metric.kind {
            Kind::Counter(counter) => counter.total() > 0,
            Kind::Gauge(gauge) => gauge.value().is_some(),
            Kind::Distribution(distribution) => distribution.count() > 0,
            Kind::Codes(codes) => codes.total("SEAT_TAKEN") > 0,
        };
        assert!(was_counted, "nothing here counts {}", metric.name);
    }
}
