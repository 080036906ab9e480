//! The population of one island, and the parameters of a genetic algorithm applied to a problem.

use hopmap_islands::{Candidate, Counts, Exchange, Meter};
use hopmap_model::{OutOfRange, require, require_above_zero};
use hopmap_objective::{ObjectiveError, Problem};
use hopmap_random::{Pcg64, Rng, SeedableRng};
use serde::{Deserialize, Serialize};

use super::breeding::{Breeding, Individual, completed, number_below};
use crate::mapper::GENERATIONS;
use crate::params::{GeneticParams, Master, Replacement, Scheme};

/// The population of one island, the best individual first.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Subpopulation {
    pub(crate) population: Vec<Individual>,
    pub(crate) random: Pcg64,
    /// Individuals from which the master breeds for this island.
    master: Pcg64,
    /// Evaluations of the master not yet charged to the budget.
    debt: u64,
    generations: u64,
}

impl Subpopulation {
    /// Creates an empty population with random streams for itself and the master.
    pub(crate) fn new(own: [u8; 32], master: [u8; 32]) -> Self {
        Self {
            population: Vec::new(),
            random: Pcg64::from_seed(own),
            master: Pcg64::from_seed(master),
            debt: 0,
            generations: 0,
        }
    }

    /// Inserts an individual after those that cost no more.
    pub(crate) fn add(&mut self, individual: Individual) {
        let at = self.population.partition_point(|other| other.cost <= individual.cost);
        self.population.insert(at, individual);
    }

    /// The best individual; a population is never empty.
    pub(crate) fn best(&self, breeding: &Breeding<'_>) -> Candidate<Vec<u32>> {
        self.bests(breeding, 1).remove(0)
    }

    /// The best individuals as mappings.
    pub(crate) fn bests(&self, breeding: &Breeding<'_>, number: usize) -> Vec<Candidate<Vec<u32>>> {
        let ranks = breeding.problem().ranks();
        let placement = |individual: &Individual| Candidate {
            cost: individual.cost,
            solution: individual.genes[..ranks].to_vec(),
        };
        self.population.iter().take(number).map(placement).collect()
    }

    /// Breeds children, which replace the worst; `false` if the meter stopped it.
    pub(crate) fn iterate(
        &mut self,
        rules: &Rules,
        breeding: &Breeding<'_>,
        meter: &mut Meter<'_>,
    ) -> Result<bool, ObjectiveError> {
        if !meter.take_all(std::mem::take(&mut self.debt)) {
            return Ok(false);
        }
        let mut children = Vec::with_capacity(rules.children);
        let mutations = breeding.mutations(rules.children, &mut self.random);
        for mutations in mutations.chunks(2) {
            let wanted = mutations.len();
            if !meter.take_all(breeding.price() * wanted as u64) {
                break;
            }
            let mutations = [mutations[0], mutations[wanted - 1]];
            children.extend(self.pair(rules, breeding, mutations)?.into_iter().take(wanted));
        }
        let goes_on = children.len() == rules.children;
        self.generations += u64::from(goes_on);
        if rules.params.child_sweeps > 0 || rules.params.replacement == Replacement::IfBetter {
            children.into_iter().for_each(|child| self.admit(rules, breeding, child));
            return Ok(goes_on);
        }
        // Keep the best, even in an incomplete population.
        self.population.truncate((self.population.len() - children.len().min(self.population.len())).max(1));
        for child in children {
            self.add(child);
        }
        Ok(goes_on)
    }

    /// Two children of two selected parents.
    fn pair(
        &mut self,
        rules: &Rules,
        breeding: &Breeding<'_>,
        mutations: [Option<u32>; 2],
    ) -> Result<[Individual; 2], ObjectiveError> {
        let [a, b] = [self.select(rules.params.tournament), self.select(rules.params.tournament)];
        let parents = [&self.population[a], &self.population[b]];
        let threshold = (rules.params.crossover_probability * 2_f64.powi(32)) as u64;
        if u64::from(self.random.next_u32()) < threshold {
            breeding.children(parents, mutations, &mut self.random)
        } else {
            let mut mutated = |child: usize| {
                let parent = parents[child];
                breeding.mutated(parent.genes.clone(), parent, mutations[child], &mut self.random)
            };
            Ok([mutated(0)?, mutated(1)?])
        }
    }

    /// Tournament selection: the lowest random index, because the population is sorted.
    fn select(&mut self, tournament: u32) -> usize {
        let draws = (0..tournament).map(|_| number_below(&mut self.random, self.population.len()));
        draws.min().unwrap_or(0)
    }

    /// Completed generations.
    pub(crate) fn counts(&self) -> Counts {
        Counts::from([(GENERATIONS.to_owned(), self.generations)])
    }

    /// Migrants to send after a generation.
    pub(crate) fn send(&self, rules: &Rules, breeding: &Breeding<'_>) -> Vec<Candidate<Vec<u32>>> {
        let number = match rules.params.scheme {
            Scheme::Ring => rules.migrants,
            Scheme::MasterSlave => 1,
        };
        self.bests(breeding, number)
    }

    /// Receives migrants after a generation, or the best individuals of all islands from which the master
    /// breeds.
    pub(crate) fn receive(
        &mut self,
        rules: &Rules,
        breeding: &Breeding<'_>,
        heard: Vec<Candidate<Vec<u32>>>,
    ) {
        let all = breeding.problem().slots();
        let heard = heard
            .into_iter()
            .map(|candidate| Individual { cost: candidate.cost, genes: completed(&candidate.solution, all) });
        match rules.params.scheme {
            Scheme::Ring => heard.for_each(|individual| self.admit(rules, breeding, individual)),
            Scheme::MasterSlave => {
                let parents: Vec<Individual> = heard.collect();
                for _ in 0..rules.migrants {
                    let mut draw = || number_below(&mut self.master, parents.len());
                    let (a, b) = (draw(), draw());
                    let child = breeding.child([&parents[a], &parents[b]], &mut self.master);
                    self.debt += breeding.price();
                    // Exchanges cannot fail, and mappings of an island are valid.
                    child.into_iter().for_each(|child| self.admit(rules, breeding, child));
                }
            }
        }
    }

    /// Replaces the worst individual by a better one; by default not by a duplicate, as repeated migrants
    /// would soon take over.
    fn admit(&mut self, rules: &Rules, breeding: &Breeding<'_>, individual: Individual) {
        let ranks = breeding.problem().ranks();
        let equals = self.population.iter().filter(|other| other.cost == individual.cost);
        let is_known = equals.into_iter().any(|other| other.genes[..ranks] == individual.genes[..ranks]);
        if (rules.params.duplicate_migrants || !is_known)
            && self.population.last().is_some_and(|worst| individual.cost < worst.cost)
        {
            self.population.pop();
            self.add(individual);
        }
    }
}

/// Destination of migrants.
pub(crate) fn exchange(rules: &Rules) -> Exchange {
    match (rules.params.scheme, rules.params.master) {
        _ if rules.migrants == 0 => Exchange::Nobody,
        (Scheme::Ring, _) => Exchange::Ring,
        (Scheme::MasterSlave, Master::Breeds) => Exchange::Everybody,
        (Scheme::MasterSlave, Master::Reduces) => Exchange::Nobody,
    }
}

/// Minimum default population, and that of the memetic algorithm.
const FEWEST: u64 = 8;
const MEMETIC: usize = 16;
/// Genes of a population beyond 1024 ranks.
const GENES: u64 = 1 << 20;
/// Maximum population of an island.
const MOST: u32 = 1 << 20;

/// Genetic parameters resolved for a problem.
#[derive(Debug, Clone)]
pub(crate) struct Rules {
    pub(crate) params: GeneticParams,
    pub(crate) population: usize,
    pub(crate) iterations: u64,
    pub(crate) children: usize,
    pub(crate) migrants: usize,
}

/// Checks parameters without a problem.
pub(crate) fn check(params: &GeneticParams) -> Result<(), OutOfRange> {
    let population = params.population.unwrap_or(2);
    require((2..=MOST).contains(&population), "population", population, format!("2 to {MOST}"))?;
    let at_least_one = require_above_zero;
    at_least_one("iterations", params.iterations)?;
    at_least_one("offspring", params.offspring.map(u64::from))?;
    at_least_one("tournament", Some(params.tournament.into()))?;
    let children = params.offspring.unwrap_or(1);
    let fits = |count| params.population.is_none_or(|population| count < population);
    require(fits(children), "offspring", children, "less than `population`, so that the best one survives")?;
    require(fits(params.migrants), "migrants", params.migrants, "less than `population`")?;
    for (name, value) in
        [("crossover_probability", params.crossover_probability), ("mutation", params.mutation)]
    {
        require((0.0..=1.0).contains(&value), name, value, "0 to 1")?;
    }
    Ok(())
}

impl Rules {
    /// Resolves valid parameters for a problem; `population` is the default population size.
    pub(crate) fn new(params: &GeneticParams, problem: &Problem, population: usize) -> Self {
        let default = if params.child_sweeps > 0 { MEMETIC } else { population };
        let population = params.population.map_or(default, |population| population as usize);
        let usual = (population / 2).max(1);
        let children = params.offspring.map_or(usual, |children| children as usize).min(population - 1);
        Self {
            population,
            iterations: match params.iterations {
                Some(iterations) => iterations,
                None if params.evaluations.is_some() || params.time_limit_s.is_some() => u64::MAX,
                None => (default_iterations(problem.ranks()) * usual as u64).div_ceil(children as u64),
            },
            children,
            migrants: (params.migrants as usize).min(population - 1),
            params: params.clone(),
        }
    }
}

/// Default population of an island that starts from random mappings.
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
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use hopmap_model::{CostModel, Edge, Matrix, Node, Process, Slot, SystemGraph, TaskGraph, Weight};

    /// A ring of four ranks on a line of six slots.
    fn problem() -> Problem {
        let edge = |rank| Edge { source: rank, destination: (rank + 1) % 4, messages: 1, bytes: 1 };
        let graph = TaskGraph {
            processes: vec![Process::default(); 4],
            edges: (0..4).map(edge).collect(),
            ..TaskGraph::default()
        };
        let cost = |at: u32| f64::from((at / 6).abs_diff(at % 6));
        let system = SystemGraph {
            routing: hopmap_model::Routing::default(),
            nodes: (0..6).map(|host| Node::host(format!("h{host}"))).collect(),
            links: Vec::new(),
            slots: (0..6).map(|host| Slot { host, core: 0 }).collect(),
            cost: CostModel::Matrix(Matrix { costs: (0..36).map(cost).collect() }),
            calibration: Vec::new(),
        };
        Problem::new(&graph, &system, Weight::Bytes).unwrap()
    }

    fn heard(problem: &Problem, slots: &[u32]) -> Vec<Candidate<Vec<u32>>> {
        vec![Candidate { cost: problem.cost(slots), solution: slots.to_vec() }]
    }

    fn deme(breeding: &Breeding<'_>) -> Subpopulation {
        let mut deme = Subpopulation::new([1; 32], [2; 32]);
        for genes in [vec![0, 5, 1, 4, 2, 3], vec![0, 4, 1, 3, 2, 5], vec![5, 0, 4, 1, 2, 3]] {
            deme.add(breeding.individual(genes));
        }
        deme
    }

    #[test]
    fn migrants_arrive_once_and_replace_the_worst() {
        let problem = problem();
        let breeding =
            Breeding::new(&problem, &GeneticParams { mutation: 0.0, ..GeneticParams::default() }).unwrap();
        let rules = Rules::new(&GeneticParams::default(), &problem, 3);
        let mut deme = deme(&breeding);
        let worst = deme.population[2].clone();
        for _ in 0..2 {
            deme.receive(&rules, &breeding, heard(&problem, &[1, 2, 3, 4]));
            assert_eq!(deme.population.len(), 3);
            assert_eq!(deme.population[0].genes, [1, 2, 3, 4, 0, 5]);
            assert!(!deme.population.contains(&worst) && deme.population[1].cost > 6);
        }
        let before = deme.population.clone();
        deme.receive(&rules, &breeding, heard(&problem, &[0, 5, 1, 4]));
        assert_eq!(deme.population, before);
    }

    #[test]
    fn the_master_sends_a_child_of_the_best() {
        let problem = problem();
        let breeding =
            Breeding::new(&problem, &GeneticParams { mutation: 0.0, ..GeneticParams::default() }).unwrap();
        let params = GeneticParams { scheme: Scheme::MasterSlave, ..GeneticParams::default() };
        let rules = Rules::new(&params, &problem, 3);
        let mut deme = deme(&breeding);
        let before = deme.population.clone();
        let both = [heard(&problem, &[1, 2, 3, 4]), heard(&problem, &[1, 2, 4, 3])].concat();
        deme.receive(&rules, &breeding, both);
        let child = deme.population.iter().find(|individual| !before.contains(individual)).unwrap();
        // A child of parents that agree on these, or of one with two genes exchanged.
        let kept = [(0, 1), (1, 2), (4, 0), (5, 5)].iter().filter(|&&(gene, slot)| child.genes[gene] == slot);
        assert!(kept.count() >= 2 && deme.population.len() == 3);
        assert_eq!(deme.debt, breeding.price());
    }

    #[test]
    fn parameters_out_of_range_are_refused() {
        let message = |params: GeneticParams| check(&params).unwrap_err().to_string();
        let params = GeneticParams::default;
        assert_eq!(
            message(GeneticParams { population: Some(1), ..params() }),
            "`population` = 1 is out of range"
        );
        assert_eq!(
            message(GeneticParams { iterations: Some(0), ..params() }),
            "`iterations` = 0 is out of range"
        );
        assert_eq!(message(GeneticParams { tournament: 0, ..params() }), "`tournament` = 0 is out of range");
        let many = GeneticParams { population: Some(4), offspring: Some(4), ..params() };
        assert_eq!(message(many), "`offspring` = 4 is out of range");
        let crowd = GeneticParams { population: Some(4), migrants: 9, ..params() };
        assert_eq!(message(crowd), "`migrants` = 9 is out of range");
        assert_eq!(
            message(GeneticParams { mutation: -0.1, ..params() }),
            "`mutation` = -0.1 is out of range"
        );
        let never = GeneticParams { crossover_probability: f64::NAN, ..params() };
        assert_eq!(message(never), "`crossover_probability` = NaN is out of range");
        check(&params()).unwrap();
    }

    #[test]
    fn populations_fit_memory() {
        assert_eq!([1, 16, 1024, 2048, 65_536, 1 << 20].map(default_population), [8, 16, 1024, 512, 16, 8]);
    }
}
