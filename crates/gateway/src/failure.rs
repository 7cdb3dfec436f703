//! The one error table: what each code means in HTTP and in words.

use std::borrow::Cow;
use std::fmt;

use domain::outcome::Refusal;
use domain::{Millis, ReservationId, SeatName};
use serde::Serialize;

use crate::language::Language;
use crate::routes::Missing;

/// Why a request got no success: a refusal of the sale, or something wrong before or behind it.
#[derive(Debug, Clone, PartialEq)]
pub enum Failure {
    /// The sale said no.
    Refused(Refusal),
    /// The request is not what it should be.
    InvalidRequest {
        /// The field, parameter or part.
        field: &'static str,
        /// What is wrong with it, in English.
        reason: Cow<'static, str>,
    },
    /// No token where one is needed.
    MissingToken,
    /// Nobody has been proven who may do this.
    Unauthorized,
    /// A webhook that the payment provider did not sign, or not lately.
    BadSignature,
    /// Not through the front door: the origin secret is missing or wrong.
    Forbidden,
    /// No such route.
    NotFound,
    /// Such a route, with other methods.
    MethodNotAllowed {
        /// Which.
        allowed: Vec<&'static str>,
    },
    /// The body is too long.
    PayloadTooLarge,
    /// The body is not said to be JSON.
    UnsupportedMediaType,
    /// Redis is unreachable, too slow or recovering; repeating the request is safe.
    Unavailable {
        /// When to try again.
        retry_after_seconds: u32,
    },
    /// A bug.
    Internal,
}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

impl From<Missing> for Failure {
    fn from(missing: Missing) -> Self {
        match missing {
            Missing::NotFound => Self::NotFound,
            Missing::MethodNotAllowed { allowed } => Self::MethodNotAllowed { allowed },
        }
    }
}

/// How a code looks from outside.
#[derive(Debug, PartialEq, Eq)]
pub struct Row {
    /// What programs read.
    pub code: &'static str,
    /// The HTTP status.
    pub status: u16,
    /// What people read.
    pub english: &'static str,
    /// What people read in Korea.
    pub korean: &'static str,
}

impl Row {
    fn in_language(&self, language: Language) -> &'static str {
        match language {
            Language::English => self.english,
            Language::Korean => self.korean,
        }
    }
}

macro_rules! table {
    ($($name:ident $code:literal $status:literal $english:literal $korean:literal)*) => {
        $(const $name: Row = Row { code: $code, status: $status, english: $english, korean: $korean };)*

        /// Every code that can occur, each once.
        pub const ROWS: &[Row] = &[$($name),*];
    };
}

table! {
    INVALID_REQUEST "INVALID_REQUEST" 400
        "The request is not valid." "요청이 올바르지 않습니다."
    MISSING_TOKEN "MISSING_TOKEN" 400
        "A token is needed." "대기표(토큰)가 필요합니다."
    UNAUTHORIZED "UNAUTHORIZED" 401
        "You are not authorized." "인증이 필요합니다."
    BAD_SIGNATURE "BAD_SIGNATURE" 401
        "The signature is missing, wrong or too old." "서명이 없거나 올바르지 않습니다."
    EVENT_CLOSED "EVENT_CLOSED" 403
        "The sale is over." "예매가 마감되었습니다."
    NOT_ADMITTED "NOT_ADMITTED" 403
        "It is not your turn yet." "아직 입장 순서가 아닙니다."
    ADMISSION_EXPIRED "ADMISSION_EXPIRED" 403
        "Your time has run out." "예매 가능 시간이 지났습니다."
    ACCOUNT_REQUIRED "ACCOUNT_REQUIRED" 403
        "Please sign in first." "로그인이 필요합니다."
    FORBIDDEN "FORBIDDEN" 403
        "This way in is not allowed." "허용되지 않은 접근입니다."
    EVENT_NOT_FOUND "EVENT_NOT_FOUND" 404
        "There is no such sale." "해당 예매를 찾을 수 없습니다."
    OFFERING_NOT_FOUND "OFFERING_NOT_FOUND" 404
        "There is no such train or performance." "해당 열차 또는 공연을 찾을 수 없습니다."
    SECTION_NOT_FOUND "SECTION_NOT_FOUND" 404
        "There is no such section." "해당 구역을 찾을 수 없습니다."
    SEAT_NOT_FOUND "SEAT_NOT_FOUND" 404
        "There is no such seat." "해당 좌석을 찾을 수 없습니다."
    RESERVATION_NOT_FOUND "RESERVATION_NOT_FOUND" 404
        "There is no such reservation." "예매 내역을 찾을 수 없습니다."
    NOT_FOUND "NOT_FOUND" 404
        "There is nothing here." "요청하신 주소를 찾을 수 없습니다."
    METHOD_NOT_ALLOWED "METHOD_NOT_ALLOWED" 405
        "This method is not allowed here." "허용되지 않은 요청 방식입니다."
    ALREADY_BOOKED "ALREADY_BOOKED" 409
        "You have already booked." "이미 예매를 완료했습니다."
    SEAT_TAKEN "SEAT_TAKEN" 409
        "Somebody else has taken this seat." "이미 선택된 좌석입니다."
    SOLD_OUT "SOLD_OUT" 409
        "Not enough seats are left." "남은 좌석이 부족합니다."
    PURCHASE_LIMIT_EXCEEDED "PURCHASE_LIMIT_EXCEEDED" 409
        "That is more than you may buy." "구매 한도를 초과했습니다."
    NOT_OPEN "NOT_OPEN" 409
        "The sale has not opened yet." "아직 예매가 시작되지 않았습니다."
    BOOKING_NOT_CANCELLABLE "BOOKING_NOT_CANCELLABLE" 409
        "This reservation cannot be cancelled." "취소할 수 없는 예매입니다."
    BOOKING_NOT_PAYABLE "BOOKING_NOT_PAYABLE" 409
        "This reservation cannot be paid any more." "결제할 수 없는 예매입니다."
    AMOUNT_MISMATCH "AMOUNT_MISMATCH" 409
        "The amount or currency is not that of the reservation." "결제 금액이 예매 금액과 다릅니다."
    IDEMPOTENCY_KEY_REUSED "IDEMPOTENCY_KEY_REUSED" 409
        "This Idempotency-Key came with another request before." "이미 다른 요청에 사용된 멱등키입니다."
    NO_ADJACENT_SEATS "NO_ADJACENT_SEATS" 409
        "No row has that many free seats side by side." "나란히 비어 있는 좌석이 없습니다."
    NOTHING_HELD "NOTHING_HELD" 409
        "You have selected no seats." "선택하신 좌석이 없습니다."
    HOLD_EXPIRED "HOLD_EXPIRED" 410
        "The time for your seats has run out." "좌석 선택 시간이 지났습니다."
    PAYLOAD_TOO_LARGE "PAYLOAD_TOO_LARGE" 413
        "The request is too large." "요청이 너무 큽니다."
    UNSUPPORTED_MEDIA_TYPE "UNSUPPORTED_MEDIA_TYPE" 415
        "The body must be application/json." "요청 본문은 application/json이어야 합니다."
    RATE_LIMIT "RATE_LIMIT" 429
        "Too many requests." "요청이 너무 많습니다."
    INTERNAL_ERROR "INTERNAL_ERROR" 500
        "Something went wrong on our side." "내부 오류가 발생했습니다."
    UNAVAILABLE "UNAVAILABLE" 503
        "Please try again in a moment." "잠시 후 다시 시도해 주십시오."
}

/// How long people wait during maintenance before they try again.
const MAINTENANCE_RETRY_SECONDS: u32 = 5;
/// The same while a journal is full: as long as a queue that takes facts again needs to empty a part of it.
const JOURNAL_FULL_RETRY_SECONDS: u32 = 10;
/// The same after a failure of the infrastructure, which mostly ends within a failover's seconds.
const FAILURE_RETRY_SECONDS: u32 = 2;

impl Failure {
    /// A part of the request that is not what it should be; `reason` follows the field's name in a sentence.
    pub fn invalid(field: &'static str, reason: impl Into<Cow<'static, str>>) -> Self {
        Self::InvalidRequest { field, reason: reason.into() }
    }

    /// Infrastructure failed in a way that passes; logged as a warning.
    pub fn unavailable(cause: &dyn fmt::Display) -> Self {
        tracing::warn!(%cause, "unavailable");
        Self::Unavailable { retry_after_seconds: FAILURE_RETRY_SECONDS }
    }

    /// Something happened that must not; logged as an error.
    pub fn internal(cause: &dyn fmt::Display) -> Self {
        tracing::error!(%cause, "internal error");
        Self::Internal
    }

    /// Its row in the table.
    pub fn row(&self) -> &'static Row {
        match self {
            Self::Refused(refusal) => row_of(refusal),
            Self::InvalidRequest { .. } => &INVALID_REQUEST,
            Self::MissingToken => &MISSING_TOKEN,
            Self::Unauthorized => &UNAUTHORIZED,
            Self::BadSignature => &BAD_SIGNATURE,
            Self::Forbidden => &FORBIDDEN,
            Self::NotFound => &NOT_FOUND,
            Self::MethodNotAllowed { .. } => &METHOD_NOT_ALLOWED,
            Self::PayloadTooLarge => &PAYLOAD_TOO_LARGE,
            Self::UnsupportedMediaType => &UNSUPPORTED_MEDIA_TYPE,
            Self::Unavailable { .. } => &UNAVAILABLE,
            Self::Internal => &INTERNAL_ERROR,
        }
    }

    /// When to try again, in whole seconds, at least one; every 429 and 503 has it.
    pub fn retry_after_seconds(&self) -> Option<u32> {
        match self {
            Self::Refused(Refusal::RateLimit { retry_after_ms }) => {
                Some(retry_after_ms.div_ceil(1_000).max(1))
            }
            Self::Refused(Refusal::Maintenance | Refusal::Recovering) => Some(MAINTENANCE_RETRY_SECONDS),
            Self::Refused(Refusal::JournalFull) => Some(JOURNAL_FULL_RETRY_SECONDS),
            Self::Unavailable { retry_after_seconds } => Some((*retry_after_seconds).max(1)),
            _ => None,
        }
    }

    /// The whole body.
    pub(crate) fn body(&self, language: Language, request_id: &str) -> String {
        let row = self.row();
        let message = row.in_language(language);
        let error = ErrorBody { code: row.code, message, details: self.details(), request_id };
        // Nothing in it can fail to be written; an empty object is still what clients take for "back off".
        serde_json::to_string(&Envelope { success: false, error }).unwrap_or_else(|_| "{}".to_owned())
    }

    /// The same as a socket is told it.
    pub(crate) fn told(&self, language: Language) -> String {
        let details = self.details();
        let retry_after_seconds = self.retry_after_seconds();
        told_row(self.row(), language, details, retry_after_seconds)
    }

    fn details(&self) -> Option<Details<'_>> {
        Some(match self {
            Self::InvalidRequest { field, reason } => Details::Field { field, reason },
            Self::Refused(refusal) => return details_of(refusal),
            _ => return None,
        })
    }
}

fn row_of(refusal: &Refusal) -> &'static Row {
    match refusal {
        Refusal::EventNotFound => &EVENT_NOT_FOUND,
        Refusal::OfferingNotFound => &OFFERING_NOT_FOUND,
        Refusal::SectionNotFound => &SECTION_NOT_FOUND,
        Refusal::SeatNotFound { .. } => &SEAT_NOT_FOUND,
        Refusal::ReservationNotFound => &RESERVATION_NOT_FOUND,
        Refusal::RateLimit { .. } => &RATE_LIMIT,
        Refusal::EventClosed => &EVENT_CLOSED,
        Refusal::NotOpen { .. } => &NOT_OPEN,
        Refusal::AccountRequired => &ACCOUNT_REQUIRED,
        Refusal::AnotherAccount => &UNAUTHORIZED,
        Refusal::IdempotencyKeyReused => &IDEMPOTENCY_KEY_REUSED,
        Refusal::Maintenance | Refusal::Recovering | Refusal::JournalFull => &UNAVAILABLE,
        Refusal::NotAdmitted => &NOT_ADMITTED,
        Refusal::AdmissionExpired => &ADMISSION_EXPIRED,
        Refusal::HoldExpired => &HOLD_EXPIRED,
        Refusal::AlreadyBooked { .. } => &ALREADY_BOOKED,
        Refusal::SeatTaken { .. } => &SEAT_TAKEN,
        Refusal::SoldOut { .. } => &SOLD_OUT,
        Refusal::NoAdjacentSeats => &NO_ADJACENT_SEATS,
        Refusal::PurchaseLimitExceeded { .. } => &PURCHASE_LIMIT_EXCEEDED,
        Refusal::NothingHeld => &NOTHING_HELD,
        Refusal::SeatCountWhileHolding => &INVALID_REQUEST,
        Refusal::BookingNotCancellable => &BOOKING_NOT_CANCELLABLE,
        Refusal::BookingNotPayable => &BOOKING_NOT_PAYABLE,
        Refusal::AmountMismatch => &AMOUNT_MISMATCH,
    }
}

fn details_of(refusal: &Refusal) -> Option<Details<'_>> {
    Some(match refusal {
        Refusal::SeatNotFound { seats } | Refusal::SeatTaken { seats } => Details::Seats { seats },
        Refusal::NotOpen { opens_at } => Details::Opening { opens_at: *opens_at },
        Refusal::AlreadyBooked { reservation } => Details::Reservation { reservation_id: reservation },
        Refusal::SoldOut { remaining } => Details::Stock { remaining: *remaining },
        Refusal::PurchaseLimitExceeded { limit, used, requested } => {
            Details::Limit { limit: *limit, used: *used, requested: *requested }
        }
        Refusal::SeatCountWhileHolding => {
            Details::Field { field: "seatCount", reason: "must not be given while seats are held" }
        }
        _ => return None,
    })
}

/// A failure that is known by its code alone, as a socket is told it.
pub(crate) fn told_code(code: &str, language: Language) -> Option<String> {
    ROWS.iter().find(|row| row.code == code).map(|row| told_row(row, language, None, None))
}

fn told_row(row: &Row, language: Language, details: Option<Details<'_>>, seconds: Option<u32>) -> String {
    let told = ToldFailure {
        status: "error",
        code: row.code,
        message: row.in_language(language),
        details,
        retry_after_seconds: seconds,
    };
    // Nothing in it can fail to be written.
    serde_json::to_string(&told).unwrap_or_else(|_| "{}".to_owned())
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ToldFailure<'a> {
    status: &'static str,
    code: &'static str,
    message: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    details: Option<Details<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    retry_after_seconds: Option<u32>,
}

#[derive(Serialize)]
struct Envelope<'a> {
    success: bool,
    error: ErrorBody<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ErrorBody<'a> {
    code: &'static str,
    message: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    details: Option<Details<'a>>,
    request_id: &'a str,
}

#[derive(Serialize)]
#[serde(untagged, rename_all_fields = "camelCase")]
enum Details<'a> {
    Field { field: &'a str, reason: &'a str },
    Seats { seats: &'a [SeatName] },
    Opening { opens_at: Millis },
    Reservation { reservation_id: &'a ReservationId },
    Stock { remaining: u64 },
    Limit { limit: u32, used: u32, requested: u32 },
}
