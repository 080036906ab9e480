//! Parameters of `topology/synthetic`, and what can be wrong with them.

use std::fmt;

use hopmap_model::RouteMetric;
use miette::Diagnostic;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::value::SeqAccessDeserializer;
use serde::de::{SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

/// Most slots of a machine.
pub(crate) const MAX_SLOTS: u32 = 1 << 24;
/// Most levels of a tree: more only repeat single branches, for every other one doubles the slots.
pub(crate) const MAX_LEVELS: usize = 32;

/// A machine whose network has a regular shape.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SyntheticParams {
    /// The shape of the network, innermost first: `tree:2x4x2` is two cores a host, four hosts a switch, two switches under a root.
    /// `fat-tree:`, `torus:`, `mesh:`, `ring:` and `dragonfly:` are networks with routes.
    ///
    /// `tree:2:4:2` means the same, and so does `kahip:2:4:2`, what `KaHIP`, `VieM` and `SharedMap` take as `--hierarchy_parameter_string=2:4:2`. Scotch and `TreeMatch` write such
    /// a tree outermost first: `tleaf 3 64 100 16 10 4 1`.
    ///
    /// `fat-tree:20x20x25/1x20x20/1x1x1` is one of switches with 20, 20 and 25 children, where hosts have 1 parent, leaves 20, and so on,
    /// with single cables (the numbers of `SimGrid`'s fat trees). `torus:4x4x4`, `mesh:8x8` and `ring:12` join hosts to their neighbours.
    /// `dragonfly:4x8x4` has four hosts a router, eight routers a group, four global cables a router, and as many groups as that joins
    /// unless a fourth number says how many.
    pub shape: String,
    /// Of a tree, the cost between two slots that first meet on a level, innermost first, one for every level, never falling (the
    /// distances of `KaHIP`). Without it 1, 10, 100, and so on.
    ///
    /// A list, or a text with colons as `KaHIP` takes it as `--distance_parameter_string=1:10:100`.
    #[serde(default, deserialize_with = "numbers")]
    #[schemars(schema_with = "numbers_schema")]
    pub costs: Vec<f64>,
    /// Of a tree, how many of the innermost levels lie inside a host; 1 if not given. With 0 every slot is a host of its own.
    #[serde(default)]
    pub host_level: Option<u32>,
    /// Of the other shapes, the cores of a host: `[16]`, or level by level inside it, innermost first: `[8, 2]` are eight cores on each
    /// of two sockets. One core if not given.
    #[serde(default)]
    pub cores: Vec<u32>,
    /// Costs between two slots of one host that first meet on a level of `cores`. Without it they rise in equal steps to below
    /// what the cheapest link costs.
    #[serde(default)]
    pub inside: Vec<f64>,
    /// Of the other shapes, what a message between two hosts costs: `hops` (default), the `latency` of the links in microseconds, or the
    /// `time` of a message of `bytes` bytes.
    #[serde(default)]
    pub cost: Option<CostMetric>,
    /// Bytes of the message whose `time` is the cost.
    #[serde(default)]
    pub bytes: Option<u64>,
    /// Seconds that links take: one number for all, or one for every kind. The kinds of a fat tree are its levels, those of a torus or mesh
    /// its dimensions, those of a dragonfly the links to hosts, inside groups and between groups.
    #[serde(default, deserialize_with = "numbers")]
    #[schemars(schema_with = "numbers_schema")]
    pub link_latency: Vec<f64>,
    /// Bytes per second of links, in the same way.
    #[serde(default, deserialize_with = "numbers")]
    #[schemars(schema_with = "numbers_schema")]
    pub bandwidth: Vec<f64>,
    /// Names of the hosts in slot order. Without them hosts are called `host_prefix` and a number.
    #[serde(default)]
    pub hosts: Vec<String>,
    /// What the names of hosts begin with where `hosts` is not given.
    #[serde(default = "host")]
    pub host_prefix: String,
}

/// Reads a number, a list of numbers, or a text with colons between them.
fn numbers<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<f64>, D::Error> {
    struct Numbers;

    impl<'de> Visitor<'de> for Numbers {
        type Value = Vec<f64>;

        fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
            formatter.write_str("a number, a list of numbers, or a text such as \"1:10:100\"")
        }

        fn visit_f64<E>(self, number: f64) -> Result<Vec<f64>, E> {
            Ok(vec![number])
        }

        fn visit_u64<E>(self, number: u64) -> Result<Vec<f64>, E> {
            Ok(vec![number as f64])
        }

        fn visit_i64<E>(self, number: i64) -> Result<Vec<f64>, E> {
            Ok(vec![number as f64])
        }

        fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Vec<f64>, E> {
            let number = |word: &str| {
                let number = word.trim().parse();
                number.map_err(|_| E::custom(format!("`{word}` in `{text}` is not a number")))
            };
            text.split(':').map(number).collect()
        }

        fn visit_seq<A: SeqAccess<'de>>(self, numbers: A) -> Result<Vec<f64>, A::Error> {
            Vec::deserialize(SeqAccessDeserializer::new(numbers))
        }
    }
    deserializer.deserialize_any(Numbers)
}

fn numbers_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": ["number", "array", "string"], "items": { "type": "number", "format": "double" } })
}

fn host() -> String {
    "host".to_owned()
}

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

/// Parameters of `topology/synthetic` that describe no machine.
#[derive(Debug, thiserror::Error, Diagnostic)]
pub enum SyntheticError {
    /// The shape is of no known kind.
    #[error("shape `{shape}` is of no known kind")]
    #[diagnostic(help(
        "write `tree:2x4x2` (or `kahip:2:4:2`), `fat-tree:4x4/1x2`, `torus:4x4x4`, `mesh:8x8`, `ring:12` or `dragonfly:4x8x4`"
    ))]
    Unknown {
        /// The shape.
        shape: String,
    },
    /// A size of the shape is no number.
    #[error("number {level} of shape `{shape}` is `{size}`, which is not a whole number above zero")]
    #[diagnostic(help(
        "write whole numbers with `x` between them: `torus:4x4x4`; the lists of a fat tree are parted by `/`: `fat-tree:4x4/1x2/1x1`"
    ))]
    Size {
        /// The shape.
        shape: String,
        /// Which number, from zero.
        level: usize,
        /// What stands there.
        size: String,
    },
    /// The numbers of the shape do not go together.
    #[error("the numbers of shape `{shape}` do not go together")]
    #[diagnostic(help(
        "a fat tree has children, parents and cables of as many levels, `fat-tree:4x4/1x2/1x1`; a dragonfly hosts of a router, routers \
         of a group, global cables of a router and at most as many groups as these join, `dragonfly:4x8x4x33`"
    ))]
    Lists {
        /// The shape.
        shape: String,
    },
    /// A parameter does not go with the shape.
    #[error("`{parameter}` of shape `{shape}` {problem}")]
    #[diagnostic(help("`hopmap stages topology/synthetic` says what each parameter is"))]
    Parameter {
        /// The parameter.
        parameter: &'static str,
        /// The shape.
        shape: String,
        /// What is wrong with it.
        problem: String,
    },
    /// A level of the shape is not a number of branches.
    #[error("level {level} of shape `{shape}` is `{branches}`, which is not a whole number above zero")]
    #[diagnostic(help("write the branches of every level, innermost first: `tree:2x4x2`"))]
    Branches {
        /// The shape.
        shape: String,
        /// The level, from zero.
        level: usize,
        /// What stands there.
        branches: String,
    },
    /// The shape has too many levels.
    #[error("shape `{shape}` has {levels} levels, more than {MAX_LEVELS}")]
    #[diagnostic(help("leave out levels with one branch"))]
    TooManyLevels {
        /// The shape.
        shape: String,
        /// Number of its levels.
        levels: usize,
    },
    /// The shape has too many slots.
    #[error("shape `{shape}` has more than {MAX_SLOTS} slots")]
    #[diagnostic(help(
        "the number of slots is the product of the branches of all levels: make some of them smaller"
    ))]
    TooManySlots {
        /// The shape.
        shape: String,
    },
    /// There is not one cost for every level.
    #[error("shape `{shape}` has {levels} levels, but costs are {costs:?}")]
    #[diagnostic(help(
        "give one cost for every level of the shape, innermost first, or none for 1, 10, 100, and so on"
    ))]
    CostCount {
        /// The shape.
        shape: String,
        /// Number of its levels.
        levels: usize,
        /// The costs.
        costs: Vec<f64>,
    },
    /// A cost is negative or not a number.
    #[error("the cost of level {level} is {cost}")]
    #[diagnostic(help("costs are finite numbers, zero or more"))]
    Cost {
        /// The level, from zero.
        level: usize,
        /// The cost.
        cost: f64,
    },
    /// The costs fall from one level to the next.
    #[error("the cost of level {level} is {cost}, less than {inner} one level further in")]
    #[diagnostic(help("costs never fall from one level to the next outer one: give them innermost first"))]
    FallingCost {
        /// The level, from zero.
        level: usize,
        /// Its cost.
        cost: f64,
        /// The cost of the next inner level.
        inner: f64,
    },
    /// More levels lie inside a host than there are.
    #[error("host_level is {host_level}, but shape `{shape}` has {levels} levels")]
    #[diagnostic(help(
        "host_level is how many of the innermost levels lie inside a host, from 0 to {levels}"
    ))]
    HostLevel {
        /// The parameter.
        host_level: u32,
        /// The shape.
        shape: String,
        /// Number of its levels.
        levels: usize,
    },
    /// There is not one name for every host.
    #[error("{names} names of hosts are given, but shape `{shape}` has {hosts} hosts")]
    #[diagnostic(help("name every host once in slot order, or leave `hosts` out"))]
    HostCount {
        /// Number of names.
        names: usize,
        /// The shape.
        shape: String,
        /// Number of hosts.
        hosts: usize,
    },
    /// A name is no name.
    #[error("host {index} is called `{name}`")]
    #[diagnostic(help("names are not empty and hold neither spaces nor control characters"))]
    HostName {
        /// Index of the host.
        index: usize,
        /// Its name.
        name: String,
    },
    /// Two nodes have one name.
    #[error("two nodes are called `{name}`")]
    #[diagnostic(help("give every host a name of its own; switches are called `switch-1-0` and so on"))]
    RepeatedName {
        /// The name.
        name: String,
    },
}
