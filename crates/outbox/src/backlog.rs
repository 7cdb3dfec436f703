//! How much waits for PostgreSQL.

use futures::future::BoxFuture;

/// Why nobody can say how much waits.
#[derive(Debug, thiserror::Error)]
#[error("how much waits in the queue of bookings is not known: {0}")]
pub struct BacklogError(pub String);

/// Looks at the queue of bookings.
pub trait Backlog: Send + Sync {
    /// Messages that wait there or are being worked on. SQS counts roughly, and what was sent within the last minute may
    /// not be counted yet: one 0 does not prove that nothing is there.
    fn bookings(&self) -> BoxFuture<'_, Result<u64, BacklogError>>;
}
