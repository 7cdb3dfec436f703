//! What operators change: each in effect by the next tick, each in the journal with who and what, and nothing that is
//! refused.

use admin::{AdminState, Command, Reply};
use bootstrap::config::MasterKeys;
use domain::fact::What;
use domain::outcome::SaleStatus;
use serde_json::{Value, json};
use support::{App, MASTER_KEY, OPENS_AT};

use crate::deliver::{Database, journal};

struct Operated {
    app: App,
    admin: AdminState,
}

impl Operated {
    async fn start() -> Self {
        let app = App::with(|sale| sale["offerings"][0]["sections"][1]["capacity"] = json!(1_000)).await;
        let database = Database::fresh().await;
        let master = MasterKeys::new(MASTER_KEY, None).expect("a master key");
        let admin = AdminState::new(app.store.clone(), database.records.clone(), master);
        Self { app, admin }
    }

    /// A command as an operator sends it; `kim` asks, for this event, unless it says otherwise.
    async fn ask(&self, command: &str, more: Value) -> Reply {
        let mut asked = json!({ "command": command, "event": self.app.event.as_str(), "by": "kim" });
        if command == "apply" {
            asked.as_object_mut().expect("an object").remove("event");
        }
        for (name, value) in more.as_object().expect("an object") {
            asked[name] = value.clone();
        }
        let command: Command = serde_json::from_value(asked).expect("a command");
        admin::admin(&self.admin, command).await.expect("redis and PostgreSQL answer")
    }

    /// Who changed what, first change first.
    async fn changes(&self) -> Vec<(String, String)> {
        let facts = journal(&self.app).await.into_iter();
        let changes = facts.filter_map(|fact| match fact.what {
            What::EventChanged { by, change, .. } => Some((by, change)),
            _ => None,
        });
        changes.collect()
    }

    /// Carries it out, and sees that the journal has it.
    async fn change(&self, command: &str, more: Value) {
        let before = self.changes().await.len();
        let reply = self.ask(command, more).await;
        assert!(matches!(reply, Reply::Changed { .. } | Reply::Applied { .. }), "{command}: {reply:?}");
        let noted = self.changes().await.split_off(before);
        assert_eq!(noted, [("kim".to_owned(), command.to_owned())], "{command}");
    }

    /// People called by the tick of the next second.
    async fn called(&self) -> u64 {
        self.app.pass(1_000);
        self.app.tick().await.admitted
    }

    /// The definition in place, as `change` makes it.
    fn definition(&self, change: impl FnOnce(&mut Value)) -> Value {
        let mut definition = support::sale(self.app.event.as_str());
        definition["offerings"][0]["sections"][1]["capacity"] = json!(1_000);
        change(&mut definition);
        definition
    }
}

#[tokio::test]
async fn every_change_holds_from_the_next_tick_and_is_in_the_journal() {
    let operated = Operated::start().await;
    let app = &operated.app;
    let mut tokens = Vec::new();
    for _ in 0..90 {
        tokens.push(app.join().await);
    }
    app.tick().await;
    assert_eq!(operated.called().await, 10);
    operated.change("pace", json!({ "perSecond": 15 })).await;
    assert_eq!(operated.called().await, 15);
    operated.change("pause", json!({})).await;
    assert_eq!(operated.called().await, 0);
    operated.change("open", json!({})).await;
    assert_eq!(operated.called().await, 15);

    operated.change("message", json!({ "text": "Zug fällt aus" })).await;
    assert_eq!(app.poll(&tokens[89]).await.data()["message"], "Zug fällt aus");
    operated.change("message", json!({ "text": "" })).await;
    assert!(app.poll(&tokens[89]).await.data()["message"].is_null());

    let one = json!({ "count": 1 });
    operated.change("maintenance", json!({ "on": true })).await;
    assert_eq!(app.hold(&tokens[30], one.clone()).await.code(), "UNAVAILABLE");
    operated.change("maintenance", json!({ "on": false })).await;
    app.hold(&tokens[30], one).await.data();

    let remaining = app.remaining().await;
    let definition = operated.definition(|sale| {
        sale["offerings"][0]["sections"][1]["capacity"] = json!(1_200);
        sale["admission"]["maxActive"] = json!(60);
    });
    operated.change("apply", json!({ "definition": definition })).await;
    assert_eq!(app.remaining().await, remaining + 200);
    operated.called().await;
    assert_eq!(app.tick().await.active, 60, "the new bound");

    operated.change("close", json!({})).await;
    assert_eq!(operated.called().await, 0);
    assert_eq!(app.post("/api/queue/join", json!({})).await.code(), "EVENT_CLOSED");
    assert_eq!(app.poll(&tokens[89]).await.data()["status"], "EXPIRED");
}

#[tokio::test]
async fn what_is_unsafe_is_refused_with_its_reason_and_changes_nothing() {
    let operated = Operated::start().await;
    let app = &operated.app;
    let token = app.active().await;
    app.hold(&token, json!({ "offeringId": "T1", "seats": ["1A"] })).await.data();
    app.join().await;
    let before = operated.changes().await;
    let shrunk = |change: fn(&mut Value)| operated.definition(change);
    let cases = [
        ("pace", json!({ "perSecond": 0 }), "perSecond must be from"),
        ("pace", json!({ "perSecond": 10_001 }), "perSecond must be from"),
        ("message", json!({ "text": "x".repeat(501) }), "500"),
        ("close", json!({ "by": "" }), "by must have 1 to 100 characters"),
        ("pause", json!({ "event": "no-such-sale" }), "there is no event no-such-sale"),
        ("open", json!({ "event": "no-such-sale" }), "there is no event"),
        ("delete", json!({}), "close it first"),
        (
            "apply",
            json!({ "definition": shrunk(|sale| sale["offerings"][0]["sections"][0]["seats"][0]["rows"] = json!("2-4")) }),
            "are held or sold",
        ),
        (
            "apply",
            json!({ "definition": shrunk(|sale| sale["opensAt"] = json!(OPENS_AT + 3_600_000)) }),
            "an opening cannot be taken back",
        ),
        (
            "apply",
            json!({ "definition": shrunk(|sale| sale["preQueue"] = json!("shuffle")) }),
            "people stand in the line",
        ),
        ("apply", json!({ "definition": shrunk(|sale| sale["holdSeconds"] = json!(-1)) }), "$.holdSeconds"),
    ];
    for (command, more, reason) in cases {
        match operated.ask(command, more.clone()).await {
            Reply::Refused(refused) => {
                assert!(refused.to_string().contains(reason), "{command} {more}: {refused}");
            }
            other => panic!("{command} {more}: {other:?}"),
        }
    }
    assert_eq!(operated.changes().await, before);
    operated.change("close", json!({})).await;
    let Reply::Refused(refused) = operated.ask("pause", json!({})).await else { panic!("it is closed") };
    assert!(refused.to_string().contains("open it first"), "{refused}");
    app.at(OPENS_AT + 86_400_000);
    let Reply::Refused(refused) = operated.ask("open", json!({})).await else { panic!("it is over") };
    assert!(refused.to_string().contains("later closesAt"), "{refused}");
}

#[tokio::test]
async fn a_sale_opens_and_closes_by_its_times_with_no_operator_awake() {
    let operated = Operated::start().await;
    let app = &operated.app;
    app.at(OPENS_AT - 2_000);
    let token = app.join().await;
    for (at, status, admitted) in [
        (OPENS_AT - 1, SaleStatus::Upcoming, 0),
        (OPENS_AT, SaleStatus::Open, 0),
        (OPENS_AT + 1_000, SaleStatus::Open, 1),
    ] {
        app.at(at);
        let tick = app.tick().await;
        assert_eq!((tick.status, tick.admitted), (status, admitted), "{}", at - OPENS_AT);
    }
    assert_eq!(app.poll(&token).await.data()["status"], "ACTIVE");
    let closes_at = OPENS_AT + 86_400_000;
    app.at(closes_at - 1);
    app.join().await;
    app.at(closes_at);
    let tick = app.tick().await;
    assert_eq!((tick.status, tick.admitted, tick.waiting), (SaleStatus::Closed, 0, 1));
    assert_eq!(app.post("/api/queue/join", json!({})).await.code(), "EVENT_CLOSED");
    assert_eq!(operated.changes().await, [("tests".to_owned(), "apply".to_owned())]);
}
