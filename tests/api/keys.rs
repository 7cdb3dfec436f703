//! What is published of the keys for access tokens.

use bootstrap::config::Access;
use gateway::Gate;
use gateway::access::AccessKeyPair;
use keys::KeysState;
use serde_json::{Value, json};
use support::{ACCESS_TOKEN_KEY, App, Call};

fn jwks() -> Call {
    Call::new("GET", "/.well-known/jwks.json")
}

fn discovery() -> Call {
    Call::new("GET", "/.well-known/openid-configuration")
}

#[tokio::test]
async fn the_key_that_signs_is_published_and_its_secret_is_not() {
    let app = App::start().await;
    let published = app.send(jwks()).await;
    assert_eq!(published.status, 200);
    assert_eq!(published.header("cache-control"), Some("public, max-age=300"));
    let keys = published.json["keys"].as_array().expect("a list");
    assert_eq!(keys.len(), 1);
    let fields: Vec<&String> = keys[0].as_object().expect("a key").keys().collect();
    assert_eq!(fields, ["alg", "e", "kid", "kty", "n", "use"], "nothing private among them");
}

#[tokio::test]
async fn the_issuer_is_the_domain_that_was_called() {
    let found = App::start().await.send(discovery()).await;
    let issuer = "https://abc123.execute-api.ap-northeast-2.amazonaws.com";
    assert_eq!(found.json["issuer"], issuer);
    assert_eq!(found.json["jwks_uri"], format!("{issuer}/.well-known/jwks.json"));
    assert_eq!(found.header("cache-control"), Some("public, max-age=300"));
}

#[tokio::test]
async fn no_front_door_stands_before_what_is_public() {
    let app = App::start().await;
    let gate = Gate { origin_secret: Some("a secret".to_owned()), ..Gate::default() };
    let app = app.behind(gate, None);
    assert_eq!(app.send(Call::new("GET", "/health")).await.code(), "FORBIDDEN");
    for call in [jwks(), discovery()] {
        assert_eq!(app.send(call).await.status, 200);
    }
}

#[tokio::test]
async fn pages_of_allowed_origins_may_read_them() {
    let app = App::start().await;
    let gate = Gate { cors_origins: vec!["https://shop.example".to_owned()], ..Gate::default() };
    let answer = app.behind(gate, None).send(jwks().header("origin", "https://shop.example")).await;
    assert_eq!(answer.header("access-control-allow-origin"), Some("https://shop.example"));
}

/// The answer of a function of its own, as deployed: it knows the public parts alone.
async fn published(access: Access, call: &Call) -> Value {
    let state = KeysState::new(&Gate::default(), access);
    let event = serde_json::from_value(call.event()).expect("an event");
    let answer = keys::handle(&state, gateway::accept(event)).await;
    let gateway::Body::Text(text) = answer.body() else { panic!("{answer:?}") };
    serde_json::from_str(text).expect("JSON")
}

#[tokio::test]
async fn public_parts_are_enough_to_publish_two_keys_under_an_address() {
    let other = AccessKeyPair::generate().expect("a key");
    let private = Access::new(ACCESS_TOKEN_KEY, None, None).expect("a key");
    let signs = private.keys.jwks().keys.remove(0).kid;
    let address = "https://tickets.example".to_owned();
    let access = Access::new(&other.public_pem, Some(ACCESS_TOKEN_KEY), Some(address)).expect("two keys");
    let document = published(access.clone(), &discovery()).await;
    assert_eq!(document["jwks_uri"], "https://tickets.example/.well-known/jwks.json");
    let keys = published(access, &jwks()).await;
    let kids: Vec<&Value> = keys["keys"].as_array().expect("a list").iter().map(|key| &key["kid"]).collect();
    assert_eq!(kids, [&json!(other.kid), &json!(signs)]);
}
