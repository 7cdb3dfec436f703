//! API Gateway's sockets.

use std::fmt;
use std::time::Duration;

use aws_config::retry::RetryConfig;
use aws_config::timeout::TimeoutConfig;
use aws_sdk_apigatewaymanagement::Client;
use aws_sdk_apigatewaymanagement::config::{Builder, Config};
use aws_sdk_apigatewaymanagement::error::DisplayErrorContext;
use aws_sdk_apigatewaymanagement::primitives::Blob;
use domain::ConnectionId;
use futures::FutureExt;
use futures::future::BoxFuture;
use tokio::sync::OnceCell;

use crate::push::{Posted, Sockets};
use crate::sdk;

const CONNECT_TIMEOUT: Duration = Duration::from_millis(500);
/// All of one text's tries: a slow socket holds up only the few that come behind it.
const POST_TIMEOUT: Duration = Duration::from_secs(2);
/// Only throttling and broken connections are worth another try.
const MAX_ATTEMPTS: u32 = 2;
/// HTTP's status of a socket that is no more.
const GONE: u16 = 410;

/// Sends through a WebSocket API's `@connections`. Connects when it first sends.
pub struct ApiSockets {
    endpoint: String,
    client: OnceCell<Client>,
}

impl fmt::Debug for ApiSockets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ApiSockets").field("endpoint", &self.endpoint).finish_non_exhaustive()
    }
}

impl ApiSockets {
    /// The sockets of the API at `https://{api}.execute-api.{region}.amazonaws.com/{stage}`.
    pub fn new(endpoint: String) -> Self {
        Self { endpoint, client: OnceCell::new() }
    }

    async fn client(&self) -> &Client {
        let connect = async || {
            let shared = sdk().load().await;
            Client::from_conf(configured(&shared, &self.endpoint))
        };
        self.client.get_or_init(connect).await
    }
}

fn configured(shared: &aws_config::SdkConfig, endpoint: &str) -> Config {
    let timeouts = TimeoutConfig::builder().connect_timeout(CONNECT_TIMEOUT).operation_timeout(POST_TIMEOUT);
    Builder::from(shared)
        .endpoint_url(endpoint)
        .timeout_config(timeouts.build())
        .retry_config(RetryConfig::standard().with_max_attempts(MAX_ATTEMPTS))
        .build()
}

impl Sockets for ApiSockets {
    fn post<'a>(&'a self, connection: &'a ConnectionId, body: &'a str) -> BoxFuture<'a, Posted> {
        async move {
            let request = self.client().await.post_to_connection().connection_id(connection.as_str());
            match request.data(Blob::new(body)).send().await {
                Ok(_) => Posted::Sent,
                Err(error) if error.raw_response().is_some_and(|answer| answer.status().as_u16() == GONE) => {
                    Posted::Gone
                }
                Err(error) => {
                    tracing::warn!(error = %DisplayErrorContext(&error), "a socket was not told");
                    Posted::Failed
                }
            }
        }
        .boxed()
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader, Read, Write};
    use std::net::{TcpListener, TcpStream};
    use std::time::Instant;

    use super::*;

    /// Answers by what the socket is called, as `@connections` does; whoever is called `silent` never gets one.
    fn serve(stream: TcpStream) {
        let mut stream = BufReader::new(stream);
        loop {
            let (mut head, mut line) = (String::new(), String::new());
            while stream.read_line(&mut line).unwrap_or(0) > 2 {
                head += &line.to_lowercase();
                line.clear();
            }
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
            let Some(length) = length.and_then(|length| length.parse().ok()) else { return };
            let mut body = vec![0; length];
            stream.read_exact(&mut body).unwrap();
            // The SDK's versions differ in whether they escape the sign.
            assert!(head.replace("%40", "@").starts_with("post /live/@connections/"), "{head}");
            assert_eq!(body, b"{\"status\":\"ready\"}");
            let status = match head.split(['/', ' ']).nth(4) {
                Some("there") => "200 OK",
                Some("gone") => "410 Gone",
                Some("refused") => "403 Forbidden",
                _ => return std::thread::sleep(2 * POST_TIMEOUT),
            };
            write!(stream.get_mut(), "HTTP/1.1 {status}\r\ncontent-length: 0\r\n\r\n").unwrap();
        }
    }

    #[tokio::test]
    async fn only_what_the_api_says_is_gone_is_gone_and_nobody_waits_for_the_silent() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let endpoint = format!("http://{}/live", listener.local_addr().unwrap());
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                std::thread::spawn(|| serve(stream.unwrap()));
            }
        });
        let shared = sdk().region("eu-west-1").test_credentials();
        let client = Client::from_conf(configured(&shared.load().await, &endpoint));
        let sockets = ApiSockets { endpoint, client: OnceCell::new_with(Some(client)) };
        let started = Instant::now();
        let post = async |name: &str| sockets.post(&name.parse().unwrap(), r#"{"status":"ready"}"#).await;
        let posted = futures::join!(post("there"), post("gone"), post("refused"), post("silent"));
        assert_eq!(posted, (Posted::Sent, Posted::Gone, Posted::Failed, Posted::Failed));
        assert!(started.elapsed() < 2 * POST_TIMEOUT, "{:?}", started.elapsed());
    }
}
