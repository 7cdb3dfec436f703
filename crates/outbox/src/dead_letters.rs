//! Messages that were refused too often, out of the way of all others.

use domain::Millis;
use futures::future::BoxFuture;

use crate::Queue;

/// Messages that one call looks at, at most.
pub const MAX_DEAD_LETTERS: usize = 1_000;

/// A message that was refused too often.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeadLetter {
    /// Names it while it lies there.
    pub id: String,
    /// Which queue it comes from; unknown where both share a place.
    pub queue: Option<Queue>,
    /// When it was sent first, where that is known.
    pub sent_at: Option<Millis>,
    /// What it says.
    pub body: String,
}

/// What became of messages that were to be moved back.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Replayed {
    /// The ids of those that were; whoever reads the queue judges them once more.
    pub replayed: Vec<String>,
    /// The ids of those that stay where they are.
    pub kept: Vec<String>,
}

/// Why they could not be looked at, or only some of them.
#[derive(Debug, thiserror::Error)]
#[error("dead letters: {0}")]
pub struct DeadLettersError(pub String);

/// A place of dead letters.
pub trait DeadLetters: Send + Sync {
    /// What lies there, [`MAX_DEAD_LETTERS`] at most. Looking moves nothing.
    fn list(&self) -> BoxFuture<'_, Result<Vec<DeadLetter>, DeadLettersError>>;

    /// Moves those back to their queue that `is_chosen` names by their ids, of [`MAX_DEAD_LETTERS`] at most. Each is sent
    /// before it is deleted: whatever happens in between, none is lost, and one may come twice, which does no harm.
    fn replay<'a>(
        &'a self,
        is_chosen: &'a (dyn Fn(&str) -> bool + Sync),
    ) -> BoxFuture<'a, Result<Replayed, DeadLettersError>>;
}
