//! What the account may do at once.

use aws_sdk_servicequotas::Client;
use aws_sdk_servicequotas::error::ProvideErrorMetadata;

use super::{Check, reason};

/// API Gateway's quotas are known by their codes: names have changed.
const SERVICE: &str = "apigateway";
/// Requests a second of all its APIs together: "Throttle rate".
const REQUESTS: &str = "L-8A5B8E43";
/// "WebSocket new connections rate".
const CONNECTS: &str = "L-9ED1E49A";
/// The code of the answer where an account has no quota of its own.
const NO_OWN: &str = "NoSuchResourceException";
/// Lambda starts so many instances of one function in ten seconds; no quota, and not to be raised.
const GROWTH_IN_TEN_SECONDS: u32 = 1_000;

/// Instances at once, for all functions together.
pub(super) async fn concurrency(lambda: &aws_sdk_lambda::Client, needed: u32) -> Check {
    let what = "Lambda, instances at once";
    let settings = match lambda.get_account_settings().send().await {
        Ok(settings) => settings,
        Err(error) => return Check::unknown(what, reason(error)),
    };
    let Some(limit) = settings.account_limit else {
        return Check::unknown(what, "the account's limit was not told");
    };
    let free = limit.unreserved_concurrent_executions.unwrap_or(limit.concurrent_executions);
    let growth = format!("each function grows by {GROWTH_IN_TEN_SECONDS} in ten seconds");
    if i64::from(free) >= i64::from(needed) {
        Check::ready(what, format!("{free} for {needed}; {growth}"))
    } else {
        Check::missing(what, format!("{free}, and {needed} are needed: ask for more days before; {growth}"))
    }
}

/// What API Gateway lets through.
pub(super) async fn api_quotas(
    quotas: &Client,
    requests_per_second: u32,
    connects_per_second: u32,
) -> [Check; 2] {
    let check = async |what, code, needed| match quota(quotas, code).await {
        Ok(value) => against(what, value, needed),
        Err(reason) => Check::unknown(what, reason),
    };
    [
        check("API Gateway, requests a second", REQUESTS, requests_per_second).await,
        check("API Gateway, connects of sockets a second", CONNECTS, connects_per_second).await,
    ]
}

/// The account's own quota or, where it never had one, everybody's.
async fn quota(quotas: &Client, code: &str) -> Result<Option<f64>, String> {
    match quotas.get_service_quota().service_code(SERVICE).quota_code(code).send().await {
        Ok(own) => return Ok(own.quota.and_then(|quota| quota.value)),
        Err(error) if error.code() == Some(NO_OWN) => {}
        Err(error) => return Err(reason(error)),
    }
    let everybodys =
        quotas.get_aws_default_service_quota().service_code(SERVICE).quota_code(code).send().await;
    everybodys.map(|everybodys| everybodys.quota.and_then(|quota| quota.value)).map_err(reason)
}

fn against(what: &str, quota: Option<f64>, needed: u32) -> Check {
    match quota {
        None => Check::unknown(what, "Service Quotas tells no value"),
        Some(value) if value >= f64::from(needed) => Check::ready(what, format!("{value} for {needed}")),
        Some(value) => {
            Check::missing(what, format!("{value}, and {needed} are needed: ask for more days before"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Verdict;
    use super::*;

    #[test]
    fn a_quota_is_held_against_what_is_needed() {
        let verdict = |quota, needed| against("requests", quota, needed).verdict;
        assert_eq!(verdict(Some(10_000.0), 10_000), Verdict::Ready);
        assert_eq!(verdict(Some(10_000.0), 10_001), Verdict::Missing);
        assert_eq!(verdict(None, 1), Verdict::Unknown);
    }
}
