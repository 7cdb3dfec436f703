//! Redis emptied in the middle of a sale: all that PostgreSQL knows is back, in its order.

use std::time::Instant;

use admin::{Command, Fault, RebuildReport, Refused, Reply};
use recovery::{Progress, Rebuilt};
use serde_json::{Value, json};
use store::{EVENTS, KeyName};
use support::{Redis, Topology};

use crate::audit::{Sale, command};
use crate::deliver::write_journal;

impl Sale {
    /// Redis forgets the whole event.
    async fn lose(&self) {
        let mut connection = Redis::shared(Topology::chosen()).connection_of(&self.key(KeyName::Meta)).await;
        let pattern = format!("ticket:{{{}}}:*", self.app.event);
        let mut cursor = String::from("0");
        loop {
            let mut scan = redis::cmd("SCAN");
            scan.arg(&cursor).arg("MATCH").arg(&pattern).arg("COUNT").arg(1_000);
            let (next, keys): (String, Vec<String>) =
                scan.query_async(&mut connection).await.expect("redis answers");
            for key in keys {
                let () = command("DEL", &[&key]).query_async(&mut connection).await.expect("redis does it");
            }
            if next == "0" {
                break;
            }
            cursor = next;
        }
        let mut connection = Redis::shared(Topology::chosen()).connection_of(EVENTS).await;
        let forget = command("SREM", &[EVENTS, self.app.event.as_str()]);
        let () = forget.query_async(&mut connection).await.expect("redis does it");
    }

    async fn rebuild(&self) -> Result<RebuildReport, Refused> {
        let command = Command::Rebuild { event: self.app.event.clone(), by: "tests".to_owned() };
        match admin::admin(&self.admin(), command).await.expect("redis and PostgreSQL answer") {
            Reply::Rebuilt(report) => Ok(*report),
            Reply::Refused(refused) => Err(refused),
            other => panic!("{other:?}"),
        }
    }

    async fn line(&self) -> Vec<(String, f64)> {
        self.ask(&command("ZRANGE", &[&self.key(KeyName::Waiting), "0", "-1", "WITHSCORES"])).await
    }

    /// How Redis keeps what every request asks for a dozen fields of.
    async fn encoding(&self) -> String {
        self.ask(&command("OBJECT", &["ENCODING", &self.key(KeyName::Meta)])).await
    }

    async fn status(&self, token: &str) -> Value {
        self.app.poll(token).await.data()["status"].clone()
    }

    /// What is wrong beside a pace that a test's clock does not know.
    async fn wrong(&self) -> Vec<Fault> {
        let found = self.audit().await.findings.into_iter().map(|finding| finding.what);
        found.filter(|what| *what != Fault::AdmittedTooFast).collect()
    }

    /// The recovery that a rebuild leaves the event in is over: nothing is on its way any more.
    async fn recovered(&self) {
        self.redis(&command("HDEL", &[&self.key(KeyName::Meta), "recoveringSince"])).await;
    }
}

#[tokio::test]
async fn a_sale_of_which_redis_knows_nothing_is_back_in_its_order() {
    let sale = Sale::written().await;
    let app = &sale.app;
    let mut waiting = Vec::new();
    for _ in 0..5 {
        waiting.push(app.join().await);
    }
    let left = waiting.remove(2);
    app.leave(&left).await.data();
    write_journal(app, &sale.database.records).await;
    let line = sale.line().await;
    assert_eq!(sale.encoding().await, "hashtable");
    let before = app.store.event_state(&app.event).await.expect("redis answers").expect("known");
    let reservations = app.store.reservations(&app.event).await.expect("redis answers");

    sale.lose().await;
    assert_eq!(app.poll(&waiting[0]).await.code(), "EVENT_NOT_FOUND");
    app.pass(60_000);
    let report = sale.rebuild().await.expect("it was lost");
    assert_eq!((report.waiting, report.reservations.restored), (line.len() as u64, 3));

    assert_eq!(sale.line().await, line, "order and scores");
    assert_eq!(sale.encoding().await, "hashtable");
    let after = app.store.event_state(&app.event).await.expect("redis answers").expect("known");
    assert!(after.edition.version > before.edition.version && after.view.epoch > before.view.epoch);
    assert_eq!((after.view.head_score, after.view.net), (before.view.head_score, before.view.net));
    // Two places were held.
    assert_eq!(after.view.remaining_seats, before.view.remaining_seats + 2);
    let mut known = app.store.reservations(&app.event).await.expect("redis answers");
    known.sort_by(|one, other| one.reservation_id.cmp(&other.reservation_id));
    let mut expected = reservations;
    expected.sort_by(|one, other| one.reservation_id.cmp(&other.reservation_id));
    assert_eq!(known, expected);

    assert_eq!(sale.status(&sale.buyer).await, "BOOKED");
    assert_eq!(sale.status(&left).await, "NOT_FOUND");
    assert_eq!(sale.status(&sale.holder).await, "ACTIVE", "whoever was inside is called anew");
    assert_eq!(sale.wrong().await, []);
    sale.recovered().await;
    app.hold(&sale.holder, json!({ "offeringId": "T1", "seats": ["3A"] })).await.data();
    let last = app.join().await;
    assert_eq!(sale.line().await.last().expect("a line").0, last, "behind everybody");
    assert_eq!(app.rejoin(&waiting[0]).await.data()["rejoined"], json!(true));
    write_journal(app, &sale.database.records).await;
    assert_eq!(sale.wrong().await, []);
    assert!(matches!(sale.rebuild().await, Err(Refused::NotNow { .. })), "what is in place is never touched");
}

#[tokio::test]
async fn lapsed_people_keep_their_return_and_it_is_as_it_last_stood() {
    let sale = Sale::written().await;
    let app = &sale.app;
    let (lapses, late) = (app.join().await, app.join().await);
    app.pass(1_000);
    app.tick().await;
    app.pass(16_000);
    app.tick().await;
    for change in [
        store::StatusChange::Message("곧 다시 엽니다".to_owned()),
        store::StatusChange::Maintenance(true),
        store::StatusChange::Pause,
    ] {
        app.store.change(&app.event, "tests", &change).await.expect("redis answers").expect("known");
    }
    write_journal(app, &sale.database.records).await;
    sale.lose().await;
    // Longer than a lapsed place waits, but for the line no time has passed.
    app.pass(3_600_000);
    sale.rebuild().await.expect("it was lost");
    let poll = app.poll(&lapses).await;
    assert_eq!((&poll.data()["status"], &poll.data()["reentry"]), (&json!("EXPIRED"), &json!(true)));
    assert_eq!(app.rejoin(&lapses).await.data()["status"], "WAITING");
    let poll = app.poll(&lapses).await;
    assert_eq!(poll.data()["rank"], 1);
    assert_eq!(poll.data()["message"], "곧 다시 엽니다");
    assert_eq!(app.rejoin(&late).await.data()["rank"], 2);
    let state = app.store.event_state(&app.event).await.expect("redis answers").expect("known");
    assert_eq!((state.view.status, state.maintenance), (domain::outcome::SaleStatus::Paused, true));
}

#[tokio::test]
async fn a_rebuild_that_was_killed_half_way_is_run_again() {
    let sale = Sale::written().await;
    let app = &sale.app;
    for _ in 0..20 {
        app.join().await;
    }
    write_journal(app, &sale.database.records).await;
    let line = sale.line().await;
    sale.lose().await;
    let (store, records) = (app.store.clone(), sale.database.records.clone());
    let (event, (sender, receiver)) = (app.event.clone(), tokio::sync::oneshot::channel());
    let sender = std::sync::Mutex::new(Some(sender));
    let killed = tokio::spawn(async move {
        let told = |stage| {
            if stage == Progress::Restoring
                && let Some(sender) = sender.lock().expect("nobody panics").take()
            {
                let _ = sender.send(());
                // Long enough to be killed in.
                std::thread::sleep(std::time::Duration::from_millis(1));
            }
        };
        recovery::rebuild(&store, &records, &event, "tests", &told).await.map(|_| ())
    });
    receiver.await.expect("it comes so far");
    killed.abort();
    let _ = killed.await;
    let again = recovery::rebuild(&app.store, &sale.database.records, &app.event, "tests", &|_| {}).await;
    // Abort is asked for, not done: it may have come to its end.
    assert!(matches!(again.expect("both answer"), Rebuilt::Rebuilt(_) | Rebuilt::InPlace));
    assert_eq!(sale.line().await, line);
    assert_eq!(sale.wrong().await, []);
}

#[tokio::test]
async fn who_came_in_the_last_moment_comes_back_by_the_key_and_who_left_does_not() {
    let sale = Sale::written().await;
    let app = &sale.app;
    let known = app.join().await;
    write_journal(app, &sale.database.records).await;
    let keyed = async || {
        let joined = app.post("/api/queue/join", json!({})).await;
        let text = |field: &str| joined.data()[field].as_str().expect("a text").to_owned();
        (text("token"), text("key"))
    };
    // Their facts have not reached PostgreSQL when Redis is lost.
    let (first, second, keyless) = (keyed().await, keyed().await, keyed().await);
    sale.lose().await;
    sale.rebuild().await.expect("it was lost");
    let new = app.join().await;
    let rejoin = async |(token, key): &(String, String)| {
        app.post("/api/queue/rejoin", json!({ "token": token, "key": key })).await
    };
    for place in [&second, &first] {
        assert_eq!(rejoin(place).await.data()["rejoined"], true);
    }
    let stranger = app.rejoin(&keyless.0).await;
    let stranger = stranger.data()["token"].as_str().expect("a token");
    let line: Vec<String> = sale.line().await.into_iter().map(|(token, _)| token).collect();
    let expected = [&known, &first.0, &second.0, &new, stranger];
    assert_eq!(line[line.len() - 5..], expected, "nobody overtakes");
    app.leave(&first.0).await.data();
    assert_eq!(rejoin(&first).await.data()["rejoined"], false, "who left has left");
    // Those who were served are no newer than the head.
    assert_eq!(sale.wrong().await, []);
}

#[tokio::test]
async fn what_postgres_does_not_know_is_not_rebuilt() {
    let sale = Sale::written().await;
    let lost = Command::Rebuild { event: "never-was".parse().expect("an id"), by: "tests".to_owned() };
    let reply = admin::admin(&sale.admin(), lost).await.expect("redis and PostgreSQL answer");
    assert!(matches!(reply, Reply::Refused(Refused::EventNotFound { .. })), "{reply:?}");
}

/// Rebuilds a line of so many people, each tenth with an account, and tells how long it took.
async fn rebuild_a_line_of(people: u64) {
    let sale = Sale::written().await;
    let statement = format!(
        "INSERT INTO facts (event_id, epoch, stream_ms, stream_sequence, at_ms, body) \
         SELECT '{}', 1, 9000000000000, number, {}, jsonb_build_object('kind', 'USER_ENTER_QUEUE', \
         'token', gen_random_uuid(), 'ticketNumber', 1000 + number, 'score', 1000 + number) \
         || CASE WHEN number % 10 = 0 THEN jsonb_build_object('account', 'account-' || number) ELSE '{{}}' END \
         FROM generate_series(1, {people}) AS number",
        sale.app.event,
        sale.app.now(),
    );
    assert_eq!(sale.database.execute(&statement).await, people);
    sale.database.execute("ANALYZE facts").await;
    sale.lose().await;
    let started = Instant::now();
    let report = sale.rebuild().await.expect("it was lost");
    println!("{people} people in {:.1} s", started.elapsed().as_secs_f64());
    // One waited before.
    assert_eq!(report.waiting, people + 1);
    let size = async |name, how| sale.ask::<u64>(&command(how, &[&sale.key(name)])).await;
    assert_eq!(size(KeyName::Waiting, "ZCARD").await, people + 1);
    assert_eq!(size(KeyName::Accounts, "HLEN").await, people / 10);
    let scores: Vec<(String, u64)> =
        sale.ask(&command("ZRANGE", &[&sale.key(KeyName::Waiting), "-2", "-1", "WITHSCORES"])).await;
    assert_eq!(
        scores.into_iter().map(|(_, score)| score).collect::<Vec<_>>(),
        [people + 999, people + 1_000]
    );
    assert_eq!(sale.wrong().await, []);
}

#[tokio::test]
async fn a_line_of_twenty_thousand_is_rebuilt() {
    rebuild_a_line_of(20_000).await;
}

#[tokio::test]
#[ignore = "a minute, and a gigabyte of PostgreSQL"]
async fn a_line_of_a_million_is_rebuilt() {
    rebuild_a_line_of(1_000_000).await;
}
