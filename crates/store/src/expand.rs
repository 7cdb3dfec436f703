//! From a file of `lua/` to the code that Redis gets. The build and the bench of tests share it.

use std::collections::BTreeSet;
use std::io;

/// The step's code: each `--@include x` replaced by what `library` reads under that name, the first time it is met;
/// without comments, and without functions that nothing calls.
pub(crate) fn source(text: &str, library: &impl Fn(&str) -> io::Result<String>) -> io::Result<String> {
    expand(text, library, &mut BTreeSet::new()).map(|text| code(&without_idle_functions(&text)))
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

/// Lua makes every function of a script anew at each run, used or not. One that is written from the first column, as
/// those of the library are, goes where its name is said nowhere behind it: a local function is called only from there.
fn without_idle_functions(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let mut kept: Vec<&str> = Vec::with_capacity(lines.len());
    // From the end, so that what only idle functions call is idle too.
    let mut end = lines.len();
    while end > 0 {
        let start = lines[..end].iter().rposition(|line| line.starts_with("local function "));
        let Some(start) = start else { break };
        let one_line = lines[start].ends_with(" end");
        let length =
            if one_line { Some(0) } else { lines[start..end].iter().position(|line| *line == "end") };
        let behind = length.map_or(end, |length| start + length + 1);
        kept.extend(lines[behind..end].iter().rev());
        let name = lines[start]["local function ".len()..].split('(').next().unwrap_or_default();
        if length.is_none() || kept.iter().any(|line| says(line, name)) {
            kept.extend(lines[start..behind].iter().rev());
        }
        end = start;
    }
    kept.extend(lines[..end].iter().rev());
    kept.iter().rev().fold(String::new(), |text, line| text + line + "\n")
}

/// Whether a line has `name` in it as a word of its own.
fn says(line: &str, name: &str) -> bool {
    line.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_').any(|word| word == name)
}

/// The code alone: what Redis keeps and hashes need not carry the comments.
fn code(text: &str) -> String {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with("--"));
    lines.fold(String::new(), |code, line| code + line + "\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(step: &str) -> String {
        source(step, &|name| {
            assert_eq!(name, "both");
            Ok("-- a and b\nlocal function inner() return 1 end\nlocal function a()\n  return inner()\nend\n\
                local function b(x)\n  if x then\n    return b(false)\n  end\nend\n"
                .to_owned())
        })
        .unwrap()
    }

    #[test]
    fn a_function_that_nothing_calls_goes_with_what_only_it_calls() {
        assert_eq!(
            of("--@include both\nreturn b(1)\n"),
            "local function b(x)\nif x then\nreturn b(false)\nend\nend\nreturn b(1)\n"
        );
        assert_eq!(of("--@include both\nreturn 'ab'\n"), "return 'ab'\n");
    }

    #[test]
    fn what_is_called_stays_and_an_include_comes_once() {
        let all = of("--@include both\n--@include both\nlocal x = a()\nreturn b(x)\n");
        assert!(all.starts_with("local function inner()"), "{all}");
        assert_eq!(all.matches("local function").count(), 3, "{all}");
    }
}
