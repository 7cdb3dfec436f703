use std::sync::Arc;

use domain::layout::Edition;
use domain::outcome::{
    Booked, Held, Joined, LineView, OfferingHit, Offerings, Place, Polled, ProgressView, SaleStatus,
    SeatMapView, SeatState, SectionSeats, Standing, TakenSeat,
};
use domain::reservation::{Reservation, ReservationStatus, ReservedPlaces};
use domain::sale::Sale;
use domain::shuffle::Seed;
use domain::{EventId, Millis};
use futures::executor::block_on;
use serde_json::{Value, json};

use super::{RESERVATION, Sent, TOKEN, gate, header_of, json_of, text_of};
use crate::response::{self, Answer};
use crate::{Asker, Body, KeyRing, PlaceKey, Response, Window, answer};

const NOW: Millis = Millis(1_789_005_601_000);

fn event() -> EventId {
    "ktx-2026-chuseok".parse().unwrap()
}

fn ring() -> KeyRing {
    KeyRing::new(b"a master key", None)
}

fn view() -> LineView {
    LineView {
        now: NOW,
        status: SaleStatus::Open,
        opens_at: NOW.plus(-60_000),
        epoch: 2,
        head_score: 4_200,
        net: 4_100,
        total_waiting: 5_000,
        remaining_seats: 19_000,
        admitted_per_second: 70.0,
        message: None,
    }
}

fn upcoming() -> LineView {
    LineView { status: SaleStatus::Upcoming, opens_at: NOW.plus(90_000), head_score: 0, net: 0, ..view() }
}

fn of(answer: Answer) -> Response<Body> {
    of_request(Sent::to("GET /health"), answer)
}

fn of_request(sent: Sent, outcome: Answer) -> Response<Body> {
    block_on(answer(&gate(), "poll", &sent.request(), |_| async { outcome }))
}

fn data(answer: Answer) -> Value {
    let body = json_of(&of(answer));
    assert_eq!(body["success"], true);
    body["data"].clone()
}

fn poll(place: Place, view: LineView) -> Value {
    data(polled(place, view))
}

fn polled(place: Place, view: LineView) -> Answer {
    let (ring, event) = (ring(), event());
    let asker = Asker {
        keys: &ring,
        event: &event,
        token: TOKEN.parse().unwrap(),
        ticket_number: Some(4_321),
        ticket_count: Some(0),
        last_read: None,
    };
    let ticket_count = if matches!(place, Place::Booked { .. }) { 2 } else { 0 };
    response::polled(asker, &Polled { standing: Standing { place, view }, ticket_count }, None)
}

/// Takes out what differs from answer to answer, and checks it.
fn settle(data: &mut Value, interval_ms: u64) -> Option<PlaceKey> {
    let fields = data.as_object_mut().unwrap();
    let next_poll_ms = fields.remove("nextPollMs").unwrap().as_u64().unwrap();
    assert!((interval_ms * 8 / 10..=interval_ms * 12 / 10).contains(&next_poll_ms), "{next_poll_ms}");
    let key = fields.remove("key").unwrap();
    let key = ring().check(&event(), TOKEN.parse().unwrap(), key.as_str()?).expect("our own key");
    assert_eq!(u64::from(key.interval_ms), interval_ms);
    assert!(matches!(key.window(Millis::now().plus(i64::try_from(next_poll_ms).unwrap())), Window::Open));
    assert!(matches!(key.window(Millis::now()), Window::TooEarly { .. }));
    Some(key)
}

#[test]
fn a_waiting_poll_tells_the_place() {
    let mut body = poll(Place::Waiting { score: 4_342, rank: Some(142) }, view());
    let key = settle(&mut body, 2_000).unwrap();
    assert_eq!(
        body,
        json!({
            "status": "WAITING", "rank": 142, "totalWaiting": 5_000, "ahead": 141, "behind": 4_858,
            "remainingSeats": 19_000, "activeExpiresAt": null, "totalTicketCount": 0,
            "estimatedWaitSeconds": 3, "net": 4_100, "score": 4_342,
        })
    );
    assert_eq!((key.epoch, key.score, key.rank, key.ticket_number), (2, 4_342, Some(142), Some(4_321)));
    assert_eq!((key.net, key.read_at), (4_100, NOW));
}

#[test]
fn the_first_in_line_waits_for_nobody_and_a_pause_has_no_end() {
    let body = poll(Place::Waiting { score: 4_201, rank: Some(1) }, view());
    assert_eq!((&body["ahead"], &body["estimatedWaitSeconds"]), (&json!(0), &json!(0)));
    let paused = LineView { status: SaleStatus::Paused, admitted_per_second: 0.0, ..view() };
    let body = poll(Place::Waiting { score: 4_201, rank: Some(1) }, paused);
    assert_eq!(body["estimatedWaitSeconds"], Value::Null);
    // Read between two steps, the line may be shorter than the rank.
    let body = poll(Place::Waiting { score: 9, rank: Some(9) }, LineView { total_waiting: 3, ..view() });
    assert_eq!(body["behind"], 0);
}

#[test]
fn before_the_opening_nothing_tells_the_place() {
    let seen = |score, rank| {
        let mut body = poll(
            Place::Waiting { score, rank },
            LineView { message: Some("곧 열립니다".to_owned()), ..upcoming() },
        );
        let key = settle(&mut body, 5_000).unwrap();
        // The instant of the answer is not the place's.
        (body, PlaceKey { earliest_at: NOW, ..key })
    };
    let (body, key) = seen(3, None);
    assert_eq!(
        body,
        json!({
            "status": "WAITING", "rank": null, "totalWaiting": 5_000, "ahead": null, "behind": null,
            "remainingSeats": 19_000, "activeExpiresAt": null, "totalTicketCount": 0,
            "estimatedWaitSeconds": null, "net": 0, "opensAt": NOW.0 + 90_000, "message": "곧 열립니다",
        })
    );
    assert_eq!((key.score, key.rank), (0, None));
    assert_eq!(seen(3, None), seen(999_999, Some(200_000)), "even if the store told it");
}

#[test]
fn an_active_poll_tells_its_end() {
    let mut body = poll(Place::Active { expires_at: NOW.plus(179_900), account: None }, view());
    let key = settle(&mut body, 2_000).unwrap();
    assert_eq!((key.score, key.rank), (0, None));
    assert_eq!(
        body,
        json!({
            "status": "ACTIVE", "rank": null, "totalWaiting": 5_000, "ahead": null, "behind": null,
            "remainingSeats": 19_000, "activeExpiresAt": NOW.0 + 179_900, "totalTicketCount": 0,
            "estimatedWaitSeconds": null, "net": 4_100, "expiresIn": 179,
        })
    );
    let body = poll(Place::Called, view());
    assert_eq!((&body["status"], &body["activeExpiresAt"]), (&json!("ACTIVE"), &Value::Null));
    assert_eq!(body.get("expiresIn"), None);
}

#[test]
fn what_has_ended_asks_for_no_more_polls() {
    let ended = |place| {
        let mut body = poll(place, view());
        assert_eq!(settle(&mut body, 0), None);
        let rest = body.as_object().unwrap().clone();
        (
            rest["status"].clone(),
            rest["totalTicketCount"].clone(),
            rest.get("reservationId").cloned(),
            rest.get("reentry").cloned(),
        )
    };
    let booked = Place::Booked { reservation: RESERVATION.parse().unwrap() };
    assert_eq!(ended(booked), (json!("BOOKED"), json!(2), Some(json!(RESERVATION)), None));
    assert_eq!(
        ended(Place::Expired { reentry: true }),
        (json!("EXPIRED"), json!(0), None, Some(json!(true)))
    );
    assert_eq!(ended(Place::Expired { reentry: false }), (json!("EXPIRED"), json!(0), None, None));
    assert_eq!(ended(Place::NotFound), (json!("NOT_FOUND"), json!(0), None, None));
}

#[test]
fn a_join_gives_a_token_and_a_rejoin_its_status() {
    let (ring, event) = (ring(), event());
    let asker = Asker {
        keys: &ring,
        event: &event,
        token: TOKEN.parse().unwrap(),
        ticket_number: None,
        ticket_count: Some(0),
        last_read: None,
    };
    let waiting = || Place::Waiting { score: 4_342, rank: Some(142) };
    let standing = Standing { place: waiting(), view: view() };
    let joined = Joined { ticket_number: Some(4_342), joined_at: Some(NOW), standing };
    let mut body = data(response::joined(asker, &joined));
    assert_eq!(settle(&mut body, 2_000).unwrap().ticket_number, Some(4_342));
    let expected = json!({
        "token": TOKEN, "eventId": "ktx-2026-chuseok", "joinedAt": NOW.0, "ticketNumber": 4_342,
        "rank": 142, "ahead": 141, "rejoined": false,
    });
    assert_eq!(body, expected);

    let mut body = data(response::rejoined(asker, &joined, None));
    settle(&mut body, 2_000);
    assert_eq!((&body["status"], &body["rejoined"]), (&json!("WAITING"), &json!(false)));

    let place = Place::Active { expires_at: NOW.plus(1_000), account: None };
    let view = LineView { message: Some("hurry".to_owned()), ..view() };
    let known = Joined { ticket_number: None, joined_at: None, standing: Standing { place, view } };
    let asker = Asker { ticket_number: Some(7), ..asker };
    let mut body = data(response::rejoined(asker, &known, Some("a.b.c".to_owned())));
    assert_eq!(settle(&mut body, 2_000).unwrap().ticket_number, Some(7));
    assert_eq!(
        body,
        json!({
            "token": TOKEN, "eventId": "ktx-2026-chuseok", "joinedAt": null, "ticketNumber": null,
            "rank": null, "ahead": null, "rejoined": true, "status": "ACTIVE", "message": "hurry",
            "accessToken": "a.b.c",
        })
    );
}

#[test]
fn progress_is_public_for_a_second_and_keeps_the_seed_until_the_opening() {
    let seed = Seed::of(b"a master key", &event());
    let response = of(response::progress(&ProgressView { view: view(), shuffled: false }, None));
    assert_eq!(header_of(&response, "cache-control"), Some("public, max-age=1"));
    assert_eq!(
        json_of(&response)["data"],
        json!({
            "status": "OPEN", "headScore": 4_200, "net": 4_100, "totalWaiting": 5_000, "remainingSeats": 19_000,
            "admittedPerSecond": 70.0, "opensAt": NOW.0 - 60_000, "updatedAt": NOW.0,
        })
    );
    let drawn = |view| data(response::progress(&ProgressView { view, shuffled: true }, Some(&seed)));
    let (before, after) = (drawn(upcoming()), drawn(view()));
    assert_eq!(before["shuffleCommitment"], seed.commitment());
    assert_eq!((before.get("shuffleSeed"), &before["status"]), (None, &json!("UPCOMING")));
    assert_eq!(after["shuffleCommitment"], seed.commitment());
    assert_eq!(after["shuffleSeed"], seed.reveal());
    let undrawn = data(response::progress(&ProgressView { view: view(), shuffled: false }, Some(&seed)));
    assert_eq!((undrawn.get("shuffleCommitment"), undrawn.get("shuffleSeed")), (None, None));
}

#[test]
fn health_is_plain_and_fails_with_redis() {
    let response = of(response::health(true, NOW));
    assert_eq!(response.status(), 200);
    assert_eq!(json_of(&response), json!({"status": "ok", "redis": "ok", "timestamp": NOW.0}));
    assert_eq!(header_of(&response, "cache-control"), Some("no-store"));
    let response = of(response::health(false, NOW));
    assert_eq!((response.status().as_u16(), header_of(&response, "retry-after")), (503, Some("5")));
    assert_eq!(
        json_of(&response),
        json!({"status": "unavailable", "redis": "unavailable", "timestamp": NOW.0})
    );
}

fn sale() -> Arc<Sale> {
    let section = |id: &str, price: u64| json!({"id": id, "name": "일반실", "price": price, "capacity": 10});
    let sale = json!({
        "eventId": "ktx-2026-chuseok", "title": "추석", "opensAt": 0, "closesAt": 1, "preQueue": "fifo",
        "admission": {"perSecond": 70.0, "maxActive": 10, "activeSeconds": 180, "claimSeconds": 30,
            "compensateNoShows": true},
        "holdSeconds": 180, "limitPerAccount": 5, "requireAccount": false, "joinsPerAddressPerSecond": 10,
        "payment": {"mode": "none", "currency": "KRW"},
        "offerings": [
            {"id": "KTX-101", "date": "2026-09-24", "from": "서울", "to": "부산",
                "sections": [section("special", 83_700), section("standing", 50_000)]},
            {"id": "KTX-103", "date": "2026-09-24", "from": "서울", "to": "부산", "sections": [section("special", 1)]},
        ],
    });
    Arc::new(serde_json::from_value(sale).unwrap())
}

#[test]
fn a_search_shows_offerings_with_their_attributes_and_stock() {
    let hits = vec![
        OfferingHit { offering: 0, remaining: vec![3, 0] },
        OfferingHit { offering: 99, remaining: vec![] },
    ];
    assert_eq!(
        data(response::offerings(&Offerings { sale: sale(), hits })),
        json!({"offerings": [{
            "offeringId": "KTX-101", "date": "2026-09-24", "from": "서울", "to": "부산",
            "sections": [
                {"sectionId": "special", "name": "일반실", "price": 83_700, "remaining": 3},
                {"sectionId": "standing", "name": "일반실", "price": 50_000, "remaining": 0},
            ],
        }]})
    );
    assert_eq!(
        data(response::offerings(&Offerings { sale: sale(), hits: vec![] })),
        json!({"offerings": []})
    );
}

fn seats() -> SeatMapView {
    let section = |number: u32, id: &str, places: Value| json!({"number": number, "offering": "KTX-101", "id": id, "price": 1, "removed": false, "places": places});
    let rows = json!([
        {"name": "11", "offset": 0, "seats": ["11A", "11B"], "removed": true},
        {"name": "12", "offset": 3, "seats": ["12A", "12B"], "removed": false},
    ]);
    let special = section(0, "special", json!({"Assigned": {"rows": rows}}));
    let standing = section(1, "standing", json!({"General": {"capacity": 10}}));
    let layout = json!({"map_length": 6, "sections": [special, standing]});
    let layout = serde_json::from_value(layout).unwrap();
    let taken = vec![
        TakenSeat { row: 1, seat: 0, state: SeatState::Held },
        TakenSeat { row: 1, seat: 1, state: SeatState::Sold },
    ];
    SeatMapView {
        edition: Arc::new(Edition { version: 1, sale: sale(), layout }),
        sequence: 41,
        sections: vec![
            SectionSeats { number: 0, taken, remaining: 0 },
            SectionSeats { number: 1, taken: vec![], remaining: 7 },
        ],
    }
}

fn seat_map(known: Option<&str>, view: &SeatMapView) -> Response<Body> {
    let sent = || {
        let sent = Sent::to("GET /api/seats");
        match known {
            Some(tags) => sent.header("if-none-match", tags),
            None => sent,
        }
    };
    let outcome = response::seat_map(&sent().request(), view);
    block_on(answer(&gate(), "seats", &sent().request(), |_| async { outcome }))
}

#[test]
fn a_seat_map_shows_rows_and_what_is_taken() {
    let response = seat_map(None, &seats());
    assert_eq!(
        json_of(&response)["data"],
        json!({"sequence": 41, "sections": [
            {"sectionId": "special", "rows": [{"name": "12", "seats": ["12A", "12B"]}],
                "taken": {"12A": "HELD", "12B": "SOLD"}, "remaining": 0},
            {"sectionId": "standing", "rows": [], "taken": {}, "remaining": 7},
        ]})
    );
    assert_eq!(header_of(&response, "cache-control"), Some("private, no-cache"));
    assert!(!text_of(&response).contains(TOKEN));
}

#[test]
fn a_known_seat_map_is_not_sent_again() {
    let etag = header_of(&seat_map(None, &seats()), "etag").unwrap().to_owned();
    assert!(etag.starts_with('"') && etag.ends_with('"') && etag.len() > 10, "{etag}");
    for tags in [etag.clone(), format!("W/{etag}"), format!("\"x\", W/\"y\" , {etag}"), "*".to_owned()] {
        let response = seat_map(Some(&tags), &seats());
        assert_eq!((response.status().as_u16(), text_of(&response)), (304, ""), "{tags}");
        assert_eq!(header_of(&response, "etag"), Some(etag.as_str()));
        assert_eq!(header_of(&response, "cache-control"), Some("private, no-cache"));
        assert_eq!(header_of(&response, "content-type"), None);
    }
    for tags in ["", "\"x\"", etag.trim_matches('"'), "W/"] {
        assert_eq!(seat_map(Some(tags), &seats()).status(), 200, "{tags}");
    }
}

#[test]
fn every_change_of_a_seat_map_changes_its_tag() {
    let tag = |change: fn(&mut SeatMapView)| {
        let mut view = seats();
        change(&mut view);
        header_of(&seat_map(None, &view), "etag").unwrap().to_owned()
    };
    let tags = [
        tag(|_| ()),
        tag(|view| view.sequence += 1),
        tag(|view| view.sections[1].remaining -= 1),
        tag(|view| view.sections[0].taken[0].state = SeatState::Sold),
        tag(|view| view.sections[0].taken.truncate(1)),
        tag(|view| view.sections.truncate(1)),
        tag(|view| Arc::make_mut(&mut view.edition).version += 1),
    ];
    let distinct: std::collections::BTreeSet<_> = tags.iter().collect();
    assert_eq!(distinct.len(), tags.len(), "{tags:?}");
    assert_eq!(tag(|_| ()), tags[0]);
}

#[test]
fn holds_releases_and_leaves_are_told() {
    let held = Held {
        now: NOW,
        seats: vec!["12A".parse().unwrap(), "12B".parse().unwrap()],
        seat_count: 2,
        hold_expires_at: NOW.plus(179_999),
        active_expires_at: NOW.plus(200_000),
        held_count: 3,
        ticket_count: 2,
        account: None,
        prolonged: true,
    };
    assert_eq!(
        data(response::held(&held, Some("a.b.c".to_owned()))),
        json!({
            "seats": ["12A", "12B"], "seatCount": 2, "holdExpiresAt": NOW.0 + 179_999, "activeExpiresAt": NOW.0 + 200_000,
            "expiresIn": 179, "totalTicketCount": 2, "accessToken": "a.b.c",
        })
    );
    assert_eq!(data(response::released(2)), json!({"released": 2}));
    assert_eq!(data(response::left(false)), json!({"removed": false}));
}

fn bought() -> Reservation {
    let places = |section: &str, count, seats: &[&str]| ReservedPlaces {
        offering_id: "KTX-101".parse().unwrap(),
        section_id: section.parse().unwrap(),
        price: 1_000,
        count,
        seats: seats.iter().map(|seat| seat.parse().unwrap()).collect(),
    };
    Reservation {
        reservation_id: RESERVATION.parse().unwrap(),
        token: TOKEN.parse().unwrap(),
        account: Some("someone".parse().unwrap()),
        status: ReservationStatus::PendingPayment,
        version: 1,
        places: vec![places("special", 2, &["12A", "12B"]), places("standing", 1, &[])],
        seat_count: 3,
        amount: 3_000,
        currency: "KRW".to_owned(),
        created_at: NOW,
        updated_at: NOW.plus(5),
        payment_due_at: Some(NOW.plus(300_000)),
        payment_id: None,
    }
}

#[test]
fn a_booking_is_created_where_it_can_be_read() {
    let response = of(response::booked(&Booked { reservation: bought(), remaining_seats: 17 }));
    assert_eq!(response.status(), 201);
    assert_eq!(header_of(&response, "location"), Some(format!("/api/booking/{RESERVATION}").as_str()));
    assert_eq!(
        json_of(&response)["data"],
        json!({
            "reservationId": RESERVATION, "status": "PENDING_PAYMENT", "seats": ["12A", "12B"], "seatCount": 3,
            "amount": 3_000, "remainingSeats": 17, "paymentDueAt": NOW.0 + 300_000,
        })
    );
    let paid = Reservation { status: ReservationStatus::Confirmed, payment_due_at: None, ..bought() };
    let body = data_of_created(&of(response::booked(&Booked { reservation: paid, remaining_seats: 17 })));
    assert_eq!((&body["status"], body.get("paymentDueAt")), (&json!("CONFIRMED"), None));
}

fn data_of_created(response: &Response<Body>) -> Value {
    json_of(response)["data"].clone()
}

#[test]
fn a_reservation_is_read_without_its_secrets() {
    let cancelled = Reservation { status: ReservationStatus::Cancelled, ..bought() };
    let response = of(response::reservation(&cancelled));
    assert_eq!(
        json_of(&response)["data"],
        json!({
            "reservationId": RESERVATION, "eventId": "ktx-2026-chuseok", "status": "CANCELLED",
            "seats": ["12A", "12B"],
            "places": [
                {"offeringId": "KTX-101", "sectionId": "special", "price": 1_000, "count": 2, "seats": ["12A", "12B"]},
                {"offeringId": "KTX-101", "sectionId": "standing", "price": 1_000, "count": 1, "seats": []},
            ],
            "seatCount": 3, "amount": 3_000, "currency": "KRW", "createdAt": NOW.0, "updatedAt": NOW.0 + 5,
            "paymentDueAt": NOW.0 + 300_000,
        })
    );
    assert!(!text_of(&response).contains(TOKEN));
    assert!(!text_of(&response).contains("someone"));
}
