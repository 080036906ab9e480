//! Parameters of the stages.

use std::path::PathBuf;

use hopmap_islands::{Budget, SearchError};
use hopmap_model::{DelayModel, InputPath};
use hopmap_replay::{Distance, Lookup};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Whether the tasks of a rank stay together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Ranks {
    /// All tasks of a rank run on one slot, which no other rank takes.
    #[default]
    Together,
    /// Every task runs where it likes, as if it belonged to no rank.
    Free,
}

/// Declares the parameters of a stage and what they are by default, and beside its own those that say what the processors are. Serde can
/// flatten a struct into another only where it lets unknown keys pass.
macro_rules! with_machine {
    ($(#[$meta:meta])* pub struct $name:ident { $($own:tt)* }) => {
        with_machine! {
            $(#[$meta])*
            pub struct $name { $($own)* }
            machine {
                /// Number of processors. Needless with a `system` or `procs`; with one of them, only the first so many are used.
                processors: Option<u32>,
                /// How fast every processor is: a task of work w takes w / speed. All 1 by default.
                speeds: Vec<f64>,
                /// When every processor can begin. All 0 by default.
                available: Vec<f64>,
                /// What a message between two processors takes at least; 0 by default. Of a `system`: for every message beside what its
                /// links take, or for a distance of cost 1.
                latency: Option<f64>,
                /// Bytes that a message moves in a unit of time. By default 1 where the weights of edges are times, and 1.25e9 (10 Gbit/s)
                /// where they are bytes. Of a `system`: over links that do not say it, or over a distance of cost 1.
                bandwidth: Option<f64>,
                /// Where the times of messages on a `system` come from. By default from its links if all of them say their bandwidth.
                distance: Option<Distance>,
                /// Durations of a test on every process, `procs.vct` of PARUS: a task of weight w takes w · duration / size of the
                /// test.
                procs: Option<InputPath>,
                /// What messages between all processes take, `network.*` of PARUS as text or netCDF.
                network: Option<InputPath>,
                /// What a message takes whose length is not in `network`.
                lookup: Lookup,
                /// Whether the first process in `procs` and `network` is the coordinator of PARUS, which runs no task.
                coordinator: bool,
                /// What a message costs. By default `receive`, the model of PARUS, where `procs` or `network` is given, and `overlap`
                /// elsewhere.
                model: Option<DelayModel>,
                /// Whether all tasks of a rank stay together, as those of a trace have to.
                ranks: Ranks,
            }
        }
    };
    (
        $(#[$meta:meta])*
        pub struct $name:ident { $($(#[$of_own:meta])* pub $own:ident: $own_type:ty $(= $default:expr)?,)* }
        machine { $($(#[$of_machine:meta])* $machine:ident: $type:ty,)* }
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
        #[serde(deny_unknown_fields, default)]
        pub struct $name {
            $($(#[$of_own])* pub $own: $own_type,)*
            $($(#[$of_machine])* pub $machine: $type,)*
        }

        impl Default for $name {
            fn default() -> Self {
                Self {
                    $($own: or_default!($own_type $(, $default)?),)*
                    $($machine: <$type>::default(),)*
                }
            }
        }

        impl From<&$name> for MachineParams {
            fn from(params: &$name) -> Self {
                Self { $($machine: Clone::clone(&params.$machine),)* }
            }
        }
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

with_machine! {
    /// What the processors are and what messages between them take, as every scheduler is told it.
    pub struct MachineParams {}
}

impl MachineParams {
    /// What a message costs.
    pub(crate) fn delay_model(&self) -> DelayModel {
        self.model.unwrap_or(match self.procs.is_some() || self.network.is_some() {
            true => DelayModel::Receive,
            false => DelayModel::Overlap,
        })
    }
}

with_machine! {
    /// A list heuristic.
    pub struct ListParams {
        /// Which one; `best` tries all and takes the best.
        pub heuristic: Heuristic,
    }
}

/// Makes [`Heuristic`] of a table of names.
macro_rules! heuristics {
    ($count:literal: $($(#[$doc:meta])* $heuristic:ident = $name:literal,)*) => {
        /// A list heuristic. Where a program belongs to ranks all are one: the best placement that needs no search.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
        #[serde(rename_all = "kebab-case")]
        pub enum Heuristic {
            /// The best of all.
            #[default]
            Best,
            $($(#[$doc])* $heuristic,)*
        }

        impl Heuristic {
            /// All single ones, in the order in which `best` tries them.
            pub const ALL: [Self; $count] = [$(Self::$heuristic),*];

            /// Name in pipelines and tables.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self {
                    Self::Best => "best",
                    $(Self::$heuristic => $name,)*
                }
            }
        }
    };
}

heuristics! {
    16:
    /// Heterogeneous earliest finish time (Topcuoglu, Hariri, Wu 2002): the task with the longest way to the end first, where it is
    /// done first, between others if there is room.
    Heft = "heft",
    /// HEFT in which the way to the end counts what tasks take on the processor that is the fastest for them.
    HeftFastest = "heft-fastest",
    /// HEFT from the end: all messages are turned round, and what would be done last comes first.
    HeftBackward = "heft-backward",
    /// HEFT that looks one step ahead: every task goes where its children could be done first (Bittencourt, Sakellariou, Madeira
    /// 2010).
    Lookahead = "lookahead",
    /// Critical path on a processor (Topcuoglu, Hariri, Wu 2002).
    Cpop = "cpop",
    /// Predict earliest finish time with an optimistic cost table (Arabnejad, Barbosa 2014).
    Peft = "peft",
    /// Modified critical path (Wu, Gajski 1990): the task first that must begin first, where it can.
    Mcp = "mcp",
    /// Highest level first with estimated times (Adam, Chandy, Dickson 1974).
    Hlfet = "hlfet",
    /// Earliest time first (Hwang, Chow, Anger, Lee 1989). As the next four it compares all ready tasks for every step.
    Etf = "etf",
    /// Dynamic level scheduling (Sih, Lee 1993).
    Dls = "dls",
    /// Of all ready tasks the one that can be done first (Ibarra, Kim 1977).
    MinMin = "min-min",
    /// Of all ready tasks the one that is done last where it is done first (Ibarra, Kim 1977).
    MaxMin = "max-min",
    /// Of all ready tasks the one that loses most if it gets the second best processor (Maheswaran, Ali, Siegel, Hensgen, Freund
    /// 1999).
    Sufferage = "sufferage",
    /// The longest paths stay together (Kim, Browne 1988). Looks through all tasks for every path.
    LinearClusters = "linear-clusters",
    /// Tasks stay with a parent if they can begin earlier there (after Yang, Gerasoulis 1994).
    DominantSequence = "dominant-sequence",
    /// Everything on the processor that is done first with it.
    Serial = "serial",
}

impl Heuristic {
    /// Whether its time may grow with the square of the number of tasks.
    #[must_use]
    pub fn is_quadratic(self) -> bool {
        matches!(
            self,
            Self::Lookahead
                | Self::Etf
                | Self::Dls
                | Self::MinMin
                | Self::MaxMin
                | Self::Sufferage
                | Self::LinearClusters
        )
    }
}

with_machine! {
    /// The proven optimum of a small problem, or a bound: branch and bound over the orders in which tasks begin. Programs of up to 30
    /// tasks are often solved within a second, larger ones if messages are long or there are many processors; with more than 128 tasks
    /// there is only a bound.
    pub struct ExactParams {
        /// How many partial schedules are looked at at most: 20 million by default, some 20 seconds, unless `time_limit_s` is given.
        pub max_search_nodes: Option<u64>,
        /// How long the search may take, in seconds. The result cannot be made again bit for bit.
        pub time_limit_s: Option<f64>,
    }
}

with_machine! {
    /// The best schedule that a budget allows: lists, annealing from the best of them and from what it found, and branch and bound where it
    /// can prove something. Ends early where the schedule is as good as the lower bound.
    pub struct AutoParams {
        /// Another seed gives another search.
        pub seed: u64 = 1,
        /// How many schedules every island evaluates; a node of branch and bound counts as one. By default 134,217,728 divided by the number
        /// of tasks, at most 2,097,152 and at least 1024.
        pub evaluations: Option<u64>,
        /// How long the search may take, in seconds. The result cannot be made again bit for bit.
        pub time_limit_s: Option<f64>,
        /// Number of searches side by side, 2 by default; their number never depends on that of the threads.
        pub islands: u32 = 2,
    }
}

with_machine! {
    /// The genetic algorithm of PARUS. What is not said is as in `ini`, else as in the `sch.ini` that comes with PARUS, except for when the
    /// search ends.
    pub struct GeneticParams {
        /// Another seed gives another search.
        pub seed: u64 = 1,
        /// How many schedules every island evaluates. Without `max_cycles` the search goes on until then.
        pub evaluations: Option<u64>,
        /// How long the search may take, in seconds. The result cannot be made again bit for bit. Without `max_cycles` the search
        /// goes on until then.
        pub time_limit_s: Option<f64>,
        /// Number of islands, each with a population of its own.
        pub islands: u32 = 4,
        /// A file of parameters as PARUS reads it, `sch.ini`; what is given here beside it counts more.
        pub ini: Option<InputPath>,
        /// Most schedules of a population, `creatures:max` of PARUS; 100 by default, fewer where a program has more than 80,000 tasks.
        pub population: Option<u32>,
        /// Part of them that the first population has, `creatures:start_part`; 1 by default.
        pub start_part: Option<f64>,
        /// How much worse a schedule counts at most, by chance, when the survivors are chosen: a makespan F counts as
        /// F · (1 + r · penalty) with a random r from 0 to 1. `creatures:random_selecting` of the old program; 0.1 by default.
        pub penalty: Option<f64>,
        /// How many of the best survive whatever chance says, `creatures:random_selecting` of the new program; 1 by default (the old
        /// program). The best ever seen is kept beside the population in any case.
        pub elites: Option<u32>,
        /// Most generations, `stop:max_cycles`. By default 2000 where nothing else ends the search.
        pub max_cycles: Option<u32>,
        /// A generation is idle whose best schedule is by no more than this better than the best of the generation before,
        /// `stop:min_difference`, in units of time; 0.0001 by default.
        pub min_difference: Option<f64>,
        /// Idle generations in a row that end the search, `stop:idle_iterations`. By default one where `min_difference` is given, and otherwise
        /// there is no such end.
        pub idle_iterations: Option<u32>,
        /// Mutants of a generation, as a part of the population, `mutate_possibilities:avg`: the mean of a number that is drawn anew for
        /// every generation, from half to one and a half times as many; 0.5 by default.
        pub mutation: Option<f64>,
        /// Probability that a gene that mutates gets another processor, `mutate_possibilities:processor`; 0.6 by default.
        pub mutation_processor: Option<f64>,
        /// Probability that a gene that mutates gets another rank, `mutate_possibilities:priority`; 0.2 by default.
        pub mutation_priority: Option<f64>,
        /// Genes of a mutant that mutate, as a part of all, `mutate_possibilities:avg_gens`, also the mean of a number that is drawn; 0.2 by
        /// default, and always one gene at least.
        pub mutation_genes: Option<f64>,
        /// Children of two parents in a generation, as a part of the population, `recombination:avg_possibility`, also the mean of a
        /// number that is drawn; 0.6 by default.
        pub recombination: Option<f64>,
        /// Points of a crossover, `recombination:avg_points`, also the mean of a number that is drawn; 2 by default. Between two points
        /// a child has whole entries, processor and rank, of the one parent and then of the other.
        pub crossover_points: Option<u32>,
        /// What becomes of children whose ranks contradict the program.
        pub admissible: Admissible,
        /// How often a child is made anew that is inadmissible, with `admissible = "reject"`, before it is left out; 100 by default.
        pub tries: u32 = 100,
        /// Whether the schedules of all list heuristics are in the first population. PARUS begins with random ones.
        pub seeded: bool,
        /// After how many generations the best schedule of every island goes to the next one in the ring, where it takes the place of the
        /// worst if it is better; 0: never. 10 by default.
        pub exchange_interval: u32 = 10,
    }
}

/// What becomes of a child whose ranks contradict the program: tasks wait for each other in a cycle, some because of a message and
/// some for their turns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Admissible {
    /// There are none: ranks are priorities. Of all tasks that no longer wait for another, the one with the lowest rank comes next.
    #[default]
    Repair,
    /// It is thrown away and made anew, as in PARUS.
    Reject,
}

with_machine! {
    /// A schedule computed again by a program that shares no code with the schedulers.
    pub struct CheckParams {
        /// A `.sch` file of PARUS in place of a schedule.
        pub path: Option<InputPath>,
        /// Whether an order that `check_schedule` of PARUS refuses gives way to the best one found that it accepts.
        pub parus_order: bool,
    }
}

/// A task graph from a file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ImportParams {
    /// The file.
    pub path: InputPath,
    /// Its format; by default what its contents look like.
    #[serde(default)]
    pub format: Option<GraphFormat>,
    /// What weights of edges are multiplied by, since they have to be whole: 1000 counts in thousandths. The `bandwidth` of a scheduler
    /// takes it back.
    #[serde(default = "unscaled")]
    pub scale: f64,
    /// The attribute of nodes of a DOT file that is their work. By default the first that any node has of `Weight`, `weight`,
    /// `cost` and `size`.
    #[serde(default)]
    pub node_weight: Option<String>,
    /// The attribute of edges of a DOT file that is what they send. By default the first that any edge has of `Weight`, `weight`,
    /// `cost` and `size`; messages are empty if none has one.
    #[serde(default)]
    pub edge_weight: Option<String>,
}

impl ImportParams {
    /// The graph in a file, in the format that its contents look like.
    #[must_use]
    pub fn of(file: impl Into<PathBuf>) -> Self {
        Self {
            path: InputPath::new(file),
            format: None,
            scale: unscaled(),
            node_weight: None,
            edge_weight: None,
        }
    }
}

fn unscaled() -> f64 {
    1.0
}

/// A format of task graphs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum GraphFormat {
    /// `.grf` of PARUS.
    Parus,
    /// DOT of Graphviz with weights.
    Dot,
    /// Standard Task Graph Set.
    Stg,
    /// `WfFormat` of `WfCommons`, JSON.
    Wfformat,
}

/// A schedule as text that other programs read.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ExportParams {
    /// Which text.
    pub format: ExportFormat,
}

/// A text that a schedule is written as.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ExportFormat {
    /// `.sch` of PARUS.
    Sch,
    /// JSON that <https://ui.perfetto.dev> and `chrome://tracing` open, with an arrow for every message.
    Perfetto,
    /// A Gantt chart as a picture.
    Svg,
    /// A Gantt chart as a page.
    Html,
    /// A trace in the format of Pajé, for `ViTE` and `pajeng`.
    Paje,
    /// `WfFormat` of `WfCommons` with what was executed where and when.
    Wfformat,
}

/// The slots that the ranks of a schedule run on.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MappingParams {}

/// Searches draw their seeds by the kind of their stage, and have a budget.
macro_rules! search {
    ($params:ty, $kind:literal) => {
        impl $params {
            pub(crate) const KIND: &'static str = $kind;

            pub(crate) fn budget(&self) -> Result<Budget, SearchError> {
                Budget::new(self.evaluations, self.time_limit_s, self.islands)
            }
        }
    };
}

search!(AutoParams, "schedule/auto");
search!(GeneticParams, "schedule/genetic");
