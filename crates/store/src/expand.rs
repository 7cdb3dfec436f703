//! From a file of `lua/` to the code that Redis gets. The build and the bench of tests share it.

use std::collections::BTreeSet;
use std::io;

/// The step's code: each `--@include x` replaced by what `library` reads under that name, the first time it is met;
/// without comments.
pub(crate) fn source(text: &str, library: &impl Fn(&str) -> io::Result<String>) -> io::Result<String> {
    expand(text, library, &mut BTreeSet::new()).map(|text| code(&text))
}

fn expand(
    text: &str,
    library: &impl Fn(&str) -> io::Result<String>,
    seen: &mut BTreeSet<String>,
) -> io::Result<String> {
    let mut expanded = String::new();
    for line in text.lines() {
        if let Some(name) = line.strip_prefix("--@include ") {
            if seen.insert(name.to_owned()) {
                expanded.push_str(&expand(&library(name)?, library, seen)?);
            }
        } else {
            expanded.push_str(line);
            expanded.push('\n');
        }
    }
    Ok(expanded)
}

/// The code alone: what Redis keeps and hashes need not carry the comments.
fn code(text: &str) -> String {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with("--"));
    lines.fold(String::new(), |code, line| code + line + "\n")
}
