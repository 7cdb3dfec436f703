//! Sockets that follow places: who they are, and what they are to be told.

use std::net::Ipv4Addr;

use domain::outcome::{Address, Outcome, Place, Polled, Standing};
use domain::reservation::ReservationStatus;
use domain::socket::{Connect, Followed, Listener, Notice, Notices, Whose};
use domain::{ConnectionId, EventId, ReservationId, Token, line};
use futures::{StreamExt, TryStreamExt, stream};

use crate::keys::Keys;
use crate::reply::Reply;
use crate::step::{CONNECT, Call, DISCONNECT, PUSH, TELL};
use crate::{Store, StoreError};

/// Connections that follow tokens of one event, at most.
pub const CONNECTIONS_AN_EVENT: u32 = 500_000;
/// Connections that are forgotten by one step.
const FORGOTTEN_AT_ONCE: usize = 1_000;
/// Tokens looked at by one step: about a millisecond of Redis.
pub const LOOKED_AT_ONCE: usize = 250;
/// A called token is told again after this time, until it comes: what it may miss is its turn.
const CALLED_MS: u32 = 5_000;
/// A token that neither waits nor is called is looked at again after this time, should a change have gone untold.
const SETTLED_MS: u32 = 30_000;
/// Tokens asked for one by one, at once.
const ASKED_AT_ONCE: usize = 16;

impl Store {
    /// Let a socket follow a place; where its token stands. One that is not found is not followed, nor an account
    /// without a place: `None`. One round trip, for an account's place two.
    pub async fn connect(&self, connect: &Connect) -> Result<Outcome<Option<Followed>>, StoreError> {
        let token = match &connect.place {
            Whose::Token(token) => *token,
            Whose::Account(account) => match self.token_of(&connect.event, account).await? {
                Some(token) => token,
                None => return Ok(Ok(None)),
            },
        };
        let id = ReservationId::of(connect.event.clone(), token);
        let address = connect.address.unwrap_or_else(|| Address::of(Ipv4Addr::UNSPECIFIED.into()));
        let keys = Keys::of(&connect.event).token(token).reservation(&id).address(address);
        let call = Call::new(&CONNECT, keys)
            .arg(self.now_ms())
            .arg(token.to_string())
            .arg(connect.connection.as_str())
            .arg(connect.language)
            .arg(u8::from(connect.address.is_some()))
            .arg(CONNECTIONS_AN_EVENT);
        let mut reply = self.run(call).await?;
        match reply.word() {
            "CONNECTED" => {
                let followed = followed(&mut reply)?;
                Ok(Ok(Some(followed).filter(|followed| followed.polled.standing.place != Place::NotFound)))
            }
            _ => reply.refusal().map(Err),
        }
    }

    /// Forget connections; how many of them followed a token.
    pub async fn disconnect(&self, event: &EventId, connections: &[ConnectionId]) -> Result<u64, StoreError> {
        let mut count = 0;
        for connections in connections.chunks(FORGOTTEN_AT_ONCE) {
            let names: Vec<&str> = connections.iter().map(ConnectionId::as_str).collect();
            count += self.run(Call::new(&DISCONNECT, Keys::of(event)).arg(names)).await?.count()?;
        }
        Ok(count)
    }

    /// One look at the sockets of an event that are due: one round trip, and one more for each token whose place the
    /// line does not tell. Each notice is given out once: what its receiver loses is lost, until the token's standing
    /// changes again.
    pub async fn notices(&self, event: &EventId) -> Result<Outcome<Notices>, StoreError> {
        let mut call = Call::new(&PUSH, Keys::of(event))
            .arg(self.now_ms())
            .arg(LOOKED_AT_ONCE)
            .arg(CALLED_MS)
            .arg(SETTLED_MS);
        for (rank, interval_ms) in line::INTERVALS {
            call = call.arg(rank).arg(interval_ms);
        }
        let mut reply = self.run(call).await?;
        if reply.word() != "PUSHES" {
            return reply.refusal().map(Err);
        }
        let more = reply.integer()? == 1;
        let following = reply.count()?;
        let view = reply.view()?;
        let mut looked = Vec::with_capacity(reply.left());
        while reply.left() > 0 {
            let mut notice = reply.array()?;
            let token: Token = notice.parsed()?;
            let listeners = listeners(&mut notice)?;
            let place = notice.optional_place()?;
            let refused = notice.optional_text()?;
            let ticket_count = notice.small()?;
            let followed = place.map(|place| Followed {
                polled: Polled { standing: Standing { place, view: view.clone() }, ticket_count },
                held_count: 0,
                hold_expires_at: None,
                reservation: None,
            });
            looked.push((token, Notice { listeners, refused, followed }));
        }
        let notices = stream::iter(looked)
            .map(async |(token, notice)| match notice.followed {
                Some(_) => Ok(notice),
                None => self.told(event, token, notice).await,
            })
            .buffered(ASKED_AT_ONCE)
            .try_collect()
            .await?;
        Ok(Ok(Notices { notices, more, following }))
    }

    /// A notice with the token's standing, where that is new.
    async fn told(&self, event: &EventId, token: Token, notice: Notice) -> Result<Notice, StoreError> {
        let id = ReservationId::of(event.clone(), token);
        let keys = Keys::of(event).token(token).reservation(&id);
        let mut reply = self.run(Call::new(&TELL, keys).arg(self.now_ms()).arg(token.to_string())).await?;
        if reply.word() != "TOLD" {
            return Ok(notice);
        }
        let listeners = listeners(&mut reply)?;
        Ok(Notice { listeners, followed: Some(followed(&mut reply)?), ..notice })
    }
}

/// `id,language id,language …`
fn listeners(reply: &mut Reply) -> Result<Vec<Listener>, StoreError> {
    let text = reply.text()?;
    let listener = |text: &str| {
        let (connection, language) = text.split_once(',')?;
        Some(Listener { connection: connection.parse().ok()?, language: language.to_owned() })
    };
    let listeners: Option<Vec<Listener>> = text.split_whitespace().map(listener).collect();
    listeners.ok_or_else(|| reply.malformed(&text))
}

/// Place, view, tickets, details: `stand` of `lib/sockets.lua`.
fn followed(reply: &mut Reply) -> Result<Followed, StoreError> {
    let standing = Standing { place: reply.array()?.place()?, view: reply.view()? };
    let polled = Polled { standing, ticket_count: reply.small()? };
    let mut details = reply.array()?;
    let held_count = details.small()?;
    let hold_expires_at = details.optional_integer()?.map(domain::Millis);
    let reservation = match details.optional_text()? {
        Some(status) => {
            Some(ReservationStatus::from_word(&status).ok_or_else(|| details.malformed(&status))?)
        }
        None => None,
    };
    Ok(Followed { polled, held_count, hold_expires_at, reservation })
}
