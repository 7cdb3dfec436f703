//! Each kind of finding, from a state that was broken on purpose.

use std::collections::BTreeMap;
use std::sync::Arc;

use domain::fact::{CalledPlace, Fact, StreamId, What};
use domain::layout::Edition;
use domain::reservation::{Reservation, ReservationStatus, ReservedPlaces};
use domain::sale::{Sale, check};
use domain::{EventId, Millis, ReservationId, Token};
use serde_json::json;
use store::{Besides, Recount, Snapshot};

use super::line::Pace;
use super::recount::recount;
use super::rows::{Compared, Rows};
use super::{History, Pending, Turns, places};
use crate::finding::{Fault, Findings};

const OPENS_AT: Millis = Millis(1_790_000_000_000);
const CLOSES_AT: Millis = Millis(1_790_003_600_000);
const DAY_MS: i64 = 86_400_000;

fn event() -> EventId {
    "e".parse().unwrap()
}

/// Section 0 has seats 1A to 1C and 2A to 2C at bytes 0 to 2 and 4 to 6; section 1 has 10 places.
fn sale() -> Sale {
    let text = format!(
        r#"{{"eventId": "e", "title": "E", "opensAt": {OPENS_AT}, "closesAt": {CLOSES_AT},
            "anonymous": "accepted", "limitPerAccount": 4,
            "admission": {{"perSecond": 10, "maxActive": 100}},
            "offerings": [{{"id": "A", "date": "2026-09-24", "sections": [
                {{"id": "r", "name": "R", "price": 100, "seats": [{{"rows": "1-2", "seats": "A-C"}}]}},
                {{"id": "s", "name": "S", "price": 10, "capacity": 10}}]}}]}}"#
    );
    check(&text).unwrap()
}

fn edition() -> Edition {
    Edition::first(sale()).0
}

fn part(section: &str, price: u64, count: u32, seats: &[&str]) -> ReservedPlaces {
    ReservedPlaces {
        offering_id: "A".parse().unwrap(),
        section_id: section.parse().unwrap(),
        price,
        count,
        seats: seats.iter().map(|seat| seat.parse().unwrap()).collect(),
    }
}

fn reservation(places: Vec<ReservedPlaces>) -> Reservation {
    let token = Token::random();
    Reservation {
        reservation_id: ReservationId::of(event(), token),
        token,
        account: None,
        status: ReservationStatus::Confirmed,
        version: 1,
        seat_count: places.iter().map(|places| places.count).sum(),
        amount: places.iter().map(|places| places.price * u64::from(places.count)).sum(),
        places,
        currency: "KRW".to_owned(),
        created_at: OPENS_AT,
        updated_at: OPENS_AT,
        payment_due_at: None,
        payment_id: None,
    }
}

/// 1B is held, 2A and two of ten are sold, one of ten is held.
fn snapshot() -> Snapshot {
    let (holder, other) = (Token::random(), Token::random());
    let due_at = OPENS_AT.0 + 1;
    let counted = format!("1*10*{other}");
    Snapshot {
        edition: Arc::new(edition()),
        still: true,
        sequence: 5,
        remaining: 11,
        map: ".h./s../".to_owned(),
        stock: BTreeMap::from([(0, 4), (1, 7)]),
        hold_counts: (2, 2),
        holds: BTreeMap::from([
            ("1".to_owned(), format!("0:100:{holder}")),
            (counted.clone(), "1:10:1".to_owned()),
        ]),
        due: BTreeMap::from([("1".to_owned(), due_at), (counted, due_at)]),
        reservations: vec![reservation(vec![part("r", 100, 1, &["2A"]), part("s", 10, 2, &[])])],
        owners: BTreeMap::new(),
        tickets: BTreeMap::new(),
        twice_in_line: Vec::new(),
    }
}

fn history() -> History {
    History::of(Vec::new(), &edition())
}

fn kinds(snapshot: &Snapshot) -> Vec<Fault> {
    let mut findings = places::counters(snapshot);
    findings.append(places::owners(snapshot, &[]));
    findings.append(places::limits(snapshot, &history(), OPENS_AT));
    findings.append(places::accounts(snapshot, OPENS_AT));
    findings.kinds()
}

/// The kinds that a change of the sound snapshot brings.
fn broken(change: impl FnOnce(&mut Snapshot)) -> Vec<Fault> {
    let mut snapshot = snapshot();
    change(&mut snapshot);
    kinds(&snapshot)
}

#[test]
fn a_sound_state_has_no_findings() {
    assert_eq!(kinds(&snapshot()), []);
}

#[test]
fn counters_must_add_up() {
    assert_eq!(broken(|it| it.remaining = 12), [Fault::RemainingDiffersFromStock]);
    let negative = broken(|it| (it.remaining, it.stock) = (3, BTreeMap::from([(0, 4), (1, -1)])));
    assert_eq!(negative, [Fault::NegativeCounter, Fault::StockDiffers]);
    let negative = broken(|it| (it.remaining, it.stock) = (-3, BTreeMap::from([(0, 4), (1, -7)])));
    assert_eq!(negative, [Fault::NegativeCounter, Fault::StockDiffers]);
    assert_eq!(
        broken(|it| (it.remaining, it.stock) = (4, BTreeMap::from([(0, 4)]))),
        [Fault::CounterWithoutSection, Fault::StockDiffers]
    );
    assert_eq!(
        broken(|it| {
            it.stock.insert(7, 1);
            it.remaining = 12;
        }),
        [Fault::CounterWithoutSection]
    );
    let lost = broken(|it| (it.remaining, it.stock) = (12, BTreeMap::from([(0, 4), (1, 8)])));
    assert_eq!(lost, [Fault::StockDiffers], "a counted place is free twice");
    let lost = broken(|it| (it.remaining, it.stock) = (12, BTreeMap::from([(0, 5), (1, 7)])));
    assert_eq!(lost, [Fault::StockDiffers], "a named seat is free twice");
}

#[test]
fn the_map_must_be_the_layouts() {
    assert_eq!(broken(|it| it.map.push('.')), [Fault::MapDiffersFromLayout]);
    assert_eq!(broken(|it| it.map.clear()), [Fault::MapDiffersFromLayout]);
    assert_eq!(broken(|it| it.map = ".h..s../".to_owned()), [Fault::MapDiffersFromLayout]);
    let off_sale = broken(|it| it.map = "xh./s../".to_owned());
    assert_eq!(off_sale, [Fault::StockDiffers, Fault::MapDiffersFromLayout]);
}

#[test]
fn the_map_must_tell_holds_and_reservations() {
    let changed = |map: &str, free: i64| {
        broken(|it| {
            it.map = map.to_owned();
            it.stock.insert(0, free);
            it.remaining = free + 7;
        })
    };
    assert_eq!(changed("..h/s../", 4), [Fault::MapDiffersFromHolds]);
    assert_eq!(changed("hh./s../", 3), [Fault::MapDiffersFromHolds]);
    assert_eq!(changed(".h./.../", 5), [Fault::MapDiffersFromReservations]);
    assert_eq!(changed("sh./s../", 3), [Fault::MapDiffersFromReservations]);
    assert_eq!(changed(".s./h../", 4), [Fault::MapDiffersFromHolds, Fault::MapDiffersFromReservations]);
}

#[test]
fn holds_and_their_ends_must_name_the_same_units() {
    assert_eq!(broken(|it| it.due.retain(|unit, _| unit != "1")), [Fault::HoldsDifferFromDue]);
    assert_eq!(broken(|it| it.due.extend([("2".to_owned(), 5)])), [Fault::HoldsDifferFromDue]);
    assert_eq!(broken(|it| it.hold_counts = (2, 3)), [Fault::HoldsDifferFromDue]);
}

#[test]
fn holds_must_read_and_name_their_own_section() {
    for hold in ["", "0:100", "x:100:t", "0:x:t", "1:100:t"] {
        let kinds = broken(|it| drop(it.holds.insert("1".to_owned(), hold.to_owned())));
        assert_eq!(kinds, [Fault::MapDiffersFromHolds, Fault::UnreadableHold], "{hold:?}");
    }
    for unit in ["x", "99", "3", "0*t", "0*100*t", "9*100*t", "1*100*t"] {
        let kinds = broken(|it| {
            it.holds.insert(unit.to_owned(), "0:100:1".to_owned());
            it.due.insert(unit.to_owned(), 5);
        });
        assert_eq!(kinds, [Fault::UnreadableHold], "{unit:?}");
    }
}

#[test]
fn no_section_may_sell_more_than_it_has() {
    let sell = |count: u32| {
        broken(|it| {
            it.reservations[0].places[1].count = count;
            it.stock.insert(1, 9 - i64::from(count));
            it.remaining = 4 + 9 - i64::from(count);
        })
    };
    assert_eq!(sell(9), []);
    assert_eq!(sell(10), [Fault::NegativeCounter, Fault::Oversold]);
}

#[test]
fn a_seat_has_one_owner() {
    let twice = broken(|it| it.reservations.push(reservation(vec![part("r", 100, 1, &["2A"])])));
    assert_eq!(twice, [Fault::SeatSoldTwice]);
    let cancelled = broken(|it| {
        let mut cancelled = reservation(vec![part("r", 100, 1, &["2A"])]);
        cancelled.status = ReservationStatus::Cancelled;
        it.reservations.push(cancelled);
    });
    assert_eq!(cancelled, [], "what was given back is nobody's");
}

#[test]
fn reservations_must_have_places_that_are_on_sale() {
    for places in
        [part("r", 1, 1, &["9Z"]), part("x", 1, 1, &[]), part("s", 1, 1, &["1A"]), part("r", 1, 1, &[])]
    {
        let kinds = broken(|it| it.reservations.push(reservation(vec![places.clone()])));
        assert_eq!(kinds, [Fault::UnknownPlace], "{places:?}");
    }
}

#[test]
fn a_reservation_is_its_tokens() {
    assert_eq!(broken(|it| it.reservations[0].token = Token::random()), [Fault::ForeignReservation]);
}

#[test]
fn nobody_has_more_than_the_limit() {
    let sell = |it: &mut Snapshot, account: Option<&str>, count: u32| {
        let mut more = reservation(vec![part("s", 10, count, &[])]);
        more.account = account.map(|account| account.parse().unwrap());
        if let Some(account) = account {
            *it.tickets.entry(account.to_owned()).or_default() += i64::from(count);
        }
        it.reservations.push(more);
        *it.stock.entry(1).or_default() -= i64::from(count);
        it.remaining -= i64::from(count);
    };
    assert_eq!(broken(|it| sell(it, None, 4)), []);
    assert_eq!(broken(|it| sell(it, None, 5)), [Fault::OverLimit]);
    let account = broken(|it| {
        sell(it, Some("kim"), 3);
        sell(it, Some("kim"), 2);
    });
    assert_eq!(account, [Fault::OverLimit]);
    let hold = |it: &mut Snapshot, due_at: i64| {
        let token = it.reservations[0].token;
        it.holds.insert(format!("1*10*{token}"), "1:10:2".to_owned());
        it.due.insert(format!("1*10*{token}"), due_at);
        it.hold_counts = (3, 3);
        it.stock.insert(1, 5);
        it.remaining = 9;
    };
    assert_eq!(broken(|it| hold(it, OPENS_AT.0 + 1)), [Fault::OverLimit]);
    assert_eq!(broken(|it| hold(it, OPENS_AT.0)), [], "its time is over");
    let visits = broken(|it| {
        sell(it, Some("kim"), 4);
        let holder = it.holds["1"].rsplit_once(':').unwrap().1.parse().unwrap();
        it.owners.insert(holder, "kim".parse().unwrap());
        sell(it, Some("kim"), 1);
    });
    assert_eq!(visits, [Fault::OverLimit], "one holds what the account has bought four and one before");
}

#[test]
fn what_an_account_has_bought_is_what_its_reservations_have() {
    let count = |it: &mut Snapshot, tickets| {
        it.reservations[0].account = Some("kim".parse().unwrap());
        it.tickets.insert("kim".to_owned(), tickets);
    };
    assert_eq!(broken(|it| count(it, 3)), []);
    assert_eq!(broken(|it| count(it, 2)), [Fault::TicketsDiffer]);
    assert_eq!(broken(|it| it.tickets = [("kim".to_owned(), 1)].into()), [Fault::TicketsDiffer]);
    assert_eq!(broken(|it| it.tickets = [("kim".to_owned(), 0)].into()), []);
}

#[test]
fn no_finding_tells_a_token() {
    let mut snapshot = snapshot();
    snapshot.due.clear();
    snapshot.holds.values_mut().for_each(|hold| hold.insert(0, 'x'));
    snapshot.reservations[0].token = Token::random();
    snapshot.reservations[0].seat_count = 99;
    let mut findings = places::owners(&snapshot, &[]);
    findings.append(places::limits(&snapshot, &history(), OPENS_AT));
    let text = serde_json::to_string(&findings.report().0).unwrap();
    let tokens =
        snapshot.holds.keys().filter_map(|unit| unit.rsplit_once('*')).map(|(_, token)| token.to_owned());
    for token in tokens.chain([snapshot.reservations[0].token.to_string()]) {
        assert!(!text.contains(&token), "{text}");
    }
}

// Rows.

fn rows(redis: &[Reservation], pending: &Pending, rows: &[Reservation], now: Millis) -> (Vec<Fault>, usize) {
    let history = history();
    let mut compared = Rows::new(redis, &pending.reservations, &history, now);
    for row in rows {
        compared.row(row.clone());
    }
    let Compared { findings, forgotten, .. } = compared.end();
    (findings.kinds(), forgotten.len())
}

fn fact(sequence: u64, at: Millis, what: What) -> Fact {
    Fact { event: event(), epoch: 1, id: StreamId { ms: 1, sequence }, at, what }
}

fn journal(reservations: &[&Reservation]) -> Pending {
    let mut pending = Pending::default();
    for (sequence, reservation) in (1..).zip(reservations) {
        let reservation = (*reservation).clone();
        let what = match reservation.status {
            ReservationStatus::Cancelled => What::BookingCancelled { reservation },
            _ => What::Booked { reservation },
        };
        pending.add(fact(sequence, OPENS_AT, what));
    }
    pending
}

fn cancelled(reservation: &Reservation) -> Reservation {
    Reservation { status: ReservationStatus::Cancelled, version: 2, ..reservation.clone() }
}

#[test]
fn every_reservation_has_its_row_or_is_on_its_way_there() {
    let one = reservation(vec![part("s", 10, 1, &[])]);
    let redis = std::slice::from_ref(&one);
    let nothing = Pending::default();
    assert_eq!(rows(redis, &nothing, redis, OPENS_AT), (vec![], 0));
    assert_eq!(rows(redis, &nothing, &[], OPENS_AT), (vec![Fault::MissingRow], 0));
    assert_eq!(rows(redis, &journal(&[&one]), &[], OPENS_AT), (vec![], 0));
    let given_back = cancelled(&one);
    let newer = std::slice::from_ref(&given_back);
    assert_eq!(rows(newer, &journal(&[&one]), &[], OPENS_AT), (vec![Fault::MissingRow], 0));
    assert_eq!(rows(newer, &nothing, redis, OPENS_AT), (vec![Fault::DifferentRow], 0));
    assert_eq!(rows(newer, &journal(&[&one, &given_back]), redis, OPENS_AT), (vec![], 0));
    assert_eq!(rows(newer, &journal(&[&given_back, &one]), redis, OPENS_AT), (vec![], 0));
}

#[test]
fn a_row_tells_the_same_as_redis() {
    let one = reservation(vec![part("r", 100, 1, &["1A"])]);
    let changes: [fn(&mut Reservation); 8] = [
        |row| row.version = 2,
        |row| row.status = ReservationStatus::Paid,
        |row| row.amount += 1,
        |row| row.seat_count += 1,
        |row| row.places[0].seats = vec!["1B".parse().unwrap()],
        |row| row.payment_due_at = Some(Millis(1)),
        |row| row.payment_id = Some("p-1".parse().unwrap()),
        |row| row.token = Token::random(),
    ];
    for (at, change) in changes.into_iter().enumerate() {
        let mut row = one.clone();
        change(&mut row);
        let kinds = rows(std::slice::from_ref(&one), &Pending::default(), &[row], OPENS_AT);
        assert_eq!(kinds, (vec![Fault::DifferentRow], 0), "change {at}");
    }
}

#[test]
fn redis_must_know_a_row_until_a_day_after_the_sale_and_its_payment() {
    let mut one = reservation(vec![part("s", 10, 1, &[])]);
    let at = |row: &Reservation, now: Millis| rows(&[], &Pending::default(), std::slice::from_ref(row), now);
    assert_eq!(at(&one, CLOSES_AT.plus(DAY_MS - 1)), (vec![Fault::UnknownRow], 0));
    assert_eq!(at(&one, CLOSES_AT.plus(DAY_MS)), (vec![], 1), "it keeps its seats all the same");
    assert_eq!(at(&cancelled(&one), CLOSES_AT.plus(DAY_MS)), (vec![], 0));
    one.payment_due_at = Some(CLOSES_AT.plus(5));
    assert_eq!(at(&one, CLOSES_AT.plus(DAY_MS)), (vec![Fault::UnknownRow], 0));
}

#[test]
fn seats_of_a_forgotten_reservation_stay_sold() {
    let mut snapshot = snapshot();
    let forgotten = std::mem::take(&mut snapshot.reservations);
    assert_eq!(places::owners(&snapshot, &forgotten).kinds(), []);
    assert_eq!(
        places::owners(&snapshot, &[]).kinds(),
        [Fault::StockDiffers, Fault::MapDiffersFromReservations]
    );
}

#[test]
fn a_journal_entry_that_is_no_fact_is_a_finding_without_its_text() {
    let id = StreamId { ms: 1, sequence: 2 };
    let pending = Pending::with_unreadable(id, "token: \"secret\"");
    let (findings, _) = pending.findings(&event()).report();
    let text = serde_json::to_string(&findings).unwrap();
    assert!(text.contains("unreadable-fact") && text.contains("e journal 1-2"), "{text}");
    assert!(!text.contains("secret"), "{text}");
}

// The line.

fn called(sequence: u64, at: Millis, places: &[(Token, u64)]) -> Fact {
    let place = |(token, score): &(Token, u64)| CalledPlace { token: *token, score: *score };
    fact(sequence, at, What::UserAdmitted { places: places.iter().map(place).collect() })
}

fn turns(calls: &[&[(Token, u64)]]) -> Vec<Fault> {
    let mut turns = Turns::default();
    for (sequence, places) in (1..).zip(calls) {
        turns.called(&called(sequence, OPENS_AT, places));
    }
    turns.findings.kinds()
}

#[test]
fn people_are_called_in_turn_and_once_but_for_one_re_entry() {
    let [a, b, c, d] = [(); 4].map(|()| Token::random());
    assert_eq!(turns(&[&[(a, 1), (b, 2)], &[(c, 3)]]), []);
    assert_eq!(turns(&[&[(a, 1), (b, 2)], &[(a, 1), (c, 3)]]), [], "back at its old score, once");
    assert_eq!(turns(&[&[(a, 1)], &[(a, 1)], &[(a, 1)]]), [Fault::AdmittedTooOften]);
    assert_eq!(turns(&[&[(a, 1)], &[(b, 2)], &[(a, 3)], &[(a, 3)]]), [], "a new place at the end");
    assert_eq!(turns(&[&[(a, 1), (c, 3)], &[(b, 2)], &[(d, 4)]]), [Fault::AdmittedOutOfTurn]);
    assert_eq!(turns(&[&[(b, 2), (a, 1)]]), [Fault::AdmittedOutOfTurn]);
    assert_eq!(turns(&[&[(a, 5), (b, 5)]]), [], "two drawn the same score");
}

/// Calls of so many people, each so many milliseconds after the opening.
fn pace(history: &History, calls: &[(u64, i64, usize)]) -> Vec<Fault> {
    let mut pace = Pace::default();
    for (sequence, after_ms, people) in calls {
        let places: Vec<(Token, u64)> = (0..*people).map(|at| (Token::random(), at as u64)).collect();
        pace.called(&called(*sequence, OPENS_AT.plus(*after_ms), &places), history);
    }
    pace.findings.kinds()
}

fn changed(sequence: u64, change: impl FnOnce(&mut Sale)) -> Fact {
    let mut sale = sale();
    change(&mut sale);
    let (by, change, version) = ("kim".to_owned(), "pace".to_owned(), sequence);
    let what = What::EventChanged { by, change, value: None, version, definition: Some(json!(sale)) };
    fact(sequence, OPENS_AT.plus(1_000 * sequence.cast_signed()), what)
}

#[test]
fn nobody_is_called_before_the_opening_or_past_the_pace() {
    let history = history();
    assert_eq!(pace(&history, &[(1, 1_000, 10), (2, 2_000, 10), (3, 4_000, 20)]), []);
    assert_eq!(
        pace(&history, &[(1, 1_000, 21), (2, 1_500, 5), (3, 9_000, 21)]),
        [],
        "two seconds are banked"
    );
    assert_eq!(pace(&history, &[(1, 1_000, 22)]), [Fault::AdmittedTooFast]);
    assert_eq!(pace(&history, &[(1, 1_000, 21), (2, 1_500, 6)]), [Fault::AdmittedTooFast]);
    assert_eq!(pace(&history, &[(1, -1, 1)]), [Fault::AdmittedTooEarly]);
}

#[test]
fn the_pace_is_judged_by_the_rules_of_its_time() {
    let facts = vec![
        changed(1, |_| ()),
        changed(10, |sale| sale.admission.per_second = 100.0),
        changed(20, |sale| sale.admission.per_second = 1.0),
        changed(30, |sale| sale.admission.compensate_no_shows = true),
    ];
    let newest = Edition { version: 30, ..edition() };
    let history = History::of(facts, &newest);
    assert!(history.is_complete);
    assert_eq!(pace(&history, &[(5, 5_000, 21), (11, 11_000, 201), (15, 15_000, 200)]), []);
    assert_eq!(pace(&history, &[(15, 15_000, 201), (21, 21_000, 201), (22, 22_000, 1)]), []);
    assert_eq!(pace(&history, &[(21, 21_000, 3)]), []);
    assert_eq!(pace(&history, &[(21, 21_000, 4)]), [Fault::AdmittedTooFast]);
    assert_eq!(pace(&history, &[(31, 31_000, 41)]), [], "making up for no-shows calls twice the pace");
    assert_eq!(pace(&history, &[(31, 31_000, 42)]), [Fault::AdmittedTooFast]);
}

#[test]
fn a_history_without_the_newest_definition_is_not_complete() {
    let newest = Edition { version: 3, ..edition() };
    let history = History::of(vec![changed(2, |sale| sale.limit_per_account = 9)], &newest);
    assert!(!history.is_complete);
    assert_eq!(history.version, 2);
    assert_eq!(history.most(|rules| rules.limit_per_account), 9);
    let (by, change) = ("k".to_owned(), "pause".to_owned());
    let status = What::EventChanged { by, change, value: None, version: 3, definition: None };
    assert!(
        !History::of(vec![fact(1, OPENS_AT, status)], &newest).is_complete,
        "a pause brings no definition"
    );
}

#[test]
fn only_what_lasts_is_reported() {
    let findings = |places: &[&str]| {
        let mut findings = Findings::default();
        for place in places {
            findings.add(Fault::StockDiffers, *place, 1, 2);
        }
        findings
    };
    let lasting = findings(&["b", "c"]).lasting(&findings(&["a", "b"]));
    let (reported, more) = lasting.report();
    assert_eq!((reported.len(), reported[0].place.as_str(), more), (1, "b", 0));
    let many: Vec<String> = (0..20_000).map(|at| at.to_string()).collect();
    let many = findings(&many.iter().map(String::as_str).collect::<Vec<_>>());
    assert_eq!(many.report().1, 19_000);
}

fn told_anew(change: impl FnOnce(&mut Snapshot)) -> Option<Recount> {
    let mut snapshot = snapshot();
    change(&mut snapshot);
    recount(&snapshot, &[], &Besides::default(), OPENS_AT)
}

#[test]
fn counts_are_told_anew_only_where_they_are_wrong() {
    assert_eq!(told_anew(|_| {}), None);
    let told = told_anew(|snapshot| snapshot.remaining = 3).unwrap();
    assert_eq!((told.remaining, told.sequence, told.len()), (11, 5, 0));
    let told = told_anew(|snapshot| {
        snapshot.stock.insert(1, 0);
    })
    .unwrap();
    assert_eq!(told.stock, BTreeMap::from([(1, Some(7))]));
    let told = told_anew(|snapshot| {
        snapshot.stock.insert(9, 4);
    })
    .unwrap();
    assert_eq!(told.stock, BTreeMap::from([(9, None)]));
    let told = told_anew(|snapshot| snapshot.map = "s../h..s".to_owned()).unwrap();
    assert_eq!(told.bytes, [(0, ".h".to_owned()), (4, "s".to_owned()), (7, "/".to_owned())]);
    let told = told_anew(|snapshot| {
        snapshot.tickets.insert("kim".to_owned(), 2);
    })
    .unwrap();
    assert_eq!(told.tickets, [("kim".to_owned(), None)]);
}

#[test]
fn a_hold_that_does_not_read_is_dropped_and_one_without_an_end_is_over() {
    let told = told_anew(|snapshot| drop(snapshot.holds.insert("1".to_owned(), "?".to_owned()))).unwrap();
    assert_eq!((told.dropped, told.bytes), (vec!["1".to_owned()], vec![(1, ".".to_owned())]));
    assert_eq!((told.stock, told.remaining), (BTreeMap::from([(0, Some(5))]), 12));
    let told = told_anew(|snapshot| {
        snapshot.due.remove("1");
    })
    .unwrap();
    assert_eq!(told.due, [("1".to_owned(), Some(0))]);
    let told = told_anew(|snapshot| drop(snapshot.holds.remove("1"))).unwrap();
    assert_eq!((told.due, told.stock), (vec![("1".to_owned(), None)], BTreeMap::from([(0, Some(5))])));
}

#[test]
fn a_section_that_is_oversold_is_left_as_it_is() {
    let told = told_anew(|snapshot| {
        snapshot.reservations.push(reservation(vec![part("s", 10, 9, &[])]));
        snapshot.remaining = 1;
    });
    let told = told.unwrap();
    assert_eq!((told.stock, told.remaining), (BTreeMap::new(), 11));
}

#[test]
fn an_epoch_begins_the_order_of_calls_anew() {
    let (early, late) = (Token::random(), Token::random());
    let call = |epoch, token, score| {
        let what = What::UserAdmitted { places: vec![CalledPlace { token, score }] };
        Fact { event: event(), epoch, id: StreamId { ms: 1, sequence: score }, at: OPENS_AT, what }
    };
    let mut turns = Turns::default();
    for fact in [call(1, late, 9), call(2, early, 3), call(2, late, 9)] {
        turns.called(&fact);
    }
    assert_eq!(turns.findings.kinds(), []);
    turns.called(&call(2, Token::random(), 4));
    assert_eq!(turns.findings.kinds(), [Fault::AdmittedOutOfTurn]);
}
