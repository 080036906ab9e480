//! Parameters of the parallel genetic algorithm.

use hopmap_model::WeightChoice;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Goal, Pin, Preset, annealing::yes};
use super::{first_seed, four_islands};

/// Parallel genetic algorithm (GraphHunter's PGA).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[expect(clippy::struct_excessive_bools, reason = "each is a parameter of its own")]
pub struct GeneticParams {
    /// Whose choices the defaults are: hopmap's or those of the papers. What is given goes before both.
    #[serde(default)]
    pub preset: Preset,
    /// Another seed gives another search.
    #[serde(default = "first_seed")]
    pub seed: u64,
    /// How much every island evaluates at most, in exchanges as all mappers count them: a placement of n ranks that is evaluated
    /// whole is n / 4 of them. Without `iterations` the search goes on until then.
    #[serde(default)]
    pub evaluations: Option<u64>,
    /// How long the search may take, in seconds. The result cannot be made again bit for bit.
    #[serde(default)]
    pub seconds: Option<f64>,
    /// Number of islands, the processes of the paper, each with a population of its own.
    #[serde(default = "four_islands")]
    pub islands: u32,
    /// Individuals of every island. By default one for every rank (the papers) up to 1024, at least 8; for n ranks beyond,
    /// 1,048,576 / n.
    #[serde(default)]
    pub population: Option<u32>,
    /// Iterations: breed, mutate, replace, exchange. The papers do not print the number. By default 1000 up to 256 ranks, 500 up to
    /// 1024, 200 beyond.
    #[serde(default)]
    pub iterations: Option<u64>,
    /// Children of one iteration, which replace as many of the worst. By default half of the population.
    #[serde(default)]
    pub children: Option<u32>,
    /// A parent is the best of so many individuals drawn at random; 2 by default (the library of the papers).
    #[serde(default = "two")]
    pub tournament: u32,
    /// How two parents make two children.
    #[serde(default)]
    pub crossover: Crossover,
    /// Probability that two parents are crossed at all, not copied; 1 by default (the papers).
    #[serde(default = "always")]
    pub crossover_probability: f64,
    /// Probability, for every gene of a child, that it changes places with another gene; 0.001 by default (the papers).
    #[serde(default = "rarely")]
    pub mutation: f64,
    /// Who hears of the best individuals after every iteration.
    #[serde(default)]
    pub scheme: Scheme,
    /// What the master of the scheme `master-slave` does.
    #[serde(default)]
    pub master: Master,
    /// Individuals that an island sends or the master hands to it after every iteration; 1 by default (the papers found more to be
    /// worse).
    #[serde(default = "one")]
    pub migrants: u32,
    /// Whether two genes of a child that is a copy of a parent change places. The papers leave it a copy; populations whose
    /// individuals have become alike find nothing new then.
    #[serde(default = "yes")]
    pub mutate_clones: bool,
    /// Whether a migrant is taken in that the population has already, as in the papers; it may soon be all there is.
    #[serde(default)]
    pub duplicate_migrants: bool,
    /// Whether the best placement descends at the end to one that no exchange improves. The papers do not; it costs little.
    #[serde(default = "yes")]
    pub descent: bool,
    /// Whether rank order is the result where the search finds nothing better. The papers know no such rule.
    #[serde(default = "yes")]
    pub rank_order_fallback: bool,
    /// What an edge of the task graph weighs.
    #[serde(default)]
    pub weight: WeightChoice,
    /// What is minimised: `F`, `T`, `hop-bytes` or `max-link-load`, or their weighted sum, as in `{ F = 1.0, T = 0.5 }`.
    #[serde(default)]
    pub objective: Goal,
    /// Ranks that have to be on a slot or a host.
    #[serde(default)]
    pub pinned: Vec<Pin>,
    /// Names of hosts that no rank may be on.
    #[serde(default)]
    pub forbidden: Vec<String>,
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

impl Default for GeneticParams {
    fn default() -> Self {
        Self {
            preset: Preset::Default,
            seed: first_seed(),
            evaluations: None,
            seconds: None,
            islands: four_islands(),
            population: None,
            iterations: None,
            children: None,
            tournament: two(),
            crossover: Crossover::default(),
            crossover_probability: always(),
            mutation: rarely(),
            scheme: Scheme::default(),
            master: Master::default(),
            migrants: one(),
            mutate_clones: true,
            duplicate_migrants: false,
            descent: true,
            rank_order_fallback: true,
            weight: WeightChoice::default(),
            objective: Goal::default(),
            pinned: Vec::new(),
            forbidden: Vec::new(),
        }
    }
}

impl GeneticParams {
    /// The choices of the papers.
    #[must_use]
    pub fn paper() -> Self {
        Self {
            preset: Preset::Paper,
            descent: false,
            rank_order_fallback: false,
            mutate_clones: false,
            duplicate_migrants: true,
            ..Self::default()
        }
    }
}

pub(super) fn one() -> u32 {
    1
}

pub(super) fn two() -> u32 {
    2
}

pub(super) fn always() -> f64 {
    1.0
}

pub(super) fn rarely() -> f64 {
    0.001
}
