//! The outbox of the deployed system.

use std::fmt;
use std::time::Duration;

use aws_config::ConfigLoader;
use aws_config::retry::RetryConfig;
use aws_config::timeout::TimeoutConfig;
use aws_sdk_sqs::Client;
use aws_sdk_sqs::error::{BuildError, DisplayErrorContext};
use aws_sdk_sqs::operation::send_message_batch::SendMessageBatchOutput;
use aws_sdk_sqs::types::{QueueAttributeName, SendMessageBatchRequestEntry};
use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt, stream};
use tokio::sync::OnceCell;

use crate::{Backlog, BacklogError, Message, Outbox, Queue, batches, sdk};

const CONNECT_TIMEOUT: Duration = Duration::from_millis(300);
const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(1);
const MAX_ATTEMPTS: u32 = 3;
const FIRST_RETRY_AFTER: Duration = Duration::from_millis(50);
/// Batches on their way at once, so that a relay catching up does not wait out one round trip after another.
const BATCHES_AT_ONCE: usize = 4;

/// Where the queues are and how long sending may take.
#[derive(Debug, Clone)]
pub struct SqsConfig {
    /// URL of the queue for [`Queue::Bookings`].
    pub bookings_url: String,
    /// URL of the queue for [`Queue::Line`].
    pub line_url: String,
    /// The most time for a batch, retries included: short where a caller waits for it.
    pub operation_timeout: Duration,
}

impl SqsConfig {
    fn url(&self, queue: Queue) -> &str {
        match queue {
            Queue::Bookings => &self.bookings_url,
            Queue::Line => &self.line_url,
        }
    }
}

/// Sends to SQS. Region, credentials and endpoint (`AWS_ENDPOINT_URL_SQS`) are found as the AWS SDK finds them,
/// at the first message, so that an instance that never sends never pays for it.
pub struct SqsOutbox {
    config: SqsConfig,
    client: OnceCell<Client>,
}

impl fmt::Debug for SqsOutbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqsOutbox").field("config", &self.config).finish_non_exhaustive()
    }
}

impl SqsOutbox {
    /// An outbox that connects when it first sends.
    pub fn new(config: SqsConfig) -> Self {
        Self { config, client: OnceCell::new() }
    }

    /// An outbox on a client that is there already; that client's own timeouts hold.
    pub fn with_client(config: SqsConfig, client: Client) -> Self {
        Self { config, client: OnceCell::new_with(Some(client)) }
    }

    async fn client(&self) -> &Client {
        self.client.get_or_init(|| connect(self.config.operation_timeout)).await
    }

    async fn send_batch(&self, queue: Queue, batch: Vec<Message>) -> Vec<bool> {
        let messages = batch.len();
        match self.try_batch(queue, batch).await {
            Ok(answer) => taken(queue, messages, &answer),
            Err(error) => {
                tracing::error!(queue = queue.as_str(), messages, error, "the queue cannot be reached");
                vec![false; messages]
            }
        }
    }

    async fn try_batch(&self, queue: Queue, batch: Vec<Message>) -> Result<SendMessageBatchOutput, String> {
        let entries = entries(batch).map_err(|error| error.to_string())?;
        let request = self.client().await.send_message_batch().queue_url(self.config.url(queue));
        let answer = request.set_entries(Some(entries)).send().await;
        answer.map_err(|error| DisplayErrorContext(error).to_string())
    }
}

impl Outbox for SqsOutbox {
    fn send(&self, queue: Queue, messages: Vec<Message>) -> BoxFuture<'_, Vec<bool>> {
        let answers = stream::iter(batches(messages)).map(move |batch| self.send_batch(queue, batch));
        answers.buffered(BATCHES_AT_ONCE).concat().boxed()
    }
}

impl Backlog for SqsOutbox {
    fn bookings(&self) -> BoxFuture<'_, Result<u64, BacklogError>> {
        async move { messages_of(self.client().await, &self.config.bookings_url).await }.boxed()
    }
}

/// What SQS counts of a message on its way: it waits, is delayed, or somebody works on it.
const COUNTED: [QueueAttributeName; 3] = [
    QueueAttributeName::ApproximateNumberOfMessages,
    QueueAttributeName::ApproximateNumberOfMessagesDelayed,
    QueueAttributeName::ApproximateNumberOfMessagesNotVisible,
];

/// How many messages a queue has.
pub(crate) async fn messages_of(client: &Client, url: &str) -> Result<u64, BacklogError> {
    let request = client.get_queue_attributes().queue_url(url).set_attribute_names(Some(COUNTED.to_vec()));
    let answer =
        request.send().await.map_err(|error| BacklogError(DisplayErrorContext(error).to_string()))?;
    let attributes = answer.attributes.unwrap_or_default();
    let count = |name: &QueueAttributeName| {
        let count = attributes.get(name).and_then(|count| count.parse::<u64>().ok());
        count.ok_or_else(|| BacklogError(format!("SQS did not tell {name}")))
    };
    COUNTED.iter().map(count).sum()
}

pub(crate) async fn connect(operation_timeout: Duration) -> Client {
    Client::new(&shared_config(operation_timeout).load().await)
}

fn shared_config(operation_timeout: Duration) -> ConfigLoader {
    let timeouts = TimeoutConfig::builder()
        .connect_timeout(CONNECT_TIMEOUT)
        .operation_attempt_timeout(ATTEMPT_TIMEOUT.min(operation_timeout))
        .operation_timeout(operation_timeout)
        .build();
    let retries =
        RetryConfig::standard().with_max_attempts(MAX_ATTEMPTS).with_initial_backoff(FIRST_RETRY_AFTER);
    sdk().timeout_config(timeouts).retry_config(retries)
}

/// A message's id within its batch is its position there.
pub(crate) fn entries(batch: Vec<Message>) -> Result<Vec<SendMessageBatchRequestEntry>, BuildError> {
    let entry = |(position, message): (usize, Message)| {
        let entry = SendMessageBatchRequestEntry::builder().id(position.to_string());
        entry.message_body(message.body).build()
    };
    batch.into_iter().enumerate().map(entry).collect()
}

fn taken(queue: Queue, messages: usize, answer: &SendMessageBatchOutput) -> Vec<bool> {
    for failed in &answer.failed {
        let (code, message) = (failed.code(), failed.message().unwrap_or_default());
        tracing::error!(queue = queue.as_str(), code, message, "the queue refused a message");
    }
    let mut taken = vec![false; messages];
    for entry in &answer.successful {
        let position = entry.id().parse::<usize>().ok();
        if let Some(taken) = position.and_then(|position| taken.get_mut(position)) {
            *taken = true;
        }
    }
    taken
}

#[cfg(test)]
mod tests {
    use aws_sdk_sqs::types::{BatchResultErrorEntry, SendMessageBatchResultEntry};

    use super::*;

    #[test]
    fn only_what_the_queue_names_as_taken_is_taken() {
        let taken_entry = |id: &str| {
            let entry =
                SendMessageBatchResultEntry::builder().id(id).message_id("m").md5_of_message_body("x");
            entry.build().unwrap()
        };
        let refused =
            BatchResultErrorEntry::builder().id("1").sender_fault(true).code("InvalidMessageContents");
        let answer = SendMessageBatchOutput::builder()
            .successful(taken_entry("2"))
            .successful(taken_entry("0"))
            .successful(taken_entry("17"))
            .failed(refused.build().unwrap())
            .build()
            .unwrap();
        assert_eq!(taken(Queue::Line, 4, &answer), [true, false, true, false]);
    }

    #[tokio::test]
    async fn a_queue_that_never_answers_takes_nothing_and_no_more_than_the_given_time() {
        // Connections are taken by the system and never answered.
        let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let endpoint = format!("http://{}", silent.local_addr().unwrap());
        let operation_timeout = Duration::from_millis(400);
        let url = format!("{endpoint}/1/line");
        let config = SqsConfig { bookings_url: url.clone(), line_url: url, operation_timeout };
        let shared =
            shared_config(operation_timeout).region("eu-west-1").endpoint_url(endpoint).test_credentials();
        let outbox = SqsOutbox::with_client(config, Client::new(&shared.load().await));
        let message = Message { body: "{}".to_owned(), carries: Vec::new() };
        let started = std::time::Instant::now();
        assert_eq!(outbox.send(Queue::Line, vec![message; 12]).await, [false; 12]);
        assert!(started.elapsed() < 2 * operation_timeout, "{:?}", started.elapsed());

        let started = std::time::Instant::now();
        assert!(outbox.bookings().await.is_err());
        assert!(started.elapsed() < 2 * operation_timeout, "{:?}", started.elapsed());
    }
}
