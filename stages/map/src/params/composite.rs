//! Parameters of the composite algorithm.

use hopmap_model::WeightChoice;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::genetic::{always, one, rarely, two};
use super::{
    AnnealingParams, Cooling, Crossover, GeneticParams, Iteration, Master, Neighbourhood, NeighboursUnit,
    Scheme, first_seed, four_islands,
};
use super::{Goal, Pin, Preset, annealing::yes};

/// Annealed placements, then a genetic algorithm on them (GraphHunter's composite algorithm, PGSA).
///
/// What a parameter means is said where `map/annealing` and `map/genetic` have it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[expect(clippy::struct_excessive_bools, reason = "each is a parameter of its own")]
pub struct CompositeParams {
    /// Whose choices the defaults are: hopmap's or those of the papers. What is given goes before both.
    #[serde(default)]
    pub preset: Preset,
    /// Another seed gives another search.
    #[serde(default = "first_seed")]
    pub seed: u64,
    /// How much every island evaluates at most, half of it for annealing. Without `iterations` the genetic algorithm goes on until
    /// then.
    #[serde(default)]
    pub evaluations: Option<u64>,
    /// How long the search may take, in seconds, half of it for annealing. The result cannot be made again bit for bit.
    #[serde(default)]
    pub seconds: Option<f64>,
    /// Number of islands, each with a population of its own.
    #[serde(default = "four_islands")]
    pub islands: u32,
    /// Individuals of every island, each annealed from a random placement of its own. By default one for every rank up to 1024, at
    /// least 8; for n ranks beyond, 128,000 / n, at least 4.
    #[serde(default)]
    pub population: Option<u32>,
    /// Iterations of the annealing of one individual. By default 50,000 up to 256 ranks and 100,000 beyond; with proportional
    /// cooling the final temperature ends it before.
    #[serde(default)]
    pub annealing_iterations: Option<u64>,
    /// What an iteration of annealing is.
    #[serde(default)]
    pub iteration: Iteration,
    /// Candidates that are examined at one temperature, in `neighbours_unit`. By default 50; for n ranks beyond 1024, n / 20.
    #[serde(default)]
    pub max_neighbours: Option<u32>,
    /// Whether `max_neighbours` counts candidates or candidates for every rank.
    #[serde(default)]
    pub neighbours_unit: NeighboursUnit,
    /// Candidates that are accepted at one temperature. By default a tenth of the examined ones, at least 1.
    #[serde(default)]
    pub accepted: Option<u32>,
    /// How the temperature falls.
    #[serde(default)]
    pub cooling: Cooling,
    /// q of proportional cooling, 0.99 by default, or β of Cauchy cooling in 1 / unit of F.
    #[serde(default)]
    pub factor: Option<f64>,
    /// First temperature in the unit of F. By default 0.3 · F(start) / −ln 0.3.
    #[serde(default)]
    pub initial_temperature: Option<f64>,
    /// Last temperature in the unit of F. By default a ten-millionth of the first one.
    #[serde(default)]
    pub final_temperature: Option<f64>,
    /// An annealing ends after so many iterations without a new best. By default none does.
    #[serde(default)]
    pub patience: Option<u64>,
    /// Whether an annealing ends at a temperature that accepts nothing.
    #[serde(default)]
    pub frozen: bool,
    /// Which exchanges are candidates. By default `towards` on a tree where a rank has few neighbours, else `random`.
    #[serde(default)]
    pub neighbours: Option<Neighbourhood>,
    /// Iterations of the genetic algorithm. By default 1000 up to 256 ranks, 500 up to 1024, 200 beyond.
    #[serde(default)]
    pub iterations: Option<u64>,
    /// Children of one iteration. By default half of the population.
    #[serde(default)]
    pub children: Option<u32>,
    /// A parent is the best of so many individuals drawn at random.
    #[serde(default = "two")]
    pub tournament: u32,
    /// How two parents make two children.
    #[serde(default)]
    pub crossover: Crossover,
    /// Probability that two parents are crossed at all.
    #[serde(default = "always")]
    pub crossover_probability: f64,
    /// Probability, for every gene of a child, that it changes places with another gene.
    #[serde(default = "rarely")]
    pub mutation: f64,
    /// Who hears of the best individuals after every iteration of the genetic algorithm.
    #[serde(default)]
    pub scheme: Scheme,
    /// What the master of the scheme `master-slave` does.
    #[serde(default)]
    pub master: Master,
    /// Individuals that an island sends or the master hands to it after every iteration.
    #[serde(default = "one")]
    pub migrants: u32,
    /// Whether two genes of a child that is a copy of a parent change places.
    #[serde(default = "yes")]
    pub mutate_clones: bool,
    /// Whether a migrant is taken in that the population has already.
    #[serde(default)]
    pub duplicate_migrants: bool,
    /// Whether the best placement descends at the end to one that no exchange improves.
    #[serde(default = "yes")]
    pub descent: bool,
    /// Whether rank order is the result where the search finds nothing better.
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

impl CompositeParams {
    /// The choices of the papers: those of both parts.
    #[must_use]
    pub fn paper() -> Self {
        let (annealing, genetic) = (AnnealingParams::paper(), GeneticParams::paper());
        Self {
            preset: Preset::Paper,
            iteration: annealing.iteration,
            max_neighbours: annealing.max_neighbours,
            cooling: annealing.cooling,
            neighbours: annealing.neighbours,
            mutate_clones: genetic.mutate_clones,
            duplicate_migrants: genetic.duplicate_migrants,
            descent: genetic.descent,
            rank_order_fallback: genetic.rank_order_fallback,
            ..Self::default()
        }
    }

    /// Those of the annealing.
    pub(crate) fn annealing(&self) -> AnnealingParams {
        AnnealingParams {
            seed: self.seed,
            evaluations: self.evaluations,
            seconds: self.seconds,
            islands: self.islands,
            solvers: Some(1),
            iterations: self.annealing_iterations,
            iteration: self.iteration,
            max_neighbours: self.max_neighbours,
            neighbours_unit: self.neighbours_unit,
            accepted: self.accepted,
            cooling: self.cooling,
            factor: self.factor,
            initial_temperature: self.initial_temperature,
            final_temperature: self.final_temperature,
            patience: self.patience,
            frozen: self.frozen,
            neighbours: self.neighbours,
            descent: self.descent,
            rank_order_fallback: self.rank_order_fallback,
            weight: self.weight,
            objective: self.objective,
            pinned: self.pinned.clone(),
            forbidden: self.forbidden.clone(),
            ..AnnealingParams::default()
        }
    }

    /// Those of the genetic algorithm.
    pub(crate) fn genetic(&self) -> GeneticParams {
        GeneticParams {
            preset: self.preset,
            seed: self.seed,
            evaluations: self.evaluations,
            seconds: self.seconds,
            islands: self.islands,
            population: self.population,
            iterations: self.iterations,
            children: self.children,
            tournament: self.tournament,
            crossover: self.crossover,
            crossover_probability: self.crossover_probability,
            mutation: self.mutation,
            scheme: self.scheme,
            master: self.master,
            migrants: self.migrants,
            mutate_clones: self.mutate_clones,
            duplicate_migrants: self.duplicate_migrants,
            descent: self.descent,
            rank_order_fallback: self.rank_order_fallback,
            weight: self.weight,
            objective: self.objective,
            pinned: self.pinned.clone(),
            forbidden: self.forbidden.clone(),
        }
    }
}

impl Default for CompositeParams {
    fn default() -> Self {
        let annealing = AnnealingParams::default();
        let genetic = GeneticParams::default();
        Self {
            preset: Preset::Default,
            seed: genetic.seed,
            evaluations: None,
            seconds: None,
            islands: genetic.islands,
            population: None,
            annealing_iterations: None,
            iteration: annealing.iteration,
            max_neighbours: annealing.max_neighbours,
            neighbours_unit: annealing.neighbours_unit,
            accepted: None,
            cooling: annealing.cooling,
            factor: None,
            initial_temperature: None,
            final_temperature: None,
            patience: None,
            frozen: annealing.frozen,
            neighbours: annealing.neighbours,
            iterations: None,
            children: None,
            tournament: genetic.tournament,
            crossover: genetic.crossover,
            crossover_probability: genetic.crossover_probability,
            mutation: genetic.mutation,
            scheme: genetic.scheme,
            master: genetic.master,
            migrants: genetic.migrants,
            mutate_clones: genetic.mutate_clones,
            duplicate_migrants: genetic.duplicate_migrants,
            descent: genetic.descent,
            rank_order_fallback: genetic.rank_order_fallback,
            weight: genetic.weight,
            objective: genetic.objective,
            pinned: genetic.pinned,
            forbidden: genetic.forbidden,
        }
    }
}
