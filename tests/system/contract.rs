//! openapi.yaml against a served system: the document is what such documents are, and requests generated from it are
//! answered as it says. `tests/contract` has what the generator is told.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::{Value, json};
use support::{contract, venv};

use crate::front_door::{Behind, ORIGIN_SECRET};

const BUYER: &str = "kim@example.com";

fn a_sale_for_many(sale: &mut Value) {
    sale["admission"] = json!({ "perSecond": 1_000, "maxActive": 10_000, "activeSeconds": 900 });
    sale["holdSeconds"] = json!(600);
    sale["payment"] = json!({ "mode": "deferred", "dueAfterSeconds": 600 });
    // Enough for all whom the generator lets book.
    sale["offerings"][0]["sections"][1]["capacity"] = json!(100_000);
}

impl Behind {
    /// Runs the generator with one of the configurations of `tests/contract`, and fails with what it says.
    fn generate(&self, configuration: &str, variables: &[(&str, &str)]) {
        let name = |ending: &str| here(&format!("{configuration}.{ending}"));
        let mut command = python("schemathesis.cli");
        command.arg("--config-file").arg(name("toml")).args(["run", "--url", &self.running.url]);
        command.arg(root("openapi.yaml")).env("SCHEMATHESIS_HOOKS", name("py"));
        // Failures, reports and examples of a run stay with it.
        command.current_dir(self.folder.path());
        command.env("JARI_CONTRACT_URL", &self.running.url).env("JARI_CONTRACT_SECRET", ORIGIN_SECRET);
        command.env("JARI_CONTRACT_PAYMENT_KEY", &self.running.payment_key);
        succeeds(configuration, &command.envs(variables.iter().copied()).output().expect("Python runs"));
    }
}

fn root(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(name)
}

fn here(name: &str) -> PathBuf {
    root("tests/contract").join(name)
}

fn python(module: &str) -> Command {
    let mut command = Command::new(venv().join("bin/python"));
    command.args(["-m", module]);
    command
}

fn succeeds(what: &str, output: &Output) {
    let said = String::from_utf8_lossy(&output.stdout);
    let complained = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{what}: {}\n{said}\n{complained}", output.status);
}

#[test]
fn the_document_is_valid() {
    let mut command = python("openapi_spec_validator");
    succeeds("openapi.yaml", &command.arg(root("openapi.yaml")).output().expect("Python runs"));
}

#[tokio::test]
async fn generated_requests_are_answered_as_described() {
    let behind = Behind::start(a_sale_for_many).await;
    behind.generate("document", &[]);
    let succeeded = fs::read_to_string(behind.folder.path().join("succeeded.json")).expect("hooks tell it");
    let succeeded: BTreeSet<String> = serde_json::from_str(&succeeded).expect("a list");
    let paths = contract::document()["paths"].as_object().expect("paths");
    let operations = paths.values().flat_map(|path| path.as_object().expect("a path").values());
    let operations: BTreeSet<String> =
        operations.filter_map(|operation| operation["operationId"].as_str().map(str::to_owned)).collect();
    assert_eq!(succeeded, operations, "of these a request succeeded");
}

#[tokio::test]
async fn what_must_be_proven_is_asked_for() {
    let behind = Behind::start(a_sale_for_many).await;
    let (token, _) = behind.let_in(Some(BUYER)).await;
    let mut visitor = behind.visitor(Some(BUYER)).await;
    let booked = visitor.post("/api/booking", &json!({ "token": token, "seatCount": 1 })).await;
    let reservation = booked.data()["reservationId"].as_str().expect("an id");
    // The same buyer once more: a live session, in an access token that proves whose the reservation is.
    let (another, access_token) = behind.let_in(Some(BUYER)).await;
    assert_ne!(token, another);
    let variables =
        [("JARI_CONTRACT_ACCESS_TOKEN", access_token.as_str()), ("JARI_CONTRACT_RESERVATION", reservation)];
    behind.generate("doors", &variables);
}
