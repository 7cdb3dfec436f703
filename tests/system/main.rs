//! The whole system: what steps write down, how it reaches PostgreSQL, serving, crowds, audits.
#![cfg(test)]

mod audit;
mod contention;
mod contract;
mod crowd;
mod delete;
mod deliver;
mod front_door;
mod http;
mod journal;
mod linear;
mod metrics;
mod operator;
mod outage;
mod protect;
mod push;
mod rebuild;
mod repair;
mod secrets;
mod serve;
mod serving;
mod socket;
mod sockets;
mod sqs;
mod ten_thousand;
