//! A replica that has not got the newest writes is promoted: what was answered is back before anything is sold again, and
//! lost places come back where they stood.

use admin::{AdminState, Command, Reply};
use bootstrap::config::MasterKeys;
use domain::reservation::ReservationStatus;
use serde_json::{Value, json};
use support::{Answer, App, Call, Function, MASTER_KEY, Redis, Topology, wait_until};

use crate::world::{LONG, World, answered, purchase};

/// A pair of which the replica has stopped to follow: what is written from now on dies with the primary.
struct Pair {
    world: World,
    replica: String,
}

impl Pair {
    async fn new(change: impl FnOnce(&mut Value)) -> Self {
        let redis = Redis::start(Topology::Replica);
        let replica = redis.config().read_url.expect("a replica");
        Self { world: World::around(redis, true, change).await, replica }
    }

    async fn ask(url: &str, command: &mut redis::Cmd) -> String {
        let client = redis::Client::open(url).expect("a URL of Redis");
        let mut connection =
            client.get_multiplexed_async_connection().await.expect("Redis takes a connection");
        command.query_async(&mut connection).await.expect("Redis answers")
    }

    /// The replica has all that was written, and follows no more.
    async fn fall_behind(&self) {
        self.world.replicated().await;
        Self::ask(&self.replica, redis::cmd("REPLICAOF").arg("NO").arg("ONE")).await;
    }

    /// The primary is killed, and its address leads to the replica.
    async fn fail_over(&self) {
        let about = Self::ask(self.world.server.url(), redis::cmd("INFO").arg("server")).await;
        let pid = about.lines().find_map(|line| line.strip_prefix("process_id:")).expect("a process id");
        let killed = std::process::Command::new("kill").args(["-s", "KILL", pid.trim()]).status();
        assert!(killed.expect("kill runs").success());
        self.world.redis.lead_to(&self.replica);
        self.world.redis.cut();
    }

    async fn findings(&self) -> Vec<String> {
        let master = MasterKeys::new(MASTER_KEY, None).expect("a master key");
        let records = records::Records::open(&records::RecordsConfig::new(&self.world.database_url));
        let state = AdminState::new(self.world.app.store.clone(), records.expect("a URL"), master);
        let audit = Command::Audit {
            event: self.world.app.event.clone(),
            patience_seconds: 30,
            repair: false,
            by: "tests".to_owned(),
        };
        match admin::admin(&state, audit).await.expect("an answer") {
            Reply::Audited(report) => report.findings.iter().map(|finding| format!("{finding:?}")).collect(),
            other => panic!("{other:?}"),
        }
    }
}

async fn join(app: &App) -> (String, String) {
    let joined = app.send(Call::new("POST", "/api/queue/join")).await;
    let text = |name: &str| joined.data()[name].as_str().expect("a text").to_owned();
    (text("token"), text("key"))
}

async fn come_back(app: &App, (token, key): &(String, String)) -> Answer {
    app.send(Call::new("POST", "/api/queue/rejoin").json(&json!({ "token": token, "key": key }))).await
}

async fn bought(book: &Function, token: &str) -> Value {
    let (status, body) = answered(book.invoke(&purchase(token)).await);
    assert_eq!(status, 201, "{body}");
    body["data"].clone()
}

#[tokio::test]
async fn what_was_sold_before_a_failover_is_never_sold_again() {
    let pair = Pair::new(|sale| sale["offerings"][0]["sections"][1]["capacity"] = json!(2)).await;
    let (world, app) = (&pair.world, &pair.world.app);
    let book = world.book().await;
    let (first, second, third) = (world.active().await, world.active().await, world.active().await);
    let kept = bought(&book, &first).await;
    pair.fall_behind().await;
    // The last one of the section, by the function that a buyer reaches: the answer tells that the queue has it.
    let lost = bought(&book, &second).await;
    pair.fail_over().await;

    // From the first moment on nobody gets it once more.
    let mut refusals = 0;
    pair.world
        .run_until("the sale goes on", async || {
            let other = app.book(&third, json!({ "seatCount": 1 })).await;
            match other.status {
                503 => refusals += 1,
                409 => {
                    assert_eq!(other.code(), "SOLD_OUT");
                    return true;
                }
                _ => panic!("sold twice: {}", other.text),
            }
            false
        })
        .await;
    assert!(refusals > 0, "the sale waited for what was lost");

    let sold = world.sold().await;
    let ids: Vec<String> = sold.iter().map(|known| known.reservation_id.to_string()).collect();
    for answered in [&kept, &lost] {
        let id = answered["reservationId"].as_str().expect("an id");
        assert!(ids.iter().any(|known| known == id), "{id} is gone");
    }
    assert!(sold.iter().all(|known| known.status == ReservationStatus::Confirmed), "{sold:?}");
    assert_eq!(
        app.book(&second, json!({ "seatCount": 1 })).await.data()["reservationId"],
        lost["reservationId"]
    );
    assert_eq!(app.poll(&second).await.data()["status"], "BOOKED");
    let free = json!({ "offeringId": "T1", "seats": ["1A"] });
    assert_eq!(app.hold(&third, free).await.status, 200, "everything else is sold as before");
    world.settles().await;
    assert_eq!(pair.findings().await, Vec::<String>::new());
}

#[tokio::test]
async fn a_cancellation_or_payment_that_a_failover_lost_is_not_undone() {
    let pair = Pair::new(|sale| {
        sale["payment"] = json!({ "mode": "deferred", "dueAfterSeconds": 3600, "currency": "KRW" });
    })
    .await;
    let (world, app) = (&pair.world, &pair.world.app);
    let book = world.book().await;
    let (one, other) = (world.active().await, world.active().await);
    let (kept, given_back) = (bought(&book, &one).await, bought(&book, &other).await);
    pair.fall_behind().await;
    let id = given_back["reservationId"].as_str().expect("an id");
    let cancel = Call::new("DELETE", &format!("/api/booking/{id}")).query("token", &other);
    let (status, body) = answered(book.invoke(&cancel.event()).await);
    assert_eq!((status, &body["data"]["status"]), (200, &json!("CANCELLED")), "{body}");
    let pay = world.pay().await;
    let webhook = App::webhook(&json!({
        "paymentId": "p-1", "reservationId": kept["reservationId"], "status": "PAID", "amount": kept["amount"],
        "currency": "KRW",
    }));
    let (status, body) = answered(pay.invoke(&webhook.event()).await);
    assert_eq!((status, &body["data"]["status"]), (200, &json!("PAID")), "{body}");
    pair.fail_over().await;

    // Paying once more is how providers ask; it must find what it had said.
    pair.world
        .run_until("the sale goes on", async || match app.send(webhook.clone()).await {
            again if again.status == 503 => false,
            again => {
                assert_eq!(again.data()["status"], "PAID");
                true
            }
        })
        .await;
    let mut ends: Vec<ReservationStatus> = world.sold().await.iter().map(|known| known.status).collect();
    ends.sort_by_key(|status| status.as_str());
    assert_eq!(ends, [ReservationStatus::Cancelled, ReservationStatus::Paid]);
    world.settles().await;
    assert_eq!(pair.findings().await, Vec::<String>::new());
}

#[tokio::test]
async fn people_keep_their_places_through_a_failover() {
    let pair = Pair::new(|sale| sale["admission"]["perSecond"] = json!(0.5)).await;
    let (world, app) = (&pair.world, &pair.world.app);
    let inside = world.active().await;
    let (ahead, left) = (join(app).await, join(app).await);
    assert_eq!(app.leave(&left.0).await.data()["removed"], true);
    pair.fall_behind().await;
    let lost = [join(app).await, join(app).await, join(app).await];
    pair.fail_over().await;

    // They come back in another order than they came, and find the one in which they came.
    for at in [2, 0, 1] {
        wait_until(LONG, "an answer", async || come_back(app, &lost[at]).await.status == 200).await;
    }
    let back = come_back(app, &left).await;
    assert_eq!(back.data()["rejoined"], false, "who has left stands at the end");
    let mut ranks = vec![come_back(app, &ahead).await.data()["rank"].clone()];
    for place in &lost {
        let back = come_back(app, place).await;
        assert_eq!(back.data()["token"], json!(place.0));
        ranks.push(back.data()["rank"].clone());
    }
    ranks.push(app.poll(back.data()["token"].as_str().expect("a token")).await.data()["rank"].clone());
    let first = ranks[0].as_u64().expect("a rank");
    assert_eq!(ranks, (first..first + 5).map(Value::from).collect::<Vec<_>>());
    assert_eq!(app.poll(&inside).await.data()["status"], "ACTIVE");
    pair.world
        .run_until("the recovery ends", async || {
            matches!(app.store.recover(&app.event).await, Ok(Ok(store::Recovery::Healthy { epoch: 2 })))
        })
        .await;
    world.settles().await;
    assert_eq!(pair.findings().await, Vec::<String>::new());
}
