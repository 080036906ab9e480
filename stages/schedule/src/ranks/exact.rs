//! `schedule/exact` of ranks: branch and bound over the slot of one rank after the other.

use std::time::Instant;

use hopmap_islands::{Budget, Candidate, Counts, Island, Meter};
use hopmap_model::{Context, Error};

use super::evaluate::Pass;
use super::problem::RankProblem;
use super::symmetry::Symmetry;
use super::{best_start, bound};
use crate::{ExactParams, Found, ParameterError};

/// Most ranks whose placements are searched.
const MOST_RANKS: usize = 12;
/// Most slots.
const MOST_SLOTS: usize = 1 << 12;
/// Partial placements that are looked at where nothing is limited.
const EVALUATIONS: u64 = 2_000_000;

/// `schedule/exact`: of few ranks the proven optimum; of more the best start and a lower bound. Evaluations are partial placements
/// looked at.
pub fn exact(
    params: &ExactParams,
    problem: &RankProblem,
    cx: &Context<'_>,
) -> Result<Found<Vec<u32>>, Error> {
    let budget = Budget::new(params.evaluations, params.seconds, 1).map_err(ParameterError::from)?;
    let started = Instant::now();
    let begin = best_start(problem, cx)?;
    if problem.ranks > MOST_RANKS || problem.slots > MOST_SLOTS || begin.is_proven() {
        if !begin.is_proven() {
            cx.log(format!(
                "more than {MOST_RANKS} ranks or {MOST_SLOTS} slots are too many for branch and bound: there is only a bound"
            ));
        }
        return Ok(begin);
    }
    let budget = budget.after(0, started.elapsed());
    let found = budget.search(EVALUATIONS, cx, |_, mut meter| {
        let mut search = Search::new(problem, &begin);
        let is_proven = search.branch(0, &mut meter);
        let best = Candidate { cost: search.best.cost, solution: (search.best.solution, is_proven) };
        Ok::<_, Error>(Island {
            evaluations: meter.spent(),
            convergence: vec![(meter.spent(), best.cost)],
            best,
            interrupted: meter.interrupted(),
            counts: Counts::new(),
        })
    })?;
    let (best, proven) = found.best.solution;
    Ok(Found {
        best,
        makespan: found.best.cost,
        lower_bound: if proven { found.best.cost } else { bound::lower_bound(problem) },
        evaluations: found.evaluations,
        convergence: found.convergence,
        complete: found.complete,
    })
}

/// Where the search is.
struct Search<'p> {
    problem: &'p RankProblem,
    /// Ranks in the order in which they are placed.
    order: Vec<u32>,
    /// The slot of every rank; of one that is not placed, the best that there could be.
    slots: Vec<u32>,
    is_free: Vec<bool>,
    symmetry: Symmetry,
    delays: Vec<i64>,
    pass: Pass,
    best: Candidate<Vec<u32>>,
}

impl<'p> Search<'p> {
    fn new(problem: &'p RankProblem, begin: &Found<Vec<u32>>) -> Self {
        Self {
            problem,
            order: order(problem),
            slots: vec![problem.ideal(); problem.ranks],
            is_free: vec![true; problem.slots],
            symmetry: Symmetry::new(problem),
            delays: Vec::new(),
            pass: Pass::new(problem),
            best: Candidate { cost: begin.makespan, solution: begin.best.clone() },
        }
    }

    /// Places the ranks from one on; `false` if the meter stopped it.
    fn branch(&mut self, depth: usize, meter: &mut Meter<'_>) -> bool {
        let Some(&rank) = self.order.get(depth) else { return true };
        let mut children = Vec::new();
        for slot in self.symmetry.different(&self.is_free) {
            if !self.goes_on(meter) {
                return false;
            }
            self.put(rank, slot);
            if let Some(bound) = self.bound() {
                children.push((bound, slot));
            }
            self.clear(rank, slot);
        }
        children.sort_unstable();
        for (bound, slot) in children {
            if bound >= self.best.cost {
                break;
            }
            self.put(rank, slot);
            if depth + 1 == self.order.len() {
                self.best = Candidate { cost: bound, solution: self.slots.clone() };
            }
            let goes_on = self.branch(depth + 1, meter);
            self.clear(rank, slot);
            if !goes_on {
                return false;
            }
        }
        true
    }

    /// Takes a partial placement from the budget; `false` if it is over.
    fn goes_on(&self, meter: &mut Meter<'_>) -> bool {
        meter.take() && (!meter.spent().is_multiple_of(self.problem.passes_a_look()) || meter.look())
    }

    fn put(&mut self, rank: u32, slot: u32) {
        self.slots[rank as usize] = slot;
        self.is_free[slot as usize] = false;
    }

    fn clear(&mut self, rank: u32, slot: u32) {
        self.slots[rank as usize] = self.problem.ideal();
        self.is_free[slot as usize] = true;
    }

    /// A makespan that no placement of the ranks that are left is below, if it is below the best: a link that has one end takes what it takes to the
    /// nearest free slot, and one without ends the least.
    fn bound(&mut self) -> Option<i64> {
        let (problem, ideal) = (self.problem, self.problem.ideal());
        let free = || (0..problem.slots as u32).filter(|&slot| self.is_free[slot as usize]);
        self.delays.clear();
        for &link in &problem.program.links.all {
            let [from, to] = [link.from, link.to].map(|rank| self.slots[rank as usize]);
            let ticks = |from, to| problem.delays.ticks(link.size, from, to);
            let nearest = match (from == ideal, to == ideal) {
                (true, true) => Some(problem.near.least(link)),
                (true, false) => free().map(|slot| ticks(slot, to)).min(),
                (false, true) => free().map(|slot| ticks(from, slot)).min(),
                (false, false) => Some(ticks(from, to)),
            };
            self.delays.push(nearest.unwrap_or(i64::MAX >> 8));
        }
        self.pass.run(problem, &self.slots, &self.delays, self.best.cost - 1).ok()
    }
}

/// The ranks in an order in which each has as much as possible to do with those before it.
fn order(problem: &RankProblem) -> Vec<u32> {
    let links = &problem.program.links;
    let weight = |number: u32| {
        i128::from(problem.critical.delays[number as usize]) + i128::from(links.messages[number as usize])
    };
    let mut order: Vec<u32> = Vec::with_capacity(problem.ranks);
    while order.len() < problem.ranks {
        let left = (0..problem.ranks as u32).filter(|rank| !order.contains(rank));
        let tied = |rank: u32| -> (i128, i128) {
            let own = links.of(rank).iter().map(|&number| (links.all[number as usize], weight(number)));
            own.fold((0, 0), |(placed, all), (link, weight)| {
                let other = if link.from == rank { link.to } else { link.from };
                (if order.contains(&other) { placed + weight } else { placed }, all + weight)
            })
        };
        let next = left.max_by_key(|&rank| (tied(rank), std::cmp::Reverse(rank)));
        next.into_iter().for_each(|rank| order.push(rank));
    }
    order
}
