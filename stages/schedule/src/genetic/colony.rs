//! The population of one island.

use hopmap_islands::{Candidate, Meter};
use rand_pcg::Pcg64;
use rand_pcg::rand_core::{Rng, SeedableRng};
use serde::{Deserialize, Serialize};

use super::breeding::{about, cross, drawn, mutate};
use super::reading::{Genes, Reader};
use super::rules::Rules;
use crate::search::{Costs, below};
use crate::{Admissible, Plan};

/// Tasks of which a generation takes long enough to look at the clock behind each.
const SLOW: usize = 1000;

/// An individual.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Individual {
    pub(super) cost: i64,
    pub(super) genes: Genes,
}

/// The population of one island.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Colony {
    pub(super) population: Vec<Individual>,
    /// The best ever seen.
    pub(super) best: Candidate<Plan>,
    random: Pcg64,
    /// The second child of the last two parents, which is the next one of this generation.
    #[serde(skip)]
    sibling: Option<Genes>,
    /// Generations in a row that were hardly better than the one before.
    pub(super) idle: u32,
    /// Children that were inadmissible, and those that were made in all.
    pub(super) rejected: u64,
    pub(super) made: u64,
}

impl Colony {
    /// A colony with plans to begin with; the first one has to be there.
    pub(super) fn new<C: Costs>(
        rules: &Rules,
        reader: &mut Reader<'_, C>,
        starts: &[Plan],
        best: Candidate<Plan>,
        seed: [u8; 32],
        meter: &mut Meter<'_>,
    ) -> Self {
        let random = Pcg64::from_seed(seed);
        let mut colony =
            Self { population: Vec::new(), best, random, sibling: None, idle: 0, rejected: 0, made: 0 };
        for plan in starts {
            let individual = individual(reader, genes(plan));
            colony.note(reader, &individual);
            colony.population.push(individual);
        }
        let problem = reader.problem();
        while colony.population.len() < rules.first {
            // Without the first there is no population, however small the budget is.
            if !meter.take() && !colony.population.is_empty() {
                break;
            }
            let genes = drawn(problem.tasks(), problem.processors(), &mut colony.random);
            let individual = individual(reader, genes);
            colony.note(reader, &individual);
            colony.population.push(individual);
        }
        colony
    }

    /// Remembers the individual that was read last if it is the best ever.
    fn note<C: Costs>(&mut self, reader: &Reader<'_, C>, individual: &Individual) {
        if individual.cost < self.best.cost {
            let plan = Plan { order: reader.order().to_vec(), processor: individual.genes.processor.clone() };
            self.best = Candidate { cost: individual.cost, solution: plan };
        }
    }

    /// The least makespan of the population.
    fn least(&self) -> i64 {
        self.population.iter().map(|individual| individual.cost).min().unwrap_or(i64::MAX)
    }

    /// Breeds a generation; `false` if the meter stopped it.
    pub(super) fn breed<C: Costs>(
        &mut self,
        rules: &Rules,
        reader: &mut Reader<'_, C>,
        meter: &mut Meter<'_>,
    ) -> bool {
        self.sibling = None;
        let old = self.population.len();
        let before = self.least();
        let mutants = about(rules.mutation * old as f64, &mut self.random);
        let children = about(rules.recombination * old as f64, &mut self.random);
        // Nobody at all would go on for ever.
        let mutants = if mutants + children == 0 { 1 } else { mutants };
        for _ in 0..mutants {
            if !self.add(rules, reader, old, true, meter) {
                return false;
            }
        }
        // Mutants of the same generation may be parents.
        let parents = self.population.len();
        for _ in 0..children {
            if !self.add(rules, reader, parents, false, meter) {
                return false;
            }
        }
        self.select(rules);
        let gain = before - self.least();
        let is_idle = reader.problem().real(gain.max(0)) <= rules.min_difference;
        self.idle = if is_idle { self.idle + 1 } else { 0 };
        reader.problem().tasks() < SLOW || meter.look()
    }

    /// Adds a mutant of one of the first individuals, or a child of two; `false` if the meter stopped it.
    fn add<C: Costs>(
        &mut self,
        rules: &Rules,
        reader: &mut Reader<'_, C>,
        parents: usize,
        is_mutant: bool,
        meter: &mut Meter<'_>,
    ) -> bool {
        if !meter.take() {
            return false;
        }
        for _ in 0..rules.tries {
            let mut genes = self.draw(rules, reader, parents, is_mutant);
            self.made += 1;
            match rules.admissible {
                Admissible::Repair => reader.repair(&mut genes),
                Admissible::Reject if reader.accept(&genes) => {}
                Admissible::Reject => {
                    self.rejected += 1;
                    continue;
                }
            }
            let cost = reader.makespan(&genes.processor);
            let individual = Individual { cost, genes };
            self.note(reader, &individual);
            self.population.push(individual);
            break;
        }
        true
    }

    fn draw<C: Costs>(
        &mut self,
        rules: &Rules,
        reader: &Reader<'_, C>,
        parents: usize,
        is_mutant: bool,
    ) -> Genes {
        if let Some(sibling) = self.sibling.take() {
            return sibling;
        }
        let one = below(self.random.next_u32(), parents);
        if is_mutant {
            let mut genes = self.population[one].genes.clone();
            mutate(&mut genes, reader.problem().processors(), rules, &mut self.random);
            return genes;
        }
        let other = below(self.random.next_u32(), parents.saturating_sub(1).max(1));
        let other = if other >= one && parents > 1 { other + 1 } else { other };
        let parents = [one, other].map(|parent| &self.population[parent].genes);
        let [child, sibling] = cross(parents[0], parents[1], rules, &mut self.random);
        self.sibling = Some(sibling);
        child
    }

    /// Leaves as many as a population has: some of the best, and of the others those that count least with a random penalty.
    fn select(&mut self, rules: &Rules) {
        self.population.sort_by_key(|individual| individual.cost);
        let others = self.population.split_off(rules.elites.min(rules.population).min(self.population.len()));
        let mut penalised: Vec<(f64, Individual)> = others
            .into_iter()
            .map(|individual| {
                let part = f64::from(self.random.next_u32()) / 4_294_967_296.0;
                (individual.cost as f64 * (1.0 + part * rules.penalty), individual)
            })
            .collect();
        penalised.sort_by(|one, other| one.0.total_cmp(&other.0));
        let room = rules.population - self.population.len();
        self.population.extend(penalised.into_iter().take(room).map(|(_, individual)| individual));
    }

    /// Takes in a plan from elsewhere in the place of the worst, if it is better and not there yet.
    pub(super) fn hear(&mut self, candidate: Candidate<Plan>) {
        let individual = Individual { cost: candidate.cost, genes: genes(&candidate.solution) };
        if candidate.cost < self.best.cost {
            self.best = candidate;
        }
        let is_known = self.population.contains(&individual);
        let worst = self.population.iter_mut().max_by_key(|individual| individual.cost);
        if let Some(worst) = worst.filter(|worst| !is_known && individual.cost < worst.cost) {
            *worst = individual;
        }
    }
}

/// The genes of a plan: ranks are places in its order.
fn genes(plan: &Plan) -> Genes {
    let mut rank = vec![0; plan.order.len()];
    for (place, &task) in (0..).zip(&plan.order) {
        rank[task as usize] = place;
    }
    Genes { processor: plan.processor.clone(), rank }
}

fn individual<C: Costs>(reader: &mut Reader<'_, C>, mut genes: Genes) -> Individual {
    reader.repair(&mut genes);
    Individual { cost: reader.makespan(&genes.processor), genes }
}
