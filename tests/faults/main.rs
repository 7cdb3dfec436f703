//! What is promised under faults: servers out of reach, slow or restarted, processes killed, connections cut. The table of
//! it: docs/reliability.md.
#![cfg(test)]

// Of another target's: a served system and its callers.
#[allow(dead_code, reason = "the tests of the system use more of it")]
#[path = "../system/http.rs"]
mod http;
#[allow(dead_code, reason = "the tests of the system use more of it")]
#[path = "../system/serving.rs"]
mod serving;

mod capacity;
mod clocks;
mod concurrency;
mod dead_letters;
mod failover;
mod outbox;
mod postgres;
mod pressure;
mod proxy;
mod redis;
mod soak;
mod sqs;
mod world;
