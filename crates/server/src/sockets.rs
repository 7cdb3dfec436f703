//! Open sockets of a system in one process. The socket function gets the events that API Gateway would send; what it
//! answers, and what the push function posts, goes out through each socket's own queue.

use std::collections::HashMap;
use std::convert::Infallible;
use std::net::IpAddr;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use domain::ConnectionId;
use futures::future::{BoxFuture, ready};
use futures::{FutureExt, SinkExt, StreamExt};
use gateway::socket::{SocketContext, SocketEvent, SocketEventType, SocketIdentity, SocketReply};
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{
    CONNECTION, HeaderMap, RETRY_AFTER, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_VERSION,
    UPGRADE,
};
use hyper::upgrade::Upgraded;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use outbox::{Departures, Gone, Posted, Push, Pushes, Sockets, pack_gone};
use tokio::sync::{Semaphore, mpsc, watch};
use tokio::time::{Instant, interval_at, timeout};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Error, Message};

use crate::listener::Functions;
use crate::queue::sqs_event;
use crate::stopped;

/// Where sockets are opened.
pub(crate) const PATH: &str = "/socket";
/// Sockets at once at most.
const SOCKETS: usize = 20_000;
/// Events answered at once: thousands that come or go in one moment must not stand before the ticks at Redis.
const EVENTS_AT_ONCE: usize = 32;
/// Texts that wait for one socket at most. Whose reader falls behind so far is closed; it comes back when it can.
const WAITING_TEXTS: usize = 16;
/// A text gets this long to go out before its socket counts as gone.
const WRITE_TIMEOUT: Duration = Duration::from_secs(5);
/// A socket that has said nothing between three pings, not even that it is there, counts as gone.
const PING_INTERVAL: Duration = Duration::from_secs(20);
const SILENT_PINGS: u32 = 2;
const PING: Message = Message::Ping(Bytes::new());
const FAREWELL_TIMEOUT: Duration = Duration::from_millis(500);
/// Looks whose pushes wait at most; past it the looks wait, and whom they would tell stays due.
const WAITING_LOOKS: usize = 64;
/// As API Gateway bounds a frame; the function itself takes less.
const FRAME_BYTES: usize = 32 * 1024;
/// Most sockets are silent and hear short texts.
const BUFFER_BYTES: usize = 4 * 1024;

type Stream = WebSocketStream<TokioIo<Upgraded>>;

/// All open sockets.
pub(crate) struct Hub {
    functions: Arc<Functions>,
    open: RwLock<HashMap<ConnectionId, mpsc::Sender<String>>>,
    places: Arc<Semaphore>,
    answering: Semaphore,
    stopping: watch::Receiver<bool>,
}

/// Who is at the other end.
struct Peer {
    connection: ConnectionId,
    ip: IpAddr,
}

impl Peer {
    /// An event about it as API Gateway sends it.
    fn event(&self, event_type: SocketEventType, headers: HeaderMap, body: Option<String>) -> SocketEvent {
        SocketEvent {
            request_context: SocketContext {
                event_type,
                connection_id: self.connection.clone(),
                identity: SocketIdentity { source_ip: Some(self.ip.to_string()) },
                authorizer: None,
            },
            headers,
            body,
            is_base64_encoded: false,
        }
    }
}

impl Hub {
    pub(crate) fn new(functions: Arc<Functions>, stopping: watch::Receiver<bool>) -> Self {
        let (places, answering) = (Arc::new(Semaphore::new(SOCKETS)), Semaphore::new(EVENTS_AT_ONCE));
        Self { functions, open: RwLock::default(), places, answering, stopping }
    }

    /// Answers a request for a socket; where it is granted, the socket lives in a task of its own from then on.
    pub(crate) async fn open(
        self: &Arc<Self>,
        mut request: Request<Incoming>,
        ip: IpAddr,
    ) -> Result<Response<Full<Bytes>>, Infallible> {
        let Some(accept) = accept_key(request.method(), request.headers()) else {
            return Ok(refused(StatusCode::UPGRADE_REQUIRED, (UPGRADE, "websocket")));
        };
        let Ok(place) = Arc::clone(&self.places).try_acquire_owned() else {
            return Ok(refused(StatusCode::SERVICE_UNAVAILABLE, (RETRY_AFTER, "5")));
        };
        let peer = Peer { connection: new_connection(), ip };
        let opening = peer.event(SocketEventType::Connect, request.headers().clone(), None);
        let answer = self.answer(opening).await;
        if answer.status_code != 200 {
            let status = StatusCode::from_u16(answer.status_code).unwrap_or(StatusCode::FORBIDDEN);
            return Ok(refused(status, (CONNECTION, "close")));
        }
        let (hub, upgrade) = (Arc::clone(self), hyper::upgrade::on(&mut request));
        tokio::spawn(async move {
            // Whoever asked and went away again has nothing to be told.
            if let Ok(Ok(upgraded)) = timeout(WRITE_TIMEOUT, upgrade).await {
                hub.serve(upgraded, peer).await;
            }
            drop(place);
        });
        let mut response = Response::new(Full::default());
        *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
        let headers = response.headers_mut();
        headers.insert(CONNECTION, hyper::header::HeaderValue::from_static("Upgrade"));
        headers.insert(UPGRADE, hyper::header::HeaderValue::from_static("websocket"));
        headers.insert(SEC_WEBSOCKET_ACCEPT, accept);
        Ok(response)
    }

    async fn serve(&self, upgraded: Upgraded, peer: Peer) {
        let config = WebSocketConfig::default()
            .read_buffer_size(BUFFER_BYTES)
            .write_buffer_size(0)
            .max_write_buffer_size(4 * FRAME_BYTES)
            .max_message_size(Some(FRAME_BYTES))
            .max_frame_size(Some(FRAME_BYTES));
        let stream = WebSocketStream::from_raw_socket(TokioIo::new(upgraded), Role::Server, Some(config));
        let (sender, texts) = mpsc::channel(WAITING_TEXTS);
        self.opened().insert(peer.connection.clone(), sender);
        let end = self.talk(stream.await, texts, &peer).await;
        tracing::debug!(connection = %peer.connection, ?end, "a socket ends");
        self.close(&peer.connection);
        // A system that stops leaves its Redis as it is: the first pushes after a restart tidy up.
        if end != End::Stopping {
            self.answer(peer.event(SocketEventType::Disconnect, HeaderMap::new(), None)).await;
        }
    }

    /// Until the socket ends.
    async fn talk(&self, mut stream: Stream, mut texts: mpsc::Receiver<String>, peer: &Peer) -> End {
        let mut stopping = self.stopping.clone();
        let mut pings = interval_at(Instant::now() + PING_INTERVAL, PING_INTERVAL);
        let mut silent_pings = 0;
        loop {
            let next = tokio::select! {
                text = texts.recv() => text.map_or(Next::End(End::Slow), |text| Next::Say(Message::text(text))),
                message = stream.next() => {
                    silent_pings = 0;
                    heard(message)
                }
                _ = pings.tick() => {
                    silent_pings += 1;
                    if silent_pings > SILENT_PINGS { Next::End(End::Silent) } else { Next::Say(PING) }
                }
                () = stopped(&mut stopping) => Next::End(End::Stopping),
            };
            let text = match next {
                Next::Say(message) => message,
                Next::Nothing => continue,
                Next::Answer(body) => {
                    let event = peer.event(SocketEventType::Message, HeaderMap::new(), Some(body));
                    match self.answer(event).await.body {
                        Some(body) => Message::text(body),
                        None => continue,
                    }
                }
                Next::End(end) => {
                    bid_farewell(&mut stream, end).await;
                    return end;
                }
            };
            match timeout(WRITE_TIMEOUT, stream.send(text)).await {
                Ok(Ok(())) => {}
                Ok(Err(_)) => return End::Closed,
                Err(_) => return End::Slow,
            }
        }
    }

    async fn answer(&self, event: SocketEvent) -> SocketReply {
        // Never closed: a permit always comes.
        let _permit = self.answering.acquire().await;
        socket::answer(self.functions.state(), &event).await
    }

    fn opened(&self) -> std::sync::RwLockWriteGuard<'_, HashMap<ConnectionId, mpsc::Sender<String>>> {
        // A poisoned lock holds a whole map all the same: nothing here leaves one half changed.
        self.open.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Its task ends when it sees that nobody can send to it any more.
    fn close(&self, connection: &ConnectionId) {
        self.opened().remove(connection);
    }

    /// Tells sockets what looks find, until the system stops.
    pub(crate) async fn deliver(self: Arc<Self>, mut looks: mpsc::Receiver<Vec<Push>>) {
        let mut stopping = self.stopping.clone();
        loop {
            let look = tokio::select! {
                look = looks.recv() => look,
                () = stopped(&mut stopping) => None,
            };
            // As the push function does with what its queue brings.
            let Some(pushes) = look else { return };
            push::deliver(&*self, &*self, pushes).await;
        }
    }
}

/// What a socket's task does next.
enum Next {
    Say(Message),
    /// Lets the socket function answer a message.
    Answer(String),
    Nothing,
    End(End),
}

/// What follows from what a socket said.
fn heard(message: Option<Result<Message, Error>>) -> Next {
    match message {
        Some(Ok(Message::Text(text))) => Next::Answer(text.as_str().to_owned()),
        Some(Ok(Message::Binary(bytes))) => Next::Answer(String::from_utf8_lossy(&bytes).into_owned()),
        Some(Ok(Message::Ping(_) | Message::Pong(_) | Message::Frame(_))) => Next::Nothing,
        Some(Err(Error::Capacity(_))) => Next::End(End::TooLarge),
        Some(Ok(Message::Close(_)) | Err(_)) | None => Next::End(End::Closed),
    }
}

/// Why a socket ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    /// The other side closed it, or broke the protocol.
    Closed,
    /// The other side sent more at once than is read.
    TooLarge,
    /// The other side does not say any more that it is there.
    Silent,
    /// The other side does not read fast enough.
    Slow,
    /// The system stops.
    Stopping,
}

/// Says why, to those who can still hear it; whoever does not read is not waited for.
async fn bid_farewell(stream: &mut Stream, end: End) {
    let code = match end {
        // The answer to a farewell is written already.
        End::Closed => return drop(timeout(FAREWELL_TIMEOUT, stream.flush()).await),
        End::Silent => return,
        End::TooLarge => CloseCode::Size,
        End::Slow => CloseCode::Policy,
        End::Stopping => CloseCode::Away,
    };
    let _ = timeout(FAREWELL_TIMEOUT, stream.close(Some(CloseFrame { code, reason: "".into() }))).await;
}

impl Sockets for Hub {
    fn post<'a>(&'a self, connection: &'a ConnectionId, body: &'a str) -> BoxFuture<'a, Posted> {
        let sender = self.open.read().unwrap_or_else(PoisonError::into_inner).get(connection).cloned();
        let posted = match sender.map(|sender| sender.try_send(body.to_owned())) {
            Some(Ok(())) => Posted::Sent,
            Some(Err(_)) => {
                self.close(connection);
                Posted::Gone
            }
            None => Posted::Gone,
        };
        ready(posted).boxed()
    }
}

impl Departures for Hub {
    fn depart(&self, gone: Vec<Gone>) -> BoxFuture<'_, ()> {
        async move {
            let event = socket::Event::Gone(sqs_event(pack_gone(&gone)));
            socket::handle(self.functions.state(), event).await;
        }
        .boxed()
    }
}

/// Takes what looks find.
pub(crate) struct LocalPushes(mpsc::Sender<Vec<Push>>);

impl LocalPushes {
    /// The queue, and its end that is delivered from.
    pub(crate) fn new() -> (Self, mpsc::Receiver<Vec<Push>>) {
        let (sender, receiver) = mpsc::channel(WAITING_LOOKS);
        (Self(sender), receiver)
    }
}

impl Pushes for LocalPushes {
    fn push(&self, pushes: Vec<Push>) -> BoxFuture<'_, ()> {
        // Fails only while the system stops.
        self.0.send(pushes).map(drop).boxed()
    }
}

/// The key that accepts a handshake; `None` where it is none.
fn accept_key(method: &Method, headers: &HeaderMap) -> Option<hyper::header::HeaderValue> {
    let has = |name, wanted: &str| {
        let values = headers.get_all(name).iter().filter_map(|value| value.to_str().ok());
        values.flat_map(|value| value.split(',')).any(|value| value.trim().eq_ignore_ascii_case(wanted))
    };
    let is_handshake = *method == Method::GET
        && has(CONNECTION, "upgrade")
        && has(UPGRADE, "websocket")
        && has(SEC_WEBSOCKET_VERSION, "13");
    let key = headers.get(SEC_WEBSOCKET_KEY).filter(|_| is_handshake)?;
    derive_accept_key(key.as_bytes()).parse().ok()
}

fn refused(
    status: StatusCode,
    (name, value): (hyper::header::HeaderName, &'static str),
) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::default());
    *response.status_mut() = status;
    response.headers_mut().insert(name, hyper::header::HeaderValue::from_static(value));
    response
}

/// A name that no socket had before, of this start or another.
fn new_connection() -> ConnectionId {
    let name = uuid::Uuid::new_v4().simple().to_string();
    #[allow(clippy::expect_used, reason = "hex digits are a connection's name")]
    name.parse().expect("hex digits")
}
