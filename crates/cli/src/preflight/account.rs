//! What the account may do at once.

use aws_sdk_lambda::error::DisplayErrorContext;

use super::{Check, Verdict};

/// Pages of quotas at most, of 100 each.
const MAX_PAGES: u32 = 10;
const PAGE: i32 = 100;
/// Lambda starts so many instances of one function in ten seconds; no quota, and not to be raised.
const GROWTH_IN_TEN_SECONDS: u32 = 1_000;

/// Instances at once, for all functions together.
pub(super) async fn concurrency(lambda: &aws_sdk_lambda::Client, needed: u32) -> Check {
    let what = "Lambda, instances at once";
    let settings = match lambda.get_account_settings().send().await {
        Ok(settings) => settings,
        Err(error) => return Check::new(what, Verdict::Unknown, DisplayErrorContext(error).to_string()),
    };
    let Some(limit) = settings.account_limit else {
        return Check::new(what, Verdict::Unknown, "the account's limit was not told");
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
    quotas: &aws_sdk_servicequotas::Client,
    requests_per_second: u32,
    connects_per_second: u32,
) -> Vec<Check> {
    let requests = ("API Gateway, requests a second", "Throttle rate", requests_per_second);
    let connects =
        ("API Gateway, connects of sockets a second", "WebSocket new connections", connects_per_second);
    let known = named_quotas(quotas).await;
    let check = |(what, name, needed): (&str, &str, u32)| match &known {
        Err(reason) => Check::new(what, Verdict::Unknown, reason.clone()),
        Ok(known) => against(what, name, known, needed),
    };
    vec![check(requests), check(connects)]
}

/// The account's quotas, and where it has none of its own, everybody's.
async fn named_quotas(quotas: &aws_sdk_servicequotas::Client) -> Result<Vec<(String, f64)>, String> {
    let mut known = Vec::new();
    let mut next = None;
    for _ in 0..MAX_PAGES {
        let page = quotas.list_service_quotas().service_code("apigateway").max_results(PAGE);
        let page = page.set_next_token(next.take()).send().await;
        let page = page.map_err(|error| DisplayErrorContext(error).to_string())?;
        for quota in page.quotas() {
            if let (Some(name), Some(value)) = (quota.quota_name(), quota.value()) {
                known.push((name.to_owned(), value));
            }
        }
        next = page.next_token;
        if next.is_none() {
            break;
        }
    }
    Ok(known)
}

fn against(what: &str, name: &str, known: &[(String, f64)], needed: u32) -> Check {
    let is_it = |quota: &str| quota.to_lowercase().starts_with(&name.to_lowercase());
    match known.iter().find(|(quota, _)| is_it(quota)) {
        None => Check::new(what, Verdict::Unknown, format!("no quota is called {name}")),
        Some((_, value)) if *value >= f64::from(needed) => {
            Check::ready(what, format!("{value} for {needed}"))
        }
        Some((_, value)) => {
            Check::missing(what, format!("{value}, and {needed} are needed: ask for more days before"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quota_is_held_against_what_is_needed() {
        let known = [("Throttle rate".to_owned(), 10_000.0), ("Throttle burst rate".to_owned(), 5_000.0)];
        let verdict = |name, needed| against("requests", name, &known, needed).verdict;
        assert_eq!(verdict("Throttle rate", 10_000), Verdict::Ready);
        assert_eq!(verdict("Throttle rate", 10_001), Verdict::Missing);
        assert_eq!(verdict("WebSocket new connections", 1), Verdict::Unknown);
    }
}
