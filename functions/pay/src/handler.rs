//! Take what the payment provider says.

use bootstrap::Answered;
use domain::Millis;
use domain::outcome::Refusal;
use gateway::{Answer, Body, Failure, Gate, Request, Response, answer, request, response};
use outbox::Outbox;
use store::Store;

/// What this function has. It signs nothing and draws nothing, so it has no other secret than the provider's.
pub struct PayState<'a> {
    /// Redis.
    pub store: &'a Store,
    /// Knows the provider's signature.
    pub gate: &'a Gate,
    /// Where facts go before anybody is told.
    pub outbox: &'a dyn Outbox,
}

/// Answers a request to this function.
pub async fn handle(state: PayState<'_>, request: Request) -> Response<Body> {
    let (state, request) = (&state, &request);
    answer(state.gate, "pay", request, |_| pay(state, request)).await
}

async fn pay(PayState { store, gate, outbox }: &PayState<'_>, request: &Request) -> Answer {
    let pay = request::pay(gate, request, Millis::now())?;
    let (paid, fact) = match store.pay(&pay).await {
        // It may be here in a moment, as after a failover: the provider asks again.
        Ok(Err(refusal @ (Refusal::EventNotFound | Refusal::ReservationNotFound))) => {
            return Err(Failure::unavailable(&format!("a payment for {}: {refusal:?}", pay.reservation)));
        }
        answered => answered.answered()?,
    };
    outbox::send_first(*outbox, fact).await;
    response::paid(&pay.reservation, &paid)
}
