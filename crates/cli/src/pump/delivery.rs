//! Queues, and what Lambda makes of their messages.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Context, bail};
use aws_sdk_sqs::Client;
use aws_sdk_sqs::config::retry::RetryConfig;
use aws_sdk_sqs::config::timeout::TimeoutConfig;
use aws_sdk_sqs::types::{
    DeleteMessageBatchRequestEntry, Message, MessageSystemAttributeName, QueueAttributeName,
};
use aws_smithy_http_client::Builder;
use serde_json::{Map, Value, json};

/// Messages that SQS gives at once at most.
const MAX_BATCH: i32 = 10;
const WAIT_SECONDS: i32 = 2;
const OPERATION_TIMEOUT: Duration = Duration::from_secs(10);

/// Where queues are.
pub(super) struct Queues(Client);

impl Queues {
    /// Queues at an address.
    pub(super) fn at(endpoint: &str) -> Self {
        let config = aws_sdk_sqs::Config::builder()
            .behavior_version(super::latest())
            .region(super::somewhere())
            .credentials_provider(super::anybody())
            .endpoint_url(endpoint)
            .http_client(Builder::new().build_http())
            .retry_config(RetryConfig::disabled())
            .timeout_config(TimeoutConfig::builder().operation_timeout(OPERATION_TIMEOUT).build());
        Self(Client::from_conf(config.build()))
    }

    /// A queue by its name. An error where there is none.
    pub(super) async fn named(&self, name: &str) -> anyhow::Result<Queue> {
        let found = self.0.get_queue_url().queue_name(name).send().await.map_err(aws_sdk_sqs::Error::from);
        let found = found.with_context(|| format!("cannot find the queue {name}"))?;
        let url = found.queue_url().context("a queue without a URL")?.to_owned();
        let asked =
            self.0.get_queue_attributes().queue_url(&url).attribute_names(QueueAttributeName::QueueArn);
        let attributes = asked.send().await.map_err(aws_sdk_sqs::Error::from)?;
        let arn = attributes.attributes().and_then(|all| all.get(&QueueAttributeName::QueueArn));
        let arn = arn.with_context(|| format!("the queue {name} has no ARN"))?.to_owned();
        Ok(Queue { client: self.0.clone(), url, arn })
    }
}

/// One queue.
pub(super) struct Queue {
    client: Client,
    url: String,
    arn: String,
}

impl Queue {
    /// The next messages; none after a short wait.
    pub(super) async fn receive(&self) -> anyhow::Result<Vec<Message>> {
        let asked = self.client.receive_message().queue_url(&self.url).max_number_of_messages(MAX_BATCH);
        let asked = asked.wait_time_seconds(WAIT_SECONDS);
        let asked = asked.message_system_attribute_names(MessageSystemAttributeName::All);
        let received = asked.send().await.map_err(aws_sdk_sqs::Error::from);
        Ok(received.with_context(|| format!("cannot read {}", self.arn))?.messages.unwrap_or_default())
    }

    /// Messages as Lambda hands them to a function.
    pub(super) fn records(&self, batch: &[Message]) -> Vec<Value> {
        batch.iter().map(|message| record(&self.arn, message)).collect()
    }

    /// Takes the messages off the queue but for those that were handed back. How many.
    pub(super) async fn delete(&self, batch: &[Message], kept: &BTreeSet<String>) -> anyhow::Result<u64> {
        let mut entries = Vec::new();
        for (position, message) in batch.iter().enumerate() {
            if message.message_id().is_some_and(|id| kept.contains(id)) {
                continue;
            }
            let entry = DeleteMessageBatchRequestEntry::builder().id(position.to_string());
            entries.push(entry.set_receipt_handle(message.receipt_handle.clone()).build()?);
        }
        if entries.is_empty() {
            return Ok(0);
        }
        let asked = self.client.delete_message_batch().queue_url(&self.url).set_entries(Some(entries));
        let answer = asked.send().await.map_err(aws_sdk_sqs::Error::from)?;
        if let Some(failed) = answer.failed().first() {
            bail!("{} does not delete a message: {}", self.arn, failed.code());
        }
        Ok(answer.successful().len() as u64)
    }
}

fn record(arn: &str, message: &Message) -> Value {
    let attributes = message.attributes().into_iter().flatten();
    let attributes: Map<String, Value> =
        attributes.map(|(name, value)| (name.as_str().to_owned(), Value::from(value.as_str()))).collect();
    json!({
        "messageId": message.message_id(),
        "receiptHandle": message.receipt_handle(),
        "body": message.body(),
        "attributes": attributes,
        "messageAttributes": {},
        "md5OfBody": message.md5_of_body(),
        "eventSource": "aws:sqs",
        "eventSourceARN": arn,
        "awsRegion": "us-east-1",
    })
}

/// The ids of messages that a function did not take. An error for what Lambda would take for a failure of all: an id
/// that is none of the batch's.
pub(super) fn handed_back(answer: &Value, batch: &[Message]) -> anyhow::Result<BTreeSet<String>> {
    let Some(failures) = answer.get("batchItemFailures") else { return Ok(BTreeSet::new()) };
    let failures = failures.as_array().context("batchItemFailures is no list")?;
    let mut ids = BTreeSet::new();
    for failure in failures {
        let id = failure.get("itemIdentifier").and_then(Value::as_str).unwrap_or_default();
        if !batch.iter().any(|message| message.message_id() == Some(id)) {
            bail!("a message was handed back that is none of the batch: {id:?}");
        }
        ids.insert(id.to_owned());
    }
    Ok(ids)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(id: &str) -> Message {
        let message = Message::builder().message_id(id).receipt_handle(format!("receipt-{id}")).body("{}");
        message.attributes(MessageSystemAttributeName::SentTimestamp, "1788214421000").build()
    }

    #[test]
    fn a_message_is_told_as_lambda_tells_it() {
        let told = record("arn:aws:sqs:us-east-1:123456789012:jari-Line", &message("a"));
        let event = json!({"Records": [told]});
        let read: aws_lambda_events::event::sqs::SqsEvent = serde_json::from_value(event).unwrap();
        let record = &read.records[0];
        assert_eq!((record.message_id.as_deref(), record.body.as_deref()), (Some("a"), Some("{}")));
        assert_eq!(record.event_source_arn.as_deref(), Some("arn:aws:sqs:us-east-1:123456789012:jari-Line"));
        assert_eq!(record.attributes["SentTimestamp"], "1788214421000");
    }

    #[test]
    fn what_is_handed_back_is_named_and_a_stranger_fails_the_batch() {
        let batch = [message("a"), message("b")];
        let back = |answer: Value| handed_back(&answer, &batch);
        assert_eq!(back(Value::Null).unwrap(), BTreeSet::new());
        assert_eq!(back(json!({"batchItemFailures": []})).unwrap(), BTreeSet::new());
        let one = json!({"batchItemFailures": [{"itemIdentifier": "b"}]});
        assert_eq!(back(one).unwrap(), BTreeSet::from(["b".to_owned()]));
        for stranger in
            [json!([{"itemIdentifier": "c"}]), json!([{"itemIdentifier": ""}]), json!([{}]), json!("b")]
        {
            assert!(back(json!({"batchItemFailures": stranger})).is_err(), "{stranger}");
        }
    }
}
