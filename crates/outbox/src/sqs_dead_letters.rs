//! The queues of dead letters of the deployed system.

use std::fmt;
use std::time::Duration;

use aws_config::timeout::TimeoutConfig;
use aws_sdk_sqs::Client;
use aws_sdk_sqs::error::{DisplayErrorContext, SdkError};
use aws_sdk_sqs::types::{
    ChangeMessageVisibilityBatchRequestEntry, Message as Received, MessageSystemAttributeName,
};
use domain::Millis;
use futures::FutureExt;
use futures::future::BoxFuture;
use tokio::sync::OnceCell;

use crate::dead_letters::{DeadLetter, DeadLetters, DeadLettersError, MAX_DEAD_LETTERS, Replayed};
use crate::{MAX_BATCH_MESSAGES, Queue, sdk};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
const OPERATION_TIMEOUT: Duration = Duration::from_secs(10);
/// A question waits so long for an answer that is not empty: SQS then asks all its servers.
const WAIT_SECONDS: i32 = 1;
/// What was received is nobody else's for so long: longer than a call takes.
const HIDDEN_SECONDS: i32 = 300;
/// Received at once.
const PAGE: i32 = 10;

/// A queue of dead letters, and the queue that they come from.
#[derive(Debug, Clone)]
pub struct DeadLetterQueue {
    /// Which queue that is.
    pub queue: Queue,
    /// The URL of the dead letters.
    pub url: String,
    /// The URL of the queue itself.
    pub queue_url: String,
}

/// Dead letters in SQS.
pub struct SqsDeadLetters {
    queues: Vec<DeadLetterQueue>,
    client: OnceCell<Client>,
}

impl fmt::Debug for SqsDeadLetters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqsDeadLetters").field("queues", &self.queues).finish_non_exhaustive()
    }
}

impl SqsDeadLetters {
    /// Connects when it is first asked.
    pub fn new(queues: Vec<DeadLetterQueue>) -> Self {
        Self { queues, client: OnceCell::new() }
    }

    /// The same on a client that is there already; that client's own timeouts hold.
    pub fn with_client(queues: Vec<DeadLetterQueue>, client: Client) -> Self {
        Self { queues, client: OnceCell::new_with(Some(client)) }
    }

    async fn client(&self) -> &Client {
        self.client.get_or_init(connect).await
    }

    /// All of a queue, out of everybody's sight until [`Self::show`] or for [`HIDDEN_SECONDS`].
    async fn receive(&self, url: &str, most: usize) -> Result<Vec<Received>, DeadLettersError> {
        let mut received: Vec<Received> = Vec::new();
        while received.len() < most {
            let request = self.client().await.receive_message().queue_url(url).max_number_of_messages(PAGE);
            let request = request.wait_time_seconds(WAIT_SECONDS).visibility_timeout(HIDDEN_SECONDS);
            let request = request.message_system_attribute_names(MessageSystemAttributeName::SentTimestamp);
            let page = request.send().await.map_err(failed)?.messages.unwrap_or_default();
            if page.is_empty() {
                break;
            }
            received.extend(page);
        }
        Ok(received)
    }

    /// Lets others see what stays. Where that fails it is seen later.
    async fn show(&self, url: &str, stays: &[Received]) {
        for page in stays.chunks(MAX_BATCH_MESSAGES) {
            let entries = page.iter().enumerate().filter_map(|(at, message)| {
                let entry = ChangeMessageVisibilityBatchRequestEntry::builder().id(at.to_string());
                entry.receipt_handle(message.receipt_handle()?).visibility_timeout(0).build().ok()
            });
            let request = self.client().await.change_message_visibility_batch().queue_url(url);
            if let Err(error) = request.set_entries(Some(entries.collect())).send().await {
                let error = failed(error);
                tracing::warn!(url, %error, "dead letters stay hidden for a while");
            }
        }
    }

    /// Sent first, then deleted.
    async fn move_back(&self, from: &DeadLetterQueue, message: &Received) -> Result<(), DeadLettersError> {
        let (client, body) = (self.client().await, message.body().unwrap_or_default());
        client.send_message().queue_url(&from.queue_url).message_body(body).send().await.map_err(failed)?;
        let delete = client.delete_message().queue_url(&from.url);
        let delete = delete.set_receipt_handle(message.receipt_handle.clone());
        delete.send().await.map(drop).map_err(failed)
    }

    async fn replay_queue(
        &self,
        from: &DeadLetterQueue,
        is_chosen: &(dyn Fn(&str) -> bool + Sync),
        replayed: &mut Replayed,
    ) -> Result<(), DeadLettersError> {
        let received = self.receive(&from.url, MAX_DEAD_LETTERS).await?;
        let (chosen, mut stays): (Vec<Received>, Vec<Received>) =
            received.into_iter().partition(|message| is_chosen(&id_of(message)));
        let mut moved = Ok(());
        for message in chosen {
            if moved.is_ok() {
                moved = self.move_back(from, &message).await;
            }
            if moved.is_ok() {
                replayed.replayed.push(id_of(&message));
            } else {
                replayed.kept.push(id_of(&message));
                stays.push(message);
            }
        }
        self.show(&from.url, &stays).await;
        moved
    }
}

impl DeadLetters for SqsDeadLetters {
    fn list(&self) -> BoxFuture<'_, Result<Vec<DeadLetter>, DeadLettersError>> {
        async move {
            let mut letters = Vec::new();
            for DeadLetterQueue { queue, url, .. } in &self.queues {
                let received = self.receive(url, MAX_DEAD_LETTERS - letters.len()).await?;
                letters.extend(received.iter().map(|message| letter(*queue, message)));
                self.show(url, &received).await;
            }
            Ok(letters)
        }
        .boxed()
    }

    fn replay<'a>(
        &'a self,
        is_chosen: &'a (dyn Fn(&str) -> bool + Sync),
    ) -> BoxFuture<'a, Result<Replayed, DeadLettersError>> {
        async move {
            let mut replayed = Replayed::default();
            for queue in &self.queues {
                self.replay_queue(queue, is_chosen, &mut replayed).await?;
            }
            Ok(replayed)
        }
        .boxed()
    }
}

fn id_of(message: &Received) -> String {
    message.message_id().unwrap_or_default().to_owned()
}

fn letter(queue: Queue, message: &Received) -> DeadLetter {
    let attributes = message.attributes.as_ref();
    let sent_at = attributes.and_then(|known| known.get(&MessageSystemAttributeName::SentTimestamp));
    DeadLetter {
        id: id_of(message),
        queue: Some(queue),
        sent_at: sent_at.and_then(|sent_at| sent_at.parse().ok()).map(Millis),
        body: message.body().unwrap_or_default().to_owned(),
    }
}

fn failed<E, R>(error: SdkError<E, R>) -> DeadLettersError
where
    E: std::error::Error + Send + Sync + 'static,
    R: fmt::Debug + Send + Sync + 'static,
{
    DeadLettersError(DisplayErrorContext(error).to_string())
}

/// An operator waits longer than a request may.
async fn connect() -> Client {
    let timeouts =
        TimeoutConfig::builder().connect_timeout(CONNECT_TIMEOUT).operation_timeout(OPERATION_TIMEOUT);
    Client::new(&sdk().timeout_config(timeouts.build()).load().await)
}
