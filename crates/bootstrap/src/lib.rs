//! What every function is built from: its configuration, its logs, and the state that all of its requests share.

pub mod config;
mod state;
mod telemetry;

pub use metrics;
pub use state::{Answered, State, failure};
pub use telemetry::start as start_telemetry;
