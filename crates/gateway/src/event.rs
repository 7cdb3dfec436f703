//! From the event as API Gateway sends it to a request, and back.
//!
//! The library's own event has everything AWS ever sends, and its conversion panics on what a caller can send: a
//! body that is not the base64 it should be, a query that is no URI, a strange Host header. This one reads what
//! is needed, in half of the time, and remembers each flaw, so that it becomes a 400 and not a bare 500.

use std::fmt;
use std::future::Future;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Uri};
use lambda_http::aws_lambda_events::apigw::{ApiGatewayV2httpRequestContext, ApiGatewayV2httpResponse};
use lambda_http::lambda_runtime::{self, LambdaEvent};
use lambda_http::request::RequestContext;
use lambda_http::{Body, Request, RequestExt, Response, service_fn};
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};

use crate::body::MAX_BODY_BYTES;

/// API Gateway itself takes 10 kB of request line and headers.
const MAX_TARGET_BYTES: usize = 10_240;

/// What the type of URIs refuses in a path or a query, and `#`, which would end both.
const NOT_IN_A_URI: &AsciiSet = &CONTROLS.add(b' ').add(b'"').add(b'#').add(b'<').add(b'>');

/// A request as an HTTP API sends it, payload format 2.0: what is read of it.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HttpEvent {
    /// The path, with the stage before it unless that is `$default`.
    #[serde(default)]
    pub raw_path: String,
    /// The query as sent, without `?`.
    #[serde(default)]
    pub raw_query_string: String,
    /// One value a name: several come joined by commas.
    #[serde(default, deserialize_with = "headers")]
    pub headers: HeaderMap,
    /// What API Gateway says about the request.
    pub request_context: HttpEventContext,
    /// The body, where there is one.
    #[serde(default)]
    pub body: Option<String>,
    /// Whether the body is base64.
    #[serde(default)]
    pub is_base64_encoded: bool,
}

/// What API Gateway says about a request.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HttpEventContext {
    /// API Gateway's id of the request.
    #[serde(default)]
    pub request_id: Option<String>,
    /// The domain that the request came to: API Gateway's own or a custom one.
    #[serde(default)]
    pub domain_name: Option<String>,
    /// `$default` or what stands before every path.
    #[serde(default)]
    pub stage: Option<String>,
    /// The request's line and sender.
    pub http: HttpEventLine,
    /// What the route's authorizer proved, where it has one.
    #[serde(default)]
    pub authorizer: Option<HttpEventAuthorizer>,
}

/// What an authorizer of API Gateway proved. Only its JWT authorizer tells an account.
#[derive(Debug, Clone, Default, Deserialize)]
pub struct HttpEventAuthorizer {
    /// The checked token.
    #[serde(default)]
    pub jwt: Option<HttpEventJwt>,
}

/// A token that API Gateway has checked.
#[derive(Debug, Clone, Default, Deserialize)]
pub struct HttpEventJwt {
    /// What it says.
    #[serde(default)]
    pub claims: HttpEventClaims,
}

/// What such a token says.
#[derive(Debug, Clone, Default, Deserialize)]
pub struct HttpEventClaims {
    /// Who signed in.
    #[serde(default)]
    pub sub: Option<String>,
}

/// Who signed in by API Gateway's JWT authorizer, kept in the request's extensions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SignedIn(pub(crate) String);

/// A request's line and sender.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HttpEventLine {
    /// Upper case.
    pub method: String,
    /// The address that connected to API Gateway.
    #[serde(default)]
    pub source_ip: Option<String>,
}

/// What was wrong with an event, kept in the request's extensions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flaw {
    /// The body is not the base64 it is said to be.
    Base64,
    /// The body is longer than any we take.
    Size,
    /// The path and query are longer than any we take.
    Target,
}

/// The request an event carries. Never panics, whatever the caller sent.
pub fn accept(event: HttpEvent) -> Request {
    let HttpEvent { raw_path, raw_query_string, headers, request_context, body, is_base64_encoded } = event;
    let uri = uri_of(&raw_path, &raw_query_string);
    let (body, body_flaw) = body_of(body, is_base64_encoded);
    let flaw = if uri.is_none() { Some(Flaw::Target) } else { body_flaw };

    let mut request = Request::new(body);
    *request.uri_mut() = uri.unwrap_or_default();
    *request.headers_mut() = headers;
    // What is no method at all has no route either.
    *request.method_mut() =
        Method::from_bytes(request_context.http.method.as_bytes()).unwrap_or(Method::TRACE);
    if let Some(flaw) = flaw {
        request.extensions_mut().insert(flaw);
    }
    // In the library's own words, so that its extension methods read this request as any other.
    let mut context = ApiGatewayV2httpRequestContext::default();
    context.request_id = request_context.request_id;
    context.domain_name = request_context.domain_name;
    context.stage = request_context.stage;
    context.http.source_ip = request_context.http.source_ip;
    request.extensions_mut().insert(RequestContext::ApiGatewayV2(context));
    if let Some(subject) = request_context.authorizer.and_then(|proved| proved.jwt?.claims.sub) {
        request.extensions_mut().insert(SignedIn(subject));
    }
    request.with_raw_http_path(raw_path)
}

fn uri_of(path: &str, query: &str) -> Option<Uri> {
    if path.len() + query.len() > MAX_TARGET_BYTES {
        return None;
    }
    let target = if query.is_empty() { path.to_owned() } else { format!("{path}?{query}") };
    let parsed = Uri::try_from(&target).or_else(|_| {
        let encoded: String = utf8_percent_encode(&target, NOT_IN_A_URI).collect();
        Uri::try_from(encoded)
    });
    parsed.ok()
}

fn body_of(text: Option<String>, is_base64: bool) -> (Body, Option<Flaw>) {
    let Some(text) = text else { return (Body::Empty, None) };
    if !is_base64 {
        return (Body::Text(text), None);
    }
    if text.len() > MAX_BODY_BYTES.div_ceil(3) * 4 {
        return (Body::Empty, Some(Flaw::Size));
    }
    match STANDARD.decode(text) {
        Ok(bytes) => (Body::Binary(bytes), None),
        Err(_) => (Body::Empty, Some(Flaw::Base64)),
    }
}

/// Headers that are none by the standard are left out: nothing of ours reads them.
pub(crate) fn headers<'de, D: Deserializer<'de>>(deserializer: D) -> Result<HeaderMap, D::Error> {
    struct Headers;

    impl<'de> Visitor<'de> for Headers {
        type Value = HeaderMap;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object of texts or null")
        }

        fn visit_unit<E>(self) -> Result<HeaderMap, E> {
            Ok(HeaderMap::new())
        }

        fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<HeaderMap, A::Error> {
            let mut headers = HeaderMap::with_capacity(24);
            while let Some((name, value)) = entries.next_entry::<Text<'de>, Text<'de>>()? {
                let name = HeaderName::from_bytes(name.0.as_bytes());
                if let (Ok(name), Ok(value)) = (name, HeaderValue::from_bytes(value.0.as_bytes())) {
                    headers.insert(name, value);
                }
            }
            Ok(headers)
        }
    }
    deserializer.deserialize_any(Headers)
}

/// A text that is borrowed where it can be.
#[derive(Deserialize)]
#[serde(transparent)]
struct Text<'a>(#[serde(borrow)] std::borrow::Cow<'a, str>);

/// Serves a Lambda until it is stopped: each event through [`accept`] to `handler`, whose answer goes back. What was
/// counted meanwhile is told before. Where Lambda lets an instance have several requests at once
/// (`AWS_LAMBDA_MAX_CONCURRENCY`), they share its state.
pub async fn run<S, H, F>(state: S, handler: H) -> Result<(), lambda_http::Error>
where
    S: Sync + 'static,
    H: Fn(&'static S, Request) -> F + Clone + Send + 'static,
    F: Future<Output = Response<Body>> + Send + 'static,
{
    // It lives as long as the process, which ends without a word.
    let state: &'static S = Box::leak(Box::new(state));
    let serve = move |event: LambdaEvent<HttpEvent>| {
        // Boxed, or the futures of handler and runtime in one are deeper than compilers go.
        let answer = Box::pin(handler(state, accept(event.payload)));
        async { Ok::<_, lambda_http::Error>(into_event(metrics::flushed(answer).await)) }
    };
    lambda_runtime::run_concurrent(service_fn(serve)).await
}

/// The answer as API Gateway takes it.
pub fn into_event(response: Response<Body>) -> ApiGatewayV2httpResponse {
    let (parts, body) = response.into_parts();
    let mut event = ApiGatewayV2httpResponse::default();
    event.status_code = i64::from(parts.status.as_u16());
    event.headers = parts.headers;
    event.is_base64_encoded = matches!(body, Body::Binary(_));
    event.body = (!matches!(body, Body::Empty)).then_some(body);
    event
}
