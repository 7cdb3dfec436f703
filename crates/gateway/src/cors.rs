//! Which pages may read an answer, and the answer to the question before it.

use http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ORIGIN, VARY,
};
use http::{HeaderMap, HeaderValue};
use lambda_http::{Body, Request, Response};

use crate::request::Gate;
use crate::response;

/// Adds what lets the caller's page read the answer; `false` where its origin is not one of ours.
pub(crate) fn allow(gate: &Gate, request: &Request, headers: &mut HeaderMap) -> bool {
    if gate.cors_origins.is_empty() {
        return false;
    }
    let is_open = gate.cors_origins.iter().any(|origin| origin == "*");
    if !is_open {
        // Caches must not hand one origin's answer to another, also where this one gets no permission.
        headers.insert(VARY, HeaderValue::from_static("origin"));
    }
    let Some(origin) = request.headers().get(ORIGIN) else { return false };
    let allowed = if is_open {
        HeaderValue::from_static("*")
    } else if gate.cors_origins.iter().any(|known| known.as_bytes() == origin.as_bytes()) {
        origin.clone()
    } else {
        return false;
    };
    headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, allowed);
    headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static("etag, location, retry-after"));
    true
}

/// The answer to OPTIONS on a path that has routes: which methods, and whether the caller's page may use them.
pub(crate) fn preflight(gate: &Gate, request: &Request, allowed: &[&'static str]) -> Response<Body> {
    let methods = allowed_methods(allowed);
    let mut response = response::of_options(methods.clone());
    let headers = response.headers_mut();
    if allow(gate, request, headers) {
        headers.insert(ACCESS_CONTROL_ALLOW_METHODS, methods);
        headers.insert(
            ACCESS_CONTROL_ALLOW_HEADERS,
            HeaderValue::from_static("authorization, content-type, idempotency-key, if-none-match"),
        );
        headers.insert(ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("600"));
    }
    response
}

/// The Allow header's value.
pub(crate) fn allowed_methods(allowed: &[&'static str]) -> HeaderValue {
    let methods = allowed.iter().chain(&["OPTIONS"]).copied().collect::<Vec<_>>().join(", ");
    // Methods come from the route table: always visible ASCII.
    HeaderValue::try_from(methods).unwrap_or(HeaderValue::from_static("OPTIONS"))
}
