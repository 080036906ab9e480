//! Parameters of the stages that make, measure, level and export machines, and why these give none. Those of imports are in
//! `import/format.rs`.

use std::fmt;

use hopmap_model::{CostsError, MeasurementsError, RouteMetric, SystemGraphError};
use miette::Diagnostic;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::value::SeqAccessDeserializer;
use serde::de::{SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

/// Parameters, measurements or hosts that give no machine, and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Diagnostic)]
#[error("{problem}")]
pub struct MachineError {
    problem: String,
    #[help]
    help: Option<String>,
}

impl MachineError {
    pub(crate) fn new(problem: impl Into<String>, help: impl Into<String>) -> Self {
        Self { problem: problem.into(), help: Some(help.into()).filter(|help| !help.is_empty()) }
    }
}

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
    pub intra_node_costs: Vec<f64>,
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
    pub link_latency_s: Vec<f64>,
    /// Bytes per second of links, in the same way.
    #[serde(default, deserialize_with = "numbers")]
    #[schemars(schema_with = "numbers_schema")]
    pub bandwidth_bytes_per_s: Vec<f64>,
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

/// A parameter that does not go with the shape.
pub(super) fn unfit(shape: &str, parameter: &str, problem: &str) -> MachineError {
    let help = "`hopmap stages topology/synthetic` says what each parameter is";
    MachineError::new(format!("`{parameter}` of shape `{shape}` {problem}"), help)
}

pub(super) fn too_many_levels(shape: &str, levels: usize) -> MachineError {
    let problem = format!("shape `{shape}` has {levels} levels, more than {MAX_LEVELS}");
    MachineError::new(problem, "leave out levels with one branch")
}

pub(super) fn too_many_slots(shape: &str) -> MachineError {
    let help = "the number of slots is the product of the branches of all levels: make some of them smaller";
    MachineError::new(format!("shape `{shape}` has more than {MAX_SLOTS} slots"), help)
}

/// Levels that are closer than this are never told apart.
pub(super) const MIN_LEVEL_RATIO: f64 = 1.01;

/// The levels of a machine that was measured or has a cost for every pair of slots.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct LevelsParams {
    /// What two slots cost: the latency between them, or the time of a message of `bytes` bytes, in microseconds. A matrix
    /// keeps its unit.
    pub cost: LevelCost,
    /// Bytes of the message whose `time` is the cost.
    pub bytes: Option<u64>,
    /// A level costs at least so many times as much as the one further in; what is closer is one level. Where the two directions
    /// of pairs differ by more, it is that.
    pub level_ratio: f64,
}

/// What two slots cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LevelCost {
    /// The latency between them.
    #[default]
    Latency,
    /// The time of a message.
    Time,
}

impl Default for LevelsParams {
    fn default() -> Self {
        // Above the noise of shortest times, below what a switch adds.
        Self { cost: LevelCost::Latency, bytes: None, level_ratio: 1.15 }
    }
}

impl LevelsParams {
    /// Checks what the types cannot say.
    pub(crate) fn check(&self) -> Result<(), MachineError> {
        if !(self.level_ratio.is_finite() && self.level_ratio >= MIN_LEVEL_RATIO) {
            let problem = format!("level_ratio is {}, less than {MIN_LEVEL_RATIO}", self.level_ratio);
            let help = "give a factor such as 1.15: levels that are closer become one";
            return Err(MachineError::new(problem, help));
        }
        match (self.cost, self.bytes) {
            (LevelCost::Time, None) => Err(MachineError::new(
                "cost is \"time\", but `bytes` is not given",
                "say of how many bytes the message is: bytes = 65536",
            )),
            (LevelCost::Latency, Some(bytes)) => {
                let problem = format!("bytes is {bytes}, but cost is \"latency\", which has no size");
                Err(MachineError::new(problem, "leave `bytes` out, or set cost = \"time\""))
            }
            _ => Ok(()),
        }
    }
}

/// A machine whose levels cannot be found.
#[derive(Debug, thiserror::Error, Diagnostic)]
pub enum LevelsError {
    /// No levels follow from the parameters or inputs.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Unfit(#[from] MachineError),
    /// The costs of its routes cannot be written down.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Costs(hopmap_model::CostsError),
    /// The measurements contradict themselves.
    #[error("the measurements are damaged: {0}")]
    Measurements(#[source] MeasurementsError),
    /// The machine contradicts itself.
    #[error("the machine is damaged: {0}")]
    Machine(#[source] SystemGraphError),
}

/// A machine that is measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ProbeParams {
    /// Hosts to measure, as a host list: `node[001-136]`. Without it those of the variable `SLURM_JOB_NODELIST` of the job in
    /// which the stage runs. With a `launcher` the hosts are those of its processes.
    pub hosts: Option<String>,
    /// The command that starts `hopmap agent` on a host, `{host}` being its name. One without `{host}` is run once and starts the
    /// agents of all hosts, such as `srun -N 4 hopmap agent`. The command gets a secret on its standard input and must pass it on
    /// to the agent.
    pub start: String,
    /// Whether the cores of a host are measured among each other too. Without it a host is one slot.
    pub measure_intra_node: bool,
    /// Bytes of messages. Latencies come from the smallest size. Sizes up to 65536 are measured by all pairs of a round at once, larger
    /// ones as `bandwidth` says.
    pub sizes: Vec<u64>,
    /// How messages of more than 65536 bytes are measured: `isolated` (default) by `parallel` pairs at once, `loaded` by every host with
    /// one partner at the same time, `both`, or `none`.
    pub bandwidth: BandwidthPhase,
    /// Pairs that send large messages at once in `isolated`.
    #[schemars(range(min = 1))]
    pub parallel: u32,
    /// Most messages of one size between two endpoints in one direction. Fewer are sent where the shortest time does not get
    /// shorter any more.
    #[schemars(range(min = 1))]
    pub messages: u32,
    /// A batch that shortens the shortest time by less than this part is calm; after three of them a size is done.
    pub tolerance: f64,
    /// Seconds after which a size is done however it stands.
    pub size_time_limit_s: f64,
    /// Seconds that all agents have to start. Once half of them are ready the others have as long again as these took, and 5 seconds
    /// at least: a host that is down does not keep the others waiting.
    pub start_timeout_s: f64,
    /// How many times as long as inside a level messages take on the next one, at least.
    pub level_ratio: Option<f64>,
}

impl Default for ProbeParams {
    fn default() -> Self {
        Self {
            hosts: None,
            start: "ssh {host} hopmap agent".to_owned(),
            measure_intra_node: true,
            sizes: vec![1, 64, 1 << 10, 1 << 13, 1 << 16, 1 << 18, 1 << 20, 1 << 22],
            bandwidth: BandwidthPhase::Isolated,
            parallel: 4,
            messages: 1000,
            tolerance: 0.02,
            size_time_limit_s: 0.1,
            start_timeout_s: 60.0,
            level_ratio: None,
        }
    }
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

/// A machine as text that other programs read.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ExportParams {
    /// Which text.
    pub format: ExportFormat,
}

/// A text that a machine is written as.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ExportFormat {
    /// `topology.conf` of Slurm.
    SlurmConf,
    /// `topology.yaml` of Slurm.
    SlurmYaml,
    /// A platform of SimGrid.
    Simgrid,
    /// A target architecture of Scotch.
    Scotch,
    /// KaHIP's hierarchy and distances, a line each.
    Kahip,
    /// The costs between all slots as CSV, as hwloc prints distances.
    Distances,
    /// A graph for Graphviz.
    Dot,
    /// A picture.
    Svg,
    /// Hosts and links as CSV.
    GraphCsv,
    /// Hosts and links as JSON: nothing is lost.
    GraphJson,
}

/// A machine that a format has no words for.
#[derive(Debug, thiserror::Error, Diagnostic)]
pub enum ExportError {
    /// The format cannot say what the machine is.
    #[error("{format} cannot hold this machine: {problem}")]
    #[diagnostic(help("{help}"))]
    Impossible {
        /// The format.
        format: &'static str,
        /// What it cannot hold.
        problem: String,
        /// What to do instead.
        help: String,
    },
    /// The costs of the machine cannot be written down.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Costs(#[from] CostsError),
}

impl ExportError {
    pub(super) fn impossible(
        format: &'static str,
        problem: impl Into<String>,
        help: impl Into<String>,
    ) -> Self {
        Self::Impossible { format, problem: problem.into(), help: help.into() }
    }
}

/// A text, and one line for each thing that it does not hold.
pub(super) type Written = Result<(String, Vec<String>), ExportError>;
