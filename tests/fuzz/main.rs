//! Hostile input: what arrives from outside, mangled in every way that a text can be. Nothing panics, nothing is our
//! fault, and nothing that was signed is still good once it was changed.
//!
//! `JARI_FUZZ_CASES` says how many inputs each test tries, some thousands without it; `make fuzz` tries a million.
#![cfg(test)]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "these are tests")]

mod mangle;

use std::sync::{Arc, LazyLock};

use domain::layout::Edition;
use domain::{EventId, Millis, Token};
use gateway::key::{KeyRing, PlaceKey};
use gateway::routes::{Call as Asked, ROUTES};
use gateway::{AccessClaims, AccessKeys, Failure, Gate, HttpEvent, Request, request};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestCaseError, TestRunner};
use serde_json::{Value, json};
use support::{ACCESS_TOKEN_KEY, Call, MASTER_KEY, PAYMENT_KEY, fresh_event, sale, signature};

use mangle::{Mangling, mangled, manglings};

const TOKEN: &str = "6f9619ff-8b86-4d01-b42d-00cf4fc964ff";
const NOW: Millis = Millis(1_788_213_600_123);

/// Tries as many inputs as this run is for.
fn each<S: Strategy>(inputs: S, holds: impl Fn(S::Value) -> Result<(), TestCaseError>) {
    let cases = std::env::var("JARI_FUZZ_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(4_000);
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    if let Err(found) = TestRunner::new(config).run(&inputs, holds) {
        panic!("{found}");
    }
}

fn event() -> EventId {
    "concert-2026".parse().unwrap()
}

fn token() -> Token {
    TOKEN.parse().unwrap()
}

static ACCESS: LazyLock<Arc<AccessKeys>> =
    LazyLock::new(|| Arc::new(AccessKeys::new(ACCESS_TOKEN_KEY, None).unwrap()));

static GATE: LazyLock<Gate> =
    LazyLock::new(|| Gate { access: Some(Arc::clone(&ACCESS)), ..support::gate(&event()) });

fn accepted(event: Value) -> Request {
    let event: HttpEvent = serde_json::from_value(event).unwrap();
    gateway::accept(event)
}

#[test]
fn a_mangled_place_key_is_none() {
    let ring = KeyRing::new(MASTER_KEY.as_bytes(), None);
    let place = |score: u64, rank: u64| PlaceKey {
        epoch: 1,
        ticket_count: Some(2),
        score,
        rank: Some(rank),
        ticket_number: Some(score),
        net: 7,
        read_at: NOW,
        earliest_at: NOW.plus(500),
        interval_ms: 1_000,
    };
    let others = ring.sign(&event(), Token::random(), &place(1, 1));
    each((1..1u64 << 52, 1..1u64 << 30, manglings()), |(score, rank, manglings)| {
        let key = ring.sign(&event(), token(), &place(score, rank));
        let text = mangled(&key, &others, &manglings);
        let read = ring.check(&event(), token(), &text);
        prop_assert_eq!(read, (text == key).then(|| place(score, rank)));
        Ok(())
    });
}

#[test]
fn a_mangled_access_token_is_nobodys() {
    let claims = |account: &str, lasts_ms: i64| AccessClaims {
        event: event(),
        token: token(),
        account: Some(account.parse().unwrap()),
        issued_at: NOW,
        expires_at: NOW.plus(lasts_ms),
    };
    // Signing takes longer than everything else: a few tokens are enough to be mangled.
    let tokens: Vec<String> = ["kim", "lee@example.com", "박"]
        .map(|account| ACCESS.sign("https://tickets.example", &claims(account, 180_000)).unwrap())
        .into();
    each((0..tokens.len(), 0..tokens.len(), manglings()), |(which, other, manglings)| {
        let text = mangled(&tokens[which], &tokens[other], &manglings);
        let is_ours = tokens.contains(&text);
        prop_assert_eq!(ACCESS.check(&text, NOW).is_some(), is_ours, "{}", text);
        prop_assert_eq!(ACCESS.check_expired_too(&text).is_some(), is_ours, "{}", text);
        Ok(())
    });
}

/// Whether a header has, in its own words, the one good signature with its time, and no other time.
fn has_signature(header: &str, good: &str) -> bool {
    let (time, mac) = good.split_once(',').unwrap();
    let parts: Vec<&str> = header.split(',').map(str::trim).collect();
    let times: Vec<&&str> = parts.iter().filter(|part| part.starts_with("t=")).collect();
    times == [&time] && parts.iter().any(|part| part.to_lowercase() == mac)
}

#[test]
fn a_mangled_payment_is_not_signed() {
    let body =
        json!({ "paymentId": "p-1", "reservationId": format!("concert-2026.{TOKEN}"), "status": "PAID",
        "amount": 1_000, "currency": "KRW" })
        .to_string();
    let seconds = NOW.0 / 1_000;
    let good = signature(PAYMENT_KEY, seconds, &body);
    let foreign = signature("another payment key, of more than 32 characters", seconds, &body);
    each((manglings(), manglings(), 0..3u8), |(in_header, in_body, what)| {
        let header = if what == 1 { good.clone() } else { mangled(&good, &foreign, &in_header) };
        let sent = if what == 0 { body.clone() } else { mangled(&body, &good, &in_body) };
        let call = Call::new("POST", "/api/payment/webhook").header("content-type", "application/json");
        let request = accepted(call.header("jari-signature", &header).text(&sent).event());
        let failure = request::pay(&GATE, &request, NOW).err();
        if let Some(failure) = &failure {
            prop_assert!(failure.row().status < 500, "{:?}", failure);
        }
        let was_signed = !matches!(failure, Some(Failure::BadSignature | Failure::PayloadTooLarge));
        prop_assert!(!was_signed || (sent == body && has_signature(&header, &good)), "{}\n{}", header, sent);
        Ok(())
    });
}

/// Values that are something else than what a field wants.
fn hostile_values() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        ".{0,40}".prop_map(Value::from),
        "[A-Za-z0-9-]{0,70}".prop_map(Value::from),
        Just(json!("-")),
        Just(json!([[[]]])),
        Just(json!({ "": {} })),
        Just(json!(["1A", "1A", 1])),
        Just(json!("1-100000000")),
        Just(json!("Z-A")),
        Just(json!("2027-02-30")),
        Just(json!("2027-02-05T25:00:00+99:99")),
    ]
}

/// Puts a value somewhere into a document: at the `at`-th place of all that it has.
fn put(document: &mut Value, at: usize, value: Value) {
    let mut paths = vec![String::new()];
    let mut next = 0;
    while let Some(path) = paths.get(next).cloned() {
        next += 1;
        match document.pointer(&path) {
            Some(Value::Object(fields)) => paths.extend(fields.keys().map(|name| format!("{path}/{name}"))),
            Some(Value::Array(items)) => paths.extend((0..items.len()).map(|item| format!("{path}/{item}"))),
            _ => {}
        }
    }
    if let Some(place) = document.pointer_mut(&paths[at % paths.len()]) {
        *place = value;
    }
}

#[test]
fn a_mangled_sale_is_read_whole_or_refused_with_reasons() {
    let whole = sale(&fresh_event());
    let hostile = proptest::collection::vec((any::<usize>(), hostile_values()), 0..3);
    each((hostile, proptest::option::weighted(0.3, manglings())), |(hostile, manglings)| {
        let mut definition = whole.clone();
        for (at, value) in hostile {
            put(&mut definition, at, value);
        }
        let text = definition.to_string();
        let text = manglings.map_or(text.clone(), |manglings| mangled(&text, &text, &manglings));
        match domain::sale::check(&text) {
            Err(problems) => prop_assert!(!problems.is_empty()),
            Ok(sale) => {
                // What is taken can be laid out, written down and read again.
                let (edition, _) = Edition::first(sale);
                let again = Edition::from_json(&edition.to_json());
                prop_assert!(again.is_ok_and(|again| again.sale == edition.sale), "{}", text);
            }
        }
        Ok(())
    });
}

/// What a request comes to before anything is asked of Redis.
fn failure_of(asked: Asked, request: &Request) -> Option<Failure> {
    match asked {
        Asked::Join => request::join(&GATE, request).err(),
        Asked::Rejoin => request::rejoin(&GATE, request).err(),
        Asked::Leave => request::leave(&GATE, request).err(),
        Asked::Poll => request::poll(&GATE, request).err(),
        Asked::Progress => request::progress(&GATE, request).err(),
        Asked::Search => request::search(&GATE, request).err(),
        Asked::SeatMap => request::seat_map(&GATE, request).err(),
        Asked::Hold => request::hold(&GATE, request).err(),
        Asked::Release => request::release(&GATE, request).err(),
        Asked::Book => request::book(&GATE, request).err(),
        Asked::ReadReservation | Asked::CancelReservation => request::reserved(&GATE, request).err(),
        Asked::Pay => request::pay(&GATE, request, NOW).err(),
        Asked::Health | Asked::Keys | Asked::Discovery => None,
    }
}

#[test]
fn a_mangled_request_is_understood_or_the_callers_fault() {
    let body = json!({ "token": TOKEN, "eventId": "concert-2026", "userId": null, "key": "k", "offeringId": "T1",
        "sectionId": "A", "seats": ["1A"], "seatId": null, "count": null, "best": null, "seatCount": 1 });
    let query = format!(
        "token={TOKEN}&eventId=concert-2026&offeringId=T1&sectionId=A&from=%EC%84%9C&date=2027-02-05"
    );
    let headers =
        ["content-type", "authorization", "idempotency-key", "jari-signature", "host", "x-forwarded-proto"];
    let hostile = proptest::collection::vec((any::<usize>(), hostile_values()), 0..3);
    let inputs = (
        0..ROUTES.len(),
        hostile,
        proptest::option::weighted(0.5, manglings()),
        proptest::option::weighted(0.5, manglings()),
        (0..headers.len(), "([ -~]{0,60}|.{0,20})"),
        any::<bool>(),
    );
    each(inputs, |(route, hostile, in_query, in_body, (header, value), is_base64)| {
        let route = &ROUTES[route];
        let mut fields = body.clone();
        for (at, value) in hostile {
            put(&mut fields, at, value);
        }
        let text = fields.to_string();
        let text = in_body.map_or(text.clone(), |manglings| mangled(&text, &text, &manglings));
        let call = Call::new(route.method, &route.path.replace("{id}", &format!("concert-2026.{TOKEN}")));
        let call = call.header("content-type", "application/json").header(headers[header], &value);
        let call = if is_base64 { call.base64(&text) } else { call.text(&text) };
        let mut event = call.event();
        event["rawQueryString"] =
            json!(in_query.map_or(query.clone(), |manglings| mangled(&query, &text, &manglings)));
        if let Some(failure) = failure_of(route.call, &accepted(event)) {
            prop_assert!(failure.row().status < 500, "{:?}", failure);
        }
        Ok(())
    });
}

#[test]
fn a_mangled_message_is_facts_and_what_is_wrong_with_the_rest() {
    let facts = [
        json!({ "event": "a", "epoch": 1, "id": "5-1", "at": 7, "kind": "USER_LEFT_QUEUE", "token": TOKEN }),
        json!({ "event": "a", "epoch": 1, "id": "5-2", "at": 7, "kind": "USER_ENTER_QUEUE", "token": TOKEN,
            "ticketNumber": 1, "score": 1 }),
    ];
    let whole = json!({ "facts": facts });
    let hostile = proptest::collection::vec((any::<usize>(), hostile_values()), 0..3);
    each(
        (hostile, proptest::option::weighted(0.5, manglings())),
        |(hostile, manglings): (_, Option<Vec<Mangling>>)| {
            let mut message = whole.clone();
            for (at, value) in hostile {
                put(&mut message, at, value);
            }
            let text = message.to_string();
            let text = manglings.map_or(text.clone(), |manglings| mangled(&text, &text, &manglings));
            let Ok(unpacked) = outbox::unpack(&text) else { return Ok(()) };
            // Entries are read one by one: a number that no reader holds spoils its own alone.
            let Ok(entries) = serde_json::from_str::<Value>(&text) else { return Ok(()) };
            let entries = entries["facts"].as_array().map_or(0, Vec::len);
            prop_assert_eq!(unpacked.facts.len() + unpacked.bad.len(), entries);
            // What was understood is written again and understood alike.
            for (_, messages) in outbox::pack(&unpacked.facts) {
                for message in messages {
                    let again = outbox::unpack(&message.body).unwrap();
                    prop_assert!(
                        again.bad.is_empty() && again.facts.iter().all(|fact| unpacked.facts.contains(fact))
                    );
                }
            }
            Ok(())
        },
    );
}
