//! Who may act: access tokens, and every guarded endpoint against everybody who may not.

use domain::{Account, Millis, Token};
use gateway::access::AccessKeyPair;
use gateway::routes::{self, Guard, ROUTES};
use gateway::{AccessClaims, AccessKeys, Gate};
use serde_json::{Value, json};
use store::{EventState, Snapshot};
use support::{Answer, App, Call, access, gate};

const SECRET: &str = "what only the front door knows";
const ISSUER: &str = "https://sale.example";

/// All that a request could change.
async fn state(app: &App) -> (Snapshot, EventState) {
    let snapshot = app.store.snapshot(&app.event).await.expect("redis answers").expect("the event is known");
    let state = app.store.event_state(&app.event).await.expect("redis answers").expect("the event is known");
    (snapshot, state)
}

fn claims(app: &App, token: &str) -> AccessClaims {
    AccessClaims {
        event: app.event.clone(),
        token: token.parse().expect("a token"),
        account: None,
        issued_at: Millis::now(),
        expires_at: Millis::now().plus(60_000),
    }
}

fn bearer(claims: &AccessClaims) -> String {
    format!("Bearer {}", access().keys.sign(ISSUER, claims).expect("a signature"))
}

/// A request that would be served if its sender were in a session or the owner: without any proof. `None` where
/// nobody has written one, which the test below does not let pass.
fn asking(call: routes::Call, reservation: &str) -> Option<Call> {
    let booking = format!("/api/booking/{reservation}");
    Some(match call {
        routes::Call::Search => Call::new("GET", "/trains/search"),
        routes::Call::SeatMap => Call::new("GET", "/api/seats").query("offeringId", "T1"),
        routes::Call::Hold => Call::new("POST", "/api/seat/select").json(&json!({ "count": 1 })),
        routes::Call::Release => Call::new("POST", "/api/seat/cancel").json(&json!({})),
        routes::Call::Book => Call::new("POST", "/api/booking").json(&json!({ "seatCount": 1 })),
        routes::Call::ReadReservation => Call::new("GET", &booking),
        routes::Call::CancelReservation => Call::new("DELETE", &booking),
        routes::Call::Pay => Call::new("POST", "/api/payment/webhook").json(&json!({
            "paymentId": "p-1", "reservationId": reservation, "status": "PAID", "amount": 1, "currency": "KRW",
        })),
        _ => return None,
    })
}

/// Everybody who may not act on seats, with what they are told.
async fn intruders(app: &App) -> Vec<(&'static str, String, &'static str)> {
    let (left, booked, expired) = (app.active().await, app.active().await, app.active().await);
    assert_eq!(app.leave(&left).await.status, 200);
    assert_eq!(app.book(&booked, json!({ "seatCount": 2 })).await.status, 201);
    app.pass(200_000);
    let other_sale = App::start().await;
    let stranger = other_sale.active().await;
    let late = AccessClaims { expires_at: Millis::now().plus(-1_000), ..claims(app, &expired) };
    let stranger_keys =
        AccessKeys::new(&AccessKeyPair::generate().expect("a key").private_pem, None).expect("keys");
    let forged =
        format!("Bearer {}", stranger_keys.sign(ISSUER, &claims(app, &expired)).expect("a signature"));
    vec![
        ("forged", forged, "UNAUTHORIZED"),
        ("garbage", "Bearer x.y.z".to_owned(), "UNAUTHORIZED"),
        ("another sale's", bearer(&claims(&other_sale, &stranger)), "UNAUTHORIZED"),
        ("too old", bearer(&late), "UNAUTHORIZED"),
        ("never let in", bearer(&claims(app, &Token::random().to_string())), "NOT_ADMITTED"),
        ("left", bearer(&claims(app, &left)), "NOT_ADMITTED"),
        ("over", bearer(&claims(app, &expired)), "ADMISSION_EXPIRED"),
        ("booked", bearer(&claims(app, &booked)), "ALREADY_BOOKED"),
    ]
}

#[tokio::test]
async fn nobody_acts_who_may_not_and_nothing_changes() {
    let app = App::start().await;
    let intruders = intruders(&app).await;
    let owner = app.active().await;
    let booked = app.book(&owner, json!({ "seatCount": 2 })).await;
    let reservation = booked.data()["reservationId"].as_str().expect("an id").to_owned();
    let door = app.behind(Gate { origin_secret: Some(SECRET.to_owned()), ..gate(&app.event) }, None);
    let before = state(&app).await;
    for route in ROUTES.iter().filter(|route| route.call.guard() != Guard::Open) {
        let call = || {
            asking(route.call, &reservation).unwrap_or_else(|| {
                panic!("{} {} is guarded and has no case in access.rs", route.method, route.path)
            })
        };
        let whole = |answer: &Answer| format!("{} {}: {}", route.method, route.path, answer.text);
        let answer = app.send(call()).await;
        let nobody = match (route.call.guard(), route.method) {
            (Guard::Signature, _) => "BAD_SIGNATURE",
            (Guard::Session, "POST") => "MISSING_TOKEN",
            _ => "UNAUTHORIZED",
        };
        assert_eq!(answer.code(), nobody, "{}", whole(&answer));
        let answer = door.send(call()).await;
        assert_eq!((answer.status, answer.code()), (403, "FORBIDDEN"), "{}", whole(&answer));
        for (who, authorization, code) in &intruders {
            let answer = app.send(call().header("authorization", authorization)).await;
            let code = match (route.call.guard(), *code) {
                (Guard::Signature, _) => "BAD_SIGNATURE",
                (Guard::Session, code) => code,
                // Age is no matter for an owner; of the others nobody owns this reservation.
                (_, "UNAUTHORIZED") if *who != "too old" => "UNAUTHORIZED",
                _ => "RESERVATION_NOT_FOUND",
            };
            assert_eq!(answer.code(), code, "{who}: {}", whole(&answer));
            assert!(!answer.text.contains(authorization.trim_start_matches("Bearer ")), "{who}");
        }
        assert_eq!(state(&app).await, before, "{} {}", route.method, route.path);
    }
}

#[tokio::test]
async fn the_access_token_does_all_that_the_token_does() {
    let app = App::start().await;
    let token = app.join().await;
    app.pass(1_000);
    app.tick().await;
    let polled = app.poll(&token).await;
    let access_token = polled.data()["accessToken"].as_str().expect("an access token").to_owned();
    assert_eq!(
        app.poll(&token).await.data().get("accessToken"),
        None,
        "only the answer that claims brings it"
    );
    let said = access().keys.check(&access_token, Millis(app.now())).expect("ours");
    assert_eq!((said.event, said.token.to_string(), said.account), (app.event.clone(), token.clone(), None));
    assert_eq!(Value::from(said.expires_at.0), polled.data()["activeExpiresAt"]);
    let again = app.rejoin(&token).await.data()["accessToken"].as_str().expect("an access token").to_owned();
    assert_eq!(access().keys.check(&again, Millis(app.now())).expect("ours").expires_at, said.expires_at);

    let authorization = format!("Bearer {access_token}");
    let send = async |call: Call| app.send(call.header("authorization", &authorization)).await;
    assert_eq!(send(Call::new("GET", "/api/offerings")).await.status, 200);
    assert_eq!(send(Call::new("GET", "/api/seats").query("offeringId", "T1")).await.status, 200);
    let seats = json!({ "offeringId": "T1", "seats": ["1A", "1B"] });
    assert_eq!(send(Call::new("POST", "/api/seat/select").json(&seats)).await.status, 200);
    let one = json!({ "offeringId": "T1", "seatId": "1B" });
    assert_eq!(send(Call::new("POST", "/api/seat/cancel").json(&one)).await.data()["released"], 1);
    // Nothing to say needs no body.
    let booked = send(Call::new("POST", "/api/booking")).await;
    assert_eq!((booked.status, &booked.data()["seats"]), (201, &json!(["1A"])));
    let location = booked.header("location").expect("a location").to_owned();
    assert_eq!(send(Call::new("GET", &location)).await.status, 200);
    let dead = send(Call::new("GET", "/api/offerings")).await;
    assert_eq!(dead.code(), "ALREADY_BOOKED", "a booked session's token is dead at once");
    assert_eq!(send(Call::new("DELETE", &location)).await.data()["status"], "CANCELLED");
}

#[tokio::test]
async fn an_access_token_of_any_age_reads_and_gives_back_what_its_token_booked() {
    let app = App::start().await;
    let token = app.active().await;
    let booked = app.book(&token, json!({ "seatCount": 1 })).await;
    let location = booked.header("location").expect("a location").to_owned();
    let old = AccessClaims { expires_at: Millis(1_000), ..claims(&app, &token) };
    let send =
        async |method| app.send(Call::new(method, &location).header("authorization", &bearer(&old))).await;
    assert_eq!(send("GET").await.data()["status"], "CONFIRMED");
    assert_eq!(send("DELETE").await.data()["status"], "CANCELLED");
    assert_eq!(app.remaining().await, 28);
}

#[tokio::test]
async fn a_token_beside_an_access_token_must_be_the_same() {
    let app = App::start().await;
    let (token, other) = (app.active().await, app.active().await);
    let search = |sent: &str| {
        Call::new("GET", "/api/offerings")
            .query("token", sent)
            .header("authorization", &bearer(&claims(&app, &token)))
    };
    assert_eq!(app.send(search(&token)).await.status, 200);
    assert_eq!(app.send(search("")).await.status, 200);
    assert_eq!(app.send(search(&other)).await.code(), "UNAUTHORIZED");
    assert_eq!(app.send(search("x")).await.details()["field"], "token");
    let basic =
        Call::new("GET", "/api/offerings").query("token", &token).header("authorization", "Basic eDp5");
    assert_eq!(app.send(basic).await.status, 200, "another scheme is another's matter");
    let bad =
        Call::new("GET", "/api/offerings").query("token", &token).header("authorization", "Bearer forged");
    assert_eq!(app.send(bad).await.code(), "UNAUTHORIZED", "a good token does not make up for it");
}

#[tokio::test]
async fn a_script_never_carries_an_access_token() {
    let app = App::start().await;
    let token = app.join().await;
    app.pass(1_000);
    app.tick().await;
    let script = app
        .send(Call::new("GET", "/api/status/poll").query("token", &token).query("callback", "onPoll"))
        .await;
    assert!(script.text.contains("\"ACTIVE\"") && !script.text.contains("accessToken"), "{}", script.text);
    assert!(app.rejoin(&token).await.data()["accessToken"].is_string());
}

#[tokio::test]
async fn a_hold_near_the_end_keeps_its_owner_to_the_holds_end_with_a_new_access_token() {
    let app = App::with(|sale| {
        sale["admission"]["activeSeconds"] = json!(60);
        sale["holdSeconds"] = json!(120);
    })
    .await;
    let token = app.active().await;
    app.pass(59_000);
    let held = app.hold(&token, json!({ "count": 1 })).await;
    let end = app.now() + 120_000;
    assert_eq!((&held.data()["holdExpiresAt"], &held.data()["activeExpiresAt"]), (&json!(end), &json!(end)));
    let access_token = held.data()["accessToken"].as_str().expect("an access token");
    assert_eq!(access().keys.check(access_token, Millis(app.now())).expect("ours").expires_at, Millis(end));
    let more = app.hold(&token, json!({ "count": 1 })).await;
    assert_eq!((more.status, more.data().get("accessToken")), (200, None), "no longer than before");
    app.pass(119_999);
    assert_eq!(app.hold(&token, json!({ "count": 1 })).await.status, 200);
    app.pass(1);
    assert_eq!(app.hold(&token, json!({ "count": 1 })).await.code(), "HOLD_EXPIRED");
    assert_eq!(app.poll(&token).await.data()["status"], "EXPIRED", "a lapsed hold ends the session");
    app.tick().await;
    assert_eq!(app.remaining().await, 28);
}

#[tokio::test]
async fn two_keys_are_good_at_once_and_the_newer_one_signs() {
    let app = App::start().await;
    let token = app.active().await;
    let old = bearer(&claims(&app, &token));
    let next = AccessKeyPair::generate().expect("a key");
    let rotated = bootstrap::config::Access::new(&next.private_pem, Some(support::ACCESS_TOKEN_KEY), None);
    let rotated = app.signing_with(rotated.expect("keys"));
    let search =
        |authorization: &str| Call::new("GET", "/api/offerings").header("authorization", authorization);
    assert_eq!(rotated.send(search(&old)).await.status, 200);
    let new =
        rotated.rejoin(&token).await.data()["accessToken"].as_str().expect("an access token").to_owned();
    assert_eq!(rotated.send(search(&format!("Bearer {new}"))).await.status, 200);
    assert_eq!(app.send(search(&format!("Bearer {new}"))).await.code(), "UNAUTHORIZED");
    let retired = bootstrap::config::Access::new(&next.private_pem, None, None).expect("keys");
    assert_eq!(app.signing_with(retired).send(search(&old)).await.code(), "UNAUTHORIZED");
}

#[tokio::test]
async fn an_account_claim_must_fit_whoever_else_is_proven() {
    let app = App::start().await;
    let token = app.active().await;
    let account = |name: &str| Some(name.parse::<Account>().expect("an account"));
    let kim = bearer(&AccessClaims { account: account("kim"), ..claims(&app, &token) });
    let user =
        |user: &str| Call::new("GET", "/api/offerings").query("userId", user).header("authorization", &kim);
    assert_eq!(app.send(user("kim")).await.status, 200);
    assert_eq!(app.send(user("lee")).await.code(), "UNAUTHORIZED");
}
