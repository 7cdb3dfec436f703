//! The Lua steps, as the build read them, and the one way to run them.

use redis::{Cmd, RedisWrite, ToRedisArgs};

use crate::keys::{Key, KeyName, Keys};
use crate::reply::Reply;
use crate::{Store, StoreError};

/// One atomic step: a file of `lua/`.
#[derive(Debug)]
pub struct Step {
    /// The file's name.
    pub name: &'static str,
    /// Its code, includes expanded.
    pub source: &'static str,
    /// The code's SHA-1, as Redis names it.
    pub sha1: &'static str,
    /// The keys it is given, in order.
    pub keys: &'static [KeyName],
    /// How many arguments its header names.
    pub arguments: usize,
    /// Whether more may follow.
    pub open_ended: bool,
    /// Whether replicas can serve it.
    pub read_only: bool,
    /// The first words of its answers.
    pub outcomes: &'static [&'static str],
}

include!(concat!(env!("OUT_DIR"), "/steps.rs"));

/// A key or an argument has about so many bytes: room for them is made at once.
const USUAL_BYTES: usize = 48;

/// A step about to run.
pub(crate) struct Call {
    step: &'static Step,
    command: Cmd,
    given: usize,
}

impl Call {
    pub(crate) fn new(step: &'static Step, keys: Keys<'_>) -> Self {
        let arguments = 3 + step.keys.len() + step.arguments;
        let mut command = Cmd::with_capacity(arguments, arguments * USUAL_BYTES);
        command
            .arg(if step.read_only { "EVALSHA_RO" } else { "EVALSHA" })
            .arg(step.sha1)
            .arg(step.keys.len());
        for name in step.keys {
            command.write_arg_fmt(Key(&keys, *name));
        }
        Self { step, command, given: 0 }
    }

    pub(crate) fn arg(mut self, argument: impl ToRedisArgs) -> Self {
        self.given += argument.num_of_args();
        self.command.arg(argument);
        self
    }

    /// The same command with a script itself.
    fn with_source(&self, source: &str) -> Cmd {
        let mut command = redis::cmd(if self.step.read_only { "EVAL_RO" } else { "EVAL" });
        for (at, argument) in self.command.args_iter().enumerate().skip(1) {
            match argument {
                redis::Arg::Simple(_) if at == 1 => command.arg(source),
                redis::Arg::Simple(bytes) => command.arg(bytes),
                _ => &mut command,
            };
        }
        command
    }
}

impl Store {
    /// Run a step: one round trip, and one more on a node that does not have the script yet, or where a replica's
    /// answer cannot be given.
    pub(crate) async fn run(&self, call: Call) -> Result<Reply, StoreError> {
        let step = call.step;
        debug_assert!(
            call.given == step.arguments || (step.open_ended && call.given < step.arguments + 100_000),
            "{}: {} arguments",
            step.name,
            call.given
        );
        let bench = self.0.bench.as_deref();
        let with_source = || call.with_source(step.source);
        let value = if let Some(changed) = bench.and_then(|bench| bench.source(step)) {
            self.query(step.name, &call.with_source(changed)).await?
        } else if let Some(value) = self.replied_nearby(step, &call.command, with_source).await {
            value
        } else {
            self.query_script(step.name, &call.command, with_source).await?
        };
        let reply = Reply::new(step.name, value)?;
        if let Some(bench) = bench {
            bench.met(step, reply.word());
        }
        debug_assert!(
            step.outcomes.contains(&reply.word()),
            "{}: undeclared outcome {}",
            step.name,
            reply.word()
        );
        Ok(reply)
    }
}
