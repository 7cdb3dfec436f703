//! A served system whose PostgreSQL is out of reach, or disagrees.

use std::time::Duration;

use admin::{Command, DeadLetterReport, EventSummary, Reply};
use domain::fact::{Fact, StreamId, What};
use domain::reservation::{Reservation, ReservationStatus, ReservedPlaces};
use domain::{Millis, ReservationId, Token};
use serde_json::json;
use support::{Fault, FaultProxy, Postgres, wait_until};

use crate::deliver::reservations;
use crate::serving::{Folder, Served};

const LONG: Duration = Duration::from_mins(1);
/// Bookings made during the outage: more than twice what may wait.
const BUYERS: usize = 6;

async fn summary(served: &Served) -> EventSummary {
    match served.ask(Command::Show { event: served.event.clone() }).await {
        Reply::Shown(detail) => detail.summary,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn without_postgresql_bookings_succeed_admission_stops_and_both_recover_by_themselves() {
    let database = FaultProxy::before(&Postgres::shared().database().await);
    let folder = Folder::with_sale(|sale| {
        sale["admission"] =
            json!({ "perSecond": 2, "maxActive": 1_000, "claimSeconds": 180, "backpressureSeconds": 1 });
    });
    let served = folder.serve_with(&[("SERVE_DATABASE_URL", database.url())]).await;
    let mut buyers = Vec::new();
    for _ in 0..BUYERS {
        buyers.push(served.active().await);
    }
    database.set(Fault::Refuse);
    database.cut();
    for token in &buyers {
        let booked = served.caller.post("/api/booking", json!({ "token": token, "seatCount": 1 })).await;
        assert_eq!(booked.status, 201, "{}", booked.text);
    }
    let waiting = served.join().await;
    // The command asks Redis alone for this.
    wait_until(LONG, "nobody is let in", async || summary(&served).await.pace_factor <= 0.0).await;
    let journal = summary(&served).await.journal;
    assert!(journal >= BUYERS as u64, "facts wait: {journal}");
    assert_eq!(
        served.caller.get(&format!("/api/status/poll?token={waiting}")).await.status,
        200,
        "the queue holds"
    );

    database.set(Fault::Pass);
    wait_until(LONG, "people are let in", async || summary(&served).await.pace_factor >= 1.0).await;
    served.let_in(&waiting).await;
    wait_until(LONG, "rows", async || {
        reservations(&served.records(), &served.event).await.len() == BUYERS
            && summary(&served).await.journal == 0
    })
    .await;
    let report = served.audit().await;
    assert_eq!(report.findings, [], "{report:?}");
}

async fn dead_letters(served: &Served) -> Vec<DeadLetterReport> {
    match served.ask(Command::DlqList).await {
        Reply::DeadLetters { letters } => letters,
        other => panic!("{other:?}"),
    }
}

async fn replay(served: &Served, ids: &[&str]) -> (usize, usize) {
    let ids = ids.iter().map(|id| (*id).to_owned()).collect();
    match served.ask(Command::DlqReplay { ids }).await {
        Reply::Replayed { replayed, kept } => (replayed.len(), kept.len()),
        other => panic!("{other:?}"),
    }
}

/// PostgreSQL has sold the seat to somebody of whom Redis knows nothing, or takes it back from them.
async fn stranger(served: &Served, token: Token, status: ReservationStatus, version: u32) {
    let places = ReservedPlaces {
        offering_id: "T1".parse().expect("an id"),
        section_id: "A".parse().expect("an id"),
        price: 1_000,
        count: 1,
        seats: vec!["1A".parse().expect("a seat")],
    };
    let reservation = Reservation {
        reservation_id: ReservationId::of(served.event.clone(), token),
        token,
        account: None,
        status,
        version,
        places: vec![places],
        seat_count: 1,
        amount: 1_000,
        currency: "KRW".to_owned(),
        created_at: Millis(1),
        updated_at: Millis(i64::from(version)),
        payment_due_at: None,
        payment_id: None,
    };
    let what = match status {
        ReservationStatus::Cancelled => What::BookingCancelled { reservation },
        _ => What::Booked { reservation },
    };
    let id = StreamId { ms: 1, sequence: version.into() };
    let fact = Fact { event: served.event.clone(), epoch: 1, id, at: Millis(1), what };
    let written = served.records().write(&[vec![fact]]).await.expect("PostgreSQL answers");
    assert!(written[0].is_written(), "{written:?}");
}

#[tokio::test]
async fn a_dead_letter_says_why_it_is_refused_and_is_written_once_that_is_mended() {
    let folder = Folder::with_sale(|_| {});
    let served = folder.serve().await;
    let (somebody, buyer) = (Token::random(), served.active().await);
    stranger(&served, somebody, ReservationStatus::Confirmed, 1).await;
    let held = json!({ "token": buyer, "offeringId": "T1", "seats": ["1A"] });
    served.caller.post("/api/seat/select", held).await.data();
    let booked = served.caller.post("/api/booking", json!({ "token": buyer })).await;
    assert_eq!(booked.status, 201, "{}", booked.text);

    wait_until(LONG, "a dead letter", async || !dead_letters(&served).await.is_empty()).await;
    let letters = dead_letters(&served).await;
    let [letter] = letters.as_slice() else { panic!("{letters:?}") };
    let reason = letter.reason.as_deref().expect("a reason");
    assert!(reason.contains("one_owner_a_seat"), "{reason}");
    assert!(
        letter.facts.iter().any(|fact| fact.kind == "BOOKED" && fact.event == served.event),
        "{letter:?}"
    );
    assert_eq!(replay(&served, &[&letter.id]).await, (0, 1), "it is refused once more, and stays");
    let unknown = served.ask(Command::DlqReplay { ids: vec!["0000".to_owned()] }).await;
    assert!(matches!(unknown, Reply::Refused(_)), "{unknown:?}");
    assert_eq!(dead_letters(&served).await, letters);

    stranger(&served, somebody, ReservationStatus::Cancelled, 2).await;
    assert_eq!(
        dead_letters(&served).await[0].reason,
        None,
        "looking wrote nothing, and nothing is in its way now"
    );
    assert_eq!(replay(&served, &[]).await, (1, 0));
    assert_eq!(dead_letters(&served).await, []);
    assert_eq!(replay(&served, &[]).await, (0, 0), "safe to repeat");
    let rows = reservations(&served.records(), &served.event).await;
    assert!(
        rows.iter().any(|row| row.token.to_string() == buyer && row.status == ReservationStatus::Confirmed)
    );
}
