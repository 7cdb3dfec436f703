//! Handlers as Lambda runs them: the event's JSON in, the answer's JSON out.

use std::net::Ipv4Addr;
use std::sync::Arc;

use anyhow::{Context, ensure};
use book::BookState;
use domain::{EventId, Millis, Token};
use gateway::HttpEvent;
use serde_json::{Value, json};
use store::{Store, StoreConfig};
use support::TakesAll;

/// An instance of the functions, with a connection and views of its own. Its queue takes everything at once.
pub(crate) struct Instance(BookState);

impl Instance {
    pub(crate) fn of(config: &StoreConfig, event: &EventId) -> anyhow::Result<Self> {
        let (store, outbox) = (Store::new(config)?, Arc::new(TakesAll));
        Ok(Self(support::functions(store, support::gate(event), support::access(), Some(outbox))))
    }

    /// From now on its steps take this for the time.
    pub(crate) fn at(&self, now: Millis) {
        self.0.state.store.drive_clock(now);
    }

    /// What the Runtime API is handed for what it handed out.
    pub(crate) async fn answer(&self, event: &[u8]) -> anyhow::Result<Vec<u8>> {
        Ok(support::handled(&self.0, event).await?)
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

    pub(crate) fn leave() -> anyhow::Result<Self> {
        Self::of(include_str!("../../events/leave.json"))
    }

    /// With this query.
    pub(crate) fn asking(&self, query: &[(&str, &str)]) -> Vec<u8> {
        self.with_query(query).to_string().into_bytes()
    }

    /// With this body.
    pub(crate) fn saying(&self, body: &Value) -> Vec<u8> {
        self.with_body(&body.to_string()).to_string().into_bytes()
    }

    /// The same with blanks in the query.
    pub(crate) fn form_asking(&self, query: &[(&str, &str)]) -> anyhow::Result<Form> {
        Form::of(self.with_query(query))
    }

    /// The same with blanks in the body.
    pub(crate) fn form_saying(&self, body: &str) -> anyhow::Result<Form> {
        Form::of(self.with_body(body))
    }

    fn with_query(&self, query: &[(&str, &str)]) -> Value {
        let mut event = self.sent_from_anywhere();
        let pairs: Vec<String> = query.iter().map(|(name, value)| format!("{name}={value}")).collect();
        event["rawQueryString"] = json!(pairs.join("&"));
        event["queryStringParameters"] =
            query.iter().map(|(name, value)| ((*name).to_owned(), json!(value))).collect();
        event
    }

    fn with_body(&self, body: &str) -> Value {
        let mut event = self.sent_from_anywhere();
        event["body"] = json!(body);
        event
    }

    /// From an address of its own.
    fn sent_from_anywhere(&self) -> Value {
        let mut event = self.0.clone();
        event["requestContext"]["http"]["sourceIp"] =
            json!(Ipv4Addr::from_bits(fastrand::u32(..)).to_string());
        event
    }
}

/// An event with blanks, `%1%` and so on, filled in by copying text alone: where millions are sent, making them must cost
/// little beside answering them. Blank 0 is the address.
pub(crate) struct Form {
    head: String,
    /// What stands behind each blank.
    parts: Vec<(usize, String)>,
}

impl Form {
    fn of(mut event: Value) -> anyhow::Result<Self> {
        event["requestContext"]["http"]["sourceIp"] = json!("%0%");
        let text = event.to_string();
        let mut pieces = text.split('%');
        let head = pieces.next().unwrap_or_default().to_owned();
        let mut parts = Vec::new();
        while let (Some(blank), Some(text)) = (pieces.next(), pieces.next()) {
            parts.push((blank.parse().with_context(|| format!("no blank: {blank}"))?, text.to_owned()));
        }
        Ok(Self { head, parts })
    }

    /// From any address, with these in the blanks from 1 on: texts that need no escaping.
    pub(crate) fn filled(&self, values: &[&str]) -> Vec<u8> {
        let address = Ipv4Addr::from_bits(fastrand::u32(..)).to_string();
        let mut event = Vec::with_capacity(2_048);
        event.extend_from_slice(self.head.as_bytes());
        for (blank, text) in &self.parts {
            let value = blank.checked_sub(1).map_or(Some(&address[..]), |at| values.get(at).copied());
            event.extend_from_slice(value.unwrap_or_default().as_bytes());
            event.extend_from_slice(text.as_bytes());
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_that_is_filled_in_is_the_event_itself() {
        let template = Template::poll().unwrap();
        let form = template.form_asking(&[("token", "%1%"), ("key", "%2%")]).unwrap();
        let filled: Value = serde_json::from_slice(&form.filled(&["a", "b"])).unwrap();
        let mut asked = template.with_query(&[("token", "a"), ("key", "b")]);
        asked["requestContext"]["http"]["sourceIp"] = filled["requestContext"]["http"]["sourceIp"].clone();
        assert_eq!(filled, asked);
        let form = Template::book().unwrap().form_saying(r#"{"token":"%1%","seatCount":%2%}"#).unwrap();
        let filled: Value = serde_json::from_slice(&form.filled(&["a", "2"])).unwrap();
        assert_eq!(filled["body"], r#"{"token":"a","seatCount":2}"#);
    }
}
