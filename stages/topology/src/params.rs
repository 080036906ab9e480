//! Parameters of the stages that create, measure, analyse and export machine topologies, and their errors.
//! Those of imports are in `import/format.rs`.

use std::fmt;

use hopmap_formats::slots::Slots;
use hopmap_model::{
    CostsError, InputPath, MeasurementsError, RouteMetric, SystemGraphError, numbers, numbers_schema,
};
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
    pub(crate) fn new(problem: impl Into<String>, help: impl Into<String>) -> Self {
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
    pub(crate) fn of_routes(self, bytes: Option<u64>) -> RouteMetric {
        match self {
            Self::Hops => RouteMetric::Hops,
            Self::Latency => RouteMetric::Latency,
            Self::Time => RouteMetric::Time { bytes: bytes.unwrap_or_default() },
        }
    }
}

/// A parameter that does not apply to the shape.
pub(super) fn unfit(shape: &str, parameter: &str, problem: &str) -> MachineError {
    let help = "`hopmap stages topology/synthetic` describes each parameter";
    MachineError::new(format!("`{parameter}` of shape `{shape}` {problem}"), help)
}

pub(super) fn too_many_levels(shape: &str, levels: usize) -> MachineError {
    let problem = format!("shape `{shape}` has {levels} levels, more than {MAX_LEVELS}");
    MachineError::new(problem, "omit levels with one branch")
}

pub(super) fn too_many_slots(shape: &str) -> MachineError {
    let help = "the number of slots is the product of the branches of all levels; reduce some of them";
    MachineError::new(format!("shape `{shape}` has more than {MAX_SLOTS} slots"), help)
}

/// Levels closer than this are never distinguished.
pub(super) const MIN_LEVEL_RATIO: f64 = 1.01;

/// Levels of a machine that was measured or has a cost matrix.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct LevelsParams {
    /// Cost between slots: the latency, or the time of a message of `bytes` bytes, in microseconds. A matrix
    /// keeps its unit.
    pub cost: LevelCost,
    /// Message size in bytes for `cost = "time"`.
    pub bytes: Option<u64>,
    /// Minimum ratio of the costs of adjacent levels; closer levels are merged. If the two directions of
    /// pairs differ by more, that ratio is used.
    pub level_ratio: f64,
}

/// Cost between slots.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LevelCost {
    /// Latency.
    #[default]
    Latency,
    /// Time of a message.
    Time,
}

impl Default for LevelsParams {
    fn default() -> Self {
        // Above the noise of shortest times, below the latency that a switch adds.
        Self { cost: LevelCost::Latency, bytes: None, level_ratio: 1.15 }
    }
}

impl LevelsParams {
    /// Checks constraints beyond the types.
    pub(crate) fn check(&self) -> Result<(), MachineError> {
        if !(self.level_ratio.is_finite() && self.level_ratio >= MIN_LEVEL_RATIO) {
            let problem = format!("level_ratio is {}, less than {MIN_LEVEL_RATIO}", self.level_ratio);
            let help = "give a factor such as 1.15; closer levels are merged";
            return Err(MachineError::new(problem, help));
        }
        match (self.cost, self.bytes) {
            (LevelCost::Time, None) => Err(MachineError::new(
                "cost is \"time\", but `bytes` is missing",
                "give the message size, such as bytes = 65536",
            )),
            (LevelCost::Latency, Some(bytes)) => {
                let problem = format!("bytes is {bytes}, but cost \"latency\" does not depend on a size");
                Err(MachineError::new(problem, "omit `bytes`, or set cost = \"time\""))
            }
            _ => Ok(()),
        }
    }
}

/// The levels of a machine cannot be determined.
#[derive(Debug, thiserror::Error, Diagnostic)]
pub enum LevelsError {
    /// The parameters or inputs give no levels.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Unfit(#[from] MachineError),
    /// The route costs cannot be converted.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Costs(hopmap_model::CostsError),
    /// The measurements are inconsistent.
    #[error("the measurements are inconsistent: {0}")]
    #[diagnostic(code(topology::measurements))]
    Measurements(#[source] MeasurementsError),
    /// The machine topology is inconsistent.
    #[error("the machine topology is inconsistent: {0}")]
    #[diagnostic(code(topology::levels_machine))]
    Machine(#[source] SystemGraphError),
}

/// A machine to measure.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ProbeParams {
    /// Hosts to measure, as a host list: `node[001-136]`. By default the variable `SLURM_JOB_NODELIST` of the
    /// job in which the stage runs. With a `launcher`, the hosts of its processes.
    pub hosts: Option<String>,
    /// Command that starts `hopmap agent` on a host, with the placeholder `{host}`. A command without
    /// `{host}` runs once and starts the agents of all hosts, such as `srun -N 4 hopmap agent`. The command
    /// gets a secret on its standard input and must pass it on to the agent.
    pub start: String,
    /// With a `launcher`: the C compiler of its MPI, with which the prober is compiled once. By default the `mpicc`
    /// next to the launcher, or the `mpicc`, `mpicc.openmpi` or `mpicc.mpich` of its MPI. The prober is kept in
    /// `$XDG_CACHE_HOME/hopmap` or `~/.cache/hopmap`, and taken from there on hosts without a compiler.
    pub mpicc: Option<String>,
    /// Whether to measure between the cores of a host too. Otherwise each host is one slot.
    pub measure_intra_node: bool,
    /// Message sizes in bytes. Latencies come from the smallest size. Up to 65536 bytes all pairs of a round
    /// are measured at once; `bandwidth` applies to larger sizes.
    pub sizes: Vec<u64>,
    /// How to measure messages of more than 65536 bytes: `isolated` by `parallel` pairs at once, `loaded`
    /// with every host in a pair, `both`, or `none`.
    pub bandwidth: BandwidthPhase,
    /// Number of concurrent pairs of large messages in `isolated`.
    #[schemars(range(min = 1))]
    pub parallel: u32,
    /// Maximum number of messages of one size per direction of a pair. Fewer are sent once the shortest time
    /// no longer decreases.
    #[schemars(range(min = 1))]
    pub messages: u32,
    /// Relative decrease of the shortest time below which a batch counts as converged; after three such
    /// batches in a row a size is done.
    pub tolerance: f64,
    /// Time limit per size in seconds.
    pub size_time_limit_s: f64,
    /// Time limit in seconds for all agents to start. Once half of them are ready, the others get the same
    /// time again, but at least 5 seconds: a host that is down does not delay the measurement.
    pub start_timeout_s: f64,
    /// Minimum ratio of the latencies of adjacent levels.
    pub level_ratio: Option<f64>,
    /// Whether to measure what predictions need, once the levels are known: two pairs of every level alone, the
    /// rate of all hosts of a group that send at once, and between MPI ranks the overheads of calls and the
    /// eager limit.
    pub calibrate: bool,
}

impl Default for ProbeParams {
    fn default() -> Self {
        Self {
            hosts: None,
            start: "ssh {host} hopmap agent".to_owned(),
            mpicc: None,
            measure_intra_node: true,
            sizes: vec![1, 64, 1 << 10, 1 << 13, 1 << 16, 1 << 18, 1 << 20, 1 << 22],
            bandwidth: BandwidthPhase::Isolated,
            parallel: 4,
            messages: 1000,
            tolerance: 0.02,
            size_time_limit_s: 0.1,
            start_timeout_s: 60.0,
            level_ratio: None,
            calibrate: false,
        }
    }
}

impl ProbeParams {
    /// How the levels of the machine are found.
    pub(crate) fn levels(&self) -> LevelsParams {
        let defaults = LevelsParams::default();
        LevelsParams { level_ratio: self.level_ratio.unwrap_or(defaults.level_ratio), ..defaults }
    }
}

/// How to measure large messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum BandwidthPhase {
    /// Few pairs at once.
    #[default]
    Isolated,
    /// Every host in a pair at the same time.
    Loaded,
    /// Both, one after the other.
    Both,
    /// Not at all.
    None,
}

/// Export of a machine topology as text.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ExportParams {
    /// Output format.
    pub format: ExportFormat,
}

/// Export formats.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ExportFormat {
    /// Slurm `topology.conf`.
    SlurmConf,
    /// Slurm `topology.yaml`.
    SlurmYaml,
    /// SimGrid platform.
    Simgrid,
    /// Scotch target architecture.
    Scotch,
    /// KaHIP hierarchy and distances, one line each.
    Kahip,
    /// Costs between all slots as CSV, in the format of hwloc's distances.
    Distances,
    /// Graphviz graph.
    Dot,
    /// SVG picture.
    Svg,
    /// Hosts and links as CSV.
    GraphCsv,
    /// Hosts and links as JSON, without loss.
    GraphJson,
    /// Options of `smpirun` with the costs of a calibrated machine, one per line.
    Smpi,
    /// Options of LogGOPSim with the costs of a calibrated machine.
    Loggopsim,
}

/// A machine topology that a format cannot represent.
#[derive(Debug, thiserror::Error, Diagnostic)]
pub enum ExportError {
    /// The format cannot represent the machine.
    #[error("{format} cannot represent this machine topology: {problem}")]
    #[diagnostic(code(topology::impossible), help("{help}"))]
    Impossible {
        /// The format.
        format: &'static str,
        /// What it cannot represent.
        problem: String,
        /// How to fix it.
        help: String,
    },
    /// The route costs cannot be converted.
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

/// A text, and one line for each property that it does not represent.
pub(super) type Written = Result<(String, Vec<String>), ExportError>;
