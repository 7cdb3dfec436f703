//! One listener for all functions: a request becomes an event, the route's function answers it.

use std::convert::Infallible;
use std::net::IpAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use book::BookState;
use bootstrap::State;
use gateway::routes;
use gateway::{Body, Request, Response};
use http_body_util::{BodyExt, Full, Limited};
use hyper::Method;
use hyper::body::{Bytes, Incoming};
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use keys::KeysState;
use metrics::prometheus;
use pay::PayState;
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, watch};

use crate::lanes::{self, Lanes};
use crate::page::Page;
use crate::sockets::{self, Hub};
use crate::{events, stopped};

/// Connections at once at most; more wait to be accepted.
const CONNECTIONS: u32 = 20_000;
/// A caller gets this long to send its headers, also on a connection kept open.
const HEADER_TIMEOUT: Duration = Duration::from_secs(75);
/// A caller gets this long to send its body.
const BODY_TIMEOUT: Duration = Duration::from_secs(10);
/// Far more than any body we take: what is longer is cut, and refused by its function.
const BODY_BYTES: usize = 64 * 1024;

/// Where Prometheus asks. No route of the product: API Gateway does not lead here.
const METRICS_PATH: &str = "/metrics";

/// What the functions are built from.
pub(crate) struct Functions {
    pub(crate) book: BookState,
    pub(crate) keys: KeysState,
    pub(crate) page: Page,
    pub(crate) lanes: Lanes,
}

impl Functions {
    pub(crate) fn state(&self) -> &State {
        &self.book.state
    }

    fn pay(&self) -> PayState<'_> {
        PayState { store: &self.state().store, gate: &self.state().gate, outbox: self.book.outbox.as_ref() }
    }

    /// The function's answer, where there is room for the request.
    async fn answer(&self, request: Request) -> Response<Body> {
        match self.lanes.enter(&request).await {
            Some(_until_answered) => self.answer_of_function(request).await,
            None => lanes::refuse(&self.state().gate, &request).await,
        }
    }

    /// The answer of the route's function; a path without one is poll's matter, as `$default` is when deployed.
    async fn answer_of_function(&self, request: Request) -> Response<Body> {
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
    hub: Arc<Hub>,
    mut stopping: watch::Receiver<bool>,
) {
    let connections = Arc::new(Semaphore::new(CONNECTIONS as usize));
    loop {
        // The semaphore is never closed.
        let Ok(permit) = Arc::clone(&connections).acquire_owned().await else { return };
        let accepted = tokio::select! {
            accepted = socket.accept() => accepted,
            () = stopped(&mut stopping) => break,
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
        let (functions, hub) = (Arc::clone(&functions), Arc::clone(&hub));
        let service = service_fn(move |request| {
            let (functions, hub) = (Arc::clone(&functions), Arc::clone(&hub));
            async move {
                match request.uri().path() {
                    sockets::PATH => hub.open(request, peer.ip()).await,
                    METRICS_PATH if request.method() == Method::GET => Ok(measured()),
                    _ => serve(functions, request, peer.ip()).await,
                }
            }
        });
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEADER_TIMEOUT)
            .serve_connection(TokioIo::new(stream), service)
            .with_upgrades();
        let mut stopping = stopping.clone();
        tokio::spawn(async move {
            let mut connection = pin!(connection);
            // A caller that goes away is no matter of ours.
            tokio::select! {
                _ = connection.as_mut() => {}
                () = stopped(&mut stopping) => {
                    connection.as_mut().graceful_shutdown();
                    let _ = connection.await;
                }
            }
            drop(permit);
        });
    }
    drop(socket);
    // All permits are back once the last request has ended.
    let _ = connections.acquire_many(CONNECTIONS).await;
}

/// What was counted since the system started.
fn measured() -> hyper::Response<Full<Bytes>> {
    let text = prometheus::text(metrics::TABLE);
    let mut answer = hyper::Response::new(Full::new(Bytes::from(text)));
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(prometheus::CONTENT_TYPE));
    answer
}

async fn serve(
    functions: Arc<Functions>,
    request: hyper::Request<Incoming>,
    peer: IpAddr,
) -> Result<hyper::Response<Full<Bytes>>, Infallible> {
    let (parts, body) = request.into_parts();
    if let Some(answer) = functions.page.answer(&parts).await {
        return Ok(answer);
    }
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
