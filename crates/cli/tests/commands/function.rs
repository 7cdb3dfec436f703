//! `jari … --function NAME`: the same commands, carried out by a deployed admin function.

use std::process::{Command, Output, Stdio};

use serde_json::Value;

use crate::lambda::{Asked, FUNCTION, Lambda};
use crate::served::{Served, complained, said, sale};

fn jari(lambda: &Lambda, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_jari"));
    command.args(arguments).envs(lambda.environment()).stdin(Stdio::null()).output().expect("jari runs")
}

#[test]
fn a_deployed_function_carries_out_what_an_operator_asks() {
    let served = Served::with("function", &sale(50, "1-9", 500));
    let lambda = Lambda::before(&served.running());
    let ask = |arguments: &[&str]| jari(&lambda, &[arguments, &["--function", FUNCTION]].concat());
    let paced = ask(&["event", "pace", "train-1", "25"]);
    assert_eq!(said(&paced), "train-1: 25 people/s from the next tick on\n", "{}", complained(&paced));
    let shown: Value =
        serde_json::from_str(&said(&ask(&["event", "show", "train-1", "--json"]))).expect("JSON");
    assert_eq!(shown["perSecond"], 25.0, "{shown}");
    let exported = ask(&["export", "train-1", "--format", "json"]);
    assert_eq!(said(&exported).split_whitespace().collect::<String>(), "[]", "{}", complained(&exported));
    let open = ask(&["event", "delete", "train-1"]);
    assert_eq!(open.status.code(), Some(1));
    assert!(complained(&open).contains("close it first"), "{}", complained(&open));
    let known = ask(&["rebuild", "train-1"]);
    assert_eq!(known.status.code(), Some(1), "{}", complained(&known));
    let asked = lambda.asked();
    assert_eq!(asked.len(), 5);
    let is_signed = |asked: &Asked| asked.signature.contains("/ap-northeast-2/lambda/aws4_request");
    assert!(asked.iter().all(is_signed), "{asked:?}");
}

#[test]
fn what_a_function_cannot_do_is_told_with_its_reason() {
    let served = Served::with("no-function", &sale(50, "1-9", 500));
    let mut running = served.running();
    running["database"] = "postgres://nobody@127.0.0.1:1/none".into();
    let lambda = Lambda::before(&running);
    let ask = |arguments: &[&str]| {
        let output = jari(&lambda, arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        complained(&output)
    };
    let unknown = ask(&["event", "list", "--function", "jari-Admin"]);
    assert!(
        unknown.contains("the function jari-Admin: ") && unknown.contains("Function not found"),
        "{unknown}"
    );
    let failed = ask(&["export", "train-1", "--format", "csv", "--function", FUNCTION]);
    assert!(failed.contains("it failed: PostgreSQL cannot be reached"), "{failed}");
    let served = ask(&["serve", "--function", FUNCTION]);
    assert!(served.contains("leave it out"), "{served}");
    let two = ask(&["event", "list", "--function", FUNCTION, "--data", "d"]);
    assert!(two.contains("cannot be used with"), "{two}");
}
