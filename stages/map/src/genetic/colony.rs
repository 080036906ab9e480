//! The population of one island.

use hopmap_islands::{Candidate, Counts, Exchange, Meter};
use rand_pcg::Pcg64;
use rand_pcg::rand_core::{Rng, SeedableRng};
use serde::{Deserialize, Serialize};

use super::breeding::{Breeding, Individual, completed};
use super::crossover::number_below;
use super::rules::Rules;
use crate::finish::GENERATIONS;
use crate::{Master, Scheme};

/// The population of one island, the best individual first.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Colony {
    pub(crate) population: Vec<Individual>,
    pub(crate) random: Pcg64,
    /// What the master breeds with for this island.
    master: Pcg64,
    /// Evaluations of the master that are not paid yet.
    debt: u64,
    generations: u64,
}

impl Colony {
    /// An empty one, with a stream of random numbers of its own and one for the master.
    pub(crate) fn new(own: [u8; 32], master: [u8; 32]) -> Self {
        Self {
            population: Vec::new(),
            random: Pcg64::from_seed(own),
            master: Pcg64::from_seed(master),
            debt: 0,
            generations: 0,
        }
    }

    /// Adds an individual behind those that cost no more.
    pub(crate) fn add(&mut self, individual: Individual) {
        let at = self.population.partition_point(|other| other.cost <= individual.cost);
        self.population.insert(at, individual);
    }

    /// The best individual; there always is one.
    pub(crate) fn best(&self, breeding: &Breeding<'_>) -> Candidate<Vec<u32>> {
        self.bests(breeding, 1).remove(0)
    }

    /// The best individuals as placements.
    pub(crate) fn bests(&self, breeding: &Breeding<'_>, number: usize) -> Vec<Candidate<Vec<u32>>> {
        let ranks = breeding.problem().ranks();
        let placement = |individual: &Individual| Candidate {
            cost: individual.cost,
            solution: individual.genes[..ranks].to_vec(),
        };
        self.population.iter().take(number).map(placement).collect()
    }

    /// Breeds children, which replace the worst; `false` if the meter stopped it.
    pub(crate) fn iterate(&mut self, rules: &Rules, breeding: &Breeding<'_>, meter: &mut Meter<'_>) -> bool {
        if !meter.take_all(std::mem::take(&mut self.debt)) {
            return false;
        }
        let mut children = Vec::with_capacity(rules.children);
        while children.len() < rules.children {
            let wanted = (rules.children - children.len()).min(2);
            if !meter.take_all(breeding.price() * wanted as u64) {
                break;
            }
            children.extend(self.pair(rules, breeding).into_iter().take(wanted));
        }
        let goes_on = children.len() == rules.children;
        self.generations += u64::from(goes_on);
        // The best stays, even in a population that is not complete.
        self.population.truncate((self.population.len() - children.len().min(self.population.len())).max(1));
        for child in children {
            self.add(child);
        }
        goes_on
    }

    /// Two children of two selected parents.
    fn pair(&mut self, rules: &Rules, breeding: &Breeding<'_>) -> [Individual; 2] {
        let [a, b] = [self.select(rules.tournament), self.select(rules.tournament)];
        let (a, b) = (&self.population[a].genes, &self.population[b].genes);
        let threshold = (rules.crossover_probability * 2_f64.powi(32)) as u64;
        if u64::from(self.random.next_u32()) < threshold {
            breeding.children(a, b, &mut self.random)
        } else {
            [a, b].map(|parent| breeding.mutated(parent.clone(), &mut self.random))
        }
    }

    /// The best of some individuals drawn at random: the lowest number, as the population is in order.
    fn select(&mut self, tournament: u32) -> usize {
        let draws = (0..tournament).map(|_| number_below(&mut self.random, self.population.len()));
        draws.min().unwrap_or(0)
    }

    /// How often it has bred all its children.
    pub(crate) fn counts(&self) -> Counts {
        Counts::from([(GENERATIONS.to_owned(), self.generations)])
    }

    /// What it sends after an iteration.
    pub(crate) fn send(&self, rules: &Rules, breeding: &Breeding<'_>) -> Vec<Candidate<Vec<u32>>> {
        let number = match rules.scheme {
            Scheme::Ring => rules.migrants,
            Scheme::MasterSlave => 1,
        };
        self.bests(breeding, number)
    }

    /// Takes in what it hears after an iteration: migrants, or the best of all that the master breeds with.
    pub(crate) fn receive(
        &mut self,
        rules: &Rules,
        breeding: &Breeding<'_>,
        heard: Vec<Candidate<Vec<u32>>>,
    ) {
        let all = breeding.problem().slots();
        let genes = heard.into_iter().map(|candidate| (candidate.cost, completed(&candidate.solution, all)));
        match rules.scheme {
            Scheme::Ring => {
                for (cost, genes) in genes {
                    self.admit(rules, breeding, Individual { cost, genes });
                }
            }
            Scheme::MasterSlave => {
                let parents: Vec<Vec<u32>> = genes.map(|(_, genes)| genes).collect();
                for _ in 0..rules.migrants {
                    let mut draw = || number_below(&mut self.master, parents.len());
                    let (a, b) = (draw(), draw());
                    let child = breeding.child(&parents[a], &parents[b], &mut self.master);
                    self.debt += breeding.price();
                    self.admit(rules, breeding, child);
                }
            }
        }
    }

    /// Replaces the worst individual by a better one; by default by none that is there already, as migrants that come again and
    /// again would soon be all there is.
    fn admit(&mut self, rules: &Rules, breeding: &Breeding<'_>, individual: Individual) {
        let ranks = breeding.problem().ranks();
        let equals = self.population.iter().filter(|other| other.cost == individual.cost);
        let is_known = equals.into_iter().any(|other| other.genes[..ranks] == individual.genes[..ranks]);
        if (rules.duplicate_migrants || !is_known)
            && self.population.last().is_some_and(|worst| individual.cost < worst.cost)
        {
            self.population.pop();
            self.add(individual);
        }
    }
}

/// Who hears what islands send.
pub(crate) fn exchange(rules: &Rules) -> Exchange {
    match (rules.scheme, rules.master) {
        _ if rules.migrants == 0 => Exchange::Nobody,
        (Scheme::Ring, _) => Exchange::Ring,
        (Scheme::MasterSlave, Master::Breeds) => Exchange::Everybody,
        (Scheme::MasterSlave, Master::Reduces) => Exchange::Nobody,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use crate::{Crossover, GeneticParams};
    use hopmap_model::{CostModel, Edge, Matrix, Node, Process, Slot, SystemGraph, TaskGraph, Weight};
    use hopmap_objective::Problem;

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
        };
        Problem::new(&graph, &system, Weight::Bytes).unwrap()
    }

    fn heard(problem: &Problem, slots: &[u32]) -> Vec<Candidate<Vec<u32>>> {
        vec![Candidate { cost: problem.cost(slots), solution: slots.to_vec() }]
    }

    fn colony(breeding: &Breeding<'_>) -> Colony {
        let mut colony = Colony::new([1; 32], [2; 32]);
        for genes in [vec![0, 5, 1, 4, 2, 3], vec![0, 4, 1, 3, 2, 5], vec![5, 0, 4, 1, 2, 3]] {
            colony.add(breeding.individual(genes));
        }
        colony
    }

    #[test]
    fn migrants_arrive_once_and_replace_the_worst() {
        let problem = problem();
        let breeding = Breeding::new(&problem, Crossover::Basic, 0.0, true);
        let rules = Rules::new(&GeneticParams::default(), &problem, 3);
        let mut colony = colony(&breeding);
        let worst = colony.population[2].clone();
        for _ in 0..2 {
            colony.receive(&rules, &breeding, heard(&problem, &[1, 2, 3, 4]));
            assert_eq!(colony.population.len(), 3);
            assert_eq!(colony.population[0].genes, [1, 2, 3, 4, 0, 5]);
            assert!(!colony.population.contains(&worst) && colony.population[1].cost > 6);
        }
        let before = colony.population.clone();
        colony.receive(&rules, &breeding, heard(&problem, &[0, 5, 1, 4]));
        assert_eq!(colony.population, before);
    }

    #[test]
    fn the_master_hands_out_a_child_of_the_best() {
        let problem = problem();
        let breeding = Breeding::new(&problem, Crossover::Basic, 0.0, true);
        let params = GeneticParams { scheme: Scheme::MasterSlave, ..GeneticParams::default() };
        let rules = Rules::new(&params, &problem, 3);
        let mut colony = colony(&breeding);
        let before = colony.population.clone();
        let both = [heard(&problem, &[1, 2, 3, 4]), heard(&problem, &[1, 2, 4, 3])].concat();
        colony.receive(&rules, &breeding, both);
        let child = colony.population.iter().find(|individual| !before.contains(individual)).unwrap();
        // Of parents that agree on these, or of one with two genes exchanged.
        let kept = [(0, 1), (1, 2), (4, 0), (5, 5)].iter().filter(|&&(gene, slot)| child.genes[gene] == slot);
        assert!(kept.count() >= 2 && colony.population.len() == 3);
        assert_eq!(colony.debt, breeding.price());
    }
}
