//! `jari … --function NAME`: the same commands, carried out by a deployed admin function.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a step that fails fails its test"
)]

mod lambda;

use std::process::{Output, Stdio};

use admin::AdminState;
use bootstrap::config::MasterKeys;
use lambda::{FUNCTION, Lambda};
use records::RecordsConfig;
use support::{App, MASTER_KEY, Postgres};
use tokio::process::Command;

/// A deployed system in front of a sale.
async fn deployed(app: &App) -> Lambda {
    let config = RecordsConfig::new(Postgres::shared().database().await);
    records::migrate(&config).await.expect("the tables are made");
    let master = MasterKeys::new(MASTER_KEY, None).expect("a master key");
    Lambda::start(AdminState::of(app.store.clone(), Some(config), Some(master)).expect("a URL")).await
}

async fn jari(lambda: &Lambda, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_jari"));
    command.args(arguments).envs(lambda.environment()).stdin(Stdio::null());
    command.output().await.expect("jari runs")
}

fn said(output: &Output) -> (Option<i32>, String, String) {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("text");
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deployed_function_carries_out_what_an_operator_asks() {
    let app = App::start().await;
    let lambda = deployed(&app).await;
    let event = app.event.as_str();
    let ask = async |arguments: &[&str]| {
        let mut all = arguments.to_vec();
        all.extend(["--function", FUNCTION]);
        said(&jari(&lambda, &all).await)
    };
    let (code, told, complained) = ask(&["event", "pace", event, "25"]).await;
    assert_eq!(
        (code, told.as_str()),
        (Some(0), &*format!("{event}: 25 people/s from the next tick on\n")),
        "{complained}"
    );
    app.pass(1_000);
    app.join().await;
    assert_eq!(app.tick().await.admitted, 1);
    let (code, told, _) = ask(&["event", "show", event, "--json"]).await;
    let shown: serde_json::Value = serde_json::from_str(&told).expect("JSON");
    assert_eq!((code, &shown["perSecond"], &shown["active"]), (Some(0), &25.0.into(), &1.into()), "{told}");
    let (code, _, complained) = ask(&["event", "delete", event]).await;
    assert_eq!(code, Some(1), "it is open");
    assert!(complained.contains("close it first"), "{complained}");
    let signed = lambda.signed();
    assert_eq!(signed.len(), 3);
    assert!(signed.iter().all(|signed| signed.contains("/ap-northeast-2/lambda/aws4_request")), "{signed:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_function_cannot_do_is_told_with_its_reason() {
    let app = App::start().await;
    let lambda = deployed(&app).await;
    let (code, _, complained) = said(&jari(&lambda, &["event", "list", "--function", "jari-Admin"]).await);
    assert_eq!(code, Some(2));
    assert!(
        complained.contains("the function jari-Admin") && complained.contains("Function not found"),
        "{complained}"
    );
    let nobody = Lambda::start(AdminState::of(app.store.clone(), None, None).expect("a state")).await;
    let (code, _, complained) = said(
        &jari(&nobody, &["export", app.event.as_str(), "--format", "csv", "--function", FUNCTION]).await,
    );
    assert_eq!(code, Some(2));
    assert!(complained.contains("it failed: this needs the database"), "{complained}");
    let (code, _, complained) = said(&jari(&lambda, &["serve", "--function", FUNCTION]).await);
    assert_eq!(code, Some(2));
    assert!(complained.contains("leave it out"), "{complained}");
    let (code, ..) = said(&jari(&lambda, &["event", "list", "--function", FUNCTION, "--data", "d"]).await);
    assert_eq!(code, Some(2), "two systems");
}
