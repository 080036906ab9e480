//! What an edge of a task graph weighs.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Edge;

/// What an edge of a task graph weighs in the objective.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Weight {
    /// Bytes sent.
    #[default]
    Bytes,
    /// Messages sent.
    Messages,
    /// Time: latency × messages + bytes / bandwidth (GraphHunter, t = L·N + D/S), in seconds.
    #[serde(rename_all = "snake_case")]
    Time {
        /// Latency L of one message in seconds.
        latency_s: f64,
        /// Bandwidth S in bytes per second.
        bandwidth_bytes_per_s: f64,
    },
}

impl Weight {
    /// The weight of an edge, in bytes, messages or seconds.
    #[must_use]
    pub fn of(&self, edge: &Edge) -> f64 {
        match *self {
            Self::Bytes => edge.bytes as f64,
            Self::Messages => edge.messages as f64,
            Self::Time { latency_s, bandwidth_bytes_per_s } => {
                latency_s * edge.messages as f64 + edge.bytes as f64 / bandwidth_bytes_per_s
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_is_latency_per_message_plus_bytes_over_bandwidth() {
        let edge = Edge { source: 0, destination: 1, messages: 3, bytes: 1000 };
        let weight = Weight::Time { latency_s: 2.0, bandwidth_bytes_per_s: 500.0 };
        assert!((weight.of(&edge) - 8.0).abs() < 1e-12);
    }

    #[test]
    fn the_form_in_a_pipeline_file() {
        assert_eq!(serde_json::from_str::<Weight>("\"messages\"").unwrap(), Weight::Messages);
        let time = r#"{"time": {"latency_s": 1e-6, "bandwidth_bytes_per_s": 1e9}}"#;
        assert!(matches!(serde_json::from_str(time).unwrap(), Weight::Time { .. }));
    }
}
