//! Expands the includes of every Lua step, holds its header against its first lines, and writes the steps as
//! Rust constants. A header that has drifted, or a key that is not passed in, fails the build.

// A build that fails with a reason is what this program is for.
#![allow(clippy::expect_used, clippy::panic, clippy::similar_names, clippy::format_collect)]

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs};

use sha1::{Digest, Sha1};

#[path = "src/expand.rs"]
mod expand;

fn main() {
    let lua = PathBuf::from(env::var("CARGO_MANIFEST_DIR").expect("set by cargo")).join("../../lua");
    println!("cargo:rerun-if-changed={}", lua.display());
    println!("cargo:rerun-if-changed={}", lua.join("lib").display());
    let mut steps: Vec<PathBuf> = fs::read_dir(&lua)
        .expect("lua/ exists")
        .map(|entry| entry.expect("lua/ is readable").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "lua"))
        .collect();
    steps.sort();
    let mut rust = String::new();
    let mut constants = Vec::new();
    for step in &steps {
        println!("cargo:rerun-if-changed={}", step.display());
        constants.push(write_step(&mut rust, &lua, step));
    }
    let all: String = constants.iter().map(|constant| format!("&{constant}, ")).collect();
    writeln!(rust, "/// All steps, by name.\npub static STEPS: &[&Step] = &[{all}];")
        .expect("a string takes all");
    for library in fs::read_dir(lua.join("lib")).expect("lua/lib exists") {
        let path = library.expect("lua/lib is readable").path();
        println!("cargo:rerun-if-changed={}", path.display());
        check_keys_are_passed(&path, &fs::read_to_string(&path).expect("readable"));
    }
    let out = PathBuf::from(env::var("OUT_DIR").expect("set by cargo")).join("steps.rs");
    fs::write(out, rust).expect("OUT_DIR is writable");
}

fn write_step(rust: &mut String, lua: &Path, path: &Path) -> String {
    let name = path.file_stem().expect("has a name").to_str().expect("is ASCII");
    let text = fs::read_to_string(path).expect("readable");
    check_keys_are_passed(path, &text);
    let header = Header::read(name, &text);
    header.check_locals(name, &text);
    let library = |name: &str| fs::read_to_string(lua.join("lib").join(format!("{name}.lua")));
    let source =
        expand::source(&text, &library).unwrap_or_else(|error| panic!("{name}: an include: {error}"));
    let sha1: String = Sha1::digest(source.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect();
    let keys: String = header.keys.iter().map(|key| format!("KeyName::{}, ", camel(key))).collect();
    let constant = name.to_uppercase();
    writeln!(
        rust,
        "/// {summary}\npub(crate) static {constant}: Step = Step {{\n    name: {name:?},\n    source: {source:?},\n    \
         sha1: {sha1:?},\n    keys: &[{keys}],\n    arguments: {arguments},\n    open_ended: {open_ended},\n    \
         read_only: {read_only},\n    outcomes: &{outcomes:?},\n}};\n",
        summary = header.summary,
        arguments = header.arguments.len(),
        open_ended = header.open_ended,
        read_only = header.read_only,
        outcomes = header.outcomes,
    )
    .expect("a string takes all");
    constant
}

/// What the first lines of a step declare.
struct Header {
    summary: String,
    read_only: bool,
    keys: Vec<String>,
    arguments: Vec<String>,
    open_ended: bool,
    outcomes: Vec<String>,
}

impl Header {
    fn read(name: &str, text: &str) -> Self {
        let comment: Vec<&str> = text
            .lines()
            .take_while(|line| line.starts_with("--"))
            .map(|line| line[2..].trim_start())
            .collect();
        let summary = comment.first().unwrap_or_else(|| panic!("{name}: no header"));
        let summary = summary
            .strip_prefix(&format!("{name}: "))
            .unwrap_or_else(|| panic!("{name}: the header starts with another name"));
        let field = |label: &str| -> Vec<&str> {
            let start = comment.iter().position(|line| line.starts_with(label));
            let start = start.unwrap_or_else(|| panic!("{name}: the header has no {label}"));
            let is_label = |line: &str| {
                ["KEYS ", "ARGV ", "OUTCOMES ", "COMPLEXITY "].iter().any(|l| line.starts_with(l))
            };
            let more = comment[start + 1..].iter().take_while(|line| !is_label(line));
            std::iter::once(comment[start][label.len()..].trim()).chain(more.copied()).collect()
        };
        field("COMPLEXITY ");
        let words = |line: &str| -> Vec<String> { line.split_whitespace().map(str::to_owned).collect() };
        let argv = field("ARGV ");
        let first = argv[0].split([';', ':']).next().unwrap_or_default();
        let arguments: Vec<String> =
            words(first).into_iter().filter(|word| word != "…" && word != "none").collect();
        let outcomes = field("OUTCOMES ")
            .into_iter()
            .map(|line| line.split([' ', ':']).next().unwrap_or_default().to_owned())
            .filter(|word| {
                !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_')
            })
            .collect();
        Self {
            summary: summary.to_owned(),
            read_only: comment.iter().any(|line| line.contains("Read-only")),
            keys: words(&field("KEYS ").join(" ")),
            open_ended: argv.iter().any(|line| line.contains('…')),
            arguments,
            outcomes,
        }
    }

    /// The first lines of code must name each key and argument as a local, in the header's order.
    fn check_locals(&self, name: &str, text: &str) {
        for (table, declared) in [("KEYS", &self.keys), ("ARGV", &self.arguments)] {
            let mut named = Vec::new();
            for line in
                text.lines().filter(|line| line.starts_with("local ") && line.contains(&format!("{table}[")))
            {
                let (names, values) = line["local ".len()..].split_once(" = ").expect("is an assignment");
                let values: Vec<&str> = values.split(", ").collect();
                let names: Vec<&str> = names.split(", ").collect();
                assert_eq!(names.len(), values.len(), "{name}: {line}");
                for (local, value) in names.into_iter().zip(values) {
                    let expected = format!("{table}[{}]", named.len() + 1);
                    let plain = value.trim_start_matches("tonumber(").trim_end_matches(')');
                    assert_eq!(plain, expected, "{name}: {line}");
                    named.push(local.trim_end_matches("_key").to_owned());
                }
            }
            let open: Vec<&String> = declared.iter().take(named.len()).collect();
            assert!(
                open == named.iter().collect::<Vec<_>>()
                    && (self.open_ended || named.len() == declared.len()),
                "{name}: the header declares {table} {declared:?}, the first lines name {named:?}"
            );
        }
    }
}

/// A command's key must be a name: a key built in Lua would be one that the caller did not declare. INFO has none.
fn check_keys_are_passed(path: &Path, text: &str) {
    for (number, line) in text.lines().enumerate() {
        for call in line.split("redis.call(").skip(1) {
            let mut arguments = call.splitn(3, ", ");
            let (command, key) = (arguments.next(), arguments.next());
            if command == Some("'INFO'") {
                continue;
            }
            let key = key.unwrap_or("").split([',', ')']).next().unwrap_or("");
            let is_name = key.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_' || byte == b'.');
            assert!(is_name, "{}:{}: the key {key:?} is not a name", path.display(), number + 1);
        }
    }
}

fn camel(snake: &str) -> String {
    snake.split('_').map(|word| word[..1].to_uppercase() + &word[1..]).collect()
}
