//! What was damaged or lost on purpose is put right again, and what has no one right answer is left alone.

use admin::{AuditReport, Fault};
use domain::ReservationId;
use domain::reservation::{Reservation, ReservationStatus};
use recovery::RepairReport;
use redis::Cmd;
use serde_json::json;
use store::{KeyName, Keys};

use crate::audit::{Sale, command, id};
use crate::deliver::{journal, write_journal};

fn kinds(report: &AuditReport) -> Vec<Fault> {
    report.findings.iter().map(|finding| finding.what).collect()
}

/// Damages a sale, expects the finding, and that a repair leaves nothing of it; a second repair has nothing to do.
async fn mended(expected: Fault, damage: impl AsyncFnOnce(&Sale)) -> Sale {
    let sale = Sale::written().await;
    damage(&sale).await;
    let report = sale.audit().await;
    assert!(kinds(&report).contains(&expected), "no {expected:?} in {:?}", report.findings);
    assert_eq!(report.mended, None, "nobody asked for it");
    let report = sale.audit_or_repair(true).await;
    assert_eq!(report.findings, [], "{expected:?} after {:?}", report.mended);
    assert!(report.mended.is_some());
    write_journal(&sale.app, &sale.database.records).await;
    let report = sale.audit_or_repair(true).await;
    assert_eq!((report.findings, report.mended), (Vec::new(), None), "{expected:?}");
    sale
}

async fn redis(expected: Fault, damage: impl FnOnce(&Sale) -> Cmd) -> Sale {
    mended(expected, async |sale: &Sale| sale.redis(&damage(sale)).await).await
}

#[tokio::test]
async fn counters_and_the_map() {
    for (seat, byte, fault) in [
        ("15", "s", Fault::MapDiffersFromReservations),
        ("0", ".", Fault::MapDiffersFromReservations),
        ("15", "h", Fault::MapDiffersFromHolds),
        ("10", ".", Fault::MapDiffersFromHolds),
        ("15", "/", Fault::MapDiffersFromLayout),
    ] {
        redis(fault, |sale| command("SETRANGE", &[&sale.key(KeyName::Map), seat, byte])).await;
    }
    for (section, by, fault) in [
        ("0", "1", Fault::StockDiffers),
        ("1", "-1", Fault::StockDiffers),
        ("1", "-100", Fault::NegativeCounter),
        ("77", "1", Fault::CounterWithoutSection),
    ] {
        redis(fault, |sale| command("HINCRBY", &[&sale.key(KeyName::Stock), section, by])).await;
    }
    let remaining = Fault::RemainingDiffersFromStock;
    let sale = redis(remaining, |sale| command("INCRBY", &[&sale.key(KeyName::Remaining), "3"])).await;
    // 16 + 10 + 2 places; 2 + 2 are sold, 1 + 1 are held.
    assert_eq!(sale.app.remaining().await, 22);
}

#[tokio::test]
async fn holds_and_what_their_sessions_say_of_them() {
    let sale =
        redis(Fault::MapDiffersFromHolds, |sale| command("HDEL", &[&sale.key(KeyName::Holds), "10"])).await;
    // Nobody holds 3A any more, and its holder buys what is left.
    let other = sale.app.active().await;
    sale.app.hold(&other, json!({ "offeringId": "T1", "seats": ["3A"] })).await.data();
    assert_eq!(sale.app.book(&sale.holder, json!({})).await.data()["seatCount"], 1);

    let sale =
        redis(Fault::HoldsDifferFromDue, |sale| command("ZREM", &[&sale.key(KeyName::Due), "10"])).await;
    let due: Option<f64> = sale.ask(&command("ZSCORE", &[&sale.key(KeyName::Due), "10"])).await;
    let other: Vec<(String, f64)> =
        sale.ask(&command("ZRANGE", &[&sale.key(KeyName::Due), "0", "-1", "WITHSCORES"])).await;
    assert!(due.is_some() && other.iter().all(|(_, at)| Some(*at) == due), "{other:?}");

    let sale =
        redis(Fault::UnreadableHold, |sale| command("HSET", &[&sale.key(KeyName::Holds), "10", "?"])).await;
    sale.app.pass(200_000);
    sale.app.tick().await;
    assert_eq!(sale.audit().await.findings, []);
}

#[tokio::test]
async fn holds_of_a_session_that_is_lost_are_nobodys() {
    let sale = Sale::written().await;
    let token = sale.holder.parse().expect("a token");
    sale.redis(&command("DEL", &[&Keys::of(&sale.app.event).token(token).name(KeyName::Session)])).await;
    let found = kinds(&sale.audit().await);
    assert!(found.contains(&Fault::HoldsDifferFromSessions), "{found:?}");
    assert_eq!(kinds(&sale.audit_or_repair(true).await), [Fault::IdleSlot], "its slot ends by itself");
    assert_eq!(sale.app.remaining().await, 24);
    sale.app.pass(200_000);
    sale.app.tick().await;
    assert_eq!(sale.audit().await.findings, []);
}

#[tokio::test]
async fn what_stands_beside_a_reservation() {
    let done = |sale: &Sale| {
        let token = sale.buyer.parse().expect("a token");
        Keys::of(&sale.app.event).token(token).name(KeyName::Done)
    };
    let sale = redis(Fault::DoneDiffers, |sale| command("DEL", &[&done(sale)])).await;
    assert_eq!(sale.app.poll(&sale.buyer).await.data()["status"], "BOOKED");
    let sale =
        redis(Fault::BookedInLine, |sale| command("ZADD", &[&sale.key(KeyName::Waiting), "99", &sale.buyer]))
            .await;
    assert_eq!(sale.ask::<u64>(&command("ZCARD", &[&sale.key(KeyName::Waiting)])).await, 1);
    redis(Fault::PaymentDueDiffers, |sale| {
        command("ZADD", &[&sale.key(KeyName::PaymentDue), "9", &sale.seats])
    })
    .await;
}

#[tokio::test]
async fn reservations_that_one_side_has_lost() {
    let forget = |sale: &Sale| command("DEL", &[&sale.reservation(&sale.seats)]);
    redis(Fault::UnknownRow, forget).await;
    mended(Fault::MissingRow, async |sale: &Sale| {
        for table in ["reservation_places", "reservations"] {
            let statement = format!("DELETE FROM {table} WHERE reservation_id = '{}'", sale.places);
            sale.database.execute(&statement).await;
        }
    })
    .await;
    // The cancellation did not come through.
    mended(Fault::DifferentRow, async |sale: &Sale| {
        let cancel = support::Call::new("DELETE", &format!("/api/booking/{}", sale.seats));
        sale.app.send(cancel.query("token", &sale.buyer)).await.data();
        let ids: Vec<_> = journal(&sale.app).await.iter().map(|fact| fact.id).collect();
        sale.app.store.forget(&sale.app.event, &ids).await.expect("redis answers");
    })
    .await;
}

#[tokio::test]
async fn what_has_no_one_right_answer_is_only_told() {
    let sale = Sale::written().await;
    let twice = command("HSET", &[&sale.reservation(&sale.places), "items", "0@1000=0,1"]);
    sale.redis(&twice).await;
    let report = sale.audit_or_repair(true).await;
    let twice = report.findings.iter().find(|finding| finding.what == Fault::SeatSoldTwice);
    assert_eq!(twice.expect("both have 1A").mend, "people: cancel one of the two");
    let row = kinds(&report).contains(&Fault::DifferentRow);
    assert!(row, "one version, two stories: {:?}", report.findings);
}

/// A sale whose seats' booking Redis forgets, as a failover would have it.
struct Loss {
    sale: Sale,
    reservation: Reservation,
}

impl Loss {
    async fn of_a_booking() -> Self {
        let sale = Sale::written().await;
        let id: ReservationId = sale.seats.parse().expect("an id");
        let rows = sale.database.reservations(&sale.app.event).await;
        let reservation = rows.into_iter().find(|row| row.reservation_id == id).expect("a row");
        let keys = Keys::of(&sale.app.event).token(reservation.token).reservation(&id);
        for name in [KeyName::Reservation, KeyName::Done] {
            sale.redis(&command("DEL", &[&keys.name(name)])).await;
        }
        sale.redis(&command("ZREM", &[&keys.name(KeyName::Reservations), &sale.seats])).await;
        sale.redis(&command("SETRANGE", &[&sale.key(KeyName::Map), "0", ".."])).await;
        sale.redis(&command("HINCRBY", &[&sale.key(KeyName::Stock), "0", "2"])).await;
        sale.redis(&command("INCRBY", &[&sale.key(KeyName::Remaining), "2"])).await;
        Self { sale, reservation }
    }

    async fn repair(&self) -> RepairReport {
        let (store, records) = (&self.sale.app.store, &self.sale.database.records);
        let lost_at = Some(self.reservation.updated_at.plus(1_000));
        recovery::repair(store, records, &self.sale.app.event, lost_at).await.expect("both answer")
    }

    /// The booking is whole again, and nobody notices that it was away.
    async fn is_back(&self) {
        assert_eq!(self.sale.audit().await.findings, []);
        assert_eq!(self.sale.app.poll(&self.sale.buyer).await.data()["status"], "BOOKED");
        let read = self.sale.app.store.any_reservation(&self.reservation.reservation_id).await;
        assert_eq!(read.expect("redis answers").expect("it is there"), self.reservation);
        assert_eq!(self.repair().await.restored, 0, "once more");
        let cancel = support::Call::new("DELETE", &format!("/api/booking/{}", self.sale.seats));
        let cancelled = self.sale.app.send(cancel.query("token", &self.sale.buyer)).await;
        assert_eq!(cancelled.data()["status"], "CANCELLED");
        assert_eq!(self.sale.audit().await.findings, []);
    }
}

#[tokio::test]
async fn a_booking_that_a_failover_lost_is_back_and_its_seats_are_sold_once() {
    let loss = Loss::of_a_booking().await;
    let report = loss.repair().await;
    assert_eq!((report.compared, report.restored, report.evicted), (3, 1, 0));
    assert_eq!(report.conflicts, []);
    let other = loss.sale.app.active().await;
    let taken = loss.sale.app.hold(&other, json!({ "offeringId": "T1", "seats": ["1A"] })).await;
    assert_eq!(taken.code(), "SEAT_TAKEN");
    loss.is_back().await;
}

#[tokio::test]
async fn its_own_hold_ends_with_the_booking_that_comes_back() {
    let loss = Loss::of_a_booking().await;
    let Sale { app, buyer, .. } = &loss.sale;
    // What Redis knew a moment before: the buyer is inside and holds both seats.
    let until = (app.now() + 60_000).to_string();
    let session = Keys::of(&app.event).token(loss.reservation.token).name(KeyName::Session);
    let held = format!("0:1000:{buyer}");
    let fields = ["state", "ACTIVE", "items", "0@1000=0,1", "holdExpiresAt", &until, "expiresAt", &until];
    let session = [&[session.as_str()], &fields[..]].concat();
    for change in [
        command("HSET", &session),
        command("ZADD", &[&loss.sale.key(KeyName::Active), &until, buyer]),
        command("HSET", &[&loss.sale.key(KeyName::Holds), "0", &held, "1", &held]),
        command("ZADD", &[&loss.sale.key(KeyName::Due), &until, "0", &until, "1"]),
        command("SETRANGE", &[&loss.sale.key(KeyName::Map), "0", "hh"]),
        command("HINCRBY", &[&loss.sale.key(KeyName::Stock), "0", "-2"]),
        command("DECRBY", &[&loss.sale.key(KeyName::Remaining), "2"]),
    ] {
        loss.sale.redis(&change).await;
    }
    let report = loss.repair().await;
    assert_eq!((report.restored, report.evicted), (1, 0));
    loss.is_back().await;
}

#[tokio::test]
async fn a_hold_gives_way_to_a_booking_that_comes_back() {
    let loss = Loss::of_a_booking().await;
    let app = &loss.sale.app;
    let other = app.active().await;
    app.hold(&other, json!({ "offeringId": "T1", "seats": ["1B", "2B"] })).await.data();
    let report = loss.repair().await;
    assert_eq!((report.restored, report.evicted, report.conflicts.len()), (1, 1, 0));
    assert_eq!(loss.sale.audit().await.findings, []);
    // The other one keeps what was not sold.
    let booked = app.book(&other, json!({})).await;
    assert_eq!(booked.data()["seats"], json!(["2B"]));
    loss.is_back().await;
}

#[tokio::test]
async fn a_seat_that_was_sold_again_is_a_conflict_and_nothing_is_written() {
    let loss = Loss::of_a_booking().await;
    let app = &loss.sale.app;
    let other = app.active().await;
    app.hold(&other, json!({ "offeringId": "T1", "seats": ["1B"] })).await.data();
    let sold = id(&app.book(&other, json!({})).await);
    let remaining = app.remaining().await;
    let report = loss.repair().await;
    assert_eq!((report.restored, report.conflicts.len()), (0, 1));
    assert_eq!(report.conflicts[0].reservation_id, loss.reservation.reservation_id);
    assert!(report.conflicts[0].reason.contains("1B"), "{:?}", report.conflicts);
    assert_eq!(app.remaining().await, remaining);
    let kept = app.store.any_reservation(&sold.parse().expect("an id")).await.expect("redis answers");
    assert_eq!(kept.expect("it is there").status, ReservationStatus::Confirmed);
    let kinds = kinds(&loss.sale.audit_or_repair(true).await);
    assert!(kinds.contains(&Fault::UnknownRow), "{kinds:?}");
}

#[tokio::test]
async fn places_without_names_come_back_from_whoever_held_them_last() {
    let sale = Sale::written().await;
    let app = &sale.app;
    let id: ReservationId = sale.places.parse().expect("an id");
    let rows = sale.database.reservations(&app.event).await;
    let row = rows.into_iter().find(|row| row.reservation_id == id).expect("a row");
    let keys = Keys::of(&app.event).token(row.token).reservation(&id);
    for name in [KeyName::Reservation, KeyName::Done] {
        sale.redis(&command("DEL", &[&keys.name(name)])).await;
    }
    sale.redis(&command("ZREM", &[&keys.name(KeyName::Reservations), &sale.places])).await;
    sale.redis(&command("HINCRBY", &[&sale.key(KeyName::Stock), "1", "2"])).await;
    sale.redis(&command("INCRBY", &[&sale.key(KeyName::Remaining), "2"])).await;
    // One of ten was held already.
    let (first, last) = (app.active().await, app.active().await);
    for (who, count) in [(&first, 4), (&last, 4)] {
        app.hold(who, json!({ "count": count })).await.data();
        app.pass(1);
    }
    let last_but_one = app.active().await;
    app.hold(&last_but_one, json!({ "count": 1 })).await.data();
    let repaired = recovery::repair(&app.store, &sale.database.records, &app.event, None).await;
    let report = repaired.expect("both answer");
    assert_eq!((report.restored, report.conflicts.len()), (1, 0));
    assert_eq!(
        report.evicted, 5,
        "the last hold, and the one before it: nobody keeps half of what was asked for"
    );
    assert_eq!(app.book(&first, json!({})).await.data()["seatCount"], 4);
    assert_eq!(sale.audit().await.findings, []);
}
