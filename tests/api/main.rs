//! Every endpoint, every outcome: requests as API Gateway sends them, real Redis, the sale's clock driven.
#![cfg(test)]

mod admission;
mod authorizer;
mod booking;
mod input;
mod keys;
mod line;
mod round_trips;
mod seats;
mod whole;
