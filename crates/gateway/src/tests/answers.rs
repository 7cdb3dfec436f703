use futures::executor::block_on;
use serde_json::json;

use super::{Sent, TOKEN, gate, header_of, json_of, text_of};
use crate::response::{self, Answer};
use crate::{Body, Call, Failure, Gate, Response, answer, request};

/// What the function answers when its handler comes to `outcome`.
fn answered(gate: &Gate, function: &str, sent: Sent, outcome: Answer) -> Response<Body> {
    block_on(answer(gate, function, &sent.request(), |_| async { outcome }))
}

/// What a poll that only parses answers.
fn polled(query: &str) -> Response<Body> {
    let (gate, request) = (gate(), Sent::to(&format!("GET /api/status/poll?{query}")).request());
    block_on(answer(&gate, "poll", &request, async |call| {
        assert_eq!(call, Call::Poll);
        request::poll(&gate, &request)?;
        response::left(true)
    }))
}

fn code_of(response: &Response<Body>) -> String {
    json_of(response)["error"]["code"].as_str().unwrap().to_owned()
}

#[test]
fn every_answer_is_json_that_no_cache_keeps_and_no_page_misreads() {
    for response in [
        answered(&gate(), "leave", Sent::to("DELETE /api/queue/leave"), response::left(true)),
        answered(&gate(), "leave", Sent::to("DELETE /api/queue/leave"), Err(Failure::MissingToken)),
    ] {
        assert_eq!(header_of(&response, "content-type"), Some("application/json; charset=utf-8"));
        assert_eq!(header_of(&response, "x-content-type-options"), Some("nosniff"));
        assert_eq!(header_of(&response, "cache-control"), Some("no-store"));
        assert_eq!(header_of(&response, "referrer-policy"), Some("no-referrer"));
        assert_eq!(
            header_of(&response, "content-security-policy"),
            Some("default-src 'none'; frame-ancestors 'none'")
        );
    }
}

#[test]
fn a_failure_speaks_the_callers_language_and_names_the_request() {
    let sent = Sent::to("DELETE /api/queue/leave").header("accept-language", "ko-KR,ko;q=0.9,en;q=0.8");
    let response = answered(&gate(), "leave", sent, Err(Failure::MissingToken));
    assert_eq!(response.status(), 400);
    assert_eq!(
        json_of(&response),
        json!({"success": false, "error": {
            "code": "MISSING_TOKEN", "message": "대기표(토큰)가 필요합니다.", "requestId": "Qx3mNgq5IE0EPMQ="}})
    );
    let response =
        answered(&gate(), "leave", Sent::to("DELETE /api/queue/leave"), Err(Failure::MissingToken));
    assert_eq!(json_of(&response)["error"]["message"], "A token is needed.");
}

#[test]
fn what_passes_tells_when_to_try_again() {
    let refused = Failure::Unavailable { retry_after_seconds: 3 };
    let response = answered(&gate(), "leave", Sent::to("DELETE /api/queue/leave"), Err(refused));
    assert_eq!((response.status().as_u16(), header_of(&response, "retry-after")), (503, Some("3")));
    let response =
        answered(&gate(), "leave", Sent::to("DELETE /api/queue/leave"), Err(Failure::MissingToken));
    assert_eq!(header_of(&response, "retry-after"), None);
}

#[test]
fn a_function_answers_its_own_routes_only() {
    let asked = |line: &str| answered(&gate(), "poll", Sent::to(line), response::left(true));
    assert_eq!(asked("GET /health").status(), 200);
    for line in ["POST /api/queue/join", "GET /api/seats", "GET /", "GET /api/status/poll/"] {
        let response = asked(line);
        assert_eq!((response.status().as_u16(), code_of(&response).as_str()), (404, "NOT_FOUND"), "{line}");
    }
    for line in ["HEAD /health", "POST /api/status/poll", "PATCH /health"] {
        let response = asked(line);
        assert_eq!(
            (response.status().as_u16(), code_of(&response).as_str()),
            (405, "METHOD_NOT_ALLOWED"),
            "{line}"
        );
        assert_eq!(header_of(&response, "allow"), Some("GET, OPTIONS"));
    }
}

#[test]
fn a_panic_costs_its_own_request_and_is_our_fault() {
    let (gate, request) = (gate(), Sent::to("GET /health").request());
    let response = block_on(answer(&gate, "poll", &request, |_| async { panic!("in the handler") }));
    assert_eq!((response.status().as_u16(), code_of(&response).as_str()), (500, "INTERNAL_ERROR"));
    assert!(!text_of(&response).contains("in the handler"));
    assert_eq!(block_on(answer(&gate, "poll", &request, panic_at_once)).status(), 500);
}

fn panic_at_once(call: Call) -> std::future::Ready<Answer> {
    panic!("before there is a future for {call:?}")
}

#[test]
fn an_answer_may_move_between_threads() {
    fn is_send<T: Send>(_: &T) {}
    let (gate, request) = (gate(), Sent::to("GET /health").request());
    is_send(&answer(&gate, "poll", &request, |_| async { response::left(true) }));
}

#[test]
fn without_the_origin_secret_nothing_is_answered() {
    let guarded = Gate { origin_secret: Some("open sesame".to_owned()), ..gate() };
    for line in ["GET /health", "GET /api/status/progress", "GET /nowhere", "OPTIONS /health"] {
        let response = answered(&guarded, "poll", Sent::to(line), response::left(true));
        assert_eq!((response.status().as_u16(), code_of(&response).as_str()), (403, "FORBIDDEN"), "{line}");
    }
    let sent = Sent::to("GET /health").header("x-origin-secret", "open sesame");
    assert_eq!(answered(&guarded, "poll", sent, response::left(true)).status(), 200);
}

#[test]
fn a_poll_with_a_callback_is_a_script_that_always_succeeds() {
    let response = polled(&format!("token={TOKEN}&callback=_on$Poll1"));
    assert_eq!(response.status(), 200);
    assert_eq!(header_of(&response, "content-type"), Some("application/javascript; charset=utf-8"));
    assert_eq!(header_of(&response, "x-content-type-options"), Some("nosniff"));
    assert_eq!(text_of(&response), r#"/**/_on$Poll1({"success":true,"data":{"removed":true}});"#);
    for query in ["callback=f", "callback=f&token=x", "callback=f&token=%zz", "callback=f&token=a&token=b"] {
        let response = polled(query);
        assert_eq!(response.status(), 200, "{query}");
        assert!(text_of(&response).starts_with(r#"/**/f({"success":false,"error":{"code":""#), "{query}");
    }
}

#[test]
fn a_callback_is_a_plain_identifier_or_refused_without_a_script() {
    let long = "f".repeat(65);
    for name in
        ["", "1f", "a.b", "f(", "alert(1)//", "a%20b", "%zz", "%ED%95%9C", "f&callback=g", "f[0]", &long]
    {
        let response = polled(&format!("token={TOKEN}&callback={name}"));
        assert_eq!(response.status(), 400, "{name}");
        assert_eq!(header_of(&response, "content-type"), Some("application/json; charset=utf-8"));
        assert_eq!(json_of(&response)["error"]["details"]["field"], "callback", "{name}");
    }
    assert_eq!(polled(&format!("token={TOKEN}&callback={}", "f".repeat(64))).status(), 200);
    // Only polls are scripts.
    let response =
        answered(&gate(), "poll", Sent::to("GET /api/status/progress?callback=f"), response::left(true));
    assert_eq!(header_of(&response, "content-type"), Some("application/json; charset=utf-8"));
}

#[test]
fn a_script_has_no_line_end_that_older_ones_may_not_have() {
    let message = "a\u{2028}b\u{2029}c";
    let sent = Sent::to("GET /api/status/poll?callback=f");
    let response = answered(&gate(), "poll", sent, Err(Failure::invalid("x", message)));
    assert!(text_of(&response).contains("a\\u2028b\\u2029c"));
}

#[test]
fn pages_of_known_origins_may_read_answers() {
    let asked = |origins: &[&str], origin: Option<&str>| {
        let cors_origins = origins.iter().map(|origin| (*origin).to_owned()).collect();
        let sent = Sent::to("GET /health");
        let sent = match origin {
            Some(origin) => sent.header("origin", origin),
            None => sent,
        };
        let response = answered(&Gate { cors_origins, ..gate() }, "poll", sent, response::left(true));
        let header = |name| header_of(&response, name).map(str::to_owned);
        (header("access-control-allow-origin"), header("access-control-expose-headers"), header("vary"))
    };
    let page = "https://tickets.example";
    let exposed = Some("etag, location, retry-after".to_owned());
    let vary = Some("origin".to_owned());
    assert_eq!(asked(&[], Some(page)), (None, None, None));
    assert_eq!(asked(&["*"], None), (None, None, None));
    assert_eq!(asked(&["*"], Some(page)), (Some("*".to_owned()), exposed.clone(), None));
    assert_eq!(asked(&[page], Some(page)), (Some(page.to_owned()), exposed.clone(), vary.clone()));
    assert_eq!(asked(&[page], Some("https://tickets.example.evil")), (None, None, vary.clone()));
    assert_eq!(asked(&[page], None), (None, None, vary));
}

#[test]
fn a_page_may_ask_before_it_sends() {
    let gate = Gate { cors_origins: vec!["https://tickets.example".to_owned()], ..gate() };
    let asked = |origin: &str| {
        let sent = Sent::to("OPTIONS /api/booking/x")
            .header("origin", origin)
            .header("access-control-request-method", "DELETE");
        answered(&gate, "book", sent, response::left(true))
    };
    let response = asked("https://tickets.example");
    assert_eq!((response.status().as_u16(), text_of(&response)), (204, ""));
    assert_eq!(header_of(&response, "access-control-allow-origin"), Some("https://tickets.example"));
    assert_eq!(header_of(&response, "access-control-allow-methods"), Some("GET, DELETE, OPTIONS"));
    assert_eq!(
        header_of(&response, "access-control-allow-headers"),
        Some("authorization, content-type, idempotency-key, if-none-match")
    );
    assert_eq!(header_of(&response, "content-type"), None);
    let response = asked("https://elsewhere.example");
    assert_eq!(response.status(), 204);
    assert_eq!(header_of(&response, "access-control-allow-origin"), None);
    assert_eq!(header_of(&response, "access-control-allow-methods"), None);
    assert_eq!(answered(&gate, "book", Sent::to("OPTIONS /nowhere"), response::left(true)).status(), 404);
}

#[test]
fn a_flawed_event_is_the_callers_fault() {
    let gate = gate();
    let request = Sent::to("POST /api/booking").base64("not base64!").request();
    let response = block_on(answer(&gate, "book", &request, |_| async {
        request::book(&gate, &request)?;
        response::left(true)
    }));
    assert_eq!(response.status(), 400);
    assert_eq!(
        json_of(&response)["error"]["details"],
        json!({"field": "body", "reason": "must be valid base64"})
    );
}
