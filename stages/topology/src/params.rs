//! Parameters of the stages that measure, analyse and export machine topologies, and their errors.

use hopmap_machines::params::MachineError;
use hopmap_model::{CostsError, MeasurementsError, SystemGraphError};
use miette::Diagnostic;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Levels closer than this are never distinguished.
pub(super) const MIN_LEVEL_RATIO: f64 = 1.01;

hopmap_model::parameters! {
    /// Levels of a machine that was measured or has a cost matrix.
    pub struct LevelsParams {
        /// Cost between slots: the latency, or the time of a message of `bytes` bytes, in microseconds. A matrix
        /// keeps its unit.
        pub cost: LevelCost,
        /// Message size in bytes for `cost = "time"`.
        pub bytes: Option<u64>,
        /// Minimum ratio of the costs of adjacent levels; closer levels are merged. If the two directions of
        /// pairs differ by more, that ratio is used.
        // Above the noise of shortest times, below the latency that a switch adds.
        pub level_ratio: f64 = 1.15,
    }
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

hopmap_model::parameters! {
    /// A machine to measure.
    pub struct ProbeParams {
        /// Hosts to measure, as a host list: `node[001-136]`. By default the variable `SLURM_JOB_NODELIST` of the
        /// job in which the stage runs. With a `launcher`, the hosts of its processes.
        pub hosts: Option<String>,
        /// Command that starts `hopmap agent` on a host, with the placeholder `{host}`. A command without
        /// `{host}` runs once and starts the agents of all hosts, such as `srun -N 4 hopmap agent`. The command
        /// gets a secret on its standard input and must pass it on to the agent.
        pub start: String = "ssh {host} hopmap agent".to_owned(),
        /// With a `launcher`: the C compiler of its MPI, with which the prober is compiled once. By default the `mpicc`
        /// next to the launcher, or the `mpicc`, `mpicc.openmpi` or `mpicc.mpich` of its MPI. The prober is kept in
        /// `$XDG_CACHE_HOME/hopmap` or `~/.cache/hopmap`, and taken from there on hosts without a compiler.
        pub mpicc: Option<String>,
        /// Whether to measure between the cores of a host too. Otherwise each host is one slot.
        pub measure_intra_node: bool = true,
        /// Message sizes in bytes. Latencies come from the smallest size. Up to 65536 bytes all pairs of a round
        /// are measured at once; `bandwidth` applies to larger sizes.
        pub sizes: Vec<u64> = vec![1, 64, 1 << 10, 1 << 13, 1 << 16, 1 << 18, 1 << 20, 1 << 22],
        /// How to measure messages of more than 65536 bytes: `isolated` by `parallel` pairs at once, `loaded`
        /// with every host in a pair, `both`, or `none`.
        pub bandwidth: BandwidthPhase = BandwidthPhase::Isolated,
        /// Number of concurrent pairs of large messages in `isolated`.
        #[schemars(range(min = 1))]
        pub parallel: u32 = 4,
        /// Maximum number of messages of one size per direction of a pair. Fewer are sent once the shortest time
        /// no longer decreases.
        #[schemars(range(min = 1))]
        pub messages: u32 = 1000,
        /// Relative decrease of the shortest time below which a batch counts as converged; after three such
        /// batches in a row a size is done.
        pub tolerance: f64 = 0.02,
        /// Time limit per size in seconds.
        pub size_time_limit_s: f64 = 0.1,
        /// Time limit in seconds for all agents to start. Once half of them are ready, the others get the same
        /// time again, but at least 5 seconds: a host that is down does not delay the measurement.
        pub start_timeout_s: f64 = 60.0,
        /// Minimum ratio of the latencies of adjacent levels.
        pub level_ratio: Option<f64>,
        /// Whether to measure what predictions need, once the levels are known: two pairs of every level alone, the
        /// rate of all hosts of a group that send at once, and between MPI ranks the overheads of calls and the
        /// eager limit.
        pub calibrate: bool,
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
