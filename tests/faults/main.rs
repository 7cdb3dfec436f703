//! What is promised under faults: servers out of reach, slow or restarted, processes killed, connections cut. The table of
//! it: docs/reliability.md.
#![cfg(test)]

mod dead_letters;
mod failover;
mod outbox;
mod postgres;
mod pressure;
mod proxy;
mod sqs;
mod world;
