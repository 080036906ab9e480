//! Parameters of GraphHunter's algorithms: annealing, genetic and composite.

use hopmap_model::{Weight, WeightChoice};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Goal, Pin, Preset, ProblemParams};

/// Passes the parameters shared by `map/annealing` and the table `annealing` of `map/composite` to a macro.
macro_rules! annealing {
    ($next:ident! { $($own:tt)* }) => {
        $next! {
            $($own)* and
            /// Total iterations of every solver. By default 50,000 up to 256 ranks and 100,000 beyond (the
            /// papers, up to 1024). Proportional cooling reaches the final temperature earlier, after 1604
            /// temperatures.
            pub iterations: Option<u64>,
            /// Unit of an iteration: a temperature or a candidate. The papers do not specify it.
            pub iteration: Iteration,
            /// Candidates examined at one temperature, in `moves_unit`. By default 50 (the papers); for n >
            /// 1024 ranks, n / 20.
            pub moves_per_temperature: Option<u32>,
            /// Whether `moves_per_temperature` counts candidates or candidates per rank. The papers give 50;
            /// the code of their library multiplies by n.
            pub moves_unit: MovesUnit,
            /// Accepted candidates after which the temperature falls at once. By default a tenth of the
            /// examined ones (the papers' library), at least 1.
            pub max_accepted_per_temperature: Option<u32>,
            /// Cooling schedule.
            pub cooling: Cooling,
            /// Cooling rate: q of proportional or β of Cauchy cooling. The former is between 0 and 1, 0.99 by
            /// default (the papers' library). The latter is above 0 and in 1 / unit of F, by default (T0 −
            /// T1) / (C · T0 · T1) with the initial and final temperature and C coolings; the papers print
            /// the numerator with the opposite sign. C is `iterations`, or `iterations` /
            /// `moves_per_temperature` if iterations are candidates.
            pub cooling_rate: Option<f64>,
            /// Initial temperature in the unit of F. By default 0.3 · F(start) / −ln 0.3 (the papers'
            /// library).
            pub initial_temperature: Option<f64>,
            /// Final temperature in the unit of F, below which a solver ends. By default 10⁻⁷ times the
            /// initial one, which is about the 0.01 of the papers' library for their instances.
            pub final_temperature: Option<f64>,
            /// Iterations without improvement after which a solver ends. By default unlimited.
            pub patience: Option<u64>,
            /// Whether a solver ends at a temperature at which it accepts nothing, as in the papers' library.
            pub stop_when_frozen: bool,
            /// Neighbourhood from which candidates are drawn. By default `towards` on a tree if ranks have
            /// few neighbours, otherwise `random`.
            pub move_type: Option<MoveType>,
        }
    };
}

/// Passes the parameters shared by `map/genetic` and the table `genetic` of `map/composite` to a macro.
macro_rules! genetic {
    ($next:ident! { $($own:tt)* }) => {
        $next! {
            $($own)* and
            /// Population size of every island. By default one individual per rank up to 1024 (the papers),
            /// at least 8. For more ranks n: 1,048,576 / n, or 128,000 / n and at least 4 if each is
            /// annealed.
            pub population: Option<u32>,
            /// Number of generations: crossover, mutation, replacement, migration. By default 1000 up to 256
            /// ranks, 500 up to 1024, 200 beyond, and with other `offspring` as many as breed as many
            /// children; the papers do not give the number.
            pub iterations: Option<u64>,
            /// Children per generation, which replace the worst individuals. By default half of the
            /// population; with the papers' choices 2, as in the algorithm AGE of their library.
            pub offspring: Option<u32>,
            /// Whether children replace the worst individuals always, or only if they are better.
            pub replacement: Replacement,
            /// Tournament size: a parent is the best of this many random individuals. By default 2 (the
            /// papers' library).
            pub tournament: u32 = 2,
            /// Crossover operator.
            pub crossover: Crossover,
            /// Probability that two parents are crossed instead of copied; 1 by default (the papers).
            pub crossover_probability: f64 = 1.0,
            /// Mutation probability of a gene: it is exchanged with another one of the child. By default 0.001
            /// (the papers).
            pub mutation: f64 = 0.001,
            /// Whether every gene mutates with this probability, or a generation has the expected number.
            pub mutations: Mutations,
            /// Migration topology: destination of the best individuals after every generation.
            pub scheme: Scheme,
            /// Role of the master in the scheme `master-slave`.
            pub master: Master,
            /// Migrants that an island sends, or receives from the master, after every generation; 1 by
            /// default (more were worse in the papers).
            pub migrants: u32 = 1,
            /// Whether to mutate a child that is a copy of a parent. The papers keep copies; a converged
            /// population then finds nothing new.
            pub mutate_clones: bool = true,
            /// Whether to accept migrants that the population already contains, as in the papers. Duplicates
            /// may take over the population.
            pub duplicate_migrants: bool,
            /// Sweeps of a short annealing of every new individual (memetic algorithm), after which a child
            /// replaces the worst individual if it is better; none by default, as in the papers. The default
            /// population is then 16. Structured programs do well with 1000 and `crossover = "uniform"`.
            pub child_sweeps: u32,
        }
    };
}

/// Declares a table of `map/composite` and its conversion into the parameters of the stage that runs this
/// part alone.
macro_rules! part {
    (
        $(#[$meta:meta])* pub struct $name:ident of $params:ident
        and $($(#[$of_field:meta])* pub $field:ident: $type:ty $(= $default:expr)?,)*
    ) => {
        hopmap_model::parameters! {
            $(#[$meta])*
            #[derive(Copy)]
            pub struct $name {
                $($(#[$of_field])* pub $field: $type $(= $default)?,)*
            }
        }

        impl From<$name> for $params {
            fn from(part: $name) -> Self {
                Self { $($field: part.$field,)* ..Self::default() }
            }
        }
    };
}

annealing! { params! {
    /// Parameters of `map/annealing` (GraphHunter's PSA).
    pub struct AnnealingParams {
        /// Source of the defaults: hopmap or the papers. Explicit parameters take precedence.
        pub preset: Preset,
        /// Random seed.
        pub seed: u64 = 1,
        /// Evaluation limit of every island, in candidates. Without `iterations`, a search that ends earlier
        /// restarts from another random mapping, so a larger limit continues a smaller one. Without it and
        /// `time_limit_s`: one run of `iterations`.
        pub evaluations: Option<u64>,
        /// Time limit in seconds; without `iterations` the search restarts until then. Results with a time
        /// limit are not reproducible bit for bit.
        pub time_limit_s: Option<f64>,
        /// Number of islands (the paper's processes). It does not depend on the threads and processes on
        /// which they run.
        pub islands: u32 = 4,
        /// Solvers per island; each anneals the island's mapping independently until the next exchange. By
        /// default one per rank up to 100 ranks and 125 up to 1024 (the papers); for more ranks n, 128,000 /
        /// n.
        pub solvers: Option<u32>,
        /// Iterations between two exchanges, which broadcast the best mapping to all islands. By default 1000;
        /// with the papers' choices 100 for 343 ranks, as they have for tai343e01.
        pub exchange_interval: Option<u64>,
        /// Whether the temperature continues or restarts after an exchange. The papers do not specify it.
        pub temperature_after_exchange: AfterExchange,
        /// Whether exchanges cross mappings while the temperature is high, as in the method RGO;
        /// annealing then continues without exchanges. The mapping of an island is crossed with that of its
        /// predecessor in the ring, the child is mutated, and annealing accepts or rejects it.
        pub crossover_on_exchange: bool,
        /// Number of crossovers, one after every five temperatures; 20 by default. Only for
        /// `crossover_on_exchange`.
        pub generations: Option<u64>,
        /// Whether a local search improves the best mapping at the end. The papers omit it; it costs little.
        pub local_search: bool = true,
        /// Whether to return the linear mapping if the search finds nothing better. The papers omit
        /// this rule.
        pub rank_order_fallback: bool = true,
    }
} }

annealing! { part! {
    /// Annealing parameters of `map/composite`.
    pub struct AnnealingPart of AnnealingParams
} }

impl AnnealingPart {
    fn paper() -> Self {
        Self {
            iteration: Iteration::Candidate,
            moves_per_temperature: Some(50),
            cooling: Cooling::Cauchy,
            move_type: Some(MoveType::Random),
            ..Self::default()
        }
    }
}

impl AnnealingParams {
    /// The parameters of the papers or, where these omit them, of their library.
    #[must_use]
    pub fn paper() -> Self {
        Self {
            preset: Preset::Paper,
            weight: Weight::Bytes.into(),
            local_search: false,
            rank_order_fallback: false,
            ..AnnealingPart::paper().into()
        }
    }
}

/// Unit of an annealing iteration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Iteration {
    /// All candidates of one temperature.
    #[default]
    Temperature,
    /// One candidate, as in the code of the papers' library.
    Candidate,
}

/// Unit in which moves are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum MovesUnit {
    /// Candidates.
    #[default]
    Candidates,
    /// Candidates per rank.
    PerRank,
}

/// Effect of an exchange between islands on the temperature.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum AfterExchange {
    /// It continues to fall.
    #[default]
    Continue,
    /// It restarts from the F of the broadcast mapping, as in the code of the papers' library.
    Restart,
}

/// Neighbourhood from which candidate exchanges are drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum MoveType {
    /// Any rank with any other slot (the papers).
    Random,
    /// A rank with a slot close to one of its neighbours.
    Towards,
}

/// Cooling schedule of the temperature T.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Cooling {
    /// T becomes q · T.
    #[default]
    Proportional,
    /// T becomes T / (1 + β · T).
    Cauchy,
}

genetic! { params! {
    /// Parameters of `map/genetic` (GraphHunter's PGA).
    pub struct GeneticParams {
        /// Source of the defaults: hopmap or the papers. Explicit parameters take precedence.
        pub preset: Preset,
        /// Random seed.
        pub seed: u64 = 1,
        /// Evaluation limit of every island, in exchanges. One full evaluation of a mapping of n ranks counts
        /// as n / 4 exchanges. Without `iterations` the search continues until the limit.
        pub evaluations: Option<u64>,
        /// Time limit in seconds. Results with a time limit are not reproducible bit for bit.
        pub time_limit_s: Option<f64>,
        /// Number of islands (the paper's processes), each with its own population.
        pub islands: u32 = 4,
        /// Whether a local search improves the best mapping at the end. The papers omit it; it costs little.
        pub local_search: bool = true,
        /// Whether to return the linear mapping if the search finds nothing better. The papers omit
        /// this rule.
        pub rank_order_fallback: bool = true,
    }
} }

genetic! { part! {
    /// Genetic parameters of `map/composite`.
    pub struct GeneticPart of GeneticParams
} }

impl GeneticPart {
    fn paper() -> Self {
        Self {
            offspring: Some(2),
            replacement: Replacement::IfBetter,
            mutations: Mutations::Expected,
            mutate_clones: false,
            duplicate_migrants: true,
            ..Self::default()
        }
    }
}

impl GeneticParams {
    /// The parameters of the papers.
    #[must_use]
    pub fn paper() -> Self {
        Self {
            preset: Preset::Paper,
            weight: Weight::Bytes.into(),
            local_search: false,
            rank_order_fallback: false,
            ..GeneticPart::paper().into()
        }
    }
}

/// Which children replace the worst individuals.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Replacement {
    /// All of them.
    #[default]
    Always,
    /// Those that are better, as in the algorithm AGE of the papers' library.
    IfBetter,
}

/// How many genes mutate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Mutations {
    /// Each with the probability `mutation`.
    #[default]
    Random,
    /// As many of a generation as are expected, rounded up, in turn in its children: the code of the papers' library. One in two
    /// children of up to 500 ranks, with the probability of the papers.
    Expected,
}

/// Crossover operator, which makes two children of two parents. A gene is the slot of a rank; genes after the
/// last rank are free slots.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Crossover {
    /// Keeps genes on which both parents agree and shuffles the others: the basic operator of the papers'
    /// library.
    #[default]
    Basic,
    /// Takes every gene from a random parent, if no other gene has its slot; random slots fill the rest.
    Uniform,
    /// Keeps a window of a third of the genes; the others, in the order of the other parent, fill the places
    /// after the window. Our reading of "crossover with sorting" in the papers' library.
    Sorting,
    /// Order crossover (OX, Davis 1985). Keeps a window between two random cuts; the others follow in the
    /// order of the other parent after the second cut.
    Order,
}

/// Migration topology: destination of the best individuals after a generation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Scheme {
    /// The next island of the ring, where they replace worse individuals.
    #[default]
    Ring,
    /// The master.
    MasterSlave,
}

/// Role of the master.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Master {
    /// Crosses the best individuals of all slaves and sends back the children, which replace worse
    /// individuals.
    #[default]
    Breeds,
    /// Only selects the best result at the end.
    Reduces,
}

params! {
    /// Parameters of `map/composite` (GraphHunter's PGSA).
    pub struct CompositeParams {
        /// Source of the defaults: hopmap or the papers. Explicit parameters take precedence.
        pub preset: Preset,
        /// Random seed.
        pub seed: u64 = 1,
        /// Evaluation limit of every island, half of it for annealing. Without `genetic.iterations` the
        /// genetic algorithm continues until the limit.
        pub evaluations: Option<u64>,
        /// Time limit in seconds, half of it for annealing. Results with a time limit are not reproducible
        /// bit for bit.
        pub time_limit_s: Option<f64>,
        /// Number of islands, each with its own population.
        pub islands: u32 = 4,
        /// Annealing parameters, as for `map/annealing`; each individual starts from its own random mapping.
        pub annealing: AnnealingPart,
        /// Genetic parameters, as for `map/genetic`.
        pub genetic: GeneticPart,
        /// Whether a local search improves the best mapping at the end.
        pub local_search: bool = true,
        /// Whether to return the linear mapping if the search finds nothing better.
        pub rank_order_fallback: bool = true,
    }
}

impl CompositeParams {
    /// The parameters of the papers for both parts.
    #[must_use]
    pub fn paper() -> Self {
        Self {
            preset: Preset::Paper,
            annealing: AnnealingPart::paper(),
            genetic: GeneticPart::paper(),
            weight: Weight::Bytes.into(),
            local_search: false,
            rank_order_fallback: false,
            ..Self::default()
        }
    }

    /// Parameters for annealing one individual.
    pub(crate) fn of_annealing(&self) -> AnnealingParams {
        AnnealingParams { solvers: Some(1), ..self.annealing.into() }
    }

    /// Parameters of the genetic algorithm.
    pub(crate) fn of_genetic(&self) -> GeneticParams {
        let &Self { evaluations, time_limit_s, genetic, .. } = self;
        GeneticParams { evaluations, time_limit_s, ..genetic.into() }
    }
}
