//! Requests as API Gateway's HTTP API hands them to a Lambda: payload format 2.0.

use aws_lambda_events::apigw::ApiGatewayV2httpRequest;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use domain::Millis;
use hyper::http::request::Parts;
use std::net::IpAddr;

/// The event of a request whose body has been read.
pub(crate) fn event(parts: Parts, body: &[u8], peer: IpAddr) -> ApiGatewayV2httpRequest {
    let mut event = ApiGatewayV2httpRequest::default();
    let path = parts.uri.path().to_owned();
    event.version = Some("2.0".to_owned());
    event.raw_path = Some(path.clone());
    event.raw_query_string = parts.uri.query().map(str::to_owned);
    if !body.is_empty() {
        // As there: text is passed as it is, anything else in base64.
        let text = std::str::from_utf8(body).ok();
        event.is_base64_encoded = text.is_none();
        event.body = Some(text.map_or_else(|| STANDARD.encode(body), str::to_owned));
    }
    let context = &mut event.request_context;
    context.stage = Some("$default".to_owned());
    context.request_id = Some(uuid::Uuid::new_v4().to_string());
    context.time_epoch = Millis::now().0;
    context.http.method = parts.method;
    context.http.path = Some(path);
    context.http.protocol = Some("HTTP/1.1".to_owned());
    context.http.source_ip = Some(peer.to_string());
    context.http.user_agent =
        parts.headers.get(hyper::header::USER_AGENT).and_then(|agent| agent.to_str().ok()).map(str::to_owned);
    event.headers = parts.headers;
    event
}
