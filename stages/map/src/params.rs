//! Parameters of the stages.

/// Declares the parameters of a mapper with their defaults, and adds those of the problem that all mappers
/// share. Serde can flatten a struct into another only if unknown keys are allowed.
macro_rules! params {
    ($(#[$meta:meta])* pub struct $name:ident { $($own:tt)* }) => {
        params! {
            $(#[$meta])* pub struct $name { $($own)* }
            /// Objective function: a metric, or a weighted sum such as `{ F = 1.0, T = 0.5 }`.
            objective: Goal
        }
    };
    ($(#[$meta:meta])* pub struct $name:ident { $($own:tt)* } and $($shared:tt)*) => {
        params! { $(#[$meta])* pub struct $name { $($own)* $($shared)* } }
    };
    (
        $(#[$meta:meta])*
        pub struct $name:ident { $($(#[$of_field:meta])* pub $field:ident: $type:ty $(= $default:expr)?,)* }
        $(#[$of_objective:meta])+ objective: $goal:ty
    ) => {
        hopmap_model::parameters! {
            $(#[$meta])*
            pub struct $name {
                $($(#[$of_field])* pub $field: $type $(= $default)?,)*
                /// Weight of an edge of the communication matrix.
                pub weight: WeightChoice,
                $(#[$of_objective])+
                pub objective: $goal,
                /// Ranks with a fixed slot or host.
                pub pinned: Vec<Pin>,
                /// Names of hosts that no rank may use.
                pub forbidden: Vec<String>,
                /// Ranks that stay together on one host, on its first slots in the order of the block: `host` for
                /// those that shared a host when the program was recorded, or a list of blocks with all ranks. Not
                /// with T.
                pub blocks: Option<crate::blocks::Blocks>,
                /// Groups that stay below one switch: the name of their phase and a level of switches, such as `{ ep = 1 }`.
                /// Level 1 are the switches that hosts are linked to: leaf switches, or accelerator domains if all hosts
                /// have one. Not with `pinned`.
                pub borders: std::collections::BTreeMap<String, u32>,
                /// Devices of its host that every rank reserves, such as `{ gpu = 1, memory_gib = 4 }`. A host
                /// offers only as many of its slots, the first ones, as its devices suffice for.
                pub devices_per_rank: std::collections::BTreeMap<String, u32>,
                /// Whether to map to hosts that differ in performance, which only `predicted-time` counts.
                pub ignore_performance: bool,
            }
        }

        problem_params!($name);
    };
}

/// Extracts the parameters of the problem from those of a stage.
macro_rules! problem_params {
    ($params:ty) => {
        impl<'a> From<&'a $params> for ProblemParams<'a> {
            fn from(params: &'a $params) -> Self {
                Self {
                    weight: params.weight,
                    objective: params.objective.of_metrics(),
                    pinned: &params.pinned,
                    forbidden: &params.forbidden,
                    blocks: params.blocks.as_ref(),
                    borders: &params.borders,
                    devices_per_rank: &params.devices_per_rank,
                    ignore_performance: params.ignore_performance,
                }
            }
        }
    };
}

/// Stage kinds that seed the random streams of searches.
pub(crate) mod kind {
    pub(crate) const RANDOM: &str = "map/random";
    pub(crate) const ANNEALING: &str = "map/annealing";
    pub(crate) const GENETIC: &str = "map/genetic";
    pub(crate) const COMPOSITE: &str = "map/composite";
    pub(crate) const AUTO: &str = "map/auto";
    pub(crate) const TABU: &str = "map/tabu";
}

mod graphhunter;
mod problem;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use hopmap_collectives::Algorithms;
use hopmap_model::{InputPath, Weight, WeightChoice};
use hopmap_objective::Objective;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::value::SeqAccessDeserializer;
use serde::de::{self, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

pub use graphhunter::{
    AfterExchange, AnnealingParams, AnnealingPart, CompositeParams, Cooling, Crossover, GeneticParams,
    GeneticPart, Iteration, Master, MoveType, MovesUnit, Mutations, Replacement, Scheme,
};
pub use problem::{AutoGoal, Goal, Pin, TaskGoal, TimedGoal};
pub(crate) use problem::{ProblemParams, check_demands};

params! {
    /// Parameters of `map/linear` and `map/round-robin`.
    pub struct LinearParams {}
    /// Accepted so that all mappers of a sweep can share parameters; it has no effect here.
    objective: Goal
}

params! {
    /// Parameters of `map/random`.
    pub struct RandomParams {
        /// Random seed.
        pub seed: u64 = 1,
    }
    /// Accepted so that all mappers of a sweep can share parameters; it has no effect here.
    objective: Goal
}

params! {
    /// Parameters of `map/auto`.
    pub struct AutoParams {
        /// Random seed.
        pub seed: u64 = 1,
        /// Evaluation limit of every island, in exchanges.
        pub evaluations: Option<u64>,
        /// Time limit in seconds. Results with a time limit are not reproducible bit for bit.
        pub time_limit_s: Option<f64>,
        /// Number of islands (parallel searches), 2 by default; independent of the number of threads. With a
        /// time limit, use at most one island per core: few islands with large populations find better
        /// mappings than many with small ones.
        pub islands: u32 = 2,
        /// Replays of exchanges after those of the candidates, with the objective `predicted-time`. By default
        /// until `time_limit_s`; without it, as many as take about ten seconds of a core, 16 to 4096.
        pub replays: Option<u64>,
        /// Algorithms of collective operations in replays, as for `predict/time`.
        pub algorithms: Algorithms,
        /// Bandwidth of messages within a host in replays, in bytes per second, as for `predict/time`.
        pub memory_bandwidth_bytes_per_s: Option<f64>,
    }
    /// Objective function: a metric, a weighted sum such as `{ F = 1.0, T = 0.5 }`, `makespan` or
    /// `predicted-time`. `makespan` is the time at which the last task in the input `task-dag` finishes; messages
    /// take the times of the links, or those of a given `weight.time`, multiplied by the cost. `predicted-time` is
    /// the run time that `predict/time` predicts for the program in the input `program`. Each objective that the
    /// machine allows then gets `evaluations`, or an equal share of two fifths of `time_limit_s`.
    objective: AutoGoal
}

params! {
    /// Parameters of `map/tabu`.
    pub struct TabuParams {
        /// Random seed.
        pub seed: u64 = 1,
        /// Evaluation limit of every island before its final local search, in exchanges. A larger limit
        /// continues the search of a smaller one. Without it and `time_limit_s`: 33,554,432, but at least
        /// four steps per rank. One step evaluates all pairs. If there are at most as many mappings, and at
        /// most 5040, all are tried instead.
        pub evaluations: Option<u64>,
        /// Time limit in seconds. If there are fewer threads than islands, the islands share it. Results with
        /// a time limit are not reproducible bit for bit.
        pub time_limit_s: Option<f64>,
        /// Number of independent searches; the best result is kept. It does not depend on the number of
        /// threads on which they run.
        pub islands: u32 = 4,
    }
    /// Objective function: a metric, a weighted sum such as `{ F = 1.0, T = 0.5 }`, or `makespan`, the time at which
    /// the last task in the input `task-dag` finishes. See `map/auto` for the times of messages. Without limits
    /// `makespan` gets 4,000 to 400,000 evaluations, by the size of the program.
    objective: TaskGoal
}

params! {
    /// Parameters of `map/exact`.
    pub struct ExactParams {
        /// Random seed of the initial search.
        pub seed: u64 = 1,
        /// Node limit of the search tree. Without it and `time_limit_s`, the search runs until the optimum is
        /// proven.
        pub max_search_nodes: Option<u64>,
        /// Time limit in seconds. Results with a time limit are not reproducible bit for bit.
        pub time_limit_s: Option<f64>,
    }
    /// Objective function: F, a weighted sum of it and hop-bytes, or `makespan`, the time at which the last task in
    /// the input `task-dag` finishes. See `map/auto` for the times of messages.
    objective: TaskGoal
}

/// Parameters of `map/import`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ImportParams {
    /// Path of the mapping file. PE i of `KaHIP`, `VieM`, `SharedMap` and Scotch is slot i of the machine.
    pub path: InputPath,
    /// Format of the file; `auto` detects it from the content. `kahip` (also `VieM` and `SharedMap`): one PE
    /// a line. `scotch`: a count, then vertex and PE. `rankfile`: Open MPI. `machinefile`: one host per line,
    /// `host:4` or `host slots=4`. `ranks`: a rank, its host and perhaps its core per line, as `hopmap reorder` reads.
    #[serde(default)]
    pub format: PlacementFormat,
    /// Weight of an edge of the communication matrix.
    #[serde(default)]
    pub weight: WeightChoice,
}

hopmap_model::named_values! {
    /// Formats of mapping files.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "lowercase")]
    pub enum PlacementFormat {
        /// Detected from the content.
        #[default]
        Auto = "placement",
        /// One PE per line.
        Kahip = "KaHIP partition",
        /// The number of vertices, then vertices and their PEs.
        Scotch = "Scotch mapping",
        /// Open MPI's rank file.
        Rankfile = "rank file",
        /// Hosts in the order of ranks.
        Machinefile = "machine file",
        /// Ranks in any order, each with its host and perhaps its core.
        Ranks = "list of ranks and hosts",
    }
}

/// Source of the defaults of a search.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Preset {
    /// hopmap's defaults, tuned by measurements.
    #[default]
    Default,
    /// As published in the papers.
    Paper,
}

/// Parameters of `map/external`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ExternalParams {
    /// Command to run: a shell command line, or a list of a program and its arguments, which bypasses the
    /// shell. These placeholders are replaced: `{input}` by a file with both matrices in QAPLIB format,
    /// `{program}` and `{machine}` by files with one matrix each, `{output}` by the file that the command
    /// writes instead of standard output. `{seed}` and `{seconds}` are the parameters `seed` and
    /// `time_limit_s`. Paths in a shell line are quoted.
    pub command: ExternalCommand,
    /// Whether ranks and slots in the output count from zero or from one.
    #[serde(default)]
    pub numbering: Numbering,
    /// Whether the output lists the rank of every slot instead of the slot of every rank.
    #[serde(default)]
    pub inverse: bool,
    /// Time limit in seconds, after which the command and its child processes are killed. A command that uses
    /// `{seconds}` gets 10 % and one second more.
    #[serde(default)]
    pub time_limit_s: Option<f64>,
    /// Value of `{seed}`.
    #[serde(default = "hopmap_model::number::<1, u64>")]
    pub seed: u64,
    /// Weight of an edge of the communication matrix.
    #[serde(default)]
    pub weight: WeightChoice,
    /// Objective function: a metric, or a weighted sum such as `{ F = 1.0, T = 0.5 }`.
    #[serde(default)]
    pub objective: Goal,
    /// Ranks with a fixed slot or host.
    #[serde(default)]
    pub pinned: Vec<Pin>,
    /// Names of hosts that no rank may use.
    #[serde(default)]
    pub forbidden: Vec<String>,
    /// Ranks that stay together on one host, on its first slots in the order of the block: `host` for those
    /// that shared a host when the program was recorded, or a list of blocks with all ranks. Not with T.
    #[serde(default)]
    pub blocks: Option<crate::blocks::Blocks>,
    /// Groups that stay below one switch: the name of their phase and a level of switches, such as `{ ep = 1 }`.
    /// Level 1 are the switches that hosts are linked to: leaf switches, or accelerator domains if all hosts have
    /// one. Not with `pinned`.
    #[serde(default)]
    pub borders: BTreeMap<String, u32>,
    /// Devices of its host that every rank reserves, such as `{ gpu = 1, memory_gib = 4 }`. A host offers only as
    /// many of its slots, the first ones, as its devices suffice for.
    #[serde(default)]
    pub devices_per_rank: BTreeMap<String, u32>,
    /// Whether to map to hosts that differ in performance, which only `predicted-time` of `map/auto` counts.
    #[serde(default)]
    pub ignore_performance: bool,
}

problem_params!(ExternalParams);

impl ExternalParams {
    /// Parameters with this command and defaults for all others.
    #[must_use]
    pub fn new(command: ExternalCommand) -> Self {
        Self {
            command,
            numbering: Numbering::default(),
            inverse: false,
            time_limit_s: None,
            seed: 1,
            weight: WeightChoice::default(),
            objective: Goal::default(),
            pinned: Vec::new(),
            forbidden: Vec::new(),
            blocks: None,
            borders: BTreeMap::new(),
            devices_per_rank: BTreeMap::new(),
            ignore_performance: false,
        }
    }
}

/// First number of ranks and slots.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Numbering {
    /// From zero if the output contains a zero, otherwise from one.
    #[default]
    Auto,
    /// From zero.
    FromZero,
    /// From one.
    FromOne,
}

/// Words at the beginning of a shell line that do not name programs.
const SHELL_WORDS: [&str; 15] = [
    ".", ":", "case", "cd", "command", "eval", "exec", "export", "for", "if", "set", "trap", "umask",
    "until", "while",
];

/// A command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ExternalCommand {
    /// A line for `sh`.
    Shell(String),
    /// A program and its arguments.
    Program(Vec<String>),
}

impl ExternalCommand {
    /// The program that it starts. None if a shell line does not begin with the plain name of a program.
    #[must_use]
    pub fn program(&self) -> Option<&str> {
        let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "_-+./".contains(letter);
        match self {
            Self::Program(words) => words.first().map(String::as_str),
            Self::Shell(line) => line
                .split_whitespace()
                .next()
                .filter(|word| word.chars().all(is_plain) && !SHELL_WORDS.contains(word)),
        }
    }

    /// Its words.
    #[must_use]
    pub fn words(&self) -> &[String] {
        match self {
            Self::Shell(line) => std::slice::from_ref(line),
            Self::Program(words) => words,
        }
    }
}

impl Serialize for ExternalCommand {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Shell(line) => serializer.serialize_str(line),
            Self::Program(words) => words.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for ExternalCommand {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Words;
        impl<'de> Visitor<'de> for Words {
            type Value = ExternalCommand;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a shell command line, or a list of a program and its arguments")
            }

            fn visit_str<E>(self, line: &str) -> Result<ExternalCommand, E> {
                Ok(ExternalCommand::Shell(line.to_owned()))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, words: A) -> Result<ExternalCommand, A::Error> {
                Vec::deserialize(SeqAccessDeserializer::new(words)).map(ExternalCommand::Program)
            }
        }
        deserializer.deserialize_any(Words)
    }
}

impl JsonSchema for ExternalCommand {
    fn schema_name() -> Cow<'static, str> {
        "ExternalCommand".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": ["string", "array"], "items": { "type": "string" } })
    }
}

params! {
    /// Parameters of `map/hierarchical`.
    pub struct HierarchicalParams {
        /// Source of the defaults: hopmap, or the paper on `HierarchicalMap`, which keeps the partition
        /// unrefined and evaluates it by T. Explicit parameters take precedence.
        pub preset: Preset,
        /// Random seed.
        pub seed: u64 = 1,
        /// Machine levels on which ranks are partitioned: `all`, or a list counted from the root, such as
        /// `[1]`, `[2]` or `[1, 2]`. Below the listed levels, ranks keep their order.
        pub levels: LevelChoice,
        /// Treatment of unlisted levels above a listed one. The paper does not specify which variant its `L2`
        /// is.
        pub other_levels: OtherLevels,
        /// Whether to return the partition unrefined; by default if `levels` is a list. Otherwise linear
        /// mapping and, for grids of ranks, boxes are further starting points, and the best one is refined.
        pub partition_only: Option<bool>,
        /// Graph partitioner.
        pub partitioner: Partitioner,
        /// Evaluation limit of the refinement, in exchanges. Without it and `time_limit_s`: 32 per rank, or
        /// none for an unrefined partition.
        pub evaluations: Option<u64>,
        /// Time limit in seconds for construction and refinement. Results with a time limit are not
        /// reproducible bit for bit.
        pub time_limit_s: Option<f64>,
    }
    /// Objective function: a metric, or a weighted sum such as `{ F = 1.0, T = 0.5 }`. Partitioning favours a
    /// small F; the refinement minimises this objective.
    objective: Goal
}

impl HierarchicalParams {
    /// The parameters of the paper.
    #[must_use]
    pub fn paper() -> Self {
        Self {
            preset: Preset::Paper,
            partition_only: Some(true),
            weight: Weight::Bytes.into(),
            objective: Goal(Objective::T),
            ..Self::default()
        }
    }
}

/// Treatment of unlisted levels above a listed one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum OtherLevels {
    /// Ranks keep their order on these levels: `L2` partitions the first ranks among the hosts of the first
    /// switch, and so on.
    #[default]
    InOrder,
    /// These levels are ignored: `L2` partitions all ranks directly among all hosts.
    Ignored,
}

/// Graph partitioner.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Partitioner {
    /// hopmap's own partitioner.
    #[default]
    Own,
    /// Recursive bisection of METIS 5, followed by exact balancing.
    Metis,
    /// Scotch's program `scotch_gmap` (Debian: scotch), followed by exact balancing.
    Scotch,
}

/// Machine levels on which ranks are partitioned.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum LevelChoice {
    /// All.
    #[default]
    All,
    /// These, counted from the root, which is 1.
    Listed(Vec<u32>),
}

impl LevelChoice {
    /// Whether ranks are partitioned on a level, counted from the root.
    #[must_use]
    pub fn contains(&self, level: u32) -> bool {
        match self {
            Self::All => true,
            Self::Listed(levels) => levels.contains(&level),
        }
    }
}

impl Serialize for LevelChoice {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::All => serializer.serialize_str("all"),
            Self::Listed(levels) => levels.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for LevelChoice {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(LevelVisitor)
    }
}

struct LevelVisitor;

impl<'de> Visitor<'de> for LevelVisitor {
    type Value = LevelChoice;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("`all`, or a list of levels counted from the root, as in [1, 2] or `L12`")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<LevelChoice, E> {
        let digits = text.strip_prefix('L').filter(|digits| !digits.is_empty());
        let named: Option<Vec<u32>> =
            digits.and_then(|digits| digits.chars().map(|digit| digit.to_digit(10)).collect());
        match text {
            "all" => Ok(LevelChoice::All),
            _ => named
                .map(LevelChoice::Listed)
                .ok_or_else(|| E::invalid_value(de::Unexpected::Str(text), &self)),
        }
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<LevelChoice, A::Error> {
        let mut levels = Vec::new();
        while let Some(level) = seq.next_element()? {
            levels.push(level);
        }
        Ok(LevelChoice::Listed(levels))
    }
}

impl JsonSchema for LevelChoice {
    fn schema_name() -> Cow<'static, str> {
        "LevelChoice".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "`all`, or levels counted from the root: a list, or their digits after an L, as in `L12`.",
            "anyOf": [
                { "type": "string", "pattern": "^(all|L[1-9]+)$" },
                { "type": "array", "items": { "type": "integer", "minimum": 1 } },
            ],
        })
    }
}
