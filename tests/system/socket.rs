//! A browser's side of a socket.

use std::net::SocketAddr;
use std::time::Duration;

use futures::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_tungstenite::{WebSocketStream, client_async_with_config};

/// An answer, a push or an end comes within this time, or the test fails.
const PATIENCE: Duration = Duration::from_mins(1);

/// An open socket.
pub(crate) struct Socket(pub(crate) WebSocketStream<TcpStream>);

impl Socket {
    /// Opens a socket at `HOST:PORT`.
    pub(crate) async fn open(address: &str) -> Self {
        let stream = TcpStream::connect(address).await.expect("the server takes a connection");
        Self::over(stream, address).await
    }

    /// One that takes little at once, so that its sender soon notices that nobody reads.
    pub(crate) async fn narrow(address: &str) -> Self {
        let socket = TcpSocket::new_v4().expect("a socket");
        socket.set_recv_buffer_size(4_096).expect("a small buffer");
        let address_parsed: SocketAddr = address.parse().expect("an address");
        let stream = socket.connect(address_parsed).await.expect("the server takes a connection");
        Self::over(stream, address).await
    }

    async fn over(stream: TcpStream, address: &str) -> Self {
        let config = WebSocketConfig::default().read_buffer_size(1_024).write_buffer_size(0);
        let opening = client_async_with_config(format!("ws://{address}/socket"), stream, Some(config));
        let (stream, response) = opening.await.expect("a handshake");
        assert_eq!(response.status(), 101);
        Self(stream)
    }

    pub(crate) async fn say(&mut self, message: impl Into<Message>) {
        self.0.send(message.into()).await.expect("the server reads");
    }

    /// The next text; `None` where the socket has ended.
    pub(crate) async fn next(&mut self) -> Option<Value> {
        loop {
            let message = timeout(PATIENCE, self.0.next()).await.expect("something within a minute");
            match message {
                Some(Ok(Message::Text(text))) => return Some(serde_json::from_str(&text).expect("JSON")),
                Some(Ok(Message::Ping(_) | Message::Pong(_))) => {}
                Some(Ok(Message::Close(_)) | Err(_)) | None => return None,
                Some(Ok(other)) => panic!("{other:?}"),
            }
        }
    }

    /// How the socket ends, whatever it is told before: the code of a farewell, 1006 without one.
    pub(crate) async fn ends(&mut self) -> u16 {
        loop {
            match timeout(PATIENCE, self.0.next()).await.expect("an end within a minute") {
                Some(Ok(Message::Close(frame))) => return frame.map_or(1005, |frame| frame.code.into()),
                Some(Ok(_)) => {}
                Some(Err(Error::ConnectionClosed | Error::Protocol(_) | Error::Io(_))) | None => return 1006,
                Some(Err(error)) => panic!("{error}"),
            }
        }
    }

    /// Follows a token; what it is answered.
    pub(crate) async fn follow(&mut self, token: &str) -> Value {
        self.say(json!({ "type": "connect", "token": token }).to_string()).await;
        self.next().await.expect("an answer")
    }

    /// What it is told first that has this status.
    pub(crate) async fn until(&mut self, status: &str) -> Value {
        loop {
            let told = self.next().await.expect("the socket stays open");
            if told["status"] == status {
                return told;
            }
        }
    }
}
