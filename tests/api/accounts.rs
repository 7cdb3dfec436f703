//! Accounts: one place each, proven never by what a caller says, and one limit over all visits.

use std::collections::BTreeSet;

use domain::command::Join;
use domain::outcome::Address;
use domain::{Account, Token};
use futures::future::join_all;
use gateway::Gate;
use serde_json::{Value, json};
use store::{Drawn, StoreError};
use support::{Answer, App, Call, Redis, Topology, gate};

const SECRET: &str = "what only the front door knows";

/// The small sale, a limit of 5, behind a front door that names who signed in.
async fn sale(change: impl FnOnce(&mut Value)) -> App {
    let app = App::with(|sale| {
        sale["limitPerAccount"] = json!(5);
        change(sale);
    })
    .await;
    door(&app)
}

fn door(app: &App) -> App {
    let gate = Gate {
        origin_secret: Some(SECRET.to_owned()),
        trusted_account_header: Some("x-account".parse().expect("a name")),
        ..gate(&app.event)
    };
    app.behind(gate, None)
}

/// Through the front door, as nobody.
fn plain(method: &str, path: &str) -> Call {
    Call::new(method, path).header("x-origin-secret", SECRET)
}

/// Through the front door, signed in.
fn signed_in(account: &str, method: &str, path: &str) -> Call {
    plain(method, path).header("x-account", account)
}

async fn join(app: &App, account: &str) -> Answer {
    app.send(signed_in(account, "POST", "/api/queue/join")).await
}

async fn rejoin(app: &App, account: &str, token: &str) -> Answer {
    app.send(signed_in(account, "POST", "/api/queue/rejoin").json(&json!({ "token": token }))).await
}

async fn poll(app: &App, token: &str) -> Answer {
    app.send(plain("GET", "/api/status/poll").query("token", token)).await
}

async fn post(app: &App, path: &str, body: Value) -> Answer {
    app.send(plain("POST", path).json(&body)).await
}

fn token(answer: &Answer) -> String {
    answer.data()["token"].as_str().expect("a token").to_owned()
}

/// A live session of the account: its token and the access token it came with.
async fn active(app: &App, account: &str) -> (String, String) {
    let token = token(&join(app, account).await);
    for _ in 0..20 {
        app.pass(1_000);
        app.tick().await;
        let polled = poll(app, &token).await;
        if let Some(access_token) = polled.data()["accessToken"].as_str() {
            return (token, access_token.to_owned());
        }
    }
    panic!("not admitted in 20 ticks");
}

async fn buy(app: &App, account: &str, count: u32) -> Answer {
    let (token, _) = active(app, account).await;
    post(app, "/api/booking", json!({ "token": token, "seatCount": count })).await
}

#[tokio::test]
async fn one_account_has_one_place_and_the_same_token_on_every_device() {
    let app = sale(|_| {}).await;
    let first = join(&app, "kim").await;
    assert_eq!((&first.data()["rejoined"], &first.data()["ticketNumber"]), (&json!(false), &json!(1)));
    let other = join(&app, "lee").await;
    assert_ne!(token(&first), token(&other));
    let again = join(&app, "kim").await;
    assert_eq!(token(&again), token(&first));
    let data = again.data();
    assert_eq!(
        (&data["rejoined"], &data["joinedAt"], &data["rank"]),
        (&json!(true), &Value::Null, &json!(1))
    );
    assert_eq!(data["ticketNumber"], 1);
    // A device that has lost its token, or has one that is nobody's.
    let unknown = Token::random().to_string();
    assert_eq!(token(&rejoin(&app, "kim", &unknown).await), token(&first));
    assert_eq!(poll(&app, &unknown).await.data()["status"], "NOT_FOUND");
    assert_eq!(poll(&app, &token(&first)).await.data()["totalWaiting"], 2);
}

#[tokio::test]
async fn two_accounts_of_one_half_do_not_get_one_place() {
    let app = sale(|_| {}).await;
    let account = |name: &str| name.parse::<Account>().ok();
    let draw = |token| Drawn { token, score: 0 };
    // As if both names had one digest.
    let join_as = |name| Join {
        event: app.event.clone(),
        address: Address::of([203, 0, 113, 9].into()),
        account: account(name),
    };
    let of_kim = || draw(Token::of(&app.event, account("kim").as_ref()));
    let kim = app.store.join(&join_as("kim"), of_kim(), draw).await.expect("redis answers").expect("joined");
    assert!(matches!(
        app.store.join(&join_as("lee"), of_kim(), draw).await,
        Err(StoreError::Refused { step: "join", .. })
    ));
    assert_eq!(poll(&app, &kim.0.to_string()).await.data()["totalWaiting"], 1);
    assert_eq!(token(&join(&app, "kim").await), kim.0.to_string());
}

#[tokio::test]
async fn devices_that_join_at_once_get_one_place() {
    let app = sale(|_| {}).await;
    let joined = join_all((0..20).map(|_| join(&app, "kim"))).await;
    let tokens: BTreeSet<String> = joined.iter().map(token).collect();
    assert_eq!(tokens.len(), 1);
    assert_eq!(joined.iter().filter(|answer| answer.data()["rejoined"] == false).count(), 1);
    assert_eq!(poll(&app, &token(&joined[0])).await.data()["totalWaiting"], 1);
}

#[tokio::test]
async fn a_join_finds_the_accounts_place_however_it_stands() {
    let app = sale(|sale| sale["joinsPerAddressPerSecond"] = json!(1)).await;
    let known = token(&join(&app, "kim").await);
    // The limit of one a second counts this join once, though it takes two steps.
    tokio::time::sleep(std::time::Duration::from_millis(1_100)).await;
    app.pass(1_000);
    app.tick().await;
    let called = join(&app, "kim").await;
    assert_eq!((token(&called), &called.data()["rejoined"]), (known.clone(), &json!(true)));
    assert_eq!(poll(&app, &known).await.data()["status"], "ACTIVE");

    let app = sale(|_| {}).await;
    let (known, _) = active(&app, "kim").await;
    assert_eq!(token(&join(&app, "kim").await), known, "in a session");
    app.pass(180_000);
    let expired = join(&app, "kim").await;
    assert_eq!((token(&expired), &expired.data()["rejoined"]), (known.clone(), &json!(false)), "at the end");
    assert_eq!(poll(&app, &known).await.data()["status"], "WAITING");
    app.pass(1_000);
    app.tick().await;
    app.pass(15_000);
    app.tick().await;
    assert_eq!(poll(&app, &known).await.data()["reentry"], true);
    assert_eq!(token(&join(&app, "kim").await), known, "lapsed");
    assert_eq!(poll(&app, &known).await.data()["status"], "WAITING");
}

#[tokio::test]
async fn leaving_and_joining_again_goes_to_the_end_of_the_line() {
    let app = sale(|_| {}).await;
    let first = token(&join(&app, "kim").await);
    join(&app, "lee").await;
    let left = app.send(plain("DELETE", "/api/queue/leave").query("token", &first)).await;
    assert_eq!(left.data()["removed"], true);
    let again = join(&app, "kim").await;
    assert_ne!(token(&again), first);
    assert_eq!((&again.data()["rank"], &again.data()["ticketNumber"]), (&json!(2), &json!(3)));
    assert_eq!(
        token(&rejoin(&app, "kim", &first).await),
        token(&again),
        "the old token leads to the new place"
    );
}

#[tokio::test]
async fn an_account_is_proven_by_the_authorizer_or_by_the_front_door_and_by_nothing_else() {
    let app = App::with(|sale| sale["requireAccount"] = json!(true)).await;
    let required = |answer: &Answer| assert_eq!((answer.status, answer.code()), (403, "ACCOUNT_REQUIRED"));
    required(&app.send(Call::new("POST", "/api/queue/join")).await);
    required(&app.send(Call::new("POST", "/api/queue/join").header("x-account", "kim")).await);
    let random = json!({ "token": Token::random() });
    required(&app.send(Call::new("POST", "/api/queue/rejoin").json(&random)).await);
    // Without the secret the header counts for nothing, wherever it is configured.
    let open =
        Gate { trusted_account_header: Some("x-account".parse().expect("a name")), ..gate(&app.event) };
    let open = app.behind(open, None);
    required(&open.send(Call::new("POST", "/api/queue/join").header("x-account", "kim")).await);
    let closed = door(&app);
    let wrong =
        Call::new("POST", "/api/queue/join").header("x-account", "kim").header("x-origin-secret", "no");
    assert_eq!(closed.send(wrong).await.code(), "FORBIDDEN");
    required(&closed.send(plain("POST", "/api/queue/join")).await);
    let trusted = join(&closed, "kim").await;
    assert_eq!(trusted.status, 200);

    let authorized = |subject: &str| {
        let mut event = Call::new("POST", "/api/queue/join").event();
        event["requestContext"]["authorizer"] =
            json!({ "jwt": { "claims": { "sub": subject }, "scopes": null } });
        event
    };
    let same = app.send_event(authorized("kim")).await;
    assert_eq!(token(&same), token(&trusted), "the same account, however it was proven");
    assert_ne!(token(&app.send_event(authorized("lee")).await), token(&trusted));
    let mut lambda = authorized("kim");
    lambda["requestContext"]["authorizer"] = json!({ "lambda": { "sub": "kim" } });
    required(&app.send_event(lambda).await);
    assert_eq!(app.send_event(authorized("a\nb")).await.details()["field"], "account");
    let known = Call::new("POST", "/api/queue/rejoin").json(&json!({ "token": token(&trusted) }));
    assert_eq!(app.send(known).await.status, 200, "a place is never lost: its token is proof enough of it");
}

#[tokio::test]
async fn a_user_id_must_be_the_proven_account() {
    let app = sale(|_| {}).await;
    let named = |account: &str, user: &str| {
        signed_in(account, "POST", "/api/queue/join").json(&json!({ "userId": user }))
    };
    assert_eq!(app.send(named("kim", "kim")).await.status, 200);
    assert_eq!(app.send(named("kim", "lee")).await.code(), "UNAUTHORIZED");
    let nobody = plain("POST", "/api/queue/join").json(&json!({ "userId": "kim" }));
    assert_eq!(app.send(nobody).await.code(), "UNAUTHORIZED");
    let (_, access_token) = active(&app, "kim").await;
    let search = |user: &str| {
        let call = plain("GET", "/trains/search").query("userId", user);
        call.header("authorization", &format!("Bearer {access_token}"))
    };
    assert_eq!(app.send(search("kim")).await.status, 200, "the access token proves its account");
    assert_eq!(app.send(search("lee")).await.code(), "UNAUTHORIZED");
    let both = search("kim").header("x-account", "lee");
    assert_eq!(app.send(both).await.code(), "UNAUTHORIZED", "two proofs of two accounts");
}

#[tokio::test]
async fn a_place_is_its_accounts_alone() {
    let app = sale(|_| {}).await;
    let kims = token(&join(&app, "kim").await);
    assert_eq!(rejoin(&app, "lee", &kims).await.code(), "UNAUTHORIZED");
    assert_eq!(rejoin(&app, "kim", &kims).await.data()["rejoined"], true);
    assert_ne!(token(&join(&app, "lee").await), kims);
}

#[tokio::test]
async fn who_bought_two_may_queue_again_and_buy_three() {
    let app = sale(|_| {}).await;
    let first = buy(&app, "kim", 2).await;
    assert_eq!(first.status, 201);
    let (token, access_token) = active(&app, "kim").await;
    let polled = poll(&app, &token).await;
    assert_eq!(polled.data()["totalTicketCount"], 2);
    let said = support::access().keys.check(&access_token, domain::Millis(app.now())).expect("ours");
    assert_eq!(said.account.expect("an account").as_str(), "kim");
    let four = post(&app, "/api/booking", json!({ "token": token, "seatCount": 4 })).await;
    assert_eq!((four.status, four.code()), (409, "PURCHASE_LIMIT_EXCEEDED"));
    assert_eq!(four.details(), &json!({ "limit": 5, "used": 2, "requested": 4 }));
    let held = post(&app, "/api/seat/select", json!({ "token": token, "count": 3 })).await;
    assert_eq!((held.status, &held.data()["totalTicketCount"]), (200, &json!(2)));
    let more =
        post(&app, "/api/seat/select", json!({ "token": token, "offeringId": "T1", "seatId": "1A" })).await;
    assert_eq!(more.details(), &json!({ "limit": 5, "used": 5, "requested": 1 }));
    assert_eq!(post(&app, "/api/booking", json!({ "token": token })).await.status, 201);
    assert_eq!(poll(&app, &token).await.data()["totalTicketCount"], 5);
    let full = buy(&app, "kim", 1).await;
    assert_eq!(full.details(), &json!({ "limit": 5, "used": 5, "requested": 1 }));
    assert_eq!(app.remaining().await, 23);
}

#[tokio::test]
async fn cancelled_places_count_back_and_offerings_count_together() {
    let app = sale(|_| {}).await;
    let first = buy(&app, "kim", 4).await;
    let (token, _) = active(&app, "kim").await;
    let hold = async |choice: Value| post(&app, "/api/seat/select", choice).await;
    let one = json!({ "token": token, "offeringId": "T1", "seatId": "2B" });
    assert_eq!(hold(one).await.status, 200);
    let other = json!({ "token": token, "offeringId": "T2", "seatId": "1A" });
    assert_eq!(hold(other.clone()).await.details(), &json!({ "limit": 5, "used": 5, "requested": 1 }));
    // Given back by the account, from whatever device: no token of its purchase is needed.
    let location = first.header("location").expect("a location").to_owned();
    let cancelled = app.send(signed_in("kim", "DELETE", &location)).await;
    assert_eq!(cancelled.data()["status"], "CANCELLED");
    assert_eq!(app.send(signed_in("kim", "DELETE", &location)).await.data()["status"], "CANCELLED");
    assert_eq!(app.send(signed_in("lee", "GET", &location)).await.code(), "RESERVATION_NOT_FOUND");
    assert_eq!(poll(&app, &token).await.data()["totalTicketCount"], 0, "counted back once");
    assert_eq!(hold(other).await.status, 200);
    assert_eq!(hold(json!({ "token": token, "count": 3 })).await.status, 200);
    assert_eq!(hold(json!({ "token": token, "count": 1 })).await.code(), "PURCHASE_LIMIT_EXCEEDED");
    assert_eq!(post(&app, "/api/booking", json!({ "token": token })).await.data()["seatCount"], 5);
}

#[tokio::test]
async fn a_limit_lowered_meanwhile_holds_for_what_is_held() {
    let app = sale(|_| {}).await;
    let (token, _) = active(&app, "kim").await;
    assert_eq!(post(&app, "/api/seat/select", json!({ "token": token, "count": 3 })).await.status, 200);
    let mut lower = support::sale(app.event.as_str());
    lower["limitPerAccount"] = json!(2);
    app.apply(&lower).await;
    let refused = post(&app, "/api/booking", json!({ "token": token })).await;
    assert_eq!(refused.details(), &json!({ "limit": 2, "used": 0, "requested": 3 }));
    assert_eq!(app.remaining().await, 25, "still held");
}

#[tokio::test]
async fn ten_parallel_bookings_of_an_account_that_owns_three_make_five() {
    // As if one account had ten sessions, which no join gives it: the limit stands in the step alone.
    let redis = Redis::shared(Topology::chosen());
    let app = door(
        &App::on(redis, |sale| {
            sale["limitPerAccount"] = json!(5);
            sale["offerings"][0]["sections"][1]["capacity"] = json!(13);
        })
        .await,
    );
    assert_eq!(buy(&app, "kim", 3).await.status, 201);
    let mut sessions = Vec::new();
    for _ in 0..10 {
        sessions.push(token(&app.send(plain("POST", "/api/queue/join")).await));
    }
    let key = store::Keys::of(&app.event).name(store::KeyName::Accounts);
    let mut connection = redis.connection_of(&key).await;
    for session in &sessions {
        let (first, second) = session.split_at(session.len() / 2);
        redis::cmd("HSET")
            .arg(&key)
            .arg(first)
            .arg(format!("{second}kim"))
            .exec_async(&mut connection)
            .await
            .expect("redis answers");
    }
    app.pass(1_000);
    app.tick().await;
    let one = |session: &String| post(&app, "/api/booking", json!({ "token": session, "seatCount": 1 }));
    let answers = join_all(sessions.iter().map(one)).await;
    assert_eq!(answers.iter().filter(|answer| answer.status == 201).count(), 2);
    let refused = answers.iter().filter(|answer| answer.status != 201);
    for answer in refused {
        assert_eq!(answer.details(), &json!({ "limit": 5, "used": 5, "requested": 1 }));
    }
    assert_eq!(app.remaining().await, 18 + 8, "eight seats of the section stay free");
}

#[tokio::test]
async fn ten_devices_of_an_account_make_two_bookings_of_one() {
    let app = sale(|_| {}).await;
    assert_eq!(buy(&app, "kim", 3).await.status, 201);
    // Each device buys one place after another until it is told that it may not.
    let device = async || {
        let mut booked = BTreeSet::new();
        loop {
            let token = token(&join(&app, "kim").await);
            app.pass(1_000);
            app.tick().await;
            let answer = post(&app, "/api/booking", json!({ "token": token, "seatCount": 1 })).await;
            match answer.json["error"]["code"].as_str() {
                None => drop(booked.insert(answer.data()["reservationId"].to_string())),
                // Another device's visit, or one that it ended just now.
                Some("NOT_ADMITTED" | "ALREADY_BOOKED" | "ADMISSION_EXPIRED") => {}
                Some(code) => break (code.to_owned(), booked),
            }
        }
    };
    let devices = join_all((0..10).map(|_| device())).await;
    assert!(devices.iter().all(|(code, _)| code == "PURCHASE_LIMIT_EXCEEDED"), "{devices:?}");
    let booked: BTreeSet<&String> = devices.iter().flat_map(|(_, booked)| booked).collect();
    assert_eq!(booked.len(), 2, "{devices:?}");
    assert_eq!(app.remaining().await, 28 - 3 - 2);
}

#[tokio::test]
async fn two_devices_that_hold_and_book_at_once_stay_consistent() {
    let app = sale(|_| {}).await;
    let (token, _) = active(&app, "kim").await;
    let choices = ["1A", "1B", "2A", "2B", "3A", "3B", "4A", "4B"];
    let holds = choices.map(|seat| {
        post(&app, "/api/seat/select", json!({ "token": token, "offeringId": "T1", "seatId": seat }))
    });
    let held = join_all(holds).await;
    assert_eq!(held.iter().filter(|answer| answer.status == 200).count(), 5, "the limit");
    let (first, second) = tokio::join!(
        post(&app, "/api/booking", json!({ "token": token })),
        post(&app, "/api/booking", json!({ "token": token }))
    );
    assert_eq!(first.data()["reservationId"], second.data()["reservationId"]);
    assert_eq!((&first.data()["seatCount"], app.remaining().await), (&json!(5), 23));
}

#[tokio::test]
async fn addresses_of_one_ipv6_network_share_a_limit() {
    let app = App::with(|sale| sale["joinsPerAddressPerSecond"] = json!(2)).await;
    let from = |address: &str| app.send(Call::new("POST", "/api/queue/join").from(address));
    assert_eq!(from("2001:db8:1:2::1").await.status, 200);
    assert_eq!(from("2001:db8:1:2:ffff::9").await.status, 200);
    assert_eq!(from("2001:db8:1:2::3").await.code(), "RATE_LIMIT");
    assert_eq!(from("2001:db8:1:3::3").await.status, 200);
}
