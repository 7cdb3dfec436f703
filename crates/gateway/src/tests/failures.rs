use std::collections::BTreeSet;

use domain::Millis;
use domain::outcome::Refusal;
use serde_json::{Value, json};

use super::RESERVATION;
use crate::Failure;
use crate::failure::ROWS;
use crate::language::Language;
use crate::routes::Missing;

/// Each refusal of the sale: its code, its status and what it tells.
fn refusals() -> Vec<(Refusal, &'static str, u16, Value)> {
    let seats = || vec!["12A".parse().unwrap(), "12B".parse().unwrap()];
    vec![
        (Refusal::EventNotFound, "EVENT_NOT_FOUND", 404, Value::Null),
        (Refusal::OfferingNotFound, "OFFERING_NOT_FOUND", 404, Value::Null),
        (Refusal::SectionNotFound, "SECTION_NOT_FOUND", 404, Value::Null),
        (Refusal::SeatNotFound { seats: seats() }, "SEAT_NOT_FOUND", 404, json!({"seats": ["12A", "12B"]})),
        (Refusal::ReservationNotFound, "RESERVATION_NOT_FOUND", 404, Value::Null),
        (Refusal::RateLimit { retry_after_ms: 1_001 }, "RATE_LIMIT", 429, Value::Null),
        (Refusal::EventClosed, "EVENT_CLOSED", 403, Value::Null),
        (Refusal::NotOpen { opens_at: Millis(7) }, "NOT_OPEN", 409, json!({"opensAt": 7})),
        (Refusal::AccountRequired, "ACCOUNT_REQUIRED", 403, Value::Null),
        (Refusal::AnotherAccount, "UNAUTHORIZED", 401, Value::Null),
        (Refusal::IdempotencyKeyReused, "IDEMPOTENCY_KEY_REUSED", 409, Value::Null),
        (Refusal::Maintenance, "UNAVAILABLE", 503, Value::Null),
        (Refusal::Recovering, "UNAVAILABLE", 503, Value::Null),
        (Refusal::JournalFull, "UNAVAILABLE", 503, Value::Null),
        (Refusal::NotAdmitted, "NOT_ADMITTED", 403, Value::Null),
        (Refusal::AdmissionExpired, "ADMISSION_EXPIRED", 403, Value::Null),
        (Refusal::HoldExpired, "HOLD_EXPIRED", 410, Value::Null),
        (
            Refusal::AlreadyBooked { reservation: RESERVATION.parse().unwrap() },
            "ALREADY_BOOKED",
            409,
            json!({"reservationId": RESERVATION}),
        ),
        (Refusal::SeatTaken { seats: seats() }, "SEAT_TAKEN", 409, json!({"seats": ["12A", "12B"]})),
        (Refusal::SoldOut { remaining: 2 }, "SOLD_OUT", 409, json!({"remaining": 2})),
        (Refusal::NoAdjacentSeats, "NO_ADJACENT_SEATS", 409, Value::Null),
        (
            Refusal::PurchaseLimitExceeded { limit: 5, used: 4, requested: 2 },
            "PURCHASE_LIMIT_EXCEEDED",
            409,
            json!({"limit": 5, "used": 4, "requested": 2}),
        ),
        (Refusal::NothingHeld, "NOTHING_HELD", 409, Value::Null),
        (
            Refusal::SeatCountWhileHolding,
            "INVALID_REQUEST",
            400,
            json!({"field": "seatCount", "reason": "must not be given while seats are held"}),
        ),
        (Refusal::BookingNotCancellable, "BOOKING_NOT_CANCELLABLE", 409, Value::Null),
        (Refusal::BookingNotPayable, "BOOKING_NOT_PAYABLE", 409, Value::Null),
        (Refusal::AmountMismatch, "AMOUNT_MISMATCH", 409, Value::Null),
    ]
}

fn others() -> Vec<(Failure, &'static str, u16, Value)> {
    vec![
        (
            Failure::invalid("count", "must be a whole number from 1 to 100"),
            "INVALID_REQUEST",
            400,
            json!({"field": "count", "reason": "must be a whole number from 1 to 100"}),
        ),
        (Failure::MissingToken, "MISSING_TOKEN", 400, Value::Null),
        (Failure::Unauthorized, "UNAUTHORIZED", 401, Value::Null),
        (Failure::BadSignature, "BAD_SIGNATURE", 401, Value::Null),
        (Failure::Forbidden, "FORBIDDEN", 403, Value::Null),
        (Failure::from(Missing::NotFound), "NOT_FOUND", 404, Value::Null),
        (
            Failure::from(Missing::MethodNotAllowed { allowed: vec!["GET"] }),
            "METHOD_NOT_ALLOWED",
            405,
            Value::Null,
        ),
        (Failure::PayloadTooLarge, "PAYLOAD_TOO_LARGE", 413, Value::Null),
        (Failure::UnsupportedMediaType, "UNSUPPORTED_MEDIA_TYPE", 415, Value::Null),
        (Failure::unavailable(&"the redis connection is gone"), "UNAVAILABLE", 503, Value::Null),
        (Failure::internal(&"a bug"), "INTERNAL_ERROR", 500, Value::Null),
    ]
}

fn all() -> Vec<(Failure, &'static str, u16, Value)> {
    let refused = refusals()
        .into_iter()
        .map(|(refusal, code, status, details)| (refusal.into(), code, status, details));
    refused.chain(others()).collect()
}

#[test]
fn every_failure_has_its_code_status_and_details() {
    for (failure, code, status, details) in all() {
        assert_eq!((failure.row().code, failure.row().status), (code, status), "{failure:?}");
        let body: Value = serde_json::from_str(&failure.body(Language::English, "r-1")).unwrap();
        let mut error = json!({"code": code, "message": failure.row().english, "requestId": "r-1"});
        if !details.is_null() {
            error["details"] = details;
        }
        assert_eq!(body, json!({"success": false, "error": error}), "{failure:?}");
    }
}

#[test]
fn the_table_has_what_occurs_each_once_and_nothing_else() {
    let listed: Vec<_> = ROWS.iter().map(|row| row.code).collect();
    let once: BTreeSet<_> = listed.iter().copied().collect();
    assert_eq!(once.len(), listed.len());
    let occurring: BTreeSet<_> = all().into_iter().map(|(_, code, ..)| code).collect();
    assert_eq!(once, occurring);
}

#[test]
fn every_429_and_503_says_when_to_try_again_and_no_other_does() {
    for (failure, _, status, _) in all() {
        assert_eq!(failure.retry_after_seconds().is_some(), matches!(status, 429 | 503), "{failure:?}");
    }
    let limited = |retry_after_ms| Failure::from(Refusal::RateLimit { retry_after_ms }).retry_after_seconds();
    assert_eq!(
        [limited(0), limited(1), limited(1_000), limited(1_001)],
        [Some(1), Some(1), Some(1), Some(2)]
    );
    assert_eq!(Failure::from(Refusal::Maintenance).retry_after_seconds(), Some(5));
    assert_eq!(Failure::from(Refusal::JournalFull).retry_after_seconds(), Some(10));
}

#[test]
fn people_read_what_they_know() {
    let korean = |code: &str| ROWS.iter().find(|row| row.code == code).unwrap().korean;
    assert_eq!(korean("ALREADY_BOOKED"), "이미 예매를 완료했습니다.");
    assert_eq!(korean("EVENT_CLOSED"), "예매가 마감되었습니다.");
    assert_eq!(korean("RATE_LIMIT"), "요청이 너무 많습니다.");
    assert_eq!(korean("SEAT_TAKEN"), "이미 선택된 좌석입니다.");
    assert_eq!(korean("PURCHASE_LIMIT_EXCEEDED"), "구매 한도를 초과했습니다.");
    for row in ROWS {
        assert!(row.korean.chars().any(|letter| ('가'..='힣').contains(&letter)), "{}", row.code);
        assert!(row.english.is_ascii() && row.english.ends_with('.'), "{}", row.code);
    }
    let body: Value = serde_json::from_str(&Failure::MissingToken.body(Language::Korean, "")).unwrap();
    assert_eq!(body["error"]["message"], korean("MISSING_TOKEN"));
}
