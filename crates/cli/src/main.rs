//! `jari`: serve a system, operate its sales, check and export what they sold.
//!
//! Exit codes: 0 all is well; 1 there are findings, or the system refused; 2 the command makes no sense, or what it
//! needs cannot be reached.

mod arguments;
mod audit;
mod check;
mod crowd;
mod dlq;
mod draw;
mod event;
mod export;
mod function;
mod import;
mod keygen;
mod opening;
mod output;
mod plan;
mod preflight;
mod pump;
mod rebuild;
mod system;
mod watch;

use std::io;
use std::process::ExitCode;

use anyhow::Context;
use clap::Parser;

use arguments::{Arguments, Command};
use output::Output;

/// How a command ended that could do its work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ending {
    /// All is well.
    Fine,
    /// There are findings or mistakes, or the system refused.
    Found,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    // Before there is a second thread: only then is the offset safe to ask for.
    let mut output = Output::standard();
    let ending = run(arguments, &mut output).and_then(|ending| {
        output.flush()?;
        Ok(ending)
    });
    match ending {
        Ok(Ending::Fine) => ExitCode::SUCCESS,
        Ok(Ending::Found) => ExitCode::from(1),
        // Whoever reads has had enough.
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            output::complain(in_a_line(&error));
            ExitCode::from(2)
        }
    }
}

fn run(arguments: Arguments, output: &mut Output) -> anyhow::Result<Ending> {
    let Arguments { system, command } = arguments;
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    if let Command::Serve(_) = command {
        runtime.worker_threads(cores_beside_redis());
    }
    let runtime = runtime.enable_all().build().context("cannot start the runtime")?;
    runtime.block_on(async {
        match command {
            Command::Serve(serve) => system::serve(system, serve).await,
            Command::Event { command } => event::run(&system, command, output).await,
            Command::Audit(arguments) => audit::run(&system, arguments, output).await,
            Command::Rebuild(arguments) => rebuild::run(&system, arguments, output).await,
            Command::Watch(arguments) => watch::run(&system, arguments, output).await,
            Command::Crowd(arguments) => crowd::run(&system, arguments, output).await,
            Command::Dlq { command } => dlq::run(&system, command, output).await,
            Command::Export(arguments) => export::run(&system, arguments, output).await,
            Command::Preflight(arguments) => preflight::run(arguments, output).await,
            Command::Pump(arguments) => pump::run(arguments, output).await,
            Command::Plan(arguments) => plan::run(&arguments, output),
            Command::Keygen(arguments) => keygen::run(&arguments, output),
        }
    })
}

/// Redis works on one core; a server's threads on that one too would only take turns with it.
fn cores_beside_redis() -> usize {
    std::thread::available_parallelism().map_or(1, |cores| cores.get().saturating_sub(1).max(1))
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        cause.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
    })
}

/// An error with its causes. Some errors tell their cause themselves; it is not told twice.
fn in_a_line(error: &anyhow::Error) -> String {
    let mut line = String::new();
    for cause in error.chain() {
        let text = cause.to_string();
        if line.is_empty() {
            line = text;
        } else if !line.ends_with(&text) {
            line.extend([": ", &text]);
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use anyhow::anyhow;

    use super::*;

    #[test]
    fn a_cause_is_told_once() {
        let error = anyhow!("c").context("b: c").context("a");
        assert_eq!(in_a_line(&error), "a: b: c");
    }

    #[test]
    fn a_broken_pipe_is_known_under_its_context() {
        let broken = io::Error::from(io::ErrorKind::BrokenPipe);
        assert!(is_broken_pipe(&anyhow::Error::from(broken).context("cannot write")));
        assert!(!is_broken_pipe(&anyhow::Error::from(io::Error::from(io::ErrorKind::NotFound))));
    }
}
