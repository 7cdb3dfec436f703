//! docs/reliability.md promises nothing that no test shows.

use crate::{files, read};

/// What stands between backticks and names a test: `module::function`, or all of a module: `module::`.
fn named(line: &str) -> impl Iterator<Item = (&str, &str)> {
    let words = line.split('`').skip(1).step_by(2);
    words.filter_map(|word| word.split_once("::")).filter(|(module, _)| !module.is_empty())
}

#[test]
fn every_promise_names_a_test_that_exists() {
    let table = read("docs/reliability.md");
    let tests = files("tests", ".rs");
    let is_test = |module: &str, function: &str| {
        let file = |path: &&String| {
            path.ends_with(&format!("/{module}.rs")) || path.ends_with(&format!("/{module}/mod.rs"))
        };
        let head = if function.is_empty() { "#[tokio::test]".to_owned() } else { format!("fn {function}(") };
        tests.iter().filter(file).any(|path| read(path).contains(&head))
    };
    let mut rows = 0;
    let mut last = 0;
    for line in table.lines().filter(|line| line.starts_with("| ")) {
        let cells: Vec<&str> = line.trim_matches('|').split(" | ").collect();
        if cells[0].trim() == "fault" {
            // The row above may be meant by "the same", the head of a table never.
            last = 0;
            continue;
        }
        let [_, _, shown] = cells.as_slice() else { panic!("not three cells: {line}") };
        let named: Vec<_> = named(shown).collect();
        for (module, function) in &named {
            assert!(is_test(module, function), "{module}::{function} is no test: {line}");
        }
        let is_the_same = shown.contains("the same") && last > 0;
        assert!(!named.is_empty() || is_the_same, "no test is named: {line}");
        last = named.len().max(last);
        rows += 1;
    }
    assert!(rows > 20, "{rows} rows");
}
