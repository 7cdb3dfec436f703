//! Functions behind Lambda's own API.

use std::time::Duration;

use anyhow::{Context, bail};
use aws_sdk_lambda::Client;
use aws_sdk_lambda::config::retry::RetryConfig;
use aws_sdk_lambda::config::timeout::TimeoutConfig;
use aws_sdk_lambda::primitives::Blob;
use aws_smithy_http_client::Builder;
use serde_json::{Value, json};

/// The longest run, and what starting an instance may take.
const INVOKE_TIMEOUT: Duration = Duration::from_mins(3);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);

/// Where functions are invoked.
#[derive(Debug, Clone)]
pub(super) struct Functions(Client);

impl Functions {
    /// Functions at an address, as `sam local start-lambda` has one.
    pub(super) fn at(endpoint: &str) -> Self {
        let timeouts =
            TimeoutConfig::builder().connect_timeout(CONNECT_TIMEOUT).operation_timeout(INVOKE_TIMEOUT);
        let config = aws_sdk_lambda::Config::builder()
            .behavior_version(super::latest())
            .region(super::somewhere())
            .credentials_provider(super::anybody())
            .endpoint_url(endpoint)
            .http_client(Builder::new().build_http())
            // Whoever asks counts failures.
            .retry_config(RetryConfig::disabled())
            .timeout_config(timeouts.build());
        Self(Client::from_conf(config.build()))
    }

    /// What the function answers. An error too where the function itself failed.
    pub(super) async fn invoke(&self, function: &str, payload: &Value) -> anyhow::Result<Value> {
        let payload = Blob::new(payload.to_string());
        let answer = self.0.invoke().function_name(function).payload(payload).send().await;
        let answer = answer.map_err(aws_sdk_lambda::Error::from);
        let answer = answer.with_context(|| format!("cannot invoke {function}"))?;
        let body = answer.payload().map(|blob| String::from_utf8_lossy(blob.as_ref())).unwrap_or_default();
        if let Some(kind) = answer.function_error() {
            bail!("{function} failed ({kind}): {body}");
        }
        if body.is_empty() {
            return Ok(Value::Null);
        }
        let answer: Value = serde_json::from_str(&body)
            .with_context(|| format!("{function} answered what is no JSON: {body}"))?;
        // The local runtime has no header for it.
        if let Some(message) = answer.get("errorMessage") {
            bail!("{function} failed: {message}");
        }
        Ok(answer)
    }
}

/// What the scheduler sends.
pub(super) fn scheduled(function: &str) -> Value {
    json!({
        "version": "0",
        "detail-type": "Scheduled Event",
        "source": "aws.scheduler",
        "resources": [format!("arn:aws:scheduler:us-east-1:123456789012:schedule/default/{function}EachMinute")],
        "detail": "{}",
    })
}
