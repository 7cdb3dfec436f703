//! Seats: search, seat map, hold, release; expiry at use, owner only, all or nothing.

use futures::future::join_all;
use serde_json::{Value, json};
use support::{Answer, App, Call, Redis, Topology, fresh_event, sale};

fn seats_call(token: &str) -> Call {
    Call::new("GET", "/api/seats").query("token", token).query("offeringId", "T1")
}

async fn taken(app: &App, token: &str) -> Value {
    app.send(seats_call(token).query("sectionId", "A")).await.data()["sections"][0]["taken"].clone()
}

async fn release(app: &App, token: &str, mut what: Value) -> Answer {
    what["token"] = json!(token);
    app.post("/api/seat/cancel", what).await
}

fn named(seats: &[&str]) -> Value {
    json!({ "offeringId": "T1", "seats": seats })
}

#[tokio::test]
async fn search_filters_by_attributes_and_counts_what_is_left() {
    let app = App::start().await;
    let token = app.active().await;
    app.hold(&token, named(&["1A"])).await.data();
    for path in ["/trains/search", "/api/offerings"] {
        let all = app.send(Call::new("GET", path).query("token", &token)).await;
        let offerings = all.data()["offerings"].as_array().expect("a list").clone();
        assert_eq!(offerings.len(), 2);
        assert_eq!(
            (&offerings[0]["offeringId"], &offerings[0]["from"], &offerings[0]["date"]),
            (&json!("T1"), &json!("서울"), &json!("2027-02-05"))
        );
        assert_eq!(
            offerings[0]["sections"][0],
            json!({ "sectionId": "A", "name": "일반실", "price": 1000, "remaining": 15 })
        );
        assert_eq!(offerings[0]["sections"][1]["remaining"], 10);
    }
    let some = app
        .send(
            Call::new("GET", "/trains/search")
                .query("token", &token)
                .query("to", "서울")
                .query("date", "2027-02-06"),
        )
        .await;
    assert_eq!(some.data()["offerings"][0]["offeringId"], "T2");
    let none =
        app.send(Call::new("GET", "/trains/search").query("token", &token).query("from", "평양")).await;
    assert_eq!(none.data()["offerings"], json!([]));
}

#[tokio::test]
async fn looking_needs_a_live_session() {
    let app = App::start().await;
    let waiting = app.join().await;
    let search = |token: &str| app.send(Call::new("GET", "/trains/search").query("token", token));
    let seats = |token: &str| app.send(seats_call(token));
    for answer in [search(&waiting).await, seats(&waiting).await] {
        assert_eq!((answer.status, answer.code()), (403, "NOT_ADMITTED"));
    }
    for path in ["/trains/search", "/api/offerings", "/api/seats"] {
        let answer = app.send(Call::new("GET", path).query("offeringId", "T1")).await;
        assert_eq!((answer.status, answer.code()), (401, "UNAUTHORIZED"));
    }
    app.pass(1_000);
    app.tick().await;
    search(&waiting).await.data();
    assert_eq!(app.poll(&waiting).await.data()["status"], "ACTIVE");
    seats(&waiting).await.data();
    app.pass(180_000);
    for answer in [search(&waiting).await, seats(&waiting).await] {
        assert_eq!((answer.status, answer.code()), (403, "ADMISSION_EXPIRED"));
    }
    let buyer = app.active().await;
    app.book(&buyer, json!({ "seatCount": 1 })).await.data();
    for answer in [search(&buyer).await, seats(&buyer).await] {
        assert_eq!((answer.status, answer.code()), (409, "ALREADY_BOOKED"));
    }
    let unknown = app
        .send(Call::new("GET", "/trains/search").query("token", &buyer).query("eventId", fresh_event()))
        .await;
    assert_eq!(unknown.code(), "EVENT_NOT_FOUND");
    let unknown = app.send(seats_call(&buyer).query("eventId", fresh_event())).await;
    assert_eq!(unknown.code(), "EVENT_NOT_FOUND");
    app.pass(86_400_000);
    for answer in [search(&buyer).await, seats(&buyer).await] {
        assert_eq!((answer.status, answer.code()), (403, "EVENT_CLOSED"));
    }
}

#[tokio::test]
async fn the_seat_map_shows_rows_and_what_is_taken_and_never_by_whom() {
    let app = App::start().await;
    let (holder, buyer, looker) = (app.active().await, app.active().await, app.active().await);
    app.hold(&holder, named(&["2B", "2C"])).await.data();
    app.hold(&buyer, named(&["1A"])).await.data();
    app.book(&buyer, json!({})).await.data();
    let map = app.send(seats_call(&looker)).await;
    let sections = map.data()["sections"].as_array().expect("sections").clone();
    assert_eq!(sections.len(), 2);
    assert_eq!(sections[0]["rows"][1], json!({ "name": "2", "seats": ["2A", "2B", "2C", "2D"] }));
    assert_eq!(sections[0]["taken"], json!({ "1A": "SOLD", "2B": "HELD", "2C": "HELD" }));
    assert_eq!((&sections[0]["remaining"], &sections[1]["remaining"]), (&json!(13), &json!(10)));
    assert_eq!(sections[1]["sectionId"], "G");
    for token in [&holder, &buyer] {
        assert!(!map.text.contains(token.as_str()), "a token in a seat map");
    }
    let missing = app.send(seats_call(&looker).query("sectionId", "Z")).await;
    assert_eq!((missing.status, missing.code()), (404, "SECTION_NOT_FOUND"));
    let missing =
        app.send(Call::new("GET", "/api/seats").query("token", &looker).query("offeringId", "T9")).await;
    assert_eq!((missing.status, missing.code()), (404, "OFFERING_NOT_FOUND"));
}

#[tokio::test]
async fn a_seat_map_that_has_not_changed_is_not_sent_again() {
    let app = App::start().await;
    let token = app.active().await;
    let first = app.send(seats_call(&token)).await;
    let etag = first.header("etag").expect("an ETag").to_owned();
    let sequence = first.data()["sequence"].as_u64().expect("a sequence");
    let again = |etag: &str| app.send(seats_call(&token).header("if-none-match", etag));
    let same = again(&etag).await;
    assert_eq!((same.status, same.text.as_str()), (304, ""));
    assert_eq!(again(&format!("\"x\", W/{etag}")).await.status, 304);
    app.hold(&token, named(&["1A"])).await.data();
    let changed = again(&etag).await;
    assert_eq!(changed.status, 200);
    assert!(changed.data()["sequence"].as_u64().expect("a sequence") > sequence);
}

#[tokio::test]
async fn a_hold_of_several_seats_is_all_or_nothing_and_names_the_taken() {
    let app = App::start().await;
    let (first, second) = (app.active().await, app.active().await);
    app.hold(&first, named(&["1A", "1B"])).await.data();
    let before = taken(&app, &second).await;
    let refused = app.hold(&second, named(&["1C", "1B", "1A"])).await;
    assert_eq!((refused.status, refused.code()), (409, "SEAT_TAKEN"));
    assert_eq!(refused.details()["seats"], json!(["1B", "1A"]));
    assert_eq!(taken(&app, &second).await, before);
    assert_eq!(app.remaining().await, 26);
    app.hold(&second, named(&["1C"])).await.data();
}

#[tokio::test]
async fn further_selects_add_and_ones_own_seats_are_the_same_answer() {
    let app = App::start().await;
    let token = app.active().await;
    let first = app.hold(&token, named(&["1A", "1B"])).await;
    app.pass(10_000);
    let again = app.hold(&token, named(&["1A", "1B"])).await;
    for field in ["seats", "seatCount", "holdExpiresAt", "activeExpiresAt"] {
        assert_eq!(again.data()[field], first.data()[field], "{field}");
    }
    let more = app.hold(&token, named(&["1B", "1C"])).await;
    assert_eq!(more.data()["seats"], json!(["1B", "1C"]));
    assert_eq!(more.data()["holdExpiresAt"], first.data()["holdExpiresAt"], "one budget a token");
    assert_eq!(taken(&app, &token).await, json!({ "1A": "HELD", "1B": "HELD", "1C": "HELD" }));
    assert_eq!(app.remaining().await, 25);
}

#[tokio::test]
async fn one_hold_budget_ends_the_holds_and_the_session() {
    let app = App::start().await;
    let (token, other) = (app.active().await, app.active().await);
    app.pass(100_000);
    let held = app.hold(&token, named(&["1A"])).await;
    let expires_at = app.now() + 120_000;
    // A hold near the end of the active window keeps its owner active to the hold's end.
    assert_eq!(
        (&held.data()["holdExpiresAt"], &held.data()["activeExpiresAt"]),
        (&json!(expires_at), &json!(expires_at))
    );
    assert_eq!(held.data()["expiresIn"], 120);
    let other = {
        app.leave(&other).await.data();
        app.active().await
    };
    app.pass(30_000);
    assert_eq!(app.hold(&token, named(&["1B"])).await.data()["holdExpiresAt"], expires_at);
    release(&app, &token, json!({})).await.data();
    app.hold(&token, named(&["1C"])).await.data();
    assert_eq!(app.hold(&token, named(&["9Z"])).await.code(), "SEAT_NOT_FOUND");
    assert_eq!(
        app.poll(&token).await.data()["activeExpiresAt"],
        expires_at,
        "releases and failures never move it"
    );
    app.at(expires_at - 1);
    assert_eq!(app.hold(&other, named(&["1C"])).await.code(), "SEAT_TAKEN");
    app.at(expires_at);
    for late in [
        app.hold(&token, named(&["1D"])).await,
        app.book(&token, json!({})).await,
        release(&app, &token, json!({})).await,
    ] {
        assert_eq!((late.status, late.code()), (410, "HOLD_EXPIRED"));
    }
    assert_eq!(app.poll(&token).await.data()["status"], "EXPIRED");
    assert_eq!(app.hold(&other, named(&["1C"])).await.data()["seats"], json!(["1C"]), "free without a sweep");
}

#[tokio::test]
async fn seats_found_by_count_come_from_expired_holds_too() {
    let app = App::start().await;
    let mut holders = Vec::new();
    for row in ["1", "2", "3", "4"] {
        let token = app.active().await;
        let seats: Vec<String> = ["A", "B", "C", "D"].iter().map(|seat| format!("{row}{seat}")).collect();
        app.hold(&token, json!({ "offeringId": "T1", "seats": seats })).await.data();
        holders.push(token);
    }
    let late = app.active().await;
    for choice in [json!({ "best": 2 }), json!({ "count": 2 })] {
        let mut choice = choice;
        choice["offeringId"] = json!("T1");
        choice["sectionId"] = json!("A");
        let refused = app.hold(&late, choice).await;
        assert_eq!(
            (refused.status, refused.code(), &refused.details()["remaining"]),
            (409, "SOLD_OUT", &json!(0))
        );
    }
    app.pass(119_000);
    let held = app.hold(&late, json!({ "offeringId": "T1", "sectionId": "A", "best": 4 })).await;
    assert_eq!(held.data()["seats"], json!(["1A", "1B", "1C", "1D"]));
    assert!(holders.len() == 4);
}

#[tokio::test]
async fn only_the_owner_releases_and_twice_is_fine() {
    let app = App::start().await;
    let (owner, other) = (app.active().await, app.active().await);
    app.hold(&owner, named(&["1A", "1B", "1C"])).await.data();
    assert_eq!(release(&app, &other, named(&["1A"])).await.data()["released"], 0);
    assert_eq!(release(&app, &owner, named(&["1B"])).await.data()["released"], 1);
    assert_eq!(release(&app, &owner, named(&["1B"])).await.data()["released"], 0);
    assert_eq!(taken(&app, &owner).await, json!({ "1A": "HELD", "1C": "HELD" }));
    app.hold(&other, named(&["1B"])).await.data();
    assert_eq!(
        release(&app, &owner, json!({ "offeringId": "T1", "seatId": "1A" })).await.data()["released"],
        1
    );
    assert_eq!(release(&app, &owner, json!({})).await.data()["released"], 1);
    assert_eq!(release(&app, &owner, json!({})).await.data()["released"], 0);
    assert_eq!(app.remaining().await, 27);
    assert_eq!(release(&app, &owner, named(&["9Z"])).await.code(), "SEAT_NOT_FOUND");
    assert_eq!(release(&app, &owner, json!({ "offeringId": "T9" })).await.code(), "OFFERING_NOT_FOUND");
    let waiting = app.join().await;
    assert_eq!(release(&app, &waiting, json!({})).await.code(), "NOT_ADMITTED");
    app.book(&owner, json!({ "seatCount": 1 })).await.data();
    assert_eq!(release(&app, &owner, json!({})).await.code(), "ALREADY_BOOKED");
    let unknown = release(&app, &owner, json!({ "eventId": fresh_event() })).await;
    assert_eq!(unknown.code(), "EVENT_NOT_FOUND");
    app.pass(180_000);
    assert_eq!(release(&app, &waiting, json!({})).await.code(), "NOT_ADMITTED");
}

#[tokio::test]
async fn a_row_that_came_back_is_released_by_every_instance() {
    let app = App::start().await;
    let other = app.instance(&Redis::shared(Topology::chosen()).config());
    let token = app.active().await;
    // This instance reads the edition in which row 4 lies at its first place.
    assert_eq!(release(&other, &token, named(&["4A"])).await.data()["released"], 0);
    let mut definition = sale(app.event.as_str());
    for rows in ["1-3", "1-4"] {
        definition["offerings"][0]["sections"][0]["seats"][0]["rows"] = json!(rows);
        app.apply(&definition).await;
    }
    app.hold(&token, named(&["4A", "4B"])).await.data();
    other.at(app.now());
    assert_eq!(release(&other, &token, named(&["4A"])).await.data()["released"], 1);
    assert_eq!(taken(&app, &token).await, json!({ "4B": "HELD" }));
}

#[tokio::test]
async fn an_offerings_holds_are_released_alone() {
    let app = App::start().await;
    let token = app.active().await;
    app.hold(&token, named(&["1A"])).await.data();
    app.hold(&token, json!({ "count": 1 })).await.data();
    app.hold(&token, json!({ "offeringId": "T2", "seats": ["1A"] })).await.data();
    assert_eq!(release(&app, &token, json!({ "offeringId": "T1" })).await.data()["released"], 2);
    let booked = app.book(&token, json!({})).await;
    assert_eq!((&booked.data()["seats"], &booked.data()["amount"]), (&json!(["1A"]), &json!(7)));
}

#[tokio::test]
async fn best_sits_together_and_leaves_no_single_seat_alone() {
    let app = App::with(|sale| sale["limitPerAccount"] = json!(16)).await;
    let (first, second) = (app.active().await, app.active().await);
    let best = |token: String, count: u32| {
        let app = &app;
        async move { app.hold(&token, json!({ "offeringId": "T1", "sectionId": "A", "best": count })).await }
    };
    // Row 1 has 1B to 1D left: taking two of them would leave one alone, so row 2 gives two.
    app.hold(&first, named(&["1A"])).await.data();
    assert_eq!(best(second.clone(), 2).await.data()["seats"], json!(["2A", "2B"]));
    assert_eq!(best(second.clone(), 3).await.data()["seats"], json!(["1B", "1C", "1D"]));
    assert_eq!(best(second.clone(), 2).await.data()["seats"], json!(["2C", "2D"]));
    // Rows 3 and 4 are whole: three leave one alone, and there is no other choice.
    assert_eq!(best(second.clone(), 3).await.data()["seats"], json!(["3A", "3B", "3C"]));
    let refused = best(first.clone(), 5).await;
    assert_eq!((refused.status, refused.code()), (409, "NO_ADJACENT_SEATS"));
    let any = app.hold(&first, json!({ "offeringId": "T1", "sectionId": "A", "count": 5 })).await;
    assert_eq!(any.data()["seats"], json!(["3D", "4A", "4B", "4C", "4D"]));
}

#[tokio::test]
async fn general_sections_count() {
    let app = App::start().await;
    let tokens = join_all((0..3).map(|_| app.join())).await;
    app.pass(1_000);
    app.tick().await;
    assert_eq!(app.hold(&tokens[0], json!({ "count": 4 })).await.data()["seatCount"], 4);
    assert_eq!(app.hold(&tokens[1], json!({ "best": 4 })).await.data()["seats"], json!([]));
    let refused = app.hold(&tokens[2], json!({ "count": 3 })).await;
    assert_eq!((refused.code(), &refused.details()["remaining"]), ("SOLD_OUT", &json!(2)));
    assert_eq!(app.remaining().await, 20, "two left and three asked: nothing taken");
    app.hold(&tokens[2], json!({ "count": 1 })).await.data();
    app.hold(&tokens[2], json!({ "count": 1 })).await.data();
    let booked = app.book(&tokens[2], json!({})).await;
    assert_eq!((&booked.data()["seatCount"], &booked.data()["amount"]), (&json!(2), &json!(1_000)));
    app.pass(120_000);
    assert_eq!(app.tick().await.reaped, 2);
    assert_eq!(app.remaining().await, 26);
}

#[tokio::test]
async fn the_limit_counts_what_is_held_over_all_sections() {
    let app = App::start().await;
    let token = app.active().await;
    app.hold(&token, named(&["1A", "1B"])).await.data();
    app.hold(&token, json!({ "count": 1 })).await.data();
    for choice in [named(&["1C", "1D"]), json!({ "count": 2 })] {
        let refused = app.hold(&token, choice).await;
        assert_eq!((refused.status, refused.code()), (409, "PURCHASE_LIMIT_EXCEEDED"));
        assert_eq!(refused.details(), &json!({ "limit": 4, "used": 3, "requested": 2 }));
    }
    app.hold(&token, named(&["1A", "1B", "1C"])).await.data();
    assert_eq!(app.remaining().await, 24);
}

#[tokio::test]
async fn unknown_places_are_named() {
    let app = App::start().await;
    let token = app.active().await;
    let hold = |choice: Value| app.hold(&token, choice);
    assert_eq!(hold(json!({ "offeringId": "T9", "seats": ["1A"] })).await.code(), "OFFERING_NOT_FOUND");
    assert_eq!(
        hold(json!({ "offeringId": "T1", "sectionId": "Z", "count": 1 })).await.code(),
        "SECTION_NOT_FOUND"
    );
    assert_eq!(hold(json!({ "offeringId": "T2", "count": 1 })).await.code(), "SECTION_NOT_FOUND");
    let missing = hold(named(&["1A", "9Z"])).await;
    assert_eq!(
        (missing.status, missing.code(), &missing.details()["seats"]),
        (404, "SEAT_NOT_FOUND", &json!(["9Z"]))
    );
    let foreign = hold(json!({ "offeringId": "T1", "sectionId": "G", "seats": ["1A"] })).await;
    assert_eq!((foreign.code(), &foreign.details()["seats"]), ("SEAT_NOT_FOUND", &json!(["1A"])));
    assert_eq!(hold(json!({ "eventId": fresh_event(), "count": 1 })).await.code(), "EVENT_NOT_FOUND");
    assert_eq!(app.remaining().await, 28);
}

#[tokio::test]
async fn maintenance_and_pause() {
    let app = App::start().await;
    let token = app.active().await;
    let change = |change| app.store.change(&app.event, "tests", change);
    change(&store::StatusChange::Maintenance(true)).await.expect("redis answers").expect("known");
    for refused in [app.hold(&token, named(&["1A"])).await, app.book(&token, json!({ "seatCount": 1 })).await]
    {
        assert_eq!((refused.status, refused.code()), (503, "UNAVAILABLE"));
        assert!(refused.header("retry-after").is_some());
    }
    app.send(seats_call(&token)).await.data();
    change(&store::StatusChange::Maintenance(false)).await.expect("redis answers").expect("known");
    change(&store::StatusChange::Pause).await.expect("redis answers").expect("known");
    app.hold(&token, named(&["1A"])).await.data();
    app.book(&token, json!({})).await.data();
}

#[tokio::test]
async fn more_seats_join_a_running_sale_and_what_is_held_cannot_go() {
    let app = App::start().await;
    let token = app.active().await;
    app.hold(&token, named(&["4D"])).await.data();
    let mut sale = support::sale(app.event.as_str());
    sale["offerings"][0]["sections"][0]["seats"] = json!([{ "rows": "1-5", "seats": "A-D" }]);
    sale["offerings"][0]["sections"][0]["price"] = json!(2_000);
    sale["offerings"][0]["sections"][1]["capacity"] = json!(30);
    assert_eq!(app.apply(&sale).await, 2);
    assert_eq!(app.remaining().await, 27 + 4 + 20);
    let held = app.hold(&token, named(&["5A", "5B"])).await;
    assert_eq!(held.data()["seats"], json!(["5A", "5B"]));
    let booked = app.book(&token, json!({})).await;
    assert_eq!(booked.data()["amount"], 1_000 + 2 * 2_000, "each at the price of its hold");

    let shrink = |sale: Value| {
        let app = &app;
        async move {
            let sale = domain::sale::check(&sale.to_string()).expect("valid");
            let known = app.store.newest_edition(&app.event).await.expect("redis answers").expect("known");
            let (edition, change) = known.next(sale).expect("a next edition");
            app.store.apply(&edition, &change, "tests", "apply").await.expect("redis answers")
        }
    };
    let before = app.remaining().await;
    sale["offerings"][0]["sections"][0]["seats"] = json!([{ "rows": "1-3,5", "seats": "A-D" }]);
    assert_eq!(shrink(sale.clone()).await, store::Applied::InUse { section: 0 });
    let other = app.active().await;
    app.hold(&other, json!({ "count": 4 })).await.data();
    sale["offerings"][0]["sections"][0]["seats"] = json!([{ "rows": "1-5", "seats": "A-D" }]);
    sale["offerings"][0]["sections"][1]["capacity"] = json!(3);
    assert_eq!(shrink(sale.clone()).await, store::Applied::InUse { section: 1 });
    assert_eq!(app.remaining().await, before - 4, "a refused change changes nothing");
    sale["offerings"][0]["sections"][1]["capacity"] = json!(4);
    assert_eq!(shrink(sale).await, store::Applied::Applied { version: 3 });
    assert_eq!(app.remaining().await, before - 4 - 26);
}

#[tokio::test]
async fn five_hundred_callers_for_one_seat() {
    let app = App::with(|sale| {
        sale["admission"] = json!({ "perSecond": 1_000, "maxActive": 1_000 });
    })
    .await;
    let tokens = join_all((0..500).map(|_| app.join())).await;
    app.pass(1_000);
    assert_eq!(app.tick().await.admitted, 500);
    let answers = join_all(tokens.iter().map(|token| app.hold(token, named(&["1A"])))).await;
    let winners = answers.iter().filter(|answer| answer.status == 200).count();
    assert_eq!(winners, 1);
    assert!(answers.iter().filter(|answer| answer.status != 200).all(|answer| answer.code() == "SEAT_TAKEN"));
    assert_eq!(app.remaining().await, 27);
}

#[tokio::test]
async fn overlapping_pairs_go_to_one_of_two() {
    let app = App::with(|sale| {
        sale["admission"] = json!({ "perSecond": 100, "maxActive": 100, "activeSeconds": 86_400 });
    })
    .await;
    let (x, y) = (app.active().await, app.active().await);
    for round in 0..500 {
        let (first, second) =
            futures::join!(app.hold(&x, named(&["1A", "1B"])), app.hold(&y, named(&["1B", "1C"])));
        let (first, second) = (first.status == 200, second.status == 200);
        assert!(first != second, "round {round}: exactly one gets 1B");
        let map = taken(&app, &x).await;
        let expected =
            if first { json!({ "1A": "HELD", "1B": "HELD" }) } else { json!({ "1B": "HELD", "1C": "HELD" }) };
        assert_eq!(map, expected, "round {round}");
        release(&app, if first { &x } else { &y }, json!({})).await.data();
    }
    assert_eq!(app.remaining().await, 28);
}

#[tokio::test]
async fn what_is_held_is_told_apart_from_what_is_sold() {
    let app = App::start().await;
    let (holder, buyer) = (app.active().await, app.active().await);
    app.hold(&holder, json!({ "offeringId": "T1", "seats": ["1A", "1B"] })).await.data();
    app.hold(&holder, json!({ "offeringId": "T1", "sectionId": "G", "count": 1 })).await.data();
    assert_eq!(app.book(&buyer, json!({ "seatCount": 3 })).await.status, 201);
    let edition = app.store.newest_edition(&app.event).await.expect("redis answers").expect("a sale");
    let number = |section: &str| {
        let (offering, section) = ("T1".parse().expect("an id"), section.parse().expect("an id"));
        edition.layout.section(&offering, &section).expect("a section").number
    };
    let held = app.store.held(&app.event).await.expect("redis answers");
    assert_eq!(held, [(number("A"), 2), (number("G"), 1)].into_iter().collect());
    app.book(&holder, json!({})).await.data();
    assert!(app.store.held(&app.event).await.expect("redis answers").is_empty());
}
