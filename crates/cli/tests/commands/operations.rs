//! docs/operations.md: every command in it does what the page says.

use std::fs;
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::lambda::{FUNCTION, Lambda, STACK};
use crate::served::{Served, jari_folder, sale};

const PAGE: &str = include_str!("../../../../docs/operations.md");
/// A block of the page gets this long; the last one waits for people to leave.
const BLOCK_TIMEOUT: Duration = Duration::from_mins(3);

/// How a block of commands is marked.
#[derive(Debug, PartialEq, Eq)]
enum Expected {
    /// `sh`: all is well.
    Fine,
    /// `sh refused`: the system says no, with exit code 1.
    Refused,
    /// `sh deployed`: all is well, and the commands go to a deployed function.
    Deployed,
}

/// The blocks of commands, in the page's order.
fn blocks() -> Vec<(Expected, String)> {
    let mut blocks = Vec::new();
    let mut lines = PAGE.lines();
    while let Some(line) = lines.next() {
        let Some(mark) = line.trim_start().strip_prefix("```") else { continue };
        let expected = match mark {
            "sh" => Expected::Fine,
            "sh refused" => Expected::Refused,
            "sh deployed" => Expected::Deployed,
            other => panic!("a block of an unknown kind: {other:?}"),
        };
        let block = lines.by_ref().take_while(|line| line.trim_start() != "```");
        blocks.push((expected, block.collect::<Vec<_>>().join("\n")));
    }
    blocks
}

#[test]
fn every_command_of_the_page_does_what_it_says() {
    let mut definition = sale(50, "1-9", 500);
    let now_ms = SystemTime::now().duration_since(UNIX_EPOCH).expect("a clock").as_millis();
    let now_ms = u64::try_from(now_ms).expect("a time of this age");
    definition["opensAt"] = (now_ms - 60_000).into();
    definition["closesAt"] = (now_ms + 86_400_000).into();
    definition["admission"]["activeSeconds"] = 15.into();
    definition["holdSeconds"] = 15.into();
    let served = Served::with("operations", &definition);
    let running = served.running();
    let lambda = Lambda::before(&running);
    // The page's commands find what `jari serve` says of itself below the directory they run in.
    std::os::unix::fs::symlink(served.folder.file("data"), served.folder.file(".local")).expect("a link");
    let path = format!("{}:{}", jari_folder(), std::env::var("PATH").unwrap_or_default());
    let blocks = blocks();
    assert!(blocks.len() > 10, "{blocks:?}");
    for (expected, block) in blocks {
        let mut command = Command::new("timeout");
        command.arg(BLOCK_TIMEOUT.as_secs().to_string()).args(["bash", "-euo", "pipefail", "-c", &block]);
        command.current_dir(served.folder.path()).env("PATH", &path).stdin(Stdio::null());
        command.env("sale", "train-1").env("file", "sale.json").env("function", FUNCTION).env("stack", STACK);
        command.env("url", running["url"].as_str().expect("an address"));
        if expected == Expected::Deployed {
            command.envs(lambda.environment());
        }
        let output = command.output().expect("bash runs");
        let code = i32::from(expected == Expected::Refused);
        assert_eq!(output.status.code(), Some(code), "{block}\n{output:?}");
    }
    let left = |name: &str| fs::read_to_string(served.folder.file(name)).expect("a file");
    assert!(left("crowd.html").contains("all is well"));
    assert!(left("reservations.csv").lines().count() > 10, "the crowd has bought");
    // What went to the deployed function by its name, and what to all functions behind their alias.
    let asked = lambda.asked();
    let invoked = |tail: &str| asked.iter().filter(|asked| asked.path.ends_with(tail)).count();
    assert_eq!(invoked(&format!("/{FUNCTION}/invocations")), 2, "{asked:?}");
    assert!(invoked("/invocations?Qualifier=live") > 10, "{asked:?}");
}

/// Names of alarms in a template, which stand before their type.
fn alarms(template: &str) -> Vec<&str> {
    let lines: Vec<&str> = template.lines().collect();
    let named = lines.windows(2).filter(|pair| pair[1].trim() == "Type: AWS::CloudWatch::Alarm");
    named.map(|pair| pair[0].trim().trim_end_matches(':')).collect()
}

#[test]
fn the_page_knows_every_alarm() {
    let alarms = alarms(include_str!("../../../../infra/observability.yaml"));
    assert!(alarms.len() > 40, "{alarms:?}");
    for alarm in alarms {
        let function = alarm.strip_suffix("Throttles").map(|function| format!("`{function}Errors`"));
        let is_known = PAGE.contains(&format!("`{alarm}`"));
        let with_errors = function.is_some_and(|errors| PAGE.contains(&errors));
        assert!(is_known || with_errors, "docs/operations.md does not say what to do about {alarm}");
    }
}
