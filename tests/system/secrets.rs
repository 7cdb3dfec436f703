//! What is secret stays out of logs and errors: a whole run at the chattiest level, searched for all that it used.

use std::time::Duration;

use domain::Millis;
use serde_json::{Value, json};
use support::{Answer, signature, wait_until};

use crate::http::Connection;
use crate::serving::Folder;

const ORIGIN_SECRET: &str = "the front door's secret, which nobody else may know";

/// A caller behind the front door that keeps in mind every secret it sends and is told.
struct Visitor {
    connection: Connection,
    account: &'static str,
    bearer: Option<String>,
    secrets: Vec<String>,
}

impl Visitor {
    async fn send(
        &mut self,
        method: &str,
        target: &str,
        more: &[(&str, &str)],
        body: Option<&Value>,
    ) -> Answer {
        let body = body.map(Value::to_string).unwrap_or_default();
        let mut request = format!("{method} {target} HTTP/1.1\r\nhost: localhost\r\n");
        let mut add = |name: &str, value: &str| request.extend([name, ": ", value, "\r\n"]);
        add("x-origin-secret", ORIGIN_SECRET);
        add("x-account", self.account);
        add("content-type", "application/json");
        add("content-length", &body.len().to_string());
        if let Some(bearer) = &self.bearer {
            add("authorization", &format!("Bearer {bearer}"));
        }
        for (name, value) in more {
            add(name, value);
        }
        self.connection.write(format!("{request}\r\n{body}").as_bytes()).await.expect("the server reads");
        let answer = self.connection.read(true).await.expect("an answer");
        if answer.status < 400 {
            for name in ["token", "accessToken", "key"] {
                self.secrets.extend(answer.json["data"][name].as_str().map(str::to_owned));
            }
        } else {
            let told = self.secrets.iter().find(|secret| answer.text.contains(*secret));
            assert_eq!(told, None, "an error tells a secret: {}", answer.text);
        }
        answer
    }
}

#[tokio::test]
async fn no_log_line_and_no_error_tells_a_secret() {
    let folder = Folder::with_sale(|sale| {
        sale["payment"] = json!({ "mode": "deferred", "dueAfterSeconds": 600, "currency": "KRW" });
    });
    let mut process = folder.spawn_with(
        "serve.log",
        &[("LOG_LEVEL", "trace"), ("ORIGIN_SECRET", ORIGIN_SECRET), ("TRUSTED_ACCOUNT_HEADER", "x-account")],
    );
    let running = folder.running(&mut process).await;
    let connection = Connection::open(running.url.trim_start_matches("http://")).await.expect("a connection");
    let mut visitor = Visitor { connection, account: "kim", bearer: None, secrets: Vec::new() };
    let pem = folder.read("access-token-key.pem");
    visitor.secrets.extend(pem.lines().filter(|line| !line.starts_with('-')).map(str::to_owned));
    visitor.secrets.extend([
        ORIGIN_SECRET.to_owned(),
        running.master_key.clone(),
        running.payment_key.clone(),
    ]);

    let joined = visitor.send("POST", "/api/queue/join", &[], None).await;
    let token = joined.data()["token"].as_str().expect("a token").to_owned();
    let poll = format!("/api/status/poll?token={token}");
    let mut access_token = None;
    wait_until(Duration::from_secs(20), "the place is let in", async || {
        let polled = visitor.send("GET", &poll, &[], None).await;
        access_token = polled.json["data"]["accessToken"].as_str().map(str::to_owned);
        access_token.is_some()
    })
    .await;
    let again = json!({ "token": token, "key": joined.data()["key"] });
    assert_eq!(visitor.send("POST", "/api/queue/rejoin", &[], Some(&again)).await.status, 200);
    // Refused in every way that has something to tell.
    visitor.bearer = access_token.as_ref().map(|good| format!("{}x", &good[..good.len() - 1]));
    visitor.secrets.extend(visitor.bearer.clone());
    assert_eq!(visitor.send("GET", "/trains/search", &[], None).await.status, 401);
    visitor.bearer = access_token;
    let wrong = json!({ "token": format!("{token}0"), "count": 1 });
    assert_eq!(visitor.send("POST", "/api/seat/select", &[], Some(&wrong)).await.status, 400);
    assert_eq!(visitor.send("GET", &format!("/nowhere/{token}?token={token}"), &[], None).await.status, 404);
    let key = [("idempotency-key", "a name that is nobody else's matter")];
    let count = json!({ "count": 1 });
    assert_eq!(visitor.send("POST", "/api/seat/select", &key, Some(&count)).await.status, 400, "spaces");
    let key = [("idempotency-key", "5f0c9b9e-name-of-a-request")];
    visitor.secrets.push(key[0].1.to_owned());
    assert_eq!(visitor.send("POST", "/api/seat/select", &key, Some(&count)).await.status, 200);
    let other = json!({ "count": 2 });
    assert_eq!(visitor.send("POST", "/api/seat/select", &key, Some(&other)).await.status, 409);
    let booked = visitor.send("POST", "/api/booking", &[], None).await;
    assert_eq!(booked.status, 201);
    let reservation = booked.data()["reservationId"].clone();
    let pay = json!({
        "paymentId": "pay_8xk2", "reservationId": reservation, "status": "PAID",
        "amount": booked.data()["amount"], "currency": "KRW",
    });
    let (seconds, body) = (Millis::now().0 / 1_000, pay.to_string());
    let signed = signature(&running.payment_key, seconds, &body);
    visitor.secrets.push(signed.split_once("v1=").expect("a signature").1.to_owned());
    let late = signature(&running.payment_key, seconds - 900, &body);
    assert_eq!(
        visitor.send("POST", "/api/payment/webhook", &[("jari-signature", &late)], Some(&pay)).await.status,
        401
    );
    assert_eq!(
        visitor.send("POST", "/api/payment/webhook", &[("jari-signature", &signed)], Some(&pay)).await.status,
        200
    );
    // A failure inside: its log line must be there, without what led to it.
    let mut unknown = pay.clone();
    unknown["reservationId"] = json!("no-such-sale.0b1f6a52-6d3c-4f0e-9a55-2f6f8a1f7c11");
    let signed = signature(&running.payment_key, seconds, &unknown.to_string());
    let unavailable =
        visitor.send("POST", "/api/payment/webhook", &[("jari-signature", &signed)], Some(&unknown)).await;
    assert_eq!(unavailable.status, 503);

    process.signal("INT");
    assert!(process.ends().await.success());
    let said = process.said();
    assert!(said.contains("WARN") && said.contains("no-such-sale"), "the log was written: {said}");
    for secret in &visitor.secrets {
        assert!(!said.contains(secret), "the log tells {secret}");
    }
    assert!(visitor.secrets.len() > 30, "{}", visitor.secrets.len());
}
