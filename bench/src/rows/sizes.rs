//! What a function's package weighs: its binary, deflated as in a ZIP archive.

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
    let folder = std::env::current_exe()?.parent().context("a target folder")?.to_owned();
    ensure!(folder.ends_with("release"), "only what is built by the release profile is deployed");
    let largest = |name, target, functions| {
        let (function, megabytes) = tokio::task::block_in_place(|| largest(&folder, functions))?;
        anyhow::Ok(
            Figure::new(name, "MB", Target::AtMost(target), megabytes)
                .noting(format!("{function}, the largest")),
        )
    };
    Ok(vec![largest(FIGURES[0], 2.2, WITHOUT_SQS)?, largest(FIGURES[1], 4.5, WITH_SQS)?])
}

fn largest<'a>(folder: &Path, functions: &[&'a str]) -> anyhow::Result<(&'a str, f64)> {
    let mut largest = ("", 0.0);
    for function in functions {
        let megabytes = deflated(&folder.join(function))? as f64 / 1e6;
        if megabytes > largest.1 {
            largest = (*function, megabytes);
        }
    }
    Ok(largest)
}

fn deflated(binary: &PathBuf) -> anyhow::Result<usize> {
    let file = std::fs::File::open(binary).with_context(|| binary.display().to_string())?;
    let output =
        Command::new("gzip").arg("-9c").stdin(file).stderr(Stdio::inherit()).output().context("gzip")?;
    ensure!(output.status.success(), "gzip fails");
    Ok(output.stdout.len())
}
