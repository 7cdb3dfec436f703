//! Hundreds of connections on one spot each, through a served system: one seat, one section, one account, one
//! reservation, one token. What all of them saw must be explained by one order of their calls.

use std::sync::Arc;

use domain::Millis;
use fastrand::Rng;
use futures::future::join_all;
use serde_json::json;
use support::{Answer, signature};

use crate::front_door::{Behind, Visitor};
use crate::linear::{Count, CountSeen, History, Seat, SeatSeen, Thing, explain};

/// A sale that lets everybody in at once and limits nobody by accident.
async fn open_to_all() -> Behind {
    Behind::start(|sale| {
        sale["admission"] = json!({ "perSecond": 1_000, "maxActive": 10_000, "activeSeconds": 900 });
        sale["holdSeconds"] = json!(600);
        sale["limitPerAccount"] = json!(4);
        sale["payment"] = json!({ "mode": "deferred", "dueAfterSeconds": 600 });
    })
    .await
}

/// So many tokens in live sessions, each with a connection.
async fn people(behind: &Behind, count: usize) -> Vec<(Visitor, String)> {
    let arriving = (0..count).map(|_| async {
        let (token, _) = behind.let_in(None).await;
        (behind.visitor(None).await, token)
    });
    join_all(arriving).await
}

async fn select(visitor: &mut Visitor, token: &str, choice: serde_json::Value) -> Answer {
    let mut body = choice;
    body["token"] = json!(token);
    visitor.post("/api/seat/select", &body).await
}

async fn release(visitor: &mut Visitor, token: &str) -> u64 {
    let released = visitor.post("/api/seat/cancel", &json!({ "token": token })).await;
    released.data()["released"].as_u64().expect("a count")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_seat_has_one_owner_at_every_moment() {
    const PEOPLE: usize = 200;
    const TURNS: usize = 3;
    let behind = open_to_all().await;
    let history = Arc::new(History::new());
    let visits = people(&behind, PEOPLE).await.into_iter().enumerate().map(|(who, (mut visitor, token))| {
        let history = Arc::clone(&history);
        tokio::spawn(async move {
            for _ in 0..TURNS {
                let hold = async {
                    let answer =
                        select(&mut visitor, &token, json!({ "offeringId": "T1", "seats": ["1A"] })).await;
                    if answer.status == 200 {
                        return Some(SeatSeen::Held(who));
                    }
                    assert_eq!((answer.status, answer.code()), (409, "SEAT_TAKEN"));
                    Some(SeatSeen::Taken(who))
                };
                history.note(hold).await;
                let free = async { Some(SeatSeen::Released(who, release(&mut visitor, &token).await == 1)) };
                history.note(free).await;
            }
        })
    });
    for visit in join_all(visits).await {
        visit.expect("no visit failed");
    }
    let visits = history.visits();
    assert_eq!(visits.len(), PEOPLE * TURNS * 2);
    let held = visits.iter().filter(|visit| matches!(visit.seen, SeatSeen::Held(_))).count();
    assert!(held > 1, "it changed hands");
    explain(Seat(None), &visits);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_places_are_never_eleven() {
    const PEOPLE: usize = 200;
    let behind = open_to_all().await;
    let history = Arc::new(History::new());
    let visits = people(&behind, PEOPLE).await.into_iter().enumerate().map(|(who, (mut visitor, token))| {
        let history = Arc::clone(&history);
        tokio::spawn(async move {
            let mut random = Rng::with_seed(who as u64);
            for _ in 0..2 {
                let asked = random.u64(1..=3);
                let take = async {
                    let answer = select(&mut visitor, &token, json!({ "count": asked })).await;
                    if answer.status == 200 {
                        return Some(CountSeen::Took(asked));
                    }
                    assert_eq!((answer.status, answer.code()), (409, "SOLD_OUT"), "{}", answer.text);
                    Some(CountSeen::TooMany {
                        asked,
                        left: answer.details()["remaining"].as_u64().expect("a count"),
                    })
                };
                history.note(take).await;
                history.note(async { Some(CountSeen::Gave(release(&mut visitor, &token).await)) }).await;
            }
        })
    });
    for visit in join_all(visits).await {
        visit.expect("no visit failed");
    }
    let visits = history.visits();
    assert!(visits.iter().any(|visit| matches!(visit.seen, CountSeen::TooMany { .. })), "nobody met a limit");
    explain(Count(10), &visits);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_account_is_one_place_and_one_limit_on_all_its_devices() {
    const DEVICES: usize = 150;
    const ACCOUNT: Option<&str> = Some("kim@example.com");
    let behind = open_to_all().await;
    let devices = join_all((0..DEVICES).map(|_| behind.visitor(ACCOUNT))).await;
    let joins = devices.into_iter().map(|mut device| {
        tokio::spawn(async move {
            let joined = device.post("/api/queue/join", &json!({})).await;
            (device, joined.data().clone())
        })
    });
    let joined: Vec<_> = join_all(joins).await.into_iter().map(|joined| joined.expect("an answer")).collect();
    let token = joined[0].1["token"].as_str().expect("a token").to_owned();
    assert!(joined.iter().all(|(_, place)| place["token"] == token.as_str()), "one account has two places");
    let new = joined.iter().filter(|(_, place)| place["rejoined"] == false).count();
    assert_eq!(new, 1, "one of the joins made the place");

    assert_eq!(behind.let_in(ACCOUNT).await.0, token);
    // The limit is four places: each device asks for one.
    let history = Arc::new(History::new());
    let holds = joined.into_iter().map(|(mut device, _)| {
        let (history, token) = (Arc::clone(&history), token.clone());
        tokio::spawn(async move {
            let hold = async {
                let answer = select(&mut device, &token, json!({ "count": 1 })).await;
                if answer.status == 200 {
                    return Some(CountSeen::Took(1));
                }
                assert_eq!(answer.code(), "PURCHASE_LIMIT_EXCEEDED", "{}", answer.text);
                let details = answer.details();
                let left =
                    details["limit"].as_u64().expect("a limit") - details["used"].as_u64().expect("a count");
                Some(CountSeen::TooMany { asked: 1, left })
            };
            history.note(hold).await;
        })
    });
    for hold in join_all(holds).await {
        hold.expect("no hold failed");
    }
    let visits = history.visits();
    assert_eq!(visits.iter().filter(|visit| matches!(visit.seen, CountSeen::Took(_))).count(), 4);
    explain(Count(4), &visits);
}

/// A reservation to be paid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Bought {
    Pending,
    /// By the payment of that number.
    Paid(usize),
    /// And whether, and by which payment, it had been paid.
    Cancelled(Option<usize>),
}

#[derive(Debug, Clone, Copy)]
enum BoughtSeen {
    /// A payment was taken, now or before: what it was told of the reservation.
    Paid(usize, &'static str),
    NotPayable(usize),
    Cancelled,
}

impl Thing for Bought {
    type Seen = BoughtSeen;

    fn after(self, seen: &BoughtSeen) -> Option<Self> {
        match (self, *seen) {
            (Self::Pending, BoughtSeen::Paid(by, "PAID")) => Some(Self::Paid(by)),
            (Self::Paid(known), BoughtSeen::Paid(by, "PAID")) if known == by => Some(self),
            (Self::Cancelled(Some(known)), BoughtSeen::Paid(by, "CANCELLED")) if known == by => Some(self),
            (Self::Paid(known), BoughtSeen::NotPayable(by)) if known != by => Some(self),
            (Self::Cancelled(known), BoughtSeen::NotPayable(by)) if known != Some(by) => Some(self),
            (Self::Pending, BoughtSeen::Cancelled) => Some(Self::Cancelled(None)),
            (Self::Paid(by), BoughtSeen::Cancelled) => Some(Self::Cancelled(Some(by))),
            (Self::Cancelled(_), BoughtSeen::Cancelled) => Some(self),
            _ => None,
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reservation_is_paid_and_given_back_at_once_and_one_comes_first() {
    const RESERVATIONS: usize = 8;
    const CALLERS: usize = 24;
    let behind = Arc::new(open_to_all().await);
    let remaining = async || {
        let mut visitor = behind.visitor(None).await;
        let progress = visitor.send("GET", "/api/status/progress", &[], None).await;
        progress.data()["remainingSeats"].as_u64().expect("a count")
    };
    let before = remaining().await;
    for (mut visitor, token) in people(&behind, RESERVATIONS).await {
        let booked = visitor.post("/api/booking", &json!({ "token": token, "seatCount": 1 })).await;
        let (id, amount) = (booked.data()["reservationId"].clone(), booked.data()["amount"].clone());
        let target = format!("/api/booking/{}?token={token}", id.as_str().expect("an id"));
        let history = Arc::new(History::new());
        let calls = (0..CALLERS).map(|who| {
            let (behind, history) = (Arc::clone(&behind), Arc::clone(&history));
            // Three payments, each told several times.
            let payment = who % 3;
            let pay = json!({ "paymentId": format!("p-{payment}"), "reservationId": id, "status": "PAID",
                "amount": amount, "currency": "KRW" });
            let target = target.clone();
            tokio::spawn(async move {
                let mut visitor = behind.visitor(None).await;
                let call = async {
                    if who % 4 == 3 {
                        let answer = visitor.send("DELETE", &target, &[], None).await;
                        assert_eq!(answer.data()["status"], "CANCELLED");
                        return Some(BoughtSeen::Cancelled);
                    }
                    let signed =
                        signature(&behind.running.payment_key, Millis::now().0 / 1_000, &pay.to_string());
                    let headers = [("jari-signature", signed.as_str())];
                    let answer = visitor.send("POST", "/api/payment/webhook", &headers, Some(&pay)).await;
                    if answer.status == 409 {
                        assert_eq!(answer.code(), "BOOKING_NOT_PAYABLE");
                        return Some(BoughtSeen::NotPayable(payment));
                    }
                    let status = if answer.data()["status"] == "PAID" { "PAID" } else { "CANCELLED" };
                    Some(BoughtSeen::Paid(payment, status))
                };
                history.note(call).await;
            })
        });
        for call in join_all(calls).await {
            call.expect("no call failed");
        }
        explain(Bought::Pending, &history.visits());
    }
    assert_eq!(remaining().await, before, "each place came back once");
}

/// A token: in the line or a session, or gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Token {
    In,
    Gone,
}

#[derive(Debug, Clone, Copy)]
enum TokenSeen {
    Left,
    NothingToLeave,
    There,
    Unknown,
}

impl Thing for Token {
    type Seen = TokenSeen;

    fn after(self, seen: &TokenSeen) -> Option<Self> {
        match (self, seen) {
            (Self::In, TokenSeen::Left) | (Self::Gone, TokenSeen::NothingToLeave | TokenSeen::Unknown) => {
                Some(Self::Gone)
            }
            (Self::In, TokenSeen::There) => Some(Self::In),
            _ => None,
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_that_leaves_while_it_comes_back_and_is_let_in_is_gone_once() {
    const TOKENS: usize = 40;
    const CALLERS: usize = 6;
    // Slow enough that some wait while others are let in.
    let behind = Arc::new(Behind::start(|sale| sale["admission"]["perSecond"] = json!(10)).await);
    let visits = (0..TOKENS).map(|_| async {
        let mut visitor = behind.visitor(None).await;
        let joined = visitor.post("/api/queue/join", &json!({})).await;
        let token = joined.data()["token"].as_str().expect("a token").to_owned();
        let history = Arc::new(History::new());
        let calls = (0..CALLERS).map(|who| {
            let (behind, history, token) = (Arc::clone(&behind), Arc::clone(&history), token.clone());
            tokio::spawn(async move {
                let mut visitor = behind.visitor(None).await;
                for turn in 0..3 {
                    history.note(visit(&mut visitor, &token, who + turn)).await;
                }
            })
        });
        for call in join_all(calls).await {
            call.expect("no call failed");
        }
        let visits = history.visits();
        assert_eq!(visits.iter().filter(|visit| matches!(visit.seen, TokenSeen::Left)).count(), 1);
        explain(Token::In, &visits);
    });
    join_all(visits).await;
}

async fn visit(visitor: &mut Visitor, token: &str, kind: usize) -> Option<TokenSeen> {
    match kind % 3 {
        0 => {
            let polled = visitor.send("GET", &format!("/api/status/poll?token={token}"), &[], None).await;
            let unknown = polled.data()["status"] == "NOT_FOUND";
            Some(if unknown { TokenSeen::Unknown } else { TokenSeen::There })
        }
        1 => {
            let rejoined = visitor.post("/api/queue/rejoin", &json!({ "token": token })).await;
            let same = rejoined.data()["token"] == token;
            Some(if same { TokenSeen::There } else { TokenSeen::Unknown })
        }
        _ => {
            let left = visitor.send("DELETE", &format!("/api/queue/leave?token={token}"), &[], None).await;
            let removed = left.data()["removed"] == true;
            Some(if removed { TokenSeen::Left } else { TokenSeen::NothingToLeave })
        }
    }
}
