//! What a function's package weighs: its binary as it is deployed, built from its own folder with the features that it
//! needs alone, and deflated as in a ZIP archive.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, ensure};

use crate::Bench;
use crate::figure::{Figure, Target};

pub(crate) const FIGURES: &[&str] = &["size_without_sqs", "size_with_sqs"];

const WITHOUT_SQS: &[&str] =
    &["authorizer", "hold-seat", "join", "keys", "leave", "persist", "poll", "seats", "socket"];
const WITH_SQS: &[&str] = &["admit", "book", "pay", "relay"];

pub(crate) fn run(_: &Bench) -> anyhow::Result<Vec<Figure>> {
    let largest = |name, target, functions| {
        let (function, megabytes) = tokio::task::block_in_place(|| largest(functions))?;
        anyhow::Ok(
            Figure::new(name, "MB", Target::AtMost(target), megabytes)
                .noting(format!("{function}, the largest")),
        )
    };
    Ok(vec![largest(FIGURES[0], 2.2, WITHOUT_SQS)?, largest(FIGURES[1], 4.5, WITH_SQS)?])
}

fn largest<'a>(functions: &[&'a str]) -> anyhow::Result<(&'a str, f64)> {
    let mut largest = ("", 0.0);
    for function in functions {
        let megabytes = deflated(&built(function)?)? as f64 / 1e6;
        if megabytes > largest.1 {
            largest = (*function, megabytes);
        }
    }
    Ok(largest)
}

/// Apart from all else that is built, which shares its features.
fn built(function: &str) -> anyhow::Result<PathBuf> {
    let target = std::env::current_exe()?.ancestors().nth(2).context("a target folder")?.join("packages");
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.current_dir(workspace.join("functions").join(function)).env("CARGO_TARGET_DIR", &target);
    let status = cargo.args(["build", "--release"]).status().context("cargo build")?;
    ensure!(status.success(), "{function} cannot be built");
    Ok(target.join("release").join(function))
}

fn deflated(binary: &PathBuf) -> anyhow::Result<usize> {
    let file = std::fs::File::open(binary).with_context(|| binary.display().to_string())?;
    let output =
        Command::new("gzip").arg("-9c").stdin(file).stderr(Stdio::inherit()).output().context("gzip")?;
    ensure!(output.status.success(), "gzip fails");
    Ok(output.stdout.len())
}
