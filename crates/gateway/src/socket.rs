//! Sockets: WebSocket events of API Gateway to commands, standings and failures to what a socket is told.

use std::borrow::Cow;
use std::net::IpAddr;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use domain::line;
use domain::outcome::SaleStatus;
use domain::outcome::{Address, Place};
use domain::reservation::ReservationStatus;
use domain::socket::{Connect, Followed, Notice, Whose};
use domain::{Account, ConnectionId, EventId, Millis, ReservationId};
use http::HeaderMap;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::body::{Field, MAX_BODY_BYTES};
use crate::event::headers;
use crate::failure::{self, Failure};
use crate::language::Language;
use crate::request::{Gate, event_in, is_origin, parsed, prove_user, text_in, token_of};

/// An event of a WebSocket API: what is read of it.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SocketEvent {
    /// What API Gateway says about the socket.
    pub request_context: SocketContext,
    /// Those of the handshake, told with `$connect` alone.
    #[serde(default, deserialize_with = "headers")]
    pub headers: HeaderMap,
    /// A message, where this is one.
    #[serde(default)]
    pub body: Option<String>,
    /// Whether the message is base64.
    #[serde(default)]
    pub is_base64_encoded: bool,
}

/// What API Gateway says about a socket.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SocketContext {
    /// What happened.
    pub event_type: SocketEventType,
    /// The socket.
    pub connection_id: ConnectionId,
    /// Who opened it.
    #[serde(default)]
    pub identity: SocketIdentity,
    /// What an authorizer of `$connect` has proven, where the API has one.
    #[serde(default)]
    pub authorizer: Option<SocketAuthorizer>,
}

/// What an authorizer of `$connect` has proven. Its context may hold anything; only a text is an account.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SocketAuthorizer {
    /// The buyer, in the authorizer's context.
    #[serde(default)]
    pub account: Option<Value>,
    /// Whom the authorizer let in; the buyer, where its context names none.
    #[serde(default)]
    pub principal_id: Option<Value>,
}

/// What happened to a socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum SocketEventType {
    /// It asks to be opened: route `$connect`.
    Connect,
    /// It was closed: route `$disconnect`. Not every one is told.
    Disconnect,
    /// It sent something: route `$default`, whatever its `type`.
    Message,
}

/// Who opened a socket.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SocketIdentity {
    /// The address that connected to API Gateway.
    #[serde(default)]
    pub source_ip: Option<String>,
}

/// The answer to an event, as API Gateway takes it: a body goes to the socket.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SocketReply {
    /// 200, or why a socket is not opened.
    pub status_code: u16,
    /// What the socket is told.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub body: Option<String>,
}

impl SocketReply {
    /// Nothing to tell.
    pub fn done() -> Self {
        Self { status_code: 200, body: None }
    }

    /// This is told.
    pub fn told(body: String) -> Self {
        Self { status_code: 200, body: Some(body) }
    }
}

/// `$connect`: whether the socket may be opened. What it follows, its first message tells.
pub fn open(gate: &Gate, event: &SocketEvent) -> SocketReply {
    if is_origin(gate, &event.headers) {
        return SocketReply::done();
    }
    SocketReply { status_code: Failure::Forbidden.row().status, body: None }
}

/// Every field any message knows.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Fields<'a> {
    #[serde(borrow, rename = "type")]
    kind: Option<Field<'a>>,
    #[serde(borrow)]
    token: Option<Field<'a>>,
    #[serde(borrow)]
    event_id: Option<Field<'a>>,
    #[serde(borrow)]
    user_id: Option<Field<'a>>,
    #[serde(borrow)]
    language: Option<Field<'a>>,
}

/// The language of a socket, and what its message asks for.
pub struct Message {
    language: Language,
    /// The one thing that can be asked for: `{"type":"connect"}`.
    pub connect: Result<Connect, Failure>,
}

impl Message {
    /// Reads a message.
    pub fn read(gate: &Gate, event: &SocketEvent) -> Self {
        let mut language = Language::English;
        let connect = text_of(event).and_then(|text| {
            let fields = fields(&text)?;
            language = text_in("language", fields.language)?
                .and_then(|tag| Language::of_tag(tag.trim()))
                .unwrap_or(Language::English);
            match text_in("type", fields.kind)?.as_deref() {
                Some("connect") => {}
                _ => return Err(Failure::invalid("type", "must be connect")),
            }
            let place = place(text_in("token", fields.token)?, text_in("userId", fields.user_id)?, event)?;
            Ok(Connect {
                place,
                event: event_in(gate, fields.event_id)?,
                connection: event.request_context.connection_id.clone(),
                language: language.as_str(),
                address: address(gate, event),
            })
        });
        Self { language, connect }
    }

    /// The answer to it; `None` where there is no such place, or one that was left.
    pub fn answer(&self, event: &EventId, followed: Option<&Followed>) -> String {
        match followed {
            Some(followed) => told(event, followed),
            None => self.refusal(&Failure::NotFound),
        }
    }

    /// The answer to a message that asked for nothing.
    pub fn refusal(&self, failure: &Failure) -> String {
        failure.told(self.language)
    }
}

/// Whose place is to be followed: the token's, or without one that of the account which `$connect` has proven.
fn place(
    token: Option<Cow<'_, str>>,
    user: Option<Cow<'_, str>>,
    event: &SocketEvent,
) -> Result<Whose, Failure> {
    let authorizer = event.request_context.authorizer.as_ref();
    let account = authorizer.and_then(|authorizer| {
        let named = authorizer.account.as_ref().and_then(Value::as_str);
        named.or_else(|| authorizer.principal_id.as_ref()?.as_str())
    });
    let account: Option<Account> = account.map(|account| parsed("account", account)).transpose()?;
    let is_named = user.is_some();
    prove_user(user, account.as_ref())?;
    match (token.filter(|token| !token.is_empty()), account.filter(|_| is_named)) {
        (None, Some(account)) => Ok(Whose::Account(account)),
        (token, _) => token_of(token, Failure::MissingToken).map(Whose::Token),
    }
}

fn text_of(event: &SocketEvent) -> Result<String, Failure> {
    let text = event.body.as_deref().unwrap_or_default();
    if text.len() > MAX_BODY_BYTES.div_ceil(3) * 4 {
        return Err(Failure::PayloadTooLarge);
    }
    let bytes = if event.is_base64_encoded {
        STANDARD.decode(text).map_err(|_| Failure::invalid("body", "must be valid base64"))?
    } else {
        text.as_bytes().to_vec()
    };
    if bytes.len() > MAX_BODY_BYTES {
        return Err(Failure::PayloadTooLarge);
    }
    String::from_utf8(bytes).map_err(|_| Failure::invalid("body", "must be text"))
}

fn fields(text: &str) -> Result<Fields<'_>, Failure> {
    // A derived struct would also read itself from an array.
    if !text.trim_start().starts_with('{') {
        return Err(Failure::invalid("body", "must be a JSON object"));
    }
    serde_json::from_str(text).map_err(|error| {
        Failure::invalid("body", if error.is_data() { "gives a field twice" } else { "must be valid JSON" })
    })
}

/// The caller's address; behind a front door only that one knows it, and limits its callers itself.
fn address(gate: &Gate, event: &SocketEvent) -> Option<Address> {
    if gate.origin_secret.is_some() {
        return None;
    }
    let ip: Option<IpAddr> = event.request_context.identity.source_ip.as_deref()?.parse().ok();
    ip.map(Address::of)
}

/// What those who follow a token are told of a notice, in order, in a language as [`Connect`] names it.
pub fn bodies(event: &EventId, notice: &Notice, language: &str) -> Vec<String> {
    let language = Language::of_tag(language).unwrap_or(Language::English);
    let mut bodies = Vec::with_capacity(1);
    bodies.extend(notice.refused.as_deref().and_then(|code| failure::told_code(code, language)));
    if let Some(followed) = &notice.followed {
        if is_hold_over(followed) {
            bodies.extend(failure::told_code("HOLD_EXPIRED", language));
        }
        bodies.push(told(event, followed));
    }
    bodies
}

/// Whether it was its hold's end that ended the visit.
fn is_hold_over(followed: &Followed) -> bool {
    let standing = &followed.polled.standing;
    matches!(standing.place, Place::Expired { .. })
        && followed.hold_expires_at.is_some_and(|expires_at| expires_at <= standing.view.now)
}

/// A standing as a socket is told it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Told<'a> {
    status: &'static str,
    next_action: &'static str,
    event_id: &'a EventId,
    current_rank: Option<u64>,
    estimated_wait_time: Option<u64>,
    total_ticket_count: u32,
    total_waiting: u64,
    remaining_seats: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    active_expires_at: Option<Millis>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hold_expires_at: Option<Millis>,
    #[serde(skip_serializing_if = "Option::is_none")]
    held_count: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reservation_id: Option<&'a ReservationId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reservation_status: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reentry: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    opens_at: Option<Millis>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<&'a str>,
    updated_at: Millis,
}

fn told(event: &EventId, followed: &Followed) -> String {
    let Followed { polled, held_count, hold_expires_at, reservation } = followed;
    let (place, view) = (&polled.standing.place, &polled.standing.view);
    let (status, next_action) = words(followed);
    let rank = match place {
        Place::Waiting { rank, .. } => rank.filter(|_| view.is_opened()),
        _ => None,
    };
    let ahead = rank.map(|rank| rank.saturating_sub(1));
    let reservation_id = match place {
        Place::Booked { reservation } => Some(reservation),
        _ => None,
    };
    let is_holding = *held_count > 0;
    let told = Told {
        status,
        next_action,
        event_id: event,
        current_rank: rank,
        estimated_wait_time: ahead
            .and_then(|ahead| line::estimated_wait_seconds(ahead, view.admitted_per_second)),
        total_ticket_count: polled.ticket_count,
        total_waiting: view.total_waiting,
        remaining_seats: view.remaining_seats,
        active_expires_at: match place {
            Place::Active { expires_at, .. } => Some(*expires_at),
            _ => None,
        },
        hold_expires_at: hold_expires_at.filter(|_| is_holding),
        held_count: is_holding.then_some(*held_count),
        reservation_id,
        reservation_status: reservation.map(ReservationStatus::as_str),
        reentry: matches!(place, Place::Expired { reentry: true }).then_some(true),
        opens_at: (!view.is_opened()).then_some(view.opens_at),
        message: view.message.as_deref(),
        updated_at: view.now,
    };
    // Nothing in it can fail to be written; an empty object tells a client to ask by itself.
    serde_json::to_string(&told).unwrap_or_else(|_| "{}".to_owned())
}

/// `status` and `nextAction`.
fn words(followed: &Followed) -> (&'static str, &'static str) {
    let standing = &followed.polled.standing;
    match standing.place {
        Place::Waiting { .. } => ("waiting", "wait"),
        Place::Active { .. } if followed.held_count > 0 => ("seated", "pay"),
        Place::Called | Place::Active { .. } => ("ready", "move_to_seat_selection"),
        Place::Booked { .. } if followed.reservation == Some(ReservationStatus::PendingPayment) => {
            ("booked", "pay")
        }
        Place::Booked { .. } => ("booked", "done"),
        Place::Expired { .. } | Place::NotFound if standing.view.status == SaleStatus::Closed => {
            ("expired", "done")
        }
        Place::Expired { .. } | Place::NotFound => ("expired", "rejoin"),
    }
}
