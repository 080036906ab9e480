//! Parameters of the stages.

use std::path::PathBuf;

use hopmap_islands::Budget;
use hopmap_model::{DelayModel, InputPath, OutOfRange};
use hopmap_replay::{Distance, Lookup};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Whether the tasks of a rank, as in a trace, stay together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Ranks {
    /// All tasks of a rank run on one slot, which it does not share with other ranks. Schedulers refuse them:
    /// `map/auto` searches for the slots, and `schedule/replay` for the times.
    #[default]
    Together,
    /// Tasks run on any processor, regardless of their rank.
    Free,
}

/// Declares the parameters of a stage with their defaults: its own and those of the machine. `flatten` is not used: serde would
/// accept unknown keys.
macro_rules! with_machine {
    ($(#[$meta:meta])* pub struct $name:ident { $($own:tt)* }) => {
        with_machine! {
            $(#[$meta])*
            pub struct $name { $($own)* }
            machine {
                /// Number of processors.
                ///
                /// Optional with a `system` or `procs`; then only the first processors are used.
                processors: Option<u32>,
                /// Speed of every processor: a task of work w takes w / speed.
                ///
                /// By default all speeds are 1.
                speeds: Vec<f64>,
                /// Time from which every processor is available.
                ///
                /// By default all are available from 0.
                available: Vec<f64>,
                /// Minimum time of a message between two processors; 0 if omitted.
                ///
                /// With a `system`, the latency of every message in addition to that of its links, or of a distance of cost 1.
                latency: Option<f64>,
                /// Bytes that a message transfers per unit of time.
                ///
                /// By default 1 if edge weights are times, and 1.25e9 (10 Gbit/s) if they are bytes. With a `system`, the
                /// bandwidth of links that specify none, or of a distance of cost 1.
                bandwidth: Option<f64>,
                /// Source of message times on a `system`.
                ///
                /// By default its links, if all of them have a bandwidth.
                distance: Option<Distance>,
                /// Benchmark durations of every process, `procs.vct` of PARUS.
                ///
                /// A task of weight w takes w · duration / size of the benchmark.
                procs: Option<InputPath>,
                /// Message times between all processes, `network.*` of PARUS as text or netCDF.
                network: Option<InputPath>,
                /// Time of a message whose length is not in `network`.
                lookup: Lookup,
                /// Treat the first process in `procs` and `network` as the coordinator of PARUS, which runs no tasks.
                coordinator: bool,
                /// Cost model of messages.
                ///
                /// By default `receive`, the model of PARUS, if `procs` or `network` is given, otherwise `overlap`.
                model: Option<DelayModel>,
            }
        }
    };
    (
        $(#[$meta:meta])*
        pub struct $name:ident { $($(#[$of_own:meta])* pub $own:ident: $own_type:ty $(= $default:expr)?,)* }
        machine { $($(#[$of_machine:meta])* $machine:ident: $type:ty,)* }
    ) => {
        hopmap_model::parameters! {
            $(#[$meta])*
            pub struct $name {
                $($(#[$of_own])* pub $own: $own_type $(= $default)?,)*
                $($(#[$of_machine])* pub $machine: $type,)*
            }
        }

        impl From<&$name> for MachineParams {
            fn from(params: &$name) -> Self {
                Self { $($machine: Clone::clone(&params.$machine),)* }
            }
        }
    };
}

with_machine! {
    /// Processors, and the times of messages between them; common to all schedulers.
    pub struct MachineParams {}
}

impl MachineParams {
    /// Cost model of messages.
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
        /// The heuristic; `best` tries all and returns the best schedule.
        pub heuristic: Heuristic,
        /// Whether the tasks of a rank, as in a trace, stay together.
        pub ranks: Ranks,
    }
}

hopmap_model::named_values! {
    /// A list heuristic.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "kebab-case")]
    pub enum Heuristic {
        /// The best of all heuristics.
        #[default]
        Best = "best",
        /// Heterogeneous earliest finish time (Topcuoglu, Hariri, Wu 2002): highest upward rank first, earliest finish, with
        /// insertion into gaps.
        Heft = "heft",
        /// HEFT with upward ranks from the execution times on the fastest processor of each task.
        HeftFastest = "heft-fastest",
        /// HEFT on the reversed graph, so that the last tasks are scheduled first.
        HeftBackward = "heft-backward",
        /// HEFT with lookahead: each task goes to the processor on which its children could finish first (Bittencourt, Sakellariou,
        /// Madeira 2010).
        Lookahead = "lookahead",
        /// Critical path on a processor (Topcuoglu, Hariri, Wu 2002).
        Cpop = "cpop",
        /// Predict earliest finish time, with an optimistic cost table (Arabnejad, Barbosa 2014).
        Peft = "peft",
        /// Modified critical path (Wu, Gajski 1990): smallest latest start time first, earliest start.
        Mcp = "mcp",
        /// Highest level first with estimated times (Adam, Chandy, Dickson 1974).
        Hlfet = "hlfet",
        /// Earliest time first (Hwang, Chow, Anger, Lee 1989). Like the next four, it compares all ready tasks in every step.
        Etf = "etf",
        /// Dynamic level scheduling (Sih, Lee 1993).
        Dls = "dls",
        /// Min-min: the ready task with the earliest finish time (Ibarra, Kim 1977).
        MinMin = "min-min",
        /// Max-min: the ready task with the latest of the earliest finish times (Ibarra, Kim 1977).
        MaxMin = "max-min",
        /// Sufferage: the ready task that loses most on its second-best processor (Maheswaran, Ali, Siegel, Hensgen, Freund 1999).
        Sufferage = "sufferage",
        /// Linear clustering: the longest paths stay together (Kim, Browne 1988). Examines all tasks for every path.
        LinearClusters = "linear-clusters",
        /// Dominant sequence clustering: tasks join a parent if they can start earlier there (after Yang, Gerasoulis 1994).
        DominantSequence = "dominant-sequence",
        /// All tasks on the processor that finishes first.
        Serial = "serial",
    }
}

impl Heuristic {
    /// Those that `best` tries, in this order.
    pub fn tried() -> impl Iterator<Item = Self> {
        Self::ALL.into_iter().filter(|one| *one != Self::Best)
    }

    /// Whether its time may grow quadratically with the number of tasks.
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
    /// Branch and bound over the orders in which tasks start: the proven optimum of a small problem, or a lower bound. Programs
    /// of up to 30 tasks are often solved within a second, larger ones if messages are long or there are many processors. With
    /// more than 128 tasks there is only a bound.
    pub struct ExactParams {
        /// Maximum number of partial schedules.
        ///
        /// Default: 20 million, about 20 seconds, unless `time_limit_s` is given.
        pub max_search_nodes: Option<u64>,
        /// Time limit in seconds; the result is then not reproducible bit-identically.
        pub time_limit_s: Option<f64>,
        /// Whether the tasks of a rank, as in a trace, stay together.
        pub ranks: Ranks,
    }
}

with_machine! {
    /// The best schedule within a budget: list heuristics, simulated annealing, and branch and bound. Ends early if the makespan
    /// equals the lower bound.
    pub struct AutoParams {
        /// Random seed.
        pub seed: u64 = 1,
        /// Number of schedules that every island evaluates; a node of branch and bound counts as one.
        ///
        /// Default: 134,217,728 divided by the number of tasks, at most 2,097,152 and at least 1024.
        pub evaluations: Option<u64>,
        /// Time limit in seconds; the result is then not reproducible bit-identically.
        pub time_limit_s: Option<f64>,
        /// Number of parallel searches, independent of the number of threads.
        pub islands: u32 = 2,
        /// Whether the tasks of a rank, as in a trace, stay together.
        pub ranks: Ranks,
    }
}

with_machine! {
    /// The genetic algorithm of PARUS. Omitted parameters are those of `ini`, otherwise those of the `sch.ini` that comes with
    /// PARUS, except for the stop criteria.
    pub struct GeneticParams {
        /// Random seed.
        pub seed: u64 = 1,
        /// Number of schedules that every island evaluates.
        ///
        /// Without `max_cycles` this is the stop criterion.
        pub evaluations: Option<u64>,
        /// Time limit in seconds; the result is then not reproducible bit-identically.
        ///
        /// Without `max_cycles` this is the stop criterion.
        pub time_limit_s: Option<f64>,
        /// Number of islands, each with its own population.
        pub islands: u32 = 4,
        /// Parameter file of PARUS, `sch.ini`; parameters given here override it.
        pub ini: Option<InputPath>,
        /// Maximum size of the population, `creatures:max` of PARUS.
        ///
        /// Default: 100, less for programs with more than 80,000 tasks.
        pub population: Option<u32>,
        /// Fraction of the population that the first generation has, `creatures:start_part`; 1 if omitted.
        pub start_part: Option<f64>,
        /// Maximum random penalty in the selection of survivors, `creatures:random_selecting` of the old program.
        ///
        /// A makespan F counts as F · (1 + r · penalty), with r random from 0 to 1. Default: 0.1.
        pub penalty: Option<f64>,
        /// Number of best individuals that survive without a penalty, `creatures:random_selecting` of the new program.
        ///
        /// Default: 1, as in the old program. The incumbent is always kept in addition to the population.
        pub elites: Option<u32>,
        /// Maximum number of generations, `stop:max_cycles`.
        ///
        /// Default: 2000 if nothing else ends the search.
        pub max_cycles: Option<u32>,
        /// Minimum improvement of the best makespan, without which a generation is idle: `stop:min_difference`, in units of time.
        ///
        /// Default: 0.0001.
        pub min_difference: Option<f64>,
        /// Number of consecutive idle generations that end the search, `stop:idle_iterations`.
        ///
        /// Default: 1 if `min_difference` is given, otherwise unlimited.
        pub idle_iterations: Option<u32>,
        /// Mutants per generation as a fraction of the population, `mutate_possibilities:avg`.
        ///
        /// This is a mean: the number is drawn for every generation, from half to one and a half times as many. Default: 0.5.
        pub mutation: Option<f64>,
        /// Probability that a mutating gene changes its processor, `mutate_possibilities:processor`; 0.6 if omitted.
        pub mutation_processor: Option<f64>,
        /// Probability that a mutating gene changes its rank, `mutate_possibilities:priority`; 0.2 if omitted.
        pub mutation_priority: Option<f64>,
        /// Mutating genes as a fraction of all genes of a mutant, `mutate_possibilities:avg_gens`.
        ///
        /// This is the mean of a random number, which is at least one gene. Default: 0.2.
        pub mutation_genes: Option<f64>,
        /// Children per generation as a fraction of the population, `recombination:avg_possibility`.
        ///
        /// This is the mean of a random number. Default: 0.6.
        pub recombination: Option<f64>,
        /// Number of crossover points, `recombination:avg_points`.
        ///
        /// This is the mean of a random number. Between two points a child has complete entries (processor and rank) of
        /// alternating parents. Default: 2.
        pub crossover_points: Option<u32>,
        /// Treatment of children whose ranks contradict the program.
        pub admissible: Admissible,
        /// Number of attempts to replace an inadmissible child with `admissible = "reject"`; 100 if omitted.
        pub tries: u32 = 100,
        /// Include the schedules of all list heuristics in the first population; PARUS starts from random ones.
        pub seeded: bool,
        /// Generations between migrations; 0 disables them.
        ///
        /// The best schedule of every island is sent to the next one in the ring, where it replaces the worst if it is better.
        /// Default: 10.
        pub exchange_interval: u32 = 10,
        /// Whether the tasks of a rank, as in a trace, stay together.
        pub ranks: Ranks,
    }
}

/// Treatment of a child whose ranks contradict the program: tasks wait for each other in a cycle of messages and turns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Admissible {
    /// Treat ranks as priorities, so that no child is inadmissible: of all ready tasks, the one with the lowest rank is next.
    #[default]
    Repair,
    /// Discard the child and create another one, as PARUS does.
    Reject,
}

with_machine! {
    /// The tasks of a traced program on the slots of a mapping, in their order.
    pub struct ReplayParams {}
}

with_machine! {
    /// A schedule recomputed by code that shares nothing with the schedulers.
    pub struct CheckParams {
        /// A `.sch` file of PARUS instead of a schedule.
        pub path: Option<InputPath>,
        /// Replace an order that `check_schedule` of PARUS rejects by the best accepted one found.
        pub parus_order: bool,
        /// Whether the tasks of a rank, as in a trace, stay together.
        pub ranks: Ranks,
    }
}

/// A task graph from a file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ImportParams {
    /// File with the task graph.
    pub path: InputPath,
    /// Format of the file; detected from its contents if omitted.
    #[serde(default)]
    pub format: Option<GraphFormat>,
    /// Factor for edge weights, which must be integers: 1000 counts in thousandths.
    ///
    /// The same `bandwidth` of a scheduler compensates for it.
    #[serde(default = "hopmap_model::number::<1, f64>")]
    pub scale: f64,
    /// Node attribute of a DOT file that contains the work.
    ///
    /// By default the first one that any node has of `Weight`, `weight`, `cost` and `size`.
    #[serde(default)]
    pub node_weight: Option<String>,
    /// Edge attribute of a DOT file that contains the message size.
    ///
    /// By default the first one that any edge has of `Weight`, `weight`, `cost` and `size`; if there is none, messages are empty.
    #[serde(default)]
    pub edge_weight: Option<String>,
}

impl ImportParams {
    /// The graph in a file, with detected format.
    #[must_use]
    pub fn of(file: impl Into<PathBuf>) -> Self {
        Self { path: InputPath::new(file), format: None, scale: 1.0, node_weight: None, edge_weight: None }
    }
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

/// A schedule as text for other programs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ExportParams {
    /// Output format.
    pub format: ExportFormat,
}

/// An output format of schedules.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ExportFormat {
    /// `.sch` of PARUS.
    Sch,
    /// JSON for <https://ui.perfetto.dev> and `chrome://tracing`, with an arrow for every message.
    Perfetto,
    /// A Gantt chart as SVG.
    Svg,
    /// A Gantt chart as an HTML page.
    Html,
    /// A trace in the format of Pajé, for `ViTE` and `pajeng`.
    Paje,
    /// `WfFormat` of `WfCommons`, with the execution.
    Wfformat,
}

/// Searches derive random streams from the kind of their stage, and have a budget.
macro_rules! search {
    ($params:ty, $kind:literal) => {
        impl $params {
            pub(crate) const KIND: &'static str = $kind;

            pub(crate) fn budget(&self) -> Result<Budget, OutOfRange> {
                Budget::new(self.evaluations, self.time_limit_s, self.islands)
            }
        }
    };
}

search!(AutoParams, "schedule/auto");
search!(GeneticParams, "schedule/genetic");
