//! Real servers for tests: [`Redis`], [`Postgres`] and [`Sqs`], each a child process on a free port of 127.0.0.1
//! with a folder of its own.
//!
//! - `start()` makes a server for the caller alone; it ends when the value is dropped.
//! - `shared()` is one server for all tests of a process, or the one that the environment names. Tests keep apart
//!   by event id, database and queue. It ends with the process, however that ends.
//!
//! A server that cannot be had is a failed test: these functions panic and say what is missing.
//!
//! | environment variable | meaning |
//! |---|---|
//! | `JARI_TEST_REDIS` | `single` (default) or `cluster`: what [`Topology::chosen`] is |
//! | `JARI_TEST_REDIS_URL` | a running Redis of the chosen topology, used as the shared one |
//! | `JARI_TEST_POSTGRES_URL` | a running PostgreSQL, used as the shared one; its user may create databases |
//! | `JARI_TEST_SQS_URL` | a running SQS, used as the shared one |
//! | `JARI_VENV` | the Python environment with moto, by default `target/venv` |

#![allow(
    clippy::panic,
    clippy::expect_used,
    clippy::missing_panics_doc,
    clippy::needless_pass_by_value,
    reason = "this is test code: what fails here fails a test"
)]

mod app;
pub mod contract;
mod door;
mod function;
mod network;
mod postgres;
mod process;
mod proxy;
mod redis;
mod scratch;
mod sqs;
mod wait;

pub use app::{
    ACCESS_TOKEN_KEY, Answer, App, Call, MASTER_KEY, OPENS_AT, PAYMENT_KEY, TakesAll, access, fresh_event,
    functions, gate, handled, has_succeeded, ripe, sale, signature,
};
pub use door::{Door, Protected};
pub use function::{Function, Invoked, binary};
pub use postgres::Postgres;
pub use proxy::{Fault, FaultProxy, Verdict, Way};
pub use redis::{AppendOnly, Redis, Topology};
pub use scratch::Scratch;
pub use sqs::{Sqs, venv};
pub use wait::wait_until;

/// A server of a given kind that is already running, as the environment names it.
fn given(variable: &str) -> Option<String> {
    std::env::var(variable).ok().filter(|url| !url.is_empty())
}
