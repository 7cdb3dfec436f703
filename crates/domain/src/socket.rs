//! Open sockets: who follows a place, and what it is to be told.

use crate::outcome::{Address, Polled};
use crate::reservation::ReservationStatus;
use crate::{Account, ConnectionId, EventId, Millis, Token};

/// Follow a place over a socket.
#[derive(Debug, Clone, PartialEq)]
pub struct Connect {
    /// The sale.
    pub event: EventId,
    /// Whose place.
    pub place: Whose,
    /// The socket.
    pub connection: ConnectionId,
    /// The language of what it is told, two letters.
    pub language: &'static str,
    /// The caller, for the limit of questions about places; none where only the front door knows it.
    pub address: Option<Address>,
}

/// Whose place a socket follows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Whose {
    /// A token's.
    Token(Token),
    /// A proven account's, as long as it has one.
    Account(Account),
}

/// Where a followed token stands.
#[derive(Debug, Clone, PartialEq)]
pub struct Followed {
    /// As a poll tells it.
    pub polled: Polled,
    /// Places it holds.
    pub held_count: u32,
    /// When its holds end or ended; `None` where it never held any in this visit.
    pub hold_expires_at: Option<Millis>,
    /// What became of its booking, where it has one.
    pub reservation: Option<ReservationStatus>,
}

/// One socket that follows a token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listener {
    /// The socket.
    pub connection: ConnectionId,
    /// The language it asked for.
    pub language: String,
}

/// What is to be told to those who follow a token.
#[derive(Debug, Clone, PartialEq)]
pub struct Notice {
    /// Who.
    pub listeners: Vec<Listener>,
    /// The code of a request of this token that came to nothing.
    pub refused: Option<String>,
    /// Where the token stands now, where that is new.
    pub followed: Option<Followed>,
}

/// What one look at an event's sockets came to.
#[derive(Debug, Clone, PartialEq)]
pub struct Notices {
    /// What is to be told.
    pub notices: Vec<Notice>,
    /// Whether another look at once would find more.
    pub more: bool,
    /// Followed tokens that may yet have something to hear without anybody's doing.
    pub following: u64,
}
