//! A function that does nothing: what every cold start costs at least.

use std::convert::Infallible;

use lambda_http::{Request, service_fn};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_http::Error> {
    lambda_http::run(service_fn(async |_: Request| Ok::<_, Infallible>(""))).await
}
