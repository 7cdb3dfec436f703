//! A sale that is over is forgotten by Redis and kept by PostgreSQL.

use admin::{AdminState, Command, Refused, Reply};
use bootstrap::config::MasterKeys;
use domain::fact::What;
use serde_json::json;
use store::{Deletion, Load};
use support::{App, Call, MASTER_KEY, OPENS_AT, Redis, Topology};

use crate::deliver::{Database, journal, write_journal};

struct Operated {
    app: App,
    database: Database,
    admin: AdminState,
}

impl Operated {
    async fn start(app: App) -> Self {
        let database = Database::fresh().await;
        let master = MasterKeys::new(MASTER_KEY, None).expect("a master key");
        let admin = AdminState::new(app.store.clone(), database.records.clone(), master);
        Self { app, database, admin }
    }

    async fn delete(&self) -> Reply {
        let (event, by) = (self.app.event.clone(), "kim".to_owned());
        let command = Command::Delete { event, by, patience_seconds: 0 };
        admin::admin(&self.admin, command).await.expect("redis answers")
    }

    /// Why it was not deleted.
    async fn refused(&self) -> String {
        match self.delete().await {
            Reply::Refused(refused) => refused.to_string(),
            other => panic!("{other:?}"),
        }
    }

    async fn close(&self) {
        let command = Command::Close { event: self.app.event.clone(), by: "kim".to_owned() };
        let closed = admin::admin(&self.admin, command).await.expect("redis answers");
        assert!(matches!(closed, Reply::Changed { .. }), "{closed:?}");
    }

    /// Everything that Redis has of the sale, the set of all events included.
    async fn keys(&self) -> Vec<String> {
        let redis = Redis::shared(Topology::chosen());
        let event = &self.app.event;
        let mut connection = redis.connection_of(&format!("ticket:{{{event}}}:meta")).await;
        let keys = redis::cmd("KEYS").arg(format!("*{event}*")).query_async(&mut connection).await;
        let mut keys: Vec<String> = keys.expect("redis answers");
        if self.app.store.events().await.expect("redis answers").contains(event) {
            keys.push("ticket:events".to_owned());
        }
        keys
    }
}

/// A sale with something in as many keys as people can fill: places, sessions, holds, bookings, payments, limits.
async fn busy_sale() -> Operated {
    let app = App::with(|sale| {
        sale["payment"] = json!({ "mode": "deferred", "dueAfterSeconds": 600, "currency": "KRW" });
    });
    let operated = Operated::start(app.await).await;
    let app = &operated.app;
    let buyer = app.active().await;
    let named = Call::new("POST", "/api/booking").header("idempotency-key", "once");
    let booked = app.send(named.json(&json!({ "token": buyer, "seatCount": 1 }))).await;
    let late = json!({
        "paymentId": "p-1", "reservationId": booked.data()["reservationId"], "status": "PAID", "amount": 1,
        "currency": "KRW",
    });
    assert_eq!(app.send(App::webhook(&late)).await.code(), "AMOUNT_MISMATCH");
    let holder = app.active().await;
    app.hold(&holder, json!({ "offeringId": "T1", "seats": ["1A"] })).await.data();
    for _ in 0..3 {
        let token = app.join().await;
        app.poll(&token).await.data();
        app.leave(&token).await.data();
    }
    app.join().await;
    operated
}

#[tokio::test]
async fn what_somebody_needs_stays_and_what_is_over_goes() {
    let operated = busy_sale().await;
    let app = &operated.app;
    let facts = journal(app).await.len();
    assert!(operated.refused().await.contains("is open: close it first"));
    assert_eq!(journal(app).await.len(), facts, "nothing was noted");
    operated.close().await;
    assert!(operated.refused().await.contains("people still inside of"));
    app.pass(300_000);
    app.tick().await;
    assert!(operated.refused().await.contains("yet to be paid: 1;"));
    app.pass(600_000);
    admit::tick_event(&app.store, &app.event, Load::default()).await;
    assert!(operated.refused().await.contains("no queue has taken yet"));
    assert!(operated.keys().await.len() > 15, "{:?}", operated.keys().await);
    write_journal(app, &operated.database.records).await;
    let Reply::Deleted { event, keys } = operated.delete().await else { panic!("it is over") };
    assert_eq!(event, app.event);
    assert!(keys > 10, "{keys}");
    assert_eq!(operated.keys().await, Vec::<String>::new());

    // Nobody finds it any more; PostgreSQL has all of it, and who deleted it.
    let token = domain::Token::random().to_string();
    assert_eq!(app.poll(&token).await.code(), "EVENT_NOT_FOUND");
    assert_eq!(app.post("/api/queue/join", json!({})).await.code(), "EVENT_NOT_FOUND");
    assert!(operated.refused().await.contains("there is no event"));
    let records = &operated.database.records;
    let changes = records.facts(&app.event, "EVENT_CHANGED", None, 100).await.expect("PostgreSQL answers");
    let last = changes.last().map(|fact| &fact.what);
    assert!(matches!(last, Some(What::EventChanged { by, change, .. }) if by == "kim" && change == "delete"));
    assert_eq!(operated.database.reservations(&app.event).await.len(), 1);

    // Its id is not to be had again: seats that PostgreSQL has sold would be sold once more.
    let definition = support::sale(app.event.as_str()).to_string().into();
    let again = Command::Apply { definition, opens_at: None, by: "kim".to_owned() };
    let again = admin::admin(&operated.admin, again).await.expect("redis and PostgreSQL answer");
    assert_eq!(again, Reply::Refused(Refused::Recorded { event: app.event.clone() }));
    assert_eq!(operated.keys().await, Vec::<String>::new());
}

#[tokio::test]
async fn a_sale_that_never_opened_goes_unless_people_wait_for_it() {
    let operated = Operated::start(App::start().await).await;
    let app = &operated.app;
    app.at(OPENS_AT - 60_000);
    let token = app.join().await;
    assert!(operated.refused().await.contains("to open: 1;"));
    app.leave(&token).await.data();
    write_journal(app, &operated.database.records).await;
    assert!(operated.refused().await.contains("no queue has taken yet: 1;"), "the deletion itself");
    // Opened in between, it stays.
    app.at(OPENS_AT);
    assert!(operated.refused().await.contains("is open"));
    app.at(OPENS_AT - 60_000);
    write_journal(app, &operated.database.records).await;
    assert!(matches!(operated.delete().await, Reply::Deleted { .. }));
}

#[tokio::test]
async fn a_deletion_that_was_interrupted_is_finished_by_the_next() {
    let operated = busy_sale().await;
    let app = &operated.app;
    operated.close().await;
    app.pass(900_000);
    admit::tick_event(&app.store, &app.event, Load::default()).await;
    write_journal(app, &operated.database.records).await;
    let noted = app.store.delete(&app.event, "kim").await.expect("redis answers");
    assert_eq!(noted, Ok(Deletion::Noted { journal: 1 }));
    write_journal(app, &operated.database.records).await;
    let deleted = app.store.delete(&app.event, "kim").await.expect("redis answers");
    assert_eq!(deleted, Ok(Deletion::Deleted), "and whoever asked is gone");
    assert!(!operated.keys().await.is_empty());
    assert!(matches!(operated.delete().await, Reply::Deleted { keys, .. } if keys > 5));
    assert_eq!(operated.keys().await, Vec::<String>::new());
}
