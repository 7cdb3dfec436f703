//! Requests to commands: every rule about what a caller may send.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::str::FromStr;

use domain::command::{
    Book, Choice, Hold, Join, Leave, MAX_SEATS_A_REQUEST, Poll, Progress, Purchase, Rejoin, Release,
    Reserved, Search, SeatMap,
};
use domain::outcome::Address;
use domain::{EventId, InvalidId, SeatName, Token};
use http::{HeaderMap, HeaderName};
use lambda_http::request::RequestContext;
use lambda_http::{Request, RequestExt};
use subtle::ConstantTimeEq;

use crate::body::{self, Field};
use crate::failure::Failure;
use crate::query::{parameter, parameters};
use crate::routes;

/// What the deployment says about its callers; the environment is read elsewhere.
#[derive(Debug, Clone, Default)]
pub struct Gate {
    /// The sale of requests that name none.
    pub default_event: Option<EventId>,
    /// With it, only requests that carry it in `x-origin-secret` are taken, and their
    /// `CloudFront-Viewer-Address` counts.
    pub origin_secret: Option<String>,
    /// Origins whose pages may read answers; `*`: all.
    pub cors_origins: Vec<String>,
}

static ORIGIN_SECRET: HeaderName = HeaderName::from_static("x-origin-secret");
static VIEWER_ADDRESS: HeaderName = HeaderName::from_static("cloudfront-viewer-address");

/// The longest value a search takes.
const MAX_FILTER_BYTES: usize = 200;

/// `POST /api/queue/join`
pub fn join(gate: &Gate, request: &Request) -> Result<Join, Failure> {
    let address = address(gate, request)?;
    let fields = body::fields_if_any(request)?;
    prove_user(fields.user_id.is_some())?;
    Ok(Join { event: event_in(gate, fields.event_id)?, address })
}

/// `POST /api/queue/rejoin`
pub fn rejoin(gate: &Gate, request: &Request) -> Result<Rejoin, Failure> {
    let address = address(gate, request)?;
    let fields = body::fields(request)?;
    prove_user(fields.user_id.is_some())?;
    let token = token_in(fields.token)?;
    let event = event_in(gate, fields.event_id)?;
    let key = text_in("key", fields.key)?.filter(|key| !key.is_empty()).map(Cow::into_owned);
    Ok(Rejoin { event, token, key, address })
}

/// `DELETE /api/queue/leave`
pub fn leave(gate: &Gate, request: &Request) -> Result<Leave, Failure> {
    let address = address(gate, request)?;
    let [token, event, user] = parameters(request, ["token", "eventId", "userId"])?;
    prove_user(user.is_some())?;
    let token = token_of(token, Failure::MissingToken)?;
    Ok(Leave { event: event_of(gate, event)?, token, address })
}

/// `GET /api/status/poll`
pub fn poll(gate: &Gate, request: &Request) -> Result<Poll, Failure> {
    let address = address(gate, request)?;
    let [token, event, key, user] = parameters(request, ["token", "eventId", "key", "userId"])?;
    prove_user(user.is_some())?;
    let token = token_of(token, Failure::MissingToken)?;
    let event = event_of(gate, event)?;
    let key = key.filter(|key| !key.is_empty()).map(Cow::into_owned);
    Ok(Poll { event, token, key, address })
}

/// `GET /api/status/progress`
pub fn progress(gate: &Gate, request: &Request) -> Result<Progress, Failure> {
    let [event] = parameters(request, ["eventId"])?;
    Ok(Progress { event: event_of(gate, event)? })
}

/// `GET /trains/search`, `GET /api/offerings`
pub fn search(gate: &Gate, request: &Request) -> Result<Search, Failure> {
    let names = ["token", "eventId", "userId", "from", "to", "date"];
    let [token, event, user, from, to, date] = parameters(request, names)?;
    prove_user(user.is_some())?;
    let token = token_of(token, Failure::Unauthorized)?;
    let event = event_of(gate, event)?;
    if date.as_deref().is_some_and(|date| !date.is_empty() && !is_date(date)) {
        return Err(Failure::invalid("date", "must be YYYY-MM-DD"));
    }
    let mut filter = BTreeMap::new();
    for (name, value) in [("from", from), ("to", to), ("date", date)] {
        // An empty field of a search form asks for nothing.
        let Some(value) = value.filter(|value| !value.is_empty()) else { continue };
        if value.len() > MAX_FILTER_BYTES {
            return Err(Failure::invalid(name, "is too long"));
        }
        filter.insert(name.to_owned(), value.into_owned());
    }
    Ok(Search { event, token, filter })
}

/// `GET /api/seats`
pub fn seat_map(gate: &Gate, request: &Request) -> Result<SeatMap, Failure> {
    let names = ["token", "eventId", "userId", "offeringId", "sectionId"];
    let [token, event, user, offering, section] = parameters(request, names)?;
    prove_user(user.is_some())?;
    Ok(SeatMap {
        token: token_of(token, Failure::Unauthorized)?,
        event: event_of(gate, event)?,
        offering: id_of("offeringId", offering)?,
        section: id_of("sectionId", section)?,
    })
}

/// `POST /api/seat/select`
pub fn hold(gate: &Gate, request: &Request) -> Result<Hold, Failure> {
    let fields = body::fields(request)?;
    prove_user(fields.user_id.is_some())?;
    Ok(Hold {
        token: token_in(fields.token)?,
        event: event_in(gate, fields.event_id)?,
        offering: id_in("offeringId", fields.offering_id)?,
        section: id_in("sectionId", fields.section_id)?,
        choice: choice(fields.seats, fields.seat_id, fields.count, fields.best)?,
    })
}

/// `POST /api/seat/cancel`
pub fn release(gate: &Gate, request: &Request) -> Result<Release, Failure> {
    let fields = body::fields(request)?;
    prove_user(fields.user_id.is_some())?;
    Ok(Release {
        token: token_in(fields.token)?,
        event: event_in(gate, fields.event_id)?,
        offering: id_in("offeringId", fields.offering_id)?,
        seats: match (fields.seats, fields.seat_id) {
            (None, None) => Vec::new(),
            (Some(seats), None) => seats_in(seats)?,
            (None, Some(seat)) => vec![seat_in(seat)?],
            (Some(_), Some(_)) => {
                return Err(Failure::invalid("seats", "must not be given together with seatId"));
            }
        },
    })
}

/// `POST /api/booking`
pub fn book(gate: &Gate, request: &Request) -> Result<Book, Failure> {
    let fields = body::fields(request)?;
    prove_user(fields.user_id.is_some())?;
    let token = token_in(fields.token)?;
    let event = event_in(gate, fields.event_id)?;
    let offering = id_in("offeringId", fields.offering_id)?;
    let section = id_in("sectionId", fields.section_id)?;
    let purchase = match fields.seat_count {
        None => Purchase::Held,
        Some(count) => Purchase::Plain { seat_count: count_in("seatCount", &count)?, offering, section },
    };
    Ok(Book { event, token, purchase })
}

/// `GET /api/booking/{id}`, `DELETE /api/booking/{id}`
pub fn reserved(_gate: &Gate, request: &Request) -> Result<Reserved, Failure> {
    let (_, id) = routes::of(request)?;
    let [token, user] = parameters(request, ["token", "userId"])?;
    prove_user(user.is_some())?;
    let token = token_of(token, Failure::Unauthorized)?;
    let reservation = id.unwrap_or_default().parse().map_err(|error| bad_id("reservationId", &error))?;
    Ok(Reserved { reservation, token })
}

/// The function name of a JSONP poll; `None` for a plain one.
pub(crate) fn callback(request: &Request) -> Result<Option<Cow<'_, str>>, Failure> {
    let Some(name) = parameter(request, "callback")? else { return Ok(None) };
    let is_identifier = (1..=64).contains(&name.len())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'$')
        && !name.starts_with(|first: char| first.is_ascii_digit());
    if is_identifier {
        Ok(Some(name))
    } else {
        Err(Failure::invalid("callback", "must be an identifier of at most 64 characters"))
    }
}

/// Refuses what did not come through the front door, where there is one.
pub(crate) fn prove_origin(gate: &Gate, request: &Request) -> Result<(), Failure> {
    if is_origin(gate, request.headers()) { Ok(()) } else { Err(Failure::Forbidden) }
}

/// Whether these headers came through the front door, where there is one.
pub(crate) fn is_origin(gate: &Gate, headers: &HeaderMap) -> bool {
    let Some(secret) = &gate.origin_secret else { return true };
    let given = headers.get(&ORIGIN_SECRET).map_or(&b""[..], |value| value.as_bytes());
    // An empty secret is nobody's: it would let everybody in who sends an empty header.
    !secret.is_empty() && bool::from(secret.as_bytes().ct_eq(given))
}

/// The caller's address, by which limits count.
fn address(gate: &Gate, request: &Request) -> Result<Address, Failure> {
    prove_origin(gate, request)?;
    let viewer = || {
        gate.origin_secret.as_ref()?;
        let (ip, _port) = request.headers().get(&VIEWER_ADDRESS)?.to_str().ok()?.rsplit_once(':')?;
        ip.parse().ok()
    };
    let source = || match request.request_context_ref()? {
        RequestContext::ApiGatewayV2(context) => context.http.source_ip.as_deref()?.parse().ok(),
        _ => None,
    };
    // API Gateway always tells the source; whoever comes without one shares one limit.
    Ok(Address::of(viewer().or_else(source).unwrap_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED))))
}

/// No account can be proven here, so none can be the caller's.
pub(crate) fn prove_user(is_named: bool) -> Result<(), Failure> {
    if is_named { Err(Failure::Unauthorized) } else { Ok(()) }
}

fn bad_id(field: &'static str, error: &InvalidId) -> Failure {
    Failure::invalid(field, error.reason)
}

fn parsed<T: FromStr<Err = InvalidId>>(field: &'static str, text: &str) -> Result<T, Failure> {
    text.parse().map_err(|error| bad_id(field, &error))
}

fn token_of(text: Option<Cow<'_, str>>, missing: Failure) -> Result<Token, Failure> {
    match text.filter(|text| !text.is_empty()) {
        Some(text) => parsed("token", &text),
        None => Err(missing),
    }
}

fn event_of(gate: &Gate, text: Option<Cow<'_, str>>) -> Result<EventId, Failure> {
    match (text, &gate.default_event) {
        (Some(text), _) => parsed("eventId", &text),
        (None, Some(event)) => Ok(event.clone()),
        (None, None) => Err(Failure::invalid("eventId", "is needed: there is no default")),
    }
}

fn id_of<T: FromStr<Err = InvalidId>>(
    field: &'static str,
    text: Option<Cow<'_, str>>,
) -> Result<Option<T>, Failure> {
    text.map(|text| parsed(field, &text)).transpose()
}

pub(crate) fn text_in<'a>(
    name: &'static str,
    field: Option<Field<'a>>,
) -> Result<Option<Cow<'a, str>>, Failure> {
    match field {
        None => Ok(None),
        Some(Field::Text(text)) => Ok(Some(text)),
        Some(_) => Err(Failure::invalid(name, "must be a string")),
    }
}

pub(crate) fn token_in(field: Option<Field<'_>>) -> Result<Token, Failure> {
    token_of(text_in("token", field)?, Failure::MissingToken)
}

pub(crate) fn event_in(gate: &Gate, field: Option<Field<'_>>) -> Result<EventId, Failure> {
    event_of(gate, text_in("eventId", field)?)
}

fn id_in<T: FromStr<Err = InvalidId>>(
    name: &'static str,
    field: Option<Field<'_>>,
) -> Result<Option<T>, Failure> {
    id_of(name, text_in(name, field)?)
}

fn choice(
    seats: Option<Field<'_>>,
    seat_id: Option<Field<'_>>,
    count: Option<Field<'_>>,
    best: Option<Field<'_>>,
) -> Result<Choice, Failure> {
    match (seats, seat_id, count, best) {
        (Some(seats), None, None, None) => seats_in(seats).map(Choice::Seats),
        (None, Some(seat), None, None) => Ok(Choice::Seats(vec![seat_in(seat)?])),
        (None, None, Some(count), None) => count_in("count", &count).map(Choice::Count),
        (None, None, None, Some(best)) => count_in("best", &best).map(Choice::Best),
        _ => Err(Failure::invalid("seats", "exactly one of seats, seatId, count and best is needed")),
    }
}

fn count_in(name: &'static str, field: &Field<'_>) -> Result<u32, Failure> {
    match field {
        Field::Whole(count) if (1..=u64::from(MAX_SEATS_A_REQUEST)).contains(count) => {
            u32::try_from(*count).map_err(|error| Failure::internal(&error))
        }
        _ => Err(Failure::invalid(name, format!("must be a whole number from 1 to {MAX_SEATS_A_REQUEST}"))),
    }
}

fn seat_in(field: Field<'_>) -> Result<SeatName, Failure> {
    match field {
        Field::Text(name) => parsed("seatId", &name),
        _ => Err(Failure::invalid("seatId", "must be a string")),
    }
}

fn seats_in(field: Field<'_>) -> Result<Vec<SeatName>, Failure> {
    let Field::List(items) = field else {
        return Err(Failure::invalid("seats", "must be a list of seat names"));
    };
    if items.is_empty() || items.len() > MAX_SEATS_A_REQUEST as usize {
        return Err(Failure::invalid("seats", format!("must have 1 to {MAX_SEATS_A_REQUEST} names")));
    }
    let mut seats: Vec<SeatName> = Vec::with_capacity(items.len());
    for item in items {
        let Field::Text(name) = item else {
            return Err(Failure::invalid("seats", "must be a list of seat names"));
        };
        let seat = parsed("seats", &name)?;
        // At most a hundred names: looking at each is quicker than hashing.
        if seats.contains(&seat) {
            return Err(Failure::invalid("seats", format!("names {seat} twice")));
        }
        seats.push(seat);
    }
    Ok(seats)
}

fn is_date(text: &str) -> bool {
    text.len() == 10
        && text.bytes().enumerate().all(|(at, byte)| match at {
            4 | 7 => byte == b'-',
            _ => byte.is_ascii_digit(),
        })
}
