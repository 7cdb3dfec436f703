//! List prices in US dollars, us-east-1, and how far each could be checked in November 2026. AWS' own pages draw most of
//! their tables with scripts: where their text tells no figure, lists that others have read from AWS were asked. Tiers
//! for very much use are left out: the first one counts.

/// Where and when, for the plan's last line.
pub(crate) const AS_OF: &str = "list prices of us-east-1 as of autumn 2026, without free tiers: check them";

// Told by examples on AWS' page.
pub(crate) const HTTP_API_MILLION: f64 = 1.00;
// By several second-hand guides of 2025 and 2026 that agree.
pub(crate) const SOCKET_MESSAGES_MILLION: f64 = 1.00;
pub(crate) const SOCKET_MINUTES_MILLION: f64 = 0.25;
/// Told by AWS' page.
pub(crate) const LAMBDA_MILLION: f64 = 0.20;
/// `x86_64`, which a deployment runs on unless told otherwise; second-hand. arm64 is a fifth less.
pub(crate) const LAMBDA_GB_SECOND: f64 = 0.000_016_666_7;
/// HTTPS to people in North America or Europe; second-hand. Elsewhere it differs.
pub(crate) const CLOUDFRONT_MILLION: f64 = 1.00;
/// Out of `CloudFront` to the same; second-hand. What API Gateway hands to it costs nothing.
pub(crate) const TRANSFER_GB: f64 = 0.085;
/// Second-hand, and old.
pub(crate) const SQS_MILLION: f64 = 0.40;
/// An interface endpoint, in one zone; second-hand.
pub(crate) const ENDPOINT_HOUR: f64 = 0.01;
/// PostgreSQL that bears a hundred bookings a second: db.m7g.large, second-hand, twice for its two zones.
pub(crate) const POSTGRES_HOUR: f64 = 2.0 * 0.168;
pub(crate) const HOURS_A_MONTH: f64 = 730.0;

/// A node of Valkey.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Node {
    pub(crate) name: &'static str,
    pub(crate) memory_gib: f64,
    pub(crate) hour: f64,
}

/// By memory; prices as a list of October 2026 read them from AWS' price list. A step runs on one core whatever the node, so a larger one is for memory alone.
pub(crate) const NODES: [Node; 6] = [
    Node { name: "cache.m7g.large", memory_gib: 6.38, hour: 0.126_4 },
    Node { name: "cache.r7g.large", memory_gib: 13.07, hour: 0.175_2 },
    Node { name: "cache.r7g.xlarge", memory_gib: 26.32, hour: 0.349_6 },
    Node { name: "cache.r7g.2xlarge", memory_gib: 52.82, hour: 0.698_4 },
    Node { name: "cache.r7g.4xlarge", memory_gib: 105.81, hour: 1.396 },
    Node { name: "cache.r7g.8xlarge", memory_gib: 209.55, hour: 2.792_8 },
];
/// What the service keeps of a node's memory for itself.
pub(crate) const NODE_RESERVED: f64 = 0.25;
/// A primary and a replica.
pub(crate) const NODES_OF_A_SHARD: f64 = 2.0;
