//! Parameters of `schedule/genetic`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::machine::with_machine;
use super::{first_seed, four_islands};

with_machine! {
    /// The genetic algorithm of PARUS. What is not said is as in `ini`, else as in the `sch.ini` that comes with PARUS, except for when the
    /// search ends.
    pub struct GeneticParams {
        /// Another seed gives another search.
        #[serde(default = "first_seed")]
        pub seed: u64,
        /// How many schedules every island evaluates. Without `max_cycles` the search goes on until then.
        #[serde(default)]
        pub evaluations: Option<u64>,
        /// How long the search may take, in seconds. The result cannot be made again bit for bit. Without `max_cycles` the search
        /// goes on until then.
        #[serde(default)]
        pub seconds: Option<f64>,
        /// Number of islands, each with a population of its own.
        #[serde(default = "four_islands")]
        pub islands: u32,
        /// A file of parameters as PARUS reads it, `sch.ini`; what is given here beside it counts more.
        #[serde(default)]
        pub ini: Option<hopmap_model::InputPath>,
        /// Most schedules of a population, `creatures:max` of PARUS; 100 by default, fewer where a program has more than 80,000 tasks.
        #[serde(default)]
        pub population: Option<u32>,
        /// Part of them that the first population has, `creatures:start_part`; 1 by default.
        #[serde(default)]
        pub start_part: Option<f64>,
        /// How much worse a schedule counts at most, by chance, when the survivors are chosen: a makespan F counts as
        /// F · (1 + r · penalty) with a random r from 0 to 1. `creatures:random_selecting` of the old program; 0.1 by default.
        #[serde(default)]
        pub penalty: Option<f64>,
        /// How many of the best survive whatever chance says, `creatures:random_selecting` of the new program; 1 by default (the old
        /// program). The best ever seen is kept beside the population in any case.
        #[serde(default)]
        pub elites: Option<u32>,
        /// Most generations, `stop:max_cycles`. By default 2000 where nothing else ends the search.
        #[serde(default)]
        pub max_cycles: Option<u32>,
        /// A generation is idle whose best schedule is by no more than this better than the best of the generation before,
        /// `stop:min_difference`, in units of time; 0.0001 by default.
        #[serde(default)]
        pub min_difference: Option<f64>,
        /// Idle generations in a row that end the search, `stop:idle_iterations`. By default one where `min_difference` is given, and otherwise
        /// there is no such end.
        #[serde(default)]
        pub idle_iterations: Option<u32>,
        /// Mutants of a generation, as a part of the population, `mutate_possibilities:avg`: the mean of a number that is drawn anew for
        /// every generation, from half to one and a half times as many; 0.5 by default.
        #[serde(default)]
        pub mutation: Option<f64>,
        /// Probability that a gene that mutates gets another processor, `mutate_possibilities:processor`; 0.6 by default.
        #[serde(default)]
        pub mutation_processor: Option<f64>,
        /// Probability that a gene that mutates gets another rank, `mutate_possibilities:priority`; 0.2 by default.
        #[serde(default)]
        pub mutation_priority: Option<f64>,
        /// Genes of a mutant that mutate, as a part of all, `mutate_possibilities:avg_gens`, also the mean of a number that is drawn; 0.2 by
        /// default, and always one gene at least.
        #[serde(default)]
        pub mutation_genes: Option<f64>,
        /// Children of two parents in a generation, as a part of the population, `recombination:avg_possibility`, also the mean of a
        /// number that is drawn; 0.6 by default.
        #[serde(default)]
        pub recombination: Option<f64>,
        /// Points of a crossover, `recombination:avg_points`, also the mean of a number that is drawn; 2 by default. Between two points
        /// a child has whole entries, processor and rank, of the one parent and then of the other.
        #[serde(default)]
        pub crossover_points: Option<u32>,
        /// What becomes of children whose ranks contradict the program.
        #[serde(default)]
        pub admissible: Admissible,
        /// How often a child is made anew that is inadmissible, with `admissible = "reject"`, before it is left out; 100 by default.
        #[serde(default = "hundred")]
        pub tries: u32,
        /// Whether the schedules of all list heuristics are in the first population. PARUS begins with random ones.
        #[serde(default)]
        pub seeded: bool,
        /// After how many generations the best schedule of every island goes to the next one in the ring, where it takes the place of the
        /// worst if it is better; 0: never. 10 by default.
        #[serde(default = "ten")]
        pub exchange: u32,
    }
}

/// What becomes of a child whose ranks contradict the program: tasks wait for each other in a circle, some because of a message and
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

fn ten() -> u32 {
    10
}

fn hundred() -> u32 {
    100
}
