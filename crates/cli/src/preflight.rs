//! Whether a deployment is ready for its opening: every function answers behind its alias, which also wakes those that
//! nobody has called for weeks; keys are published; schedules tick and relay; PostgreSQL answers; instances and quotas
//! are what the sale asks for.

mod account;
mod functions;
mod sales;

use std::error::Error;
use std::fmt;

use anyhow::{anyhow, bail};
use aws_sdk_lambda::config::http::HttpResponse;
use aws_sdk_lambda::error::{ProvideErrorMetadata, SdkError};
use serde::Serialize;

use self::functions::Functions;
use crate::arguments::PreflightArguments;
use crate::output::{Output, counted};
use crate::{Ending, in_a_line};

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

    fn unknown(what: impl Into<String>, found: impl Into<String>) -> Self {
        Self::new(what, Verdict::Unknown, found)
    }

    /// What AWS says no to is missing. What it does not let this caller ask, or did not answer, is unknown.
    fn failed<E>(what: impl Into<String>, error: SdkError<E>) -> Self
    where
        E: ProvideErrorMetadata + Error + Send + Sync + 'static,
    {
        let is_answered = matches!(&error, SdkError::ServiceError(answer) if !is_forbidden(answer.raw()));
        let verdict = if is_answered { Verdict::Missing } else { Verdict::Unknown };
        Self::new(what, verdict, reason(error))
    }
}

fn is_forbidden(answer: &HttpResponse) -> bool {
    matches!(answer.status().as_u16(), 401 | 403)
}

/// What AWS said or, where it said nothing, what was in the way.
fn reason<E>(error: SdkError<E>) -> String
where
    E: ProvideErrorMetadata + Error + Send + Sync + 'static,
{
    match (error.code(), error.message()) {
        (Some(code), Some(message)) => format!("{code}: {message}"),
        (Some(code), None) => code.to_owned(),
        _ => in_a_line(&anyhow!(error)),
    }
}

/// Ask all there is to ask, and report it. Findings where something is missing; an error where nothing is, and
/// something could not be found out.
pub(crate) async fn run(arguments: PreflightArguments, output: &mut Output) -> anyhow::Result<Ending> {
    let config = outbox::sdk().load().await;
    if config.region().is_none() {
        bail!("no region is named: set AWS_REGION");
    }
    let lambda = aws_sdk_lambda::Client::new(&config);
    let mut checks = Vec::new();
    match Functions::of(&lambda, &arguments.stack).await {
        Ok(functions) => {
            checks.extend(functions.answer().await);
            checks.extend(sales::check(&functions).await);
            checks.extend(functions.are_warm(arguments.warm_instances).await);
        }
        Err(check) => checks.push(check),
    }
    checks.push(account::concurrency(&lambda, arguments.instances).await);
    let quotas = aws_sdk_servicequotas::Client::new(&config);
    checks.extend(
        account::api_quotas(&quotas, arguments.requests_per_second, arguments.connects_per_second).await,
    );
    tell(&checks, arguments.json, output)?;
    let count = |verdict| checks.iter().filter(|check| check.verdict == verdict).count() as u64;
    if count(Verdict::Missing) > 0 {
        return Ok(Ending::Found);
    }
    match count(Verdict::Unknown) {
        0 => Ok(Ending::Fine),
        unknown => Err(anyhow!("{} could not be made", counted(unknown, "check"))),
    }
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
