//! List prices in US dollars, us-east-1, as known in June 2026: check them before you rely on them.

/// Where and when, for the plan's last line.
pub(crate) const AS_OF: &str = "list prices of us-east-1 as of June 2026, without free tiers: check them";

pub(crate) const HTTP_API_MILLION: f64 = 1.00;
pub(crate) const SOCKET_MESSAGES_MILLION: f64 = 1.00;
pub(crate) const SOCKET_MINUTES_MILLION: f64 = 0.25;
pub(crate) const LAMBDA_MILLION: f64 = 0.20;
/// arm64.
pub(crate) const LAMBDA_GB_SECOND: f64 = 0.000_013_333_4;
pub(crate) const CLOUDFRONT_MILLION: f64 = 1.00;
pub(crate) const TRANSFER_GB: f64 = 0.09;
pub(crate) const SQS_MILLION: f64 = 0.40;
/// An interface endpoint, in one zone.
pub(crate) const ENDPOINT_HOUR: f64 = 0.01;
/// PostgreSQL that bears a hundred bookings a second: db.m7g.large in two zones.
pub(crate) const POSTGRES_HOUR: f64 = 0.336;
pub(crate) const HOURS_A_MONTH: f64 = 730.0;

/// A node of Valkey.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Node {
    pub(crate) name: &'static str,
    pub(crate) memory_gb: f64,
    pub(crate) hour: f64,
}

/// By memory. A step runs on one core whatever the node, so a larger one is for memory alone.
pub(crate) const NODES: [Node; 6] = [
    Node { name: "cache.m7g.large", memory_gb: 6.38, hour: 0.126 },
    Node { name: "cache.r7g.large", memory_gb: 13.07, hour: 0.175 },
    Node { name: "cache.r7g.xlarge", memory_gb: 26.32, hour: 0.350 },
    Node { name: "cache.r7g.2xlarge", memory_gb: 52.82, hour: 0.700 },
    Node { name: "cache.r7g.4xlarge", memory_gb: 105.81, hour: 1.399 },
    Node { name: "cache.r7g.8xlarge", memory_gb: 209.55, hour: 2.798 },
];
/// What the service keeps of a node's memory for itself.
pub(crate) const NODE_RESERVED: f64 = 0.25;
/// A primary and a replica.
pub(crate) const NODES_OF_A_SHARD: f64 = 2.0;
