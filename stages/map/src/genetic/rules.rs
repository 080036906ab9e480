//! The parameters of a genetic algorithm, applied to a problem.

use hopmap_objective::Problem;

use crate::{GeneticParams, Master, ParameterError, Scheme};

/// Fewest individuals by default.
const FEWEST: u64 = 8;
/// Genes of a population beyond 1024 ranks.
const GENES: u64 = 1 << 20;
/// Most individuals of an island.
const MOST: u32 = 1 << 20;

/// How populations of a problem evolve.
#[derive(Debug, Clone)]
pub(crate) struct Rules {
    pub(crate) population: usize,
    pub(crate) iterations: u64,
    pub(crate) children: usize,
    pub(crate) tournament: u32,
    pub(crate) crossover_probability: f64,
    pub(crate) scheme: Scheme,
    pub(crate) master: Master,
    pub(crate) migrants: usize,
    pub(crate) duplicate_migrants: bool,
}

/// Checks what can be checked without a problem.
pub(crate) fn check(params: &GeneticParams) -> Result<(), ParameterError> {
    let help = format!("give a number of individuals from 2 to {MOST}, or leave it out");
    let population = params.population.unwrap_or(2);
    ParameterError::unless((2..=MOST).contains(&population), "population", &population, &help)?;
    let at_least_one = |name, value: Option<u64>| {
        ParameterError::unless(value != Some(0), name, &0, "give a whole number above zero, or leave it out")
    };
    at_least_one("iterations", params.iterations)?;
    at_least_one("children", params.children.map(u64::from))?;
    at_least_one("tournament", Some(params.tournament.into()))?;
    let children = params.children.unwrap_or(1);
    let help = "give fewer children than there are individuals, so that the best one stays";
    let fits = params.population.is_none_or(|population| children < population);
    ParameterError::unless(fits, "children", &children, help)?;
    let fits = params.population.is_none_or(|population| params.migrants < population);
    ParameterError::unless(
        fits,
        "migrants",
        &params.migrants,
        "give fewer migrants than there are individuals",
    )?;
    for (name, value) in
        [("crossover_probability", params.crossover_probability), ("mutation", params.mutation)]
    {
        ParameterError::unless((0.0..=1.0).contains(&value), name, &value, "give a probability from 0 to 1")?;
    }
    Ok(())
}

impl Rules {
    /// Applies parameters in order to a problem; `population` is how many individuals there are by default.
    pub(crate) fn new(params: &GeneticParams, problem: &Problem, population: usize) -> Self {
        let population = params.population.map_or(population, |population| population as usize);
        let children = params.children.map_or(population / 2, |children| children as usize);
        Self {
            population,
            iterations: match params.iterations {
                Some(iterations) => iterations,
                None if params.evaluations.is_some() || params.seconds.is_some() => u64::MAX,
                None => default_iterations(problem.ranks()),
            },
            children: children.clamp(1, population - 1),
            tournament: params.tournament,
            crossover_probability: params.crossover_probability,
            scheme: params.scheme,
            master: params.master,
            migrants: (params.migrants as usize).min(population - 1),
            duplicate_migrants: params.duplicate_migrants,
        }
    }
}

/// Individuals of an island that evolves from random placements.
pub(crate) fn default_population(ranks: usize) -> usize {
    let ranks = ranks as u64;
    (if ranks <= 1024 { ranks } else { GENES / ranks }).max(FEWEST) as usize
}

fn default_iterations(ranks: usize) -> u64 {
    match ranks {
        ..=256 => 1000,
        257..=1024 => 500,
        _ => 200,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_out_of_range_are_refused() {
        let message = |params: GeneticParams| check(&params).unwrap_err().to_string();
        let params = GeneticParams::default;
        assert_eq!(message(GeneticParams { population: Some(1), ..params() }), "population is 1");
        assert_eq!(message(GeneticParams { iterations: Some(0), ..params() }), "iterations is 0");
        assert_eq!(message(GeneticParams { tournament: 0, ..params() }), "tournament is 0");
        let many = GeneticParams { population: Some(4), children: Some(4), ..params() };
        assert_eq!(message(many), "children is 4");
        let crowd = GeneticParams { population: Some(4), migrants: 9, ..params() };
        assert_eq!(message(crowd), "migrants is 9");
        assert_eq!(message(GeneticParams { mutation: -0.1, ..params() }), "mutation is -0.1");
        let never = GeneticParams { crossover_probability: f64::NAN, ..params() };
        assert_eq!(message(never), "crossover_probability is NaN");
        check(&params()).unwrap();
    }

    #[test]
    fn populations_fit_memory() {
        assert_eq!([1, 16, 1024, 2048, 65_536, 1 << 20].map(default_population), [8, 16, 1024, 512, 16, 8]);
    }
}
