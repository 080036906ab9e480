//! The weight of an edge of a communication matrix, and its syntax in pipelines.

use hopmap_statistics::lower_median;
use miette::Diagnostic;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::context::{Context, Error};
use crate::paths::Paths;
use crate::system_graph::{Link, SystemGraph};
use crate::task_graph::{Edge, TaskGraph};

/// Weight of an edge in the objective function.
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

/// Number of hosts whose pairs are all examined; larger machines are sampled evenly. 512 hosts have 261,632
/// pairs.
const MOST_HOSTS: usize = 512;

/// Requested edge weight: a [`Weight`] whose latency and bandwidth may come from the machine.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(
    untagged,
    deny_unknown_fields,
    expecting = "weight is `auto`, `bytes`, `messages`, `time`, or `{ time = { latency_s = 1e-6, bandwidth_bytes_per_s = 1e10 } }`"
)]
pub enum WeightChoice {
    /// By name.
    Named(WeightName),
    /// Time, with given numbers.
    Time {
        /// The values to use instead of those of the machine.
        time: NetworkSpeed,
    },
}

/// Weights by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum WeightName {
    /// `time` if the machine has latencies and bandwidths between hosts and the program has message counts,
    /// otherwise `bytes`.
    #[default]
    Auto,
    /// Bytes sent.
    Bytes,
    /// Messages sent.
    Messages,
    /// Time in seconds: latency × messages + bytes / bandwidth (GraphHunter, t = L·N + D/S), both taken from
    /// the machine.
    Time,
}

/// Latency and bandwidth of a network; a missing value is the median over the pairs of hosts of the machine.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NetworkSpeed {
    /// Latency L of one message in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_s: Option<f64>,
    /// Bandwidth S in bytes per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bandwidth_bytes_per_s: Option<f64>,
}

impl Default for WeightChoice {
    fn default() -> Self {
        Self::Named(WeightName::default())
    }
}

impl From<Weight> for WeightChoice {
    fn from(weight: Weight) -> Self {
        match weight {
            Weight::Bytes => Self::Named(WeightName::Bytes),
            Weight::Messages => Self::Named(WeightName::Messages),
            Weight::Time { latency_s, bandwidth_bytes_per_s } => {
                let (latency_s, bandwidth_bytes_per_s) = (Some(latency_s), Some(bandwidth_bytes_per_s));
                Self::Time { time: NetworkSpeed { latency_s, bandwidth_bytes_per_s } }
            }
        }
    }
}

impl WeightChoice {
    /// The weight with default values for latency and bandwidth; bytes for `auto`.
    #[must_use]
    pub fn or(self, latency_s: f64, bandwidth_bytes_per_s: f64) -> Weight {
        let given = match self {
            Self::Named(WeightName::Auto | WeightName::Bytes) => return Weight::Bytes,
            Self::Named(WeightName::Messages) => return Weight::Messages,
            Self::Named(WeightName::Time) => NetworkSpeed::default(),
            Self::Time { time } => time,
        };
        Weight::Time {
            latency_s: given.latency_s.unwrap_or(latency_s),
            bandwidth_bytes_per_s: given.bandwidth_bytes_per_s.unwrap_or(bandwidth_bytes_per_s),
        }
    }

    /// Whether it needs values from the machine.
    #[must_use]
    pub fn asks_the_machine(self) -> bool {
        match self {
            Self::Named(name) => matches!(name, WeightName::Auto | WeightName::Time),
            Self::Time { time } => time.latency_s.is_none() || time.bandwidth_bytes_per_s.is_none(),
        }
    }

    /// The weight of a program on a machine: explicit values override those of its links. Logs the resulting
    /// values, and why `auto` is not time although the machine has rates.
    pub fn resolve(self, graph: &TaskGraph, system: &SystemGraph, cx: &Context<'_>) -> Result<Weight, Error> {
        if !self.asks_the_machine() {
            return Ok(self.or(0.0, 0.0));
        }
        system.check()?;
        let found = NetworkSpeed::of(system);
        if self == Self::Named(WeightName::Auto)
            && let Some(missing) = found.missing(graph)
        {
            // Nobody expects times of a machine without any rates.
            if found != NetworkSpeed::default() {
                cx.log(format_args!("weight: bytes, because {missing}"));
            }
            return Ok(Weight::Bytes);
        }
        let given = if let Self::Time { time } = self { time } else { NetworkSpeed::default() };
        let known =
            |what, given: Option<f64>, found: Option<f64>| given.or(found).ok_or(UnknownSpeed { what });
        let latency_s = known("latency", given.latency_s, found.latency_s)?;
        let bandwidth = known("bandwidth", given.bandwidth_bytes_per_s, found.bandwidth_bytes_per_s)?;
        cx.log(format_args!(
            "weight: L·N + D/S with L = {latency_s:.3e} s and S = {bandwidth:.3e} B/s; missing values are the median \
             between hosts of the machine"
        ));
        let is_auto = self == Self::Named(WeightName::Auto);
        let choice = if is_auto { Self::Named(WeightName::Time) } else { self };
        Ok(choice.or(latency_s, bandwidth))
    }
}

impl NetworkSpeed {
    /// Medians over ordered pairs of distinct hosts with slots: of the total latency of the path, and of the
    /// bandwidth of its narrowest link. Pairs with incomplete links are skipped.
    #[must_use]
    pub fn of(system: &SystemGraph) -> Self {
        let is_rated = |link: &Link| link.latency_s.is_some() || link.bandwidth_bytes_per_s.is_some();
        if !system.links.iter().any(is_rated) {
            return Self::default();
        }
        let Some(paths) = Paths::new(system) else { return Self::default() };
        let hosts: Vec<u32> = system.hosts().map(|(host, ..)| host).collect();
        let some: Vec<u32> = hosts.iter().copied().step_by(hosts.len().div_ceil(MOST_HOSTS).max(1)).collect();
        let (mut latencies, mut bandwidths) = (Vec::new(), Vec::new());
        for &from in &some {
            for &to in some.iter().filter(|&&to| to != from) {
                let (mut latency, mut bandwidth) = (Some(0.0), Some(f64::INFINITY));
                let is_joined = paths.walk(from, to, |link| {
                    let link = &system.links[link as usize];
                    latency = latency.zip(link.latency_s).map(|(sum, next)| sum + next);
                    bandwidth =
                        bandwidth.zip(link.bandwidth_bytes_per_s).map(|(least, next)| least.min(next));
                });
                if is_joined {
                    latencies.extend(latency);
                    bandwidths.extend(bandwidth);
                }
            }
        }
        Self { latency_s: lower_median(latencies), bandwidth_bytes_per_s: lower_median(bandwidths) }
    }

    /// What the weight `time` lacks, as the reason of a sentence.
    fn missing(&self, graph: &TaskGraph) -> Option<&'static str> {
        let lacks_count = |edge: &Edge| edge.messages == 0 && edge.bytes > 0;
        match (self.latency_s, self.bandwidth_bytes_per_s) {
            (None, _) => Some("the machine has no latencies between hosts"),
            (_, None) => Some("the machine has no bandwidths between hosts"),
            _ if graph.edges.iter().any(lacks_count) => {
                Some("some bytes of the program have no message count")
            }
            _ => None,
        }
    }
}

/// The machine lacks values that the weight `time` needs.
#[derive(Debug, thiserror::Error, Diagnostic)]
#[error("weight `time` needs the {what} between hosts, which the machine topology does not contain")]
#[diagnostic(
    code(model::unknown_speed),
    help(
        "give `weight = {{ time = {{ latency_s = 1e-6, bandwidth_bytes_per_s = 1e10 }} }}`, or use a machine topology with link \
     latencies and bandwidths, which topology/probe measures between at least two hosts"
    )
)]
pub struct UnknownSpeed {
    /// `latency` or `bandwidth`.
    what: &'static str,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::system_graph::tests::small_tree;

    /// Latency in microseconds and bandwidth in GB/s of the links to hosts, and of those between switches.
    fn measured(to_hosts: (f64, f64), between: (f64, f64)) -> SystemGraph {
        let mut system = small_tree();
        for link in &mut system.links {
            let (latency, bandwidth) = if link.source.min(link.destination) < 4 { to_hosts } else { between };
            *link = Link {
                latency_s: Some(latency * 1e-6),
                bandwidth_bytes_per_s: Some(bandwidth * 1e9),
                ..*link
            };
        }
        system
    }

    fn read(text: &str) -> WeightChoice {
        serde_json::from_str(text).unwrap()
    }

    fn resolved(choice: &str, edge: Edge, system: &SystemGraph) -> Weight {
        let graph = TaskGraph { edges: vec![edge], ..TaskGraph::default() };
        read(choice).resolve(&graph, system, &Context::detached()).unwrap()
    }

    fn seconds(choice: &str, system: &SystemGraph) -> f64 {
        let edge = Edge { source: 0, destination: 1, messages: 3, bytes: 1000 };
        resolved(choice, edge, system).of(&edge)
    }

    #[test]
    fn time_uses_medians_between_hosts_unless_values_are_given() {
        // Of the twelve ordered pairs of four hosts, four are one switch apart and eight use the links
        // between switches: 2 · 1 + 2 · 3 µs at 0.5 GB/s.
        let system = measured((1.0, 2.0), (3.0, 0.5));
        let near =
            |found: f64, wanted: f64| assert!((found / wanted - 1.0).abs() < 1e-12, "{found} {wanted}");
        near(seconds("\"time\"", &system), 3.0 * 8e-6 + 1000.0 / 0.5e9);
        near(seconds("{\"time\": {}}", &system), 3.0 * 8e-6 + 1000.0 / 0.5e9);
        near(seconds("{\"time\": {\"latency_s\": 1}}", &system), 3.0 + 1000.0 / 0.5e9);
        near(seconds("{\"time\": {\"bandwidth_bytes_per_s\": 10}}", &system), 3.0 * 8e-6 + 100.0);
        let both = "{\"time\": {\"latency_s\": 2, \"bandwidth_bytes_per_s\": 500}}";
        near(seconds(both, &system), 8.0);
        near(seconds(both, &small_tree()), 8.0);
        near(seconds("\"bytes\"", &small_tree()), 1000.0);
    }

    #[test]
    fn auto_is_time_if_latencies_bandwidths_and_message_counts_are_known() {
        let mut system = measured((1.0, 2.0), (3.0, 0.5));
        let counted = Edge { source: 0, destination: 1, messages: 3, bytes: 1000 };
        assert_eq!(resolved("\"auto\"", counted, &system), resolved("\"time\"", counted, &system));
        assert_eq!(read("\"auto\""), WeightChoice::default());
        let is_bytes = |edge, system: &SystemGraph| resolved("\"auto\"", edge, system) == Weight::Bytes;
        assert!(is_bytes(Edge { messages: 0, ..counted }, &system));
        assert!(!is_bytes(Edge { messages: 0, bytes: 0, ..counted }, &system));
        system.links.iter_mut().for_each(|link| link.latency_s = None);
        assert!(is_bytes(counted, &system));
        assert!(is_bytes(counted, &small_tree()));
    }

    #[test]
    fn pairs_with_unknown_links_are_skipped() {
        let mut system = measured((1.0, 2.0), (3.0, 0.5));
        for link in system.links.iter_mut().filter(|link| link.source.min(link.destination) >= 4) {
            (link.latency_s, link.bandwidth_bytes_per_s) = (None, None);
        }
        let found = NetworkSpeed::of(&system);
        assert_eq!((found.latency_s, found.bandwidth_bytes_per_s), (Some(2e-6), Some(2e9)));
    }

    #[test]
    fn a_machine_without_link_attributes_is_one_error() {
        let refused = |choice: &str, system: &SystemGraph| {
            read(choice).resolve(&TaskGraph::default(), system, &Context::detached()).unwrap_err().to_string()
        };
        let missing = |what: &str| {
            format!(
                "weight `time` needs the {what} between hosts, which the machine topology does not contain"
            )
        };
        let mut system = small_tree();
        assert_eq!(refused("\"time\"", &system), missing("latency"));
        assert_eq!(refused("{\"time\": {\"latency_s\": 1}}", &system), missing("bandwidth"));
        system.links.clear();
        assert_eq!(refused("\"time\"", &system), missing("latency"));
    }

    #[test]
    fn the_syntax_in_a_pipeline_file() {
        let full = "{\"time\":{\"latency_s\":0.5,\"bandwidth_bytes_per_s\":4.0}}";
        for text in
            ["\"auto\"", "\"bytes\"", "\"messages\"", "\"time\"", "{\"time\":{\"latency_s\":0.5}}", full]
        {
            assert_eq!(serde_json::to_string(&read(text)).unwrap(), text);
        }
        for weight in
            [Weight::Bytes, Weight::Messages, Weight::Time { latency_s: 0.5, bandwidth_bytes_per_s: 4.0 }]
        {
            let choice = WeightChoice::from(weight);
            assert_eq!(serde_json::to_string(&choice).unwrap(), serde_json::to_string(&weight).unwrap());
            assert_eq!((choice.asks_the_machine(), choice.or(1.0, 1.0)), (false, weight));
        }
        for wrong in ["\"seconds\"", "{\"time\": {\"latency\": 1}}", "{\"time\": {}, \"bytes\": 1}", "7"] {
            let refused = serde_json::from_str::<WeightChoice>(wrong).unwrap_err().to_string();
            assert!(
                refused.contains("weight is `auto`, `bytes`, `messages`, `time`, or `{ time = {"),
                "{refused}"
            );
        }
    }

    #[test]
    fn time_is_latency_per_message_plus_bytes_over_bandwidth() {
        let edge = Edge { source: 0, destination: 1, messages: 3, bytes: 1000 };
        let weight = Weight::Time { latency_s: 2.0, bandwidth_bytes_per_s: 500.0 };
        assert!((weight.of(&edge) - 8.0).abs() < 1e-12);
    }

    #[test]
    fn the_syntax_of_a_weight_in_a_pipeline_file() {
        assert_eq!(serde_json::from_str::<Weight>("\"messages\"").unwrap(), Weight::Messages);
        let time = r#"{"time": {"latency_s": 1e-6, "bandwidth_bytes_per_s": 1e9}}"#;
        assert!(matches!(serde_json::from_str(time).unwrap(), Weight::Time { .. }));
    }
}
