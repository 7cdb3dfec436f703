//! `jari dlq`.

use std::fs;

use serde_json::{Value, json};

use crate::served::{Served, complained, said, sale};

const POISON: &str = r#"{"facts":[{"event":"a","epoch":1,"id":"1-1","at":1,"kind":"USER_FLEW"}]}"#;
/// Nothing is wrong with it.
const SOUND: &str = r#"{"facts":[{"event":"a","epoch":1,"id":"5-1","at":7,"kind":"USER_LEFT_QUEUE","token":"6f9619ff-8b86-4d01-b42d-00cf4fc964ff"}]}"#;

#[test]
fn dead_letters_are_told_and_moved_back() {
    let served = Served::with("dlq", &sale(50, "1-9", 500));
    let none = served.jari(&["dlq", "list"]);
    assert_eq!(
        (none.status.code(), said(&none).as_str()),
        (Some(0), "0 dead letters\n"),
        "{}",
        complained(&none)
    );
    let file = served.folder.file("data/dead-letters.jsonl");
    fs::write(&file, format!("{POISON}\n{SOUND}\n")).expect("a file in the data folder");

    let output = served.jari(&["dlq", "list"]);
    let text = said(&output);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains("USER_FLEW") && text.contains("a 1/5-1 USER_LEFT_QUEUE"), "{text}");
    assert!(
        text.contains("nothing: it would be written now") && text.ends_with("2 dead letters\n"),
        "{text}"
    );
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    let letters: Value = serde_json::from_str(&said(&served.jari(&["dlq", "list", "--json"]))).expect("JSON");
    let poisoned = letters.as_array().into_iter().flatten().find(|letter| letter["factCount"] == 0);
    let poisoned = poisoned.and_then(|letter| letter["id"].as_str()).expect("its id").to_owned();

    let output = served.jari(&["dlq", "replay", &poisoned]);
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    let output = served.jari(&["dlq", "replay", "--all", "--json"]);
    let told: Value = serde_json::from_str(&said(&output)).expect("JSON");
    assert_eq!(
        (output.status.code(), told["replayed"].as_array().map(Vec::len)),
        (Some(1), Some(1)),
        "{told}"
    );
    assert_eq!(told["kept"], json!([poisoned]));
    assert_eq!(fs::read_to_string(&file).expect("the file"), format!("{POISON}\n"));
    let unknown = served.jari(&["dlq", "replay", "0000"]);
    assert_eq!(unknown.status.code(), Some(1));
    assert!(complained(&unknown).contains("0000 names no dead letter"), "{}", complained(&unknown));
}
