//! Parameters of the stages.

use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::value::SeqAccessDeserializer;
use serde::de::{SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use crate::CostMetric;

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

/// A machine that is measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ProbeParams {
    /// Hosts to measure, as a host list: `node[001-136]`. Without it those of the variable `SLURM_JOB_NODELIST` of the job in
    /// which the stage runs. With a `launcher` the hosts are those of its processes.
    #[serde(default)]
    pub hosts: Option<String>,
    /// The command that starts `hopmap agent` on a host, `{host}` being its name. One without `{host}` is run once and starts the
    /// agents of all hosts, such as `srun -N 4 hopmap agent`. The command gets a secret on its standard input and must pass it on
    /// to the agent.
    #[serde(default = "ssh")]
    pub start: String,
    /// Whether the cores of a host are measured among each other too. Without it a host is one slot.
    #[serde(default = "yes")]
    pub inside: bool,
    /// Bytes of messages. Latencies come from the smallest size. Sizes up to 65536 are measured by all pairs of a round at once, larger
    /// ones as `bandwidth` says.
    #[serde(default = "sizes")]
    pub sizes: Vec<u64>,
    /// How messages of more than 65536 bytes are measured: `isolated` (default) by `parallel` pairs at once, `loaded` by every host with
    /// one partner at the same time, `both`, or `none`.
    #[serde(default)]
    pub bandwidth: BandwidthPhase,
    /// Pairs that send large messages at once in `isolated`.
    #[serde(default = "parallel")]
    #[schemars(range(min = 1))]
    pub parallel: u32,
    /// Most messages of one size between two endpoints in one direction. Fewer are sent where the shortest time does not get
    /// shorter any more.
    #[serde(default = "messages")]
    #[schemars(range(min = 1))]
    pub messages: u32,
    /// A batch that shortens the shortest time by less than this part is calm; after three of them a size is done.
    #[serde(default = "tolerance")]
    pub tolerance: f64,
    /// Seconds after which a size is done however it stands.
    #[serde(default = "seconds")]
    pub seconds: f64,
    /// Seconds that all agents have to start. Once half of them are ready the others have as long again as these took, and 5 seconds
    /// at least: a host that is down does not keep the others waiting.
    #[serde(default = "timeout")]
    pub timeout: f64,
    /// How many times as long as inside a level messages take on the next one, at least.
    #[serde(default)]
    pub gap: Option<f64>,
}

/// How large messages are measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum BandwidthPhase {
    /// By few pairs at once.
    #[default]
    Isolated,
    /// By every host with one partner at the same time.
    Loaded,
    /// In both ways, one after the other.
    Both,
    /// Not at all.
    None,
}

fn ssh() -> String {
    "ssh {host} hopmap agent".to_owned()
}

fn yes() -> bool {
    true
}

fn sizes() -> Vec<u64> {
    vec![1, 64, 1 << 10, 1 << 13, 1 << 16, 1 << 18, 1 << 20, 1 << 22]
}

fn parallel() -> u32 {
    4
}

fn messages() -> u32 {
    1000
}

fn tolerance() -> f64 {
    0.02
}

fn seconds() -> f64 {
    0.1
}

fn timeout() -> f64 {
    60.0
}
