//! Every endpoint, every outcome: requests as API Gateway sends them, real Redis, the sale's clock driven.
#![cfg(test)]

mod admission;
mod booking;
mod input;
mod line;
mod push;
mod round_trips;
mod seats;
mod whole;
