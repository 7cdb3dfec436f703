//! Requests to commands: every rule about what a caller may send.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr};
use std::str::{self, FromStr};
use std::sync::Arc;

use domain::command::{
    Book, Choice, Hold, Join, Leave, MAX_SEATS_A_REQUEST, Owner, Pay, Poll, Progress, Purchase, Rejoin,
    Release, Repeatable, Reserved, Search, SeatMap,
};
use domain::outcome::Address;
use domain::shuffle::hex;
use domain::{Account, EventId, InvalidId, Millis, ReservationId, SeatName, Token};
use http::{HeaderMap, HeaderName};
use lambda_http::request::RequestContext;
use lambda_http::{Request, RequestExt};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use crate::access::{self, AccessClaims, AccessKeys};
use crate::body::{self, Field};
use crate::event::SignedIn;
use crate::failure::Failure;
use crate::payment::PaymentKeys;
use crate::query::{parameter, parameters};
use crate::routes;

/// What the deployment says about its callers; the environment is read elsewhere.
#[derive(Clone, Default)]
pub struct Gate {
    /// The sale of requests that name none.
    pub default_event: Option<EventId>,
    /// With it, only requests that carry it in `x-origin-secret` are taken, and their
    /// `CloudFront-Viewer-Address` counts.
    pub origin_secret: Option<String>,
    /// The header in which whoever knows the origin secret names the buyer. Counts for nothing without the secret.
    pub trusted_account_header: Option<HeaderName>,
    /// Origins whose pages may read answers; `*`: all.
    pub cors_origins: Vec<String>,
    /// What checks access tokens; without it none is good.
    pub access: Option<Arc<AccessKeys>>,
    /// What checks the payment provider's signature; without it none is good.
    pub payment_keys: PaymentKeys,
}

impl fmt::Debug for Gate {
    /// Secrets are not shown.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Gate");
        shown.field("default_event", &self.default_event).field("cors_origins", &self.cors_origins);
        shown.finish_non_exhaustive()
    }
}

static ORIGIN_SECRET: HeaderName = HeaderName::from_static("x-origin-secret");
static VIEWER_ADDRESS: HeaderName = HeaderName::from_static("cloudfront-viewer-address");
static IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// The longest value a search takes.
const MAX_FILTER_BYTES: usize = 200;
/// The largest amount of a payment: 2^53, as far as every reader of JSON counts one by one.
const MAX_AMOUNT: u64 = 1 << 53;
/// The longest Idempotency-Key.
const MAX_IDEMPOTENCY_KEY_BYTES: usize = 255;

/// `POST /api/queue/join`
pub fn join(gate: &Gate, request: &Request) -> Result<Join, Failure> {
    let address = address(gate, request)?;
    let fields = body::fields_if_any(request)?;
    let account = account(gate, request)?;
    prove_user(text_in("userId", fields.user_id)?, account.as_ref())?;
    Ok(Join { event: event_in(gate, fields.event_id)?, address, account })
}

/// `POST /api/queue/rejoin`
pub fn rejoin(gate: &Gate, request: &Request) -> Result<Rejoin, Failure> {
    let address = address(gate, request)?;
    let fields = body::fields(request)?;
    let account = account(gate, request)?;
    prove_user(text_in("userId", fields.user_id)?, account.as_ref())?;
    let token = token_of(text_in("token", fields.token)?, Failure::MissingToken)?;
    let event = event_in(gate, fields.event_id)?;
    let key = text_in("key", fields.key)?.filter(|key| !key.is_empty()).map(Cow::into_owned);
    Ok(Rejoin { event, token, key, address, account })
}

/// `DELETE /api/queue/leave`
pub fn leave(gate: &Gate, request: &Request) -> Result<Leave, Failure> {
    let address = address(gate, request)?;
    let [token, event, user] = parameters(request, ["token", "eventId", "userId"])?;
    prove_user(user, account(gate, request)?.as_ref())?;
    let token = token_of(token, Failure::MissingToken)?;
    Ok(Leave { event: event_of(gate, event)?, token, address })
}

/// `GET /api/status/poll`
pub fn poll(gate: &Gate, request: &Request) -> Result<Poll, Failure> {
    let address = address(gate, request)?;
    let [token, event, key, user] = parameters(request, ["token", "eventId", "key", "userId"])?;
    prove_user(user, account(gate, request)?.as_ref())?;
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
    let event = event_of(gate, event)?;
    let token = Caller::of(gate, request, Age::Live)?.session(&event, token, user, Failure::Unauthorized)?;
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
    let event = event_of(gate, event)?;
    let token = Caller::of(gate, request, Age::Live)?.session(&event, token, user, Failure::Unauthorized)?;
    Ok(SeatMap {
        token,
        event,
        offering: id_of("offeringId", offering)?,
        section: id_of("sectionId", section)?,
    })
}

/// `POST /api/seat/select`
pub fn hold(gate: &Gate, request: &Request) -> Result<Hold, Failure> {
    let caller = Caller::of(gate, request, Age::Live)?;
    let fields = body::fields(request)?;
    let event = event_in(gate, fields.event_id)?;
    let token = caller.session_in(&event, fields.token, fields.user_id)?;
    Ok(Hold {
        event,
        token,
        offering: id_in("offeringId", fields.offering_id)?,
        section: id_in("sectionId", fields.section_id)?,
        choice: choice(fields.seats, fields.seat_id, fields.count, fields.best)?,
        repeatable: repeatable(request)?,
    })
}

/// `POST /api/seat/cancel`
pub fn release(gate: &Gate, request: &Request) -> Result<Release, Failure> {
    let caller = Caller::of(gate, request, Age::Live)?;
    let fields = caller.fields(request)?;
    let event = event_in(gate, fields.event_id)?;
    let token = caller.session_in(&event, fields.token, fields.user_id)?;
    Ok(Release {
        event,
        token,
        offering: id_in("offeringId", fields.offering_id)?,
        seats: match (fields.seats, fields.seat_id) {
            (None, None) => Vec::new(),
            (Some(seats), None) => seats_in(seats)?,
            (None, Some(seat)) => vec![seat_in(seat)?],
            (Some(_), Some(_)) => {
                return Err(Failure::invalid("seats", "must not be given together with seatId"));
            }
        },
        repeatable: repeatable(request)?,
    })
}

/// `POST /api/booking`
pub fn book(gate: &Gate, request: &Request) -> Result<Book, Failure> {
    let caller = Caller::of(gate, request, Age::Live)?;
    let fields = caller.fields(request)?;
    let event = event_in(gate, fields.event_id)?;
    let token = caller.session_in(&event, fields.token, fields.user_id)?;
    let offering = id_in("offeringId", fields.offering_id)?;
    let section = id_in("sectionId", fields.section_id)?;
    let purchase = match fields.seat_count {
        None => Purchase::Held,
        Some(count) => Purchase::Plain { seat_count: count_in("seatCount", &count)?, offering, section },
    };
    Ok(Book { event, token, purchase, repeatable: repeatable(request)? })
}

/// `GET /api/booking/{id}`, `DELETE /api/booking/{id}`
pub fn reserved(gate: &Gate, request: &Request) -> Result<Reserved, Failure> {
    let caller = Caller::of(gate, request, Age::Any)?;
    let (_, id) = routes::of(request)?;
    let [token, user] = parameters(request, ["token", "userId"])?;
    let sent = sent_token(token)?;
    prove_user(user, caller.account.as_ref())?;
    if caller.claims.is_none() && sent.is_none() && caller.account.is_none() {
        return Err(Failure::Unauthorized);
    }
    let reservation: ReservationId =
        id.unwrap_or_default().parse().map_err(|error| bad_id("reservationId", &error))?;
    let token = caller.claimed(reservation.event(), sent)?;
    Ok(Reserved { reservation, owner: Owner { token, account: caller.account } })
}

/// `POST /api/payment/webhook`; `now` by the functions' clock.
pub fn pay(gate: &Gate, request: &Request, now: Millis) -> Result<Pay, Failure> {
    gate.payment_keys.check(request.headers(), body::bytes(request)?, now)?;
    let fields = body::fields(request)?;
    let status = text_in("status", fields.status)?;
    let currency = text_in("currency", fields.currency)?.unwrap_or_default();
    if currency.len() != 3 || !currency.bytes().all(|byte| byte.is_ascii_uppercase()) {
        return Err(Failure::invalid("currency", "must be three letters, A-Z"));
    }
    Ok(Pay {
        payment: parsed("paymentId", &text_in("paymentId", fields.payment_id)?.unwrap_or_default())?,
        reservation: parsed(
            "reservationId",
            &text_in("reservationId", fields.reservation_id)?.unwrap_or_default(),
        )?,
        paid: match status.as_deref() {
            Some("PAID") => true,
            Some("FAILED") => false,
            _ => return Err(Failure::invalid("status", "must be PAID or FAILED")),
        },
        amount: match fields.amount {
            Some(Field::Whole(amount)) if amount <= MAX_AMOUNT => amount,
            _ => return Err(Failure::invalid("amount", "must be a whole number, in the smallest unit")),
        },
        currency: currency.into_owned(),
    })
}

/// The name under which a request may be sent again.
fn repeatable(request: &Request) -> Result<Option<Repeatable>, Failure> {
    let Some(key) = request.headers().get(&IDEMPOTENCY_KEY) else { return Ok(None) };
    let key = key.as_bytes();
    if !(1..=MAX_IDEMPOTENCY_KEY_BYTES).contains(&key.len()) || !key.iter().all(u8::is_ascii_graphic) {
        let reason = format!("must be 1 to {MAX_IDEMPOTENCY_KEY_BYTES} visible ASCII characters");
        return Err(Failure::invalid("Idempotency-Key", reason));
    }
    let (route, _) = routes::of(request)?;
    let asked =
        Sha256::new().chain_update(route.path).chain_update(b"\0").chain_update(body::bytes(request)?);
    Ok(Some(Repeatable { key: hex(&Sha256::digest(key)), request: hex(&asked.finalize()) }))
}

/// Whether an access token must be live, or only ours.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Age {
    Live,
    Any,
}

/// What a caller has proven before anybody looks for a session.
struct Caller {
    claims: Option<AccessClaims>,
    account: Option<Account>,
}

impl Caller {
    /// A bearer that is not ours or too old is refused, also where a token is sent as well.
    fn of(gate: &Gate, request: &Request, age: Age) -> Result<Self, Failure> {
        let claims = match access::bearer(request.headers()) {
            None => None,
            Some(bearer) => {
                let keys = gate.access.as_ref().ok_or(Failure::Unauthorized)?;
                let claims = match age {
                    Age::Live => keys.check(bearer, Millis::now()),
                    Age::Any => keys.check_expired_too(bearer),
                };
                Some(claims.ok_or(Failure::Unauthorized)?)
            }
        };
        let account = account(gate, request)?;
        let claimed = claims.as_ref().and_then(|claims| claims.account.clone());
        match (&account, &claimed) {
            (Some(proven), Some(claimed)) if proven != claimed => Err(Failure::Unauthorized),
            _ => Ok(Self { account: account.or(claimed), claims }),
        }
    }

    /// The body's fields: whoever sends no access token needs a body for the token.
    fn fields<'a>(&self, request: &'a Request) -> Result<body::Fields<'a>, Failure> {
        if self.claims.is_some() { body::fields_if_any(request) } else { body::fields(request) }
    }

    /// The session's token.
    fn session(
        &self,
        event: &EventId,
        token: Option<Cow<'_, str>>,
        user: Option<Cow<'_, str>>,
        missing: Failure,
    ) -> Result<Token, Failure> {
        let sent = sent_token(token)?;
        prove_user(user, self.account.as_ref())?;
        self.claimed(event, sent)?.ok_or(missing)
    }

    /// The access token's token, or the one sent; both must be one.
    fn claimed(&self, event: &EventId, sent: Option<Token>) -> Result<Option<Token>, Failure> {
        match &self.claims {
            None => Ok(sent),
            Some(claims) if claims.event == *event && sent.is_none_or(|sent| sent == claims.token) => {
                Ok(Some(claims.token))
            }
            Some(_) => Err(Failure::Unauthorized),
        }
    }

    fn session_in(
        &self,
        event: &EventId,
        token: Option<Field<'_>>,
        user: Option<Field<'_>>,
    ) -> Result<Token, Failure> {
        self.session(event, text_in("token", token)?, text_in("userId", user)?, Failure::MissingToken)
    }
}

/// Whether a poll is answered as a script, which any page may read.
pub fn is_jsonp(request: &Request) -> bool {
    !matches!(parameter(request, "callback"), Ok(None))
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

/// The buyer, where one is proven: by API Gateway's JWT authorizer, or by whoever knows the origin secret.
fn account(gate: &Gate, request: &Request) -> Result<Option<Account>, Failure> {
    prove_origin(gate, request)?;
    let signed_in = request.extensions().get().map(|SignedIn(subject)| subject.as_str());
    let trusted = match &gate.trusted_account_header {
        Some(name) if gate.origin_secret.is_some() => request.headers().get(name),
        _ => None,
    };
    let trusted = trusted.map(|value| str::from_utf8(value.as_bytes()).unwrap_or_default());
    let account = match (signed_in, trusted) {
        (Some(signed_in), Some(trusted)) if signed_in != trusted => return Err(Failure::Unauthorized),
        (signed_in, trusted) => signed_in.or(trusted),
    };
    account.map(|account| parsed("account", account)).transpose()
}

/// A `userId` proves nothing: it must name whom something else has proven.
pub(crate) fn prove_user(user: Option<Cow<'_, str>>, account: Option<&Account>) -> Result<(), Failure> {
    match user {
        Some(user) if account.is_none_or(|account| account.as_str() != user) => Err(Failure::Unauthorized),
        _ => Ok(()),
    }
}

fn bad_id(field: &'static str, error: &InvalidId) -> Failure {
    Failure::invalid(field, error.reason)
}

pub(crate) fn parsed<T: FromStr<Err = InvalidId>>(field: &'static str, text: &str) -> Result<T, Failure> {
    text.parse().map_err(|error| bad_id(field, &error))
}

fn sent_token(text: Option<Cow<'_, str>>) -> Result<Option<Token>, Failure> {
    text.filter(|text| !text.is_empty()).map(|text| parsed("token", &text)).transpose()
}

pub(crate) fn token_of(text: Option<Cow<'_, str>>, missing: Failure) -> Result<Token, Failure> {
    sent_token(text)?.ok_or(missing)
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
