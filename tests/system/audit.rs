//! An audit finds what was damaged on purpose, and nothing else.

use admin::{AdminState, AuditReport, Command, Fault, Reply};
use bootstrap::config::MasterKeys;
use domain::Token;
use domain::fact::{CalledPlace, Fact, What};
use redis::{Cmd, FromRedisValue};
use serde_json::json;
use store::{KeyName, Keys};
use support::{App, Call, MASTER_KEY, Redis, Topology};

use crate::deliver::{Database, journal, write_journal};

/// A sale in which some have booked, one has cancelled, one holds seats and one waits. Its facts are in the journal.
pub(crate) struct Sale {
    pub(crate) app: App,
    pub(crate) database: Database,
    /// Who holds seat 3A and one place of the general section.
    pub(crate) holder: String,
    /// Who bought the seats.
    pub(crate) buyer: String,
    /// What is sold: seats 1A and 1B, and two places of the general section.
    pub(crate) seats: String,
    pub(crate) places: String,
}

impl Sale {
    async fn running() -> Self {
        let (app, database) = (App::start().await, Database::fresh().await);
        let hold = async |token: &str, seats: &[&str]| {
            app.hold(token, json!({ "offeringId": "T1", "seats": seats })).await.data();
        };
        let (buyer, other, fickle) = (app.active().await, app.active().await, app.active().await);
        hold(&buyer, &["1A", "1B"]).await;
        let seats = id(&app.book(&buyer, json!({})).await);
        let places = id(&app.book(&other, json!({ "seatCount": 2 })).await);
        hold(&fickle, &["2A"]).await;
        let cancelled = id(&app.book(&fickle, json!({})).await);
        let cancel = Call::new("DELETE", &format!("/api/booking/{cancelled}")).query("token", &fickle);
        app.send(cancel).await.data();
        let holder = app.active().await;
        hold(&holder, &["3A"]).await;
        app.hold(&holder, json!({ "count": 1 })).await.data();
        app.join().await;
        Self { app, database, holder, buyer, seats, places }
    }

    /// The same with all its facts in PostgreSQL.
    pub(crate) async fn written() -> Self {
        let sale = Self::running().await;
        write_journal(&sale.app, &sale.database.records).await;
        sale
    }

    pub(crate) fn admin(&self) -> AdminState {
        let master = MasterKeys::new(MASTER_KEY, None).expect("a master key");
        AdminState::new(self.app.store.clone(), self.database.records.clone(), master)
    }

    pub(crate) async fn audit(&self) -> AuditReport {
        self.audit_or_repair(false).await
    }

    pub(crate) async fn audit_or_repair(&self, repair: bool) -> AuditReport {
        let (event, by) = (self.app.event.clone(), "tests".to_owned());
        let command = Command::Audit { event, patience_seconds: 0, repair, by };
        match admin::admin(&self.admin(), command).await.expect("redis and PostgreSQL answer") {
            Reply::Audited(report) => report,
            other => panic!("{other:?}"),
        }
    }

    /// What is found wrong with the order of calls; their pace is another matter.
    async fn turns(&self) -> Vec<Fault> {
        let found = self.audit().await.findings.into_iter().map(|finding| finding.what);
        found.filter(|what| *what != Fault::AdmittedTooFast).collect()
    }

    pub(crate) fn key(&self, name: KeyName) -> String {
        Keys::of(&self.app.event).name(name)
    }

    pub(crate) fn reservation(&self, id: &str) -> String {
        Keys::of(&self.app.event).reservation(&id.parse().expect("an id")).name(KeyName::Reservation)
    }

    pub(crate) async fn redis(&self, command: &Cmd) {
        self.ask::<()>(command).await;
    }

    pub(crate) async fn ask<T: FromRedisValue>(&self, command: &Cmd) -> T {
        let mut connection = Redis::shared(Topology::chosen()).connection_of(&self.key(KeyName::Meta)).await;
        command.query_async(&mut connection).await.expect("redis does it")
    }
}

pub(crate) fn id(booked: &support::Answer) -> String {
    booked.data()["reservationId"].as_str().expect("an id").to_owned()
}

pub(crate) fn command(name: &str, arguments: &[&str]) -> Cmd {
    let mut command = redis::cmd(name);
    command.arg(arguments);
    command
}

#[tokio::test]
async fn an_undamaged_sale_is_clean_wherever_its_facts_are() {
    let sale = Sale::running().await;
    let report = sale.audit().await;
    assert_eq!(report.findings, [], "all facts in the journal");
    assert_eq!((report.checked.rows, report.checked.reservations, report.checked.holds), (0, 3, 2));
    assert_eq!(report.left_out, Vec::<String>::new());

    // Half of them taken: bookings without their cancellation, calls without their line.
    let facts = journal(&sale.app).await;
    let half = &facts[..facts.len() / 2];
    sale.database.records.write(&[half.to_vec()]).await.expect("PostgreSQL answers");
    let ids: Vec<_> = half.iter().map(|fact| fact.id).collect();
    sale.app.store.forget(&sale.app.event, &ids).await.expect("redis answers");
    assert_eq!(sale.audit().await.findings, [], "half of them in the journal");

    // Written, and not yet forgotten.
    sale.database.records.write(&[facts]).await.expect("PostgreSQL answers");
    assert_eq!(sale.audit().await.findings, [], "in both");
    write_journal(&sale.app, &sale.database.records).await;
    let report = sale.audit().await;
    assert_eq!((report.findings, report.more), (Vec::new(), 0), "all in PostgreSQL");
    assert_eq!((report.checked.rows, report.checked.journal, report.checked.admitted), (3, 0, 4));
}

/// Damages a sale by one command to Redis and expects the finding.
async fn redis_damage(expected: Fault, damage: impl FnOnce(&Sale) -> Cmd) {
    let sale = Sale::written().await;
    sale.redis(&damage(&sale)).await;
    let report = sale.audit().await;
    let kinds: Vec<Fault> = report.findings.iter().map(|finding| finding.what).collect();
    assert!(kinds.contains(&expected), "no {expected:?} in {:?}", report.findings);
}

/// Damages PostgreSQL and expects this finding and no other.
async fn row_damage(expected: Fault, damage: impl FnOnce(&Sale) -> String) {
    let sale = Sale::written().await;
    assert!(sale.database.execute(&damage(&sale)).await > 0, "nothing was damaged");
    let report = sale.audit().await;
    let kinds: Vec<Fault> = report.findings.iter().map(|finding| finding.what).collect();
    assert_eq!(kinds, [expected], "{:?}", report.findings);
}

/// The map's first section is T1/A: rows of four seats and a `/` each.
const SEAT_1A: &str = "0";
const SEAT_3A: &str = "10";
const SEAT_4A: &str = "15";

#[tokio::test]
async fn a_byte_of_the_seat_map() {
    let paint = |seat: &'static str, byte: &'static str| {
        move |sale: &Sale| command("SETRANGE", &[&sale.key(KeyName::Map), seat, byte])
    };
    redis_damage(Fault::MapDiffersFromReservations, paint(SEAT_4A, "s")).await;
    redis_damage(Fault::MapDiffersFromReservations, paint(SEAT_1A, ".")).await;
    redis_damage(Fault::MapDiffersFromHolds, paint(SEAT_4A, "h")).await;
    redis_damage(Fault::MapDiffersFromHolds, paint(SEAT_3A, ".")).await;
    redis_damage(Fault::MapDiffersFromLayout, paint(SEAT_4A, "/")).await;
}

#[tokio::test]
async fn a_counter() {
    let stock = |section: &'static str, by: &'static str| {
        move |sale: &Sale| command("HINCRBY", &[&sale.key(KeyName::Stock), section, by])
    };
    redis_damage(Fault::StockDiffers, stock("0", "1")).await;
    redis_damage(Fault::StockDiffers, stock("1", "-1")).await;
    redis_damage(Fault::NegativeCounter, stock("1", "-100")).await;
    redis_damage(Fault::CounterWithoutSection, stock("77", "1")).await;
    redis_damage(Fault::RemainingDiffersFromStock, |sale| {
        command("INCRBY", &[&sale.key(KeyName::Remaining), "3"])
    })
    .await;
}

#[tokio::test]
async fn a_hold() {
    redis_damage(Fault::MapDiffersFromHolds, |sale| command("HDEL", &[&sale.key(KeyName::Holds), SEAT_3A]))
        .await;
    redis_damage(Fault::HoldsDifferFromDue, |sale| command("ZREM", &[&sale.key(KeyName::Due), SEAT_3A]))
        .await;
    redis_damage(Fault::UnreadableHold, |sale| command("HSET", &[&sale.key(KeyName::Holds), SEAT_3A, "?"]))
        .await;
}

#[tokio::test]
async fn a_reservation_in_redis() {
    let change = |field: &'static str, value: &'static str| {
        move |sale: &Sale| command("HSET", &[&sale.reservation(&sale.seats), field, value])
    };
    redis_damage(Fault::DifferentRow, change("currency", "USD")).await;
    redis_damage(Fault::DifferentRow, change("status", "CANCELLED")).await;
    redis_damage(Fault::DifferentRow, change("version", "9")).await;
    redis_damage(Fault::MapDiffersFromReservations, change("items", "0@1000=15,16")).await;
    redis_damage(Fault::SeatSoldTwice, |sale| {
        command("HSET", &[&sale.reservation(&sale.places), "items", "0@1000=0,1"])
    })
    .await;
    redis_damage(Fault::UnknownRow, |sale| command("DEL", &[&sale.reservation(&sale.seats)])).await;
}

#[tokio::test]
async fn a_place_in_the_line_and_an_entry_of_the_journal() {
    redis_damage(Fault::TwiceInLine, |sale| {
        command("ZADD", &[&sale.key(KeyName::Waiting), "99", &sale.holder])
    })
    .await;
    redis_damage(Fault::UnreadableFact, |sale| {
        command("XADD", &[&sale.key(KeyName::Journal), "*", "kind", "BOOKED", "epoch", "1", "at", "1"])
    })
    .await;
}

#[tokio::test]
async fn a_row_of_postgres() {
    let of = |sale: &Sale| format!("WHERE reservation_id = '{}'", sale.places);
    row_damage(Fault::MissingRow, |sale| format!("DELETE FROM reservations {}", of(sale))).await;
    row_damage(Fault::DifferentRow, |sale| {
        format!("UPDATE reservations SET status = 'CANCELLED' {}", of(sale))
    })
    .await;
    row_damage(Fault::DifferentRow, |sale| format!("UPDATE reservations SET amount = 1 {}", of(sale))).await;
    row_damage(Fault::DifferentRow, |sale| format!("UPDATE reservation_places SET count = 1 {}", of(sale)))
        .await;
    row_damage(Fault::DifferentRow, |sale| {
        format!("UPDATE reservations SET token = gen_random_uuid() {}", of(sale))
    })
    .await;
}

#[tokio::test]
async fn a_third_call_of_one_person_and_a_call_out_of_turn() {
    let sale = Sale::written().await;
    let told = sale.database.records.facts(&sale.app.event, "USER_ADMITTED", None, 100).await;
    let told: Vec<Fact> = told.expect("PostgreSQL answers");
    // Who was called last: an earlier one may have come back with another score, which begins a new count.
    let last = told.last().expect("people were called");
    let What::UserAdmitted { places } = &last.what else { panic!("{told:?}") };
    let stranger = CalledPlace { token: Token::random(), score: 1 };
    let later = |by: u64, places: Vec<CalledPlace>| {
        let mut fact = last.clone();
        // Of the same millisecond, where no entry of the journal stands: a fact that is there is not written again.
        fact.id.sequence += 1_000_000 + by;
        fact.what = What::UserAdmitted { places };
        fact
    };
    // One re-entry is fine; a second one is not, nor anybody new who stood before those called already.
    sale.database.records.write(&[vec![later(1, places.clone())]]).await.expect("PostgreSQL answers");
    assert_eq!(sale.turns().await, []);
    let facts = vec![later(2, places.clone()), later(3, vec![stranger])];
    sale.database.records.write(&[facts]).await.expect("PostgreSQL answers");
    assert_eq!(sale.turns().await, [Fault::AdmittedTooOften, Fault::AdmittedOutOfTurn]);
}
