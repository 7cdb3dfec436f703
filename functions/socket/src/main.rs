//! The socket Lambda: invoked by the WebSocket API and by the queue of gone sockets.

use bootstrap::{State, metrics};
use lambda_runtime::{Error, LambdaEvent, service_fn};
use socket::Event;

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let state = State::from_env()?;
    let handle = async |event: LambdaEvent<Event>| {
        Ok::<_, Error>(metrics::flushed(socket::handle(&state, event.payload)).await)
    };
    lambda_runtime::run(service_fn(handle)).await.map_err(anyhow::Error::from_boxed)
}
