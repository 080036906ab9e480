//! Branch and bound over the slots of ranks, rank by rank.
//!
//! The bound of a partial mapping is its makespan with optimistic times: a message between a placed rank and
//! another one takes the time to the nearest free slot, and one between two ranks that are not placed the least time
//! of all. Of slots that an automorphism of the machine exchanges only one is tried.

use std::time::Instant;

use hopmap_islands::{Budget, Candidate as Best, Counts, Island, Meter};
use hopmap_model::{Context, Error};
use hopmap_replay::{MakespanEvaluator, ReplayProblem};

use super::Makespan;
use crate::exact::{NODES, PROVEN, Symmetry};
use crate::mapper::SearchResult;
use crate::params::ExactParams;

/// Largest number of ranks, and of slots, for the search.
const MOST_RANKS: usize = 12;
const MOST_SLOTS: usize = 512;

impl Makespan<'_> {
    /// The proven optimum for few ranks; otherwise the best candidate and a lower bound.
    pub(crate) fn prove(&self, params: &ExactParams, cx: &Context<'_>) -> Result<SearchResult, Error> {
        let begin = Instant::now();
        let budget = Budget::new(params.max_search_nodes, params.time_limit_s, 1)?;
        let start = self.candidates(params.seed, &budget, cx)?.swap_remove(0);
        let budget = budget.after(0, begin.elapsed());
        let bound = self.replay.lower_bound();
        let best = Best { cost: start.makespan, solution: start.slots };
        let [ranks, slots] = [self.replay.ranks(), self.replay.slots()];
        let is_small = ranks <= MOST_RANKS && slots <= MOST_SLOTS;
        if !is_small {
            cx.log(format_args!(
                "{ranks} ranks on {slots} slots are too many for branch and bound, which takes at most {MOST_RANKS} on {MOST_SLOTS}: the result is the best candidate and a lower bound"
            ));
        }
        let found = budget.search(u64::MAX, cx, |_, mut meter| {
            let mut tree = Tree::new(self, best.clone());
            let proven = best.cost <= bound || is_small && tree.branch(0, &mut meter);
            Ok::<_, Error>(Island {
                evaluations: meter.spent(),
                convergence: vec![(meter.spent(), tree.best.cost)],
                best: tree.best,
                interrupted: meter.interrupted(),
                counts: Counts::from([(PROVEN.name.to_owned(), u64::from(proven))]),
            })
        })?;
        let (proven, nodes) = (found.counts.get(PROVEN.name) > Some(&0), found.evaluations);
        let bound = if proven { found.best.cost } else { bound };
        let mut result = self.result(found, bound);
        result.evaluations = 0;
        let counts = [(NODES, nodes), (PROVEN, u64::from(proven))];
        result.metrics.extend(counts.map(|(metric, count)| (metric.name.to_owned(), count as f64)));
        Ok(result)
    }
}

/// The tree of all mappings, depth first.
struct Tree<'p> {
    makespan: &'p Makespan<'p>,
    /// Ranks in branching order.
    order: Vec<u32>,
    /// The slot of every rank, the ideal one if it is not placed.
    slots: Vec<u32>,
    is_free: Vec<bool>,
    /// The class of the times between all pairs of slots.
    classes: Vec<i64>,
    evaluator: MakespanEvaluator<'p>,
    best: Best<Vec<u32>>,
}

impl<'p> Tree<'p> {
    fn new(makespan: &'p Makespan<'p>, best: Best<Vec<u32>>) -> Self {
        let replay = &makespan.replay;
        let slots = 0..replay.slots() as u32;
        let class = |(from, to)| replay.delays().distances().class(from, to).try_into().unwrap_or(i64::MAX);
        let pairs = slots.clone().flat_map(|from| slots.clone().map(move |to| (from, to)));
        // Constraints distinguish slots.
        let is_known = replay.slots() <= MOST_SLOTS && !makespan.problem.is_constrained();
        Self {
            makespan,
            order: most_connected_first(replay),
            slots: vec![replay.ideal_slot(); replay.ranks()],
            is_free: vec![true; replay.slots()],
            classes: if is_known { pairs.map(class).collect() } else { Vec::new() },
            evaluator: MakespanEvaluator::new(replay),
            best,
        }
    }

    /// Places the ranks from a given one on; `false` if the meter stopped it.
    fn branch(&mut self, depth: usize, meter: &mut Meter<'_>) -> bool {
        let Some(&rank) = self.order.get(depth) else { return true };
        let mut children = Vec::new();
        for slot in self.representatives(depth) {
            if !self.makespan.problem.admits(rank, slot) {
                continue;
            }
            let looks = meter.spent().is_multiple_of(self.makespan.passes_between_looks());
            if !meter.take() || (looks && !meter.look()) {
                return false;
            }
            self.put(rank, slot);
            children.extend(self.bound().map(|bound| (bound, slot)));
            self.clear(rank, slot);
        }
        children.sort_unstable();
        for (bound, slot) in children {
            if bound >= self.best.cost {
                break;
            }
            self.put(rank, slot);
            if depth + 1 == self.order.len() {
                self.best = Best { cost: bound, solution: self.slots.clone() };
            }
            let goes_on = self.branch(depth + 1, meter);
            self.clear(rank, slot);
            if !goes_on {
                return false;
            }
        }
        true
    }

    fn put(&mut self, rank: u32, slot: u32) {
        self.slots[rank as usize] = slot;
        self.is_free[slot as usize] = false;
    }

    fn clear(&mut self, rank: u32, slot: u32) {
        self.slots[rank as usize] = self.makespan.replay.ideal_slot();
        self.is_free[slot as usize] = true;
    }

    /// The free slots, one of each class of equivalent ones.
    fn representatives(&self, depth: usize) -> Vec<u32> {
        let free = (0..self.is_free.len() as u32).filter(|&slot| self.is_free[slot as usize]);
        let placed: Vec<u32> = self.order[..depth].iter().map(|&rank| self.slots[rank as usize]).collect();
        let known = !self.classes.is_empty();
        match known
            .then(|| Symmetry::new(&self.classes, self.is_free.len()).classes(&placed, |_| true))
            .flatten()
        {
            Some(first) => free.filter(|&slot| first[slot as usize] == slot).collect(),
            None => free.collect(),
        }
    }

    /// Lower bound of the makespan of all completions, if it is below the incumbent.
    fn bound(&mut self) -> Option<i64> {
        let Self { makespan, slots, is_free, evaluator, .. } = self;
        let replay = &makespan.replay;
        let ideal = replay.ideal_slot();
        let free = || (0..replay.slots() as u32).filter(|&slot| is_free[slot as usize]);
        evaluator.makespan_within(slots, self.best.cost - 1, |channel| {
            let [from, to] = [channel.from, channel.to].map(|rank| slots[rank as usize]);
            let ticks = |from, to| replay.delays().ticks(channel.size, from, to);
            let nearest = match (from == ideal, to == ideal) {
                (true, true) => Some(replay.least_delay(channel)),
                (true, false) => free().map(|slot| ticks(slot, to)).min(),
                (false, true) => free().map(|slot| ticks(from, slot)).min(),
                (false, false) => Some(ticks(from, to)),
            };
            // Without a free slot there is no completion.
            nearest.unwrap_or(i64::MAX >> 8)
        })
    }
}

/// The ranks in an order in which each communicates as much as possible with the earlier ones.
fn most_connected_first(replay: &ReplayProblem) -> Vec<u32> {
    let channels = replay.program().channels();
    let weight = |number: u32| {
        i128::from(replay.criticality().delays[number as usize])
            + i128::from(channels.messages[number as usize])
    };
    let mut order: Vec<u32> = Vec::with_capacity(replay.ranks());
    while order.len() < replay.ranks() {
        let left = (0..replay.ranks() as u32).filter(|rank| !order.contains(rank));
        let tied = |rank: u32| -> (i128, i128) {
            let own = channels.of(rank).iter().map(|&number| (channels.all[number as usize], weight(number)));
            own.fold((0, 0), |(placed, all), (channel, weight)| {
                let other = if channel.from == rank { channel.to } else { channel.from };
                (if order.contains(&other) { placed + weight } else { placed }, all + weight)
            })
        };
        let next = left.max_by_key(|&rank| (tied(rank), std::cmp::Reverse(rank)));
        order.extend(next);
    }
    order
}
