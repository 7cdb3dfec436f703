//! PostgreSQL: what became true, kept for good. [`Records::write`] takes facts from the queues, the readers
//! give audits, exports and draws what was written, [`migrate`] makes the tables.
//!
//! | table | a row is | key | written when |
//! |---|---|---|---|
//! | `facts` | a fact of the journal | event, epoch, stream id | once, whoever delivers it how often |
//! | `reservations` | a reservation as of its highest version | reservation id | a fact carries a higher version |
//! | `reservation_places` | a named seat, or a general section's places, of a reservation | event, reservation id, part, position | its reservation is first written; `kept` falls when it is given back |
//! | `events` | a sale's newest definition | event | a fact carries a higher version |
//! | `schema_migrations` | an applied migration | version | [`migrate`] applied it |
//!
//! Guards of the database itself: one owner a seat while it is kept (`one_owner_a_seat`), one reservation a
//! token (`one_reservation_a_token`), known statuses, no negative amounts, no empty counts. A fact that breaks
//! one is refused alone and is a finding; nothing else waits for it.

mod connection;
mod migrations;
mod read;
mod rows;
mod statements;
mod tls;
mod write;

pub use connection::{Records, RecordsConfig};
pub use migrations::{MigrateError, migrate};
pub use read::{MAX_PAGE_ROWS, RecordedDefinition, SectionCount, StatusCount};
pub use write::{RefusedFact, WriteResult};

/// Why PostgreSQL could not be asked: nothing may be taken for written.
#[derive(Debug, thiserror::Error)]
pub enum RecordsError {
    /// The URL is none.
    #[error("the database URL is malformed: {0}")]
    Url(#[source] tokio_postgres::Error),
    /// The certificates to trust cannot be read.
    #[error("the certificates that TLS to PostgreSQL should trust: {0}")]
    Certificates(String),
    /// No connection could be had.
    #[error("PostgreSQL cannot be reached: {0}")]
    Connect(#[source] deadpool_postgres::PoolError),
    /// It did not answer in the configured time.
    #[error("PostgreSQL did not answer in time")]
    TimedOut,
    /// A statement failed for another reason than its data.
    #[error("PostgreSQL: {}", describe(.0))]
    Statement(#[source] tokio_postgres::Error),
    /// A row holds what this version cannot read.
    #[error("{table}: a row cannot be read: {reason}")]
    Unreadable {
        /// The table.
        table: &'static str,
        /// What is wrong.
        reason: String,
    },
}

impl From<tokio_postgres::Error> for RecordsError {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::Statement(error)
    }
}

/// The server's own words. Its details can hold tokens (whole rows), so only the taken seat's is passed on.
fn describe(error: &tokio_postgres::Error) -> String {
    let Some(refusal) = error.as_db_error() else { return error.to_string() };
    match (refusal.constraint(), refusal.detail()) {
        (Some("one_owner_a_seat"), Some(detail)) => format!("{}: {detail}", refusal.message()),
        _ => format!("{} ({})", refusal.message(), refusal.code().code()),
    }
}
