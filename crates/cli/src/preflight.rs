//! Whether a deployment is ready for its opening: every function answers behind its alias, which also wakes those that
//! nobody has called for weeks; keys are published; quotas are what the sale asks for.

mod account;
mod functions;

use std::fmt;

use anyhow::bail;
use aws_config::BehaviorVersion;
use serde::Serialize;

use crate::Ending;
use crate::arguments::PreflightArguments;
use crate::output::Output;

/// How a check came out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Verdict {
    /// Ready.
    Ready,
    /// It could not be found out.
    Unknown,
    /// Not ready.
    Missing,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Ready => "ready",
            Self::Unknown => "unknown",
            Self::Missing => "MISSING",
        })
    }
}

/// One line of the report.
#[derive(Debug, PartialEq, Eq, Serialize)]
struct Check {
    what: String,
    verdict: Verdict,
    /// What was seen, and what to do about it.
    found: String,
}

impl Check {
    fn new(what: impl Into<String>, verdict: Verdict, found: impl Into<String>) -> Self {
        Self { what: what.into(), verdict, found: found.into() }
    }

    fn ready(what: impl Into<String>, found: impl Into<String>) -> Self {
        Self::new(what, Verdict::Ready, found)
    }

    fn missing(what: impl Into<String>, found: impl Into<String>) -> Self {
        Self::new(what, Verdict::Missing, found)
    }
}

/// Ask all there is to ask, and report it. Findings where something is missing.
pub(crate) async fn run(arguments: PreflightArguments, output: &mut Output) -> anyhow::Result<Ending> {
    let config = aws_config::load_defaults(BehaviorVersion::latest()).await;
    if config.region().is_none() {
        bail!("no region is named: set AWS_REGION");
    }
    let lambda = aws_sdk_lambda::Client::new(&config);
    let mut checks = functions::check(&lambda, &arguments.stack).await?;
    checks.push(account::concurrency(&lambda, arguments.instances).await);
    let quotas = aws_sdk_servicequotas::Client::new(&config);
    checks.extend(
        account::api_quotas(&quotas, arguments.requests_per_second, arguments.connects_per_second).await,
    );
    tell(&checks, arguments.json, output)?;
    let is_ready = checks.iter().all(|check| check.verdict != Verdict::Missing);
    Ok(if is_ready { Ending::Fine } else { Ending::Found })
}

fn tell(checks: &[Check], is_json: bool, output: &mut Output) -> anyhow::Result<()> {
    if is_json {
        return output.json(&checks);
    }
    for Check { what, verdict, found } in checks {
        output.line(format!("{verdict:<8} {what}: {found}"))?;
    }
    Ok(())
}
