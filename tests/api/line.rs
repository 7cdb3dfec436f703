//! The line: join, rejoin, leave, poll, progress; a token's whole life as sale.md draws it.

use domain::Token;
use domain::command::Join;
use domain::outcome::{Address, Joined, Place};
use domain::shuffle::{AFTER_THE_DRAW, Seed};
use serde_json::{Value, json};
use store::Drawn;
use support::{App, Call, MASTER_KEY, OPENS_AT, fresh_event};

async fn status(app: &App, token: &str) -> String {
    app.poll(token).await.data()["status"].as_str().expect("a status").to_owned()
}

/// A token that has been called and has not come.
async fn called(app: &App) -> String {
    let token = app.join().await;
    app.pass(1_000);
    assert_eq!(app.tick().await.admitted, 1);
    token
}

/// A token whose call has lapsed.
async fn lapsed(app: &App) -> String {
    let token = called(app).await;
    app.pass(15_000);
    assert_eq!(app.tick().await.lapsed, 1);
    token
}

#[tokio::test]
async fn two_joins_are_two_places_in_order_of_arrival() {
    let app = App::start().await;
    for number in 1..=3 {
        let joined = app.post("/api/queue/join", json!({})).await;
        let data = joined.data();
        assert_eq!(
            (&data["ticketNumber"], &data["rank"], &data["ahead"]),
            (&json!(number), &json!(number), &json!(number - 1))
        );
        assert_eq!((&data["joinedAt"], &data["rejoined"]), (&json!(app.now()), &json!(false)));
        assert_eq!(data["eventId"], app.event.as_str());
    }
    let progress = app.send(Call::new("GET", "/api/status/progress")).await;
    assert_eq!(progress.data()["totalWaiting"], 3);
    assert_eq!(progress.header("cache-control"), Some("public, max-age=1"));
}

/// As the store repeats a join whose answer was lost.
async fn join_as(app: &App, token: Token) -> Joined {
    let address = Address::of("203.0.113.8".parse().expect("an address"));
    let join = Join { event: app.event.clone(), address, account: None };
    let draw = |token| Drawn { token, score: 7 };
    let joined = app.store.join(&join, draw(token), draw).await.expect("redis answers");
    let (joined_as, joined) = joined.expect("joined");
    assert_eq!(joined_as, token);
    joined
}

#[tokio::test]
async fn a_join_that_is_repeated_is_one_place() {
    let (app, token) = (App::start().await, Token::random());
    let first = join_as(&app, token).await;
    assert_eq!(first.ticket_number, Some(1));
    app.join().await;
    let facts = app.journal_length().await;
    let again = join_as(&app, token).await;
    assert_eq!(again.ticket_number, Some(1));
    assert_eq!(again.standing.place, first.standing.place);
    assert_eq!((again.standing.view.total_waiting, app.journal_length().await), (2, facts));
    // No number was lost to it.
    assert_eq!(app.post("/api/queue/join", json!({})).await.data()["ticketNumber"], 3);

    app.pass(1_000);
    assert_eq!(app.tick().await.admitted, 3);
    let (facts, called) = (app.journal_length().await, join_as(&app, token).await);
    assert_eq!((called.ticket_number, called.standing.place), (None, Place::Called));
    assert_eq!((called.standing.view.total_waiting, app.journal_length().await), (0, facts));
}

#[tokio::test]
async fn a_drawn_place_is_drawn_once() {
    let app = App::with(|sale| sale["preQueue"] = json!("shuffle")).await;
    app.pass(-10_000);
    let token = Token::random();
    join_as(&app, token).await;
    let facts = app.journal_length().await;
    join_as(&app, token).await;
    assert_eq!(app.journal_length().await, facts);
    app.pass(10_000);
    let polled = app.poll(&token.to_string()).await;
    assert_eq!((&polled.data()["rank"], &polled.data()["totalWaiting"]), (&json!(1), &json!(1)));
}

#[tokio::test]
async fn a_poll_tells_rank_ahead_behind_and_the_wait() {
    let app = App::start().await;
    let mut tokens = Vec::new();
    for _ in 0..25 {
        tokens.push(app.join().await);
    }
    let data = app.poll(&tokens[20]).await.data().clone();
    assert_eq!((&data["rank"], &data["ahead"], &data["behind"]), (&json!(21), &json!(20), &json!(4)));
    assert_eq!((&data["status"], &data["totalWaiting"]), (&json!("WAITING"), &json!(25)));
    assert_eq!((&data["remainingSeats"], &data["totalTicketCount"]), (&json!(28), &json!(0)));
    // 20 ahead at the sale's own 10 a second, nobody having been admitted yet.
    assert_eq!(data["estimatedWaitSeconds"], 2);
    assert_eq!(data["activeExpiresAt"], Value::Null);
    let next = data["nextPollMs"].as_u64().expect("an interval");
    assert!((800..=1_200).contains(&next), "{next}");
}

#[tokio::test]
async fn unknown_events_and_tokens_are_told_apart() {
    let app = App::start().await;
    let unknown = fresh_event();
    let joined = app.post("/api/queue/join", json!({ "eventId": unknown })).await;
    assert_eq!((joined.status, joined.code()), (404, "EVENT_NOT_FOUND"));
    let token = domain::Token::random().to_string();
    let polled = app
        .send(Call::new("GET", "/api/status/poll").query("token", &token).query("eventId", &unknown))
        .await;
    assert_eq!(polled.code(), "EVENT_NOT_FOUND");
    let progress = app.send(Call::new("GET", "/api/status/progress").query("eventId", &unknown)).await;
    assert_eq!(progress.code(), "EVENT_NOT_FOUND");
    let rejoined = app.post("/api/queue/rejoin", json!({ "token": token, "eventId": unknown })).await;
    assert_eq!(rejoined.code(), "EVENT_NOT_FOUND");
    let left = app
        .send(Call::new("DELETE", "/api/queue/leave").query("token", &token).query("eventId", &unknown))
        .await;
    assert_eq!(left.code(), "EVENT_NOT_FOUND");
    let polled = app.poll(&token).await;
    assert_eq!((&polled.data()["status"], &polled.data()["nextPollMs"]), (&json!("NOT_FOUND"), &json!(0)));
}

#[tokio::test]
async fn a_reload_keeps_the_place() {
    let app = App::start().await;
    let first = app.join().await;
    let second = app.join().await;
    for _ in 0..3 {
        let rejoined = app.rejoin(&second).await;
        let data = rejoined.data();
        assert_eq!((&data["token"], &data["rank"]), (&json!(second), &json!(2)));
        assert_eq!((&data["rejoined"], &data["joinedAt"]), (&json!(true), &Value::Null));
        assert_eq!((&data["status"], &data["ticketNumber"]), (&json!("WAITING"), &json!(2)));
    }
    assert_eq!(app.poll(&first).await.data()["rank"], 1);
}

#[tokio::test]
async fn an_unknown_token_rejoins_as_somebody_new() {
    let app = App::start().await;
    let stranger = domain::Token::random().to_string();
    let rejoined = app.rejoin(&stranger).await;
    let data = rejoined.data();
    assert_ne!(data["token"], stranger.as_str(), "callers do not choose tokens");
    assert_eq!((&data["rejoined"], &data["ticketNumber"]), (&json!(false), &json!(1)));
    assert_eq!(data["joinedAt"], app.now());
}

#[tokio::test]
async fn who_leaves_is_unknown_and_joins_at_the_end() {
    let app = App::start().await;
    let leaver = app.join().await;
    let other = app.join().await;
    assert_eq!(app.leave(&leaver).await.data()["removed"], true);
    assert_eq!(app.leave(&leaver).await.data()["removed"], false);
    assert_eq!(status(&app, &leaver).await, "NOT_FOUND");
    assert_eq!(app.poll(&other).await.data()["rank"], 1);
    let back = app.rejoin(&leaver).await;
    assert_ne!(back.data()["token"], leaver.as_str());
    assert_eq!(back.data()["rank"], 2);
}

#[tokio::test]
async fn the_first_active_answer_claims_the_session() {
    let app = App::start().await;
    let token = called(&app).await;
    app.pass(5_000);
    let polled = app.poll(&token).await;
    assert_eq!(polled.data()["status"], "ACTIVE");
    let expires_at = app.now() + 180_000;
    assert_eq!(polled.data()["activeExpiresAt"], expires_at);
    app.pass(60_000);
    assert_eq!(app.poll(&token).await.data()["activeExpiresAt"], expires_at, "claiming again moves nothing");
    assert_eq!(app.rejoin(&token).await.data()["status"], "ACTIVE");
}

#[tokio::test]
async fn a_rejoin_claims_as_well() {
    let app = App::start().await;
    let token = called(&app).await;
    let rejoined = app.rejoin(&token).await;
    assert_eq!((&rejoined.data()["status"], &rejoined.data()["ticketNumber"]), (&json!("ACTIVE"), &json!(1)));
    app.pass(20_000);
    app.tick().await;
    assert_eq!(status(&app, &token).await, "ACTIVE");
}

#[tokio::test]
async fn a_lapsed_place_comes_back_to_its_old_score_once() {
    let app = App::start().await;
    let token = lapsed(&app).await;
    let later = app.join().await;
    let polled = app.poll(&token).await;
    assert_eq!((&polled.data()["status"], &polled.data()["reentry"]), (&json!("EXPIRED"), &json!(true)));
    let rejoined = app.rejoin(&token).await;
    let data = rejoined.data();
    assert_eq!(
        (&data["token"], &data["status"], &data["rank"]),
        (&json!(token), &json!("WAITING"), &json!(1))
    );
    assert_eq!((&data["rejoined"], &data["ticketNumber"]), (&json!(true), &json!(1)));
    assert_eq!(app.poll(&later).await.data()["rank"], 2);
    // Lapsed again: the one re-entry is used up.
    app.pass(1_000);
    assert_eq!(app.tick().await.admitted, 2);
    app.pass(15_000);
    assert_eq!(app.tick().await.lapsed, 2);
    let polled = app.poll(&token).await;
    assert_eq!((&polled.data()["status"], &polled.data()["reentry"]), (&json!("EXPIRED"), &Value::Null));
    let requeued = app.rejoin(&token).await;
    let data = requeued.data();
    assert_eq!((&data["token"], &data["ticketNumber"]), (&json!(token), &json!(3)));
    assert_eq!((&data["rejoined"], &data["joinedAt"]), (&json!(false), &json!(app.now())));
}

#[tokio::test]
async fn a_lapse_is_forgiven_for_ten_minutes() {
    let app = App::start().await;
    let token = called(&app).await;
    // Called until 15 s after the call.
    app.pass(15_000 + 600_000);
    assert_eq!(app.poll(&token).await.data()["reentry"], true);
    app.pass(1);
    assert_eq!(app.poll(&token).await.data()["reentry"], Value::Null);
    assert_eq!(app.rejoin(&token).await.data()["ticketNumber"], 2);
}

#[tokio::test]
async fn a_lapse_counts_from_its_instant_and_not_from_the_tick() {
    let app = App::start().await;
    let token = called(&app).await;
    app.pass(14_999);
    // Still called: a poll now would claim, so a call that acts on seats looks.
    assert_eq!(app.hold(&token, json!({ "count": 1 })).await.status, 200);
    let other = called(&app).await;
    app.pass(15_000);
    assert_eq!(app.hold(&other, json!({ "count": 1 })).await.code(), "ADMISSION_EXPIRED");
    assert_eq!(status(&app, &other).await, "EXPIRED");
}

#[tokio::test]
async fn an_expired_session_gets_a_new_number_at_the_end() {
    let app = App::start().await;
    let token = app.active().await;
    let waiting = app.join().await;
    app.pass(180_000);
    let polled = app.poll(&token).await;
    assert_eq!((&polled.data()["status"], &polled.data()["reentry"]), (&json!("EXPIRED"), &Value::Null));
    let requeued = app.rejoin(&token).await;
    let data = requeued.data();
    assert_eq!(
        (&data["token"], &data["status"], &data["rank"]),
        (&json!(token), &json!("WAITING"), &json!(2))
    );
    assert_eq!(data["ticketNumber"], 3);
    assert_eq!(app.poll(&waiting).await.data()["rank"], 1);
    app.pass(1_000);
    app.tick().await;
    assert_eq!(status(&app, &token).await, "ACTIVE", "a new visit");
}

#[tokio::test]
async fn who_booked_stays_booked() {
    let app = App::start().await;
    let token = app.active().await;
    let booked = app.book(&token, json!({ "seatCount": 2 })).await;
    let reservation = booked.data()["reservationId"].clone();
    let polled = app.poll(&token).await;
    assert_eq!((&polled.data()["status"], &polled.data()["reservationId"]), (&json!("BOOKED"), &reservation));
    assert_eq!((&polled.data()["totalTicketCount"], &polled.data()["nextPollMs"]), (&json!(2), &json!(0)));
    let rejoined = app.rejoin(&token).await;
    assert_eq!((rejoined.status, rejoined.code()), (409, "ALREADY_BOOKED"));
    assert_eq!(app.leave(&token).await.data()["removed"], false);
    let path = format!("/api/booking/{}", reservation.as_str().expect("an id"));
    app.send(Call::new("DELETE", &path).query("token", &token)).await.data();
    assert_eq!(app.rejoin(&token).await.code(), "ALREADY_BOOKED", "for good, also when it was given back");
    assert_eq!(app.poll(&token).await.data()["totalTicketCount"], 0);
}

#[tokio::test]
async fn leaving_a_session_frees_its_seats_and_its_slot_at_once() {
    let app = App::with(|sale| sale["admission"]["maxActive"] = json!(1)).await;
    let token = app.active().await;
    app.hold(&token, json!({ "offeringId": "T1", "seats": ["1A", "1B"] })).await.data();
    app.hold(&token, json!({ "count": 2 })).await.data();
    assert_eq!(app.remaining().await, 24);
    let next = app.join().await;
    app.pass(1_000);
    assert_eq!(app.tick().await.admitted, 0, "one at a time");
    assert_eq!(app.leave(&token).await.data()["removed"], true);
    assert_eq!(app.remaining().await, 28);
    assert_eq!(status(&app, &token).await, "NOT_FOUND");
    app.pass(1_000);
    assert_eq!(app.tick().await.admitted, 1);
    let held = app.hold(&next, json!({ "offeringId": "T1", "seats": ["1A", "1B"] })).await;
    assert_eq!(held.data()["seats"], json!(["1A", "1B"]));
}

#[tokio::test]
async fn a_called_token_that_leaves_frees_its_slot() {
    let app = App::with(|sale| sale["admission"]["maxActive"] = json!(1)).await;
    let token = called(&app).await;
    app.join().await;
    assert_eq!(app.leave(&token).await.data()["removed"], true);
    assert_eq!(status(&app, &token).await, "NOT_FOUND");
    app.pass(1_000);
    assert_eq!(app.tick().await.admitted, 1);
}

#[tokio::test]
async fn a_closed_pre_queue_refuses_until_the_opening() {
    let app = App::with(|sale| sale["preQueue"] = json!("closed")).await;
    app.at(OPENS_AT - 1);
    let joined = app.post("/api/queue/join", json!({})).await;
    assert_eq!((joined.status, joined.code()), (409, "NOT_OPEN"));
    assert_eq!(joined.details()["opensAt"], OPENS_AT);
    assert_eq!(app.rejoin(&domain::Token::random().to_string()).await.code(), "NOT_OPEN");
    app.at(OPENS_AT);
    app.join().await;
}

#[tokio::test]
async fn before_the_opening_nothing_tells_the_place() {
    for pre_queue in ["fifo", "shuffle"] {
        let app = App::with(|sale| sale["preQueue"] = json!(pre_queue)).await;
        app.at(OPENS_AT - 3_600_000);
        let mut lengths = std::collections::BTreeSet::new();
        for _ in 0..20 {
            let joined = app.post("/api/queue/join", json!({})).await;
            let token = joined.data()["token"].as_str().expect("a token");
            let polled = app.poll(token).await;
            for data in [joined.data(), polled.data()] {
                assert_eq!((&data["rank"], &data["ahead"]), (&Value::Null, &Value::Null));
                let next = data["nextPollMs"].as_u64().expect("an interval");
                assert!((8_000..=12_000).contains(&next), "{next}: by time alone");
                lengths.insert(data["key"].as_str().expect("a key").len());
            }
            assert_eq!((&polled.data()["behind"], &polled.data()["score"]), (&Value::Null, &Value::Null));
            assert_eq!(
                (&polled.data()["estimatedWaitSeconds"], &polled.data()["opensAt"]),
                (&Value::Null, &json!(OPENS_AT))
            );
        }
        assert_eq!(lengths.len(), 1, "a key's length tells nothing");
        assert_eq!(app.tick().await.admitted, 0, "nobody before the opening");
    }
}

#[tokio::test]
async fn a_fifo_pre_queue_keeps_the_order_of_arrival() {
    let app = App::with(|sale| sale["preQueue"] = json!("fifo")).await;
    app.at(OPENS_AT - 60_000);
    let mut tokens = Vec::new();
    for _ in 0..5 {
        tokens.push(app.join().await);
    }
    app.at(OPENS_AT);
    for (at, token) in tokens.iter().enumerate() {
        assert_eq!(app.poll(token).await.data()["rank"], at + 1);
    }
}

#[tokio::test]
async fn a_shuffle_orders_by_the_committed_seed_and_late_comers_follow() {
    let app = App::with(|sale| sale["preQueue"] = json!("shuffle")).await;
    let seed = Seed::of(MASTER_KEY.as_bytes(), &app.event);
    app.at(OPENS_AT - 60_000);
    let mut early: Vec<domain::Token> = Vec::new();
    for _ in 0..30 {
        early.push(app.join().await.parse().expect("a token"));
    }
    let before = app.send(Call::new("GET", "/api/status/progress")).await;
    assert_eq!(before.data()["shuffleCommitment"], seed.commitment());
    assert_eq!(before.data()["shuffleSeed"], Value::Null);
    assert_eq!(before.data()["status"], "UPCOMING");
    app.at(OPENS_AT);
    let late = app.join().await;
    let opened = app.send(Call::new("GET", "/api/status/progress")).await;
    assert_eq!(
        (&opened.data()["shuffleSeed"], &opened.data()["shuffleCommitment"]),
        (&json!(seed.reveal()), &json!(seed.commitment()))
    );
    let mut drawn = early.clone();
    drawn.sort_by_key(|token| seed.score(*token));
    assert_ne!(drawn, early, "30 people in order of arrival would be a draw of 1 in 30!");
    for (at, token) in drawn.iter().enumerate() {
        let polled = app.poll(&token.to_string()).await;
        assert_eq!(polled.data()["rank"], at + 1);
        assert_eq!(polled.data()["score"], seed.score(*token));
    }
    let polled = app.poll(&late).await;
    assert_eq!((&polled.data()["rank"], &polled.data()["score"]), (&json!(31), &json!(AFTER_THE_DRAW + 31)));
    assert_eq!(app.rejoin(&late).await.data()["ticketNumber"], 31);
}

#[tokio::test]
async fn a_drawn_place_remembers_its_number_by_its_key() {
    let app = App::with(|sale| sale["preQueue"] = json!("shuffle")).await;
    app.at(OPENS_AT - 60_000);
    app.join().await;
    let joined = app.post("/api/queue/join", json!({})).await;
    let (token, key) = (&joined.data()["token"], &joined.data()["key"]);
    let with_key = app.post("/api/queue/rejoin", json!({ "token": token, "key": key })).await;
    assert_eq!(with_key.data()["ticketNumber"], 2);
    let without = app.post("/api/queue/rejoin", json!({ "token": token })).await;
    assert_eq!(without.data()["ticketNumber"], Value::Null);
}

#[tokio::test]
async fn a_closed_sale_keeps_nothing_but_bookings() {
    let app = App::start().await;
    let booked = app.active().await;
    app.book(&booked, json!({ "seatCount": 1 })).await.data();
    let active = app.active().await;
    let waiting = app.join().await;
    app.at(OPENS_AT + 86_400_000);
    for token in [&active, &waiting] {
        assert_eq!(status(&app, token).await, "EXPIRED");
        let rejoined = app.rejoin(token).await;
        assert_eq!((rejoined.status, rejoined.code()), (403, "EVENT_CLOSED"));
    }
    assert_eq!(status(&app, &booked).await, "BOOKED");
    assert_eq!(app.rejoin(&booked).await.code(), "ALREADY_BOOKED");
    assert_eq!(app.post("/api/queue/join", json!({})).await.code(), "EVENT_CLOSED");
    assert_eq!(app.hold(&active, json!({ "count": 1 })).await.code(), "EVENT_CLOSED");
    assert_eq!(app.book(&active, json!({ "seatCount": 1 })).await.code(), "EVENT_CLOSED");
    let progress = app.send(Call::new("GET", "/api/status/progress")).await;
    assert_eq!(progress.data()["status"], "CLOSED");
    app.pass(1_000);
    assert_eq!(app.tick().await.admitted, 0);
}

#[tokio::test]
async fn joins_and_rejoins_of_one_address_share_a_limit() {
    let app = App::with(|sale| sale["joinsPerAddressPerSecond"] = json!(3)).await;
    let join = |from: &str| app.send(Call::new("POST", "/api/queue/join").from(from));
    let token = join("198.51.100.1").await.data()["token"].clone();
    let rejoin = Call::new("POST", "/api/queue/rejoin").from("198.51.100.1").json(&json!({ "token": token }));
    app.send(rejoin.clone()).await.data();
    join("198.51.100.1").await.data();
    for call in [rejoin, Call::new("POST", "/api/queue/join").from("198.51.100.1")] {
        let limited = app.send(call).await;
        assert_eq!((limited.status, limited.code()), (429, "RATE_LIMIT"));
        assert_eq!(limited.header("retry-after"), Some("1"));
    }
    join("198.51.100.2").await.data();
    // All of an IPv6 /64 is one caller.
    for last in 1..=3 {
        join(&format!("2001:db8:1:2::{last}")).await.data();
    }
    assert_eq!(join("2001:db8:1:2:ffff::9").await.code(), "RATE_LIMIT");
    join("2001:db8:1:3::1").await.data();
    assert_eq!(
        app.poll(token.as_str().expect("a token")).await.data()["rank"],
        1,
        "who was limited lost nothing"
    );
}

#[tokio::test]
async fn leaves_of_one_address_are_limited() {
    let app = App::start().await;
    let token = app.join().await;
    for _ in 0..5 {
        app.leave(&token).await.data();
    }
    assert_eq!(app.leave(&token).await.code(), "RATE_LIMIT");
}

#[tokio::test]
async fn polls_are_limited_without_a_good_key_only() {
    let app = App::with(|sale| sale["joinsPerAddressPerSecond"] = json!(2)).await;
    let joined = app.post("/api/queue/join", json!({})).await;
    let (token, key) = (joined.data()["token"].clone(), joined.data()["key"].clone());
    let token = token.as_str().expect("a token");
    let keyed =
        |key: &str| app.send(Call::new("GET", "/api/status/poll").query("token", token).query("key", key));
    let key = key.as_str().expect("a key");
    // The interval at rank 1 is a second: half of it has to pass.
    let early = keyed(key).await;
    assert_eq!((early.status, early.code()), (429, "RATE_LIMIT"));
    tokio::time::sleep(std::time::Duration::from_millis(600)).await;
    for _ in 0..10 {
        assert_eq!(keyed(key).await.data()["status"], "WAITING", "a key is limited by its time alone");
    }
    app.poll(token).await.data();
    app.poll(token).await.data();
    assert_eq!(app.poll(token).await.code(), "RATE_LIMIT");
    let mut forged = key.to_owned();
    forged.replace_range(10..11, if &key[10..11] == "A" { "B" } else { "A" });
    assert_eq!(keyed(&forged).await.code(), "RATE_LIMIT", "a forged key counts as none");
}

#[tokio::test]
async fn a_key_of_another_token_counts_as_none() {
    let app = App::start().await;
    let other = app.post("/api/queue/join", json!({})).await;
    let token = app.join().await;
    let key = other.data()["key"].as_str().expect("a key");
    // Its owner would be too early; a stranger is only somebody without a key.
    let polled =
        app.send(Call::new("GET", "/api/status/poll").query("token", &token).query("key", key)).await;
    assert_eq!(polled.data()["rank"], 2);
}

#[tokio::test]
async fn a_required_account_is_asked_for() {
    let app = App::with(|sale| sale["requireAccount"] = json!(true)).await;
    let joined = app.post("/api/queue/join", json!({})).await;
    assert_eq!((joined.status, joined.code()), (403, "ACCOUNT_REQUIRED"));
    assert_eq!(app.rejoin(&domain::Token::random().to_string()).await.code(), "ACCOUNT_REQUIRED");
}

#[tokio::test]
async fn jsonp_wraps_successes_and_failures() {
    let app = App::start().await;
    let token = app.join().await;
    let call = |token: &str, name: &str| {
        Call::new("GET", "/api/status/poll").query("token", token).query("callback", name)
    };
    let polled = app.send(call(&token, "NetFunnel_cb")).await;
    assert_eq!(polled.status, 200);
    assert!(polled.header("content-type").is_some_and(|value| value.starts_with("application/javascript")));
    let inner = polled.text.strip_prefix("/**/NetFunnel_cb(").and_then(|rest| rest.strip_suffix(");"));
    let inner: Value = serde_json::from_str(inner.expect("a call")).expect("JSON inside");
    assert_eq!(inner["data"]["rank"], 1);
    let failed = app.send(call("no-token", "cb")).await;
    assert_eq!(failed.status, 200);
    assert!(failed.text.starts_with("/**/cb({\"success\":false"), "{}", failed.text);
    for name in ["a-b", "alert(1)", "", &"a".repeat(65)] {
        let refused = app.send(call(&token, name)).await;
        assert_eq!((refused.status, refused.code()), (400, "INVALID_REQUEST"), "{name}");
    }
}

#[tokio::test]
async fn waiting_people_see_the_operators_message() {
    let app = App::start().await;
    let token = app.join().await;
    assert_eq!(app.poll(&token).await.data()["message"], Value::Null);
    let message = store::StatusChange::Message("잠시만 기다려 주세요".to_owned());
    app.store.change(&app.event, "tests", &message).await.expect("redis answers").expect("a known event");
    assert_eq!(app.poll(&token).await.data()["message"], "잠시만 기다려 주세요");
    let progress = app.send(Call::new("GET", "/api/status/progress")).await;
    assert_eq!(progress.data()["message"], "잠시만 기다려 주세요");
}

#[tokio::test]
async fn messages_follow_the_callers_language() {
    let app = App::start().await;
    let join = || Call::new("POST", "/api/queue/join").json(&json!({ "eventId": fresh_event() }));
    let korean = app.send(join().header("accept-language", "ko-KR,ko;q=0.9,en;q=0.8")).await;
    let english = app.send(join()).await;
    assert_ne!(korean.json["error"]["message"], english.json["error"]["message"]);
    assert_eq!(korean.code(), english.code());
}

#[tokio::test]
async fn health_tells_that_redis_answers() {
    let app = App::start().await;
    let health = app.send(Call::new("GET", "/health")).await;
    assert_eq!(
        (health.status, &health.json["status"], &health.json["redis"]),
        (200, &json!("ok"), &json!("ok"))
    );
}
