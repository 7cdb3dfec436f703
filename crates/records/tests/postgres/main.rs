//! Everything against a real server, which this binary starts for itself.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a step that fails fails its test")]

mod facts;
mod migrate;
mod read;
mod server;
mod throughput;
mod tls;
mod write;
