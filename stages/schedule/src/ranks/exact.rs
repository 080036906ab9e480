//! `schedule/exact` for ranks: branch and bound over the slots of ranks, rank by rank.

use std::collections::{HashMap, HashSet};
use std::time::Instant;

use hopmap_islands::{Budget, Candidate, Counts, Island, Meter};
use hopmap_model::{Context, Error};
use hopmap_replay::{Distances, MakespanEvaluator, ReplayProblem};

use super::search::{Groups, RankSearch};
use super::starts::list;
use crate::{ExactParams, SearchResult};

/// Maximum number of ranks for the search.
const MOST_RANKS: usize = 12;
/// Maximum number of slots.
const MOST_SLOTS: usize = 1 << 12;
/// Default limit of partial placements.
const EVALUATIONS: u64 = 2_000_000;
/// Maximum number of slots whose pairs are compared for symmetries.
const MOST_COMPARED: usize = 1 << 10;

/// `schedule/exact`: the proven optimum for few ranks; otherwise the best start and a lower bound. Evaluations are partial
/// placements.
pub fn exact(
    params: &ExactParams,
    search: &RankSearch<'_>,
    cx: &Context<'_>,
) -> Result<SearchResult<Vec<u32>>, Error> {
    let budget = Budget::new(params.max_search_nodes, params.time_limit_s, 1)?;
    let problem = search.problem;
    let started = Instant::now();
    let begin = list(search, cx)?;
    if problem.ranks() > MOST_RANKS || problem.slots() > MOST_SLOTS || begin.is_proven() {
        if !begin.is_proven() {
            cx.log(format!(
                "more than {MOST_RANKS} ranks or {MOST_SLOTS} slots are too many for branch and bound: the result is the best start with a lower bound"
            ));
        }
        return Ok(begin);
    }
    let budget = budget.after(0, started.elapsed());
    let found = budget.search(EVALUATIONS, cx, |_, mut meter| {
        let mut tree = Tree::new(search, &begin);
        let is_proven = tree.branch(0, &mut meter);
        let best = Candidate { cost: tree.best.cost, solution: (tree.best.solution, is_proven) };
        Ok::<_, Error>(Island {
            evaluations: meter.spent(),
            convergence: vec![(meter.spent(), best.cost)],
            best,
            interrupted: meter.interrupted(),
            counts: Counts::new(),
        })
    })?;
    let (best, proven) = found.best.solution;
    Ok(SearchResult {
        best,
        makespan: found.best.cost,
        lower_bound: if proven { found.best.cost } else { problem.lower_bound() },
        evaluations: found.evaluations,
        convergence: found.convergence,
        complete: found.complete,
    })
}

/// Depth-first tree of all placements.
struct Tree<'p> {
    search: &'p RankSearch<'p>,
    problem: &'p ReplayProblem,
    /// Ranks in branching order.
    order: Vec<u32>,
    /// The slot of every rank; for unplaced ranks, that of an optimistic estimate.
    slots: Vec<u32>,
    is_free: Vec<bool>,
    symmetry: Symmetry,
    evaluator: MakespanEvaluator<'p>,
    best: Candidate<Vec<u32>>,
}

impl<'p> Tree<'p> {
    fn new(search: &'p RankSearch<'p>, begin: &SearchResult<Vec<u32>>) -> Self {
        let problem = search.problem;
        Self {
            search,
            problem,
            order: most_connected_first(problem),
            slots: vec![problem.ideal_slot(); problem.ranks()],
            is_free: vec![true; problem.slots()],
            symmetry: Symmetry::new(search),
            evaluator: MakespanEvaluator::new(problem),
            best: Candidate { cost: begin.makespan, solution: begin.best.clone() },
        }
    }

    /// Places the ranks from a given one on; `false` if the meter stopped it.
    fn branch(&mut self, depth: usize, meter: &mut Meter<'_>) -> bool {
        let Some(&rank) = self.order.get(depth) else { return true };
        let mut children = Vec::new();
        for slot in self.symmetry.representatives(&self.is_free) {
            let is_look = |spent: u64| spent.is_multiple_of(self.search.passes_between_checks());
            if !meter.take() || (is_look(meter.spent()) && !meter.look()) {
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

    fn put(&mut self, rank: u32, slot: u32) {
        self.slots[rank as usize] = slot;
        self.is_free[slot as usize] = false;
    }

    fn clear(&mut self, rank: u32, slot: u32) {
        self.slots[rank as usize] = self.problem.ideal_slot();
        self.is_free[slot as usize] = true;
    }

    /// Lower bound of the makespan of all completions, if it is below the incumbent. A channel with one placed end takes its time
    /// to the nearest free slot, and one without placed ends takes the minimum.
    fn bound(&mut self) -> Option<i64> {
        let Self { problem, slots, is_free, evaluator, .. } = self;
        let ideal = problem.ideal_slot();
        let free = || (0..problem.slots() as u32).filter(|&slot| is_free[slot as usize]);
        evaluator.makespan_within(slots, self.best.cost - 1, |channel| {
            let [from, to] = [channel.from, channel.to].map(|rank| slots[rank as usize]);
            let ticks = |from, to| problem.delays().ticks(channel.size, from, to);
            let nearest = match (from == ideal, to == ideal) {
                (true, true) => Some(problem.least_delay(channel)),
                (true, false) => free().map(|slot| ticks(slot, to)).min(),
                (false, true) => free().map(|slot| ticks(from, slot)).min(),
                (false, false) => Some(ticks(from, to)),
            };
            nearest.unwrap_or(i64::MAX >> 8)
        })
    }
}

/// The ranks in an order in which each communicates as much as possible with the earlier ones.
fn most_connected_first(problem: &ReplayProblem) -> Vec<u32> {
    let channels = problem.program().channels();
    let weight = |number: u32| {
        i128::from(problem.criticality().delays[number as usize])
            + i128::from(channels.messages[number as usize])
    };
    let mut order: Vec<u32> = Vec::with_capacity(problem.ranks());
    while order.len() < problem.ranks() {
        let left = (0..problem.ranks() as u32).filter(|rank| !order.contains(rank));
        let tied = |rank: u32| -> (i128, i128) {
            let own = channels.of(rank).iter().map(|&number| (channels.all[number as usize], weight(number)));
            own.fold((0, 0), |(placed, all), (channel, weight)| {
                let other = if channel.from == rank { channel.to } else { channel.from };
                (if order.contains(&other) { placed + weight } else { placed }, all + weight)
            })
        };
        let next = left.max_by_key(|&rank| (tied(rank), std::cmp::Reverse(rank)));
        next.into_iter().for_each(|rank| order.push(rank));
    }
    order
}

/// Interchangeable slots.
#[derive(Debug)]
enum Symmetry {
    /// In a tree, complete groups are interchangeable if they are alike.
    Tree {
        /// Properties of every slot: speed and availability.
        kinds: Vec<(u32, i64)>,
        /// The group of every slot on every level, innermost first.
        levels: Vec<Vec<u32>>,
    },
    /// Interchangeable slots: the first equivalent of every slot.
    Twins(Vec<u32>),
}

impl Symmetry {
    fn new(search: &RankSearch<'_>) -> Self {
        let problem = search.problem;
        let kind = |slot: u32| (problem.speed(slot), problem.available(slot));
        match is_symmetric_tree(search) {
            true => Self::Tree {
                kinds: (0..problem.slots() as u32).map(kind).collect(),
                levels: search.places.levels.iter().map(|level| level.of.clone()).collect(),
            },
            false => Self::Twins(twins(problem, kind)),
        }
    }

    /// Free slots, without equivalents.
    fn representatives(&self, is_free: &[bool]) -> Vec<u32> {
        let free = (0..is_free.len() as u32).filter(|&slot| is_free[slot as usize]);
        match self {
            Self::Twins(first) => {
                let mut seen = HashSet::new();
                free.filter(|&slot| seen.insert(first[slot as usize])).collect()
            }
            Self::Tree { kinds, levels } => {
                let places = shapes(kinds, levels, is_free);
                let mut seen = HashSet::new();
                free.filter(|&slot| seen.insert(places[slot as usize].clone())).collect()
            }
        }
    }
}

/// For every slot its state, and those of its groups: slots with equal values are interchangeable, together with the largest
/// groups that contain only one of them. An occupied slot is unique.
fn shapes(kinds: &[(u32, i64)], levels: &[Vec<u32>], is_free: &[bool]) -> Vec<Vec<u32>> {
    let mut known: HashMap<Vec<(u64, i64)>, u32> = HashMap::new();
    let mut number = |shape: Vec<(u64, i64)>| {
        let next = known.len() as u32;
        *known.entry(shape).or_insert(next)
    };
    let taken = |slot: usize| vec![(u64::MAX, i64::from(slot as u32))];
    let free = |slot: usize| vec![(u64::MAX - 1, 0), (u64::from(kinds[slot].0), kinds[slot].1)];
    let mut own: Vec<u32> =
        (0..kinds.len()).map(|slot| number(if is_free[slot] { free(slot) } else { taken(slot) })).collect();
    let mut shapes: Vec<Vec<u32>> = own.iter().map(|&one| vec![one]).collect();
    let mut below: Vec<u32> = (0..kinds.len() as u32).collect();
    for groups in levels {
        // Every group of the level below once, by its parent group.
        let mut inside: HashMap<u32, Vec<(u64, i64)>> = HashMap::new();
        let mut seen = HashSet::new();
        for (slot, &group) in groups.iter().enumerate() {
            if seen.insert(below[slot]) {
                inside.entry(group).or_default().push((u64::from(own[slot]), 0));
            }
        }
        let mut of_group: HashMap<u32, u32> = HashMap::new();
        for &group in groups {
            of_group.entry(group).or_insert_with(|| {
                let mut shape = inside.remove(&group).unwrap_or_default();
                shape.sort_unstable();
                number(shape)
            });
        }
        own = groups.iter().map(|group| of_group[group]).collect();
        shapes.iter_mut().zip(&own).for_each(|(shape, &one)| shape.push(one));
        below.clone_from(groups);
    }
    shapes
}

/// Whether message times depend only on the level on which two slots meet.
fn is_symmetric_tree(search: &RankSearch<'_>) -> bool {
    let distances = search.problem.delays().distances();
    match distances {
        Distances::Alike | Distances::Tree(_) => true,
        _ if !search.places.is_tree() || search.problem.slots() > MOST_COMPARED => false,
        _ => {
            let levels = &search.places.levels;
            let mut classes: Vec<Option<usize>> = vec![None; levels.len() + 1];
            let slots = 0..search.problem.slots() as u32;
            slots.clone().all(|a| {
                slots.clone().all(|b| {
                    let meets = |level: &Groups| level.of[a as usize] == level.of[b as usize];
                    let level = if a == b {
                        0
                    } else {
                        1 + levels.iter().position(meets).unwrap_or(levels.len() - 1)
                    };
                    let class = distances.class(a, b);
                    *classes[level].get_or_insert(class) == class
                })
            })
        }
    }
}

/// For every slot the first one that it is interchangeable with.
fn twins(problem: &ReplayProblem, kind: impl Fn(u32) -> (u32, i64)) -> Vec<u32> {
    let all = 0..problem.slots() as u32;
    if problem.slots() > MOST_COMPARED {
        return all.collect();
    }
    let distances = problem.delays().distances();
    let are_twins = |a: u32, b: u32| {
        let same = |other: u32| {
            distances.class(a, other) == distances.class(b, other)
                && distances.class(other, a) == distances.class(other, b)
        };
        kind(a) == kind(b)
            && distances.class(a, b) == distances.class(b, a)
            && distances.class(a, a) == distances.class(b, b)
            && all.clone().filter(|&other| other != a && other != b).all(same)
    };
    let mut first: Vec<u32> = Vec::with_capacity(problem.slots());
    for slot in all.clone() {
        let twin = (0..slot).find(|&other| first[other as usize] == other && are_twins(other, slot));
        first.push(twin.unwrap_or(slot));
    }
    first
}
