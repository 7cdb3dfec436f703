//! Outcomes to bodies: every success of the contract, field by field, and the headers around it.

use std::collections::BTreeMap;

use domain::layout::{Places, Row};
use domain::line::{self, ACTIVE_POLL_MS, LastRead};
use domain::outcome::{
    Booked, Held, Joined, LineView, OfferingHit, Offerings, Paid, Place, Polled, ProgressView, SeatMapView,
    SectionSeats, Standing,
};
use domain::reservation::{Reservation, ReservationStatus, ReservedPlaces};
use domain::sale::Offering;
use domain::shuffle::Seed;
use domain::{EventId, Millis, OfferingId, ReservationId, SeatName, SectionId, Token};
use http::header::{
    ALLOW, CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG, IF_NONE_MATCH, LOCATION,
    REFERRER_POLICY, RETRY_AFTER, X_CONTENT_TYPE_OPTIONS,
};
use http::{HeaderMap, HeaderValue, StatusCode};
use lambda_http::{Body, Request, Response};
use serde::ser::{SerializeMap, SerializeSeq};
use serde::{Serialize, Serializer};
use sha2::{Digest, Sha256};

use crate::access::Jwks;
use crate::cors;
use crate::failure::Failure;
use crate::key::{KeyRing, PlaceKey};
use crate::language::Language;

/// What a handler comes to.
pub type Answer = Result<Success, Failure>;

/// A success, written.
#[derive(Debug, Clone, PartialEq)]
pub struct Success {
    status: StatusCode,
    body: String,
    cache_control: &'static str,
    etag: Option<String>,
    location: Option<String>,
}

impl Success {
    fn new(status: StatusCode, body: String) -> Self {
        Self { status, body, cache_control: NO_STORE, etag: None, location: None }
    }
}

/// Who gets an answer about a place.
#[derive(Debug, Clone, Copy)]
pub struct Asker<'a> {
    /// What signs the place's new key.
    pub keys: &'a KeyRing,
    /// The sale.
    pub event: &'a EventId,
    /// The place.
    pub token: Token,
    /// The ticket number that the caller's last key told, to be told again by the next.
    pub ticket_number: Option<u64>,
    /// Places that the account has bought, where the answer knows it: only then the next poll may be answered from the
    /// key.
    pub ticket_count: Option<u32>,
    /// What the caller's last key says of the place, where this answer was not read but told from it.
    pub last_read: Option<LastRead>,
}

const NO_STORE: &str = "no-store";
/// Keys are published long before they sign: nobody needs them by the second.
const PUBLISHED: &str = "public, max-age=300";
/// When to look again at a function that lost its Redis.
const HEALTH_RETRY_SECONDS: u16 = 5;

#[derive(Serialize)]
struct Envelope<T> {
    success: bool,
    data: T,
}

fn success(data: impl Serialize) -> Answer {
    plain(&Envelope { success: true, data })
}

/// A body outside the envelope.
fn plain(body: &impl Serialize) -> Answer {
    let body = serde_json::to_string(body).map_err(|error| Failure::internal(&error))?;
    Ok(Success::new(StatusCode::OK, body))
}

/// `POST /api/queue/join`
pub fn joined(asker: Asker<'_>, joined: &Joined) -> Answer {
    success(JoinedBody::of(asker, joined, Moment::now()))
}

/// `POST /api/queue/rejoin`: the same and the status, with an access token for who is in a session.
pub fn rejoined(asker: Asker<'_>, joined: &Joined, access_token: Option<String>) -> Answer {
    let body = JoinedBody::of(asker, joined, Moment::now());
    success(JoinedBody { status: Some(status_of(&joined.standing.place)), access_token, ..body })
}

/// `DELETE /api/queue/leave`
pub fn left(removed: bool) -> Answer {
    #[derive(Serialize)]
    struct Left {
        removed: bool,
    }
    success(Left { removed })
}

/// `GET /api/status/poll`, with an access token for who has just begun a session.
pub fn polled(asker: Asker<'_>, polled: &Polled, access_token: Option<String>) -> Answer {
    success(PolledBody { access_token, ..PolledBody::of(asker, polled, Moment::now()) })
}

/// `GET /api/status/progress`. `seed` is given where the line is drawn: its commitment is public from the
/// start, itself only once the sale has opened.
pub fn progress(progress: &ProgressView, seed: Option<&Seed>) -> Answer {
    let view = &progress.view;
    let seed = seed.filter(|_| progress.shuffled);
    let written = success(ProgressBody {
        status: view.status.as_str(),
        head_score: view.head_score,
        net: view.net,
        total_waiting: view.total_waiting,
        remaining_seats: view.remaining_seats,
        admitted_per_second: view.admitted_per_second,
        opens_at: view.opens_at,
        message: view.message.as_deref(),
        shuffle_commitment: seed.map(Seed::commitment),
        shuffle_seed: seed.filter(|_| view.is_opened()).map(Seed::reveal),
        updated_at: view.now,
    })?;
    Ok(Success { cache_control: "public, max-age=1", ..written })
}

/// `GET /health`, outside the envelope; 503 where Redis did not answer.
pub fn health(is_redis_up: bool, now: Millis) -> Answer {
    #[derive(Serialize)]
    struct Health {
        status: &'static str,
        redis: &'static str,
        timestamp: Millis,
    }
    let word = if is_redis_up { "ok" } else { "unavailable" };
    let status = if is_redis_up { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    Ok(Success { status, ..plain(&Health { status: word, redis: word, timestamp: now })? })
}

/// `GET /.well-known/jwks.json`, outside the envelope.
pub fn keys(jwks: &Jwks) -> Answer {
    Ok(Success { cache_control: PUBLISHED, ..plain(jwks)? })
}

/// `GET /.well-known/openid-configuration`, outside the envelope: what is asked of an issuer that signs and has no
/// pages of its own.
pub fn discovery(issuer: &str) -> Answer {
    #[derive(Serialize)]
    struct Discovery<'a> {
        issuer: &'a str,
        jwks_uri: String,
        response_types_supported: [&'static str; 1],
        subject_types_supported: [&'static str; 1],
        id_token_signing_alg_values_supported: [&'static str; 1],
    }
    let written = plain(&Discovery {
        issuer,
        jwks_uri: format!("{issuer}/.well-known/jwks.json"),
        response_types_supported: ["id_token"],
        subject_types_supported: ["public"],
        id_token_signing_alg_values_supported: ["RS256"],
    })?;
    Ok(Success { cache_control: PUBLISHED, ..written })
}

/// `GET /trains/search`, `GET /api/offerings`
pub fn offerings(found: &Offerings) -> Answer {
    #[derive(Serialize)]
    struct OfferingsBody<'a> {
        offerings: OfferingHits<'a>,
    }
    success(OfferingsBody { offerings: OfferingHits(found) })
}

/// `GET /api/seats`; 304 where the request shows that its sender has this map.
pub fn seat_map(request: &Request, view: &SeatMapView) -> Answer {
    #[derive(Serialize)]
    struct SeatMapBody<'a> {
        sequence: u64,
        sections: SeatSections<'a>,
    }
    let etag = etag_of(view);
    let answered = if is_known(request, &etag) {
        Success::new(StatusCode::NOT_MODIFIED, String::new())
    } else {
        success(SeatMapBody { sequence: view.sequence, sections: SeatSections(view) })?
    };
    // Clients may keep it, and must ask whether it still holds.
    Ok(Success { cache_control: "private, no-cache", etag: Some(etag), ..answered })
}

/// `POST /api/seat/select`, with an access token for who may stay longer now.
pub fn held(held: &Held, access_token: Option<String>) -> Answer {
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct HeldBody<'a> {
        seats: &'a [SeatName],
        seat_count: u32,
        hold_expires_at: Millis,
        active_expires_at: Millis,
        expires_in: u64,
        total_ticket_count: u32,
        #[serde(skip_serializing_if = "Option::is_none")]
        access_token: Option<String>,
    }
    success(HeldBody {
        seats: &held.seats,
        seat_count: held.seat_count,
        hold_expires_at: held.hold_expires_at,
        active_expires_at: held.active_expires_at,
        expires_in: seconds_between(held.now, held.hold_expires_at),
        total_ticket_count: held.ticket_count,
        access_token,
    })
}

/// `POST /api/seat/cancel`
pub fn released(count: u32) -> Answer {
    #[derive(Serialize)]
    struct Released {
        released: u32,
    }
    success(Released { released: count })
}

/// `POST /api/booking`
pub fn booked(booked: &Booked) -> Answer {
    let reservation = &booked.reservation;
    let written = success(BookedBody {
        reservation_id: &reservation.reservation_id,
        status: reservation.status,
        seats: SeatNames(&reservation.places),
        seat_count: reservation.seat_count,
        amount: reservation.amount,
        remaining_seats: booked.remaining_seats,
        payment_due_at: reservation.payment_due_at,
    })?;
    let location = Some(format!("/api/booking/{}", reservation.reservation_id));
    Ok(Success { status: StatusCode::CREATED, location, ..written })
}

/// `GET /api/booking/{id}`, `DELETE /api/booking/{id}`
pub fn reservation(reservation: &Reservation) -> Answer {
    success(ReservationBody {
        reservation_id: &reservation.reservation_id,
        event_id: reservation.reservation_id.event(),
        status: reservation.status,
        seats: SeatNames(&reservation.places),
        places: &reservation.places,
        seat_count: reservation.seat_count,
        amount: reservation.amount,
        currency: &reservation.currency,
        created_at: reservation.created_at,
        updated_at: reservation.updated_at,
        payment_due_at: reservation.payment_due_at,
    })
}

/// `POST /api/payment/webhook`
pub fn paid(reservation_id: &ReservationId, paid: &Paid) -> Answer {
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct PaidBody<'a> {
        reservation_id: &'a ReservationId,
        status: ReservationStatus,
    }
    success(PaidBody { reservation_id, status: paid.status })
}

/// What an answer is made at, apart from the sale itself.
#[derive(Clone, Copy)]
struct Moment {
    /// The functions' clock.
    now: Millis,
    /// Uniform in `[0, 1)`.
    random: f64,
}

impl Moment {
    fn now() -> Self {
        Self { now: Millis::now(), random: fastrand::f64() }
    }
}

fn status_of(place: &Place) -> &'static str {
    match place {
        Place::Waiting { .. } => "WAITING",
        Place::Called | Place::Active { .. } => "ACTIVE",
        Place::Booked { .. } => "BOOKED",
        Place::Expired { .. } => "EXPIRED",
        Place::NotFound => "NOT_FOUND",
    }
}

/// A place as its owner may see it now.
struct Seen {
    is_waiting: bool,
    rank: Option<u64>,
    score: Option<u64>,
    /// Before jitter; 0: asking again tells nothing new.
    interval_ms: u32,
}

impl Seen {
    fn of(standing: &Standing) -> Self {
        let view = &standing.view;
        match standing.place {
            Place::Waiting { score, rank } => {
                let rank = rank.filter(|_| view.is_opened());
                let until_open_ms = line::until_open_ms(view.opens_at, view.now);
                Self {
                    is_waiting: true,
                    rank,
                    score: view.is_opened().then_some(score),
                    interval_ms: line::poll_interval_ms(rank, until_open_ms),
                }
            }
            Place::Called | Place::Active { .. } => {
                Self { is_waiting: false, rank: None, score: None, interval_ms: ACTIVE_POLL_MS }
            }
            Place::Booked { .. } | Place::Expired { .. } | Place::NotFound => {
                Self { is_waiting: false, rank: None, score: None, interval_ms: 0 }
            }
        }
    }

    fn ahead(&self) -> Option<u64> {
        self.rank.map(|rank| rank.saturating_sub(1))
    }

    /// The next key; none where there is nothing to ask for any more.
    fn key(&self, asker: Asker<'_>, view: &LineView, moment: Moment) -> Option<String> {
        (self.interval_ms > 0).then(|| {
            let read = LastRead {
                epoch: view.epoch,
                score: self.score.unwrap_or(0),
                rank: self.rank,
                net: view.net,
                read_at: view.now,
            };
            // A place that is only reckoned stays what it was when it was read.
            let read = asker.last_read.unwrap_or(read);
            let place = PlaceKey {
                epoch: read.epoch,
                score: read.score,
                rank: read.rank,
                ticket_number: asker.ticket_number,
                ticket_count: asker.ticket_count.filter(|_| self.is_waiting),
                net: read.net,
                read_at: read.read_at,
                earliest_at: PlaceKey::earliest_after(moment.now, self.interval_ms),
                interval_ms: self.interval_ms,
            };
            asker.keys.sign(asker.event, asker.token, &place)
        })
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct JoinedBody<'a> {
    token: Token,
    event_id: &'a EventId,
    joined_at: Option<Millis>,
    ticket_number: Option<u64>,
    rank: Option<u64>,
    ahead: Option<u64>,
    next_poll_ms: u32,
    key: Option<String>,
    rejoined: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    access_token: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<&'a str>,
}

impl<'a> JoinedBody<'a> {
    fn of(asker: Asker<'a>, joined: &'a Joined, moment: Moment) -> Self {
        let asker = Asker { ticket_number: joined.ticket_number.or(asker.ticket_number), ..asker };
        let seen = Seen::of(&joined.standing);
        Self {
            token: asker.token,
            event_id: asker.event,
            joined_at: joined.joined_at,
            ticket_number: joined.ticket_number,
            rank: seen.rank,
            ahead: seen.ahead(),
            next_poll_ms: line::jittered(seen.interval_ms, moment.random),
            key: seen.key(asker, &joined.standing.view, moment),
            rejoined: joined.joined_at.is_none(),
            status: None,
            access_token: None,
            message: joined.standing.view.message.as_deref(),
        }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct PolledBody<'a> {
    status: &'static str,
    rank: Option<u64>,
    total_waiting: u64,
    ahead: Option<u64>,
    behind: Option<u64>,
    remaining_seats: u64,
    next_poll_ms: u32,
    active_expires_at: Option<Millis>,
    total_ticket_count: u32,
    estimated_wait_seconds: Option<u64>,
    key: Option<String>,
    net: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    score: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    access_token: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    expires_in: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reservation_id: Option<&'a ReservationId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reentry: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    opens_at: Option<Millis>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<&'a str>,
}

impl<'a> PolledBody<'a> {
    fn of(asker: Asker<'_>, polled: &'a Polled, moment: Moment) -> Self {
        let Standing { place, view } = &polled.standing;
        let seen = Seen::of(&polled.standing);
        let active_expires_at = match place {
            Place::Active { expires_at, .. } => Some(*expires_at),
            _ => None,
        };
        let reservation_id = match place {
            Place::Booked { reservation } => Some(reservation),
            _ => None,
        };
        Self {
            status: status_of(place),
            rank: seen.rank,
            total_waiting: view.total_waiting,
            ahead: seen.ahead(),
            behind: seen.rank.map(|rank| view.total_waiting.saturating_sub(rank)),
            remaining_seats: view.remaining_seats,
            next_poll_ms: line::jittered(seen.interval_ms, moment.random),
            active_expires_at,
            total_ticket_count: polled.ticket_count,
            estimated_wait_seconds: seen
                .ahead()
                .and_then(|ahead| line::estimated_wait_seconds(ahead, view.admitted_per_second)),
            key: seen.key(asker, view, moment),
            net: view.net,
            score: seen.score,
            access_token: None,
            expires_in: active_expires_at.map(|expires_at| seconds_between(view.now, expires_at)),
            reservation_id,
            reentry: matches!(place, Place::Expired { reentry: true }).then_some(true),
            opens_at: (!view.is_opened()).then_some(view.opens_at),
            message: view.message.as_deref(),
        }
    }
}

/// Whole seconds from `now` until `end`, 0 once it is past.
fn seconds_between(now: Millis, end: Millis) -> u64 {
    u64::try_from(end.0.saturating_sub(now.0)).unwrap_or(0) / 1_000
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ProgressBody<'a> {
    status: &'static str,
    head_score: u64,
    net: u64,
    total_waiting: u64,
    remaining_seats: u64,
    admitted_per_second: f64,
    opens_at: Millis,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    shuffle_commitment: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    shuffle_seed: Option<String>,
    updated_at: Millis,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct BookedBody<'a> {
    reservation_id: &'a ReservationId,
    status: ReservationStatus,
    seats: SeatNames<'a>,
    seat_count: u32,
    amount: u64,
    remaining_seats: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    payment_due_at: Option<Millis>,
}

/// The token stays out: it is a secret, and a reservation may be read by an account.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ReservationBody<'a> {
    reservation_id: &'a ReservationId,
    event_id: &'a EventId,
    status: ReservationStatus,
    seats: SeatNames<'a>,
    places: &'a [ReservedPlaces],
    seat_count: u32,
    amount: u64,
    currency: &'a str,
    created_at: Millis,
    updated_at: Millis,
    #[serde(skip_serializing_if = "Option::is_none")]
    payment_due_at: Option<Millis>,
}

/// The named seats over all sections.
struct SeatNames<'a>(&'a [ReservedPlaces]);

impl Serialize for SeatNames<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().flat_map(|places| &places.seats))
    }
}

struct OfferingHits<'a>(&'a Offerings);

impl Serialize for OfferingHits<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let offerings = &self.0.sale.offerings;
        let hits = self.0.hits.iter();
        // A hit beyond the definition would be a bug of the search; it finds nothing rather than panicking.
        serializer.collect_seq(
            hits.filter_map(|hit| {
                offerings.get(hit.offering).map(|offering| OfferingBody::of(offering, hit))
            }),
        )
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct OfferingBody<'a> {
    offering_id: &'a OfferingId,
    date: &'a str,
    #[serde(flatten)]
    attributes: &'a BTreeMap<String, String>,
    sections: OfferingSections<'a>,
}

impl<'a> OfferingBody<'a> {
    fn of(offering: &'a Offering, hit: &'a OfferingHit) -> Self {
        Self {
            offering_id: &offering.id,
            date: &offering.date,
            attributes: &offering.attributes,
            sections: OfferingSections { offering, remaining: &hit.remaining },
        }
    }
}

struct OfferingSections<'a> {
    offering: &'a Offering,
    remaining: &'a [u64],
}

impl Serialize for OfferingSections<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        #[serde(rename_all = "camelCase")]
        struct SectionBody<'a> {
            section_id: &'a SectionId,
            name: &'a str,
            price: u64,
            remaining: u64,
        }
        let sections = self.offering.sections.iter().zip(self.remaining);
        serializer.collect_seq(sections.map(|(section, &remaining)| SectionBody {
            section_id: &section.id,
            name: &section.name,
            price: section.price,
            remaining,
        }))
    }
}

struct SeatSections<'a>(&'a SeatMapView);

impl Serialize for SeatSections<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        #[serde(rename_all = "camelCase")]
        struct SectionBody<'a> {
            section_id: &'a SectionId,
            rows: Rows<'a>,
            taken: Taken<'a>,
            remaining: u64,
        }
        let known = &self.0.edition.layout.sections;
        let mut list = serializer.serialize_seq(None)?;
        for seats in &self.0.sections {
            let Some(section) = known.get(seats.number as usize) else { continue };
            let rows: &[Row] = match &section.places {
                Places::Assigned { rows } => rows,
                Places::General { .. } => &[],
            };
            list.serialize_element(&SectionBody {
                section_id: &section.id,
                rows: Rows(rows),
                taken: Taken { rows, seats },
                remaining: seats.remaining,
            })?;
        }
        list.end()
    }
}

struct Rows<'a>(&'a [Row]);

impl Serialize for Rows<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct RowBody<'a> {
            name: &'a str,
            seats: &'a [SeatName],
        }
        let on_sale = self.0.iter().filter(|row| !row.removed);
        serializer.collect_seq(on_sale.map(|row| RowBody { name: &row.name, seats: &row.seats }))
    }
}

struct Taken<'a> {
    rows: &'a [Row],
    seats: &'a SectionSeats,
}

impl Serialize for Taken<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for taken in &self.seats.taken {
            let row = self.rows.get(taken.row as usize).filter(|row| !row.removed);
            if let Some(name) = row.and_then(|row| row.seats.get(taken.seat as usize)) {
                map.serialize_entry(name, taken.state.as_str())?;
            }
        }
        map.end()
    }
}

/// A strong tag of what a seat map shows. The sequence alone would not do: a hold that ends by time changes
/// the map without a step, and after a loss of Redis a sequence may come again.
fn etag_of(view: &SeatMapView) -> String {
    let mut hash = Sha256::new();
    let mut shown = Vec::with_capacity(16 + 16 * view.sections.len());
    shown.extend_from_slice(&view.edition.version.to_le_bytes());
    shown.extend_from_slice(&view.sequence.to_le_bytes());
    for section in &view.sections {
        shown.extend_from_slice(&section.number.to_le_bytes());
        shown.extend_from_slice(&section.remaining.to_le_bytes());
        shown.extend_from_slice(&(section.taken.len() as u64).to_le_bytes());
        for taken in &section.taken {
            shown.extend_from_slice(&taken.row.to_le_bytes());
            shown.extend_from_slice(&taken.seat.to_le_bytes());
            shown.push(taken.state as u8);
        }
        hash.update(&shown);
        shown.clear();
    }
    hash.update(&shown);
    format!("\"{}\"", domain::shuffle::hex(&hash.finalize()[..12]))
}

/// Whether the caller's `If-None-Match` names `etag`: weakly, in a list, or by `*`.
fn is_known(request: &Request, etag: &str) -> bool {
    let values = request.headers().get_all(IF_NONE_MATCH).iter().filter_map(|value| value.to_str().ok());
    let mut tags = values.flat_map(|value| value.split(',')).map(str::trim);
    tags.any(|tag| tag == "*" || tag.strip_prefix("W/").unwrap_or(tag) == etag)
}

/// A success on the wire.
pub(crate) fn of_success(success: Success, callback: Option<&str>) -> Response<Body> {
    let mut response = written(success.status, success.body, callback);
    let headers = response.headers_mut();
    headers.insert(CACHE_CONTROL, HeaderValue::from_static(success.cache_control));
    put_text(headers, ETAG, success.etag.as_deref());
    put_text(headers, LOCATION, success.location.as_deref());
    if success.status == StatusCode::SERVICE_UNAVAILABLE {
        headers.insert(RETRY_AFTER, HeaderValue::from(HEALTH_RETRY_SECONDS));
    }
    response
}

/// A failure on the wire.
pub(crate) fn of_failure(
    failure: &Failure,
    language: Language,
    request_id: &str,
    callback: Option<&str>,
) -> Response<Body> {
    let status = StatusCode::from_u16(failure.row().status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = written(status, failure.body(language, request_id), callback);
    let headers = response.headers_mut();
    headers.insert(CACHE_CONTROL, HeaderValue::from_static(NO_STORE));
    if let Some(seconds) = failure.retry_after_seconds() {
        headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
    }
    if let Failure::MethodNotAllowed { allowed } = failure {
        headers.insert(ALLOW, cors::allowed_methods(allowed));
    }
    response
}

/// An answer to OPTIONS, still without what CORS adds.
pub(crate) fn of_options(allowed: HeaderValue) -> Response<Body> {
    let mut response = written(StatusCode::NO_CONTENT, String::new(), None);
    let headers = response.headers_mut();
    headers.insert(CACHE_CONTROL, HeaderValue::from_static(NO_STORE));
    headers.insert(ALLOW, allowed);
    response
}

/// JSON, or with a callback a script that calls it: then always 200, since a page sees nothing else of it.
fn written(status: StatusCode, json: String, callback: Option<&str>) -> Response<Body> {
    let (status, content_type, body) = match callback {
        _ if json.is_empty() => (status, None, Body::Empty),
        None => (status, Some("application/json; charset=utf-8"), Body::Text(json)),
        Some(name) => {
            let script = format!("/**/{name}({});", in_script(&json));
            (StatusCode::OK, Some("application/javascript; charset=utf-8"), Body::Text(script))
        }
    };
    let mut response = Response::new(body);
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.reserve(10);
    if let Some(content_type) = content_type {
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    }
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    headers.insert(
        CONTENT_SECURITY_POLICY,
        HeaderValue::from_static("default-src 'none'; frame-ancestors 'none'"),
    );
    response
}

/// JSON may hold two line ends that older scripts may not.
fn in_script(json: &str) -> String {
    json.replace('\u{2028}', "\\u2028").replace('\u{2029}', "\\u2029")
}

fn put_text(headers: &mut HeaderMap, name: http::HeaderName, text: Option<&str>) {
    // Tags and locations are made of hex, ids and slashes: always a valid value.
    if let Some(value) = text.and_then(|text| HeaderValue::from_str(text).ok()) {
        headers.insert(name, value);
    }
}
