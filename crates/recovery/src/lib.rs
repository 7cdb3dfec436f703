//! Puts back into Redis what PostgreSQL knows. [`repair`] brings reservations back that a failover lost, [`rebuild`] a
//! whole sale of which Redis knows nothing any more. Both may be killed and run again.

mod editions;
mod line;
mod rebuild;
mod repair;

pub use rebuild::{Progress, RebuildReport, Rebuilt, rebuild};
pub use repair::{Conflict, RepairReport, repair};

/// Why what was begun could not go on; beginning again is safe.
#[derive(Debug, thiserror::Error)]
pub enum RecoveryError {
    /// Redis.
    #[error(transparent)]
    Store(#[from] store::StoreError),
    /// PostgreSQL.
    #[error(transparent)]
    Records(#[from] records::RecordsError),
}
