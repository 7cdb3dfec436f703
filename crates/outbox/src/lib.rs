//! Facts as messages, on their way from the journal to PostgreSQL.
//!
//! [`pack`] turns facts into messages, an [`Outbox`] hands messages to a queue, [`unpack`] turns a message's
//! body into facts again. [`SqsOutbox`] (feature `sqs`) is the outbox of the deployed system.
//!
//! What is refused too often ends among the [`DeadLetters`]; how much waits, a [`Backlog`] tells.
//!
//! What open sockets are told goes the same way: [`Pushes`], [`Sockets`], [`Departures`].
//!
//! | bound | value |
//! |---|---|
//! | body of a message | [`MAX_BODY_BYTES`], but for a single fact that is longer |
//! | messages of a batch | [`MAX_BATCH_MESSAGES`] |
//! | bodies of a batch, summed | [`MAX_BATCH_BYTES`] |

use domain::fact::Fact;
use futures::future::BoxFuture;

mod backlog;
mod dead_letters;
mod pack;
mod push;
#[cfg(feature = "sqs")]
mod queue;
#[cfg(any(feature = "sqs", feature = "sockets"))]
mod sdk;
#[cfg(feature = "sockets")]
mod sockets;
#[cfg(feature = "sqs")]
mod sqs;
#[cfg(feature = "sqs")]
mod sqs_dead_letters;
mod unpack;

pub use backlog::{Backlog, BacklogError};
pub use dead_letters::{DeadLetter, DeadLetters, DeadLettersError, MAX_DEAD_LETTERS, Replayed};
pub use pack::{Carried, MAX_BATCH_BYTES, MAX_BATCH_MESSAGES, MAX_BODY_BYTES, Message, batches, pack};
pub use push::{
    Departures, Gone, PUSHES_A_MESSAGE, Posted, Push, Pushes, Sockets, pack_gone, pack_pushes, unpack_gone,
    unpack_pushes,
};
#[cfg(feature = "sqs")]
pub use queue::SqsQueue;
#[cfg(any(feature = "sqs", feature = "sockets"))]
pub use sdk::sdk;
#[cfg(feature = "sockets")]
pub use sockets::ApiSockets;
#[cfg(feature = "sqs")]
pub use sqs::{SqsConfig, SqsOutbox};
#[cfg(feature = "sqs")]
pub use sqs_dead_letters::{DeadLetterQueue, SqsDeadLetters};
pub use unpack::{BadFact, MalformedBody, Unpacked, unpack};

/// Where messages go. The line's facts have a queue of their own, so that bookings never wait behind them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Queue {
    /// Facts that change a reservation.
    Bookings,
    /// All others.
    Line,
}

impl Queue {
    /// The queue's word in logs and metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Bookings => "bookings",
            Self::Line => "line",
        }
    }
}

/// A way to the queues.
pub trait Outbox: Send + Sync {
    /// Hands messages to a queue. Answers, message by message in their order, whether the queue took it.
    /// A queue that cannot be reached is logged and took nothing: the facts stay in the journal, and the
    /// relay sends them again. A message may have been taken although the answer is `false`.
    fn send(&self, queue: Queue, messages: Vec<Message>) -> BoxFuture<'_, Vec<bool>>;
}

/// Hands one fact to its queue before anybody is told what it says, so that what was answered survives a loss of
/// Redis. What the queue does not take stays in the journal, from where the relay sends it.
pub async fn send_first(outbox: &dyn Outbox, fact: Option<Fact>) {
    for (queue, messages) in pack(fact) {
        outbox.send(queue, messages).await;
    }
}
