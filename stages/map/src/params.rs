//! Parameters of the stages.

/// Declares the parameters of a mapper and what they are by default, and beside its own those of the problem that every mapper solves.
/// Serde can flatten a struct into another only where it lets unknown keys pass.
macro_rules! params {
    ($(#[$meta:meta])* pub struct $name:ident { $($own:tt)* }) => {
        params! {
            $(#[$meta])* pub struct $name { $($own)* }
            /// What is minimised: a metric, or a weighted sum of several, as in `{ F = 1.0, T = 0.5 }`.
            objective
        }
    };
    ($(#[$meta:meta])* pub struct $name:ident { $($own:tt)* } and $($shared:tt)*) => {
        params! { $(#[$meta])* pub struct $name { $($own)* $($shared)* } }
    };
    (
        $(#[$meta:meta])*
        pub struct $name:ident { $($(#[$of_field:meta])* pub $field:ident: $type:ty $(= $default:expr)?,)* }
        $(#[$of_objective:meta])+ objective
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
        #[serde(deny_unknown_fields, default)]
        pub struct $name {
            $($(#[$of_field])* pub $field: $type,)*
            /// What an edge of the task graph weighs.
            pub weight: WeightChoice,
            $(#[$of_objective])+
            pub objective: Goal,
            /// Ranks that have to be on a slot or a host.
            pub pinned: Vec<Pin>,
            /// Names of hosts that no rank may be on.
            pub forbidden: Vec<String>,
        }

        impl Default for $name {
            fn default() -> Self {
                Self {
                    $($field: or_default!($type $(, $default)?),)*
                    weight: WeightChoice::default(),
                    objective: Goal::default(),
                    pinned: Vec::new(),
                    forbidden: Vec::new(),
                }
            }
        }

        problem_params!($name);
    };
}

macro_rules! or_default {
    ($type:ty) => {
        <$type>::default()
    };
    ($type:ty, $default:expr) => {
        $default
    };
}

/// Takes what every mapper is told of its problem out of the parameters of a stage.
macro_rules! problem_params {
    ($params:ty) => {
        impl<'a> From<&'a $params> for ProblemParams<'a> {
            fn from(params: &'a $params) -> Self {
                Self {
                    weight: params.weight,
                    objective: params.objective.0,
                    pinned: &params.pinned,
                    forbidden: &params.forbidden,
                }
            }
        }
    };
}

/// Kinds of stages by which searches draw their seeds.
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
use std::fmt;

use hopmap_model::{InputPath, WeightChoice};
use hopmap_objective::Objective;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::value::SeqAccessDeserializer;
use serde::de::{SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

pub use graphhunter::{
    AfterExchange, AnnealingParams, AnnealingPart, CompositeParams, Cooling, Crossover, GeneticParams,
    GeneticPart, Iteration, Master, MoveType, MovesUnit, Scheme,
};
pub(crate) use problem::ProblemParams;
pub use problem::{Goal, Pin};

params! {
    /// Rank `i` on slot `i`, or on the host of its turn.
    pub struct LinearParams {}
    /// What searches beside this one minimise. It changes nothing here.
    objective
}

params! {
    /// Ranks on slots drawn at random from all slots of the machine.
    pub struct RandomParams {
        /// Another seed gives another placement.
        pub seed: u64 = 1,
    }
    /// What searches beside this one minimise. It changes nothing here.
    objective
}

params! {
    /// The search that suits the problem.
    pub struct AutoParams {
        /// Another seed gives another search.
        pub seed: u64 = 1,
        /// How many exchanges every island evaluates.
        pub evaluations: Option<u64>,
        /// How long the search may take, in seconds. The result cannot be made again bit for bit.
        pub time_limit_s: Option<f64>,
        /// Number of searches side by side, 2 by default; their number never depends on that of the threads. In a budget of seconds
        /// few islands with large populations find more than many with small ones: no more than there are cores.
        pub islands: u32 = 2,
    }
}

params! {
    /// Robust tabu search.
    pub struct TabuParams {
        /// Another seed gives another search.
        pub seed: u64 = 1,
        /// How many exchanges every island evaluates before its final descent: all pairs at every step. A larger budget continues
        /// the search of a smaller one. Without it, and without `time_limit_s`: 33,554,432, but at least four steps for every rank.
        pub evaluations: Option<u64>,
        /// How long the search may take, in seconds; where there are fewer threads than islands, the islands share it. The result
        /// cannot be made again bit for bit.
        pub time_limit_s: Option<f64>,
        /// Number of independent searches; the best one wins. They run side by side on as many threads as the stage has, and their
        /// number never depends on it.
        pub islands: u32 = 4,
    }
}

params! {
    /// Branch and bound.
    pub struct ExactParams {
        /// Another seed gives another placement to begin with.
        pub seed: u64 = 1,
        /// How many nodes may be bounded. Without it, and without `time_limit_s`: until the optimum is proven, however long that takes.
        pub max_search_nodes: Option<u64>,
        /// How long the search may take, in seconds. The result cannot be made again bit for bit.
        pub time_limit_s: Option<f64>,
    }
}

/// A placement that another tool computed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ImportParams {
    /// The file with it. PE i of `KaHIP`, `VieM`, `SharedMap` and Scotch is slot i of the machine.
    pub path: InputPath,
    /// What the file is: `kahip` (also `VieM` and `SharedMap`: one PE a line), `scotch` (a count, then vertex and PE), `rankfile`
    /// (Open MPI), `machinefile` (one host a line, `host:4` or `host slots=4`), or `auto`, by what is in it.
    #[serde(default)]
    pub format: PlacementFormat,
    /// What an edge of the task graph weighs.
    #[serde(default)]
    pub weight: WeightChoice,
}

/// Formats of placements.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum PlacementFormat {
    /// Whichever it is, by what is in the file.
    #[default]
    Auto,
    /// One PE a line.
    Kahip,
    /// The number of vertices, then vertices and their PEs.
    Scotch,
    /// Open MPI's rank file.
    Rankfile,
    /// Hosts in the order of ranks.
    Machinefile,
}

impl PlacementFormat {
    /// What a file of this format is.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Auto => "placement",
            Self::Kahip => "partition as of KaHIP",
            Self::Scotch => "map of Scotch",
            Self::Rankfile => "rank file",
            Self::Machinefile => "machine file",
        }
    }
}

/// Whose choices the defaults of a search are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Preset {
    /// Those that hopmap has measured to be good.
    #[default]
    Default,
    /// Those of the papers.
    Paper,
}

/// A command that reads two matrices and writes a permutation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ExternalParams {
    /// A line for the shell, or a list of a program and its arguments, which no shell reads. In both `{input}` is a file with the
    /// whole problem as in QAPLIB, `{program}` and `{machine}` files with one of its matrices each, `{output}` the file that
    /// the command writes, in place of its standard output, `{seed}` is this parameter and `{seconds}` is `time_limit_s`. The shell
    /// gets paths quoted.
    pub command: ExternalCommand,
    /// Whether ranks and slots of the answer count from zero or from one.
    #[serde(default)]
    pub numbering: Numbering,
    /// The answer says which rank every slot has, not which slot every rank has.
    #[serde(default)]
    pub inverse: bool,
    /// How long the command may take, in seconds, before it is ended with all that it started. One that is told by
    /// `{seconds}` gets a tenth and a second more.
    #[serde(default)]
    pub time_limit_s: Option<f64>,
    /// What `{seed}` is.
    #[serde(default = "first_seed")]
    pub seed: u64,
    /// What an edge of the task graph weighs.
    #[serde(default)]
    pub weight: WeightChoice,
    /// What is minimised: a metric, or a weighted sum of several, as in `{ F = 1.0, T = 0.5 }`.
    #[serde(default)]
    pub objective: Goal,
    /// Ranks that have to be on a slot or a host.
    #[serde(default)]
    pub pinned: Vec<Pin>,
    /// Names of hosts that no rank may be on.
    #[serde(default)]
    pub forbidden: Vec<String>,
}

problem_params!(ExternalParams);

impl ExternalParams {
    /// The parameters of a command, all others as they are by default.
    #[must_use]
    pub fn new(command: ExternalCommand) -> Self {
        Self {
            command,
            numbering: Numbering::default(),
            inverse: false,
            time_limit_s: None,
            seed: first_seed(),
            weight: WeightChoice::default(),
            objective: Goal::default(),
            pinned: Vec::new(),
            forbidden: Vec::new(),
        }
    }
}

fn first_seed() -> u64 {
    1
}

/// Where counting begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Numbering {
    /// From zero if the answer has a zero, else from one.
    #[default]
    Auto,
    /// From zero.
    FromZero,
    /// From one.
    FromOne,
}

/// A command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ExternalCommand {
    /// A line for `sh`.
    Shell(String),
    /// A program and its arguments.
    Program(Vec<String>),
}

impl ExternalCommand {
    /// The texts it consists of.
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
                formatter.write_str("a line for the shell, or a list of a program and its arguments")
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
    /// Partition of the ranks down the tree of the machine.
    pub struct HierarchicalParams {
        /// Whose choices the defaults are: hopmap's, or those of the paper on `HierarchicalMap`, which takes the partition as it is and
        /// judges it by T. What is given goes before both.
        pub preset: Preset,
        /// Another seed gives another placement.
        pub seed: u64 = 1,
        /// The levels of the machine on which ranks are partitioned: `all`, or a list counted from the root, as in `[1]`, `[2]` or
        /// `[1, 2]`. Below them, and where nothing is left to choose, ranks lie in their order.
        pub levels: LevelChoice,
        /// What becomes of levels above that are not listed. The paper does not say which one its `L2` is.
        pub other_levels: OtherLevels,
        /// Whether the partition is the result whatever it costs. Else rank order and, for grids of ranks, boxes are starts beside it,
        /// and the best start is refined. By default where `levels` is a list.
        pub partition_only: Option<bool>,
        /// What cuts the ranks into parts.
        pub partitioner: Partitioner,
        /// How many exchanges are evaluated to refine the placement. Without it, and without `time_limit_s`: 32 for every
        /// rank, or none of a partition alone.
        pub evaluations: Option<u64>,
        /// How long all may take, in seconds; what the construction leaves of it is spent on refinement. The result cannot be made
        /// again bit for bit.
        pub time_limit_s: Option<f64>,
    }
    /// What is minimised: a metric, or a weighted sum of several, as in `{ F = 1.0, T = 0.5 }`. Partitions have
    /// a small F; the refinement minimises the objective.
    objective
}

impl HierarchicalParams {
    /// The choices of the paper.
    #[must_use]
    pub fn paper() -> Self {
        Self {
            preset: Preset::Paper,
            partition_only: Some(true),
            objective: Goal(Objective::T),
            ..Self::default()
        }
    }
}

/// What becomes of levels that are not partitioned above one that is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum OtherLevels {
    /// Ranks lie on them in their order: `L2` partitions the first ranks among the hosts of the first switch, and so on.
    #[default]
    InOrder,
    /// They are ignored: `L2` partitions all ranks among all hosts at once.
    Ignored,
}

/// What cuts the ranks into parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Partitioner {
    /// The partitioner of hopmap.
    #[default]
    Own,
    /// The recursive bisection of METIS 5, whose parts are then made exact.
    Metis,
    /// Scotch's program `scotch_gmap` (Debian: scotch), whose parts are then made exact.
    Scotch,
}

/// The levels of a machine on which ranks are partitioned.
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
            "description": "`all`, or levels counted from the root: a list, or their digits behind an L, as in `L12`.",
            "anyOf": [
                { "type": "string", "pattern": "^(all|L[1-9]+)$" },
                { "type": "array", "items": { "type": "integer", "minimum": 1 } },
            ],
        })
    }
}
