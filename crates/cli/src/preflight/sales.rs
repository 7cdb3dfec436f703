//! What the sales themselves tell, by the admin function: that they are ticked and relayed, and that PostgreSQL answers.
//!
//! A schedule that is enabled may still start nothing: its role, its target or the function's concurrency may be wrong.
//! So what a run leaves behind is asked for, not the schedule.

use admin::{Command, EventSummary, Reply};
use domain::Millis;
use serde_json::{Value, json};

use super::Check;
use super::functions::Functions;
use crate::output::span;

const TICK: &str = "Last tick";
const RELAY: &str = "Last relay";
const DATABASE: &str = "PostgreSQL's tables";
/// Schedules start a run each minute, which leaves its time at once. As long as the alarm of the tick waits.
const MAX_AGE_MS: i64 = 120_000;

/// The age of ticks and relays, and whether PostgreSQL answers.
pub(super) async fn check(functions: &Functions<'_>) -> Vec<Check> {
    let mut checks = match ask(functions, &Command::List).await {
        Ok(Reply::Listed { events }) => {
            vec![
                last(TICK, &events, |event| event.ticked_at, "Admit"),
                last(RELAY, &events, |event| event.relayed_at, "Relay"),
            ]
        }
        Ok(_) => vec![untold(TICK), untold(RELAY)],
        Err(check) => [TICK, RELAY].map(|what| Check::unknown(what, check.found.clone())).into(),
    };
    checks.push(database(functions).await);
    checks
}

/// A page of a sale that nobody has: the tables are read, and nothing is told.
async fn database(functions: &Functions<'_>) -> Check {
    let nothing = json!({ "command": "export", "event": "preflight", "limit": 1 });
    match functions.invoke("Admin", &nothing).await {
        Ok(answer) if answer.body["refusal"] == "EVENT_NOT_FOUND" => Check::ready(DATABASE, "can be read"),
        Ok(_) => untold(DATABASE),
        Err(check) => Check { what: DATABASE.to_owned(), ..check },
    }
}

async fn ask(functions: &Functions<'_>, command: &Command) -> Result<Reply, Check> {
    let payload = serde_json::to_value(command).unwrap_or(Value::Null);
    let answer = functions.invoke("Admin", &payload).await?;
    serde_json::from_value(answer.body).map_err(|error| Check::unknown("Admin", error.to_string()))
}

fn untold(what: &str) -> Check {
    Check::unknown(what, "the function Admin does not tell: is it another release?")
}

/// The sale that has waited longest tells.
fn last(
    what: &str,
    events: &[EventSummary],
    at: fn(&EventSummary) -> Option<Millis>,
    function: &str,
) -> Check {
    let age = |event: &EventSummary| at(event).map_or(i64::MAX, |at| (event.now.0 - at.0).max(0));
    let Some(event) = events.iter().max_by_key(|event| age(event)) else {
        return Check::unknown(what, "no sale is there to tell: apply one, and ask again two minutes later");
    };
    let cure = format!("does the schedule of {function} start it each minute, and what does its log say?");
    match age(event) {
        age if age <= MAX_AGE_MS => Check::ready(what, format!("{} ago", span(age))),
        i64::MAX => Check::missing(what, format!("{}: none yet: {cure}", event.event)),
        age => Check::missing(what, format!("{}: {} ago: {cure}", event.event, span(age))),
    }
}

#[cfg(test)]
mod tests {
    use super::super::Verdict;
    use super::*;

    fn event(name: &str, ticked_at: Option<i64>) -> EventSummary {
        let mut event = json!({
            "event": name, "title": "", "status": "OPEN", "maintenance": false, "version": 1, "now": 1_000_000,
            "opensAt": 0, "closesAt": 0, "waiting": 0, "active": 0, "maxActive": 1, "perSecond": 1.0,
            "admittedPerSecond": 0.0, "paceFactor": 1.0, "joinsRefused": false, "remaining": 0, "capacity": 0,
            "reservations": 0, "journal": 0,
        });
        if let Some(at) = ticked_at {
            event["tickedAt"] = at.into();
        }
        serde_json::from_value(event).unwrap()
    }

    #[test]
    fn the_sale_that_has_waited_longest_tells_whether_anything_ticks() {
        let tick = |events: &[EventSummary]| {
            let check = last(TICK, events, |event| event.ticked_at, "Admit");
            (check.verdict, check.found)
        };
        let (verdict, found) = tick(&[]);
        assert_eq!(verdict, Verdict::Unknown);
        assert!(found.contains("no sale"), "{found}");
        let fresh = event("a", Some(999_000));
        assert_eq!(tick(std::slice::from_ref(&fresh)), (Verdict::Ready, "1 s ago".to_owned()));
        assert_eq!(tick(&[event("e", Some(880_000))]).0, Verdict::Ready);
        let (verdict, found) = tick(&[fresh.clone(), event("b", Some(879_999))]);
        assert_eq!(verdict, Verdict::Missing);
        assert!(found.starts_with("b: 2 min 1 s ago: does the schedule of Admit"), "{found}");
        let (verdict, found) = tick(&[event("c", None), fresh]);
        assert_eq!(verdict, Verdict::Missing);
        assert!(found.starts_with("c: none yet"), "{found}");
    }
}
