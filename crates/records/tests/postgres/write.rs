//! Writing facts against a real server.

use std::time::{Duration, Instant};

use crate::facts::{START, booked, cancelled, changed, entered, event, fact, general, named, reservation};
use crate::server::Database;
use domain::fact::{CalledPlace, Fact, What};
use domain::reservation::ReservationStatus::{Cancelled, Paid, PendingPayment};
use domain::reservation::{Reservation, ReservationStatus};
use domain::{Millis, Token};
use records::{Records, RecordsConfig, RecordsError, WriteResult};

async fn write(database: &Database, messages: &[Vec<Fact>]) -> Vec<WriteResult> {
    database.records.write(messages).await.unwrap()
}

async fn write_all(database: &Database, facts: &[Fact]) {
    assert_eq!(write(database, &[facts.to_vec()]).await, [WriteResult::default()]);
}

/// Positions of the facts that were refused.
fn refused(result: &WriteResult) -> Vec<usize> {
    result.refused.iter().map(|refused| refused.position).collect()
}

async fn recorded(database: &Database) -> Vec<Reservation> {
    database.records.reservations(&event(), None, 1000).await.unwrap()
}

async fn kept_seats(database: &Database) -> usize {
    database.count("reservation_places where kept").await
}

fn one_of_each() -> Vec<Fact> {
    let token = Token::random();
    let places =
        vec![named("KTX-101", "standard", 59_800, &["1A", "1B"]), general("KTX-101", "standing", 8_400, 2)];
    let sold = reservation(0, places.clone());
    let expires_at = Millis(START + 180_000);
    let account = Some("김철수 \"x\" \u{FFFF}".parse().unwrap());
    let definition = Some(serde_json::json!({"title": "추석", "offerings": [1.5, null]}));
    let applied = |version, definition| What::EventChanged {
        by: "cli".into(),
        change: "apply".into(),
        value: None,
        version,
        definition,
    };
    let whats = [
        What::UserEnterQueue { token, ticket_number: Some(7), score: (1 << 52) + 7, account },
        What::UserEnterQueue { token, ticket_number: None, score: 1, account: None },
        What::UserLeftQueue { token },
        What::UserAdmitted { places: vec![CalledPlace { token, score: 3 }] },
        What::TokenIssued { token, expires_at },
        What::AdmissionLapsed { tokens: vec![token, Token::random()] },
        What::AdmissionExpired { tokens: vec![token] },
        What::SeatsHeld { token, places: places.clone(), expires_at },
        What::SeatsReleased { token: None, places },
        What::Booked { reservation: sold.clone() },
        What::BookingCancelled { reservation: changed(&sold, Cancelled) },
        applied(2, definition),
        applied(3, None),
    ];
    (1..).zip(whats).map(|(sequence, what)| fact(sequence, what)).collect()
}

#[tokio::test]
async fn every_kind_of_fact_reads_back_as_written_and_is_written_once() {
    let database = Database::fresh().await;
    let facts = one_of_each();
    write_all(&database, &facts).await;
    write_all(&database, &facts).await;
    let twice = [facts.clone(), facts.clone()].concat();
    write_all(&database, &twice).await;
    assert_eq!(database.count("facts").await, facts.len());
    for kind in facts.iter().map(|fact| fact.what.kind()) {
        let written: Vec<_> = facts.iter().filter(|fact| fact.what.kind() == kind).cloned().collect();
        assert_eq!(database.records.facts(&event(), kind, None, 100).await.unwrap(), written, "{kind}");
    }
    let of_one_token = |fact: &&Fact| {
        use What::{AdmissionExpired, AdmissionLapsed, EventChanged, SeatsReleased, UserAdmitted};
        let of_many =
            matches!(fact.what, UserAdmitted { .. } | AdmissionLapsed { .. } | AdmissionExpired { .. });
        !(of_many || matches!(fact.what, SeatsReleased { .. } | EventChanged { .. }))
    };
    let tokens = facts.iter().filter(of_one_token);
    assert_eq!(database.count("facts where token is not null").await, tokens.count());
}

#[tokio::test]
async fn a_reservation_reads_back_as_sold_with_its_parts_and_seats_in_order() {
    let database = Database::fresh().await;
    let sold = reservation(
        0,
        vec![
            named("KTX-101", "standard", 59_800, &["12D", "12A"]),
            general("KTX-101", "standing", 8_400, 3),
            // The same section again, at the price of a later hold.
            named("KTX-101", "standard", 61_000, &["1C"]),
            general("KTX-101", "standing", 8_400, 1),
        ],
    );
    let anonymous =
        Reservation { account: None, payment_due_at: None, ..reservation(1, vec![general("a", "b", 0, 1)]) };
    write_all(&database, &[booked(1, &sold), booked(2, &anonymous)]).await;
    assert_eq!(recorded(&database).await, [sold, anonymous]);
}

#[tokio::test]
async fn the_highest_version_is_the_truth_in_whatever_order_it_comes() {
    let seats = || vec![named("KTX-101", "standard", 1, &["1A"])];
    let database = Database::fresh().await;
    // Apart, the newer one first.
    let one = reservation(0, seats());
    write_all(&database, &[cancelled(2, &one)]).await;
    write_all(&database, &[booked(1, &one)]).await;
    assert_eq!(recorded(&database).await, [changed(&one, Cancelled)]);
    assert_eq!(kept_seats(&database).await, 0);
    // Together, in any order.
    let two = reservation(1, vec![named("KTX-101", "standard", 1, &["1B"])]);
    let paid = changed(&two, Paid);
    write_all(&database, &[cancelled(5, &paid), booked(3, &two), booked(4, &paid)]).await;
    assert_eq!(recorded(&database).await[1], changed(&paid, Cancelled));
    assert_eq!(kept_seats(&database).await, 0);
    // A change that keeps the seats.
    let three = reservation(2, seats());
    write_all(&database, &[booked(6, &three)]).await;
    write_all(&database, &[booked(7, &changed(&three, Paid))]).await;
    assert_eq!(recorded(&database).await[2], changed(&three, Paid));
    assert_eq!(kept_seats(&database).await, 1);
    assert_eq!(database.count("facts").await, 7);
}

#[tokio::test]
async fn a_seat_given_back_and_sold_again_in_one_batch_has_its_new_owner() {
    for order in [[0, 1, 2], [2, 1, 0], [2, 0, 1]] {
        let database = Database::fresh().await;
        let seats = || vec![named("KTX-101", "standard", 1, &["1A", "1B"])];
        let (first, second) = (reservation(0, seats()), reservation(1, seats()));
        let facts = [booked(1, &first), cancelled(2, &first), booked(3, &second)];
        let messages: Vec<_> = order.iter().map(|&at: &usize| vec![facts[at].clone()]).collect();
        assert!(write(&database, &messages).await.iter().all(WriteResult::is_written), "{order:?}");
        assert_eq!(recorded(&database).await, [changed(&first, Cancelled), second]);
        assert_eq!(kept_seats(&database).await, 2);
    }
}

#[tokio::test]
async fn a_seat_given_back_and_sold_again_survives_a_bad_fact_in_the_batch() {
    let database = Database::fresh().await;
    let seats = || vec![named("KTX-101", "standard", 1, &["1A"])];
    let (first, second) = (reservation(0, seats()), reservation(1, seats()));
    write_all(&database, &[booked(1, &first)]).await;
    let bad = Reservation { currency: "\0".to_owned(), ..reservation(2, seats()) };
    let messages = [vec![booked(3, &second), booked(4, &bad)], vec![cancelled(2, &first)]];
    let results = write(&database, &messages).await;
    assert_eq!((refused(&results[0]), refused(&results[1])), (vec![1], vec![]));
    assert_eq!(recorded(&database).await, [changed(&first, Cancelled), second]);
}

#[tokio::test]
async fn a_seat_with_two_owners_is_refused_alone_and_taken_once_it_is_free() {
    let database = Database::fresh().await;
    let owner = reservation(0, vec![named("KTX-101", "standard", 1, &["1A"])]);
    write_all(&database, &[booked(1, &owner)]).await;
    let late = reservation(1, vec![named("KTX-101", "standard", 1, &["1B", "1A"])]);
    let other = reservation(2, vec![named("KTX-102", "standard", 1, &["1A"])]);
    let messages = [vec![entered(2), booked(3, &late), entered(4)], vec![booked(5, &other)]];
    let results = write(&database, &messages).await;
    assert_eq!((refused(&results[0]), refused(&results[1])), (vec![1], vec![]));
    let reason = &results[0].refused[0].reason;
    assert!(reason.contains("one_owner_a_seat") && reason.contains("KTX-101, 1A"), "{reason}");
    assert_eq!(recorded(&database).await, [owner.clone(), other]);
    assert_eq!(database.count("facts").await, 4);
    // Nothing of the refused reservation is left, not even the seat that was free.
    assert_eq!(kept_seats(&database).await, 2);

    write_all(&database, &[cancelled(6, &owner)]).await;
    assert!(write(&database, &messages).await.iter().all(WriteResult::is_written));
    assert_eq!(recorded(&database).await[1], late);
}

#[tokio::test]
async fn bad_facts_are_refused_alone_wherever_they_stand() {
    let database = Database::fresh().await;
    let places = || vec![general("KTX-101", "standing", 1, 1)];
    let mut foreign = booked(1, &reservation(0, places()));
    foreign.event = "concert-2026".parse().unwrap();
    let mut huge = entered(2);
    huge.epoch = u64::MAX;
    let uncounted = Reservation { seat_count: 0, ..reservation(1, places()) };
    let mut misnamed = reservation(2, vec![named("KTX-101", "standard", 1, &["1A", "1B"])]);
    misnamed.places[0].count = 1;
    let (by, change) = ("a\0".to_owned(), "open".to_owned());
    let nul = What::EventChanged { by, change, value: None, version: 1, definition: None };
    let sold = reservation(3, places());
    let again = Reservation { reservation_id: reservation(4, places()).reservation_id, ..sold.clone() };
    let mut facts: Vec<Fact> = (1000..1500).map(entered).collect();
    facts[0] = foreign;
    facts[7] = huge;
    facts[250] = booked(3, &uncounted);
    facts[251] = booked(4, &misnamed);
    facts[400] = booked(5, &sold);
    facts[401] = booked(6, &again);
    facts[499] = fact(7, nul);
    let results = write(&database, &[vec![entered(8)], facts.clone(), vec![entered(9)]]).await;
    let mut bad = refused(&results[1]);
    bad.sort_unstable();
    // Which of two reservations of one token came first, nobody can know: the first one written stays.
    assert_eq!(bad, [0, 7, 250, 251, 401, 499], "{:?}", results[1]);
    assert!(results[0].is_written() && results[2].is_written());
    assert_eq!(database.count("facts").await, 500 - 6 + 2);
    for refused in &results[1].refused {
        let tokens = [uncounted.token, sold.token];
        assert!(!tokens.iter().any(|token| refused.reason.contains(&token.to_string())), "{refused}");
    }
}

#[tokio::test]
async fn a_batch_of_bad_facts_costs_a_bounded_number_of_tries_and_holds_up_nothing_for_good() {
    let database = Database::fresh().await;
    let bad = |sequence| {
        booked(sequence, &Reservation { seat_count: 0, ..reservation(0, vec![general("a", "b", 1, 1)]) })
    };
    let good: Vec<u64> = (0..2000).filter(|sequence| sequence % 10 == 0).collect();
    let facts: Vec<Fact> = (0..2000)
        .map(|sequence| if good.contains(&sequence) { entered(sequence) } else { bad(sequence) })
        .collect();
    let before = tries(&database).await;
    for _ in 0..good.len() {
        let results = write(&database, std::slice::from_ref(&facts)).await;
        assert!(!results[0].is_written());
        if database.count("facts").await == good.len() {
            break;
        }
    }
    assert_eq!(database.count("facts").await, good.len());
    // Facts of the line stand before bookings, so that halving soon tells them apart.
    let tried = tries(&database).await - before;
    assert!(tried < 1000, "{tried}");
}

/// Transactions of the database, ended either way.
async fn tries(database: &Database) -> i64 {
    let client = database.client().await;
    client.batch_execute("select pg_stat_force_next_flush()").await.unwrap();
    let sql = "select xact_commit + xact_rollback from pg_stat_database where datname = current_database()";
    client.query_one(sql, &[]).await.unwrap().get(0)
}

#[tokio::test]
async fn the_newest_definition_of_a_sale_is_kept() {
    let database = Database::fresh().await;
    let apply = |sequence, version: u64| {
        let definition = Some(serde_json::json!({ "version": version }));
        let (by, change) = ("cli".to_owned(), "apply".to_owned());
        fact(sequence, What::EventChanged { by, change, value: None, version, definition })
    };
    assert_eq!(database.records.definition(&event()).await.unwrap(), None);
    write_all(&database, &[apply(3, 3), apply(1, 1), apply(2, 2)]).await;
    write_all(&database, &[apply(4, 2)]).await;
    let newest = database.records.definition(&event()).await.unwrap().unwrap();
    assert_eq!((newest.version, newest.changed_at.0), (3, START + 3));
    assert_eq!(newest.definition, serde_json::json!({"version": 3}));
}

#[tokio::test(flavor = "multi_thread")]
async fn writers_of_the_same_facts_at_once_do_no_harm() {
    let database = Database::fresh().await;
    let mut facts = Vec::new();
    let mut last = Vec::new();
    for at in 0..200i64 {
        let seat = format!("{at}A");
        let sold = reservation(at, vec![named("KTX-101", "standard", 1, &[&seat])]);
        let sequence = at.cast_unsigned() * 3;
        let paid = changed(&sold, Paid);
        facts.extend([booked(sequence, &sold), booked(sequence + 1, &paid), entered(sequence + 2)]);
        last.push(paid);
    }
    let writers = (0..8).map(|writer| {
        let (records, mut facts) = (database.records.clone(), facts.clone());
        tokio::spawn(async move {
            fastrand::Rng::with_seed(writer).shuffle(&mut facts);
            for part in facts.chunks(50) {
                let results = records.write(&[part.to_vec()]).await.unwrap();
                assert!(results[0].is_written(), "{results:?}");
            }
        })
    });
    for writer in writers.collect::<Vec<_>>() {
        writer.await.unwrap();
    }
    assert_eq!(database.count("facts").await, facts.len());
    assert_eq!(recorded(&database).await, last);
}

/// A sale's history of one section of ten seats: each seat sold, paid, given back, sold again.
fn history(random: &mut fastrand::Rng) -> (Vec<Fact>, Vec<Reservation>) {
    let (mut facts, mut all, mut owners) = (Vec::new(), Vec::<Reservation>::new(), [None::<usize>; 10]);
    for step in 0..120 {
        let seat = random.usize(..owners.len());
        if let Some(owner) = owners[seat] {
            let status = if all[owner].status == PendingPayment && random.bool() { Paid } else { Cancelled };
            all[owner] = changed(&all[owner], status);
            let reservation = all[owner].clone();
            let what = match status {
                Paid => What::Booked { reservation },
                _ => What::BookingCancelled { reservation },
            };
            owners = owners.map(|of| of.filter(|of| *of != owner || status == Paid));
            facts.push(fact(step, what));
        } else {
            let free =
                (0..owners.len()).filter(|at| owners[*at].is_none() && (*at == seat || random.u8(..) < 40));
            let seats: Vec<usize> = free.collect();
            let names: Vec<String> = seats.iter().map(|at| format!("{at}A")).collect();
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            all.push(reservation(step.cast_signed(), vec![named("KTX-101", "standard", 1, &names)]));
            for at in seats {
                owners[at] = Some(all.len() - 1);
            }
            facts.push(booked(step, &all[all.len() - 1]));
        }
    }
    (facts, all)
}

#[tokio::test]
async fn however_facts_are_delivered_the_rows_are_those_of_the_sale() {
    let database = Database::fresh().await;
    for seed in 0..30 {
        let random = &mut fastrand::Rng::with_seed(seed);
        let (facts, sold) = history(random);
        // Each fact at least once, some twice, in any order, packed anyhow.
        let mut sent =
            [facts.clone(), random.choose_multiple(&facts, facts.len() / 3).into_iter().cloned().collect()]
                .concat();
        random.shuffle(&mut sent);
        let mut messages: Vec<Vec<Fact>> = sent.chunks(random.usize(1..8)).map(<[Fact]>::to_vec).collect();
        let mut rounds = 0;
        while !messages.is_empty() {
            let mut again = Vec::new();
            for batch in messages.chunks(random.usize(1..10)) {
                let results = write(&database, batch).await;
                let failed = batch.iter().zip(&results).filter(|(_, result)| !result.is_written());
                again.extend(failed.map(|(message, _)| message.clone()));
            }
            messages = again;
            rounds += 1;
            assert!(rounds <= facts.len(), "seed {seed}: {} messages are never taken", messages.len());
        }
        assert_eq!(recorded(&database).await, sold, "seed {seed}");
        let keeping = sold.iter().filter(|of| of.status.keeps_seats()).map(|of| of.seat_count as usize);
        assert_eq!(kept_seats(&database).await, keeping.sum::<usize>(), "seed {seed}");
        let client = database.client().await;
        client.batch_execute("truncate facts, reservations, reservation_places").await.unwrap();
    }
}

#[tokio::test]
async fn a_user_that_may_only_write_rows_is_enough() {
    let database = Database::fresh().await;
    let grants = "drop role if exists persist; create role persist login; \
        grant select, insert, update on facts, reservations, reservation_places, events to persist";
    database.client().await.batch_execute(grants).await.unwrap();
    let url = database.url.replace("postgres@", "persist@");
    let records = Records::open(&RecordsConfig::new(&url)).unwrap();
    let results = records.write(&[one_of_each()]).await.unwrap();
    assert!(results[0].is_written(), "{results:?}");
    assert!(records::migrate(&RecordsConfig::new(url)).await.is_err());
}

fn impatient(url: &str) -> Records {
    let (connect_timeout, statement_timeout) = (Duration::from_millis(300), Duration::from_millis(300));
    Records::open(&RecordsConfig { connect_timeout, statement_timeout, ..RecordsConfig::new(url) }).unwrap()
}

#[tokio::test]
async fn a_server_that_is_away_or_silent_is_an_error_in_time() {
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let silent = silent.local_addr().unwrap();
    for address in [silent.to_string(), "127.0.0.1:9".to_owned()] {
        let records = impatient(&format!("postgres://postgres@{address}/none"));
        let started = Instant::now();
        let error = records.write(&[vec![entered(1)]]).await.unwrap_err();
        assert!(matches!(error, RecordsError::Connect(_)), "{error:?}");
        assert!(started.elapsed() < Duration::from_secs(2), "{:?}", started.elapsed());
    }
}

#[tokio::test]
async fn a_statement_that_takes_too_long_is_an_error_and_acknowledges_nothing() {
    let database = Database::fresh().await;
    let records = impatient(&database.url);
    let client = database.client().await;
    client.batch_execute("begin; lock table reservations in exclusive mode").await.unwrap();
    let message = vec![entered(1), booked(2, &reservation(0, vec![general("a", "b", 1, 1)]))];
    let error = records.write(std::slice::from_ref(&message)).await.unwrap_err();
    assert!(matches!(error, RecordsError::Statement(_)), "{error:?}");
    assert_eq!(database.count("facts").await, 0);
    client.batch_execute("commit").await.unwrap();
    assert!(records.write(&[message]).await.unwrap()[0].is_written());
}

#[tokio::test]
async fn a_broken_connection_is_replaced() {
    let database = Database::fresh().await;
    write_all(&database, &[entered(1)]).await;
    let end = "select pg_terminate_backend(pid, 1000) from pg_stat_activity \
        where datname = current_database() and application_name = 'jari'";
    let ended = database.client().await.query(end, &[]).await.unwrap();
    assert_eq!(ended.len(), 1);
    write_all(&database, &[entered(2)]).await;
    assert_eq!(database.count("facts").await, 2);
}

#[tokio::test]
async fn a_reservation_whose_status_nobody_knows_cannot_be_written() {
    let database = Database::fresh().await;
    write_all(&database, &[booked(1, &reservation(0, vec![general("a", "b", 1, 1)]))]).await;
    let client = database.client().await;
    for broken in ["status = 'LOST'", "amount = -1", "seat_count = 0", "version = 0"] {
        assert!(client.execute(&format!("update reservations set {broken}"), &[]).await.is_err(), "{broken}");
    }
    for broken in ["count = 0", "price = -1", "seat = '1A', count = 2"] {
        assert!(
            client.execute(&format!("update reservation_places set {broken}"), &[]).await.is_err(),
            "{broken}"
        );
    }
    let known = [ReservationStatus::Confirmed, PendingPayment, Paid, Cancelled, ReservationStatus::Expired];
    for status in known.map(ReservationStatus::as_str) {
        client.execute("update reservations set status = $1", &[&status]).await.unwrap();
    }
}
