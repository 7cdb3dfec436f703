//! A system behind a front door that knows its callers: with an origin secret and a trusted header, as deployments
//! behind `CloudFront` are.

use std::time::Duration;

use serde_json::{Value, json};
use server::Running;
use support::{Answer, wait_until};

use crate::http::{Connection, request};
use crate::serving::{Folder, Process};

pub(crate) const ORIGIN_SECRET: &str = "an origin secret for the system's tests";
const ACCOUNT_HEADER: &str = "x-buyer";

/// A served system and its folder.
pub(crate) struct Behind {
    pub(crate) folder: Folder,
    pub(crate) running: Running,
    _process: Process,
}

impl Behind {
    /// With the small sale as `change` makes it.
    pub(crate) async fn start(change: impl FnOnce(&mut Value)) -> Self {
        let folder = Folder::with_sale(change);
        let variables = [("ORIGIN_SECRET", ORIGIN_SECRET), ("TRUSTED_ACCOUNT_HEADER", ACCOUNT_HEADER)];
        let mut process = folder.spawn_with("serve.log", &variables);
        let running = folder.running(&mut process).await;
        Self { folder, running, _process: process }
    }

    /// One connection of somebody's.
    pub(crate) async fn visitor(&self, account: Option<&str>) -> Visitor {
        let address = self.running.url.trim_start_matches("http://");
        let connection = Connection::open(address).await.expect("the server takes a connection");
        Visitor { connection, account: account.map(str::to_owned), address: fastrand::u32(..) }
    }

    /// A token in a live session, and its access token.
    pub(crate) async fn let_in(&self, account: Option<&str>) -> (String, String) {
        let mut visitor = self.visitor(account).await;
        let joined = visitor.post("/api/queue/join", &json!({})).await;
        let token = joined.data()["token"].as_str().expect("a token").to_owned();
        let mut access_token = None;
        wait_until(Duration::from_secs(30), "a place is let in", async || {
            let polled = visitor.send("GET", &format!("/api/status/poll?token={token}"), &[], None).await;
            access_token = polled.data()["accessToken"].as_str().map(str::to_owned);
            access_token.is_some()
        })
        .await;
        (token, access_token.expect("an access token"))
    }
}

/// Somebody on one connection, with an address of their own, so that limits by address meet nobody else.
pub(crate) struct Visitor {
    connection: Connection,
    account: Option<String>,
    address: u32,
}

impl Visitor {
    pub(crate) async fn post(&mut self, path: &str, body: &Value) -> Answer {
        self.send("POST", path, &[], Some(body)).await
    }

    /// The answer to a request as the front door passes it on.
    pub(crate) async fn send(
        &mut self,
        method: &str,
        target: &str,
        headers: &[(&str, &str)],
        body: Option<&Value>,
    ) -> Answer {
        let [a, b, c, d] = self.address.to_be_bytes();
        let mut known = format!("\r\nx-origin-secret: {ORIGIN_SECRET}\r\n");
        known.extend(["cloudfront-viewer-address: ", &format!("{a}.{b}.{c}.{d}:443"), "\r\n"]);
        for (name, value) in
            headers.iter().copied().chain(self.account.as_deref().map(|account| (ACCOUNT_HEADER, account)))
        {
            known.extend([name, ": ", value, "\r\n"]);
        }
        let request = request(method, target, body).replacen("\r\n", &known, 1);
        self.connection.write(request.as_bytes()).await.expect("the server reads");
        self.connection.read(method != "HEAD").await.expect("an answer")
    }
}
