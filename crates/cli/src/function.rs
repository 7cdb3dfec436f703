//! The admin function of a deployed system, invoked through AWS.

use std::time::Duration;

use admin::{Command, Reply};
use anyhow::{Context, anyhow};
use aws_config::retry::RetryConfig;
use aws_config::stalled_stream_protection::StalledStreamProtectionConfig;
use aws_config::timeout::TimeoutConfig;
use aws_sdk_lambda::Client;
use aws_sdk_lambda::error::DisplayErrorContext;
use aws_sdk_lambda::primitives::Blob;
use serde::Deserialize;
use tokio::sync::OnceCell;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// The function's own timeout, an audit's, and a little.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(920);

/// A function by its name or ARN.
pub(crate) struct Function {
    name: String,
    client: OnceCell<Client>,
}

/// What Lambda answers for a function that failed.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct FunctionFailure {
    error_message: String,
}

impl Function {
    pub(crate) fn new(name: &str) -> Self {
        Self { name: name.to_owned(), client: OnceCell::new() }
    }

    /// What the function's handler answers.
    pub(crate) async fn ask(&self, command: &Command) -> anyhow::Result<Reply> {
        let client = self.client.get_or_init(connect).await;
        let payload = Blob::new(serde_json::to_vec(command)?);
        let answer = client.invoke().function_name(&self.name).payload(payload).send().await;
        let answer = answer.map_err(|error| anyhow!("{}", DisplayErrorContext(error)))?;
        let payload = answer.payload.map(Blob::into_inner).unwrap_or_default();
        if answer.function_error.is_some() {
            let failure = serde_json::from_slice::<FunctionFailure>(&payload);
            return Err(failure.map_or_else(
                |_| anyhow!("it failed: {}", String::from_utf8_lossy(&payload)),
                |failure| anyhow!("it failed: {}", failure.error_message),
            ));
        }
        serde_json::from_slice(&payload)
            .context("it answers in an unknown form: is it jari's admin function?")
    }
}

/// Nothing is repeated behind an operator's back: who did not get an answer looks, and asks again.
async fn connect() -> Client {
    let timeouts =
        TimeoutConfig::builder().connect_timeout(CONNECT_TIMEOUT).read_timeout(ANSWER_TIMEOUT).build();
    let config = outbox::sdk()
        .timeout_config(timeouts)
        .retry_config(RetryConfig::disabled())
        // An audit says nothing until it is done.
        .stalled_stream_protection(StalledStreamProtectionConfig::disabled());
    Client::new(&config.load().await)
}
