//! Parameters of machines with a regular network, and what is wrong with machines.

use std::fmt;

use hopmap_formats::slots::Slots;
use hopmap_model::{InputPath, RouteMetric, numbers, numbers_schema};
use miette::Diagnostic;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::value::SeqAccessDeserializer;
use serde::de::{SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

/// Parameters, measurements or hosts that do not give a machine topology, and a hint.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Diagnostic)]
#[error("{problem}")]
#[diagnostic(code(topology::invalid))]
pub struct MachineError {
    problem: String,
    #[help]
    help: Option<String>,
}

impl MachineError {
    /// A problem and its help, which may be empty.
    #[must_use]
    pub fn new(problem: impl Into<String>, help: impl Into<String>) -> Self {
        Self { problem: problem.into(), help: Some(help.into()).filter(|help| !help.is_empty()) }
    }
}

/// Largest number of slots.
pub(crate) const MAX_SLOTS: u32 = 1 << 24;
/// Largest number of levels of a tree. Every useful level at least doubles the slots, so more levels only
/// repeat single branches.
pub(crate) const MAX_LEVELS: usize = 32;

/// A machine whose network has a regular shape.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SyntheticParams {
    /// Shape of the network, innermost first: `tree:2x4x2` has two cores per host, four hosts per switch and
    /// two switches under a root. `fat-tree:`, `torus:`, `mesh:`, `ring:` and `dragonfly:` are networks with
    /// routes.
    ///
    /// `tree:2:4:2` is equivalent, and so is `kahip:2:4:2`, the syntax of `KaHIP`, `VieM` and `SharedMap` in
    /// `--hierarchy_parameter_string=2:4:2`. Scotch and `TreeMatch` write such a tree outermost first: `tleaf
    /// 3 64 100 16 10 4 1`.
    ///
    /// `auto`, the default if hosts are named, is one switch with all of them and the `slots` of each. Without
    /// named hosts, `auto` is the example `tree:2x4x2`.
    ///
    /// `fat-tree:20x20x25/1x20x20/1x1x1` (the numbers of `SimGrid`'s fat trees) has switches with 20, 20 and
    /// 25 children. Hosts have 1 parent, leaf switches 20, and so on; all cables are single. `torus:4x4x4`,
    /// `mesh:8x8` and `ring:12` connect hosts to their neighbours. `dragonfly:4x8x4` has four hosts per
    /// router, eight routers per group and four global cables per router. It has the largest number of groups
    /// that these cables connect, unless a fourth number sets it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub shape: String,
    /// Costs between slots of a tree by the level on which they first meet, innermost first, non-decreasing
    /// (the distances of `KaHIP`). By default 1, 10, 100, and so on.
    ///
    /// A list, or a text with colons in the syntax of `KaHIP`'s `--distance_parameter_string=1:10:100`.
    #[serde(default, deserialize_with = "numbers")]
    #[schemars(schema_with = "numbers_schema")]
    pub costs: Vec<f64>,
    /// Number of innermost levels of a tree that are within a host; 1 by default. With 0 every slot is a
    /// host.
    #[serde(default)]
    pub host_level: Option<u32>,
    /// Cores per host for shapes other than trees: `[16]`, or a list by level within a host, innermost first.
    /// `[8, 2]` is eight cores on each of two sockets. One core by default.
    #[serde(default)]
    pub cores: Vec<u32>,
    /// Costs between slots of one host by the level of `cores` on which they first meet. By default they
    /// increase in equal steps and stay below the cost of the cheapest link.
    #[serde(default)]
    pub intra_node_costs: Vec<f64>,
    /// Cost of a message between hosts, for shapes other than trees. It is the number of `hops`, the
    /// `latency` of the links in microseconds, or the `time` of a message of `bytes` bytes.
    #[serde(default)]
    pub cost: Option<CostMetric>,
    /// Message size in bytes for `cost = "time"`.
    #[serde(default)]
    pub bytes: Option<u64>,
    /// Latency of links in seconds: one number for all, or one per kind of link. The kinds are the levels of
    /// switches of a tree or fat tree (innermost first), the dimensions of a torus or mesh, and in a
    /// dragonfly the links to hosts, within groups and between groups.
    #[serde(default, deserialize_with = "numbers")]
    #[schemars(schema_with = "numbers_schema")]
    pub link_latency_s: Vec<f64>,
    /// Bandwidth of links in bytes per second, in the same format.
    #[serde(default, deserialize_with = "numbers")]
    #[schemars(schema_with = "numbers_schema")]
    pub bandwidth_bytes_per_s: Vec<f64>,
    /// Names of the hosts in slot order: a host list such as `node[01-16]`, or a list of them.
    ///
    /// By default `host_prefix` and a number.
    #[serde(default, deserialize_with = "texts")]
    #[schemars(schema_with = "texts_schema")]
    pub hosts: Vec<String>,
    /// A host file with these names: host lists, `node01 slots=40`, `node01:40`, a line for every slot as in `$PBS_NODEFILE`, or the
    /// files of LSF and Grid Engine.
    #[serde(default)]
    pub hosts_file: Option<InputPath>,
    /// Slots of every host, or a list with those of each: `8,4,4`; 0: as in the host file or the shape, whichever has fewer. Other
    /// numbers in the host file are ignored, with a warning.
    #[serde(default)]
    pub slots: Slots,
    /// Prefix of host names if `hosts` is not given.
    #[serde(default = "host")]
    pub host_prefix: String,
}

/// Reads a text or a list of texts; an empty text gives an empty list.
fn texts<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    struct Texts;

    impl<'de> Visitor<'de> for Texts {
        type Value = Vec<String>;

        fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
            formatter.write_str("a host list such as \"node[01-16]\", or a list of them")
        }

        fn visit_str<E>(self, text: &str) -> Result<Vec<String>, E> {
            Ok(if text.trim().is_empty() { Vec::new() } else { vec![text.to_owned()] })
        }

        fn visit_seq<A: SeqAccess<'de>>(self, texts: A) -> Result<Vec<String>, A::Error> {
            Vec::deserialize(SeqAccessDeserializer::new(texts))
        }
    }
    deserializer.deserialize_any(Texts)
}

fn texts_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": ["string", "array"], "items": { "type": "string" } })
}

fn host() -> String {
    "host".to_owned()
}

/// Cost of a message between hosts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CostMetric {
    /// Number of links.
    #[default]
    Hops,
    /// Sum of the link latencies, in microseconds.
    Latency,
    /// Sum of the link latencies plus the transfer time over the narrowest link, in microseconds.
    Time,
}

impl CostMetric {
    /// The route metric; `bytes` is the message size for `time`.
    #[must_use]
    pub fn of_routes(self, bytes: Option<u64>) -> RouteMetric {
        match self {
            Self::Hops => RouteMetric::Hops,
            Self::Latency => RouteMetric::Latency,
            Self::Time => RouteMetric::Time { bytes: bytes.unwrap_or_default() },
        }
    }
}

/// A parameter that does not apply to the shape.
pub(crate) fn unfit(shape: &str, parameter: &str, problem: &str) -> MachineError {
    let help = "`hopmap stages topology/synthetic` describes each parameter";
    MachineError::new(format!("`{parameter}` of shape `{shape}` {problem}"), help)
}

pub(crate) fn too_many_levels(shape: &str, levels: usize) -> MachineError {
    let problem = format!("shape `{shape}` has {levels} levels, more than {MAX_LEVELS}");
    MachineError::new(problem, "omit levels with one branch")
}

pub(crate) fn too_many_slots(shape: &str) -> MachineError {
    let help = "the number of slots is the product of the branches of all levels; reduce some of them";
    MachineError::new(format!("shape `{shape}` has more than {MAX_SLOTS} slots"), help)
}
