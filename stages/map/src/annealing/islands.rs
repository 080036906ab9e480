//! Islands of solvers that exchange their best placements.

use hopmap_islands::{Candidate, Counts, Evolution, Exchange, Meter};
use hopmap_model::{Context, Error, Stage, seed_stream};
use hopmap_objective::Problem;
use rand_pcg::Pcg64;
use rand_pcg::rand_core::{Rng, SeedableRng};
use serde::{Deserialize, Serialize};

use super::rules::Rules;
use super::solver::Solver;
use super::walk::Walk;
use crate::AnnealingStage;
use crate::finish::{ACCEPTED_CHILDREN, EXCHANGES};
use crate::genetic::{Breeding, completed};

/// Streams of random numbers that an island has: its own and those of its solvers.
const STREAMS: u64 = 1 << 32;

/// Solvers of all islands on one problem.
pub(crate) struct Solvers<'p> {
    pub(crate) problem: &'p Problem,
    pub(crate) rules: Rules,
    pub(crate) seed: u64,
    pub(crate) reheats: bool,
    /// Whether it begins again from another placement when it has come to its end.
    pub(crate) repeats: bool,
    /// What islands breed with at the beginning instead of handing over the best.
    pub(crate) breeding: Option<Breeding<'p>>,
}

/// One island.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Workshop {
    /// Where all solvers begin.
    current: Candidate<Vec<u32>>,
    best: Candidate<Vec<u32>>,
    solvers: Vec<Solver>,
    random: Pcg64,
    /// Evaluations of children that are not paid yet.
    debt: u64,
    /// Exchanges after which solvers went on.
    exchanges: u64,
    accepted_children: u64,
}

impl Solvers<'_> {
    /// The place of an epoch in its annealing.
    fn place(&self, epoch: u64) -> u64 {
        epoch % self.rules.epochs()
    }

    /// Whether islands met before an epoch within an annealing.
    fn is_exchange_before(&self, epoch: u64) -> bool {
        self.place(epoch) > 0 && self.exchange(epoch - 1) != Exchange::Nobody
    }

    fn random_placement(&self, random_numbers: &mut Pcg64) -> Candidate<Vec<u32>> {
        let mut seed = [0; 32];
        random_numbers.fill_bytes(&mut seed);
        let slots = self.problem.random(seed);
        Candidate { cost: self.problem.cost(&slots), solution: slots }
    }

    /// Prepares the solvers for an epoch: at the start of an annealing all begin, after an exchange some are heated again.
    fn prepare(&self, island: &mut Workshop, epoch: u64) -> Result<(), Error> {
        let first = self.place(epoch) == 0;
        if first && epoch > 0 {
            island.current = self.random_placement(&mut island.random);
        }
        for solver in &mut island.solvers {
            match (first, self.reheats) {
                (true, _) => solver.begin(&self.rules, island.current.cost)?,
                (false, true) => solver.heat(&self.rules, island.current.cost)?,
                (false, false) => {}
            }
        }
        Ok(())
    }

    /// Crosses the own placement with one that was heard; annealing decides about the child.
    fn breed(&self, breeding: &Breeding<'_>, island: &mut Workshop, heard: &Candidate<Vec<u32>>) {
        let all = self.problem.slots();
        let parents = [&island.current.solution, &heard.solution].map(|slots| completed(slots, all));
        let child = breeding.child(&parents[0], &parents[1], &mut island.random);
        island.debt += breeding.price();
        let rise = child.cost - island.current.cost;
        let accepted = island.solvers.first_mut().is_some_and(|solver| solver.accepts(rise));
        island.accepted_children += u64::from(accepted);
        if accepted {
            let solution = child.genes[..self.problem.ranks()].to_vec();
            island.current = Candidate { cost: child.cost, solution };
        }
    }
}

impl Evolution for Solvers<'_> {
    type Island = Workshop;
    type Solution = Vec<u32>;

    fn begin(&self, island: u32, _: &mut Meter<'_>) -> Result<Workshop, Error> {
        let stream =
            |number: u64| seed_stream(AnnealingStage::KIND, self.seed, u64::from(island) * STREAMS + number);
        let mut random = Pcg64::from_seed(stream(0));
        let current = self.random_placement(&mut random);
        let solvers = (1..=u64::from(self.rules.solvers)).map(|solver| Solver::new(stream(solver))).collect();
        Ok(Workshop {
            best: current.clone(),
            current,
            solvers,
            random,
            debt: 0,
            exchanges: 0,
            accepted_children: 0,
        })
    }

    fn advance(&self, island: &mut Workshop, epoch: u64, meter: &mut Meter<'_>) -> Result<bool, Error> {
        if !meter.take_all(std::mem::take(&mut island.debt)) {
            return Ok(false);
        }
        self.prepare(island, epoch)?;
        if island.solvers.iter().any(|solver| !solver.finished) {
            island.exchanges += u64::from(self.is_exchange_before(epoch));
            let iterations = self.rules.iterations_of(self.place(epoch));
            let mut walk = Walk::new(self.problem, &island.current.solution)?;
            for solver in &mut island.solvers {
                solver.anneal(&self.rules, &mut walk, iterations, meter);
                if walk.best_cost() < island.current.cost {
                    island.current.cost = walk.best_cost();
                    island.current.solution.copy_from_slice(walk.best());
                }
                walk.restart();
            }
        }
        if island.current.cost < island.best.cost {
            island.best = island.current.clone();
        }
        let is_last = self.place(epoch + 1) == 0;
        let is_over = is_last || !self.reheats && island.solvers.iter().all(|solver| solver.finished);
        Ok(island.best.cost > 0 && (self.repeats || !is_over))
    }

    fn best(&self, island: &Workshop) -> Candidate<Vec<u32>> {
        island.best.clone()
    }

    fn counts(&self, island: &Workshop) -> Counts {
        let mut counts = Counts::from([(EXCHANGES.to_owned(), island.exchanges)]);
        if self.breeding.is_some() {
            counts.insert(ACCEPTED_CHILDREN.to_owned(), island.accepted_children);
        }
        counts
    }

    fn exchange(&self, epoch: u64) -> Exchange {
        match self.breeding {
            Some(_) if self.place(epoch) < self.rules.generations => Exchange::Ring,
            Some(_) => Exchange::Nobody,
            None => Exchange::Best,
        }
    }

    fn send(&self, island: &Workshop, _: u64) -> Vec<Candidate<Vec<u32>>> {
        vec![island.current.clone()]
    }

    fn receive(&self, island: &mut Workshop, _: u64, heard: Vec<Candidate<Vec<u32>>>) {
        let Some(heard) = heard.into_iter().next() else { return };
        match &self.breeding {
            Some(breeding) => self.breed(breeding, island, &heard),
            None => island.current = heard,
        }
        if island.current.cost < island.best.cost {
            island.best = island.current.clone();
        }
    }
}

/// What a search tells the user before it begins.
pub(crate) fn announce(rules: &Rules, cx: &Context<'_>) {
    let meetings = match rules.generations {
        0 => format!("an exchange after every {}", rules.successive),
        generations => format!("in the beginning {generations} generations"),
    };
    cx.log(format!("{} solvers on every island, {} iterations, {meetings}", rules.solvers, rules.iterations));
}
