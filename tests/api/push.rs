//! Live push: what a socket may say, what it is told and when, and that it is forgotten once it is gone.

use std::collections::BTreeMap;
use std::sync::Mutex;

use aws_lambda_events::event::sqs::SqsEvent;
use domain::ConnectionId;
use futures::FutureExt;
use futures::future::{BoxFuture, join_all};
use gateway::Gate;
use outbox::{Departures, Gone, Posted, Push, Pushes, Sockets};
use serde_json::{Value, json};
use store::{Load, StatusChange};
use support::{App, Call, OPENS_AT, Redis, Topology};

/// Keeps what sockets would be told.
#[derive(Default)]
struct Kept(Mutex<Vec<Push>>);

impl Pushes for Kept {
    fn push(&self, pushes: Vec<Push>) -> BoxFuture<'_, ()> {
        self.0.lock().expect("no panic").extend(pushes);
        futures::future::ready(()).boxed()
    }
}

/// What each socket is told by one round, by its name.
async fn round(app: &App) -> BTreeMap<String, Vec<Value>> {
    let kept = Kept::default();
    admit::push_event(&app.store, &kept, &app.event).await;
    let mut told: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    for push in kept.0.into_inner().expect("no panic") {
        assert_eq!(push.event, app.event);
        let bodies = push.bodies.iter().map(|body| serde_json::from_str(body).expect("JSON"));
        told.entry(push.connection.to_string()).or_default().extend(bodies);
    }
    told
}

/// The one thing that the one socket there is was told by a round.
async fn heard(app: &App) -> Value {
    let told = round(app).await;
    let bodies: Vec<&Value> = told.values().flatten().collect();
    assert_eq!(bodies.len(), 1, "{told:?}");
    bodies[0].clone()
}

async fn is_silent(app: &App) -> bool {
    round(app).await.is_empty()
}

/// An event of the WebSocket API about a socket.
fn event(kind: &str, connection: &str) -> Value {
    json!({
        "requestContext": {
            "routeKey": "$default",
            "eventType": kind,
            "connectionId": connection,
            "identity": { "sourceIp": "203.0.113.7" },
            "stage": "socket",
        },
        "isBase64Encoded": false,
    })
}

async fn send(app: &App, event: Value) -> Value {
    let event = serde_json::from_value(event).expect("an event");
    serde_json::to_value(socket::handle(app.state(), event).await).expect("JSON")
}

/// What a socket is answered to a text.
async fn say(app: &App, connection: &str, text: &str) -> Value {
    let mut event = event("MESSAGE", connection);
    event["body"] = json!(text);
    let answer = send(app, event).await;
    assert_eq!(answer["statusCode"], 200, "a body with another status would not reach the socket");
    serde_json::from_str(answer["body"].as_str().expect("an answer")).expect("JSON")
}

async fn follow(app: &App, connection: &str, token: &str) -> Value {
    say(app, connection, &json!({ "type": "connect", "token": token }).to_string()).await
}

/// `status`, `nextAction`.
fn words(told: &Value) -> (&str, &str) {
    (told["status"].as_str().expect("a status"), told["nextAction"].as_str().expect("a next action"))
}

async fn change(app: &App, change: StatusChange) {
    app.store.change(&app.event, "tests", &change).await.expect("redis answers").expect("known");
}

/// What Redis knows of sockets: tokens followed, connections, tokens to look at, refusals to tell.
async fn known(app: &App) -> [u64; 4] {
    use store::KeyName::{Connections, Sockets, SocketsDue, SocketsRefused};
    let keys = store::Keys::of(&app.event);
    let redis = Redis::shared(Topology::chosen());
    let mut connection = redis.connection_of(&keys.name(Sockets)).await;
    let mut counts = [0; 4];
    let questions =
        [("HLEN", Sockets), ("HLEN", Connections), ("ZCARD", SocketsDue), ("HLEN", SocketsRefused)];
    for (count, (command, name)) in counts.iter_mut().zip(questions) {
        *count =
            redis::cmd(command).arg(keys.name(name)).query_async(&mut connection).await.expect("a count");
    }
    counts
}

#[tokio::test]
async fn a_socket_is_answered_where_its_token_stands() {
    let app = App::start().await;
    let tokens = [app.join().await, app.join().await, app.join().await];
    let told = follow(&app, "c", &tokens[2]).await;
    assert_eq!(words(&told), ("waiting", "wait"));
    assert_eq!((&told["currentRank"], &told["totalWaiting"]), (&json!(3), &json!(3)));
    assert_eq!((&told["estimatedWaitTime"], &told["totalTicketCount"]), (&json!(1), &json!(0)));
    assert_eq!((&told["eventId"], &told["remainingSeats"]), (&json!(app.event.as_str()), &json!(28)));
    app.pass(1_000);
    app.tick().await;
    let told = follow(&app, "c", &tokens[2]).await;
    assert_eq!((words(&told), &told["currentRank"]), (("ready", "move_to_seat_selection"), &Value::Null));
    assert_eq!(app.tick().await.active, 3, "hearing of it is not coming");
    app.poll(&tokens[2]).await.data();
    let told = follow(&app, "c", &tokens[2]).await;
    assert_eq!(told["activeExpiresAt"], app.now() + 180_000);
    let held = app.hold(&tokens[2], json!({ "count": 2 })).await;
    let told = follow(&app, "c", &tokens[2]).await;
    assert_eq!((words(&told), &told["heldCount"]), (("seated", "pay"), &json!(2)));
    assert_eq!(told["holdExpiresAt"], held.data()["holdExpiresAt"]);
    let booked = app.book(&tokens[2], json!({})).await;
    let told = follow(&app, "c", &tokens[2]).await;
    assert_eq!((words(&told), &told["totalTicketCount"]), (("booked", "done"), &json!(2)));
    assert_eq!(told["reservationId"], booked.data()["reservationId"]);
    app.pass(15_000);
    app.tick().await;
    let told = follow(&app, "c", &tokens[0]).await;
    assert_eq!((words(&told), &told["reentry"]), (("expired", "rejoin"), &json!(true)));
    change(&app, StatusChange::Close).await;
    assert_eq!(words(&follow(&app, "c", &tokens[0]).await), ("expired", "done"));
}

#[tokio::test]
async fn what_is_no_connect_is_refused_and_registers_nobody() {
    let app = App::start().await;
    let token = app.join().await;
    let with = |name: &str, value: Value| {
        let mut message = json!({ "type": "connect", "token": token });
        message[name] = value;
        message.to_string()
    };
    let deep = format!("{}1{}", "[".repeat(5_000), "]".repeat(5_000));
    for (text, code, field) in [
        (String::new(), "INVALID_REQUEST", "body"),
        ("hello".to_owned(), "INVALID_REQUEST", "body"),
        ("[]".to_owned(), "INVALID_REQUEST", "body"),
        (r#"["connect","x"]"#.to_owned(), "INVALID_REQUEST", "body"),
        ("null".to_owned(), "INVALID_REQUEST", "body"),
        ("{".to_owned(), "INVALID_REQUEST", "body"),
        ("\u{0}".to_owned(), "INVALID_REQUEST", "body"),
        (format!(r#"{{"type":"connect","token":{deep}}}"#), "INVALID_REQUEST", "body"),
        (r#"{"type":"connect","type":"connect"}"#.to_owned(), "INVALID_REQUEST", "body"),
        ("{}".to_owned(), "INVALID_REQUEST", "type"),
        (with("type", json!("$connect")), "INVALID_REQUEST", "type"),
        (with("type", json!(7)), "INVALID_REQUEST", "type"),
        (with("language", json!(["ko"])), "INVALID_REQUEST", "language"),
        (with("token", json!("x")), "INVALID_REQUEST", "token"),
        (with("token", json!(1)), "INVALID_REQUEST", "token"),
        (with("token", Value::Null), "MISSING_TOKEN", ""),
        (with("eventId", json!("a{b}")), "INVALID_REQUEST", "eventId"),
        (with("eventId", json!("no-such-sale")), "EVENT_NOT_FOUND", ""),
        (with("token", json!("6f9619ff-8b86-4d01-b42d-00cf4fc964ff")), "NOT_FOUND", ""),
        (with("userId", json!("kim")), "UNAUTHORIZED", ""),
        (with("padding", json!("x".repeat(10_240))), "PAYLOAD_TOO_LARGE", ""),
    ] {
        let told = say(&app, "c", &text).await;
        let shown: String = text.chars().take(80).collect();
        assert_eq!((&told["status"], &told["code"]), (&json!("error"), &json!(code)), "{shown}: {told}");
        assert!(told["message"].as_str().is_some_and(|message| !message.is_empty()), "{told}");
        if !field.is_empty() {
            assert_eq!(told["details"]["field"], field, "{shown}: {told}");
        }
    }
    for bytes in ["/w==", "no base64", &"A".repeat(20_000)] {
        let mut event = event("MESSAGE", "c");
        (event["body"], event["isBase64Encoded"]) = (json!(bytes), json!(true));
        let answer = send(&app, event).await;
        let told: Value = serde_json::from_str(answer["body"].as_str().expect("an answer")).expect("JSON");
        assert_eq!(told["status"], "error", "{told}");
    }
    assert_eq!(known(&app).await, [0; 4]);
    app.pass(1_000);
    assert_eq!(
        words(&follow(&app, "c", &token).await),
        ("waiting", "wait"),
        "the socket is as good as before"
    );
}

#[tokio::test]
async fn messages_are_in_the_language_that_the_socket_asked_for() {
    let app = App::start().await;
    for (language, message) in [
        (json!("ko"), "요청이 올바르지 않습니다."),
        (json!("ko-KR"), "요청이 올바르지 않습니다."),
        (json!("fr"), "The request is not valid."),
        (Value::Null, "The request is not valid."),
    ] {
        let text = json!({ "type": "connect", "language": language, "token": "x" }).to_string();
        assert_eq!(say(&app, "c", &text).await["message"], message, "{language}");
    }
}

#[tokio::test]
async fn every_change_of_a_standing_is_pushed_once() {
    let app = App::start().await;
    let token = app.join().await;
    follow(&app, "c", &token).await;
    assert!(is_silent(&app).await, "it was told just now");
    app.pass(1_000);
    assert_eq!(app.tick().await.admitted, 1);
    assert_eq!(words(&heard(&app).await), ("ready", "move_to_seat_selection"));
    assert!(is_silent(&app).await);
    app.poll(&token).await.data();
    assert!(is_silent(&app).await, "who comes is told by its answer");
    app.hold(&token, json!({ "count": 1 })).await.data();
    let told = heard(&app).await;
    assert_eq!((words(&told), &told["heldCount"]), (("seated", "pay"), &json!(1)));
    app.hold(&token, json!({ "offeringId": "T1", "seats": ["1A"] })).await.data();
    assert_eq!(heard(&app).await["heldCount"], 2);
    app.post("/api/seat/cancel", json!({ "token": token })).await.data();
    assert_eq!(words(&heard(&app).await), ("ready", "move_to_seat_selection"));
    let booked = app.book(&token, json!({ "seatCount": 3 })).await;
    let told = heard(&app).await;
    assert_eq!((words(&told), &told["totalTicketCount"]), (("booked", "done"), &json!(3)));
    assert_eq!(
        (&told["reservationId"], &told["reservationStatus"]),
        (&booked.data()["reservationId"], &json!("CONFIRMED"))
    );
    let location = booked.header("location").expect("a location");
    app.send(Call::new("DELETE", location).query("token", &token)).await.data();
    let told = heard(&app).await;
    assert_eq!((words(&told), &told["reservationStatus"]), (("booked", "done"), &json!("CANCELLED")));
    assert_eq!(told["totalTicketCount"], 0);
    app.pass(600_000);
    assert!(is_silent(&app).await, "nothing more comes of itself");
}

#[tokio::test]
async fn a_booking_says_whether_it_is_to_be_paid_and_what_came_of_it() {
    let app = App::with(|sale| {
        sale["payment"] = json!({ "mode": "deferred", "dueAfterSeconds": 600, "currency": "KRW" });
    })
    .await;
    let (pays, forgets) = (app.active().await, app.active().await);
    follow(&app, "pays", &pays).await;
    follow(&app, "forgets", &forgets).await;
    let booked = app.book(&pays, json!({ "seatCount": 1 })).await;
    let told = heard(&app).await;
    assert_eq!((words(&told), &told["reservationStatus"]), (("booked", "pay"), &json!("PENDING_PAYMENT")));
    app.book(&forgets, json!({ "seatCount": 1 })).await.data();
    assert_eq!(heard(&app).await["totalTicketCount"], 1);
    let payment = json!({
        "paymentId": "p-1", "reservationId": booked.data()["reservationId"], "status": "PAID", "amount": 500,
        "currency": "KRW",
    });
    app.send(App::webhook(&payment)).await.data();
    let told = heard(&app).await;
    assert_eq!((words(&told), &told["reservationStatus"]), (("booked", "done"), &json!("PAID")));
    app.pass(600_000);
    admit::tick_event(&app.store, &app.event, Load::default()).await;
    let told = round(&app).await;
    assert_eq!(told.keys().collect::<Vec<_>>(), ["forgets"], "{told:?}");
    let told = &told["forgets"][0];
    assert_eq!((words(told), &told["reservationStatus"]), (("booked", "done"), &json!("EXPIRED")));
    assert_eq!(told["totalTicketCount"], 0);
}

#[tokio::test]
async fn an_account_follows_its_place_where_an_authorizer_has_proven_it_and_only_then() {
    let app = App::start().await;
    let gate = Gate {
        origin_secret: Some("a secret".to_owned()),
        trusted_account_header: Some("x-account".parse().expect("a name")),
        ..support::gate(&app.event)
    };
    let app = app.behind(gate, None);
    let through_the_door =
        |method: &str, path: &str| Call::new(method, path).header("x-origin-secret", "a secret");
    let join = async || {
        let joined = app.send(through_the_door("POST", "/api/queue/join").header("x-account", "kim")).await;
        joined.data()["token"].as_str().expect("a token").to_owned()
    };
    let say_as = async |authorizer: Value, message: Value| {
        let mut event = event("MESSAGE", "c");
        event["body"] = json!(message.to_string());
        event["requestContext"]["authorizer"] = authorizer;
        let answer = send(&app, event).await;
        serde_json::from_str::<Value>(answer["body"].as_str().expect("an answer")).expect("JSON")
    };
    let user = |id: &str| json!({ "type": "connect", "userId": id });
    let kim = json!({ "principalId": "user", "account": "kim", "integrationLatency": 12 });
    assert_eq!(say_as(kim.clone(), user("kim")).await["code"], "NOT_FOUND", "no place yet");
    let token = join().await;
    for (authorizer, message, expected) in [
        (json!({}), user("kim"), "UNAUTHORIZED"),
        (Value::Null, user("kim"), "UNAUTHORIZED"),
        (json!({ "principalId": 7, "account": ["kim"] }), user("kim"), "UNAUTHORIZED"),
        (kim.clone(), user("lee"), "UNAUTHORIZED"),
        (json!({ "principalId": "lee" }), user("kim"), "UNAUTHORIZED"),
        (json!({ "principalId": "" }), user("kim"), "INVALID_REQUEST"),
        (kim.clone(), json!({ "type": "connect" }), "MISSING_TOKEN"),
        (kim.clone(), json!({ "type": "connect", "userId": 7 }), "INVALID_REQUEST"),
    ] {
        assert_eq!(say_as(authorizer, message.clone()).await["code"], expected, "{message}");
    }
    for (authorizer, message) in [
        (kim.clone(), user("kim")),
        (json!({ "principalId": "kim" }), user("kim")),
        (kim.clone(), json!({ "type": "connect", "userId": "kim", "token": token })),
        (json!({}), json!({ "type": "connect", "token": token })),
    ] {
        assert_eq!(words(&say_as(authorizer, message).await), ("waiting", "wait"));
    }
    app.pass(1_000);
    app.tick().await;
    assert_eq!(words(&heard(&app).await).0, "ready");
    let book = through_the_door("POST", "/api/booking").json(&json!({ "token": token, "seatCount": 2 }));
    app.send(book).await.data();
    assert_eq!(heard(&app).await["totalTicketCount"], 2);
    // What an account has bought counts over all its visits, also while it waits.
    join().await;
    assert_eq!(say_as(kim, user("kim")).await["totalTicketCount"], 2);
    change(&app, StatusChange::Message("again".to_owned())).await;
    app.pass(1_000);
    let told = heard(&app).await;
    assert_eq!((words(&told).0, &told["totalTicketCount"]), ("waiting", &json!(2)));
}

#[tokio::test]
async fn a_call_is_repeated_until_it_is_answered_or_over() {
    let app = App::start().await;
    let (comes, stays) = (app.join().await, app.join().await);
    follow(&app, "comes", &comes).await;
    follow(&app, "stays", &stays).await;
    app.pass(1_000);
    app.tick().await;
    assert_eq!(round(&app).await.len(), 2);
    app.poll(&comes).await.data();
    for _ in 0..2 {
        app.pass(5_000);
        app.tick().await;
        let told = round(&app).await;
        assert_eq!(told.keys().collect::<Vec<_>>(), ["stays"], "{told:?}");
        assert_eq!(words(&told["stays"][0]).0, "ready");
    }
    app.pass(5_000);
    assert_eq!(app.tick().await.lapsed, 1);
    let told = heard(&app).await;
    assert_eq!((words(&told), &told["reentry"]), (("expired", "rejoin"), &json!(true)));
    app.rejoin(&stays).await.data();
    let told = heard(&app).await;
    assert_eq!((words(&told), &told["currentRank"]), (("waiting", "wait"), &json!(1)), "on the same socket");
}

#[tokio::test]
async fn sessions_and_holds_that_end_are_told_with_the_reason() {
    let app = App::start().await;
    let (idle, holder) = (app.active().await, app.active().await);
    follow(&app, "idle", &idle).await;
    follow(&app, "holder", &holder).await;
    app.hold(&holder, json!({ "count": 1 })).await.data();
    assert_eq!(words(&heard(&app).await).0, "seated");
    app.pass(120_000);
    app.tick().await;
    let told = round(&app).await;
    assert_eq!(told.len(), 1, "{told:?}");
    assert_eq!(
        (&told["holder"][0]["status"], &told["holder"][0]["code"]),
        (&json!("error"), &json!("HOLD_EXPIRED"))
    );
    assert_eq!(words(&told["holder"][1]), ("expired", "rejoin"));
    app.pass(60_000);
    app.tick().await;
    let told = round(&app).await;
    assert_eq!(told.keys().collect::<Vec<_>>(), ["idle"], "{told:?}");
    assert_eq!((told["idle"].len(), words(&told["idle"][0])), (1, ("expired", "rejoin")));
}

#[tokio::test]
async fn who_leaves_is_told_once_more_and_then_followed_no_longer() {
    let app = App::start().await;
    let (waiting, active) = (app.join().await, app.active().await);
    for (connection, token) in [("waiting", &waiting), ("active", &active)] {
        follow(&app, connection, token).await;
        app.leave(token).await.data();
        assert_eq!(words(&heard(&app).await), ("expired", "rejoin"), "{connection}");
        assert_eq!(known(&app).await, [0; 4], "{connection}");
    }
}

#[tokio::test]
async fn what_a_request_is_refused_for_is_pushed_too() {
    let app = App::with(|sale| sale["limitPerAccount"] = json!(3)).await;
    let (token, other) = (app.active().await, app.active().await);
    let korean = json!({ "type": "connect", "token": token, "language": "ko" }).to_string();
    say(&app, "c", &korean).await;
    app.hold(&other, json!({ "offeringId": "T2", "seats": ["1A", "1B"] })).await.data();
    assert!(is_silent(&app).await);
    let hold = async |choice: Value| {
        app.hold(&token, choice).await.code();
        heard(&app).await
    };
    let refused = hold(json!({ "offeringId": "T2", "seats": ["1A"] })).await;
    assert_eq!(
        (&refused["status"], &refused["code"], &refused["message"]),
        (&json!("error"), &json!("SEAT_TAKEN"), &json!("이미 선택된 좌석입니다."))
    );
    assert_eq!(hold(json!({ "count": 4 })).await["code"], "PURCHASE_LIMIT_EXCEEDED");
    let four = json!({ "offeringId": "T1", "seats": ["1A", "1B", "1C", "1D"] });
    assert_eq!(hold(four).await["code"], "PURCHASE_LIMIT_EXCEEDED");
    let gone = json!({ "offeringId": "T2", "sectionId": "A", "count": 1 });
    assert_eq!(hold(gone).await["code"], "SOLD_OUT");
    app.book(&token, json!({ "seatCount": 4 })).await.code();
    assert_eq!(heard(&app).await["code"], "PURCHASE_LIMIT_EXCEEDED");
    // Two before a look are one: the later one.
    app.book(&token, json!({ "seatCount": 4 })).await.code();
    app.hold(&token, json!({ "offeringId": "T2", "seats": ["1A"] })).await.code();
    assert_eq!(heard(&app).await["code"], "SEAT_TAKEN");
    // With a change of the standing, both are told.
    app.hold(&token, json!({ "count": 2 })).await.data();
    app.hold(&token, json!({ "count": 2 })).await.code();
    let told = round(&app).await;
    let told: Vec<&Value> = told["c"].iter().collect();
    assert_eq!(
        (told.len(), &told[0]["code"], words(told[1]).0),
        (2, &json!("PURCHASE_LIMIT_EXCEEDED"), "seated")
    );
    app.pass(120_000);
    app.book(&token, json!({})).await.code();
    let told = round(&app).await;
    assert_eq!(told["c"][0]["code"], "HOLD_EXPIRED", "judged at use, before the tick");
    assert_eq!(known(&app).await[3], 0);
    // Whoever has no socket costs nothing.
    app.hold(&other, json!({ "count": 9 })).await.code();
    assert_eq!(known(&app).await[3], 0);
}

#[tokio::test]
async fn ranks_are_told_as_often_as_polls_would_be_and_only_when_they_change() {
    let app = App::with(|sale| sale["admission"]["perSecond"] = json!(1)).await;
    app.at(OPENS_AT);
    let mut tokens = Vec::new();
    for _ in 0..102 {
        tokens.push(app.join().await);
    }
    // Ranks 100 and 102: a second, two seconds.
    follow(&app, "near", &tokens[99]).await;
    follow(&app, "far", &tokens[101]).await;
    assert_eq!(app.tick().await.admitted, 0);
    app.pass(1_000);
    assert!(is_silent(&app).await, "nobody has moved");
    let mut heard: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    for _ in 0..6 {
        app.pass(500);
        app.tick().await;
        for (connection, told) in round(&app).await {
            heard.entry(connection).or_default().push(told[0]["currentRank"].as_u64().expect("a rank"));
        }
    }
    assert_eq!(heard["near"], [98, 97, 96], "{heard:?}");
    assert_eq!(heard["far"], [99, 98], "after two seconds, and then after one, being near");
    change(&app, StatusChange::Message("잠시만요".to_owned())).await;
    app.pass(1_000);
    let told = round(&app).await;
    assert!(told.values().flatten().all(|told| told["message"] == "잠시만요"), "{told:?}");
    assert_eq!(told.len(), 2);
}

#[tokio::test]
async fn before_the_opening_nothing_tells_the_place_and_at_it_everybody_hears() {
    let app = App::with(|sale| sale["preQueue"] = json!("shuffle")).await;
    app.at(OPENS_AT - 60_000);
    let mut tokens = Vec::new();
    for at in 0..20 {
        tokens.push(app.join().await);
        let told = follow(&app, &format!("c{at}"), &tokens[at]).await;
        assert_eq!((words(&told), &told["currentRank"]), (("waiting", "wait"), &Value::Null));
        assert_eq!((&told["opensAt"], &told["estimatedWaitTime"]), (&json!(OPENS_AT), &Value::Null));
    }
    for _ in 0..50 {
        app.pass(1_000);
        app.tick().await;
        assert!(is_silent(&app).await);
    }
    change(&app, StatusChange::Message("soon".to_owned())).await;
    app.at(OPENS_AT - 1);
    let told = round(&app).await;
    assert!(
        told.len() == 20 && told.values().flatten().all(|told| told["currentRank"].is_null()),
        "{told:?}"
    );
    let mut ranks = Vec::new();
    for _ in 0..3 {
        for told in round(&app).await.into_values().flatten() {
            ranks.push(told["currentRank"].as_u64().expect("a rank"));
        }
        app.pass(1_000);
    }
    ranks.sort_unstable();
    assert_eq!(ranks, (1..=20).collect::<Vec<u64>>(), "within two seconds, each once");
}

#[tokio::test]
async fn a_closed_sale_tells_all_who_wait_and_then_nobody_has_more_to_hear() {
    let app = App::start().await;
    for at in 0..30 {
        let token = app.join().await;
        follow(&app, &format!("c{at}"), &token).await;
    }
    let kept = Kept::default();
    assert_eq!(admit::push_event(&app.store, &kept, &app.event).await, 30);
    change(&app, StatusChange::Close).await;
    app.pass(10_000);
    let told = round(&app).await;
    assert_eq!(told.len(), 30);
    assert!(told.values().flatten().all(|told| words(told) == ("expired", "done")), "{told:?}");
    assert_eq!(admit::push_event(&app.store, &kept, &app.event).await, 0);
}

#[tokio::test]
async fn several_sockets_follow_one_token_and_the_oldest_gives_way() {
    let app = App::start().await;
    let token = app.join().await;
    for at in 0..9 {
        follow(&app, &format!("c{at}"), &token).await;
    }
    assert_eq!(known(&app).await, [1, 8, 1, 0]);
    app.pass(1_000);
    app.tick().await;
    let told = round(&app).await;
    let names: Vec<String> = (1..9).map(|at| format!("c{at}")).collect();
    assert_eq!(told.keys().cloned().collect::<Vec<_>>(), names);
    assert!(told.values().all(|told| told.len() == 1 && words(&told[0]).0 == "ready"));
}

#[tokio::test]
async fn a_socket_that_comes_while_others_wait_for_news_takes_none_away() {
    let app = App::start().await;
    let token = app.join().await;
    follow(&app, "first", &token).await;
    app.pass(1_000);
    app.tick().await;
    app.poll(&token).await.data();
    assert_eq!(words(&follow(&app, "second", &token).await).0, "ready");
    assert!(round(&app).await.contains_key("first"), "it had not been told yet");
}

#[tokio::test]
async fn connecting_again_follows_another_token_or_the_same_again() {
    let app = App::start().await;
    let (one, two) = (app.join().await, app.join().await);
    follow(&app, "c", &one).await;
    follow(&app, "c", &one).await;
    assert_eq!(known(&app).await, [1, 1, 1, 0]);
    follow(&app, "c", &two).await;
    assert_eq!(known(&app).await, [1, 1, 1, 0], "one token at a time");
    app.pass(1_000);
    app.tick().await;
    assert_eq!(round(&app).await["c"].len(), 1);
    // A reconnect is a new socket for the same place; the old one's end, told late, harms nothing.
    follow(&app, "again", &two).await;
    assert_eq!(send(&app, event("DISCONNECT", "c")).await["statusCode"], 200);
    assert_eq!(known(&app).await, [1, 1, 1, 0]);
    send(&app, event("DISCONNECT", "again")).await;
    send(&app, event("DISCONNECT", "again")).await;
    send(&app, event("DISCONNECT", "never-seen")).await;
    assert_eq!(known(&app).await, [0; 4]);
}

#[tokio::test]
async fn asking_is_limited_per_address_but_behind_a_front_door() {
    let app = App::with(|sale| sale["joinsPerAddressPerSecond"] = json!(3)).await;
    let token = app.join().await;
    let mut refused = 0;
    for at in 0..8 {
        let told = follow(&app, &format!("c{at}"), &token).await;
        if told["status"] == "error" {
            assert_eq!((&told["code"], &told["retryAfterSeconds"]), (&json!("RATE_LIMIT"), &json!(1)));
            refused += 1;
        }
    }
    // A second may have begun anew in between.
    assert!((2..=5).contains(&refused), "{refused}");
    let gate = Gate {
        default_event: Some(app.event.clone()),
        origin_secret: Some("a secret".to_owned()),
        ..Gate::default()
    };
    let behind = app.behind(gate, None);
    for at in 0..8 {
        assert_eq!(follow(&behind, &format!("d{at}"), &token).await["status"], "waiting");
    }
    for (secret, status) in [(None, 403), (Some("another"), 403), (Some("a secret"), 200)] {
        let mut open = event("CONNECT", "e");
        open["headers"] = secret.map_or(json!({}), |secret| json!({ "X-Origin-Secret": secret }));
        assert_eq!(send(&behind, open).await, json!({ "statusCode": status }));
    }
    assert_eq!(send(&app, event("CONNECT", "e")).await, json!({ "statusCode": 200 }));
}

#[tokio::test]
async fn an_event_has_so_many_sockets_at_most() {
    let redis = Redis::start(Topology::of_one_node());
    let app = App::on(&redis, |_| {}).await;
    let token = app.join().await;
    follow(&app, "c", &token).await;
    let key = store::Keys::of(&app.event).name(store::KeyName::Connections);
    let mut connection = redis.connection().await;
    let names: Vec<u32> = (1..store::CONNECTIONS_AN_EVENT).collect();
    for names in names.chunks(5_000) {
        let mut fill = redis::cmd("HSET");
        fill.arg(&key);
        for name in names {
            fill.arg(name).arg("t");
        }
        fill.exec_async(&mut connection).await.expect("redis takes them");
    }
    let told = follow(&app, "d", &token).await;
    assert_eq!((&told["code"], &told["retryAfterSeconds"]), (&json!("RATE_LIMIT"), &json!(5)));
    assert_eq!(follow(&app, "c", &token).await["status"], "waiting", "who is there may stay");
}

#[tokio::test]
async fn a_thousand_called_at_once_are_all_told_in_one_round_and_no_one_twice() {
    let app = App::with(|sale| {
        sale["admission"] = json!({ "perSecond": 1_000, "maxActive": 5_000 });
    })
    .await;
    app.at(OPENS_AT);
    let tokens = join_all((0..1_100).map(|_| app.join())).await;
    let follows =
        tokens.iter().enumerate().map(async |(at, token)| follow(&app, &format!("c{at}"), token).await);
    join_all(follows).await;
    app.pass(1_000);
    assert_eq!(app.tick().await.admitted, 1_000);
    // Several pushers at once, as runs overlap.
    let rounds = join_all((0..3).map(|_| round(&app))).await;
    let told: Vec<(String, Vec<Value>)> = rounds.into_iter().flatten().collect();
    let ready = told.iter().filter(|(_, told)| words(&told[0]).0 == "ready").count();
    let waiting = told.iter().filter(|(_, told)| words(&told[0]).0 == "waiting").count();
    assert_eq!((ready, waiting, told.len()), (1_000, 100, 1_100));
    assert!(told.iter().all(|(_, told)| told.len() == 1));
}

/// Sockets by their names: some are gone, one never takes anything, the others remember what they were told.
#[derive(Default)]
struct Named {
    told: Mutex<Vec<(String, String)>>,
    departed: Mutex<Vec<Gone>>,
    /// The slow ones fail when this comes.
    slow_ends: tokio::sync::Notify,
}

impl Sockets for Named {
    fn post<'a>(&'a self, connection: &'a ConnectionId, body: &'a str) -> BoxFuture<'a, Posted> {
        async move {
            match connection.as_str() {
                name if name.starts_with("gone") => Posted::Gone,
                name if name.starts_with("failing") => Posted::Failed,
                name if name.starts_with("slow") => {
                    self.slow_ends.notified().await;
                    Posted::Failed
                }
                name => {
                    self.told.lock().expect("no panic").push((name.to_owned(), body.to_owned()));
                    Posted::Sent
                }
            }
        }
        .boxed()
    }
}

impl Departures for Named {
    fn depart(&self, gone: Vec<Gone>) -> BoxFuture<'_, ()> {
        self.departed.lock().expect("no panic").extend(gone);
        futures::future::ready(()).boxed()
    }
}

fn sqs(bodies: Vec<String>) -> SqsEvent {
    let records: Vec<Value> = bodies
        .into_iter()
        .enumerate()
        .map(|(at, body)| json!({ "messageId": at.to_string(), "body": body, "eventSource": "aws:sqs" }))
        .collect();
    serde_json::from_value(json!({ "Records": records })).expect("an SQS event")
}

#[tokio::test]
async fn the_push_function_tells_each_in_order_reports_the_gone_and_waits_for_no_slow_one() {
    let push = |connection: &str, bodies: &[&str]| Push {
        event: "a-sale".parse().expect("an id"),
        connection: connection.parse().expect("a name"),
        bodies: bodies.iter().map(|body| (*body).to_owned()).collect(),
    };
    let mut pushes = vec![push("slow", &["x"]), push("gone1", &["x", "y"]), push("failing", &["x", "y"])];
    pushes.extend((0..300).map(|at| push(&format!("c{at}"), &["first", "second"])));
    pushes.push(push("gone2", &["x"]));
    let mut bodies = outbox::pack_pushes(pushes);
    bodies.insert(1, "{\"pushes\":7}".to_owned());
    let named = Named::default();
    let whole = push::push(&named, &named, sqs(bodies));
    let told_soon = async {
        let all = async || named.told.lock().expect("no panic").len() == 600;
        support::wait_until(std::time::Duration::from_secs(10), "all but the slow one are told", all).await;
        named.slow_ends.notify_one();
    };
    futures::join!(whole, told_soon);
    let mut order: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (name, body) in named.told.into_inner().expect("no panic") {
        order.entry(name).or_default().push(body);
    }
    assert!(order.len() == 300 && order.values().all(|told| told == &["first", "second"]));
    let departed = named.departed.into_inner().expect("no panic");
    let mut gone: Vec<&str> = departed.iter().map(|gone| gone.connection.as_str()).collect();
    gone.sort_unstable();
    assert_eq!(gone, ["gone1", "gone2"], "each once");
}

#[tokio::test]
async fn a_gone_socket_is_forgotten_at_the_first_failure_and_others_are_not() {
    let app = App::start().await;
    let (one, two) = (app.join().await, app.join().await);
    follow(&app, "gone1", &one).await;
    follow(&app, "here", &one).await;
    follow(&app, "gone2", &two).await;
    app.pass(1_000);
    app.tick().await;
    let (named, kept) = (Named::default(), Kept::default());
    admit::push_event(&app.store, &kept, &app.event).await;
    push::deliver(&named, &named, kept.0.into_inner().expect("no panic")).await;
    let departed = named.departed.into_inner().expect("no panic");
    assert_eq!(departed.len(), 2);
    let mut bodies = outbox::pack_gone(&departed);
    bodies.push("nonsense".to_owned());
    let gone = serde_json::to_value(sqs(bodies)).expect("JSON");
    // Twice, as queues deliver.
    for _ in 0..2 {
        assert_eq!(send(&app, gone.clone()).await, json!({ "batchItemFailures": [] }));
        assert_eq!(known(&app).await, [1, 1, 1, 0]);
    }
    app.pass(5_000);
    let told = round(&app).await;
    assert_eq!(told.keys().collect::<Vec<_>>(), ["here"]);
}

#[tokio::test]
async fn the_events_of_the_repository_are_understood() {
    let app = App::start().await;
    let read = |name: &str| -> Value {
        let path = format!("{}/../events/{name}.json", env!("CARGO_MANIFEST_DIR"));
        serde_json::from_str(&std::fs::read_to_string(path).expect("a file")).expect("JSON")
    };
    assert_eq!(send(&app, read("socket-open")).await, json!({ "statusCode": 200 }));
    let answer = send(&app, read("socket")).await;
    let told: Value = serde_json::from_str(answer["body"].as_str().expect("an answer")).expect("JSON");
    assert_eq!(
        (&told["code"], &told["message"]),
        (&json!("EVENT_NOT_FOUND"), &json!("해당 예매를 찾을 수 없습니다."))
    );
    assert_eq!(send(&app, read("socket-close")).await, json!({ "statusCode": 200 }));
    assert_eq!(send(&app, read("socket-gone")).await, json!({ "batchItemFailures": [] }));
    let named = Named::default();
    push::push(&named, &named, serde_json::from_value(read("push")).expect("an SQS event")).await;
    let told = named.told.into_inner().expect("no panic");
    assert_eq!(told[0].0, "L0SM9cOFvHcCIhw=");
    assert_eq!(serde_json::from_str::<Value>(&told[0].1).expect("JSON")["status"], "ready");
}

#[tokio::test]
async fn sockets_cost_no_request_a_round_trip_and_no_tick_either() {
    let redis = Redis::start(Topology::of_one_node());
    let app = App::on(&redis, |_| {}).await;
    let one = |command: &str| BTreeMap::from([(command.to_owned(), 1)]);
    let sent = async |work: BoxFuture<'_, ()>| redis.count_commands(async || work.await).await;
    // Scripts are loaded, the definition is read.
    let first = app.active().await;
    follow(&app, "c", &first).await;
    app.hold(&first, json!({ "count": 1 })).await.data();
    round(&app).await;
    app.leave(&first).await.data();
    round(&app).await;
    app.store.disconnect(&app.event, &["c".parse().expect("a name")]).await.expect("redis answers");

    let mut tokens = Vec::new();
    for _ in 0..10 {
        tokens.push(app.join().await);
    }
    for (at, token) in tokens.iter().enumerate() {
        let connection = format!("c{at}");
        let counted = sent(follow(&app, &connection, token).map(drop).boxed()).await;
        assert_eq!(counted, one("evalsha"), "connect");
    }
    app.pass(1_000);
    assert_eq!(sent(app.tick().map(drop).boxed()).await, one("evalsha"), "a tick that calls ten");
    assert_eq!(sent(round(&app).map(drop).boxed()).await, one("evalsha"), "a round that tells ten");
    assert_eq!(sent(round(&app).map(drop).boxed()).await, one("evalsha"), "a round with nothing to tell");
    let hold = json!({ "count": 1 });
    let counted = sent(app.hold(&tokens[0], hold.clone()).map(drop).boxed()).await;
    assert_eq!(counted, one("evalsha"), "a hold");
    let counted = sent(round(&app).map(drop).boxed()).await;
    assert_eq!(
        counted,
        BTreeMap::from([("evalsha".to_owned(), 2)]),
        "and one more for each place to be asked for"
    );
    let names: Vec<ConnectionId> = (0..10).map(|at| format!("c{at}").parse().expect("a name")).collect();
    let forget = app.store.disconnect(&app.event, &names).map(drop).boxed();
    assert_eq!(sent(forget).await, one("evalsha"), "disconnect");
}
