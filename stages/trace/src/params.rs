//! Parameters of the stages: the keys of `with` in a pipeline file.

pub use hopmap_collectives::{Algorithm, Algorithms};
use hopmap_model::InputPath;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::import::Format;
use crate::selection::Request;
pub use crate::selection::{Phases, Select};

/// Parameters of `trace/otf2`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Otf2Params {
    /// The anchor file of the archive, such as `traces.otf2`, or a folder with exactly one archive in or below it.
    pub path: InputPath,
    /// Who reads the events: hopmap itself (`native`) or `libotf2`. `auto` is hopmap, unless the archive uses something
    /// that only libotf2 may know. All give the same.
    #[serde(default)]
    pub reader: Reader,
    /// Whether collective operations count. `expand`: as the messages that MPICH's algorithms for the operation, the size and
    /// the number of processes send, and in tables of their own, which `evaluate/collectives` takes. `keep`: only in these
    /// tables. `ignore`: not at all. Where blocks of different length go around a ring, `select` and `sizes` take their mean.
    #[serde(default)]
    pub collectives: Collectives,
    /// Other algorithms than MPICH's choice to expand operations by, such as `{ allreduce = "ring" }`. Operations that
    /// cannot use one, such as neighbour exchange between an odd number of processes or a ring for fewer elements than
    /// processes, follow MPICH's rules.
    #[serde(default)]
    pub algorithms: Algorithms,
    /// What counts; without it, everything.
    #[serde(default)]
    pub select: Select,
    /// Adds a matrix per phase: regions of the program by name, `{ regions = ["init", "solve"] }`, or slices of time,
    /// `{ seconds = 0.5 }`.
    #[serde(default)]
    pub phases: Option<Phases>,
    /// Adds a histogram of the lengths of messages per pair, in powers of two.
    #[serde(default)]
    pub sizes: bool,
    /// Takes the events before the place where the file of a location is cut off or damaged, with a warning, in place of
    /// an error. The definitions must be whole.
    #[serde(default)]
    pub allow_truncated: bool,
}

impl Otf2Params {
    /// Parameters to read all of an archive.
    #[must_use]
    pub fn new(path: InputPath) -> Self {
        let (reader, collectives, algorithms, select, phases) = Default::default();
        let (sizes, allow_truncated) = (false, false);
        Self { path, reader, collectives, algorithms, select, phases, sizes, allow_truncated }
    }

    /// What counts, and under which headings.
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
    /// As operations of their communicators and as the messages that they are made of.
    #[default]
    Expand,
}

/// Who reads the events of an OTF2 archive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Reader {
    /// hopmap, unless the archive uses something that only libotf2 may know.
    #[default]
    Auto,
    /// hopmap, several times as fast.
    Native,
    /// libotf2.
    Libotf2,
}

impl Reader {
    /// What a build without libotf2 cannot do.
    pub(crate) const NEEDS_LIBRARY: &str = "`reader = \"libotf2\"` reads archives with";
}

/// Parameters of `trace/otf`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OtfParams {
    /// The master file of the archive, such as `lu.otf`, or a folder that holds exactly one.
    pub path: InputPath,
    /// What counts; without it, everything.
    #[serde(default)]
    pub select: Select,
    /// Adds a matrix per phase: regions of the program by name, `{ regions = ["init", "solve"] }`, or slices of time,
    /// `{ seconds = 0.5 }`.
    #[serde(default)]
    pub phases: Option<Phases>,
    /// Adds a histogram of the lengths of messages per pair, in powers of two.
    #[serde(default)]
    pub sizes: bool,
}

impl OtfParams {
    /// Parameters to read all of an archive.
    #[must_use]
    pub fn new(path: InputPath) -> Self {
        Self { path, select: Select::default(), phases: None, sizes: false }
    }

    /// What counts, and under which headings.
    pub(crate) fn request(&self) -> Request<'_> {
        Request { select: &self.select, phases: self.phases.as_ref(), sizes: self.sizes }
    }
}

/// Parameters of `trace/events`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EventsParams {
    /// The anchor file of an OTF2 archive, such as `traces.otf2`, or a folder with exactly one archive in or below it.
    pub path: InputPath,
    /// Who reads the events: hopmap itself (`native`) or `libotf2`. `auto` is hopmap, unless the archive uses something
    /// that only libotf2 may know. All give the same.
    #[serde(default)]
    pub reader: Reader,
    /// What is listed; without it, every message.
    #[serde(default)]
    pub select: Select,
    /// Takes the events before the place where the file of a location is cut off or damaged, with a warning, in place of
    /// an error. The definitions must be whole.
    #[serde(default)]
    pub allow_truncated: bool,
}

impl EventsParams {
    /// Parameters to list all messages of an archive.
    #[must_use]
    pub fn new(path: InputPath) -> Self {
        Self { path, reader: Reader::default(), select: Select::default(), allow_truncated: false }
    }

    /// What is listed.
    pub(crate) fn request(&self) -> Request<'_> {
        Request { select: &self.select, phases: None, sizes: false }
    }
}

/// Parameters of `trace/dag`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DagParams {
    /// The anchor file of an OTF2 archive, such as `traces.otf2`, or a folder with exactly one archive in or below it.
    pub path: InputPath,
    /// Who reads the events: hopmap itself (`native`) or `libotf2`. `auto` is hopmap, unless the archive uses something
    /// that only libotf2 may know. All give the same.
    #[serde(default)]
    pub reader: Reader,
    /// Computing for no longer than this many seconds between two calls makes no task of its own, but counts to the one
    /// beside it.
    #[serde(default = "microsecond")]
    pub tiny_s: f64,
    /// A send of at least so many bytes ends when the message has been asked for; without it, no send waits.
    #[serde(default)]
    pub rendezvous_bytes: Option<u64>,
    /// Share of the bytes sent that may be missing because the trace has no receive for them, from 0 to 1. Any with
    /// `allow_truncated`.
    #[serde(default = "hundredth")]
    pub allow_loss: f64,
    /// Takes the events before the place where the file of a location is cut off or damaged, with a warning, in place of
    /// an error. The definitions must be whole.
    #[serde(default)]
    pub allow_truncated: bool,
}

impl DagParams {
    /// Parameters to make tasks of all of an archive.
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

/// Parameters of `trace/replay`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReplayParams {
    /// The simulator that replays: `SimGrid` (`simgrid`: start `smpirun -replay ti.txt` in the folder of the files), or `LogGOPSim` and its
    /// kin (`goal`: `program.goal`).
    pub format: Simulator,
    /// Floating-point operations per second for which a second of work stands in `simgrid`: the speed of a core of the
    /// simulated machine.
    #[serde(default = "billion")]
    pub flops_per_s: f64,
}

fn billion() -> f64 {
    1e9
}

/// Who replays a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Simulator {
    /// `SimGrid`: time-independent traces of SMPI.
    Simgrid,
    /// `LogGOPSim` and its kin: a GOAL schedule as text.
    Goal,
}

/// Parameters of `trace/summary`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SummaryParams {
    /// How many of the pairs with the most bytes are named.
    #[serde(default = "ten")]
    pub pairs: u32,
}

fn ten() -> u32 {
    10
}

/// Parameters of `trace/import`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ImportParams {
    /// The file; for profiles of TAU, their folder.
    pub path: InputPath,
    /// What it is. `auto` looks into it; its name does not matter.
    #[serde(default)]
    pub format: Format,
    /// Number of ranks; without it, as many as the file says or one more than its highest rank. Ranks that the file does
    /// not know are silent.
    #[serde(default)]
    pub ranks: Option<u32>,
}

impl ImportParams {
    /// Parameters to read a file, whatever it is.
    #[must_use]
    pub fn new(path: InputPath) -> Self {
        Self { path, format: Format::Auto, ranks: None }
    }
}

/// Parameters of `trace/export`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ExportParams {
    /// `csv`: the columns source, destination, messages and bytes. `matrix-market`: bytes from row to column, and
    /// comments that tell `trace/import` the numbers of messages.
    pub format: ExportFormat,
}

/// What a task graph is written as.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ExportFormat {
    /// A header and a line for every pair.
    Csv,
    /// Coordinates and bytes.
    MatrixMarket,
}

/// Parameters of `trace/generate`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GenerateParams {
    /// Who sends to whom in every round: the neighbours in a grid with borders (`stencil2d`, `stencil3d`), the two beside
    /// one in its row through a communicator of the row (`rows`), everyone to everyone (`alltoall`), down and right in
    /// turn with up and left (`wavefront`), the eight neighbours of a grid closed in one direction in turn with the steps of an
    /// allreduce (`halo`), six neighbours of a torus, then every second rank of it and so on (`multigrid`), or to 8 ranks drawn at
    /// random (`random`).
    pub pattern: Pattern,
    /// Number of ranks, from 2 to 65536.
    pub ranks: u32,
    /// Number of events of all ranks together; rounds are whole, so it is met as nearly as they can.
    #[serde(default = "million")]
    pub events: u64,
    /// Another seed gives other lengths and times, and other ranks in `random`.
    #[serde(default = "one")]
    pub seed: u64,
}

fn million() -> u64 {
    1_000_000
}

fn one() -> u64 {
    1
}

/// Who sends to whom in a generated trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Pattern {
    /// Four neighbours in a grid with borders.
    Stencil2d,
    /// Six neighbours in a grid with borders.
    Stencil3d,
    /// The two beside one in its row, through a communicator of the row.
    Rows,
    /// Everyone to everyone.
    AllToAll,
    /// Down and right, in turn with up and left.
    Wavefront,
    /// Eight neighbours in a grid that is closed in one direction, in turn with the steps of an allreduce, as POP.
    Halo,
    /// Six neighbours in a torus, in turn with those on every second rank of it, every fourth and so on, as NPB MG.
    Multigrid,
    /// Some ranks drawn at random.
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
