//! Parameters of GraphHunter's algorithms: annealing, the genetic algorithm and both in turn.

use hopmap_model::WeightChoice;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Goal, Pin, Preset, ProblemParams};

/// Hands to a macro what `map/annealing` and the table `annealing` of `map/composite` have in common.
macro_rules! annealing {
    ($next:ident! { $($own:tt)* }) => {
        $next! {
            $($own)* and
            /// Iterations of every solver in all. By default 50,000 up to 256 ranks and 100,000 beyond (the papers, up to 1024). With
            /// proportional cooling the final temperature ends it before, after 1604 temperatures.
            pub iterations: Option<u64>,
            /// What an iteration is: a temperature or a candidate. The papers leave it open.
            pub iteration: Iteration,
            /// Candidates that are examined at one temperature, in `moves_unit`. By default 50 (the papers); for n ranks beyond 1024,
            /// n / 20.
            pub moves_per_temperature: Option<u32>,
            /// Whether `moves_per_temperature` counts candidates or candidates for every rank. The papers print 50; the code of their
            /// library multiplies by n.
            pub moves_unit: MovesUnit,
            /// Candidates that are accepted at one temperature, after which it falls at once. By default a tenth of the examined ones
            /// (the library of the papers), at least 1.
            pub max_accepted_per_temperature: Option<u32>,
            /// How the temperature falls.
            pub cooling: Cooling,
            /// q of proportional cooling, between 0 and 1, 0.99 by default (the library of the papers); or β of Cauchy cooling, above 0
            /// and in 1 / unit of F, by default (T0 − T1) / (C · T0 · T1) with the first and last temperature and C coolings (the
            /// papers print the numerator the other way round): `iterations`, or where they are candidates `iterations` /
            /// `moves_per_temperature`.
            pub cooling_rate: Option<f64>,
            /// First temperature in the unit of F. By default 0.3 · F(start) / −ln 0.3 (the library of the papers).
            pub initial_temperature: Option<f64>,
            /// A solver whose temperature falls below this one ends; in the unit of F. By default a ten-millionth of the first one,
            /// which for the instances of the papers is about the 0.01 of their library.
            pub final_temperature: Option<f64>,
            /// A solver ends after so many iterations without a new best of its own. By default none does.
            pub patience: Option<u64>,
            /// Whether a solver ends at a temperature that accepts nothing, as in the library of the papers.
            pub stop_when_frozen: bool,
            /// Which exchanges are candidates. By default `towards` on a tree where a rank has few neighbours, else `random`.
            pub move_type: Option<MoveType>,
        }
    };
}

/// Hands to a macro what `map/genetic` and the table `genetic` of `map/composite` have in common.
macro_rules! genetic {
    ($next:ident! { $($own:tt)* }) => {
        $next! {
            $($own)* and
            /// Individuals of every island. By default one for every rank (the papers) up to 1024, at least 8; for n ranks beyond,
            /// 1,048,576 / n, or 128,000 / n and at least 4 where each is annealed.
            pub population: Option<u32>,
            /// Iterations: breed, mutate, replace, exchange. The papers do not print the number. By default 1000 up to 256 ranks, 500 up
            /// to 1024, 200 beyond.
            pub iterations: Option<u64>,
            /// Children of one iteration, which replace as many of the worst. By default half of the population.
            pub offspring: Option<u32>,
            /// A parent is the best of so many individuals drawn at random; 2 by default (the library of the papers).
            pub tournament: u32 = 2,
            /// How two parents make two children.
            pub crossover: Crossover,
            /// Probability that two parents are crossed at all, not copied; 1 by default (the papers).
            pub crossover_probability: f64 = 1.0,
            /// Probability, for every gene of a child, that it changes places with another gene; 0.001 by default (the papers).
            pub mutation: f64 = 0.001,
            /// Who hears of the best individuals after every iteration.
            pub scheme: Scheme,
            /// What the master of the scheme `master-slave` does.
            pub master: Master,
            /// Individuals that an island sends or the master hands to it after every iteration; 1 by default (the papers found more to
            /// be worse).
            pub migrants: u32 = 1,
            /// Whether two genes of a child that is a copy of a parent change places. The papers leave it a copy; populations whose
            /// individuals have become alike find nothing new then.
            pub mutate_clones: bool = true,
            /// Whether a migrant is taken in that the population has already, as in the papers; it may soon be all there is.
            pub duplicate_migrants: bool,
        }
    };
}

/// Declares a table of `map/composite`, and how it becomes the parameters of the stage that does that part alone.
macro_rules! part {
    (
        $(#[$meta:meta])* pub struct $name:ident of $params:ident
        and $($(#[$of_field:meta])* pub $field:ident: $type:ty $(= $default:expr)?,)*
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
        #[serde(deny_unknown_fields, default)]
        pub struct $name {
            $($(#[$of_field])* pub $field: $type,)*
        }

        impl Default for $name {
            fn default() -> Self {
                Self { $($field: or_default!($type $(, $default)?),)* }
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
    /// Parallel simulated annealing (GraphHunter's PSA).
    pub struct AnnealingParams {
        /// Whose choices the defaults are: hopmap's or those of the papers. What is given goes before both.
        pub preset: Preset,
        /// Another seed gives another search.
        pub seed: u64 = 1,
        /// How many candidates every island evaluates at most. Without `iterations`, a search that ends before this begins again from
        /// another random placement, so a larger budget continues a smaller one. Without it and `time_limit_s`: one run of `iterations`.
        pub evaluations: Option<u64>,
        /// How long the search may take, in seconds; without `iterations` it begins again until then. The result cannot be made again
        /// bit for bit.
        pub time_limit_s: Option<f64>,
        /// Number of islands, the processes of the paper. They run on as many threads and processes as there are, and their number
        /// never depends on it.
        pub islands: u32 = 4,
        /// Solvers of every island; each anneals the island's placement by itself until the next exchange. By default one for every
        /// rank up to 100 ranks and 125 up to 1024 (the papers); for n ranks beyond, 128,000 / n.
        pub solvers: Option<u32>,
        /// Iterations of every solver before the best placement of all islands becomes everybody's. By default 1000 (the papers, which
        /// found 100 better for tai343e01).
        pub exchange_interval: Option<u64>,
        /// Whether the temperature goes on or restarts after an exchange. The papers leave it open.
        pub temperature_after_exchange: AfterExchange,
        /// Whether islands breed while they are hot, as in the method RGO (ПОГ), and then anneal without exchanges: the placement of an
        /// island is crossed with that of the island before it in the ring, the child mutated, and taken if annealing accepts it.
        pub crossover_on_exchange: bool,
        /// How often islands breed, after every five temperatures; 20 times by default. For `crossover_on_exchange` only.
        pub generations: Option<u64>,
        /// Whether the best placement descends at the end to one that no exchange improves. The papers do not; it costs little.
        pub local_search: bool = true,
        /// Whether rank order is the result where the search finds nothing better. The papers know no such rule.
        pub rank_order_fallback: bool = true,
    }
} }

annealing! { part! {
    /// How `map/composite` anneals every individual.
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
    /// The choices of the papers, where they print them or the code of their library has them.
    #[must_use]
    pub fn paper() -> Self {
        Self {
            preset: Preset::Paper,
            exchange_interval: Some(1000),
            local_search: false,
            rank_order_fallback: false,
            ..AnnealingPart::paper().into()
        }
    }
}

/// What an iteration of annealing is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Iteration {
    /// All candidates of one temperature.
    #[default]
    Temperature,
    /// One candidate, as in the code of the papers' library.
    Candidate,
}

/// What moves are counted in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum MovesUnit {
    /// In candidates.
    #[default]
    Candidates,
    /// In candidates for every rank.
    PerRank,
}

/// What an exchange between islands does to the temperature.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum AfterExchange {
    /// It goes on falling.
    #[default]
    Continue,
    /// It begins again, from the F of the placement that was handed out, as in the code of the papers' library.
    Restart,
}

/// Which exchanges of ranks are candidates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum MoveType {
    /// Any rank with what is on any other slot (the papers).
    Random,
    /// A rank with what is on a slot close to one of its neighbours.
    Towards,
}

/// How the temperature T falls from one step to the next.
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
    /// Parallel genetic algorithm (GraphHunter's PGA).
    pub struct GeneticParams {
        /// Whose choices the defaults are: hopmap's or those of the papers. What is given goes before both.
        pub preset: Preset,
        /// Another seed gives another search.
        pub seed: u64 = 1,
        /// How much every island evaluates at most, in exchanges as all mappers count them: a placement of n ranks that is evaluated
        /// whole is n / 4 of them. Without `iterations` the search goes on until then.
        pub evaluations: Option<u64>,
        /// How long the search may take, in seconds. The result cannot be made again bit for bit.
        pub time_limit_s: Option<f64>,
        /// Number of islands, the processes of the paper, each with a population of its own.
        pub islands: u32 = 4,
        /// Whether the best placement descends at the end to one that no exchange improves. The papers do not; it costs little.
        pub local_search: bool = true,
        /// Whether rank order is the result where the search finds nothing better. The papers know no such rule.
        pub rank_order_fallback: bool = true,
    }
} }

genetic! { part! {
    /// The genetic algorithm of `map/composite`.
    pub struct GeneticPart of GeneticParams
} }

impl GeneticPart {
    fn paper() -> Self {
        Self { mutate_clones: false, duplicate_migrants: true, ..Self::default() }
    }
}

impl GeneticParams {
    /// The choices of the papers.
    #[must_use]
    pub fn paper() -> Self {
        Self {
            preset: Preset::Paper,
            local_search: false,
            rank_order_fallback: false,
            ..GeneticPart::paper().into()
        }
    }
}

/// How two parents make two children. A gene is the slot of a rank; genes behind the last rank are free slots.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Crossover {
    /// Genes on which both parents agree are kept, the others shuffled: the basic operation of the papers' library.
    #[default]
    Basic,
    /// A window of a third of the genes is kept; the others are sorted by where the other parent has them and fill the places
    /// behind the window. Our reading of "crossover with sorting": what the papers' library sorts.
    Sorting,
    /// Order crossover (OX, Davis 1985): a window between two random cuts is kept; the others follow in the order in which the
    /// other parent has them behind the second cut.
    Order,
}

/// Who hears of the best individuals after an iteration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Scheme {
    /// The next island of the ring; there they replace the worst if they are better.
    #[default]
    Ring,
    /// The master.
    MasterSlave,
}

/// What the master does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Master {
    /// It crosses the best of all slaves and hands the children out, where they replace the worst if they are better.
    #[default]
    Breeds,
    /// It only finds the best of all at the end.
    Reduces,
}

params! {
    /// Annealed placements, then a genetic algorithm on them (GraphHunter's composite algorithm, PGSA).
    pub struct CompositeParams {
        /// Whose choices the defaults are: hopmap's or those of the papers. What is given goes before both.
        pub preset: Preset,
        /// Another seed gives another search.
        pub seed: u64 = 1,
        /// How much every island evaluates at most, half of it for annealing. Without `genetic.iterations` the genetic algorithm goes
        /// on until then.
        pub evaluations: Option<u64>,
        /// How long the search may take, in seconds, half of it for annealing. The result cannot be made again bit for bit.
        pub time_limit_s: Option<f64>,
        /// Number of islands, each with a population of its own.
        pub islands: u32 = 4,
        /// How every individual is annealed, from a random placement of its own: parameters of `map/annealing`.
        pub annealing: AnnealingPart,
        /// How the populations evolve then: parameters of `map/genetic`.
        pub genetic: GeneticPart,
        /// Whether the best placement descends at the end to one that no exchange improves.
        pub local_search: bool = true,
        /// Whether rank order is the result where the search finds nothing better.
        pub rank_order_fallback: bool = true,
    }
}

impl CompositeParams {
    /// The choices of the papers: those of both parts.
    #[must_use]
    pub fn paper() -> Self {
        Self {
            preset: Preset::Paper,
            annealing: AnnealingPart::paper(),
            genetic: GeneticPart::paper(),
            local_search: false,
            rank_order_fallback: false,
            ..Self::default()
        }
    }

    /// Those of the annealing of an individual.
    pub(crate) fn of_annealing(&self) -> AnnealingParams {
        AnnealingParams { solvers: Some(1), ..self.annealing.into() }
    }

    /// Those of the genetic algorithm.
    pub(crate) fn of_genetic(&self) -> GeneticParams {
        let &Self { evaluations, time_limit_s, genetic, .. } = self;
        GeneticParams { evaluations, time_limit_s, ..genetic.into() }
    }
}
