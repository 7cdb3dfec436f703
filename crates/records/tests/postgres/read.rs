//! Reading back, a page at a time, against a real server.

use crate::facts::{booked, cancelled, changed, entered, event, fact, general, named, reservation};
use crate::server::Database;
use domain::EventId;
use domain::fact::What;
use domain::reservation::ReservationStatus::{Cancelled, Paid, PendingPayment};
use records::{MAX_PAGE_ROWS, SectionCount, StatusCount};

#[tokio::test]
async fn pages_of_reservations_give_each_once_in_the_order_of_their_sale() {
    let database = Database::fresh().await;
    // Many in one millisecond, so that a page ends among them.
    let mut sold: Vec<_> = (0..50)
        .map(|at| reservation(at / 20, vec![general("a", "b", 1, 2), general("a", "c", 1, 1)]))
        .collect();
    let facts = (1..).zip(&sold).map(|(sequence, sold)| booked(sequence, sold)).collect();
    database.records.write(&[facts]).await.unwrap();
    sold.sort_by_key(|of| (of.created_at, of.reservation_id.to_string()));
    for limit in [1, 7, 50, 51] {
        let mut read = Vec::new();
        loop {
            let page = database.records.reservations(&event(), read.last(), limit).await.unwrap();
            assert!(page.len() <= limit as usize);
            if page.is_empty() {
                break;
            }
            read.extend(page);
        }
        assert_eq!(read, sold, "{limit} a page");
    }
}

#[tokio::test]
async fn pages_of_facts_give_each_once_in_the_order_in_which_they_became_true() {
    let database = Database::fresh().await;
    let mut entered: Vec<_> = (0..50).map(entered).collect();
    for fact in &mut entered {
        // Three facts a millisecond, the clock set back between epochs.
        fact.id.ms -= fact.id.sequence % 3;
        if fact.id.sequence >= 30 {
            fact.epoch = 2;
            fact.id.ms -= 1_000_000;
        }
    }
    let other = booked(1000, &reservation(0, vec![general("a", "b", 1, 1)]));
    database.records.write(&[entered.clone(), vec![other]]).await.unwrap();
    entered.sort_by_key(|fact| (fact.epoch, fact.id));
    for limit in [1, 7, 50, 51] {
        let mut read = Vec::new();
        loop {
            let page =
                database.records.facts(&event(), "USER_ENTER_QUEUE", read.last(), limit).await.unwrap();
            if page.is_empty() {
                break;
            }
            read.extend(page);
        }
        assert_eq!(read, entered, "{limit} a page");
    }
}

#[tokio::test]
async fn all_pages_are_read_where_the_last_one_is_full_and_where_it_is_not() {
    for count in [2_000, 2_001] {
        let database = Database::fresh().await;
        let sold: Vec<_> = (0..count).map(|at| reservation(at, vec![general("a", "b", 1, 1)])).collect();
        let booked: Vec<_> = (1..).zip(&sold).map(|(sequence, sold)| booked(sequence, sold)).collect();
        database.records.write(std::slice::from_ref(&booked)).await.unwrap();
        let (mut rows, mut facts) = (Vec::new(), Vec::new());
        database.records.each_reservation(&event(), |row| rows.push(row)).await.unwrap();
        assert_eq!(rows, sold);
        database.records.each_fact(&event(), booked[0].what.kind(), |fact| facts.push(fact)).await.unwrap();
        assert_eq!(facts, booked);
    }
}

#[tokio::test]
async fn what_changed_lately_is_read_alone_and_in_the_order_of_its_change() {
    let database = Database::fresh().await;
    let sold: Vec<_> = (0..20).map(|at| reservation(at * 10, vec![general("a", "b", 1, 1)])).collect();
    let mut facts: Vec<_> = (1..).zip(&sold).map(|(sequence, sold)| booked(sequence, sold)).collect();
    // The first one of all is changed last.
    let mut paid = changed(&sold[0], Paid);
    paid.updated_at = sold[19].updated_at.plus(5);
    facts.push(booked(100, &paid));
    database.records.write(&[facts]).await.unwrap();
    let expected: Vec<_> = sold[15..].iter().cloned().chain([paid]).collect();
    for limit in [1, 2, 100] {
        let (mut read, mut after) = (Vec::new(), Some((sold[15].updated_at, None)));
        loop {
            let behind = after.as_ref().map(|(at, id): &(_, Option<_>)| (*at, id.as_ref()));
            let page = database.records.reservations_changed(&event(), behind, limit).await.unwrap();
            let Some(last) = page.last() else { break };
            after = Some((last.updated_at, Some(last.reservation_id.clone())));
            read.extend(page);
        }
        assert_eq!(read, expected, "{limit} a page");
    }
}

#[tokio::test]
async fn facts_of_several_kinds_come_in_one_order_and_the_newest_is_known() {
    let database = Database::fresh().await;
    assert_eq!(database.records.newest_fact(&event()).await.unwrap(), None);
    let token = domain::Token::random();
    let left = fact(5, What::UserLeftQueue { token });
    let sold = booked(6, &reservation(0, vec![general("a", "b", 1, 1)]));
    let mut last = entered(2);
    last.epoch = 3;
    let facts = vec![last.clone(), entered(9), sold, left.clone(), entered(1)];
    database.records.write(std::slice::from_ref(&facts)).await.unwrap();
    let kinds = ["USER_ENTER_QUEUE", "USER_LEFT_QUEUE"];
    let expected = [&facts[4], &left, &facts[1], &last].map(Clone::clone);
    let mut read: Vec<domain::fact::Fact> = Vec::new();
    loop {
        let after = read.last().map(|fact| (fact.epoch, fact.id));
        let page = database.records.facts_of(&event(), &kinds, after, 3).await.unwrap();
        if page.is_empty() {
            break;
        }
        read.extend(page);
    }
    assert_eq!(read, expected);
    assert_eq!(database.records.newest_fact(&event()).await.unwrap(), Some((3, last.at)));
}

#[tokio::test]
async fn counts_are_of_one_event_and_sections_count_what_is_kept() {
    let database = Database::fresh().await;
    let places =
        |seat| vec![named("KTX-101", "standard", 100, &[seat]), general("KTX-101", "standing", 10, 3)];
    let (one, two, three) =
        (reservation(0, places("1A")), reservation(1, places("1B")), reservation(2, places("1C")));
    let facts = vec![
        booked(1, &one),
        booked(2, &two),
        booked(3, &three),
        cancelled(4, &one),
        booked(5, &changed(&two, Paid)),
    ];
    database.records.write(&[facts]).await.unwrap();
    let count = |status| StatusCount { status, reservations: 1, places: 4, amount: 130 };
    let counts = database.records.status_counts(&event()).await.unwrap();
    assert_eq!(counts, [count(Cancelled), count(Paid), count(PendingPayment)]);
    let section = |id: &str, sold| SectionCount {
        offering_id: "KTX-101".parse().unwrap(),
        section_id: id.parse().unwrap(),
        sold,
    };
    let counts = database.records.section_counts(&event()).await.unwrap();
    assert_eq!(counts, [section("standard", 2), section("standing", 6)]);
    let other: EventId = "concert-2026".parse().unwrap();
    assert!(database.records.status_counts(&other).await.unwrap().is_empty());
    assert!(database.records.section_counts(&other).await.unwrap().is_empty());
    assert!(database.records.reservations(&other, None, 10).await.unwrap().is_empty());
}

#[tokio::test]
async fn a_page_is_bounded_whatever_is_asked_for() {
    let database = Database::fresh().await;
    let facts: Vec<_> = (0..=u64::from(MAX_PAGE_ROWS)).map(entered).collect();
    database.records.write(&[facts]).await.unwrap();
    let page = database.records.facts(&event(), "USER_ENTER_QUEUE", None, u32::MAX).await.unwrap();
    assert_eq!(page.len(), MAX_PAGE_ROWS as usize);
}

#[tokio::test]
async fn a_row_that_this_version_cannot_read_is_an_error_that_names_its_table() {
    let database = Database::fresh().await;
    database.records.write(&[vec![booked(1, &reservation(0, vec![general("a", "b", 1, 1)]))]]).await.unwrap();
    let client = database.client().await;
    client.execute("update reservation_places set section_id = 'no such id'", &[]).await.unwrap();
    let error = database.records.reservations(&event(), None, 10).await.unwrap_err();
    assert!(error.to_string().starts_with("reservations: a row cannot be read"), "{error}");
}
