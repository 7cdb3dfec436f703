//! `jari preflight` before a deployment in which all is well, and before each that is not ready.

use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::lambda::{Account, CONNECTS, Lambda, REQUESTS, STACK};
use crate::served::{Served, complained, said, sale};

/// What came out: the exit code, the report, and what was complained of.
struct Report {
    code: Option<i32>,
    text: String,
    complaint: String,
}

impl Report {
    /// The one line that begins so.
    fn line(&self, start: &str) -> &str {
        let mut lines = self.text.lines().filter(|line| line.starts_with(start));
        let line = lines.next().unwrap_or_else(|| panic!("{start}\n{}", self.text));
        assert_eq!(lines.next(), None, "{start}");
        line
    }

    fn count(&self, verdict: &str) -> usize {
        self.text.lines().filter(|line| line.starts_with(verdict)).count()
    }
}

fn preflight(lambda: &Lambda, arguments: &[&str]) -> Report {
    let mut command = Command::new(env!("CARGO_BIN_EXE_jari"));
    command.args(["preflight", "--stack", STACK]).args(arguments).envs(lambda.environment());
    let output = command.stdin(Stdio::null()).output().expect("jari runs");
    Report { code: output.status.code(), text: said(&output), complaint: complained(&output) }
}

#[test]
fn a_deployment_that_is_ready_is_found_so() {
    let served = Served::with("preflight", &sale(50, "1-9", 500));
    let lambda = Lambda::before(&served.running());
    let report = preflight(&lambda, &[]);
    assert_eq!(report.code, Some(0), "{}\n{}", report.text, report.complaint);
    assert_eq!(report.count("ready"), report.text.lines().count());
    for line in [
        "ready    Join: version 7 answers",
        "ready    Admit: version 7 is active",
        "ready    PostgreSQL's tables: can be read",
        "ready    Lambda, instances at once: 3000 for 1000;",
        // The account's own, and where it has none, everybody's.
        "ready    API Gateway, requests a second: 20000 for 8000",
        "ready    API Gateway, connects of sockets a second: 500 for 500",
    ] {
        report.line(line);
    }
    for run in ["ready    Last tick: ", "ready    Last relay: "] {
        assert!(report.line(run).ends_with(" s ago"), "{}", report.text);
    }
    let warm = preflight(&lambda, &["--warm-instances", "200", "--json"]);
    assert_eq!(warm.code, Some(0), "{}", warm.text);
    let checks: Vec<Value> = serde_json::from_str(&warm.text).expect("JSON");
    assert_eq!(checks.len(), report.text.lines().count() + 4);
    let join = json!({ "what": "Join, warm instances", "verdict": "ready", "found": "200 for 200" });
    assert!(checks.contains(&join), "{checks:?}");
}

/// What is wrong with an account, and the line that tells it.
type Case = (fn(&mut Account), &'static str);

#[test]
fn what_is_missing_is_a_finding_and_hides_nothing() {
    let served = Served::with("preflight-missing", &sale(50, "1-9", 500));
    let lambda = Lambda::before(&served.running());
    let cases: [Case; 11] = [
        (|account| drop(account.answers.remove("Pay")), "Pay: the stack jari has no such function"),
        (
            |account| drop(account.answers.insert("Book", json!({ "statusCode": 500 }))),
            "Book: version 7 answers otherwise than it should: {\"statusCode\":500}",
        ),
        (
            |account| {
                drop(account.answers.insert("Keys", json!({ "statusCode": 200, "body": "{\"keys\":[]}" })));
            },
            "Keys: version 7 answers otherwise",
        ),
        // Called where it is there, and not missed where it is not.
        (
            |account| drop(account.answers.insert("PollOnInstances", json!({ "statusCode": 503 }))),
            "PollOnInstances: version 7 answers otherwise than it should: {\"statusCode\":503}",
        ),
        (
            |account| drop(account.answers.insert("Push", json!({ "errorMessage": "no key" }))),
            "Push: it fails: ",
        ),
        (
            |account| {
                account.inactive.insert("Relay");
            },
            "Relay: version 7 is Inactive: does its schedule run?",
        ),
        (|account| account.instances = 2_999, "Lambda, instances at once: 2999, and 3000 are needed"),
        (
            |account| {
                account.own.insert(REQUESTS, 7_999.0);
            },
            "API Gateway, requests a second: 7999, and 8000 are needed",
        ),
        (
            |account| {
                account.everybodys.insert(CONNECTS, 499.0);
            },
            "API Gateway, connects of sockets a second: 499, and 500 are needed",
        ),
        (|account| account.warm = Some(199), "HoldSeat, warm instances: 199, and 200 are needed"),
        (|account| account.warm = None, "Poll, warm instances: 0, and 200 are needed: has WarmFrom come"),
    ];
    for (change, line) in cases {
        lambda.with(change);
        let report = preflight(&lambda, &["--instances", "3000", "--warm-instances", "200"]);
        assert_eq!(report.code, Some(1), "{line}\n{}", report.text);
        report.line(&format!("MISSING  {line}"));
        let expected = if line.contains("warm") { 4 } else { 1 };
        assert_eq!(report.count("MISSING"), expected, "{line}\n{}", report.text);
        assert_eq!(report.count("unknown"), 0, "{line}\n{}", report.text);
    }
}

#[test]
fn what_may_not_be_asked_is_unknown_and_hides_nothing() {
    let served = Served::with("preflight-unknown", &sale(50, "1-9", 500));
    let lambda = Lambda::before(&served.running());
    let cases: [(&'static str, &'static str, usize); 6] = [
        ("functions/jari-Join", "Join: AccessDeniedException: not authorized", 1),
        // Whoever may not ask Admin knows of no tick, no relay and no PostgreSQL.
        ("functions/jari-Admin", "Last tick: AccessDeniedException: not authorized", 4),
        ("functions/jari-Admit-1ABC/configuration", "Admit: AccessDeniedException", 1),
        ("account-settings", "Lambda, instances at once: AccessDeniedException", 1),
        ("GetServiceQuota", "API Gateway, requests a second: AccessDeniedException", 2),
        ("GetAWSDefaultServiceQuota", "API Gateway, connects of sockets a second: AccessDeniedException", 1),
    ];
    for (part, line, unknown) in cases {
        lambda.with(|account| {
            account.forbidden.insert(part);
        });
        let report = preflight(&lambda, &[]);
        report.line(&format!("unknown  {line}"));
        assert_eq!(
            (report.count("unknown"), report.count("MISSING")),
            (unknown, 0),
            "{part}\n{}",
            report.text
        );
        assert_eq!(report.code, Some(2), "{part}\n{}", report.text);
        let s = if unknown == 1 { "" } else { "s" };
        assert!(
            report.complaint.contains(&format!("{unknown} check{s} could not be made")),
            "{}",
            report.complaint
        );
        assert!(report.count("ready") > 10, "{part}\n{}", report.text);
    }
    // Without the list nothing is known of any function; what the account may do still is.
    lambda.with(|account| {
        account.forbidden.insert("functions?");
        account.forbidden.insert("functions/?");
        account.instances = 1;
    });
    let report = preflight(&lambda, &[]);
    report.line("unknown  Functions: AccessDeniedException: not authorized");
    report.line("MISSING  Lambda, instances at once: 1, and 1000 are needed");
    assert_eq!((report.code, report.text.lines().count()), (Some(1), 4), "{}", report.text);
}

#[test]
fn a_database_that_does_not_answer_is_missing() {
    let served = Served::with("preflight-database", &sale(50, "1-9", 500));
    let mut running = served.running();
    running["database"] = "postgres://nobody@127.0.0.1:1/none".into();
    let report = preflight(&Lambda::before(&running), &[]);
    assert_eq!((report.code, report.count("MISSING")), (Some(1), 1), "{}", report.text);
    let line = report.line("MISSING  PostgreSQL's tables: it fails: ");
    assert!(line.contains("PostgreSQL cannot be reached"), "{line}");
}

#[test]
fn a_line_that_nobody_ticks_or_relays_is_found() {
    let served = Served::with("preflight-still", &sale(50, "1-9", 500));
    let running = served.running();
    let lambda = Lambda::before(&running);
    let url = running["redis"].as_str().expect("an address");
    let mut redis = redis::Client::open(url).and_then(|client| client.get_connection()).expect("Redis");
    let mut ask = |command: &str| {
        let mut words = command.split(' ');
        let mut command = redis::cmd(words.next().expect("a command"));
        command.arg(words.collect::<Vec<_>>()).exec(&mut redis).expect("an answer");
    };
    // What no step can read ends each tick of the sale, and each round of the relay, before it leaves its time.
    ask("SET ticket:{train-1}:seats:due broken");
    ask("SADD ticket:events broken");
    ask("SET ticket:{broken}:journal broken");
    let mut still = |field: &str, line: &str| {
        // A tick or a round that had begun before may still leave its time once.
        let report = (0..10).find_map(|_| {
            ask(&format!("HSET ticket:{{train-1}}:meta {field} 1000"));
            let report = preflight(&lambda, &[]);
            report.text.contains(&format!("MISSING  {line}")).then_some(report)
        });
        let report = report.unwrap_or_else(|| panic!("{line}"));
        assert_eq!(report.code, Some(1));
        assert!(report.line(&format!("MISSING  {line}: train-1: ")).contains(" d "), "{}", report.text);
    };
    still("clock", "Last tick");
    still("relayedAt", "Last relay");
    ask("SREM ticket:events train-1");
    let report = preflight(&lambda, &[]);
    assert_eq!(report.code, Some(2), "{}", report.text);
    report.line("unknown  Last tick: no sale is there to tell");
}
