//! One listener for all functions: a request becomes an event, the route's function answers it.

use std::convert::Infallible;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use book::BookState;
use bootstrap::State;
use gateway::routes;
use gateway::{Body, Request, Response};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use keys::KeysState;
use pay::PayState;
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, watch};

use crate::events;

/// Connections at once at most; more wait to be accepted.
const CONNECTIONS: usize = 20_000;
/// A caller gets this long to send its headers, also on a connection kept open.
const HEADER_TIMEOUT: Duration = Duration::from_secs(75);
/// A caller gets this long to send its body.
const BODY_TIMEOUT: Duration = Duration::from_secs(10);
/// Far more than any body we take: what is longer is cut, and refused by its function.
const BODY_BYTES: usize = 64 * 1024;

/// What the functions are built from.
pub(crate) struct Functions {
    pub(crate) book: BookState,
    pub(crate) keys: KeysState,
}

impl Functions {
    fn state(&self) -> &State {
        &self.book.state
    }

    fn pay(&self) -> PayState<'_> {
        PayState { store: &self.state().store, gate: &self.state().gate, outbox: self.book.outbox.as_ref() }
    }

    /// The answer of the route's function; a path without one is poll's matter, as `$default` is when deployed.
    async fn answer(&self, request: Request) -> Response<Body> {
        let function = routes::of(&request).map_or("poll", |(route, _)| route.function);
        match function {
            "join" => join::handle(self.state(), request).await,
            "leave" => leave::handle(self.state(), request).await,
            "seats" => seats::handle(self.state(), request).await,
            "hold-seat" => hold_seat::handle(self.state(), request).await,
            "book" => book::handle(&self.book, request).await,
            "pay" => pay::handle(self.pay(), request).await,
            "keys" => keys::handle(&self.keys, request).await,
            _ => poll::handle(self.state(), request).await,
        }
    }
}

/// Serve until the system stops, then let requests under way end.
pub(crate) async fn listen(
    socket: TcpListener,
    functions: Arc<Functions>,
    mut stopping: watch::Receiver<bool>,
) {
    let graceful = GracefulShutdown::new();
    let connections = Arc::new(Semaphore::new(CONNECTIONS));
    loop {
        // The semaphore is never closed.
        let Ok(permit) = Arc::clone(&connections).acquire_owned().await else { return };
        let accepted = tokio::select! {
            accepted = socket.accept() => accepted,
            _ = stopping.wait_for(|stop| *stop) => break,
        };
        let (stream, peer) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection");
                tokio::time::sleep(Duration::from_millis(50)).await;
                continue;
            }
        };
        // Answers are small and go out whole.
        let _ = stream.set_nodelay(true);
        let functions = Arc::clone(&functions);
        let service = service_fn(move |request| serve(Arc::clone(&functions), request, peer.ip()));
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEADER_TIMEOUT)
            .serve_connection(TokioIo::new(stream), service);
        let connection = graceful.watch(connection);
        tokio::spawn(async move {
            // A caller that goes away is no matter of ours.
            let _ = connection.await;
            drop(permit);
        });
    }
    drop(socket);
    graceful.shutdown().await;
}

async fn serve(
    functions: Arc<Functions>,
    request: hyper::Request<Incoming>,
    peer: IpAddr,
) -> Result<hyper::Response<Full<Bytes>>, Infallible> {
    let (parts, body) = request.into_parts();
    let body = match tokio::time::timeout(BODY_TIMEOUT, Limited::new(body, BODY_BYTES).collect()).await {
        Ok(Ok(body)) => body.to_bytes(),
        // Too long, or broken off: so long that its function refuses it.
        _ => Bytes::from(vec![b' '; BODY_BYTES]),
    };
    let event = events::event(parts, &body, peer);
    let (parts, body) = functions.answer(gateway::accept(event)).await.into_parts();
    let body = match body {
        Body::Text(text) => Bytes::from(text),
        Body::Binary(bytes) => Bytes::from(bytes),
        _ => Bytes::new(),
    };
    Ok(hyper::Response::from_parts(parts, Full::new(body)))
}
