//! Inputs → figures: no clock, no network, nothing read.

use serde::Serialize;

use super::arguments::{Assumed, PlanArguments};
use super::line::{Sale, Wait};
use super::load::{Follow, Load, Sums, polling, progress, push};
use super::prices;
use crate::crowd::Curve;

/// What a sale asks of the system.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Plan {
    /// People let in a second.
    pub(crate) per_second: f64,
    /// People who can be let in before all is sold.
    pub(crate) let_in: f64,
    pub(crate) last_in_seconds: f64,
    pub(crate) waits: Vec<Wait>,
    pub(crate) wait_seconds: Quantiles,
    pub(crate) peak_joins_per_second: f64,
    pub(crate) peak_waiting: f64,
    pub(crate) peak_inside: f64,
    pub(crate) peak_bookings_per_second: f64,
    /// The three ways to follow a place, side by side.
    pub(crate) ways: Vec<Way>,
    pub(crate) redis: Redis,
    pub(crate) facts_per_second: f64,
    pub(crate) queue_messages_per_second: f64,
    pub(crate) rows_per_second: f64,
    pub(crate) month: Vec<Cost>,
    pub(crate) month_usd: f64,
    pub(crate) warnings: Vec<String>,
}

#[derive(Debug, Clone, Copy, Serialize)]
pub(crate) struct Quantiles {
    pub(crate) p50: f64,
    pub(crate) p90: f64,
    pub(crate) p99: f64,
    pub(crate) max: f64,
}

/// A way to follow a place, with what it costs.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Way {
    pub(crate) name: &'static str,
    /// All polls of the sale, inside included.
    pub(crate) polls: f64,
    pub(crate) peak_polls_per_second: f64,
    /// Calls of API Gateway, of all kinds.
    pub(crate) peak_requests_per_second: f64,
    /// Readings of the line's progress at the edge.
    pub(crate) peak_edge_per_second: f64,
    pub(crate) peak_sockets: f64,
    pub(crate) peak_messages_per_second: f64,
    /// Environments of all functions at once, and of the busiest one.
    pub(crate) environments: f64,
    pub(crate) busiest_environments: f64,
    /// Environments that must be warm so that Lambda's growth keeps up.
    pub(crate) must_be_warm: f64,
    pub(crate) redis_cpu: f64,
    pub(crate) sale: Vec<Cost>,
    pub(crate) sale_usd: f64,
}

#[derive(Debug, Clone, Serialize)]
pub(crate) struct Redis {
    #[serde(rename = "memoryMb")]
    pub(crate) memory_mb: f64,
    pub(crate) node: &'static str,
}

/// A line of a bill, in US dollars.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Cost {
    pub(crate) what: &'static str,
    pub(crate) usd: f64,
}

/// Facts of somebody who passes through: joined, called, begun, held, booked.
const FACTS_OF_A_VISIT: f64 = 4.0;
/// More of Redis' one core, and latency grows.
const REDIS_CPU_BEARABLE: f64 = 0.6;
const BYTES_OF_A_GIB: f64 = 1_073_741_824.0;
/// How long runs of admit and relay take where no sale is open: one ends at once, the other goes on for its minute.
const IDLE_RUNS_SECONDS: f64 = 0.05 + 70.0;
/// Facts wait so long in the journal at worst while all is well.
const JOURNAL_SECONDS: f64 = 30.0;

pub(crate) fn plan(arguments: &PlanArguments) -> Plan {
    let assumed = &arguments.assumed;
    let sale = sale(arguments);
    let (mut joins, mut waiting, mut inside) = (0.0_f64, 0.0_f64, 0.0_f64);
    for moment in sale.moments() {
        joins = joins.max(moment.joins_per_second);
        waiting = waiting.max(moment.waiting);
        inside = inside.max(moment.inside);
    }
    let let_in = sale.users.min(sale.can_enter);
    let bookings = sale.per_second * assumed.buyers.0;
    let facts = joins + sale.per_second * FACTS_OF_A_VISIT;
    let ways: [(&str, Follow); 3] = [("polling", polling), ("progress", progress), ("push", push)];
    let ways: Vec<Way> = ways.map(|(name, follow)| way(name, follow, &sale, assumed)).into();
    let redis = redis(&sale, let_in, facts, arguments);
    let month = month(&redis, assumed);
    let mut plan = Plan {
        per_second: sale.per_second,
        let_in,
        last_in_seconds: sale.ends_seconds(),
        waits: sale.waits(&[0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 1.0]),
        wait_seconds: Quantiles {
            p50: sale.wait_quantile(0.5),
            p90: sale.wait_quantile(0.9),
            p99: sale.wait_quantile(0.99),
            max: sale.wait_quantile(1.0),
        },
        peak_joins_per_second: joins,
        peak_waiting: waiting,
        peak_inside: inside,
        peak_bookings_per_second: bookings,
        ways,
        redis,
        facts_per_second: facts,
        // Each booking by itself and with the rest; the rest packed, at least a message a second and queue.
        queue_messages_per_second: bookings + 2.0 + facts * assumed.fact_bytes / 240_000.0,
        rows_per_second: facts + bookings,
        month_usd: month.iter().map(|cost| cost.usd).sum(),
        month,
        warnings: Vec::new(),
    };
    plan.warnings = warnings(&plan, arguments);
    plan
}

fn sale(arguments: &PlanArguments) -> Sale {
    let assumed = &arguments.assumed;
    let per_second = arguments.tps * arguments.ratio;
    Sale {
        users: f64::from(arguments.users),
        arrive_seconds: arguments.arrive.0.as_secs_f64(),
        come: match arguments.curve {
            Curve::Even => |part| part,
            Curve::Rush => |part| (1.0 - (-6.91 * part).exp()) / (1.0 - (-6.91_f64).exp()),
            Curve::Bell => |part| part * part * (3.0 - 2.0 * part),
        },
        per_second,
        can_enter: f64::from(arguments.seats) / assumed.places / assumed.buyers.0.max(1e-9),
        inside_seconds: assumed.inside,
        linger_seconds: assumed.linger,
    }
}

fn way(name: &'static str, follow: Follow, sale: &Sale, assumed: &Assumed) -> Way {
    let Sums { peak, sum, requests, calls, environments, busiest, must_be_warm, redis_cpu } =
        Sums::of(follow, sale, assumed);
    let costs = costs(&sum, calls, sale, assumed);
    Way {
        name,
        polls: sum.polls,
        peak_polls_per_second: peak.polls,
        peak_requests_per_second: requests,
        peak_edge_per_second: peak.edge,
        peak_sockets: peak.sockets,
        peak_messages_per_second: peak.messages,
        environments: environments.ceil(),
        busiest_environments: busiest.ceil(),
        must_be_warm: must_be_warm.ceil(),
        redis_cpu,
        sale_usd: costs.iter().map(|cost| cost.usd).sum(),
        sale: costs,
    }
}

/// What the sale itself costs, beside what is paid by the month.
fn costs(sum: &Load, calls: f64, sale: &Sale, assumed: &Assumed) -> Vec<Cost> {
    let million = |count: f64, price: f64| count / 1e6 * price;
    let memory_gb = assumed.memory_mb / 1_024.0;
    let runs = calls + sum.messages / 10.0;
    // admit and relay, two overlapping runs each.
    let ticking_seconds = sale.ends_seconds() * 4.0;
    let gb_seconds = (runs * assumed.billed_ms / 1_000.0 + ticking_seconds) * memory_gb;
    let facts = sale.users * FACTS_OF_A_VISIT;
    // Sent, received and deleted.
    let queue_calls =
        3.0 * (sale.users.min(sale.can_enter) + facts * assumed.fact_bytes / 240_000.0 + ticking_seconds);
    let bytes = (calls + sum.edge + sum.messages / 4.0) * assumed.answer_bytes;
    [
        ("API Gateway requests", million(calls, prices::HTTP_API_MILLION)),
        ("API Gateway messages", million(sum.messages, prices::SOCKET_MESSAGES_MILLION)),
        ("API Gateway minutes", million(sum.sockets / 60.0, prices::SOCKET_MINUTES_MILLION)),
        ("Lambda requests", million(runs, prices::LAMBDA_MILLION)),
        ("Lambda time", gb_seconds * prices::LAMBDA_GB_SECOND),
        ("CloudFront requests", million(calls + sum.edge, prices::CLOUDFRONT_MILLION)),
        ("transfer", bytes / 1e9 * prices::TRANSFER_GB),
        ("SQS", million(queue_calls, prices::SQS_MILLION)),
    ]
    .map(|(what, usd)| Cost { what, usd })
    .into()
}

fn redis(sale: &Sale, let_in: f64, facts: f64, arguments: &PlanArguments) -> Redis {
    let assumed = &arguments.assumed;
    let journal = facts * JOURNAL_SECONDS * assumed.fact_bytes;
    let waiting = sale.users * assumed.waiter_bytes;
    let bytes = waiting + let_in * assumed.visitor_bytes + journal + f64::from(arguments.seats) * 100.0;
    let fits =
        |node: &&prices::Node| node.memory_gib * BYTES_OF_A_GIB * (1.0 - prices::NODE_RESERVED) >= bytes;
    let node = prices::NODES.iter().find(fits).map_or("larger than any node", |node| node.name);
    Redis { memory_mb: bytes / 1e6, node }
}

/// What is paid where nothing is sold.
fn month(redis: &Redis, assumed: &Assumed) -> Vec<Cost> {
    let node = prices::NODES.iter().find(|node| node.name == redis.node).map_or(f64::NAN, |node| node.hour);
    let month = |hour: f64| hour * prices::HOURS_A_MONTH;
    let minutes = 60.0 * prices::HOURS_A_MONTH;
    let gb_seconds = minutes * IDLE_RUNS_SECONDS * assumed.memory_mb / 1_024.0;
    [
        ("Valkey, primary and replica", month(node * prices::NODES_OF_A_SHARD)),
        ("PostgreSQL, two zones", month(prices::POSTGRES_HOUR)),
        ("SQS endpoint, two zones", month(prices::ENDPOINT_HOUR * 2.0)),
        ("schedules", 2.0 * minutes / 1e6 * prices::LAMBDA_MILLION + gb_seconds * prices::LAMBDA_GB_SECOND),
    ]
    .map(|(what, usd)| Cost { what, usd })
    .into()
}

fn warnings(plan: &Plan, arguments: &PlanArguments) -> Vec<String> {
    let assumed = &arguments.assumed;
    let mut warnings = Vec::new();
    let round = |number: f64| crate::plan::table::whole(number);
    for way in &plan.ways {
        let name = way.name;
        let mut over = |what: &str, value: f64, quota: f64| {
            if value > quota {
                let (value, quota) = (round(value), round(quota));
                warnings.push(format!("{name}: {value} {what}, the quota is {quota}: raise it"));
            }
        };
        over("API requests/s", way.peak_requests_per_second, assumed.requests_quota);
        over("environments", way.environments, assumed.environments_quota);
        if way.must_be_warm > assumed.warm {
            warnings.push(format!(
                "{name}: Lambda grows too slowly: have {} environments warm",
                round(way.must_be_warm)
            ));
        }
        if way.redis_cpu > REDIS_CPU_BEARABLE {
            warnings.push(format!("{name}: Redis' core is busy {:.0} % of the time", way.redis_cpu * 100.0));
        }
    }
    if plan.per_second > assumed.sockets_quota {
        let per_second = round(plan.per_second);
        warnings.push(format!(
            "push: {per_second} new sockets a second, the quota is {}: raise it",
            round(assumed.sockets_quota)
        ));
    }
    if plan.redis.node == "larger than any node" {
        warnings.push("Redis: no node has that much memory".to_owned());
    }
    let unserved = f64::from(arguments.users) - plan.let_in;
    if unserved >= 1.0 {
        warnings.push(format!("{} people come for nothing: all is sold before their turn", round(unserved)));
    }
    warnings
}

#[cfg(test)]
mod tests {
    use super::super::arguments::tests::typed;
    use super::*;

    fn planned(line: &str) -> Plan {
        plan(&typed(line))
    }

    fn near(value: f64, expected: f64) -> bool {
        (value - expected).abs() <= expected.abs() * 0.02 + 0.01
    }

    #[test]
    fn the_edge_takes_what_stands_far_back_and_push_what_stands_near() {
        let plan = planned("--users 1000000 --seats 1000000 --arrive 1m");
        let [polling, progress, push] = plan.ways.try_into().unwrap_or_else(|_| panic!("three ways"));
        assert!(polling.peak_polls_per_second > 100_000.0, "{}", polling.peak_polls_per_second);
        assert!(
            (5_000.0..9_000.0).contains(&progress.peak_polls_per_second),
            "{}",
            progress.peak_polls_per_second
        );
        assert!(progress.peak_edge_per_second > 90_000.0);
        assert!(push.peak_polls_per_second < progress.peak_polls_per_second);
        assert!(
            polling.peak_edge_per_second < 1.0 && progress.peak_sockets < 1.0 && push.peak_sockets > 1_000.0
        );
        assert!(push.sale_usd < progress.sale_usd + 1.0 && progress.sale_usd < polling.sale_usd);
    }

    #[test]
    fn waits_and_the_end_follow_pace_and_places() {
        let plan = planned("--users 70000 --seats 1000000 --tps 100 --ratio 0.7 --arrive 1s --curve even");
        assert!(near(plan.wait_seconds.p50, 500.0), "{:?}", plan.wait_seconds);
        assert!(near(plan.wait_seconds.max, 1_000.0), "{:?}", plan.wait_seconds);
        assert!(near(plan.last_in_seconds, 1_000.0));
        let sold = planned("--users 70000 --seats 17000 --places 2 --buyers 85% --arrive 1s");
        assert!(near(sold.let_in, 10_000.0), "{}", sold.let_in);
        assert!(sold.warnings.iter().any(|warning| warning.starts_with("60,000 people come for nothing")));
        assert_eq!(sold.waits.last().and_then(|wait| wait.seconds), None);
    }

    #[test]
    fn what_a_quota_does_not_bear_is_a_warning_and_raising_it_ends_it() {
        let small = planned("--users 1000 --seats 10000");
        assert_eq!(small.warnings, Vec::<String>::new());
        let line = "--users 2000000 --seats 10000000 --arrive 10s";
        let large = planned(line);
        for part in [
            "API requests/s, the quota is 10,000",
            "environments, the quota is 1,000",
            "polling: Lambda grows too slowly",
            "Redis' core",
        ] {
            assert!(
                large.warnings.iter().any(|warning| warning.contains(part)),
                "{part}: {:?}",
                large.warnings
            );
        }
        let raised = format!("{line} --requests-quota 10000000 --environments-quota 1000000 --warm 1000000");
        let raised = planned(&raised);
        assert!(
            raised.warnings.iter().all(|warning| warning.contains("Redis' core")),
            "{:?}",
            raised.warnings
        );
    }

    #[test]
    fn memory_chooses_the_node_and_the_node_the_months_price() {
        let small = planned("--users 10000");
        assert_eq!(small.redis.node, "cache.m7g.large");
        let large = planned("--users 60000000 --arrive 1h");
        assert_eq!(large.redis.node, "cache.r7g.large");
        assert!(large.month_usd > small.month_usd + 50.0);
        let twice = planned("--users 10000000 --waiter-bytes 290").redis.memory_mb;
        let once = planned("--users 10000000 --waiter-bytes 145").redis.memory_mb;
        assert!(near(twice - once, 1_450.0), "{once} and {twice}");
    }
}
