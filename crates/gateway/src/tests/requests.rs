use domain::Millis;
use domain::command::{Choice, Purchase};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{RESERVATION, Sent, TOKEN, gate};
use crate::routes::{self, Call, ROUTES};
use crate::{Failure, Gate, Request, request};

/// What a request is refused with before anything is asked of the store.
fn refusal(gate: &Gate, request: &Request) -> Option<Failure> {
    let (route, _) = match routes::of(request) {
        Ok(found) => found,
        Err(missing) => return Some(missing.into()),
    };
    match route.call {
        Call::Join => request::join(gate, request).err(),
        Call::Rejoin => request::rejoin(gate, request).err(),
        Call::Leave => request::leave(gate, request).err(),
        Call::Poll => request::poll(gate, request).err(),
        Call::Progress => request::progress(gate, request).err(),
        Call::Health | Call::Keys | Call::Discovery => None,
        Call::Search => request::search(gate, request).err(),
        Call::SeatMap => request::seat_map(gate, request).err(),
        Call::Hold => request::hold(gate, request).err(),
        Call::Release => request::release(gate, request).err(),
        Call::Book => request::book(gate, request).err(),
        Call::ReadReservation | Call::CancelReservation => request::reserved(gate, request).err(),
        Call::Pay => request::pay(gate, request, Millis::now()).err(),
    }
}

/// The field an invalid request names; else its code.
fn word(failure: Option<Failure>) -> &'static str {
    match failure {
        None => "fine",
        Some(Failure::InvalidRequest { field, .. }) => field,
        Some(failure) => failure.row().code,
    }
}

fn sent(line: &str) -> &'static str {
    word(refusal(&gate(), &Sent::to(line).request()))
}

fn posted(path: &str, body: &Value) -> &'static str {
    word(refusal(&gate(), &Sent::to(&format!("POST {path}")).json(body).request()))
}

/// With a token besides.
fn posted_with(path: &str, mut body: Value) -> &'static str {
    body["token"] = json!(TOKEN);
    posted(path, &body)
}

#[test]
fn a_join_needs_nothing_where_there_is_a_default() {
    let joined = request::join(&gate(), &Sent::to("POST /api/queue/join").request()).unwrap();
    assert_eq!(joined.event.as_str(), "ktx-2026-chuseok");
    assert_eq!(joined.address.key_part(), "203.0.113.9");
    for body in [json!({}), json!({"eventId": null}), json!({"unknown": {"deep": [1]}, "token": 5})] {
        assert_eq!(posted("/api/queue/join", &body), "fine", "{body}");
    }
    let named = Sent::to("POST /api/queue/join").json(&json!({"eventId": "concert-2026"})).request();
    assert_eq!(request::join(&gate(), &named).unwrap().event.as_str(), "concert-2026");
    assert_eq!(
        word(request::join(&Gate::default(), &Sent::to("POST /api/queue/join").request()).err()),
        "eventId"
    );
    assert_eq!(word(request::join(&Gate::default(), &named).err()), "fine");
}

#[test]
fn bodies_must_be_json_objects_of_a_bounded_size() {
    let select = || Sent::to("POST /api/seat/select");
    let refused = |sent: Sent| word(refusal(&gate(), &sent.request()));
    assert_eq!(refused(select()), "body");
    assert_eq!(refused(select().header("content-type", "application/json")), "body");
    assert_eq!(refused(select().text("{}")), "UNSUPPORTED_MEDIA_TYPE");
    assert_eq!(refused(Sent::to("POST /api/queue/join").text("{}")), "UNSUPPORTED_MEDIA_TYPE");
    for media_type in
        ["text/plain", "application/x-www-form-urlencoded", "application/jsonp", "application", ""]
    {
        assert_eq!(refused(select().text("{}").header("content-type", media_type)), "UNSUPPORTED_MEDIA_TYPE");
    }
    for media_type in
        ["application/json", "Application/JSON; charset=utf-8", "application/json ;charset=euc-kr"]
    {
        assert_eq!(refused(select().text("{}").header("content-type", media_type)), "MISSING_TOKEN");
    }
    let json = |text: &str| refused(select().text(text).header("content-type", "application/json"));
    for text in
        ["[]", "null", "\"x\"", "5", " ", "{", "{]", "nul", "{\"a\":}", "{} {}", "{\"token\":\"\\ud800\"}"]
    {
        assert_eq!(json(text), "body", "{text}");
    }
    assert_eq!(json(&format!("[\"{TOKEN}\"]")), "body", "an array is no object");
    assert_eq!(json(r#"{"token": "a", "token": "b"}"#), "body");
    let deep = |field: &str| json(&format!("{{\"{field}\":{}{}}}", "[".repeat(5_000), "]".repeat(5_000)));
    assert_eq!((deep("seats"), deep("unknown")), ("body", "MISSING_TOKEN"));
    let long = |length: usize| json(&format!("{{\"x\":\"{}\"}}", "y".repeat(length - 8)));
    assert_eq!((long(10_240), long(10_241)), ("MISSING_TOKEN", "PAYLOAD_TOO_LARGE"));
}

#[test]
fn base64_bodies_are_decoded_and_bad_ones_are_the_callers_fault() {
    let refused =
        |body: &str| word(refusal(&gate(), &Sent::to("POST /api/seat/select").base64(body).request()));
    assert_eq!(refused("e30="), "MISSING_TOKEN");
    for bad in ["e30", "e30=!", "%%%", "=", "é", "e3 0="] {
        assert_eq!(refused(bad), "body", "{bad:?}");
    }
    assert_eq!(refused("_w=="), "body", "the alphabet is the standard one");
    assert_eq!(refused("/w=="), "body", "no UTF-8, so no JSON");
    // 10 240 bytes are 13 656 characters; what is longer is not even decoded.
    assert_eq!(refused(&format!("{}==", "A".repeat(13_654))), "body");
    assert_eq!(refused(&"A".repeat(13_656)), "PAYLOAD_TOO_LARGE");
    assert_eq!(refused(&"A".repeat(13_660)), "PAYLOAD_TOO_LARGE");
    assert_eq!(refused(&"!".repeat(20_000)), "PAYLOAD_TOO_LARGE");
}

#[test]
fn tokens_are_asked_for_in_the_routes_own_words() {
    for line in ["DELETE /api/queue/leave", "GET /api/status/poll", "GET /api/status/poll?token="] {
        assert_eq!(sent(line), "MISSING_TOKEN", "{line}");
    }
    for path in ["/api/queue/rejoin", "/api/seat/select", "/api/seat/cancel", "/api/booking"] {
        for body in [json!({}), json!({"token": ""}), json!({"token": null})] {
            assert_eq!(posted(path, &body), "MISSING_TOKEN", "{path} {body}");
        }
        for token in
            [json!(5), json!(true), json!([TOKEN]), json!({}), json!("x"), json!(" "), json!("{E}:x\n")]
        {
            assert_eq!(posted(path, &json!({"token": token})), "token", "{path} {token}");
        }
    }
    let bearer = [
        "GET /trains/search",
        "GET /api/offerings",
        "GET /api/seats",
        "GET /api/booking/x",
        "DELETE /api/booking/x",
    ];
    for line in bearer {
        assert_eq!(sent(line), "UNAUTHORIZED", "{line}");
        assert_eq!(sent(&format!("{line}?token=x")), "token", "{line}");
        assert_eq!(sent(&format!("{line}?token=00000000-0000-1000-8000-000000000000")), "token", "{line}");
    }
}

#[test]
fn a_user_id_proves_nothing_and_is_nobodys() {
    for path in
        ["/api/queue/join", "/api/queue/rejoin", "/api/seat/select", "/api/seat/cancel", "/api/booking"]
    {
        assert_eq!(posted(path, &json!({"userId": "someone"})), "UNAUTHORIZED", "{path}");
        assert_eq!(posted(path, &json!({"userId": 5})), "userId", "{path}");
    }
    assert_eq!(posted("/api/queue/join", &json!({"userId": null})), "fine");
    for line in ["DELETE /api/queue/leave", "GET /api/status/poll", "GET /api/seats", "GET /trains/search"] {
        assert_eq!(sent(&format!("{line}?token={TOKEN}&userId=someone")), "UNAUTHORIZED", "{line}");
    }
    assert_eq!(sent(&format!("GET /api/booking/{RESERVATION}?token={TOKEN}&userId=me")), "UNAUTHORIZED");
}

#[test]
fn queries_are_read_strictly() {
    let poll = |query: &str| sent(&format!("GET /api/status/poll?token={TOKEN}&{query}"));
    assert_eq!(poll(""), "fine");
    assert_eq!(poll("key=anything&unknown=1&unknown=2&&=&flag"), "fine");
    assert_eq!(poll(&format!("token={TOKEN}")), "token");
    assert_eq!(poll("eventId=a&eventId=a"), "eventId");
    assert_eq!(poll("key=%zz"), "key");
    assert_eq!(poll("key=%ff"), "key");
    assert_eq!(poll("other=%"), "query");
    assert_eq!(poll("%e=1"), "query");
    assert_eq!(poll(&format!("x={}", "y".repeat(10_240))), "query");
    for event in ["", "A", "-a", "a%7Bb%7D", "a%3Ab", "a%0Ab", "a+b", &"a".repeat(64)] {
        assert_eq!(poll(&format!("eventId={event}")), "eventId", "{event}");
    }
    let encoded =
        Sent::to(&format!("GET /api/status/poll?%74oken={TOKEN}&eventId=concert%2D2026&key=a%2Bb")).request();
    let poll = request::poll(&gate(), &encoded).unwrap();
    assert_eq!((poll.event.as_str(), poll.key.as_deref()), ("concert-2026", Some("a+b")));
    assert_eq!(poll.token.to_string(), TOKEN);
}

#[test]
fn a_rejoin_leave_and_progress_are_understood() {
    let body = json!({"token": TOKEN, "eventId": "concert-2026", "key": "as sent"});
    let rejoin = request::rejoin(&gate(), &Sent::to("POST /api/queue/rejoin").json(&body).request()).unwrap();
    assert_eq!((rejoin.event.as_str(), rejoin.key.as_deref()), ("concert-2026", Some("as sent")));
    assert_eq!(rejoin.address.key_part(), "203.0.113.9");
    assert_eq!(posted_with("/api/queue/rejoin", json!({"key": ""})), "fine");
    assert_eq!(posted_with("/api/queue/rejoin", json!({"key": 5})), "key");
    assert_eq!(posted_with("/api/queue/rejoin", json!({"eventId": 5})), "eventId");

    let leave = Sent::to(&format!("DELETE /api/queue/leave?token={TOKEN}&eventId=concert-2026")).request();
    assert_eq!(request::leave(&gate(), &leave).unwrap().event.as_str(), "concert-2026");
    let progress = Sent::to("GET /api/status/progress?eventId=concert-2026").request();
    assert_eq!(request::progress(&gate(), &progress).unwrap().event.as_str(), "concert-2026");
    assert_eq!(sent("GET /api/status/progress"), "fine");
    assert_eq!(sent("GET /api/status/progress?eventId=a&eventId=b"), "eventId");
}

#[test]
fn a_search_filters_by_what_is_filled_in() {
    let line = format!("GET /trains/search?token={TOKEN}&from=%EC%84%9C%EC%9A%B8&to=&date=2026-09-24&_=17");
    let search = request::search(&gate(), &Sent::to(&line).request()).unwrap();
    let filter: Vec<_> = search.filter.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    assert_eq!(filter, [("date", "2026-09-24"), ("from", "서울")]);
    // A browser or curl may send letters as they are.
    let raw = Sent::to(&format!("GET /api/offerings?token={TOKEN}&from=서울&to=a \"<b>")).request();
    let search = request::search(&gate(), &raw).unwrap();
    assert_eq!((search.filter["from"].as_str(), search.filter["to"].as_str()), ("서울", "a \"<b>"));
    for date in ["24-09-2026", "2026-9-24", "2026-09-2x", "20260924", "tomorrow"] {
        assert_eq!(sent(&format!("GET /trains/search?token={TOKEN}&date={date}")), "date", "{date}");
    }
    assert_eq!(sent(&format!("GET /trains/search?token={TOKEN}&to={}", "x".repeat(201))), "to");
    assert_eq!(sent(&format!("GET /trains/search?token={TOKEN}&from=a&from=b")), "from");
}

#[test]
fn a_seat_map_names_an_offering_and_a_section() {
    let line = format!("GET /api/seats?token={TOKEN}&offeringId=KTX-101&sectionId=special");
    let map = request::seat_map(&gate(), &Sent::to(&line).request()).unwrap();
    assert_eq!(map.offering.unwrap().as_str(), "KTX-101");
    assert_eq!(map.section.unwrap().as_str(), "special");
    let bare =
        request::seat_map(&gate(), &Sent::to(&format!("GET /api/seats?token={TOKEN}")).request()).unwrap();
    assert_eq!((bare.offering, bare.section), (None, None));
    assert_eq!(sent(&format!("GET /api/seats?token={TOKEN}&offeringId=a%7Bb")), "offeringId");
    assert_eq!(sent(&format!("GET /api/seats?token={TOKEN}&sectionId=")), "sectionId");
}

#[test]
fn a_hold_chooses_in_exactly_one_way() {
    let chosen = |mut body: Value| {
        body["token"] = json!(TOKEN);
        request::hold(&gate(), &Sent::to("POST /api/seat/select").json(&body).request()).unwrap().choice
    };
    let names = |names: &[&str]| Choice::Seats(names.iter().map(|name| name.parse().unwrap()).collect());
    assert_eq!(chosen(json!({"seats": ["12A", "12B"]})), names(&["12A", "12B"]));
    assert_eq!(chosen(json!({"seatId": "12A"})), names(&["12A"]));
    assert_eq!(chosen(json!({"seatId": "12\u{0041}", "seats": null})), names(&["12A"]));
    assert_eq!(chosen(json!({"count": 1})), Choice::Count(1));
    assert_eq!(chosen(json!({"best": 100})), Choice::Best(100));
    // JSON has one kind of numbers: this is 2 as well.
    assert_eq!(chosen(json!({"count": 2.0})), Choice::Count(2));

    let refused = |body: Value| posted_with("/api/seat/select", body);
    assert_eq!(refused(json!({})), "seats");
    assert_eq!(refused(json!({"seats": ["1A"], "seatId": "1A"})), "seats");
    assert_eq!(refused(json!({"count": 1, "best": 1})), "seats");
    for count in [
        json!(0),
        json!(101),
        json!(-1),
        json!(1.5),
        json!(-1.0),
        json!(1e15),
        json!(1e300),
        json!("2"),
        json!([2]),
        json!(true),
    ] {
        assert_eq!(refused(json!({"count": count})), "count", "{count}");
        assert_eq!(refused(json!({"best": count})), "best", "{count}");
    }
    let enormous = format!("{{\"token\":\"{TOKEN}\",\"count\":99999999999999999999999}}");
    let enormous =
        Sent::to("POST /api/seat/select").text(&enormous).header("content-type", "application/json");
    assert_eq!(word(refusal(&gate(), &enormous.request())), "count");
    for seats in [
        json!([]),
        json!("12A"),
        json!({"0": "12A"}),
        json!([1]),
        json!([null]),
        json!([["12A"]]),
        json!([""]),
        json!(["12A", "12A"]),
        json!(["1{A}"]),
        json!(["1:A"]),
        json!(["1\nA"]),
        json!(["특1"]),
        json!(vec!["x"; 101]),
    ] {
        assert_eq!(refused(json!({"seats": seats})), "seats", "{seats}");
    }
    for seat in [json!(""), json!(12), json!(["12A"]), json!("a b")] {
        assert_eq!(refused(json!({"seatId": seat})), "seatId", "{seat}");
    }
    assert_eq!(refused(json!({"seatId": "1A", "offeringId": "{"})), "offeringId");
    assert_eq!(refused(json!({"seatId": "1A", "sectionId": 5})), "sectionId");
    assert_eq!(refused(json!({"seatId": "1A", "eventId": "{ktx}"})), "eventId");
}

#[test]
fn a_release_names_seats_or_means_all() {
    let released = |mut body: Value| {
        body["token"] = json!(TOKEN);
        request::release(&gate(), &Sent::to("POST /api/seat/cancel").json(&body).request()).unwrap()
    };
    assert_eq!(released(json!({})).seats, []);
    assert_eq!(released(json!({"seatId": "12A"})).seats, ["12A".parse().unwrap()]);
    let named = released(json!({"seats": ["12A", "12B"], "offeringId": "KTX-101"}));
    assert_eq!((named.seats.len(), named.offering.unwrap().as_str()), (2, "KTX-101"));
    let refused = |body: Value| posted_with("/api/seat/cancel", body);
    assert_eq!(refused(json!({"seats": []})), "seats", "an empty list must not mean all");
    assert_eq!(refused(json!({"seats": ["1A"], "seatId": "1A"})), "seats");
    assert_eq!(refused(json!({"seats": ["1A", "1A"]})), "seats");
}

#[test]
fn a_booking_is_plain_or_of_what_is_held() {
    let purchase = |mut body: Value| {
        body["token"] = json!(TOKEN);
        request::book(&gate(), &Sent::to("POST /api/booking").json(&body).request()).unwrap().purchase
    };
    assert_eq!(purchase(json!({})), Purchase::Held);
    assert_eq!(purchase(json!({"seatCount": null})), Purchase::Held);
    assert_eq!(
        purchase(json!({"seatCount": 2})),
        Purchase::Plain { seat_count: 2, offering: None, section: None }
    );
    assert_eq!(
        purchase(json!({"seatCount": 2, "offeringId": "KTX-101", "sectionId": "standing"})),
        Purchase::Plain {
            seat_count: 2,
            offering: Some("KTX-101".parse().unwrap()),
            section: Some("standing".parse().unwrap()),
        }
    );
    for count in [json!(0), json!(-2), json!(101), json!(0.5), json!("2"), json!([])] {
        assert_eq!(posted_with("/api/booking", json!({"seatCount": count})), "seatCount", "{count}");
    }
    assert_eq!(posted_with("/api/booking", json!({"sectionId": "s:1"})), "sectionId");
}

#[test]
fn a_reservation_is_named_by_the_path() {
    for method in ["GET", "DELETE"] {
        let line = format!("{method} /api/booking/{RESERVATION}?token={TOKEN}");
        for request in [Sent::to(&line).request(), Sent::to(&line).stage("prod").request()] {
            assert_eq!(request::reserved(&gate(), &request).unwrap().reservation.to_string(), RESERVATION);
        }
        for id in ["x", "a.b", "ktx.00000000", "%7Bktx%7D.0b1f6a52-6d3c-4f0e-9a55-2f6f8a1f7c11", "..", "%2F"]
        {
            let line = format!("{method} /api/booking/{id}?token={TOKEN}");
            assert_eq!(sent(&line), "reservationId", "{id}");
        }
    }
}

#[test]
fn a_stage_before_the_path_changes_nothing() {
    for route in ROUTES {
        for stage in ["prod", "api", "$default"] {
            let line = format!("{} {}", route.method, route.path.replace("{id}", RESERVATION));
            let request = if stage == "$default" { Sent::to(&line) } else { Sent::to(&line).stage(stage) };
            assert_eq!(routes::of(&request.request()).unwrap().0, route, "{stage}");
        }
    }
    assert_eq!(word(refusal(&gate(), &Sent::to("GET /production/health").request())), "NOT_FOUND");
}

#[test]
fn limits_count_the_address_that_cannot_be_made_up() {
    let line = format!("GET /api/status/poll?token={TOKEN}");
    let address = |gate: &Gate, sent: Sent| {
        request::poll(gate, &sent.request())
            .map(|poll| poll.address.key_part())
            .map_err(|failure| failure.row().code)
    };
    let viewer = |value: &str| Sent::to(&line).header("cloudfront-viewer-address", value);
    assert_eq!(address(&gate(), viewer("198.51.100.7:46532")).unwrap(), "203.0.113.9");
    assert_eq!(address(&gate(), Sent::to(&line).source("2001:db8:1:2:3:4:5:6")).unwrap(), "20010db800010002");
    assert_eq!(address(&gate(), Sent::to(&line).source("nonsense")).unwrap(), "0.0.0.0");

    let guarded = Gate { origin_secret: Some("open sesame".to_owned()), ..gate() };
    assert_eq!(address(&guarded, viewer("198.51.100.7:46532")), Err("FORBIDDEN"));
    for wrong in ["", "open", "open sesamf", "open sesame and more"] {
        assert_eq!(
            address(&guarded, viewer("198.51.100.7:46532").header("x-origin-secret", wrong)),
            Err("FORBIDDEN")
        );
    }
    let proven =
        |value: &str| address(&guarded, viewer(value).header("X-Origin-Secret", "open sesame")).unwrap();
    assert_eq!(proven("198.51.100.7:46532"), "198.51.100.7");
    assert_eq!(proven("2001:db8:1:2:3:4:5:6:46532"), "20010db800010002");
    assert_eq!(proven("2001:db8:1:2::1:46532"), "20010db800010002");
    assert_eq!(proven("nonsense"), "203.0.113.9");
    let empty = Gate { origin_secret: Some(String::new()), ..gate() };
    assert_eq!(address(&empty, viewer("198.51.100.7:1").header("x-origin-secret", "")), Err("FORBIDDEN"));
}

proptest! {
    /// Whatever arrives, it is understood or it is the caller's fault.
    #[test]
    fn no_event_panics_or_is_our_fault(
        route in 0..ROUTES.len(),
        path in proptest::option::of("[ -~가-힣\t]{0,40}"),
        query in "(token=6f9619ff-8b86-4d01-b42d-00cf4fc964ff)?[ -~가-힣\t\u{7f}]{0,60}",
        host in "[ -~é]{0,30}",
        scheme in "[ -~]{0,10}",
        body in proptest::option::of(".{0,80}"),
        is_base64 in any::<bool>(),
    ) {
        let route = &ROUTES[route];
        let mut event = Sent::to(&format!("{} {}", route.method, route.path))
            .header("host", &host)
            .header("x-forwarded-proto", &scheme)
            .header("content-type", "application/json")
            .event();
        event.raw_path = path.unwrap_or(event.raw_path);
        event.raw_query_string = query;
        event.body = body;
        event.is_base64_encoded = is_base64;
        if let Some(failure) = refusal(&gate(), &crate::accept(event)) {
            prop_assert!(failure.row().status < 500, "{:?}", failure);
        }
    }

    #[test]
    fn no_body_panics_or_is_our_fault(
        route in 0..ROUTES.len(),
        field in "token|eventId|key|userId|offeringId|sectionId|seats|seatId|count|best|seatCount",
        value in "null|true|-1|1e999|0\\.5|18446744073709551616|\"\"|\"x\"|\\[\\]|\\[\"A\",\"A\"\\]|\\{\"a\":\\[1\\]\\}|[ -~]{0,20}",
    ) {
        let route = &ROUTES[route];
        let sent = Sent::to(&format!("{} {}", route.method, route.path)).header("content-type", "application/json");
        let text = format!("{{\"token\":\"{TOKEN}\",\"{field}\":{value}}}");
        if let Some(failure) = refusal(&gate(), &sent.text(&text).request()) {
            prop_assert!(failure.row().status < 500, "{:?}", failure);
        }
    }
}
