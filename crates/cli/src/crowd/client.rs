//! Calls as the page makes them: kept-open connections, a timeout, the envelope, what a failure asks for.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use fastrand::Rng;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Bytes;
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, RETRY_AFTER};
use hyper::{Method, Request, Uri};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout};

use super::tally::{Call, Tally};

/// The page gives up on an answer then.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);
/// No answer of ours is as long.
const ANSWER_BYTES: usize = 4 << 20;
const FIRST_WAIT_MS: u64 = 1_000;
const LONGEST_WAIT_MS: u64 = 30_000;
/// A told wait may be no longer.
const LONGEST_TOLD_SECONDS: f64 = 3_600.0;

/// Why a call got no success.
#[derive(Debug, Clone)]
pub(crate) struct Failure {
    /// The server's, or `OFFLINE`, `TIMEOUT` or `BACK_OFF` where it did not say one.
    pub(crate) code: String,
    retry_after: Option<Duration>,
    pub(crate) opens_at: Option<i64>,
}

impl Failure {
    fn of(code: &str) -> Self {
        Self { code: code.to_owned(), retry_after: None, opens_at: None }
    }

    /// Whether the same call may succeed later.
    pub(crate) fn is_passing(&self) -> bool {
        let passing = ["OFFLINE", "TIMEOUT", "BACK_OFF", "RATE_LIMIT", "UNAVAILABLE", "INTERNAL_ERROR"];
        passing.contains(&self.code.as_str())
    }

    /// How long to wait after the n-th failure in a row, from 1: as told, else doubling; never all at once.
    pub(crate) fn wait(&self, failures: u32, random: &mut Rng) -> Duration {
        if let Some(told) = self.retry_after {
            told + told.div_f64(5.0).max(Duration::from_millis(500)).mul_f64(random.f64())
        } else {
            let doubled = FIRST_WAIT_MS << failures.saturating_sub(1).min(10);
            Duration::from_millis(doubled.min(LONGEST_WAIT_MS)).mul_f64(0.5 + random.f64() / 2.0)
        }
    }
}

/// What proves who calls: the access token, else the token itself.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Proof<'a> {
    None,
    Bearer(&'a str),
}

/// One call.
pub(crate) struct Asked<'a> {
    pub(crate) call: Call,
    /// When it was to be made: what a slow system makes it wait since then is part of its latency.
    pub(crate) due: Instant,
    /// Path and query, the event left out.
    pub(crate) target: String,
    /// Fields of the body, the event left out.
    pub(crate) body: Option<serde_json::Value>,
    pub(crate) proof: Proof<'a>,
    pub(crate) idempotency_key: Option<&'a str>,
}

impl Asked<'_> {
    pub(crate) fn new(call: Call, due: Instant, target: String) -> Self {
        Self { call, due, target, body: None, proof: Proof::None, idempotency_key: None }
    }

    pub(crate) fn with(self, body: serde_json::Value) -> Self {
        Self { body: Some(body), ..self }
    }
}

#[derive(Deserialize)]
#[serde(bound(deserialize = "T: Deserialize<'de>"))]
struct Envelope<T> {
    success: bool,
    data: Option<T>,
    error: Option<Told>,
}

#[derive(Deserialize)]
struct Told {
    code: String,
    #[serde(default)]
    details: Option<Details>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Details {
    opens_at: Option<i64>,
}

type Http = legacy::Client<HttpsConnector<HttpConnector>, Full<Bytes>>;

/// What all people share: the connections.
pub(crate) struct Client {
    http: Http,
    base: String,
    event: Option<String>,
    connections: Semaphore,
    tally: Arc<Tally>,
}

impl Client {
    pub(crate) fn new(
        url: &str,
        event: Option<String>,
        connections: u32,
        tally: Arc<Tally>,
    ) -> anyhow::Result<Self> {
        let base = url.trim_end_matches('/').to_owned();
        let uri: Uri = base.parse().with_context(|| format!("{url} is no address"))?;
        anyhow::ensure!(
            uri.host().is_some() && matches!(uri.scheme_str(), Some("http" | "https")),
            "{url} is no address: it must begin with http:// or https://"
        );
        let connector = HttpsConnectorBuilder::new().with_native_roots();
        let connector = connector.context("cannot read the system's certificates")?;
        let mut tcp = HttpConnector::new();
        tcp.set_nodelay(true);
        tcp.enforce_http(false);
        let connector = connector.https_or_http().enable_http1().wrap_connector(tcp);
        let connections = connections as usize;
        let http = legacy::Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(Duration::from_mins(1))
            .pool_max_idle_per_host(connections)
            .build(connector);
        Ok(Self { http, base, event, connections: Semaphore::new(connections), tally })
    }

    /// The answer's data, or why there is none. Both are counted.
    pub(crate) async fn ask<T: DeserializeOwned>(&self, asked: Asked<'_>) -> Result<T, Failure> {
        let (call, due) = (asked.call, asked.due);
        let answer = self.send(asked).await;
        let code = answer.as_ref().map_or_else(|failure| failure.code.as_str(), |_| "OK");
        self.tally.answered(call, code, due);
        answer
    }

    async fn send<T: DeserializeOwned>(&self, asked: Asked<'_>) -> Result<T, Failure> {
        // The semaphore is never closed.
        let _permit = self.connections.acquire().await.map_err(|_| Failure::of("OFFLINE"))?;
        let request = self.request(asked).map_err(|_| Failure::of("OFFLINE"))?;
        let answer = async {
            let (parts, body) = self.http.request(request).await.map_err(|_| ())?.into_parts();
            let body = Limited::new(body, ANSWER_BYTES).collect().await.map_err(|_| ())?;
            Ok::<_, ()>((parts, body.to_bytes()))
        };
        let (parts, body) = match timeout(ANSWER_TIMEOUT, answer).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(())) => return Err(Failure::of("OFFLINE")),
            Err(_) => return Err(Failure::of("TIMEOUT")),
        };
        let told = parts.headers.get(RETRY_AFTER).and_then(|value| value.to_str().ok()?.parse::<f64>().ok());
        let told = told.filter(|seconds| (0.0..=LONGEST_TOLD_SECONDS).contains(seconds));
        let retry_after = told.map(Duration::from_secs_f64);
        let Ok(envelope) = serde_json::from_slice::<Envelope<T>>(&body) else {
            return Err(Failure { retry_after, ..Failure::of("BACK_OFF") });
        };
        match (envelope.success && parts.status.is_success(), envelope.data, envelope.error) {
            (true, Some(data), _) => Ok(data),
            (_, _, Some(Told { code, details })) => {
                let opens_at = details.and_then(|details| details.opens_at);
                Err(Failure { code, retry_after, opens_at })
            }
            _ => Err(Failure { retry_after, ..Failure::of("BACK_OFF") }),
        }
    }

    fn request(&self, asked: Asked<'_>) -> anyhow::Result<Request<Full<Bytes>>> {
        let Asked { call, mut target, body, proof, idempotency_key, .. } = asked;
        let mut request = Request::builder().method(method(call));
        if let (Some(event), None) = (&self.event, &body) {
            target.push(if target.contains('?') { '&' } else { '?' });
            target.extend(["eventId=", event]);
        }
        if let Proof::Bearer(token) = proof {
            request = request.header(AUTHORIZATION, format!("Bearer {token}"));
        }
        if let Some(key) = idempotency_key {
            request = request.header("idempotency-key", key);
        }
        let mut bytes = Bytes::new();
        if let Some(mut body) = body {
            if let (Some(event), Some(fields)) = (&self.event, body.as_object_mut()) {
                fields.insert("eventId".to_owned(), event.as_str().into());
            }
            request = request.header(CONTENT_TYPE, "application/json");
            bytes = serde_json::to_vec(&body)?.into();
        }
        Ok(request.uri(format!("{}{target}", self.base)).body(Full::new(bytes))?)
    }
}

fn method(call: Call) -> Method {
    match call {
        Call::Join | Call::Rejoin | Call::Select | Call::Book => Method::POST,
        Call::Leave => Method::DELETE,
        Call::Poll | Call::Progress | Call::Search | Call::Seats | Call::Read => Method::GET,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_are_as_told_or_double_and_are_never_all_the_same() {
        let random = &mut Rng::with_seed(1);
        let told = Failure { retry_after: Some(Duration::from_secs(2)), ..Failure::of("RATE_LIMIT") };
        let lost = Failure::of("OFFLINE");
        for _ in 0..100 {
            let wait = told.wait(1, random);
            assert!((2.0..=2.5).contains(&wait.as_secs_f64()), "{wait:?}");
            for (failures, most) in [(1, 1.0), (2, 2.0), (5, 16.0), (99, 30.0)] {
                let wait = lost.wait(failures, random).as_secs_f64();
                assert!((most / 2.0..=most).contains(&wait), "{wait} after {failures}");
            }
        }
        assert!(told.is_passing() && !Failure::of("SOLD_OUT").is_passing());
    }

    #[test]
    fn an_address_must_be_one() {
        let client = |url: &str| Client::new(url, None, 1, Arc::new(Tally::since(Instant::now()).unwrap()));
        assert!(client("http://127.0.0.1:3000/").is_ok_and(|client| client.base == "http://127.0.0.1:3000"));
        for url in ["127.0.0.1:3000", "ftp://x", "", "http://"] {
            assert!(client(url).is_err(), "{url}");
        }
    }
}
