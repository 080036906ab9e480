//! The parameters of the genetic algorithm, merged with a file of PARUS, for a given problem.

use hopmap_model::{OutOfRange, require};
use hopmap_text::FileError;

use crate::formats::ini::{RandomSelecting, SchIni};
use crate::formats::read_file;
use crate::params::{Admissible, GeneticParams};
use crate::problem::Problem;

/// Default size of the population, and its minimum.
const POPULATION: u64 = 100;
const FEWEST: u64 = 8;
/// Default number of genes of a population if there are very many tasks.
const GENES: u64 = 1 << 23;
/// Maximum size of the population.
const MOST: u32 = 1 << 20;
/// Default number of generations if nothing else ends the search.
const CYCLES: u64 = 2000;

/// Settings of the evolution for a problem.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Rules {
    /// Maximum size of the population, and size of the first one.
    pub(super) population: usize,
    pub(super) first: usize,
    pub(super) penalty: f64,
    pub(super) elites: usize,
    pub(super) cycles: u64,
    /// In units of time.
    pub(super) min_difference: f64,
    pub(super) idle_iterations: Option<u32>,
    pub(super) mutation: f64,
    pub(super) mutation_processor: f64,
    pub(super) mutation_priority: f64,
    pub(super) mutation_genes: f64,
    pub(super) recombination: f64,
    pub(super) crossover_points: u32,
    pub(super) admissible: Admissible,
    pub(super) tries: u32,
    pub(super) exchange_interval: u32,
}

/// Checks the parameters, as far as they do not depend on a file and a problem.
pub(super) fn check(params: &GeneticParams) -> Result<(), OutOfRange> {
    let number = |name: &str, value: Option<f64>, is_valid: fn(f64) -> bool, range: &str| {
        value.map_or(Ok(()), |value| require(is_valid(value), name, value, range))
    };
    let count = |name: &str, value: Option<u32>, most: u32| {
        let range = || if most == u32::MAX { "1 or more".to_owned() } else { format!("1 to {most}") };
        value.map_or(Ok(()), |value| require((1..=most).contains(&value), name, value, range()))
    };
    count("population", params.population, MOST)?;
    count("crossover_points", params.crossover_points, u32::MAX)?;
    count("idle_iterations", params.idle_iterations, u32::MAX)?;
    count("tries", Some(params.tries), u32::MAX)?;
    for (name, value) in [
        ("mutation", params.mutation),
        ("mutation_processor", params.mutation_processor),
        ("mutation_priority", params.mutation_priority),
        ("mutation_genes", params.mutation_genes),
        ("recombination", params.recombination),
    ] {
        number(name, value, |value| (0.0..=1.0).contains(&value), "0 to 1")?;
    }
    let is_part = |part| part > 0.0 && part <= 1.0;
    number("start_part", params.start_part, is_part, "above 0, at most 1")?;
    for (name, value) in [("penalty", params.penalty), ("min_difference", params.min_difference)] {
        number(name, value, |value| value.is_finite() && value >= 0.0, "0 or more")?;
    }
    Ok(())
}

/// Reads the parameter file.
pub(super) fn read_ini(params: &GeneticParams) -> Result<SchIni, FileError> {
    params.ini.as_ref().map_or(Ok(SchIni::default()), |path| read_file(path.path(), SchIni::read))
}

impl Rules {
    /// Parameters take precedence over the file, and the file over the defaults.
    pub(super) fn new(params: &GeneticParams, ini: &SchIni, problem: &Problem) -> Self {
        let default = POPULATION.min((GENES / problem.tasks() as u64).max(FEWEST));
        let population =
            params.population.or(ini.population).map_or(default, u64::from).min(u64::from(MOST)) as usize;
        let start_part = params.start_part.or(ini.start_part).unwrap_or(1.0);
        let (penalty, elites) = match ini.random_selecting {
            Some(RandomSelecting::Penalty(penalty)) => (Some(penalty), None),
            Some(RandomSelecting::Elites(elites)) => (None, Some(elites)),
            None => (None, None),
        };
        let cycles = params.max_cycles.or(ini.max_cycles).map(u64::from);
        let has_budget = params.evaluations.is_some() || params.time_limit_s.is_some();
        Self {
            population,
            first: ((start_part * population as f64).round() as usize).clamp(1, population),
            penalty: params.penalty.or(penalty).unwrap_or(0.1),
            elites: params.elites.or(elites).unwrap_or(1) as usize,
            cycles: cycles.unwrap_or(if has_budget { u64::MAX } else { CYCLES }),
            min_difference: params.min_difference.or(ini.min_difference).unwrap_or(0.0001),
            // A given `min_difference` implies the stop criterion of the paper: the first generation without an improvement.
            idle_iterations: params
                .idle_iterations
                .or(ini.idle_iterations)
                .or(params.min_difference.or(ini.min_difference).map(|_| 1)),
            mutation: params.mutation.or(ini.mutation).unwrap_or(0.5),
            mutation_processor: params.mutation_processor.or(ini.mutation_processor).unwrap_or(0.6),
            mutation_priority: params.mutation_priority.or(ini.mutation_priority).unwrap_or(0.2),
            mutation_genes: params.mutation_genes.or(ini.mutation_genes).unwrap_or(0.2),
            recombination: params.recombination.or(ini.recombination).unwrap_or(0.6),
            crossover_points: params.crossover_points.or(ini.crossover_points).unwrap_or(2),
            admissible: params.admissible,
            tries: params.tries,
            exchange_interval: params.exchange_interval,
        }
    }

    /// More evaluations than the generations can use.
    pub(super) fn most_evaluations(&self) -> u64 {
        let children = (1.5 * (self.mutation + self.recombination) * self.population as f64) as u64 + 2;
        self.cycles.saturating_mul(children).saturating_add(self.population as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::diamond;

    fn params(value: serde_json::Value) -> GeneticParams {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn parameters_out_of_range_are_rejected() {
        let message = |value| check(&params(value)).unwrap_err().to_string();
        assert_eq!(message(serde_json::json!({ "population": 0 })), "`population` = 0 is out of range");
        assert_eq!(message(serde_json::json!({ "mutation": 1.5 })), "`mutation` = 1.5 is out of range");
        assert_eq!(message(serde_json::json!({ "start_part": 0.0 })), "`start_part` = 0 is out of range");
        assert_eq!(message(serde_json::json!({ "penalty": -1.0 })), "`penalty` = -1 is out of range");
        assert_eq!(message(serde_json::json!({ "tries": 0 })), "`tries` = 0 is out of range");
        assert_eq!(
            message(serde_json::json!({ "crossover_points": 0 })),
            "`crossover_points` = 0 is out of range"
        );
        check(&params(serde_json::json!({}))).unwrap();
    }

    #[test]
    fn parameters_override_the_file() {
        let problem = diamond();
        let ini = SchIni {
            population: Some(30),
            start_part: Some(0.5),
            random_selecting: Some(RandomSelecting::Elites(7)),
            mutation: Some(0.9),
            ..SchIni::default()
        };
        let rules = Rules::new(&params(serde_json::json!({ "mutation": 0.3 })), &ini, &problem);
        assert_eq!((rules.population, rules.first, rules.elites), (30, 15, 7));
        assert!((rules.mutation - 0.3).abs() < 1e-12 && (rules.penalty - 0.1).abs() < 1e-12);
        assert_eq!((rules.cycles, rules.idle_iterations), (CYCLES, None));
        let differing = Rules::new(&params(serde_json::json!({ "min_difference": 0.5 })), &ini, &problem);
        assert_eq!(differing.idle_iterations, Some(1));
        let timed = Rules::new(&params(serde_json::json!({ "time_limit_s": 1.0 })), &ini, &problem);
        assert_eq!(timed.cycles, u64::MAX);
    }

    #[test]
    fn errors_of_the_file_name_it() {
        let read = |file: &std::path::Path| read_ini(&params(serde_json::json!({ "ini": file })));
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("sch.ini");
        assert!(read(&file).unwrap_err().to_string().contains(": cannot be read: "));
        std::fs::write(&file, "creatures:max = many ;").unwrap();
        assert!(read(&file).unwrap_err().to_string().contains("sch.ini:1: "));
        std::fs::write(&file, "creatures:max = 12 ;\nmutate_possibilities:gens = 0.25 ;").unwrap();
        let ini = read(&file).unwrap();
        assert_eq!((ini.population, ini.mutation_genes), (Some(12), Some(0.25)));
    }
}
