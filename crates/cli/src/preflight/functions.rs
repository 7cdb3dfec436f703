//! The functions of a stack, called behind their alias with what changes nothing.

use std::collections::BTreeMap;

use aws_sdk_lambda::Client;
use aws_sdk_lambda::error::ProvideErrorMetadata;
use aws_sdk_lambda::primitives::Blob;
use futures::future::join_all;
use serde_json::{Value, json};

use super::Check;

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

/// Made only where polls are answered on instances, and called only where it is there.
const OPTIONAL: &str = "PollOnInstances";

/// Those that template.yaml warms for an opening.
const WARMED: [&str; 4] = ["Join", "Poll", "HoldSeat", "Book"];
/// The code of Lambda's answer where an alias has no instances of its own.
const NOTHING_WARM: &str = "ProvisionedConcurrencyConfigNotFoundException";

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
        is(OPTIONAL, || request("/health"), "/statusCode", |status: &Value| status == 200),
        is("Keys", || request("/.well-known/jwks.json"), "/body", publishes_keys),
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

/// A set of public keys, as an answer's text, with one at least.
fn publishes_keys(body: &Value) -> bool {
    let set = body.as_str().and_then(|body| serde_json::from_str::<Value>(body).ok());
    set.is_some_and(|set| set["keys"].as_array().is_some_and(|keys| !keys.is_empty()))
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

/// The functions of a stack, by their names in template.yaml.
pub(super) struct Functions<'a> {
    lambda: &'a Client,
    stack: &'a str,
    names: BTreeMap<String, String>,
}

/// What a function answered, and in which version.
pub(super) struct Answer {
    pub(super) version: String,
    pub(super) body: Value,
}

impl<'a> Functions<'a> {
    /// Where they cannot be listed, that is the one check that can be told of them.
    pub(super) async fn of(lambda: &'a Client, stack: &'a str) -> Result<Self, Check> {
        let mut names = BTreeMap::new();
        let mut marker = None;
        for _ in 0..MAX_PAGES {
            let page = lambda.list_functions().set_marker(marker.take()).send().await;
            let page = page.map_err(|error| Check::unknown("Functions", super::reason(error)))?;
            for function in page.functions().iter().filter_map(|function| function.function_name()) {
                if let Some(name) = logical_name(stack, function) {
                    names.insert(name.to_owned(), function.to_owned());
                }
            }
            marker = page.next_marker.filter(|marker| !marker.is_empty());
            if marker.is_none() {
                break;
            }
        }
        Ok(Self { lambda, stack, names })
    }

    /// One check a function.
    pub(super) async fn answer(&self) -> Vec<Check> {
        let mut all = probes();
        all.retain(|probe| probe.name != OPTIONAL || self.names.contains_key(OPTIONAL));
        let mut checks = join_all(all.iter().map(|probe| self.answers(probe))).await;
        checks.extend(join_all(SCHEDULED.map(|name| self.is_active(name))).await);
        checks
    }

    fn named(&self, name: &str) -> Result<&str, Check> {
        let absent = || Check::missing(name, format!("the stack {} has no such function", self.stack));
        self.names.get(name).map(String::as_str).ok_or_else(absent)
    }

    /// Behind its alias.
    pub(super) async fn invoke(&self, name: &str, payload: &Value) -> Result<Answer, Check> {
        let payload = Blob::new(payload.to_string());
        let call = self.lambda.invoke().function_name(self.named(name)?).qualifier(ALIAS).payload(payload);
        let answer = call.send().await.map_err(|error| Check::failed(name, error))?;
        let body = answer.payload.map(Blob::into_inner).unwrap_or_default();
        if answer.function_error.is_some() {
            return Err(Check::missing(name, format!("it fails: {}", String::from_utf8_lossy(&body))));
        }
        let body = serde_json::from_slice(&body).unwrap_or_default();
        Ok(Answer { version: answer.executed_version.unwrap_or_default(), body })
    }

    async fn answers(&self, probe: &Probe) -> Check {
        let Answer { version, body } = match self.invoke(probe.name, &(probe.payload)()).await {
            Ok(answer) => answer,
            Err(check) => return check,
        };
        if body.pointer(probe.pointer).is_some_and(probe.expected) {
            return Check::ready(probe.name, format!("version {version} answers"));
        }
        Check::missing(probe.name, format!("version {version} answers otherwise than it should: {body}"))
    }

    async fn is_active(&self, name: &str) -> Check {
        let function = match self.named(name) {
            Ok(function) => function,
            Err(check) => return check,
        };
        let asked = self.lambda.get_function_configuration().function_name(function).qualifier(ALIAS);
        let configuration = match asked.send().await {
            Ok(configuration) => configuration,
            Err(error) => return Check::failed(name, error),
        };
        let state = configuration.state.map(|state| state.as_str().to_owned()).unwrap_or_default();
        let version = configuration.version.unwrap_or_default();
        match state.as_str() {
            "Active" => Check::ready(name, format!("version {version} is active")),
            _ => Check::missing(name, format!("version {version} is {state}: does its schedule run?")),
        }
    }

    /// One check for each function that has instances of its own at an opening; none where none are needed.
    pub(super) async fn are_warm(&self, needed: u32) -> Vec<Check> {
        if needed == 0 {
            return Vec::new();
        }
        join_all(WARMED.map(|name| self.is_warm(name, needed))).await
    }

    async fn is_warm(&self, name: &str, needed: u32) -> Check {
        let what = format!("{name}, warm instances");
        let function = match self.named(name) {
            Ok(function) => function,
            Err(check) => return Check { what, ..check },
        };
        let asked = self.lambda.get_provisioned_concurrency_config().function_name(function).qualifier(ALIAS);
        let available = match asked.send().await {
            Ok(warm) => warm.available_provisioned_concurrent_executions.unwrap_or_default(),
            Err(error) if error.code() == Some(NOTHING_WARM) => 0,
            Err(error) => return Check::failed(what, error),
        };
        if i64::from(available) >= i64::from(needed) {
            return Check::ready(what, format!("{available} for {needed}"));
        }
        let cure = "has WarmFrom come, and is WarmInstances as many?";
        Check::missing(what, format!("{available}, and {needed} are needed: {cure}"))
    }
}

/// `jari-HoldSeat-1A2B3C` of the stack `jari` is `HoldSeat`.
fn logical_name<'a>(stack: &str, function: &'a str) -> Option<&'a str> {
    let rest = function.strip_prefix(stack)?.strip_prefix('-')?;
    let (name, suffix) = rest.rsplit_once('-')?;
    (!name.contains('-') && !suffix.is_empty()).then_some(name)
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
    fn keys_are_published_where_there_is_one() {
        assert!(publishes_keys(&json!(r#"{"keys": [{"kid": "a"}]}"#)));
        for body in [json!(r#"{"keys": []}"#), json!("{}"), json!("no"), json!(null)] {
            assert!(!publishes_keys(&body), "{body}");
        }
    }

    #[test]
    fn every_function_is_called_or_scheduled() {
        let mut names: Vec<&str> = probes().iter().map(|probe| probe.name).chain(SCHEDULED).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), 16);
    }
}
