//! Bad input: a clear 4xx with code, field and reason; never a 500, never a change.

use serde_json::{Value, json};
use support::{Answer, App, Call, Redis, Topology};

/// Fails the test unless the answer is `INVALID_REQUEST` about `field`.
fn is_invalid(answer: &Answer, field: &str) {
    assert_eq!((answer.status, answer.code()), (400, "INVALID_REQUEST"), "{}", answer.text);
    assert_eq!(answer.details()["field"], field, "{}", answer.text);
    assert!(answer.details()["reason"].as_str().is_some_and(|reason| !reason.is_empty()));
}

const UUID: &str = "6f9619ff-8b86-4d01-b42d-00cf4fc964ff";

#[tokio::test]
async fn ids_that_could_leave_their_place_in_a_key_are_refused() {
    let app = App::start().await;
    for id in ["a{b}", "a:b", "a\nb", "A", "-a", "é", "ticket:{x}:meta", &"a".repeat(64)] {
        is_invalid(&app.post("/api/queue/join", json!({ "eventId": id })).await, "eventId");
        let poll = Call::new("GET", "/api/status/poll").query("token", UUID).query("eventId", id);
        is_invalid(&app.send(poll).await, "eventId");
        is_invalid(&app.send(Call::new("GET", "/api/status/progress").query("eventId", id)).await, "eventId");
    }
    for id in ["a b", "a{b", "a:b", "a\n", "특실", &"a".repeat(33)] {
        let seat = |field: &str| {
            let mut body = json!({ "token": UUID, "offeringId": "T1", "sectionId": "A", "seats": ["1A"] });
            body[field] = json!(id);
            app.post("/api/seat/select", body)
        };
        is_invalid(&seat("offeringId").await, "offeringId");
        is_invalid(&seat("sectionId").await, "sectionId");
        is_invalid(&app.post("/api/seat/select", json!({ "token": UUID, "seats": [id] })).await, "seats");
        is_invalid(&app.post("/api/seat/select", json!({ "token": UUID, "seatId": id })).await, "seatId");
        is_invalid(&app.post("/api/seat/cancel", json!({ "token": UUID, "seatId": id })).await, "seatId");
    }
}

#[tokio::test]
async fn tokens_are_uuids() {
    let app = App::start().await;
    for token in [
        "x",
        "6f9619ff-8b86-1d01-b42d-00cf4fc964ff",
        "6f9619ff8b864d01b42d00cf4fc964ff",
        "{6f9619ff-8b86-4d01-b42d-00cf4fc964ff}",
    ] {
        is_invalid(&app.poll(token).await, "token");
        is_invalid(&app.leave(token).await, "token");
        is_invalid(&app.rejoin(token).await, "token");
        is_invalid(&app.hold(token, json!({ "count": 1 })).await, "token");
        is_invalid(&app.book(token, json!({ "seatCount": 1 })).await, "token");
        is_invalid(&app.send(Call::new("GET", "/trains/search").query("token", token)).await, "token");
    }
    for missing in [
        app.send(Call::new("GET", "/api/status/poll")).await,
        app.send(Call::new("DELETE", "/api/queue/leave")).await,
        app.poll("").await,
        app.post("/api/queue/rejoin", json!({})).await,
        app.post("/api/seat/select", json!({ "count": 1 })).await,
        app.post("/api/seat/cancel", json!({})).await,
        app.post("/api/booking", json!({ "seatCount": 1 })).await,
        app.post("/api/booking", json!({ "seatCount": 1, "token": null })).await,
    ] {
        assert_eq!((missing.status, missing.code()), (400, "MISSING_TOKEN"), "{}", missing.text);
    }
}

#[tokio::test]
async fn counts_have_bounds_and_types() {
    let app = App::start().await;
    let token = app.active().await;
    let odd = [
        json!(0),
        json!(-1),
        json!(1.5),
        json!(101),
        json!(1_000_000_000_000_u64),
        json!("2"),
        json!([2]),
        json!(true),
        json!(1e300),
    ];
    for count in odd {
        is_invalid(&app.book(&token, json!({ "seatCount": count })).await, "seatCount");
        is_invalid(&app.hold(&token, json!({ "count": count })).await, "count");
        is_invalid(&app.hold(&token, json!({ "best": count })).await, "best");
    }
    assert_eq!(app.remaining().await, 28);
    assert_eq!(app.poll(&token).await.data()["status"], "ACTIVE");
}

#[tokio::test]
async fn a_select_names_its_seats_once_and_in_one_way() {
    let app = App::start().await;
    let token = app.active().await;
    let hold = |choice: Value| app.hold(&token, choice);
    is_invalid(&hold(json!({ "seats": ["1A", "1B", "1A"] })).await, "seats");
    is_invalid(&hold(json!({ "seats": [] })).await, "seats");
    is_invalid(&hold(json!({ "seats": "1A" })).await, "seats");
    is_invalid(&hold(json!({ "seats": [1] })).await, "seats");
    for choice in [json!({}), json!({ "seats": ["1A"], "best": 1 }), json!({ "seatId": "1A", "count": 1 })] {
        assert_eq!(hold(choice).await.code(), "INVALID_REQUEST");
    }
    let many: Vec<String> = (0..101).map(|seat| format!("S{seat}")).collect();
    is_invalid(&hold(json!({ "seats": many })).await, "seats");
    assert_eq!(app.remaining().await, 28);
}

#[tokio::test]
async fn bodies_are_json_objects_of_ten_kilobytes() {
    let app = App::start().await;
    let post = |path: &str| Call::new("POST", path).header("content-type", "application/json");
    for path in ["/api/queue/rejoin", "/api/seat/select", "/api/seat/cancel", "/api/booking"] {
        for body in ["", "{", "[]", "1", "\"x\"", "null", "{\"token\":", "\u{0}"] {
            is_invalid(&app.send(post(path).text(body)).await, "body");
        }
        is_invalid(&app.send(post(path).base64("%%%")).await, "body");
        is_invalid(&app.send(post(path).base64("/w==")).await, "body");
        is_invalid(&app.send(post(path)).await, "body");
        let long = format!("{{\"token\":\"{UUID}\",\"x\":\"{}\"}}", "가".repeat(3_400));
        let refused = app.send(post(path).text(&long)).await;
        assert_eq!((refused.status, refused.code()), (413, "PAYLOAD_TOO_LARGE"), "{path}");
        for content_type in ["text/plain", "application/x-www-form-urlencoded", "application/jsonx"] {
            let refused =
                app.send(Call::new("POST", path).header("content-type", content_type).text("{}")).await;
            assert_eq!(
                (refused.status, refused.code()),
                (415, "UNSUPPORTED_MEDIA_TYPE"),
                "{path} {content_type}"
            );
        }
    }
    let utf8 = app.send(
        Call::new("POST", "/api/queue/join")
            .header("content-type", "application/json; charset=utf-8")
            .text("{}"),
    );
    utf8.await.data();
    // A body in base64 is as good.
    app.send(post("/api/queue/join").base64("e30=")).await.data();
}

#[tokio::test]
async fn parameters_are_given_once() {
    let app = App::start().await;
    let token = app.join().await;
    let twice = Call::new("GET", "/api/status/poll").query("token", &token).query("token", UUID);
    is_invalid(&app.send(twice).await, "token");
    let mut event = Call::new("GET", "/api/status/poll").event();
    event["rawQueryString"] = json!("token=%E0%A4%A");
    let answer = app.send_event(event).await;
    assert_eq!((answer.status, answer.code()), (400, "INVALID_REQUEST"), "{}", answer.text);
}

#[tokio::test]
async fn unknown_fields_and_parameters_are_passed_over() {
    let app = App::start().await;
    let joined = app.post("/api/queue/join", json!({ "colour": "red", "nested": { "x": [1] } })).await;
    let token = joined.data()["token"].as_str().expect("a token").to_owned();
    let poll = Call::new("GET", "/api/status/poll").query("token", &token).query("_", 1_700_000_000);
    app.send(poll).await.data();
}

#[tokio::test]
async fn nobody_is_who_they_say_they_are() {
    let app = App::start().await;
    let refused = app.post("/api/queue/join", json!({ "userId": "kim" })).await;
    assert_eq!((refused.status, refused.code()), (401, "UNAUTHORIZED"));
    app.post("/api/queue/join", json!({ "userId": null })).await.data();
}

#[tokio::test]
async fn wrong_methods_and_paths() {
    let app = App::start().await;
    for (method, path, allowed) in [
        ("GET", "/api/queue/join", "POST"),
        ("PUT", "/api/booking", "POST"),
        ("POST", "/api/status/poll", "GET"),
        ("PATCH", "/api/booking/x", "GET"),
    ] {
        let refused = app.send(Call::new(method, path)).await;
        assert_eq!((refused.status, refused.code()), (405, "METHOD_NOT_ALLOWED"));
        assert!(
            refused.header("allow").is_some_and(|allow| allow.contains(allowed)),
            "{:?}",
            refused.headers
        );
    }
    for path in ["/", "/api", "/api/queue/joinx", "/api/booking/a/b", "/api/booking/", "//", "/%"] {
        let missing = app.send(Call::new("GET", path)).await;
        assert_eq!((missing.status, missing.code()), (404, "NOT_FOUND"), "{path}");
    }
    for id in ["x", "a.b", "..", "A.6f9619ff-8b86-4d01-b42d-00cf4fc964ff"] {
        let refused = app.send(Call::new("GET", &format!("/api/booking/{id}")).query("token", UUID)).await;
        is_invalid(&refused, "reservationId");
    }
}

#[tokio::test]
async fn an_origin_secret_keeps_others_out_and_brings_the_viewers_address() {
    let app = App::with(|sale| sale["joinsPerAddressPerSecond"] = json!(1)).await;
    let secret = "a secret between the front door and us".to_owned();
    let gate = gateway::Gate {
        default_event: Some(app.event.clone()),
        origin_secret: Some(secret.clone()),
        ..gateway::Gate::default()
    };
    let behind = app.behind(gate, None);
    let join = || Call::new("POST", "/api/queue/join");
    for call in [join(), join().header("x-origin-secret", "wrong")] {
        let refused = behind.send(call).await;
        assert_eq!((refused.status, refused.code()), (403, "FORBIDDEN"));
    }
    let from =
        |viewer: &str| join().header("x-origin-secret", &secret).header("cloudfront-viewer-address", viewer);
    behind.send(from("198.51.100.10:41022")).await.data();
    behind.send(from("198.51.100.11:41022")).await.data();
    behind.send(from("2001:db8::1:41022")).await.data();
    assert_eq!(behind.send(from("198.51.100.10:5")).await.code(), "RATE_LIMIT");
    // Without a secret the header proves nothing: all of these come from one address.
    app.send(join().header("cloudfront-viewer-address", "198.51.100.20:1")).await.data();
    let second = app.send(join().header("cloudfront-viewer-address", "198.51.100.21:1")).await;
    assert_eq!(second.code(), "RATE_LIMIT");
}

#[tokio::test]
async fn answers_carry_security_headers_and_cors_by_configuration() {
    let app = App::start().await;
    let plain =
        app.send(Call::new("POST", "/api/queue/join").header("origin", "https://tickets.example")).await;
    assert_eq!(plain.header("access-control-allow-origin"), None);
    assert_eq!(plain.header("x-content-type-options"), Some("nosniff"));
    assert_eq!(plain.header("cache-control"), Some("no-store"));
    let gate = gateway::Gate {
        default_event: Some(app.event.clone()),
        cors_origins: vec!["https://tickets.example".to_owned()],
        ..gateway::Gate::default()
    };
    let open = app.behind(gate, None);
    let ask = |origin: &str| Call::new("POST", "/api/queue/join").header("origin", origin);
    let allowed = open.send(ask("https://tickets.example")).await;
    assert_eq!(allowed.header("access-control-allow-origin"), Some("https://tickets.example"));
    assert_eq!(open.send(ask("https://evil.example")).await.header("access-control-allow-origin"), None);
    let preflight = Call::new("OPTIONS", "/api/queue/join")
        .header("origin", "https://tickets.example")
        .header("access-control-request-method", "POST");
    let preflight = open.send(preflight).await;
    assert_eq!(preflight.status, 204);
    assert!(preflight.header("access-control-allow-methods").is_some_and(|methods| methods.contains("POST")));
}

/// A key that holds what no step of ours writes: a bug, so nothing but its name is told.
#[tokio::test]
async fn what_must_not_be_is_an_internal_error_and_tells_nothing() {
    let app = App::start().await;
    let token = app.join().await;
    let waiting = store::Keys::of(&app.event).name(store::KeyName::Waiting);
    let mut redis = Redis::shared(Topology::chosen()).connection_of(&waiting).await;
    let () =
        redis::cmd("SET").arg(waiting).arg("no line").query_async(&mut redis).await.expect("redis answers");
    let refused = app.poll(&token).await;
    assert_eq!((refused.status, refused.code()), (500, "INTERNAL_ERROR"));
    assert_eq!(refused.json["error"]["details"], Value::Null);
    assert!(!refused.text.contains("WRONGTYPE") && !refused.text.contains("ticket:"), "{}", refused.text);
}
