//! Between API Gateway and the sale: HTTP API v2 events become commands, outcomes become statuses and bodies.
//!
//! Flow of one request: [`accept`] the event, [`answer`] finds its route and runs the handler, which parses
//! with [`request`], asks the store, and writes with [`response`]; every refusal goes through the one table in
//! [`failure`]. Nothing here knows Redis, reads the environment or does I/O but [`run`].

pub mod access;
pub mod failure;
pub mod key;
pub mod payment;
pub mod request;
pub mod response;
pub mod routes;
pub mod socket;

mod answer;
mod body;
mod cors;
mod event;
mod language;
mod query;
#[cfg(test)]
mod tests;

pub use access::{AccessClaims, AccessKeys};
pub use answer::answer;
pub use event::{
    HttpEvent, HttpEventAuthorizer, HttpEventClaims, HttpEventContext, HttpEventJwt, HttpEventLine, accept,
    into_event, run,
};
pub use failure::Failure;
pub use http::HeaderName;
pub use key::{KeyRing, PlaceKey, Window};
pub use lambda_http::{Body, Request, Response};
pub use payment::PaymentKeys;
pub use request::Gate;
pub use response::{Answer, Asker, Success};
pub use routes::Call;
