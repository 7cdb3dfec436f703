//! The queues of a system in one process: messages go straight to the persist handler, as SQS events.
//!
//! Nothing is lost with the process: what handlers send promptly is only in memory, but it stays in the journal
//! until the relay has had it written, or put among the dead letters.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use admin::LetterFile;
use aws_lambda_events::event::sqs::{SqsEvent, SqsMessage};
use futures::FutureExt;
use futures::future::BoxFuture;
use outbox::{Backlog, BacklogError, MAX_BATCH_MESSAGES, Message, Outbox, Queue};
use records::Records;
use tokio::sync::{Mutex, mpsc, watch};

/// Messages that wait in memory at most; past it they wait in the journal alone.
const PROMPT_MESSAGES: usize = 10_000;
/// Deliveries of a message that is refused before it goes to the dead letters, as in the deployed queues.
const DELIVERIES: u32 = 5;
/// Between two deliveries of a refused message.
const RETRY_DELAY: Duration = Duration::from_millis(50);
/// Between two deliveries while PostgreSQL is not to be had.
const OUTAGE_DELAY: Duration = Duration::from_secs(1);

/// Both queues and what consumes them.
pub(crate) struct LocalQueue {
    records: Records,
    dead_letters: LetterFile,
    prompt: mpsc::Sender<Message>,
    prompted: Mutex<mpsc::Receiver<Message>>,
    /// Messages about bookings that were taken and are not done with.
    bookings: Arc<AtomicU64>,
}

/// Takes messages at once and delivers them soon: for handlers, which must not wait for PostgreSQL. All that they send
/// is about bookings.
pub(crate) struct Prompt {
    messages: mpsc::Sender<Message>,
    bookings: Arc<AtomicU64>,
}

/// Takes messages only once they are written: for the relay, which forgets what was taken.
pub(crate) struct Delivered(Arc<LocalQueue>);

impl LocalQueue {
    pub(crate) fn new(records: Records, dead_letters: LetterFile) -> Self {
        let (prompt, prompted) = mpsc::channel(PROMPT_MESSAGES);
        Self { records, dead_letters, prompt, prompted: Mutex::new(prompted), bookings: Arc::default() }
    }

    pub(crate) fn prompt(&self) -> Prompt {
        Prompt { messages: self.prompt.clone(), bookings: Arc::clone(&self.bookings) }
    }

    /// Where what is delivered is written.
    pub(crate) fn records(&self) -> &Records {
        &self.records
    }

    pub(crate) fn delivered(self: &Arc<Self>) -> Delivered {
        Delivered(Arc::clone(self))
    }

    /// Deliver what handlers send, until the system stops.
    pub(crate) async fn deliver_prompt(self: Arc<Self>, mut stopping: watch::Receiver<bool>) {
        let mut prompted = self.prompted.lock().await;
        let mut batch = Vec::new();
        loop {
            tokio::select! {
                received = prompted.recv_many(&mut batch, MAX_BATCH_MESSAGES) => if received == 0 { return },
                _ = stopping.wait_for(|stop| *stop) => return,
            }
            let messages: Vec<&Message> = batch.iter().collect();
            // What is refused is in the journal too: the relay finds it poisoned.
            while self.deliver_once(&messages).await.is_none() {
                tokio::select! {
                    () = tokio::time::sleep(OUTAGE_DELAY) => {}
                    _ = stopping.wait_for(|stop| *stop) => return,
                }
            }
            self.bookings.fetch_sub(count(batch.len()), Ordering::Relaxed);
            batch.clear();
        }
    }

    /// Hand messages to the persist handler once; which of them it took.
    async fn deliver_once(&self, messages: &[&Message]) -> Option<Vec<bool>> {
        let event = sqs_event(messages.iter().map(|message| message.body.clone()));
        match persist::persist(&self.records, event).await {
            Ok(response) => {
                let failed = |at: usize| {
                    response
                        .batch_item_failures
                        .iter()
                        .any(|failure| failure.item_identifier == at.to_string())
                };
                Some((0..messages.len()).map(|at| !failed(at)).collect())
            }
            Err(error) => {
                tracing::warn!(%error, "persist failed; its facts wait in the journal");
                None
            }
        }
    }

    /// Hand messages over until each is written or has been refused too often; which are off the journal now.
    async fn deliver(&self, messages: &[Message]) -> Vec<bool> {
        let mut taken = vec![false; messages.len()];
        for _ in 0..DELIVERIES {
            let left: Vec<usize> = (0..messages.len()).filter(|at| !taken[*at]).collect();
            let batch: Vec<&Message> = left.iter().map(|at| &messages[*at]).collect();
            // PostgreSQL is not to be had: that is no message's fault.
            let Some(written) = self.deliver_once(&batch).await else { return taken };
            for (at, written) in left.into_iter().zip(written) {
                taken[at] = written;
            }
            if taken.iter().all(|taken| *taken) {
                return taken;
            }
            tokio::time::sleep(RETRY_DELAY).await;
        }
        for (message, taken) in messages.iter().zip(&mut taken).filter(|(_, taken)| !**taken) {
            *taken = self.bury(message);
        }
        taken
    }

    /// Put a message that is refused again and again where it can be looked at.
    fn bury(&self, message: &Message) -> bool {
        let written = self.dead_letters.append(&message.body);
        if let Err(error) = &written {
            tracing::error!(%error, "a message is refused and stays in the journal");
        } else {
            tracing::error!(file = %self.dead_letters.path().display(), "a message went to the dead letters");
            metrics::DEAD_LETTERS.add(1);
        }
        written.is_ok()
    }
}

fn count(messages: usize) -> u64 {
    u64::try_from(messages).unwrap_or(u64::MAX)
}

/// Bodies as SQS hands them to a Lambda; a message's id is its position.
pub(crate) fn sqs_event(bodies: impl IntoIterator<Item = String>) -> SqsEvent {
    let record = |(at, body): (usize, String)| {
        let mut record = SqsMessage::default();
        record.message_id = Some(at.to_string());
        record.body = Some(body);
        record
    };
    let mut event = SqsEvent::default();
    event.records = bodies.into_iter().enumerate().map(record).collect();
    event
}

impl Outbox for Prompt {
    fn send(&self, _: Queue, messages: Vec<Message>) -> BoxFuture<'_, Vec<bool>> {
        let take = |message| {
            // Counted first: who delivers may be done with it before this line ends.
            self.bookings.fetch_add(1, Ordering::Relaxed);
            let taken = self.messages.try_send(message).is_ok();
            if !taken {
                self.bookings.fetch_sub(1, Ordering::Relaxed);
            }
            taken
        };
        futures::future::ready(messages.into_iter().map(take).collect()).boxed()
    }
}

impl Outbox for Delivered {
    fn send(&self, queue: Queue, messages: Vec<Message>) -> BoxFuture<'_, Vec<bool>> {
        let bookings = if queue == Queue::Bookings { count(messages.len()) } else { 0 };
        async move {
            self.0.bookings.fetch_add(bookings, Ordering::Relaxed);
            let taken = self.0.deliver(&messages).await;
            self.0.bookings.fetch_sub(bookings, Ordering::Relaxed);
            taken
        }
        .boxed()
    }
}

impl Backlog for LocalQueue {
    fn bookings(&self) -> BoxFuture<'_, Result<u64, BacklogError>> {
        futures::future::ready(Ok(self.bookings.load(Ordering::Relaxed))).boxed()
    }
}
