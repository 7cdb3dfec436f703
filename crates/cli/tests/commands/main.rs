//! Commands as they are typed, against a system that `jari serve` runs.
#![allow(clippy::panic, clippy::expect_used, reason = "this is test code: what fails here fails a test")]

mod crowd;
mod dlq;
mod function;
mod import;
mod lambda;
mod operations;
mod plan;
mod preflight;
mod served;
mod watch;
