//! Through events as API Gateway sends them.

mod access_tokens;
mod answers;
mod failures;
mod keys;
mod outcomes;
mod requests;

use serde_json::{Value, json};

use crate::{Body, Gate, HttpEvent, Request, Response, accept};

pub(super) const TOKEN: &str = "6f9619ff-8b86-4d01-b42d-00cf4fc964ff";
pub(super) const RESERVATION: &str = "ktx-2026-chuseok.0b1f6a52-6d3c-4f0e-9a55-2f6f8a1f7c11";

/// An event as recorded behind an HTTP API, before a test changes it.
const RECORDED: &str = include_str!("recorded.json");

/// An event in the making.
pub(super) struct Sent(Value);

impl Sent {
    /// `"POST /api/queue/join"`, with a query where one is wanted.
    pub(super) fn to(line: &str) -> Self {
        let (method, target) = line.split_once(' ').unwrap();
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let mut event: Value = serde_json::from_str(RECORDED).unwrap();
        event["routeKey"] = json!(format!("{method} {path}"));
        event["rawPath"] = json!(path);
        event["rawQueryString"] = json!(query);
        event["requestContext"]["http"]["method"] = json!(method);
        event["requestContext"]["http"]["path"] = json!(path);
        Self(event)
    }

    /// With a body and JSON's content type.
    pub(super) fn json(self, body: &Value) -> Self {
        self.text(&body.to_string()).header("content-type", "application/json")
    }

    /// With a body and nothing said about it.
    pub(super) fn text(mut self, body: &str) -> Self {
        self.0["body"] = json!(body);
        self
    }

    /// With a body that is said to be base64.
    pub(super) fn base64(mut self, body: &str) -> Self {
        self.0["isBase64Encoded"] = json!(true);
        self.text(body).header("content-type", "application/json")
    }

    pub(super) fn header(mut self, name: &str, value: &str) -> Self {
        self.0["headers"][name] = json!(value);
        self
    }

    pub(super) fn source(mut self, ip: &str) -> Self {
        self.0["requestContext"]["http"]["sourceIp"] = json!(ip);
        self
    }

    /// Behind a stage, which API Gateway puts before the path.
    pub(super) fn stage(mut self, stage: &str) -> Self {
        let path = format!("/{stage}{}", self.0["rawPath"].as_str().unwrap());
        self.0["rawPath"] = json!(path);
        self.0["requestContext"]["http"]["path"] = json!(path);
        self.0["requestContext"]["stage"] = json!(stage);
        self
    }

    pub(super) fn event(self) -> HttpEvent {
        serde_json::from_value(self.0).unwrap()
    }

    pub(super) fn request(self) -> Request {
        accept(self.event())
    }
}

/// A gate with a default sale and nothing else.
pub(super) fn gate() -> Gate {
    Gate { default_event: Some("ktx-2026-chuseok".parse().unwrap()), ..Gate::default() }
}

pub(super) fn text_of(response: &Response<Body>) -> &str {
    match response.body() {
        Body::Empty => "",
        Body::Text(text) => text,
        other => panic!("an answer must be text, or it would be sent as base64: {other:?}"),
    }
}

pub(super) fn json_of(response: &Response<Body>) -> Value {
    serde_json::from_str(text_of(response)).unwrap()
}

pub(super) fn header_of<'a>(response: &'a Response<Body>, name: &str) -> Option<&'a str> {
    response.headers().get(name).map(|value| value.to_str().unwrap())
}
