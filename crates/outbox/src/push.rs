//! What open sockets are told, on its way to them, and the news of those that are gone.
//!
//! [`Pushes`] takes what there is to tell without ever waiting for a socket, [`Sockets`] is one way to one socket,
//! [`Departures`] takes the names of sockets that were found closed. Deployed, the first and the last are queues
//! ([`SqsQueue`](crate::SqsQueue)) and the second is API Gateway ([`ApiSockets`](crate::ApiSockets)).
//!
//! Pushes perish: what is lost is not sent again, since the next one tells more.

use domain::{ConnectionId, EventId};
use futures::future::BoxFuture;
use serde::{Deserialize, Serialize};

use crate::pack::MAX_BODY_BYTES;

/// Sockets of one message, at most.
pub const PUSHES_A_MESSAGE: usize = 100;

/// What one socket is told.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Push {
    /// The event in which the socket follows a place.
    pub event: EventId,
    /// The socket.
    pub connection: ConnectionId,
    /// The texts, in order.
    pub bodies: Vec<String>,
}

/// A socket that is no more.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gone {
    /// The event in which it followed a place.
    pub event: EventId,
    /// The socket.
    pub connection: ConnectionId,
}

/// Takes pushes.
pub trait Pushes: Send + Sync {
    /// Hands pushes over. What cannot be taken is logged and lost.
    fn push(&self, pushes: Vec<Push>) -> BoxFuture<'_, ()>;
}

/// Takes the names of sockets that are gone.
pub trait Departures: Send + Sync {
    /// Hands names over. What cannot be taken is logged; the next push to such a socket finds it gone again.
    fn depart(&self, gone: Vec<Gone>) -> BoxFuture<'_, ()>;
}

/// What came of a text for a socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Posted {
    /// It is on its way.
    Sent,
    /// The socket is no more.
    Gone,
    /// It could not be sent; the socket may be there. Logged by whoever says so.
    Failed,
}

/// Sends texts to sockets.
pub trait Sockets: Send + Sync {
    /// Sends a text to a socket.
    fn post<'a>(&'a self, connection: &'a ConnectionId, body: &'a str) -> BoxFuture<'a, Posted>;
}

#[derive(Serialize, Deserialize)]
struct PushBody {
    pushes: Vec<Push>,
}

#[derive(Serialize, Deserialize)]
struct GoneBody {
    gone: Vec<Gone>,
}

/// Pushes as bodies of messages, each `{"pushes":[…]}`.
pub fn pack_pushes(pushes: Vec<Push>) -> Vec<String> {
    let mut packed = Vec::new();
    let mut taken = Vec::new();
    let mut bytes = 0;
    for push in pushes {
        // Quotes within are escaped, and a connection's name comes on top.
        let size = 300 + push.bodies.iter().map(|body| 2 * body.len()).sum::<usize>();
        if taken.len() == PUSHES_A_MESSAGE || (bytes + size > MAX_BODY_BYTES && !taken.is_empty()) {
            packed.extend(written(&PushBody { pushes: std::mem::take(&mut taken) }));
            bytes = 0;
        }
        bytes += size;
        taken.push(push);
    }
    if !taken.is_empty() {
        packed.extend(written(&PushBody { pushes: taken }));
    }
    packed
}

/// Names of gone sockets as bodies of messages, each `{"gone":[…]}`.
pub fn pack_gone(gone: &[Gone]) -> Vec<String> {
    gone.chunks(PUSHES_A_MESSAGE).filter_map(|gone| written(&GoneBody { gone: gone.to_vec() })).collect()
}

fn written(body: &impl Serialize) -> Option<String> {
    match serde_json::to_string(body) {
        Ok(text) => Some(text),
        Err(error) => {
            tracing::error!(%error, "a push cannot be written as JSON");
            None
        }
    }
}

/// The pushes of a message's body.
pub fn unpack_pushes(body: &str) -> serde_json::Result<Vec<Push>> {
    serde_json::from_str::<PushBody>(body).map(|body| body.pushes)
}

/// The gone sockets of a message's body.
pub fn unpack_gone(body: &str) -> serde_json::Result<Vec<Gone>> {
    serde_json::from_str::<GoneBody>(body).map(|body| body.gone)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn push(bytes: usize) -> Push {
        let (event, connection) = ("a".parse().unwrap(), "L0SM9cOFvHcCIhw=".parse().unwrap());
        Push { event, connection, bodies: vec!["\"".repeat(bytes)] }
    }

    #[test]
    fn pushes_are_packed_once_in_order_and_within_bounds() {
        for (count, bytes) in [(0, 1), (1, 1), (100, 10), (101, 10), (250, 300), (30, 20_000), (3, 200_000)] {
            let pushes: Vec<Push> = (0..count).map(|at| push(bytes + at)).collect();
            let packed = pack_pushes(pushes.clone());
            for body in &packed {
                let within = unpack_pushes(body).unwrap().len();
                assert!((1..=PUSHES_A_MESSAGE).contains(&within));
                assert!(body.len() <= MAX_BODY_BYTES || within == 1, "{} bytes", body.len());
            }
            let unpacked: Vec<Push> = packed.iter().flat_map(|body| unpack_pushes(body).unwrap()).collect();
            assert_eq!(unpacked, pushes);
        }
    }

    #[test]
    fn gone_sockets_are_packed_once() {
        let gone = |_| Gone { event: "a".parse().unwrap(), connection: "x=".parse().unwrap() };
        let gone: Vec<Gone> = (0..250).map(gone).collect();
        let packed = pack_gone(&gone);
        assert_eq!(packed.len(), 3);
        let unpacked: Vec<Gone> = packed.iter().flat_map(|body| unpack_gone(body).unwrap()).collect();
        assert_eq!(unpacked, gone);
        assert!(pack_gone(&[]).is_empty());
    }
}
