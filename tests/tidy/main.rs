//! What holds between files: names that must agree, doors that must stay shut. Headers of Lua steps are held
//! against their code when store is built.
#![cfg(test)]

mod reliability;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use gateway::failure::ROWS;
use gateway::routes::ROUTES;
use metrics::{Kind, prometheus};
use serde_json::{Value, json};
use support::contract;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Files below a folder with that ending, as paths from the root.
fn files(folder: &str, ending: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut folders = vec![root().join(folder)];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.to_string_lossy().ends_with(ending) {
                let relative = path.strip_prefix(root()).expect("below the root");
                found.push(relative.to_string_lossy().into_owned());
            }
        }
    }
    found.sort();
    found
}

fn functions() -> Vec<String> {
    let folders = fs::read_dir(root().join("functions")).expect("functions/");
    let mut names: Vec<String> =
        folders.map(|folder| folder.expect("an entry").file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// Names below `[dependencies]` of a crate.
fn dependencies(folder: &str) -> BTreeSet<String> {
    let manifest = read(&format!("{folder}/Cargo.toml"));
    let section = manifest.split("\n[dependencies]").nth(1).unwrap_or_default();
    let lines = section.lines().skip(1).take_while(|line| !line.starts_with('['));
    let names = lines.filter_map(|line| line.split([' ', '.', '=']).next());
    names.filter(|name| !name.is_empty() && !name.starts_with('#')).map(str::to_owned).collect()
}

#[test]
fn imports_point_inward() {
    let ours = ["metrics", "store", "gateway", "records", "outbox", "recovery", "bootstrap", "server"];
    let must_not: [(&str, &[&str]); 7] = [
        ("crates/metrics", &["tokio", "domain", "redis", "lambda_http", "store", "gateway"]),
        (
            "crates/domain",
            &["tokio", "redis", "http", "hyper", "lambda_http", "tokio-postgres", "store", "gateway"],
        ),
        ("crates/store", &["http", "hyper", "lambda_http", "gateway", "records", "outbox"]),
        ("crates/gateway", &["redis", "tokio-postgres", "store", "records", "outbox"]),
        ("crates/records", &["redis", "lambda_http", "store", "gateway", "outbox"]),
        ("crates/outbox", &["redis", "lambda_http", "store", "gateway", "records"]),
        ("crates/recovery", &["redis", "tokio-postgres", "lambda_http", "gateway", "outbox", "bootstrap"]),
    ];
    for (folder, forbidden) in must_not {
        let found = dependencies(folder);
        assert!(!found.is_empty(), "{folder}: no dependencies read");
        for name in forbidden {
            assert!(!found.contains(*name), "{folder} must not know {name}");
        }
    }
    for name in ours {
        assert!(!dependencies("crates/domain").contains(name), "domain imports nothing of ours, not {name}");
    }
}

#[test]
fn only_functions_that_send_link_the_sdk() {
    for name in functions() {
        let manifest = read(&format!("functions/{name}/Cargo.toml"));
        let sends = ["admin", "admit", "book", "pay", "push", "relay"].contains(&name.as_str());
        assert_eq!(manifest.contains("\"sqs\""), sends, "functions/{name}: the SQS client");
        assert!(!manifest.contains("aws-sdk"), "functions/{name}: the SDK is outbox's matter");
    }
}

#[test]
fn mains_are_thin() {
    for name in functions() {
        let lines = read(&format!("functions/{name}/src/main.rs")).lines().count();
        assert!(lines <= 30, "functions/{name}/src/main.rs has {lines} lines");
        assert!(
            root().join(format!("functions/{name}/src/handler.rs")).exists(),
            "functions/{name} has no handler.rs"
        );
    }
}

#[test]
fn every_function_is_deployed_has_an_event_and_a_test() {
    let template = read("template.yaml");
    let events: String = files("events", ".json").join(" ");
    let tests: String = files("tests", ".rs").iter().map(|path| read(path)).collect();
    for name in functions() {
        assert!(template.contains(&format!("CodeUri: functions/{name}")), "template.yaml has no {name}");
        assert!(events.contains(&format!("events/{name}")), "events/ has nothing for {name}");
        let handler = format!("{}::", name.replace('-', "_"));
        assert!(tests.contains(&handler), "no test calls {handler}");
    }
}

#[test]
fn every_event_is_json() {
    for path in files("events", ".json") {
        serde_json::from_str::<serde_json::Value>(&read(&path))
            .unwrap_or_else(|error| panic!("{path}: {error}"));
    }
}

#[test]
fn routes_are_the_same_in_code_contract_and_template() {
    let template = read("template.yaml");
    let documented: BTreeSet<(String, String)> = contract::document()["paths"]
        .as_object()
        .expect("paths")
        .iter()
        .flat_map(|(path, methods)| {
            let methods = methods.as_object().expect("methods").keys();
            let methods =
                methods.filter(|method| ["get", "post", "delete", "put", "patch"].contains(&method.as_str()));
            methods.map(|method| (method.to_uppercase(), path.split('{').next().unwrap_or(path).to_owned()))
        })
        .collect();
    let routed: BTreeSet<(String, String)> = ROUTES
        .iter()
        .map(|route| (route.method.to_owned(), route.path.split('{').next().unwrap_or(route.path).to_owned()))
        .collect();
    assert_eq!(documented, routed);
    for route in ROUTES {
        assert!(functions().contains(&route.function.to_owned()), "{} is no function", route.function);
        let path = route.path.split('{').next().unwrap_or(route.path);
        assert!(template.contains(path), "template.yaml does not route {} {}", route.method, route.path);
    }
}

#[test]
fn the_front_door_leads_to_every_route_and_says_what_jari_serve_says() {
    let door = read("infra/web.yaml");
    let patterns: Vec<&str> =
        door.lines().filter_map(|line| line.trim().strip_prefix("- PathPattern: ")).collect();
    for route in ROUTES {
        let leads = |pattern: &&&str| match pattern.strip_suffix('*') {
            Some(start) => route.path.starts_with(start),
            None => route.path == **pattern,
        };
        assert!(
            patterns.iter().any(|pattern| leads(&pattern)),
            "{} is no path of infra/web.yaml",
            route.path
        );
    }
    let page = read("crates/server/src/page.rs");
    let policy = page.split("const POLICY: &str = \"").nth(1).expect("a policy").split('"').next();
    let words = |text: &str| text.replace('\\', " ").split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words(&door).contains(&words(policy.expect("its end"))), "infra/web.yaml has another policy");
}

#[test]
fn every_outcome_has_a_row_and_every_code_is_described() {
    /// What is no refusal: answers, and what a command deals with itself.
    const ANSWERS: &[&str] = &[
        "JOINED",
        "KNOWN",
        "REQUEUED",
        "LEFT",
        "POLLED",
        "PROGRESS",
        "FOUND",
        "LIVE",
        "SEATS",
        "HELD",
        "RELEASED",
        "BOOKED",
        "RESERVED",
        "CANCELLED",
        "EXPIRED",
        "KEPT",
        "PAID",
        "UNCHANGED",
        "ELSEWHERE",
        "TICKED",
        "COUNTED",
        "APPLIED",
        "CHANGED",
        "HEALTHY",
        "RECOVERED",
        "CONNECTED",
        "DISCONNECTED",
        "PUSHES",
        "TOLD",
        "RESTORED",
        "EVICTED",
        "REFILED",
        "RECOUNTED",
        "GROUNDED",
        "PLACED",
        "UNCHANGED",
        "STALE",
        "AGAIN",
        "NOTED",
        "DELETED",
        "SCANNED",
    ];
    /// What only operators meet.
    const OPERATORS: &[&str] = &["CONFLICT", "IN_USE", "FULL", "ONGOING"];
    let codes: BTreeSet<&str> = ROWS.iter().map(|row| row.code).collect();
    for step in store::STEPS {
        assert!(!step.outcomes.is_empty(), "{} declares no outcome", step.name);
        for outcome in step.outcomes {
            let code = match *outcome {
                "MAINTENANCE" | "RECOVERING" | "JOURNAL_FULL" => "UNAVAILABLE",
                "SEAT_COUNT_WHILE_HOLDING" => "INVALID_REQUEST",
                "ANOTHER_ACCOUNT" => "UNAUTHORIZED",
                other => other,
            };
            let known = codes.contains(code) || ANSWERS.contains(&code) || OPERATORS.contains(&code);
            assert!(known, "{}: {outcome} has no row", step.name);
        }
    }
    let contract = read("openapi.yaml");
    for code in codes {
        assert!(contract.contains(code), "openapi.yaml does not know {code}");
    }
}

#[test]
fn every_code_is_met_by_a_test_of_the_whole() {
    let tests = files("tests/api", ".rs").into_iter().chain(files("tests/system", ".rs"));
    let tests: String = tests.map(|path| read(&path)).collect();
    for row in ROWS {
        // As it is compared to: the answer's code, alone or behind its status.
        let met = tests.contains(&format!("\"{}\"", row.code));
        assert!(met, "no test of tests/api or tests/system meets {}", row.code);
    }
}

#[test]
fn one_file_reads_the_environment() {
    for path in files("crates", ".rs").into_iter().chain(files("functions", ".rs")) {
        if path.ends_with("bootstrap/src/config.rs") || path.ends_with("build.rs") || path.contains("/tests/")
        {
            continue;
        }
        for (number, line) in read(&path).lines().enumerate() {
            let reads = line.contains("env::var") || line.contains("env::vars");
            // Where programs lie is the system's matter and no configuration of ours.
            assert!(!reads || line.contains("\"PATH\""), "{path}:{}: {line}", number + 1);
        }
    }
}

#[test]
fn one_file_builds_keys() {
    for path in files("crates", ".rs").into_iter().chain(files("functions", ".rs")) {
        if path.ends_with("store/src/keys.rs") || path.contains("/tests/") {
            continue;
        }
        for (number, line) in read(&path).lines().enumerate() {
            assert!(!line.contains("\"ticket:"), "{path}:{}: a key is built outside keys.rs", number + 1);
        }
    }
    for path in files("lua", ".lua") {
        assert!(!read(&path).contains("ticket:"), "{path} builds a key");
    }
}

#[test]
fn every_metric_is_in_the_table_and_has_a_name_of_its_own() {
    let page = read("docs/metrics.md");
    let rows: Vec<&str> = page.lines().filter(|line| line.starts_with("| `")).collect();
    assert_eq!(rows.len(), metrics::TABLE.len(), "rows of docs/metrics.md");
    let mut names = BTreeSet::new();
    for (metric, row) in metrics::TABLE.iter().zip(rows) {
        let kind = match metric.kind {
            Kind::Counter(_) => "counter",
            Kind::Gauge(_) => "gauge",
            Kind::Distribution(_) => "distribution",
            Kind::Codes(_) => "codes",
        };
        let (name, unit, prometheus) = (metric.name, metric.unit.as_str(), prometheus::name(metric));
        let begins = format!("| `{name}` | {kind} | {unit} | `{prometheus}` | ");
        assert!(
            row.starts_with(&begins) && row.ends_with(&format!(" | {} |", metric.means)),
            "{begins}\n{row}"
        );
        assert!(names.insert(name), "two metrics are called {name}");
    }
    assert!(read("template.yaml").contains("SYSTEM_NAME: !Ref AWS::StackName"), "whose metrics they are");
}

/// Names of our metrics as CloudWatch has them, with their units.
fn cloudwatch_names() -> BTreeMap<String, &'static str> {
    let mut names = BTreeMap::new();
    for metric in metrics::TABLE {
        let unit = metric.unit.as_str();
        match metric.kind {
            Kind::Codes(_) => names.extend(
                ROWS.iter().map(|row| (format!("{}_{}", metric.name, row.code.to_lowercase()), unit)),
            ),
            _ => drop(names.insert(metric.name.to_owned(), unit)),
        }
    }
    names
}

/// A template without its functions: what they are given stays.
fn template(path: &str) -> Value {
    let mut text = read(path);
    for function in ["!Ref ", "!Sub ", "!GetAtt ", "!If ", "!Not ", "!Equals "] {
        text = text.replace(function, "");
    }
    serde_saphyr::from_str(&text).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Resources of a type, by name.
fn resources<'a>(template: &'a Value, kind: &str) -> Vec<(&'a String, &'a Value)> {
    let resources = template["Resources"].as_object().expect("resources").iter();
    let of_kind = resources.filter(|(_, resource)| resource["Type"] == kind);
    of_kind.map(|(name, resource)| (name, &resource["Properties"])).collect()
}

#[test]
fn every_alarm_watches_a_metric_that_is_told() {
    let (names, template) = (cloudwatch_names(), template("infra/observability.yaml"));
    let alarms = resources(&template, "AWS::CloudWatch::Alarm");
    for (name, alarm) in &alarms {
        assert_eq!(alarm["AlarmActions"], json!(["Alarms"]), "{name} wakes nobody");
        if alarm["Namespace"] == metrics::NAMESPACE {
            let unit = names.get(alarm["MetricName"].as_str().expect("a name"));
            assert_eq!(alarm["Unit"].as_str(), unit.copied(), "{name}");
            assert_eq!(alarm["Dimensions"], json!([{ "Name": "system", "Value": "System" }]), "{name}");
        }
    }
    for function in functions() {
        let words = function.split('-').map(|word| word[..1].to_uppercase() + &word[1..]);
        let function: String = words.collect();
        for metric in ["Errors", "Throttles"] {
            let alarm = alarms.iter().find(|(name, _)| **name == format!("{function}{metric}"));
            let (name, alarm) = alarm.unwrap_or_else(|| panic!("{function} has no alarm for {metric}"));
            let watches = (&alarm["MetricName"], &alarm["Dimensions"][0]["Value"]);
            assert_eq!(watches, (&json!(metric), &json!(format!("{function}Function"))), "{name}");
        }
    }
}

#[test]
fn the_dashboard_shows_every_metric() {
    /// Only `jari serve` has its dead letters at hand; deployed, SQS counts them.
    const SERVED: &str = "dead_letters";
    let (names, template) = (cloudwatch_names(), template("infra/observability.yaml"));
    let [(_, dashboard)] = resources(&template, "AWS::CloudWatch::Dashboard")[..] else {
        panic!("one dashboard")
    };
    let body = dashboard["DashboardBody"].as_str().expect("a text");
    let body: Value = serde_json::from_str(body).expect("JSON");
    let mut shown = BTreeSet::new();
    for widget in body["widgets"].as_array().expect("widgets") {
        for metric in widget["properties"]["metrics"].as_array().expect("metrics") {
            let name = metric[1].as_str().expect("a name");
            if metric[0] == metrics::NAMESPACE {
                assert!(names.contains_key(name), "{name} is no metric");
                assert_eq!((&metric[2], &metric[3]), (&json!("system"), &json!("${System}")), "{name}");
                shown.insert(name.to_owned());
            }
        }
    }
    for metric in metrics::TABLE.iter().filter(|metric| metric.name != SERVED) {
        let is_shown = shown.iter().any(|name| name.starts_with(metric.name));
        assert!(is_shown, "no widget shows {}", metric.name);
    }
}

#[test]
fn every_function_tells_what_it_counts() {
    for name in functions() {
        let main = read(&format!("functions/{name}/src/main.rs"));
        let tells = main.contains("gateway::run(") || main.contains("metrics::flushed(");
        assert!(tells, "functions/{name}/src/main.rs writes no line of metrics");
    }
}

#[test]
fn every_key_is_in_the_table() {
    let keys = read("crates/store/src/keys.rs");
    let (table, code) = keys.split_once("use domain").expect("a table, then code");
    let parts: Vec<&str> = code.split('"').skip(1).step_by(2).collect();
    assert!(parts.len() > 20, "{parts:?}");
    for part in parts {
        let last = part.trim_end_matches(':').rsplit(':').next().unwrap_or(part);
        assert!(table.contains(last), "the table of keys.rs has no {part}");
    }
}
