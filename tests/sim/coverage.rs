//! What the seeds must have walked: the whole life of a token, every act in every state, every outcome of every step.

use std::collections::BTreeSet;

use store::{Bench, STEPS};

use crate::run::Seen;

/// The diagram of a token's life: from, to, by.
const LIFE: &[(&str, &str, &str)] = &[
    ("none", "WAITING", "join"),
    ("none", "WAITING", "rejoin"),
    ("WAITING", "LEFT", "leave"),
    ("WAITING", "CALLED", "tick"),
    ("CALLED", "ACTIVE", "poll"),
    ("CALLED", "ACTIVE", "rejoin"),
    // A join of the account, from another device.
    ("CALLED", "ACTIVE", "join"),
    // Acting is arriving, also where the act itself is refused.
    ("CALLED", "ACTIVE", "hold"),
    ("CALLED", "holding", "hold"),
    ("CALLED", "ACTIVE", "release"),
    ("CALLED", "ACTIVE", "book"),
    ("CALLED", "BOOKED", "book"),
    ("CALLED", "LEFT", "leave"),
    ("CALLED", "LAPSED", "time"),
    ("LAPSED", "WAITING", "rejoin"),
    ("LAPSED", "WAITING", "join"),
    ("ACTIVE", "holding", "hold"),
    ("ACTIVE", "BOOKED", "book"),
    ("ACTIVE", "LEFT", "leave"),
    ("ACTIVE", "EXPIRED", "time"),
    ("holding", "ACTIVE", "release"),
    ("holding", "BOOKED", "book"),
    ("holding", "LEFT", "leave"),
    ("holding", "EXPIRED", "time"),
    ("EXPIRED", "WAITING", "rejoin"),
    ("EXPIRED", "WAITING", "join"),
    // A place that Redis lost, and its key restores.
    ("WAITING", "LOST", "failover"),
    ("LOST", "WAITING", "rejoin"),
    // By hand: no key restores it.
    ("WAITING", "LOST", "mislay"),
];

/// Acts, and states in which each is tried: what the diagram does not define is refused as the model says.
const ACTS: &[&str] = &["rejoin", "leave", "poll", "search", "map", "session", "hold", "release", "book"];
const STATES: &[&str] =
    &["none", "WAITING", "CALLED", "LAPSED", "ACTIVE", "holding", "EXPIRED", "BOOKED", "LEFT", "LOST"];

/// Steps that have tests of their own. Those of sockets change no sale: tests/api/push.rs. Those of repair and rebuild
/// begin with a damaged one, and those of deletion leave none: tests/system/repair.rs, rebuild.rs, delete.rs.
const OTHERS: &[&str] = &[
    "connect",
    "disconnect",
    "push",
    "tell",
    "evict",
    "recount",
    "refile",
    "ground",
    "line",
    "resume",
    "delete",
    "scan",
];

/// Outcomes that no list of commands comes to, and why.
const LEFT_OUT: &[(&str, &str)] = &[
    // More than 500 expired holds: tests/api/seats.rs has as many.
    ("hold", "AGAIN"),
    ("book", "AGAIN"),
    ("apply", "AGAIN"),
    // Who has the places of what is put back: tests/system/repair.rs.
    ("restore", "AGAIN"),
    ("restore", "CONFLICT"),
    ("restore", "HELD"),
    ("restore", "FULL"),
    ("restore", "KNOWN"),
    // The definition is read first, and there is none.
    ("restore", "EVENT_NOT_FOUND"),
    ("hold", "EVENT_NOT_FOUND"),
    ("book", "EVENT_NOT_FOUND"),
    ("release", "EVENT_NOT_FOUND"),
    ("search", "EVENT_NOT_FOUND"),
    ("seats", "EVENT_NOT_FOUND"),
];

/// What was never seen.
pub(crate) fn missing(seen: &Seen, bench: &Bench) -> Vec<String> {
    let mut missing = Vec::new();
    for step in LIFE.iter().filter(|step| !seen.moved.contains(step)) {
        missing.push(format!("{step:?}"));
    }
    for act in ACTS {
        for state in STATES {
            if !seen.tried.contains(&(*state, *act)) {
                missing.push(format!("{act} by {state}"));
            }
        }
    }
    let met = bench.outcomes();
    for step in STEPS.iter().filter(|step| !OTHERS.contains(&step.name)) {
        for outcome in step.outcomes {
            let is_left_out = LEFT_OUT.contains(&(step.name, *outcome));
            if met.contains(&(step.name, (*outcome).to_owned())) == is_left_out {
                let why = if is_left_out { "was met, and is said not to be" } else { "was never met" };
                missing.push(format!("{}: {outcome} {why}", step.name));
            }
        }
    }
    missing
}

/// Moves that are not in the diagram.
pub(crate) fn undefined(seen: &Seen) -> BTreeSet<(&'static str, &'static str, &'static str)> {
    seen.moved.iter().filter(|step| !LIFE.contains(step)).copied().collect()
}
