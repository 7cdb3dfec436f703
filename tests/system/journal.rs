//! Each fact is appended by the step that made it true, once, and nothing else is.

use domain::fact::{CalledPlace, Fact, What};
use domain::reservation::{Reservation, ReservationStatus, ReservedPlaces};
use domain::{Millis, ReservationId, Token};
use serde_json::{Value, json};
use store::StatusChange;
use support::{Answer, App, Call, sale};

use crate::deliver::journal;

/// A sale and all that should have become true of it so far.
struct Story {
    app: App,
    expected: Vec<(Millis, What)>,
}

impl Story {
    async fn begin() -> Self {
        let mut story = Self { app: App::start().await, expected: Vec::new() };
        story.changed("apply", None, 1).await;
        story
    }

    /// That just became true.
    fn expect(&mut self, what: What) {
        self.expected.push((Millis(self.app.now()), what));
    }

    async fn changed(&mut self, change: &str, value: Option<&str>, version: u64) {
        let brings_definition = value.is_none();
        let edition = self.app.store.newest_edition(&self.app.event).await.expect("redis answers");
        let edition = edition.expect("the event is known");
        let definition = brings_definition.then(|| serde_json::to_value(&*edition.sale).expect("JSON"));
        self.expect(What::EventChanged {
            by: "tests".to_owned(),
            change: change.to_owned(),
            value: value.map(str::to_owned),
            version,
            definition,
        });
    }

    async fn join(&mut self, ticket_number: u64) -> Token {
        let token = self.app.join().await.parse().expect("a token");
        self.entered(token, Some(ticket_number), ticket_number);
        token
    }

    fn entered(&mut self, token: Token, ticket_number: Option<u64>, score: u64) {
        self.expect(What::UserEnterQueue { token, ticket_number, score, account: None });
    }

    fn called(&mut self, places: &[(Token, u64)]) {
        let place = |(token, score): &(Token, u64)| CalledPlace { token: *token, score: *score };
        self.expect(What::UserAdmitted { places: places.iter().map(place).collect() });
    }

    /// A tick one second later.
    async fn tick(&self) {
        self.app.pass(1_000);
        self.app.tick().await;
    }

    /// A called token comes; polling again claims nothing.
    async fn claim(&mut self, token: Token) {
        for _ in 0..2 {
            assert_eq!(self.app.poll(&token.to_string()).await.data()["status"], "ACTIVE");
        }
        let expires_at = Millis(self.app.now() + 180_000);
        self.expect(What::TokenIssued { token, expires_at });
    }

    async fn hold(&self, token: Token, choice: Value) -> Answer {
        self.app.hold(&token.to_string(), choice).await
    }

    async fn release(&self, token: Token, seats: &[&str]) -> Answer {
        let choice = json!({ "token": token, "offeringId": "T1", "seats": seats });
        self.app.post("/api/seat/cancel", choice).await
    }

    /// The journal is what was expected, no more and no less.
    async fn check(&self) {
        let facts = journal(&self.app).await;
        let told: Vec<(Millis, What)> = facts.iter().map(|fact| (fact.at, fact.what.clone())).collect();
        for (at, (told, expected)) in told.iter().zip(&self.expected).enumerate() {
            assert_eq!(told, expected, "fact {at}");
        }
        assert_eq!(told.len(), self.expected.len(), "{:?}", told.get(self.expected.len()..));
        assert!(facts.iter().all(|fact| fact.event == self.app.event && fact.epoch == 1));
        let ids: Vec<_> = facts.iter().map(|fact: &Fact| fact.id).collect();
        assert!(ids.is_sorted_by(|one, next| one < next), "{ids:?}");
    }
}

fn named(seats: &[&str]) -> ReservedPlaces {
    let names = seats.iter().map(|seat| seat.parse().expect("a seat")).collect::<Vec<_>>();
    ReservedPlaces {
        price: 1_000,
        count: u32::try_from(seats.len()).expect("few"),
        seats: names,
        ..section("A")
    }
}

fn general(count: u32) -> ReservedPlaces {
    ReservedPlaces { price: 500, count, ..section("G") }
}

fn section(id: &str) -> ReservedPlaces {
    let (offering_id, section_id) = ("T1".parse().expect("an id"), id.parse().expect("an id"));
    ReservedPlaces { offering_id, section_id, price: 0, count: 0, seats: Vec::new() }
}

#[tokio::test]
async fn the_line_is_told_as_it_moves() {
    let mut story = Story::begin().await;
    let (one, two, gone) = (story.join(1).await, story.join(2).await, story.join(3).await);
    for removed in [true, false] {
        assert_eq!(story.app.leave(&gone.to_string()).await.data()["removed"], removed);
    }
    story.expect(What::UserLeftQueue { token: gone });
    // Nobody moves by looking, and a reload is no new place.
    story.app.rejoin(&one.to_string()).await.data();
    story.app.poll(&two.to_string()).await.data();

    story.tick().await;
    story.called(&[(one, 1), (two, 2)]);
    story.claim(one).await;
    story.app.pass(15_000);
    story.app.tick().await;
    story.expect(What::AdmissionLapsed { tokens: vec![two] });

    // Back at its old score, without a new number, and called once more.
    assert_eq!(story.app.rejoin(&two.to_string()).await.data()["status"], "WAITING");
    story.entered(two, None, 2);
    story.tick().await;
    story.called(&[(two, 2)]);
    story.claim(two).await;
    story.app.leave(&two.to_string()).await.data();
    story.expect(What::UserLeftQueue { token: two });

    // A session that ends without a booking goes to the end of the line.
    story.app.pass(180_000);
    story.app.tick().await;
    story.expect(What::AdmissionExpired { tokens: vec![one] });
    assert_eq!(story.app.rejoin(&one.to_string()).await.data()["status"], "WAITING");
    story.entered(one, Some(4), 4);
    story.check().await;
}

#[tokio::test]
async fn who_comes_back_before_the_tick_saw_the_end_is_told_to_have_ended_once() {
    let mut story = Story::begin().await;
    let token = story.join(1).await;
    story.tick().await;
    story.called(&[(token, 1)]);
    story.app.pass(15_000);
    story.app.rejoin(&token.to_string()).await.data();
    story.expect(What::AdmissionLapsed { tokens: vec![token] });
    story.entered(token, None, 1);
    story.app.tick().await;
    story.called(&[(token, 1)]);
    story.claim(token).await;
    story.app.pass(180_000);
    story.app.rejoin(&token.to_string()).await.data();
    story.expect(What::AdmissionExpired { tokens: vec![token] });
    story.entered(token, Some(2), 2);
    story.check().await;
}

#[tokio::test]
async fn seats_are_told_as_they_are_kept_and_given_back() {
    let mut story = Story::begin().await;
    let (one, two) = (story.join(1).await, story.join(2).await);
    story.tick().await;
    story.called(&[(one, 1), (two, 2)]);
    story.claim(one).await;
    let held_until = Millis(story.app.now() + 120_000);
    let held = |token, places| What::SeatsHeld { token, places: vec![places], expires_at: held_until };
    for _ in 0..2 {
        story.hold(one, json!({ "offeringId": "T1", "seats": ["1A", "1B"] })).await.data();
    }
    story.expect(held(one, named(&["1A", "1B"])));
    // Only what a hold added is told.
    story.hold(one, json!({ "offeringId": "T1", "seats": ["1B", "1C"] })).await.data();
    story.expect(held(one, named(&["1C"])));
    story.hold(one, json!({ "count": 1 })).await.data();
    story.expect(held(one, general(1)));
    let refused = story.hold(one, json!({ "offeringId": "T1", "seats": ["2A"] })).await;
    assert_eq!(refused.code(), "PURCHASE_LIMIT_EXCEEDED");
    for released in [2, 0] {
        assert_eq!(story.release(one, &["1A", "1C"]).await.data()["released"], released);
    }
    story.expect(What::SeatsReleased { token: Some(one), places: vec![named(&["1A", "1C"])] });

    // Acting is arriving: the refused hold of a called token begins its session all the same.
    let refused = story.hold(two, json!({ "offeringId": "T1", "seats": ["1B"] })).await;
    assert_eq!(refused.code(), "SEAT_TAKEN");
    story.expect(What::TokenIssued { token: two, expires_at: Millis(story.app.now() + 180_000) });
    story.hold(two, json!({ "offeringId": "T1", "seats": ["4D"] })).await.data();
    story.expect(held(two, named(&["4D"])));
    story.app.leave(&two.to_string()).await.data();
    story.expect(What::SeatsReleased { token: Some(two), places: vec![named(&["4D"])] });
    story.expect(What::UserLeftQueue { token: two });

    // Holds that are over have no one who gave them back.
    story.app.at(held_until.0);
    story.app.tick().await;
    story.expect(What::SeatsReleased { token: None, places: vec![named(&["1B"]), general(1)] });
    story.expect(What::AdmissionExpired { tokens: vec![one] });
    story.check().await;
}

#[tokio::test]
async fn a_seat_whose_hold_is_over_is_told_free_before_it_is_told_held() {
    let mut story = Story::begin().await;
    let (one, two) = (story.join(1).await, story.join(2).await);
    story.tick().await;
    story.called(&[(one, 1), (two, 2)]);
    story.claim(one).await;
    story.claim(two).await;
    story.hold(one, json!({ "offeringId": "T1", "seats": ["1A"] })).await.data();
    let places = || vec![named(&["1A"])];
    story.expect(What::SeatsHeld {
        token: one,
        places: places(),
        expires_at: Millis(story.app.now() + 120_000),
    });
    story.app.pass(120_000);
    story.hold(two, json!({ "offeringId": "T1", "seats": ["1A"] })).await.data();
    story.expect(What::SeatsReleased { token: None, places: places() });
    story.expect(What::SeatsHeld {
        token: two,
        places: places(),
        expires_at: Millis(story.app.now() + 120_000),
    });
    story.check().await;
}

#[tokio::test]
async fn a_booking_and_its_end_are_told_once_with_the_whole_reservation() {
    let mut story = Story::begin().await;
    let token = story.join(1).await;
    story.tick().await;
    story.called(&[(token, 1)]);
    story.claim(token).await;
    story.hold(token, json!({ "offeringId": "T1", "seats": ["2B", "2C"] })).await.data();
    let expires_at = Millis(story.app.now() + 120_000);
    story.expect(What::SeatsHeld { token, places: vec![named(&["2B", "2C"])], expires_at });
    story.hold(token, json!({ "count": 2 })).await.data();
    story.expect(What::SeatsHeld { token, places: vec![general(2)], expires_at });
    story.app.pass(5_000);

    let mut answers = Vec::new();
    for _ in 0..3 {
        answers.push(story.app.book(&token.to_string(), json!({})).await);
    }
    assert!(answers.iter().all(|answer| answer.status == 201), "{answers:?}");
    assert_eq!(story.app.book(&token.to_string(), json!({ "seatCount": 1 })).await.code(), "ALREADY_BOOKED");
    let booked_at = Millis(story.app.now());
    let mut reservation = Reservation {
        reservation_id: ReservationId::of(story.app.event.clone(), token),
        token,
        account: None,
        status: ReservationStatus::Confirmed,
        version: 1,
        places: vec![named(&["2B", "2C"]), general(2)],
        seat_count: 4,
        amount: 3_000,
        currency: "KRW".to_owned(),
        created_at: booked_at,
        updated_at: booked_at,
        payment_due_at: None,
        payment_id: None,
    };
    assert_eq!(answers[0].data()["reservationId"], reservation.reservation_id.to_string());
    story.expect(What::Booked { reservation: reservation.clone() });

    story.app.pass(7_000);
    let location = format!("/api/booking/{}", reservation.reservation_id);
    for _ in 0..3 {
        let cancelled = story.app.send(Call::new("DELETE", &location).query("token", token)).await;
        assert_eq!(cancelled.data()["status"], "CANCELLED");
    }
    reservation.status = ReservationStatus::Cancelled;
    reservation.version = 2;
    reservation.updated_at = Millis(story.app.now());
    story.expect(What::BookingCancelled { reservation });
    story.check().await;
}

#[tokio::test]
async fn changes_of_the_sale_are_told_with_who_and_what() {
    let mut story = Story::begin().await;
    let event = story.app.event.clone();
    for (change, word, value) in [
        (StatusChange::Pause, "pause", "PAUSED"),
        (StatusChange::Message("곧 다시 엽니다".to_owned()), "message", "곧 다시 엽니다"),
        (StatusChange::Maintenance(true), "maintenance", "1"),
        (StatusChange::Open, "open", "OPEN"),
    ] {
        story.app.store.change(&event, "tests", &change).await.expect("redis answers").expect("known");
        story.changed(word, Some(value), 1).await;
    }
    let mut more = sale(event.as_str());
    more["offerings"][0]["sections"][1]["capacity"] = json!(20);
    assert_eq!(story.app.apply(&more).await, 2);
    story.changed("apply", None, 2).await;
    story
        .app
        .store
        .change(&event, "tests", &StatusChange::Close)
        .await
        .expect("redis answers")
        .expect("known");
    story.changed("close", Some("CLOSED"), 2).await;
    story.check().await;
}
