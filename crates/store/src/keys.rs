//! Every key of every sale. Nothing else in the product builds one.
//!
//! | name | key | type | holds |
//! |---|---|---|---|
//! | – | `ticket:events` | SET | event ids, the one key outside a hash tag |
//! | meta | `ticket:{E}:meta` | HASH, by the padding a hash table | status, times, rules, version, epoch, replication id, since when it recovers, admission credit and clock (its last tick), when it was last relayed, head score, net, pace factor, whether joins are refused |
//! | definition | `ticket:{E}:definition` | STRING | the edition: the checked sale and where its places lie, JSON |
//! | sequence | `ticket:{E}:queue:seq` | STRING | last ticket number |
//! | waiting | `ticket:{E}:queue:waiting` | ZSET | token → score |
//! | called | `ticket:{E}:queue:called` | HASH | token → score, until when it may claim, called at, re-entry used; lapsed ones stay |
//! | active | `ticket:{E}:active:users` | ZSET | token → expiry of its call or session, ms |
//! | session | `ticket:{E}:session:{token}` | HASH | from the claim on: state, score, times, account, held items; until closesAt + 24 h |
//! | done | `ticket:{E}:booking:done:{token}` | STRING | reservation id; until closesAt + 24 h |
//! | accounts | `ticket:{E}:accounts` | HASH | first half of an account's token → other half and account, until the place was left or has booked |
//! | left | `ticket:{E}:queue:left` | SET | tokens that left: their keys bring nobody back |
//! | tickets | `ticket:{E}:tickets` | HASH | account → places it has bought, those given back not counted |
//! | idempotency | `ticket:{E}:idempotency:{token}:{sha256}` | STRING | digest of a request, then its packed reply; 24 h |
//! | remaining | `ticket:{E}:seats:remaining` | STRING | free places in the whole event |
//! | map | `ticket:{E}:seats:map` | STRING | a byte a seat: `.` free, `h` held, `s` sold, `x` off sale, `/` end of a row |
//! | stock | `ticket:{E}:seats:stock` | HASH | section number → free places; `sequence` → changes so far |
//! | holds | `ticket:{E}:seats:holds` | HASH | seat → `section:price:token`; `section*price*token` → `section:price:count` |
//! | due | `ticket:{E}:seats:due` | ZSET | the same units → when the hold ends, ms |
//! | reservation | `ticket:{E}:reservation:{uuid}` | HASH | the whole reservation; until closesAt or payment due + 24 h |
//! | reservations | `ticket:{E}:reservations` | ZSET | reservation id → created at, ms |
//! | payment_due | `ticket:{E}:payment:due` | ZSET | reservation id → due at, ms |
//! | payment_reminders | `ticket:{E}:payment:reminders` | ZSET | reservation id → when to remind its buyer, ms |
//! | payment | `ticket:{E}:payment:{sha256}` | STRING | why this payment was refused; 30 days |
//! | journal | `ticket:{E}:journal` | STREAM | facts not yet taken by SQS |
//! | sockets | `ticket:{E}:sockets` | HASH | token → what it was told last, then its connections, each `id,language` |
//! | connections | `ticket:{E}:sockets:connections` | HASH | connection → the token it follows |
//! | sockets_due | `ticket:{E}:sockets:due` | ZSET | token → when it is looked at next, ms; 0: its standing changed; inf: nothing comes of itself |
//! | sockets_refused | `ticket:{E}:sockets:refused` | HASH | token → the code of a refusal that its sockets are to be told |
//! | join_rate, leave_rate, poll_rate | `ticket:{E}:rate:join:{address}` … | STRING | calls in the current second |

use std::fmt;

use domain::outcome::Address;
use domain::{EventId, PaymentId, ReservationId, Token};

/// The ids of all events.
pub const EVENTS: &str = "ticket:events";

/// A key by the name that the headers of Lua steps declare.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)] // The module's table tells what each holds.
pub enum KeyName {
    Meta,
    Definition,
    Sequence,
    Waiting,
    Called,
    Active,
    Session,
    Done,
    Remaining,
    Map,
    Stock,
    Holds,
    Due,
    Reservation,
    Reservations,
    PaymentDue,
    PaymentReminders,
    Payment,
    Accounts,
    Left,
    Tickets,
    Idempotency,
    Journal,
    Sockets,
    Connections,
    SocketsDue,
    SocketsRefused,
    JoinRate,
    LeaveRate,
    PollRate,
}

/// What the keys of one command are about.
#[derive(Debug, Clone, Copy)]
pub struct Keys<'a> {
    event: &'a EventId,
    token: Option<Token>,
    address: Option<Address>,
    reservation: Option<&'a ReservationId>,
    idempotency: Option<&'a str>,
    payment: Option<&'a PaymentId>,
}

impl<'a> Keys<'a> {
    /// Keys of an event.
    pub fn of(event: &'a EventId) -> Self {
        Self { event, token: None, address: None, reservation: None, idempotency: None, payment: None }
    }

    /// And of a token in it.
    #[must_use]
    pub fn token(mut self, token: Token) -> Self {
        self.token = Some(token);
        self
    }

    /// And of a caller.
    #[must_use]
    pub fn address(mut self, address: Address) -> Self {
        self.address = Some(address);
        self
    }

    /// And of a reservation.
    #[must_use]
    pub fn reservation(mut self, reservation: &'a ReservationId) -> Self {
        self.reservation = Some(reservation);
        self
    }

    /// And of a request with an Idempotency-Key, by the key's digest.
    #[must_use]
    pub fn idempotency(mut self, digest: Option<&'a str>) -> Self {
        self.idempotency = digest;
        self
    }

    /// And of a payment.
    #[must_use]
    pub fn payment(mut self, payment: &'a PaymentId) -> Self {
        self.payment = Some(payment);
        self
    }

    /// The key. A part that the command did not bring is left empty: no such key is ever written, and each
    /// command's tests would miss it.
    pub fn name(&self, name: KeyName) -> String {
        Key(self, name).to_string()
    }

    /// All keys of the event, as SCAN takes it: no character of an id is a wildcard.
    pub(crate) fn pattern(&self) -> String {
        format!("ticket:{{{}}}:*", self.event)
    }
}

/// A key as a command takes it: written straight into it.
pub(crate) struct Key<'a>(pub(crate) &'a Keys<'a>, pub(crate) KeyName);

impl fmt::Display for Key<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(keys, name) = self;
        f.write_str("ticket:{")?;
        f.write_str(keys.event.as_str())?;
        f.write_str("}:")?;
        f.write_str(match name {
            KeyName::Meta => "meta",
            KeyName::Definition => "definition",
            KeyName::Sequence => "queue:seq",
            KeyName::Waiting => "queue:waiting",
            KeyName::Called => "queue:called",
            KeyName::Active => "active:users",
            KeyName::Remaining => "seats:remaining",
            KeyName::Map => "seats:map",
            KeyName::Stock => "seats:stock",
            KeyName::Holds => "seats:holds",
            KeyName::Due => "seats:due",
            KeyName::Reservations => "reservations",
            KeyName::PaymentDue => "payment:due",
            KeyName::PaymentReminders => "payment:reminders",
            KeyName::Accounts => "accounts",
            KeyName::Left => "queue:left",
            KeyName::Tickets => "tickets",
            KeyName::Journal => "journal",
            KeyName::Sockets => "sockets",
            KeyName::Connections => "sockets:connections",
            KeyName::SocketsDue => "sockets:due",
            KeyName::SocketsRefused => "sockets:refused",
            KeyName::Session => "session:",
            KeyName::Done => "booking:done:",
            KeyName::Reservation => "reservation:",
            KeyName::Payment => "payment:",
            KeyName::Idempotency => "idempotency:",
            KeyName::JoinRate => "rate:join:",
            KeyName::LeaveRate => "rate:leave:",
            KeyName::PollRate => "rate:poll:",
        })?;
        match name {
            KeyName::Session | KeyName::Done => {
                debug_assert!(keys.token.is_some());
                part(f, keys.token)
            }
            KeyName::Reservation => part(f, keys.reservation.map(ReservationId::uuid)),
            KeyName::Payment => part(f, keys.payment.map(PaymentId::digest)),
            KeyName::Idempotency => {
                debug_assert!(keys.token.is_some());
                part(f, keys.token)?;
                f.write_str(":")?;
                f.write_str(keys.idempotency.unwrap_or_default())
            }
            KeyName::JoinRate | KeyName::LeaveRate | KeyName::PollRate => {
                debug_assert!(keys.address.is_some());
                part(f, keys.address.map(|address| address.key_part()))
            }
            _ => Ok(()),
        }
    }
}

fn part(f: &mut fmt::Formatter<'_>, part: Option<impl fmt::Display>) -> fmt::Result {
    part.map_or(Ok(()), |part| part.fmt(f))
}
