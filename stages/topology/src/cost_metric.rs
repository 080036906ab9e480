//! What messages cost, as parameters say it.

use hopmap_model::RouteMetric;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a message between two hosts costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CostMetric {
    /// The number of links.
    #[default]
    Hops,
    /// The latencies of the links, in microseconds.
    Latency,
    /// The latencies of the links and the time of the bytes over the narrowest, in microseconds.
    Time,
}

impl CostMetric {
    /// The metric of routes; `bytes` are those of the message whose time counts.
    pub(crate) fn of_routes(self, bytes: Option<u64>) -> RouteMetric {
        match self {
            Self::Hops => RouteMetric::Hops,
            Self::Latency => RouteMetric::Latency,
            Self::Time => RouteMetric::Time { bytes: bytes.unwrap_or_default() },
        }
    }
}
