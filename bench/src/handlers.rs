//! Handlers as Lambda runs them: the event's JSON in, the answer's JSON out.

use std::sync::Arc;

use anyhow::{Context, ensure};
use book::BookState;
use domain::{EventId, Token};
use gateway::HttpEvent;
use serde_json::{Value, json};
use store::{Store, StoreConfig};

use crate::world::TakesAll;

/// An instance of the functions, with a connection and views of its own. Its queue takes everything at once.
pub(crate) struct Instance(BookState);

impl Instance {
    pub(crate) fn of(config: &StoreConfig, event: &EventId) -> anyhow::Result<Self> {
        let (store, outbox) = (Store::new(config)?, Arc::new(TakesAll));
        Ok(Self(support::functions(store, support::gate(event), support::access(), Some(outbox))))
    }

    /// What the Runtime API is handed for what it handed out.
    pub(crate) async fn answer(&self, event: &[u8]) -> anyhow::Result<Vec<u8>> {
        let response = support::answer(&self.0, gateway::accept(parse(event)?)).await;
        Ok(serde_json::to_vec(&gateway::into_event(response))?)
    }

    /// The status of the answer, and its body.
    pub(crate) async fn call(&self, event: &[u8]) -> anyhow::Result<(u16, Value)> {
        read(&self.answer(event).await?)
    }
}

/// The status of an answer, and its body.
pub(crate) fn read(answer: &[u8]) -> anyhow::Result<(u16, Value)> {
    let answer: Value = serde_json::from_slice(answer)?;
    let status = answer["statusCode"].as_u64().context("a status")?;
    let body = serde_json::from_str(answer["body"].as_str().context("a body")?)?;
    Ok((u16::try_from(status)?, body))
}

/// The baseline of every handler: its event alone.
pub(crate) fn parse(event: &[u8]) -> anyhow::Result<HttpEvent> {
    Ok(serde_json::from_slice(event)?)
}

/// Makes events of those that lie in `events/`: API Gateway's own, with other queries and bodies.
pub(crate) struct Template(Value);

impl Template {
    pub(crate) fn of(recorded: &str) -> anyhow::Result<Self> {
        let event: Value = serde_json::from_str(recorded)?;
        ensure!(event["version"] == "2.0", "no event of an HTTP API");
        Ok(Self(event))
    }

    pub(crate) fn poll() -> anyhow::Result<Self> {
        Self::of(include_str!("../../events/poll.json"))
    }

    pub(crate) fn join() -> anyhow::Result<Self> {
        Self::of(include_str!("../../events/join.json"))
    }

    pub(crate) fn book() -> anyhow::Result<Self> {
        Self::of(include_str!("../../events/book.json"))
    }

    pub(crate) fn hold() -> anyhow::Result<Self> {
        Self::of(include_str!("../../events/hold-seat.json"))
    }

    /// With this query.
    pub(crate) fn asking(&self, query: &[(&str, &str)]) -> Vec<u8> {
        let mut event = self.sent_from_anywhere();
        let pairs: Vec<String> = query.iter().map(|(name, value)| format!("{name}={value}")).collect();
        event["rawQueryString"] = json!(pairs.join("&"));
        event["queryStringParameters"] =
            query.iter().map(|(name, value)| ((*name).to_owned(), json!(value))).collect();
        event.to_string().into_bytes()
    }

    /// With this body.
    pub(crate) fn saying(&self, body: &Value) -> Vec<u8> {
        let mut event = self.sent_from_anywhere();
        event["body"] = json!(body.to_string());
        event.to_string().into_bytes()
    }

    /// From an address of its own.
    fn sent_from_anywhere(&self) -> Value {
        let mut event = self.0.clone();
        event["requestContext"]["http"]["sourceIp"] =
            json!(std::net::Ipv4Addr::from_bits(fastrand::u32(..)).to_string());
        event
    }
}

/// A join to an event.
pub(crate) fn joining(template: &Template, event: &EventId) -> Vec<u8> {
    template.saying(&json!({ "eventId": event }))
}

/// A poll, with a key where there is one.
pub(crate) fn polling(template: &Template, event: &EventId, token: Token, key: Option<&str>) -> Vec<u8> {
    let token = token.to_string();
    let mut query = vec![("token", token.as_str()), ("eventId", event.as_str())];
    query.extend(key.map(|key| ("key", key)));
    template.asking(&query)
}
