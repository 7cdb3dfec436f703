//! After a failover: nothing is sold until what was answered is back, and lost places come back where they stood.

use redis::aio::MultiplexedConnection;
use serde_json::{Value, json};
use store::{KeyName, Keys, Recovery};
use support::{Answer, App, Call, OPENS_AT, Redis, Topology};

/// A sale whose Redis can be made another one, with what a failover loses.
struct Failing {
    app: App,
    connection: MultiplexedConnection,
    _redis: Redis,
}

impl Failing {
    async fn with(change: impl FnOnce(&mut Value)) -> Self {
        let redis = Redis::start(Topology::of_one_node());
        let app = App::on(&redis, change).await;
        Self { app, connection: redis.connection().await, _redis: redis }
    }

    /// Another replication id, as a promoted replica or a restarted node has.
    async fn fail_over(&mut self) {
        redis::cmd("DEBUG").arg("CHANGE-REPL-ID").exec_async(&mut self.connection).await.expect("another id");
    }

    /// A place of the line that was written too late.
    async fn lose(&mut self, token: &str) {
        let waiting = Keys::of(&self.app.event).name(KeyName::Waiting);
        let mut command = redis::cmd("ZREM");
        let lost: u64 =
            command.arg(waiting).arg(token).query_async(&mut self.connection).await.expect("an answer");
        assert_eq!(lost, 1, "the place was there");
    }

    /// A place as it is answered: token and key.
    async fn join(&self) -> (String, String) {
        let joined = self.app.send(Call::new("POST", "/api/queue/join")).await;
        let text = |name: &str| joined.data()[name].as_str().expect("a text").to_owned();
        (text("token"), text("key"))
    }

    async fn come_back(&self, (token, key): &(String, String)) -> Answer {
        let body = json!({ "token": token, "key": key });
        self.app.send(Call::new("POST", "/api/queue/rejoin").json(&body)).await
    }

    async fn rank(&self, (token, _): &(String, String)) -> Value {
        self.app.poll(token).await.data()["rank"].clone()
    }
}

fn is_unavailable(answer: &Answer, what: &str) {
    assert_eq!((answer.status, answer.code()), (503, "UNAVAILABLE"), "{what}");
    assert_eq!(answer.header("retry-after"), Some("5"), "{what}");
}

#[tokio::test]
async fn nothing_is_sold_paid_or_given_back_until_what_was_lost_is_back() {
    let mut failing = Failing::with(|sale| {
        sale["payment"] = json!({ "mode": "deferred", "dueAfterSeconds": 300, "currency": "KRW" });
    })
    .await;
    let buyer = failing.app.active().await;
    let booked = failing.app.book(&buyer, json!({ "seatCount": 1 })).await;
    let location = booked.header("location").expect("a location").to_owned();
    let [holder, looker] = [failing.app.active().await, failing.app.active().await];
    failing.app.hold(&holder, json!({ "offeringId": "T1", "seats": ["1A"] })).await.data();
    failing.fail_over().await;

    // Before any tick has noticed, and after one has.
    for epoch in [1, 2] {
        let app = &failing.app;
        let hold = json!({ "offeringId": "T1", "seats": ["1B"] });
        is_unavailable(&app.hold(&looker, hold).await, "a hold");
        is_unavailable(&app.book(&holder, json!({})).await, "a booking of what is held");
        is_unavailable(&app.book(&looker, json!({ "seatCount": 1 })).await, "a plain booking");
        is_unavailable(
            &app.send(Call::new("DELETE", &location).query("token", &buyer)).await,
            "a cancellation",
        );
        let id = location.rsplit('/').next().expect("an id");
        let payment = json!({
            "paymentId": "p-1", "reservationId": id, "status": "PAID", "amount": 500, "currency": "KRW",
        });
        is_unavailable(&app.send(App::webhook(&payment)).await, "a payment");
        let lost = format!("/api/booking/{}.{}", app.event, uuid_of(&looker));
        is_unavailable(&app.send(Call::new("GET", &lost).query("token", &looker)).await, "what may be lost");
        // All else goes on.
        let again = app.book(&buyer, json!({ "seatCount": 1 })).await;
        assert_eq!(again.data()["reservationId"], booked.data()["reservationId"], "the same again");
        assert_eq!(
            app.send(Call::new("GET", &location).query("token", &buyer)).await.data()["status"],
            "PENDING_PAYMENT"
        );
        let joined = app.join().await;
        assert_eq!(app.poll(&joined).await.data()["status"], "WAITING");
        app.pass(1_000);
        let tick = app.tick().await;
        assert_eq!((tick.epoch, tick.recovering, tick.admitted), (2, true, 0), "after epoch {epoch}");
        assert_eq!(app.leave(&joined).await.data()["removed"], true);
    }
    let relayed_at = async || {
        failing.app.store.event_state(&failing.app.event).await.expect("an answer").expect("known").relayed_at
    };
    assert_eq!(relayed_at().await, None, "only a relay leaves its time");
    let ends = async |epoch| failing.app.store.recovered(&failing.app.event, epoch).await.expect("an answer");
    assert_eq!(ends(1).await, Ok(false), "another epoch's recovery");
    let seen = failing.app.store.recover(&failing.app.event).await.expect("an answer");
    assert!(matches!(seen, Ok(Recovery::Recovering { epoch: 2, since, now }) if since < now), "{seen:?}");
    assert_eq!(relayed_at().await, Some(failing.app.store.clock().await.expect("a clock")));
    assert_eq!(ends(2).await, Ok(true));
    assert_eq!(ends(2).await, Ok(true), "once more");
    assert_eq!(
        failing.app.store.recover(&failing.app.event).await.expect("an answer"),
        Ok(Recovery::Healthy { epoch: 2 })
    );
    assert_eq!(failing.app.book(&holder, json!({})).await.status, 201);
    failing.app.join().await;
    failing.app.pass(1_000);
    assert_eq!(failing.app.tick().await.admitted, 1, "people are let in again");
}

/// The reservation that a token would make.
fn uuid_of(token: &str) -> String {
    let event = "any".parse().expect("an event id");
    domain::ReservationId::of(event, token.parse().expect("a token")).uuid().to_string()
}

#[tokio::test]
async fn a_payment_that_came_meanwhile_expires_nothing() {
    let mut failing = Failing::with(|sale| {
        sale["payment"] = json!({ "mode": "deferred", "dueAfterSeconds": 60, "currency": "KRW" });
    })
    .await;
    let buyer = failing.app.active().await;
    let booked = failing.app.book(&buyer, json!({ "seatCount": 1 })).await;
    failing.fail_over().await;
    failing.app.pass(60_000);
    let tick = failing.app.tick().await;
    assert_eq!((tick.recovering, tick.overdue), (true, Vec::new()), "the payment may have been lost");
    let id = booked.data()["reservationId"].as_str().expect("an id").parse().expect("a reservation's id");
    assert!(!failing.app.store.expire(&id).await.expect("an answer"));
    failing.app.store.recovered(&failing.app.event, 2).await.expect("an answer").expect("known");
    assert_eq!(failing.app.tick().await.overdue, std::slice::from_ref(&id));
    assert!(failing.app.store.expire(&id).await.expect("an answer"));
}

#[tokio::test]
async fn a_lost_place_comes_back_where_it_stood_and_nobody_overtakes() {
    let mut failing = Failing::with(|sale| sale["admission"]["perSecond"] = json!(1)).await;
    let [served, gone, lost, behind] =
        [failing.join().await, failing.join().await, failing.join().await, failing.join().await];
    failing.app.pass(1_000);
    failing.app.tick().await;
    assert_eq!(failing.app.leave(&gone.0).await.data()["removed"], true);
    failing.lose(&lost.0).await;
    failing.fail_over().await;

    // At once, though no tick has noticed.
    let back = failing.come_back(&lost).await;
    assert_eq!((&back.data()["token"], &back.data()["rejoined"]), (&json!(lost.0), &json!(true)));
    assert_eq!((&back.data()["ticketNumber"], &back.data()["rank"]), (&json!(3), &json!(1)));
    assert_eq!(failing.rank(&behind).await, 2);
    assert_eq!(failing.come_back(&lost).await.data()["rank"], 1, "once more");
    assert_eq!(failing.come_back(&behind).await.data()["ticketNumber"], 4, "a place that was not lost");

    // Who has left, and who was served, stay where they are.
    let anew = failing.come_back(&gone).await;
    assert_eq!((&anew.data()["rejoined"], &anew.data()["rank"]), (&json!(false), &json!(3)));
    assert_ne!(anew.data()["token"], json!(gone.0));
    assert_eq!(failing.come_back(&served).await.data()["status"], "ACTIVE");

    // Numbers that the loss may have taken are not given out again.
    failing.app.tick().await;
    let joined = failing.app.send(Call::new("POST", "/api/queue/join")).await;
    assert_eq!(joined.data()["ticketNumber"], json!(1_000_006));
}

#[tokio::test]
async fn a_key_moves_nobody_but_the_lost() {
    let mut failing = Failing::with(|sale| sale["admission"]["perSecond"] = json!(2)).await;
    let [first, second, third] = [failing.join().await, failing.join().await, failing.join().await];
    // Without a loss an unknown token's key is worth nothing, in this epoch and the next.
    failing.lose(&third.0).await;
    assert_eq!(failing.come_back(&third).await.data()["rejoined"], false);
    failing.lose(&first.0).await;
    failing.app.pass(1_000);
    failing.app.tick().await;
    failing.fail_over().await;
    let late = failing.come_back(&first).await;
    assert_eq!(late.data()["rejoined"], json!(false), "the second was served, and stood behind");
    assert_eq!(failing.come_back(&second).await.data()["status"], "ACTIVE");
    // Nor is somebody else's key, or one of another sale.
    let token = failing.join().await.0;
    failing.lose(&token).await;
    failing.fail_over().await;
    assert_eq!(failing.come_back(&(token, first.1)).await.data()["rejoined"], false);
}

#[tokio::test]
async fn places_of_before_the_opening_come_back_too() {
    for pre_queue in ["fifo", "shuffle"] {
        let mut failing = Failing::with(|sale| sale["preQueue"] = json!(pre_queue)).await;
        failing.app.at(OPENS_AT - 60_000);
        let mut places = Vec::new();
        for _ in 0..6 {
            places.push(failing.join().await);
        }
        let ranks_at_the_opening = async |failing: &Failing| {
            failing.app.at(OPENS_AT);
            let mut ranks = Vec::new();
            for place in &places {
                ranks.push(failing.rank(place).await);
            }
            failing.app.at(OPENS_AT - 50_000);
            ranks
        };
        let before = ranks_at_the_opening(&failing).await;
        for place in &places[1..4] {
            failing.lose(&place.0).await;
        }
        failing.fail_over().await;
        failing.app.tick().await;
        for place in [&places[3], &places[1]] {
            let back = failing.come_back(place).await;
            assert_eq!((&back.data()["rejoined"], &back.data()["rank"]), (&json!(true), &Value::Null));
        }
        // One comes back only after the opening.
        failing.app.at(OPENS_AT);
        assert_eq!(failing.come_back(&places[2]).await.data()["rejoined"], true);
        assert_eq!(ranks_at_the_opening(&failing).await, before, "{pre_queue}");
    }
}
