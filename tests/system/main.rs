//! The whole system: what steps write down, how it reaches PostgreSQL, serving, crowds, audits.
#![cfg(test)]

mod audit;
mod contention;
mod contract;
mod crowd;
mod deliver;
mod front_door;
mod http;
mod journal;
mod linear;
mod protect;
mod secrets;
mod serve;
mod serving;
mod sqs;
