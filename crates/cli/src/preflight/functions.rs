//! The functions of a stack, called behind their alias with what changes nothing.

use std::collections::BTreeMap;

use anyhow::Context;
use aws_sdk_lambda::Client;
use aws_sdk_lambda::error::DisplayErrorContext;
use aws_sdk_lambda::primitives::Blob;
use futures::future::join_all;
use serde_json::{Value, json};

use super::{Check, Verdict};

/// What everything calls.
const ALIAS: &str = "live";
/// Pages of functions at most, of 50 each.
const MAX_PAGES: u32 = 40;

/// What a function is called with, and what its answer must have at that place.
struct Probe {
    name: &'static str,
    payload: fn() -> Value,
    pointer: &'static str,
    expected: fn(&Value) -> bool,
}

/// Admit and relay are left to their schedule: a call would be a run.
const SCHEDULED: [&str; 2] = ["Admit", "Relay"];

fn probes() -> Vec<Probe> {
    let is = |name, payload, pointer, expected| Probe { name, payload, pointer, expected };
    // No route: an answer of the function's own, without Redis.
    let nowhere = ["Join", "Leave", "Seats", "HoldSeat", "Book", "Pay"];
    let mut probes: Vec<Probe> = nowhere
        .into_iter()
        .map(|name| is(name, || request("/preflight"), "/statusCode", |status: &Value| status == 404))
        .collect();
    probes.extend([
        is("Poll", || request("/health"), "/statusCode", |status: &Value| status == 200),
        is("Keys", || request("/.well-known/jwks.json"), "/statusCode", |status: &Value| status == 200),
        is("Authorizer", || request("/preflight"), "/isAuthorized", |answer: &Value| answer == false),
        is("Socket", || json!({"Records": []}), "/batchItemFailures", is_empty),
        is("Persist", || json!({"Records": []}), "/batchItemFailures", is_empty),
        is("Push", || json!({"Records": []}), "", |_: &Value| true),
        is("Admin", || json!({"command": "list"}), "/reply", |reply: &Value| reply == "listed"),
    ]);
    probes
}

fn is_empty(failures: &Value) -> bool {
    failures.as_array().is_some_and(Vec::is_empty)
}

/// A request as API Gateway hands it over.
fn request(path: &str) -> Value {
    let route = format!("GET {path}");
    json!({
        "version": "2.0",
        "type": "REQUEST",
        "routeKey": route,
        "routeArn": "arn:aws:execute-api:us-east-1:123456789012:preflight/$default/GET/preflight",
        "rawPath": path,
        "rawQueryString": "",
        "headers": {"host": "preflight.example", "accept": "application/json"},
        "requestContext": {
            "accountId": "123456789012",
            "apiId": "preflight",
            "domainName": "preflight.example",
            "domainPrefix": "preflight",
            "http": {
                "method": "GET", "path": path, "protocol": "HTTP/1.1", "sourceIp": "192.0.2.1", "userAgent": "jari"
            },
            "requestId": "preflight",
            "routeKey": route,
            "stage": "$default",
            "time": "01/Jan/2026:00:00:00 +0000",
            "timeEpoch": 1_767_225_600_000_u64
        },
        "isBase64Encoded": false
    })
}

/// One check a function.
pub(super) async fn check(lambda: &Client, stack: &str) -> anyhow::Result<Vec<Check>> {
    let names = &names(lambda, stack).await?;
    let all = probes();
    let probed = all.iter().map(|probe| async move {
        let Some(function) = names.get(probe.name) else { return absent(probe.name, stack) };
        answers(lambda, function, probe).await
    });
    let mut checks = join_all(probed).await;
    for name in SCHEDULED {
        checks.push(match names.get(name) {
            Some(function) => is_active(lambda, name, function).await,
            None => absent(name, stack),
        });
    }
    Ok(checks)
}

fn absent(name: &str, stack: &str) -> Check {
    Check::missing(name, format!("the stack {stack} has no such function"))
}

/// Functions of a stack by their names in template.yaml.
async fn names(lambda: &Client, stack: &str) -> anyhow::Result<BTreeMap<String, String>> {
    let mut found = BTreeMap::new();
    let mut marker = None;
    for _ in 0..MAX_PAGES {
        let page = lambda.list_functions().set_marker(marker.take()).send().await;
        let page = page.map_err(aws_sdk_lambda::Error::from).context("cannot list functions")?;
        for function in page.functions().iter().filter_map(|function| function.function_name()) {
            if let Some(name) = logical_name(stack, function) {
                found.insert(name.to_owned(), function.to_owned());
            }
        }
        marker = page.next_marker.filter(|marker| !marker.is_empty());
        if marker.is_none() {
            break;
        }
    }
    Ok(found)
}

/// `jari-HoldSeat-1A2B3C` of the stack `jari` is `HoldSeat`.
fn logical_name<'a>(stack: &str, function: &'a str) -> Option<&'a str> {
    let rest = function.strip_prefix(stack)?.strip_prefix('-')?;
    let (name, suffix) = rest.rsplit_once('-')?;
    (!name.contains('-') && !suffix.is_empty()).then_some(name)
}

async fn answers(lambda: &Client, function: &str, probe: &Probe) -> Check {
    let payload = Blob::new((probe.payload)().to_string());
    let asked = lambda.invoke().function_name(function).qualifier(ALIAS).payload(payload).send().await;
    let answer = match asked {
        Ok(answer) => answer,
        Err(error) => return Check::missing(probe.name, DisplayErrorContext(error).to_string()),
    };
    let body = answer.payload.map(Blob::into_inner).unwrap_or_default();
    if answer.function_error.is_some() {
        return Check::missing(probe.name, format!("it fails: {}", String::from_utf8_lossy(&body)));
    }
    let body: Value = serde_json::from_slice(&body).unwrap_or_default();
    let version = answer.executed_version.unwrap_or_default();
    match body.pointer(probe.pointer) {
        Some(told) if (probe.expected)(told) => {
            Check::ready(probe.name, format!("version {version} answers"))
        }
        _ => {
            Check::missing(probe.name, format!("version {version} answers otherwise than it should: {body}"))
        }
    }
}

async fn is_active(lambda: &Client, name: &str, function: &str) -> Check {
    let asked = lambda.get_function_configuration().function_name(function).qualifier(ALIAS).send().await;
    let configuration = match asked {
        Ok(configuration) => configuration,
        Err(error) => return Check::new(name, Verdict::Unknown, DisplayErrorContext(error).to_string()),
    };
    let state = configuration.state.map(|state| state.as_str().to_owned()).unwrap_or_default();
    let version = configuration.version.unwrap_or_default();
    if state == "Active" {
        Check::ready(name, format!("version {version} is active; its schedule runs it each minute"))
    } else {
        Check::missing(name, format!("version {version} is {state}: does its schedule run?"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_is_known_by_its_stack() {
        assert_eq!(logical_name("jari", "jari-HoldSeat-1A2B3C"), Some("HoldSeat"));
        assert_eq!(logical_name("jari-dev", "jari-dev-Join-XYZ"), Some("Join"));
        // Another stack's, whose name begins like ours.
        assert_eq!(logical_name("jari", "jari-dev-Join-XYZ"), None);
        assert_eq!(logical_name("jari", "jarig-Join-XYZ"), None);
        assert_eq!(logical_name("jari", "jari-Join"), None);
    }

    #[test]
    fn every_function_is_called_or_scheduled() {
        let mut names: Vec<&str> = probes().iter().map(|probe| probe.name).chain(SCHEDULED).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), 15);
    }
}
