//! What a plan is made from: the sale, and assumptions that can all be changed.

use clap::Args;
use serde::Serialize;

use crate::crowd::{Curve, Share, Span};

/// The sale, and what is assumed of people and machines.
#[derive(Debug, Clone, Args)]
#[command(
    after_help = "Example: jari plan --users 2000000 --seats 300000 --tps 100 --ratio 0.7 --arrive 10m"
)]
pub(crate) struct PlanArguments {
    /// People who come
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000_000))]
    pub(crate) users: u32,
    /// Places on sale
    #[arg(long, value_name = "N", default_value_t = 20_000)]
    pub(crate) seats: u32,
    /// Bookings a second that the database bears
    #[arg(long, value_name = "N", default_value_t = 100.0, value_parser = positive)]
    pub(crate) tps: f64,
    /// Which part of that people are let in at
    #[arg(long, value_name = "PART", default_value_t = 0.7, value_parser = part)]
    pub(crate) ratio: f64,
    /// Within how long people come
    #[arg(long, value_name = "SPAN", default_value = "1m")]
    pub(crate) arrive: Span,
    /// How they are spread over that time
    #[arg(long, value_enum, default_value_t = Curve::Rush)]
    pub(crate) curve: Curve,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) assumed: Assumed,
}

/// What is assumed. Everything is printed with the plan.
#[derive(Debug, Clone, Args, Serialize)]
#[serde(rename_all = "camelCase")]
#[command(next_help_heading = "Assumptions")]
pub(crate) struct Assumed {
    /// Places a booking has, on average
    #[arg(long, value_name = "N", default_value_t = 2.0, value_parser = positive)]
    pub(crate) places: f64,
    /// How many of those let in book
    #[arg(long, value_name = "SHARE", default_value = "85%")]
    pub(crate) buyers: Share,
    /// How long somebody is inside, in seconds on average
    #[arg(long, value_name = "SECONDS", default_value_t = 60.0, value_parser = positive)]
    pub(crate) inside: f64,
    /// How long people stay once all is sold, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 60.0, value_parser = positive)]
    pub(crate) linger: f64,
    /// Calls inside but polls: search, maps, holds, booking, reading it
    #[arg(long, value_name = "N", default_value_t = 5.5, value_parser = positive)]
    pub(crate) actions: f64,
    /// Polls that need Redis: the rest is answered from the key and the view
    #[arg(long, value_name = "SHARE", default_value = "15%")]
    pub(crate) exact: Share,
    /// Milliseconds that a function is billed a request
    #[arg(long, value_name = "MS", default_value_t = 4.0, value_parser = positive)]
    pub(crate) billed_ms: f64,
    /// Memory of a function, in MB
    #[arg(long, value_name = "MB", default_value_t = 512.0, value_parser = positive)]
    pub(crate) memory_mb: f64,
    /// Requests a second that Lambda lets one environment take
    #[arg(long, value_name = "N", default_value_t = 10.0, value_parser = positive)]
    pub(crate) per_environment: f64,
    /// Environments that Lambda adds to a function in 10 s
    #[arg(long, value_name = "N", default_value_t = 1_000.0, value_parser = positive)]
    pub(crate) burst: f64,
    /// Environments that are warm before the sale, of each function
    #[arg(long, value_name = "N", default_value_t = 0.0, value_parser = nothing_or_more)]
    pub(crate) warm: f64,
    /// The account's quota of environments
    #[arg(long, value_name = "N", default_value_t = 1_000.0, value_parser = positive)]
    pub(crate) environments_quota: f64,
    /// The account's quota of API Gateway requests a second
    #[arg(long, value_name = "N", default_value_t = 10_000.0, value_parser = positive)]
    pub(crate) requests_quota: f64,
    /// The account's quota of new WebSocket connections a second
    #[arg(long, value_name = "N", default_value_t = 500.0, value_parser = positive)]
    pub(crate) sockets_quota: f64,
    /// Redis' time for a call, in µs: the system's calls and the step
    #[arg(long, value_name = "US", default_value_t = 20.0, value_parser = positive)]
    pub(crate) redis_us: f64,
    /// Bytes in Redis for somebody who waits; about twice as many with accounts
    #[arg(long, value_name = "BYTES", default_value_t = 145.0, value_parser = positive)]
    pub(crate) waiter_bytes: f64,
    /// Bytes in Redis for somebody who was let in: session, reservation, done key
    #[arg(long, value_name = "BYTES", default_value_t = 1_500.0, value_parser = positive)]
    pub(crate) visitor_bytes: f64,
    /// Bytes of a fact in the journal
    #[arg(long, value_name = "BYTES", default_value_t = 200.0, value_parser = positive)]
    pub(crate) fact_bytes: f64,
    /// Bytes of an answer, headers included
    #[arg(long, value_name = "BYTES", default_value_t = 1_100.0, value_parser = positive)]
    pub(crate) answer_bytes: f64,
}

fn positive(text: &str) -> Result<f64, &'static str> {
    let number = text.parse::<f64>().ok().filter(|number| *number > 0.0 && *number <= 1e12);
    number.ok_or("must be a number above 0")
}

fn nothing_or_more(text: &str) -> Result<f64, &'static str> {
    if text.parse() == Ok(0.0) { Ok(0.0) } else { positive(text) }
}

fn part(text: &str) -> Result<f64, &'static str> {
    positive(text).ok().filter(|part| *part <= 1.0).ok_or("must be above 0 and at most 1")
}

#[cfg(test)]
pub(crate) mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Typed {
        #[command(flatten)]
        plan: PlanArguments,
    }

    /// What is typed behind `jari plan`.
    pub(crate) fn typed(line: &str) -> PlanArguments {
        Typed::parse_from(std::iter::once("plan").chain(line.split_whitespace())).plan
    }
}
