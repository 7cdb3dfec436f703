//! Runs a command with the shared servers already started and named in its environment, so that many test
//! processes use the same ones: `with-servers cargo nextest run`. The servers end with it.

use std::process::{Command, ExitCode};

use support::{Postgres, Redis, Sqs, Topology};

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    let Some(program) = arguments.next() else {
        eprintln!("usage: with-servers COMMAND [ARGUMENT…]");
        return ExitCode::from(2);
    };
    let mut command = Command::new(program);
    command.args(arguments);
    let redis = Redis::shared(Topology::chosen());
    command.env("JARI_TEST_REDIS_URL", redis.url());
    command.envs(redis.read_url().map(|url| ("JARI_TEST_REDIS_READ_URL", url)));
    command.env("JARI_TEST_POSTGRES_URL", Postgres::shared().url());
    command.env("JARI_TEST_SQS_URL", Sqs::shared().endpoint());
    match command.status() {
        Ok(status) => ExitCode::from(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1)),
        Err(error) => {
            eprintln!("with-servers: {}: {error}", command.get_program().display());
            ExitCode::from(127)
        }
    }
}
