//! People who buy, as patient as they are told to be: a request without an answer is made again.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use domain::Millis;
use fastrand::Rng;
use serde_json::{Value, json};
use support::{Answer, signature};

use super::ledger::Ledger;
use super::system::System;
use crate::http::{Caller, Connection, request};

/// Before a request is made again that got no answer.
const AGAIN: Duration = Duration::from_millis(100);
/// Requests of one kind in one visit at most: far more than any fault asks for.
const TRIES: usize = 1_000;

pub(crate) struct Crowd {
    pub(crate) ledger: Ledger,
    caller: Caller,
    address: String,
    payment_key: String,
    answers: Mutex<BTreeMap<String, u64>>,
    is_over: AtomicBool,
}

/// Something that is asked until it is answered.
enum Request<'a> {
    Buyer { method: &'static str, target: &'a str, body: Option<&'a Value> },
    Provider(&'a Value),
}

/// A place in the line.
struct Place {
    token: String,
    key: String,
}

impl Crowd {
    pub(crate) fn of(system: &System) -> Self {
        let url = system.callers_way.url();
        Self {
            ledger: Ledger::default(),
            caller: Caller::of(url),
            address: url.trim_start_matches("http://").to_owned(),
            payment_key: system.running.payment_key.clone(),
            answers: Mutex::default(),
            is_over: AtomicBool::new(false),
        }
    }

    /// No more visits begin, and nobody waits any longer.
    pub(crate) fn close(&self) {
        self.is_over.store(true, Ordering::Relaxed);
    }

    fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }

    /// How often each code was answered.
    pub(crate) fn answers(&self) -> String {
        let answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        let requests: u64 = answers.values().sum();
        format!("{requests} requests, {answers:?}")
    }

    fn count(&self, code: &str) {
        let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        *answers.entry(code.to_owned()).or_default() += 1;
    }

    pub(crate) async fn come_again_and_again(&self, mut random: Rng) {
        while !self.is_over() {
            // Nothing is left to do for who gives up.
            let _ = self.visit(&mut random).await;
        }
    }

    /// Asks until there is an answer that does not say to come back; none once all is over.
    async fn ask(&self, method: &'static str, target: &str, body: Option<&Value>) -> Option<Answer> {
        self.persist(&Request::Buyer { method, target, body }).await
    }

    async fn once(&self, request: &Request<'_>) -> Option<Answer> {
        match request {
            Request::Buyer { method, target, body } => self.caller.try_send(method, target, *body).await.ok(),
            Request::Provider(payment) => self.send_webhook(payment).await,
        }
    }

    async fn persist(&self, request: &Request<'_>) -> Option<Answer> {
        for _ in 0..TRIES {
            let pause = match self.once(request).await {
                None => {
                    self.count("no answer");
                    AGAIN
                }
                Some(answer) if matches!(answer.status, 429 | 503) => {
                    self.count(answer.code());
                    let seconds = answer.header("retry-after").and_then(|seconds| seconds.parse().ok());
                    let Some(seconds) = seconds else {
                        self.ledger.violated(format!("no Retry-After: {}", answer.text));
                        return None;
                    };
                    // The longest is five seconds; not to wait it out costs nobody anything here.
                    Duration::from_secs(seconds) / 4
                }
                Some(answer) => {
                    self.count(answer.json["error"]["code"].as_str().unwrap_or("success"));
                    return Some(answer);
                }
            };
            if self.is_over() {
                return None;
            }
            tokio::time::sleep(pause).await;
        }
        self.ledger.violated(format!("no end of refusals in {TRIES} tries"));
        None
    }

    /// Whether it succeeded; any other refusal than these is none that anybody should meet.
    fn succeeded(&self, what: &str, answer: &Answer, refusals: &[&str]) -> bool {
        if answer.status < 300 {
            return true;
        }
        let code = answer.json["error"]["code"].as_str().unwrap_or("no code");
        if !refusals.contains(&code) {
            self.ledger.violated(format!("{what}: {} {}", answer.status, answer.text));
        }
        false
    }

    async fn visit(&self, random: &mut Rng) -> Option<()> {
        let joined = self.ask("POST", "/api/queue/join", Some(&json!({}))).await?;
        if !self.succeeded("join", &joined, &[]) {
            return None;
        }
        let mut place = Place::of(&joined);
        self.wait(&mut place, joined.data().clone()).await?;
        if random.u32(..12) == 0 {
            let left = self.ask("DELETE", &format!("/api/queue/leave?token={}", place.token), None).await?;
            self.succeeded("leave", &left, &[]);
            return None;
        }
        let reservation = self.buy(&place.token, random).await?;
        let id = reservation["reservationId"].as_str()?.to_owned();
        tokio::time::sleep(Duration::from_millis(random.u64(..300))).await;
        if random.u32(..3) == 0 {
            self.pay(&id, &reservation["amount"]).await?;
        }
        if random.u32(..3) > 0 {
            self.cancel(&id, &place.token).await?;
        }
        Some(())
    }

    /// Until it is let in; comes back where it was forgotten.
    async fn wait(&self, place: &mut Place, mut told: Value) -> Option<()> {
        for _ in 0..TRIES {
            match told["status"].as_str() {
                Some("ACTIVE") => return Some(()),
                Some("EXPIRED" | "NOT_FOUND") => {
                    let body = json!({ "token": place.token, "key": place.key });
                    let back = self.ask("POST", "/api/queue/rejoin", Some(&body)).await?;
                    if !self.succeeded("rejoin", &back, &[]) {
                        return None;
                    }
                    *place = Place::of(&back);
                    told = back.data().clone();
                    // Known again, and polled for below.
                    if told["status"] == "ACTIVE" {
                        continue;
                    }
                }
                _ => {}
            }
            if self.is_over() {
                return None;
            }
            let pause = told["nextPollMs"].as_u64().unwrap_or(1_000).clamp(500, 3_000);
            tokio::time::sleep(Duration::from_millis(pause)).await;
            let target = format!("/api/status/poll?token={}&key={}", place.token, place.key);
            let polled = self.ask("GET", &target, None).await?;
            if !self.succeeded("poll", &polled, &[]) {
                return None;
            }
            told = polled.data().clone();
            if let Some(key) = told["key"].as_str() {
                key.clone_into(&mut place.key);
            }
        }
        self.ledger.violated("nobody is let in any more".to_owned());
        None
    }

    /// Two seats that others want too, or any places.
    async fn buy(&self, token: &str, random: &mut Rng) -> Option<Value> {
        let over = ["NOT_ADMITTED", "ADMISSION_EXPIRED", "HOLD_EXPIRED", "NOTHING_HELD", "SOLD_OUT"];
        let mut purchase = json!({ "token": token, "seatCount": random.u32(1..=2) });
        if random.bool() {
            let (row, seat) = (random.u32(1..=12), random.u32(1..=9));
            let seats = [format!("{row}-{seat}"), format!("{row}-{}", seat + 1)];
            let choice = json!({ "token": token, "offeringId": "T1", "sectionId": "A", "seats": seats });
            let held = self.ask("POST", "/api/seat/select", Some(&choice)).await?;
            if self.succeeded("hold", &held, &[&over[..], &["SEAT_TAKEN"]].concat()) {
                purchase = json!({ "token": token });
            } else if held.code() != "SEAT_TAKEN" {
                return None;
            }
        }
        self.ledger.asks(token);
        let booked = self.ask("POST", "/api/booking", Some(&purchase)).await?;
        let is_sold = self.succeeded("book", &booked, &over);
        let reservation = is_sold.then(|| booked.data().clone());
        self.ledger.answered(token, reservation.as_ref());
        reservation
    }

    async fn pay(&self, id: &str, amount: &Value) -> Option<()> {
        let payment = json!({
            "paymentId": format!("p-{id}"), "reservationId": id, "status": "PAID", "amount": amount, "currency": "KRW",
        });
        self.ledger.may_be(id, "PAID");
        let paid = self.persist(&Request::Provider(&payment)).await?;
        if self.succeeded("pay", &paid, &["BOOKING_NOT_PAYABLE"]) {
            self.ledger.is(id, "PAID");
        } else {
            self.ledger.is(id, "EXPIRED");
        }
        Some(())
    }

    /// Over a connection of its own, as providers do.
    async fn send_webhook(&self, payment: &Value) -> Option<Answer> {
        let signed = signature(&self.payment_key, Millis::now().0 / 1_000, &payment.to_string());
        let head = request("POST", "/api/payment/webhook", Some(payment));
        let signed = head.replacen("\r\n", &format!("\r\njari-signature: {signed}\r\n"), 1);
        let mut connection = Connection::open(&self.address).await.ok()?;
        connection.write(signed.as_bytes()).await.ok()?;
        connection.read(true).await.ok()
    }

    async fn cancel(&self, id: &str, token: &str) -> Option<()> {
        self.ledger.may_be(id, "CANCELLED");
        let target = format!("/api/booking/{id}?token={token}");
        let cancelled = self.ask("DELETE", &target, None).await?;
        if self.succeeded("cancel", &cancelled, &["BOOKING_NOT_CANCELLABLE"]) {
            self.ledger.is(id, "CANCELLED");
        } else {
            self.ledger.is(id, "EXPIRED");
        }
        Some(())
    }
}

impl Place {
    fn of(joined: &Answer) -> Self {
        let text = |name: &str| joined.data()[name].as_str().unwrap_or_default().to_owned();
        Self { token: text("token"), key: text("key") }
    }
}
