//! `schedule/genetic` for tasks that may run anywhere: the genetic algorithm of PARUS.

mod genes;
mod rules;

use std::sync::atomic::{AtomicU64, Ordering};

use hopmap_islands::{Candidate, Evolution, Exchange, Meter};
use hopmap_model::{Context, Error, seed_stream};
use hopmap_random::{Pcg64, Rng, SeedableRng, index_below};
use serde::{Deserialize, Serialize};

use crate::bounds::lower_bound;
use crate::costs::{Costs, with_costs};
use crate::params::{Admissible, GeneticParams};
use crate::plan::{Evaluator, Plan, Scheduler, SearchResult};
use crate::problem::Problem;
use genes::{Genes, Reader, cross, draw_around, draw_genes, mutate};
use rules::{Rules, check, read_ini};

/// Number of tasks above which the clock is checked after every evaluation.
const SLOW: usize = 1000;

/// The genetic algorithm of PARUS (Salnikov, Sazonov).
///
/// An individual has for every task its processor and its rank, a number that determines the order. The first population is
/// random. In every generation some individuals mutate; mutants and old individuals are crossed at several points by exchanging
/// complete entries of tasks. Survivors are selected from all of them, including the old ones: those with the least makespan
/// after a random penalty, so that some worse ones survive. The incumbent is kept.
///
/// Individuals whose ranks contradict the program are repaired, or discarded and replaced: see [`Admissible`]. Every island has a
/// population, and the best individual of each migrates in a ring.
impl Scheduler for GeneticParams {
    fn check(&self) -> Result<(), Error> {
        check(self)?;
        self.budget()?;
        Ok(())
    }

    fn schedule(&self, problem: &Problem, cx: &Context<'_>) -> Result<SearchResult<Plan>, Error> {
        Scheduler::check(self)?;
        let budget = self.budget()?;
        let rules = Rules::new(self, &read_ini(self)?, problem);
        let default = rules.most_evaluations();
        let mut starts = Vec::new();
        if self.seeded {
            starts.extend(crate::list::all(problem).into_iter().map(|(_, plan)| plan));
        }
        let bound = lower_bound(problem);
        let plan = Plan::serial(problem, 0);
        let worst = Candidate { cost: Evaluator::new(problem).makespan(&plan), solution: plan };
        let [made, rejected] = [0, 0].map(AtomicU64::new);
        let found = with_costs!(problem, |costs| {
            let (made, rejected) = (&made, &rejected);
            let costs = &costs;
            let populations =
                Populations { costs, seed: self.seed, rules: &rules, starts, bound, worst, made, rejected };
            budget.evolve(&populations, default, cx)
        })?;
        let [made, rejected] = [made, rejected].map(AtomicU64::into_inner);
        if rules.admissible == Admissible::Reject && made > 0 {
            let part = 100.0 * rejected as f64 / made as f64;
            cx.log(format!("{part:.1} % of {made} children were inadmissible"));
        }
        Ok(SearchResult::of_islands(found, bound))
    }
}

/// Populations on all islands.
struct Populations<'s, C> {
    costs: &'s C,
    seed: u64,
    rules: &'s Rules,
    starts: Vec<Plan>,
    bound: i64,
    /// Everything on one processor: an upper bound that any individual replaces.
    worst: Candidate<Plan>,
    /// Number of children of islands in this process, and of inadmissible ones.
    made: &'s AtomicU64,
    rejected: &'s AtomicU64,
}

impl<C: Costs> Evolution for Populations<'_, C> {
    type Island = Subpopulation;
    type Solution = Plan;

    fn begin(&self, island: u32, meter: &mut Meter<'_>) -> Result<Subpopulation, Error> {
        let seed = seed_stream(GeneticParams::KIND, self.seed, u64::from(island));
        let mut reader = Reader::new(self.costs);
        Ok(Subpopulation::new(self.rules, &mut reader, &self.starts, self.worst.clone(), seed, meter))
    }

    fn advance(&self, deme: &mut Subpopulation, epoch: u64, meter: &mut Meter<'_>) -> Result<bool, Error> {
        let rules = self.rules;
        if epoch >= rules.cycles || deme.best.cost <= self.bound {
            return Ok(false);
        }
        let before = (deme.made, deme.rejected);
        let goes_on = deme.breed(rules, &mut Reader::new(self.costs), meter);
        self.made.fetch_add(deme.made - before.0, Ordering::Relaxed);
        self.rejected.fetch_add(deme.rejected - before.1, Ordering::Relaxed);
        let is_idle = rules.idle_iterations.is_some_and(|most| deme.idle >= most);
        Ok(goes_on && !is_idle && epoch + 1 < rules.cycles && deme.best.cost > self.bound)
    }

    fn best(&self, deme: &Subpopulation) -> Candidate<Plan> {
        deme.best.clone()
    }

    fn exchange(&self, epoch: u64) -> Exchange {
        let every = u64::from(self.rules.exchange_interval);
        if every > 0 && (epoch + 1).is_multiple_of(every) { Exchange::Ring } else { Exchange::Nobody }
    }

    fn receive(&self, deme: &mut Subpopulation, _: u64, migrants: Vec<Candidate<Plan>>) {
        migrants.into_iter().for_each(|candidate| deme.receive(candidate));
    }
}

/// An individual.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Individual {
    cost: i64,
    genes: Genes,
}

/// The population of one island.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Subpopulation {
    population: Vec<Individual>,
    /// The incumbent.
    best: Candidate<Plan>,
    random: Pcg64,
    /// The second child of the last two parents, which is the next child of this generation.
    #[serde(skip)]
    sibling: Option<Genes>,
    /// Consecutive generations with hardly any improvement.
    idle: u32,
    /// Number of inadmissible children, and of all children.
    rejected: u64,
    made: u64,
}

impl Subpopulation {
    /// A subpopulation with initial plans; the first individual is mandatory.
    fn new<C: Costs>(
        rules: &Rules,
        reader: &mut Reader<'_, C>,
        starts: &[Plan],
        best: Candidate<Plan>,
        seed: [u8; 32],
        meter: &mut Meter<'_>,
    ) -> Self {
        let random = Pcg64::from_seed(seed);
        let mut deme =
            Self { population: Vec::new(), best, random, sibling: None, idle: 0, rejected: 0, made: 0 };
        for plan in starts {
            let individual = evaluate_genes(reader, genes_of(plan));
            deme.note(reader, &individual);
            deme.population.push(individual);
        }
        let problem = reader.problem();
        while deme.population.len() < rules.first {
            // The first individual is created for any budget, because the population must not be empty.
            if !meter.take() && !deme.population.is_empty() {
                break;
            }
            let genes = draw_genes(problem.tasks(), problem.processors(), &mut deme.random);
            let individual = evaluate_genes(reader, genes);
            deme.note(reader, &individual);
            deme.population.push(individual);
        }
        deme
    }

    /// Keeps the last decoded individual if it is the best so far.
    fn note<C: Costs>(&mut self, reader: &Reader<'_, C>, individual: &Individual) {
        if individual.cost < self.best.cost {
            let plan = Plan { order: reader.order().to_vec(), processor: individual.genes.processor.clone() };
            self.best = Candidate { cost: individual.cost, solution: plan };
        }
    }

    /// The least makespan of the population.
    fn least_makespan(&self) -> i64 {
        self.population.iter().map(|individual| individual.cost).min().unwrap_or(i64::MAX)
    }

    /// Breeds a generation; `false` if the meter stopped it.
    fn breed<C: Costs>(&mut self, rules: &Rules, reader: &mut Reader<'_, C>, meter: &mut Meter<'_>) -> bool {
        self.sibling = None;
        let old = self.population.len();
        let before = self.least_makespan();
        let mutants = draw_around(rules.mutation * old as f64, &mut self.random);
        let children = draw_around(rules.recombination * old as f64, &mut self.random);
        // An empty generation would loop forever.
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
        let gain = before - self.least_makespan();
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
        let one = index_below(self.random.next_u32(), parents);
        if is_mutant {
            let mut genes = self.population[one].genes.clone();
            mutate(&mut genes, reader.problem().processors(), rules, &mut self.random);
            return genes;
        }
        let other = index_below(self.random.next_u32(), parents.saturating_sub(1).max(1));
        let other = if other >= one && parents > 1 { other + 1 } else { other };
        let parents = [one, other].map(|parent| &self.population[parent].genes);
        let [child, sibling] = cross(parents[0], parents[1], rules, &mut self.random);
        self.sibling = Some(sibling);
        child
    }

    /// Selects the survivors: some of the best, and of the others those with the least makespan after a random penalty.
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

    /// Replaces the worst individual by a plan of another island, if that is better and new.
    fn receive(&mut self, candidate: Candidate<Plan>) {
        let individual = Individual { cost: candidate.cost, genes: genes_of(&candidate.solution) };
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

/// The genes of a plan: ranks are positions in its order.
fn genes_of(plan: &Plan) -> Genes {
    let mut rank = vec![0; plan.order.len()];
    for (place, &task) in (0..).zip(&plan.order) {
        rank[task as usize] = place;
    }
    Genes { processor: plan.processor.clone(), rank }
}

fn evaluate_genes<C: Costs>(reader: &mut Reader<'_, C>, mut genes: Genes) -> Individual {
    reader.repair(&mut genes);
    Individual { cost: reader.makespan(&genes.processor), genes }
}
