//! One queue: that of pushes, of gone sockets, or of bookings to be counted.

use std::fmt;
use std::time::Duration;

use aws_sdk_sqs::Client;
use aws_sdk_sqs::error::DisplayErrorContext;
use futures::FutureExt;
use futures::future::BoxFuture;
use tokio::sync::OnceCell;

use crate::push::{Departures, Gone, Push, Pushes, pack_gone, pack_pushes};
use crate::sqs::{connect, entries, messages_of};
use crate::{Backlog, BacklogError, Message, batches};

/// One SQS queue. Connects when it is first used.
pub struct SqsQueue {
    url: String,
    operation_timeout: Duration,
    client: OnceCell<Client>,
}

impl fmt::Debug for SqsQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqsQueue").field("url", &self.url).finish_non_exhaustive()
    }
}

impl SqsQueue {
    /// The queue at a URL; `operation_timeout` is the most time for a batch, retries included.
    pub fn new(url: String, operation_timeout: Duration) -> Self {
        Self { url, operation_timeout, client: OnceCell::new() }
    }

    /// The same on a client that is there already; that client's own timeouts hold.
    pub fn with_client(url: String, client: Client) -> Self {
        Self { url, operation_timeout: Duration::MAX, client: OnceCell::new_with(Some(client)) }
    }

    async fn client(&self) -> &Client {
        self.client.get_or_init(|| connect(self.operation_timeout)).await
    }

    async fn send(&self, bodies: Vec<String>) {
        let messages = bodies.into_iter().map(|body| Message { body, carries: Vec::new() }).collect();
        for batch in batches(messages) {
            let messages = batch.len();
            if let Err(error) = self.send_batch(batch).await {
                tracing::error!(
                    url = self.url,
                    messages,
                    error,
                    "the queue did not take what sockets are told"
                );
            }
        }
    }

    async fn send_batch(&self, batch: Vec<Message>) -> Result<(), String> {
        let entries = entries(batch).map_err(|error| error.to_string())?;
        let request =
            self.client().await.send_message_batch().queue_url(&self.url).set_entries(Some(entries));
        let answer = request.send().await.map_err(|error| DisplayErrorContext(error).to_string())?;
        match answer.failed().first() {
            Some(failed) => Err(format!("{} refused, {}", answer.failed().len(), failed.code())),
            None => Ok(()),
        }
    }
}

impl Pushes for SqsQueue {
    fn push(&self, pushes: Vec<Push>) -> BoxFuture<'_, ()> {
        self.send(pack_pushes(pushes)).boxed()
    }
}

impl Departures for SqsQueue {
    fn depart(&self, gone: Vec<Gone>) -> BoxFuture<'_, ()> {
        async move { self.send(pack_gone(&gone)).await }.boxed()
    }
}

/// Of the queue of bookings.
impl Backlog for SqsQueue {
    fn bookings(&self) -> BoxFuture<'_, Result<u64, BacklogError>> {
        async move { messages_of(self.client().await, &self.url).await }.boxed()
    }
}
