//! The authorizer in front of somebody's own API: questions as API Gateway asks them.

use authorizer::{AuthorizerState, authorize};
use domain::{Millis, Token};
use gateway::AccessClaims;
use serde_json::{Value, json};
use store::{Store, StoreConfig};
use support::{App, Redis, Topology, access};

const RECORDED: &str = include_str!("../../events/authorizer.json");
/// The functions' clock.
const NOW: Millis = Millis(support::OPENS_AT + 1_000);

fn claims(app: &App, token: &str) -> AccessClaims {
    AccessClaims {
        event: app.event.clone(),
        token: token.parse().expect("a token"),
        account: None,
        issued_at: NOW,
        expires_at: NOW.plus(60_000),
    }
}

fn signed(claims: &AccessClaims) -> String {
    let token = access().keys.sign("https://tickets.example", claims).expect("a signature");
    format!("Bearer {token}")
}

/// A question about this `Authorization` header.
fn question(authorization: &str) -> Value {
    let mut event: Value = serde_json::from_str(RECORDED).expect("JSON");
    event["identitySource"] = json!([authorization]);
    event["headers"]["authorization"] = json!(authorization);
    event
}

async fn answer(state: &AuthorizerState, question: Value) -> Value {
    let request = serde_json::from_value(question).expect("a question of API Gateway's");
    let decision = authorize(state, request, NOW).await.expect("an answer");
    serde_json::to_value(decision).expect("JSON")
}

/// What is decided without Redis, for any sale of ours.
fn by_signature() -> AuthorizerState {
    AuthorizerState::new(access().keys, None, None)
}

fn by_session(app: &App) -> AuthorizerState {
    AuthorizerState::new(access().keys, None, Some(app.store.clone()))
}

fn no() -> Value {
    json!({ "isAuthorized": false })
}

async fn is_let_in(app: &App, token: &str) -> bool {
    let answer = answer(&by_session(app), question(&signed(&claims(app, token)))).await;
    answer["isAuthorized"].as_bool().expect("a decision")
}

#[tokio::test]
async fn a_good_token_is_enough_and_the_origin_learns_whose_it_is() {
    let app = App::start().await;
    let token = Token::random();
    let mut claims = claims(&app, &token.to_string());
    let hash = domain::shuffle::hex(&domain::shuffle::token_digest(token));
    let told = json!({ "event": app.event, "tokenHash": hash, "expiresAt": NOW.plus(60_000) });
    let yes = json!({ "isAuthorized": true, "context": told });
    assert_eq!(answer(&by_signature(), question(&signed(&claims))).await, yes);

    claims.account = Some("kim@example.com".parse().expect("an account"));
    let answered = answer(&by_signature(), question(&signed(&claims))).await;
    assert_eq!(answered["context"]["account"], "kim@example.com");
    assert!(!answered.to_string().contains(&token.to_string()), "the token is a secret");
}

#[tokio::test]
async fn whoever_has_no_good_token_is_turned_away() {
    let app = App::start().await;
    let good = claims(&app, &Token::random().to_string());
    let expired = AccessClaims { expires_at: NOW, ..good.clone() };
    let bearer = signed(&good);
    let cut = &bearer[..bearer.len() - 1];
    let without_scheme = bearer.trim_start_matches("Bearer ");
    let texts = ["", "Bearer", "Bearer ", "Bearer a.b.c", cut, without_scheme, &signed(&expired)];
    for text in texts {
        assert_eq!(answer(&by_signature(), question(text)).await, no(), "{text:?}");
        assert_eq!(answer(&by_session(&app), question(text)).await, no(), "{text:?}");
    }
    for question in [
        json!({}),
        json!({ "identitySource": null, "headers": null }),
        json!({ "identitySource": [], "headers": {} }),
        json!({ "headers": { "x-token": bearer } }),
        serde_json::from_str(RECORDED).expect("JSON"),
    ] {
        assert_eq!(answer(&by_signature(), question.clone()).await, no(), "{question}");
    }
}

#[tokio::test]
async fn a_token_is_found_in_any_identity_source_or_the_header() {
    let app = App::start().await;
    let bearer = signed(&claims(&app, &Token::random().to_string()));
    for question in [
        json!({ "identitySource": ["GET /orders", bearer] }),
        json!({ "headers": { "authorization": bearer } }),
        json!({ "identitySource": [bearer.replace("Bearer", "bearer")] }),
    ] {
        assert_eq!(answer(&by_signature(), question.clone()).await["isAuthorized"], true, "{question}");
    }
}

#[tokio::test]
async fn an_origin_of_one_sale_lets_in_its_buyers_alone() {
    let app = App::start().await;
    let bearer = signed(&claims(&app, &Token::random().to_string()));
    let of = |event: &str| AuthorizerState::new(access().keys, Some(event.parse().expect("an id")), None);
    assert_eq!(answer(&of(app.event.as_str()), question(&bearer)).await["isAuthorized"], true);
    assert_eq!(answer(&of("another-sale"), question(&bearer)).await, no());
}

#[tokio::test]
async fn a_live_session_is_let_in_until_its_own_end() {
    let app = App::start().await;
    let token = app.active().await;
    let end = app.poll(&token).await.data()["activeExpiresAt"].as_i64().expect("an end");
    let answered = answer(&by_session(&app), question(&signed(&claims(&app, &token)))).await;
    assert_eq!(answered["context"]["expiresAt"], end, "as Redis has it, not as the token says");
    app.at(end - 1);
    assert!(is_let_in(&app, &token).await);
    app.at(end);
    assert!(!is_let_in(&app, &token).await);
}

#[tokio::test]
async fn a_called_place_is_let_in_before_its_claim() {
    let app = App::start().await;
    let token = app.join().await;
    assert!(!is_let_in(&app, &token).await, "it waits");
    app.pass(1_000);
    assert_eq!(app.tick().await.admitted, 1);
    assert!(is_let_in(&app, &token).await);
    app.pass(15_000);
    assert!(!is_let_in(&app, &token).await, "it did not come");
}

#[tokio::test]
async fn whose_session_is_over_is_turned_away_at_once() {
    let app = App::start().await;
    let [booked, left] = [app.active().await, app.active().await];
    assert!(is_let_in(&app, &booked).await && is_let_in(&app, &left).await);
    assert_eq!(app.book(&booked, json!({ "seatCount": 1 })).await.status, 201);
    app.leave(&left).await.data();
    for token in [&booked, &left, &Token::random().to_string()] {
        assert!(!is_let_in(&app, token).await);
        let bearer = signed(&claims(&app, token));
        assert_eq!(answer(&by_signature(), question(&bearer)).await["isAuthorized"], true);
    }
}

#[tokio::test]
async fn nobody_is_let_in_to_a_sale_that_is_closed_or_unknown() {
    let app = App::start().await;
    let token = app.active().await;
    let mut elsewhere = claims(&app, &token);
    elsewhere.event = "no-such-sale".parse().expect("an id");
    assert_eq!(answer(&by_session(&app), question(&signed(&elsewhere))).await, no());
    assert!(is_let_in(&app, &token).await);
    app.at(support::OPENS_AT + 86_400_000);
    assert!(!is_let_in(&app, &token).await);
}

#[tokio::test]
async fn looking_is_one_round_trip_and_changes_nothing() {
    let redis = Redis::start(Topology::of_one_node());
    let app = App::on(&redis, |_| {}).await;
    let token = app.active().await;
    assert!(is_let_in(&app, &token).await, "the script is loaded");
    let counted = redis.count_commands(async || assert!(is_let_in(&app, &token).await)).await;
    assert_eq!(counted, std::collections::BTreeMap::from([("evalsha_ro".to_owned(), 1)]));
}

#[tokio::test]
async fn without_redis_there_is_no_answer_where_it_must_be_asked() {
    let app = App::start().await;
    // Nothing listens on this port.
    let store = Store::new(&StoreConfig::new("redis://127.0.0.1:1/", false)).expect("an address");
    let state = AuthorizerState::new(access().keys, None, Some(store));
    let bearer = signed(&claims(&app, &Token::random().to_string()));
    let request = serde_json::from_value(question(&bearer)).expect("a question");
    assert!(authorize(&state, request, NOW).await.is_err());
    let forged = serde_json::from_value(question("Bearer a.b.c")).expect("a question");
    assert!(authorize(&state, forged, NOW).await.is_ok(), "a forgery costs no round trip");
}
