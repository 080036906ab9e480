//! Parameters of the stages: the keys of `with` in a pipeline file.

pub use hopmap_collectives::{Algorithm, Algorithms};
use hopmap_model::InputPath;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::selection::Request;
pub use crate::selection::{Phases, Select};

/// Parameters of `trace/otf2`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Otf2Params {
    /// The anchor file of the archive, such as `traces.otf2`, or a folder with exactly one archive in it or
    /// below it.
    pub path: InputPath,
    /// Reader of the events: `native`, `libotf2` or `auto`. `auto` is the native reader, unless the archive
    /// uses features that only libotf2 may support. The results are identical.
    #[serde(default)]
    pub reader: Reader,
    /// Whether collective operations count. `expand`: as the messages that MPICH (or Open MPI, with
    /// `algorithms = { rules = "open-mpi" }`) would send for the operation, the size and the number of processes, and in separate tables for `evaluate/collectives`. `keep`: only in these tables. `ignore`:
    /// not at all. For blocks of different lengths in a ring, `select` and `sizes` use the mean length.
    #[serde(default)]
    pub collectives: Collectives,
    /// Algorithms for expanding operations, such as `{ allreduce = "ring" }`; `rules` (`mpich` or `open-mpi`)
    /// selects all others. Operations that do not support an algorithm, such as neighbour exchange with an odd
    /// number of processes, follow the rules too.
    #[serde(default)]
    pub algorithms: Algorithms,
    /// Part of the trace that counts. Everything counts without it.
    #[serde(default)]
    pub select: Select,
    /// Adds a matrix per phase: regions by name, `{ regions = ["init", "solve"] }`, or time slices,
    /// `{ seconds = 0.5 }`.
    #[serde(default)]
    pub phases: Option<Phases>,
    /// Adds a histogram of message lengths per pair, in powers of two.
    #[serde(default)]
    pub sizes: bool,
    /// Uses the events before the damage in truncated or damaged event files, with a warning instead of an
    /// error. The definitions must be complete.
    #[serde(default)]
    pub allow_truncated: bool,
}

impl Otf2Params {
    /// Parameters that read the complete archive.
    #[must_use]
    pub fn new(path: InputPath) -> Self {
        let (reader, collectives, algorithms, select, phases) = Default::default();
        let (sizes, allow_truncated) = (false, false);
        Self { path, reader, collectives, algorithms, select, phases, sizes, allow_truncated }
    }

    /// Selection, phases and sizes of the request.
    pub(crate) fn request(&self) -> Request<'_> {
        Request { select: &self.select, phases: self.phases.as_ref(), sizes: self.sizes }
    }
}

/// Whether collective operations count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Collectives {
    /// Not at all.
    Ignore,
    /// As operations of their communicators, but not as messages.
    Keep,
    /// As operations of their communicators and as the messages that they consist of.
    #[default]
    Expand,
}

/// Reader of OTF2 events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Reader {
    /// The native reader, unless the archive uses features that only libotf2 may support.
    #[default]
    Auto,
    /// The native reader, several times as fast as libotf2.
    Native,
    /// libotf2.
    Libotf2,
}

impl Reader {
    /// Features that a build without libotf2 lacks.
    pub(crate) const NEEDS_LIBRARY: &str = "`reader = \"libotf2\"` reads archives with";
}

/// Parameters of `trace/otf`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OtfParams {
    /// The master file of the archive, such as `lu.otf`, or a folder with exactly one.
    pub path: InputPath,
    /// Part of the trace that counts. Everything counts without it.
    #[serde(default)]
    pub select: Select,
    /// Adds a matrix per phase: regions by name, `{ regions = ["init", "solve"] }`, or time slices,
    /// `{ seconds = 0.5 }`.
    #[serde(default)]
    pub phases: Option<Phases>,
    /// Adds a histogram of message lengths per pair, in powers of two.
    #[serde(default)]
    pub sizes: bool,
}

impl OtfParams {
    /// Parameters that read the complete archive.
    #[must_use]
    pub fn new(path: InputPath) -> Self {
        Self { path, select: Select::default(), phases: None, sizes: false }
    }

    /// Selection, phases and sizes of the request.
    pub(crate) fn request(&self) -> Request<'_> {
        Request { select: &self.select, phases: self.phases.as_ref(), sizes: self.sizes }
    }
}

/// Parameters of `trace/events`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EventsParams {
    /// The anchor file of an OTF2 archive, such as `traces.otf2`, or a folder with exactly one archive in it
    /// or below it.
    pub path: InputPath,
    /// Reader of the events: `native`, `libotf2` or `auto`. `auto` is the native reader, unless the archive
    /// uses features that only libotf2 may support. The results are identical.
    #[serde(default)]
    pub reader: Reader,
    /// Messages to list. All messages are listed without it.
    #[serde(default)]
    pub select: Select,
    /// Uses the events before the damage in truncated or damaged event files, with a warning instead of an
    /// error. The definitions must be complete.
    #[serde(default)]
    pub allow_truncated: bool,
}

impl EventsParams {
    /// Parameters that list all messages of an archive.
    #[must_use]
    pub fn new(path: InputPath) -> Self {
        Self { path, reader: Reader::default(), select: Select::default(), allow_truncated: false }
    }

    /// Selection of the request.
    pub(crate) fn request(&self) -> Request<'_> {
        Request { select: &self.select, phases: None, sizes: false }
    }
}

/// Parameters of `trace/dag`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DagParams {
    /// The anchor file of an OTF2 archive, such as `traces.otf2`, or a folder with exactly one archive in it
    /// or below it.
    pub path: InputPath,
    /// Reader of the events: `native`, `libotf2` or `auto`. `auto` is the native reader, unless the archive
    /// uses features that only libotf2 may support. The results are identical.
    #[serde(default)]
    pub reader: Reader,
    /// Maximum seconds of computation between two calls that are merged into the adjacent task.
    #[serde(default = "microsecond")]
    pub tiny_s: f64,
    /// Minimum bytes of rendezvous messages, whose sends wait for the receive. No send waits without it.
    #[serde(default)]
    pub rendezvous_bytes: Option<u64>,
    /// Fraction of the sent bytes, from 0 to 1, that may lack a receive event. Unlimited with
    /// `allow_truncated`.
    #[serde(default = "hundredth")]
    pub allow_loss: f64,
    /// Uses the events before the damage in truncated or damaged event files, with a warning instead of an
    /// error. The definitions must be complete.
    #[serde(default)]
    pub allow_truncated: bool,
}

impl DagParams {
    /// Parameters that read the complete archive.
    #[must_use]
    pub fn new(path: InputPath) -> Self {
        let (reader, allow_truncated) = Default::default();
        let (tiny_s, allow_loss) = (microsecond(), hundredth());
        Self { path, reader, tiny_s, rendezvous_bytes: None, allow_loss, allow_truncated }
    }
}

fn hundredth() -> f64 {
    0.01
}

fn microsecond() -> f64 {
    1e-6
}

/// Parameters of `trace/program`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ProgramParams {
    /// The folder of a recording with events (`hopmap record --events`), the anchor file of an OTF2 archive
    /// or a folder with exactly one, a time-independent trace of SimGrid (a file of actions, or an index of
    /// such files), or the folder of a training job with traces of Chakra or PyTorch's profiler. Omitted if `task-dag` is connected.
    #[serde(default)]
    pub path: Option<InputPath>,
    /// Format of the trace. `auto` recognises it by its contents.
    #[serde(default)]
    pub format: ProgramFormat,
    /// Reader of the events of an OTF2 archive: `native`, `libotf2` or `auto`, as in `trace/otf2`.
    #[serde(default)]
    pub reader: Reader,
    /// Floating-point operations per second of computation in traces of SimGrid: the speed of a core.
    #[serde(default = "hopmap_model::number::<1_000_000_000, f64>")]
    pub flops_per_s: f64,
    /// Fraction of the sent bytes of a recording or an OTF2 archive, from 0 to 1, that may lack a receive
    /// event. Unlimited with `allow_truncated`.
    #[serde(default = "hundredth")]
    pub allow_loss: f64,
    /// Uses the events before the damage in truncated or damaged event files, with a warning instead of an
    /// error. The definitions of an OTF2 archive must be complete.
    #[serde(default)]
    pub allow_truncated: bool,
}

impl ProgramParams {
    /// Parameters that read a complete trace and recognise its format, or convert a task DAG.
    #[must_use]
    pub fn new(path: Option<InputPath>) -> Self {
        let (format, reader, allow_truncated) = Default::default();
        let (flops_per_s, allow_loss) = (1e9, hundredth());
        Self { path, format, reader, flops_per_s, allow_loss, allow_truncated }
    }
}

/// Format of a trace with the order of its operations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ProgramFormat {
    /// Recognised from the contents.
    #[default]
    Auto,
    /// Chakra execution traces of a training job.
    Chakra,
    /// A recording with the events of every rank: the folder that `hopmap record --events` wrote.
    HopmapRecord,
    /// Traces of a training job by PyTorch's profiler.
    Kineto,
    /// An OTF2 archive.
    Otf2,
    /// A time-independent trace of SimGrid.
    Simgrid,
    /// Like `simgrid`, with tags in messages (SimGrid 3.20 and later), if hopmap cannot infer it.
    SimgridTagged,
    /// Like `simgrid`, without tags in messages.
    SimgridUntagged,
}

/// Parameters of `trace/replay`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReplayParams {
    /// Output format: `simgrid` for SimGrid (start `smpirun -replay ti.txt` in the folder of the files), or
    /// `goal` for `LogGOPSim` and compatible simulators (`program.goal`).
    pub format: Simulator,
    /// Floating-point operations per second of work, for `simgrid`: the speed of a core of the simulated
    /// machine.
    #[serde(default = "hopmap_model::number::<1_000_000_000, f64>")]
    pub flops_per_s: f64,
}

/// Simulator format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Simulator {
    /// `SimGrid`: time-independent traces of SMPI.
    Simgrid,
    /// `LogGOPSim` and compatible simulators: a GOAL schedule as text.
    Goal,
}

/// Parameters of `trace/summary`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SummaryParams {
    /// Number of heaviest pairs in the summary.
    #[serde(default = "hopmap_model::number::<10, u32>")]
    pub pairs: u32,
}

/// Parameters of `trace/export`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ExportParams {
    /// Output format. `csv` has the columns source, destination, messages and bytes. `matrix-market` has
    /// bytes from row to column, and comments with message counts for `trace/import`. `svg` is a picture of the
    /// bytes.
    pub format: ExportFormat,
}

/// Output format of a communication matrix.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ExportFormat {
    /// A header and one line per pair.
    Csv,
    /// Coordinates and bytes.
    MatrixMarket,
    /// A picture: senders down, receivers across, bytes as colours.
    Svg,
}

/// Parameters of `trace/generate`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GenerateParams {
    /// Communication pattern of every round.
    pub pattern: Pattern,
    /// Number of ranks, from 2 to 65536.
    pub ranks: u32,
    /// Approximate number of events of all ranks, rounded to complete rounds.
    #[serde(default = "hopmap_model::number::<1_000_000, u64>")]
    pub events: u64,
    /// Random seed for lengths and times, and for the partners of `random`.
    #[serde(default = "hopmap_model::number::<1, u64>")]
    pub seed: u64,
}

/// Communication pattern of a generated trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Pattern {
    /// Four neighbours in a grid with borders.
    Stencil2d,
    /// Six neighbours in a grid with borders.
    Stencil3d,
    /// Left and right neighbours in a row, through a communicator of the row.
    Rows,
    /// All to all.
    AllToAll,
    /// Down and right, alternating with up and left.
    Wavefront,
    /// Eight neighbours in a grid that is periodic in one dimension, alternating with the steps of an
    /// allreduce, like POP.
    Halo,
    /// Six neighbours in a torus, alternating with grids of every second rank, every fourth and so on, like
    /// NPB MG.
    Multigrid,
    /// Random partners.
    Random,
}

impl Pattern {
    /// All patterns.
    pub const ALL: [Self; 8] = [
        Self::Stencil2d,
        Self::Stencil3d,
        Self::Rows,
        Self::AllToAll,
        Self::Wavefront,
        Self::Halo,
        Self::Multigrid,
        Self::Random,
    ];
}
