//! Requests as API Gateway's HTTP API hands them to a Lambda: payload format 2.0.

use std::net::IpAddr;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use gateway::{HttpEvent, HttpEventContext, HttpEventLine};
use hyper::http::request::Parts;

/// The event of a request whose body has been read.
pub(crate) fn event(parts: Parts, body: &[u8], peer: IpAddr) -> HttpEvent {
    // As there: text is passed as it is, anything else in base64.
    let text = std::str::from_utf8(body).ok();
    HttpEvent {
        raw_path: parts.uri.path().to_owned(),
        raw_query_string: parts.uri.query().unwrap_or_default().to_owned(),
        headers: parts.headers,
        request_context: HttpEventContext {
            request_id: Some(uuid::Uuid::new_v4().to_string()),
            stage: Some("$default".to_owned()),
            // The issuer is the listener's address, which needs no domain.
            domain_name: None,
            authorizer: None,
            http: HttpEventLine {
                method: parts.method.as_str().to_owned(),
                source_ip: Some(peer.to_string()),
            },
        },
        body: (!body.is_empty()).then(|| text.map_or_else(|| STANDARD.encode(body), str::to_owned)),
        is_base64_encoded: text.is_none(),
    }
}
