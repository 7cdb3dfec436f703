//! Every endpoint, every outcome: requests as API Gateway sends them, real Redis, the sale's clock driven.
#![cfg(test)]

mod access;
mod accounts;
mod admission;
mod authorizer;
mod booking;
mod fairness;
mod idempotency;
mod input;
mod keyed;
mod keys;
mod line;
mod memory;
mod payment;
mod pressure;
mod push;
mod recovery;
mod round_trips;
mod seats;
mod topologies;
mod whole;
