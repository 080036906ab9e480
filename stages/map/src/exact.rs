//! Branch and bound for the quadratic assignment problem.

mod areas;
mod bottleneck;
mod clusters;
mod gilmore_lawler;
mod instance;
mod linear;
mod quadratic;
mod relaxation;
mod search;
mod symmetry;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use hopmap_islands::{Budget, TimePlan, saved_islands};
use hopmap_model::{Context, Error, OutOfRange, require_above_zero};
use hopmap_objective::{Metric, OnlyMaximum, Problem};
use serde::Deserialize;

use crate::auto::Auto;
use crate::error::{MapError, check_slots};
use crate::mapper::{Mapper, SearchResult};
use crate::params::{AutoParams, ExactParams, TabuParams};
use crate::plan::{EXACT, EXACT_OF_MANY, EXACT_OF_MAXIMUM};
use crate::tabu::Tabu;
use areas::tree_bound;
use bottleneck::{Bottleneck, Loads, Maximum, Shares};
use gilmore_lawler::gilmore_lawler;
use instance::Instance;
use quadratic::Quadratic;
use relaxation::Scale;
use search::{First, Proof, Search, Space};
pub(crate) use symmetry::Symmetry;

/// Maximum communicating ranks times slots for branching; beyond it there is only a lower bound.
const MOST_PLACES: usize = 1600;
/// Maximum slots for a lower bound: of a sum, and of a maximum.
const MOST_SLOTS: usize = 1 << 16;
const MOST_SLOTS_OF_MAXIMA: usize = 256;
/// Slots beyond which the incumbent is that of `map/auto` on any machine.
const MOST_SLOTS_OF_TABU: usize = 2048;
/// Evaluations per island of the initial search, per pair of rank and exchange.
const FIRST_STEPS: u64 = 50;
/// Ranks on a tree from which the incumbent is that of `map/auto`, which starts from a partition. Of 960 blocks on 50 leaf
/// switches of different sizes F is 2.3 % below that of tabu search; of 256 it is equal.
const MANY_RANKS: usize = 512;

/// Lower bound of the objective.
pub const BOUND: Metric = Metric {
    name: "bound",
    unit: "that of the objective",
    explanation: "Lower bound of the objective, by default F.",
};

/// Optimality gap.
pub const GAP: Metric = Metric {
    name: "gap",
    unit: "1",
    explanation: "Optimality gap (objective - bound) / bound; missing if only the bound is zero.",
};

/// Whether the objective is proven to be the optimum.
pub const PROVEN: Metric =
    Metric { name: "proven", unit: "1", explanation: "1 if the objective is proven optimal, 0 otherwise." };

/// Bounded nodes of the search tree.
pub const NODES: Metric = Metric {
    name: "nodes",
    unit: "nodes",
    explanation: "Number of search tree nodes whose lower bound was computed.",
};

/// Branch and bound: the proven optimum, or the incumbent and a lower bound.
///
/// Robust tabu search gives the initial incumbent. The bound of a node is that of the level-1 reformulation
/// by dual ascent (Hahn and Grant 1998), which branches inherit from their parent. Assignments that exceed
/// the incumbent are excluded permanently. A node branches on the row or column that leaves the least to
/// search; of slots or ranks exchanged by an automorphism of machine or program only one is tried.
///
/// A maximum has bounds of its own: see [`bottleneck`]. Its initial incumbent is that of [`Auto`], and so is that
/// of a sum from 512 ranks on trees.
///
/// With more than 1600 assignments of a communicating rank to a slot there is no search: the mapping is the
/// initial incumbent, the bound of a maximum that of the root. That of a sum is the larger one of two: that of
/// Gilmore and Lawler, and on trees that of the weight which must leave the [`areas`] of every level.
///
/// A search that is interrupted after the root is bounded resumes: its state has the initial incumbent, and
/// the path of every open branch, whose bounds are computed again.
#[derive(Debug, Clone, PartialEq)]
pub struct Exact {
    seed: u64,
    budget: Budget,
}

impl Exact {
    /// Checks the parameters.
    pub fn new(params: &ExactParams) -> Result<Self, OutOfRange> {
        let &ExactParams { seed, max_search_nodes, time_limit_s, .. } = params;
        require_above_zero("max_search_nodes", max_search_nodes)?;
        Ok(Self { seed, budget: Budget::new(max_search_nodes, time_limit_s, 1)? })
    }

    /// The initial incumbent: that of an interrupted search, or a new one.
    fn first(&self, problem: &Problem, cx: &Context<'_>) -> Result<First, Error> {
        #[derive(Deserialize)]
        struct Saved {
            first: First,
        }
        let saved = cx.state().and_then(saved_islands::<Saved>).and_then(|mut saved| saved.pop());
        if let Some(Saved { first }) = saved.filter(|saved| saved.first.slots.len() == problem.ranks()) {
            return Ok(first);
        }
        let begin = Instant::now();
        let is_large = problem.movable().len() >= MANY_RANKS
            && (problem.distance().is_tree() || problem.slots() > MOST_SLOTS_OF_TABU);
        let (phases, is_tabu) = match problem.only_maximum() {
            Some(_) => (&EXACT_OF_MAXIMUM, false),
            None if is_large => (&EXACT_OF_MANY, false),
            None => (&EXACT, true),
        };
        let mut plan = TimePlan::begin(phases);
        let [ranks, slots] = [problem.ranks(), problem.slots()].map(|count| count as u64);
        let (seed, evaluations) = (self.seed, Some(first_evaluations(ranks, slots).min(phases[0].most)));
        let time_limit_s = self.budget.part(&phases[0]).time().map(|time| time.as_secs_f64());
        let found = if is_tabu {
            let params = TabuParams { seed, evaluations, time_limit_s, ..TabuParams::default() };
            Tabu::new(&params)?.map(problem, &cx.without_state())?
        } else {
            let params = AutoParams { seed, evaluations, time_limit_s, ..AutoParams::default() };
            Auto::new(&params)?.map(problem, &cx.without_state())?
        };
        plan.ended(&phases[0]);
        plan.words(self.budget.time()).iter().for_each(|line| cx.log(line));
        Ok(First::new(found, begin.elapsed().as_secs_f64()))
    }

    /// Proves a sum over pairs of ranks; whether this was not interrupted.
    fn prove(
        &self,
        instance: &Instance<'_>,
        first: &First,
        cx: &Context<'_>,
    ) -> Result<(Proof, bool), Error> {
        let cost = instance.cost(&first.slots);
        if cost == 0 || instance.ranks() == 0 {
            return Ok((Proof::without_search(cost, cost), !cx.should_stop()));
        }
        let scale = Scale::of::<i32>(cost);
        match scale.is_fine() {
            true => self.search(&Quadratic::<i32>::new(instance, scale, cost), first, cost, cx),
            false => {
                let scale = Scale::of::<i64>(cost);
                self.search(&Quadratic::<i64>::new(instance, scale, cost), first, cost, cx)
            }
        }
    }

    /// Bounds a sum over pairs of ranks without a search; whether this was not interrupted.
    fn bound(problem: &Problem, first: &First, cx: &Context<'_>) -> (Proof, bool) {
        let cost = problem.cost(&first.slots);
        let mut bound = gilmore_lawler(problem, || cx.should_stop()).unwrap_or(0);
        if bound < cost {
            bound = bound.max(Self::bound_of_areas(problem, first, cx));
        }
        (Proof::without_search(cost, bound.min(cost)), !cx.should_stop())
    }

    /// The bound of a sum over pairs of ranks that follows from the areas of a tree; zero on other machines.
    fn bound_of_areas(problem: &Problem, first: &First, cx: &Context<'_>) -> i64 {
        match problem.distance().is_tree() && problem.ordered_pairs().is_none() {
            true => tree_bound(problem, &first.slots, || cx.should_stop()),
            false => 0,
        }
    }

    /// Proves a maximum; whether this was not interrupted.
    fn prove_maximum(
        &self,
        maximum: &impl Maximum,
        instance: &Instance<'_>,
        first: &First,
        cx: &Context<'_>,
    ) -> Result<(Proof, bool), Error> {
        let cost = maximum.of(&first.slots);
        if cost == 0 || instance.ranks() == 0 {
            return Ok((Proof::without_search(cost, cost), !cx.should_stop()));
        }
        let space = Bottleneck::new(instance, maximum);
        match instance.ranks() * instance.slots > MOST_PLACES {
            true => Ok((Search { space: &space, first, cost, cx: *cx }.root(), !cx.should_stop())),
            false => self.search(&space, first, cost, cx),
        }
    }

    fn search<S: Space>(
        &self,
        space: &S,
        first: &First,
        cost: i64,
        cx: &Context<'_>,
    ) -> Result<(Proof, bool), Error> {
        let spent = Duration::try_from_secs_f64(first.seconds).unwrap_or_default();
        Search { space, first, cost, cx: *cx }.run(&self.budget.after(0, spent))
    }
}

impl Mapper for Exact {
    fn map(&self, problem: &Problem, cx: &Context<'_>) -> Result<SearchResult, Error> {
        let maximum = problem.only_maximum();
        if !problem.is_quadratic() && maximum.is_none() {
            let problem = "map/exact proves one metric, not a sum of several";
            return Err(MapError::new(problem, "choose one metric as `objective`, or use map/auto").into());
        }
        check_slots(problem, "map/exact", if maximum.is_some() { MOST_SLOTS_OF_MAXIMA } else { MOST_SLOTS })?;
        let first = self.first(problem, cx)?;
        // Those that an instance has.
        let ranks = if problem.is_constrained() { problem.ranks() } else { problem.movable().len() };
        if maximum.is_none() && ranks * problem.slots() > MOST_PLACES {
            let (proof, is_whole) = Self::bound(problem, &first, cx);
            return Ok(result(first.slots.clone(), &first, &proof, problem.real(proof.bound), is_whole));
        }
        let instance = Instance::new(problem);
        let ((proof, is_whole), bound) = match maximum {
            None => {
                // Of trees with groups of ranks it is often above that of the root, and found at once.
                let least = Self::bound_of_areas(problem, &first, cx);
                let least = least.div_euclid(instance.unit) + i64::from(least % instance.unit > 0);
                let cost = instance.cost(&first.slots);
                let (mut proof, is_whole) = match least < cost {
                    true => self.prove(&instance, &first, cx)?,
                    false => (Proof::without_search(cost, cost), true),
                };
                proof.bound = proof.bound.max(least).min(proof.cost);
                let bound = problem.real(proof.bound * instance.unit);
                ((proof, is_whole), bound)
            }
            Some(OnlyMaximum { loads: None, unit }) => {
                let found = self.prove_maximum(&Shares::new(&instance), &instance, &first, cx)?;
                let bound = (found.0.bound * instance.unit) as f64 * unit;
                (found, bound)
            }
            Some(OnlyMaximum { loads: Some(loads), unit }) => {
                let found = self.prove_maximum(&Loads::new(loads, &instance), &instance, &first, cx)?;
                let bound = found.0.bound as f64 * unit;
                (found, bound)
            }
        };
        let slots =
            proof.better.as_ref().map_or_else(|| first.slots.clone(), |slots| instance.complete(slots));
        Ok(result(slots, &first, &proof, bound, is_whole))
    }
}

/// A mapping and what is known of it.
fn result(slots: Vec<u32>, first: &First, proof: &Proof, bound: f64, is_whole: bool) -> SearchResult {
    let is_proven = proof.bound == proof.cost;
    let metrics = BTreeMap::from([
        (BOUND.name.to_owned(), bound),
        (PROVEN.name.to_owned(), f64::from(u8::from(is_proven))),
        (NODES.name.to_owned(), proof.nodes as f64),
    ]);
    let (evaluations, convergence) = (first.evaluations, first.convergence());
    SearchResult { slots, evaluations, convergence, complete: is_proven || is_whole, metrics, phases: None }
}

fn first_evaluations(ranks: u64, slots: u64) -> u64 {
    [ranks, ranks, ranks, slots].into_iter().fold(FIRST_STEPS, u64::saturating_mul)
}

#[cfg(test)]
mod tests {
    use super::*;
    use hopmap_model::{CostModel, Edge, Matrix, Node, Process, Slot, SystemGraph, TaskGraph, Weight};
    use proptest::prelude::*;

    /// The product overflowed for 32,768 hosts of `hopmap rank-order`.
    #[test]
    fn evaluations_of_many_ranks_do_not_overflow() {
        assert_eq!(
            [1 << 15, u64::from(u32::MAX)].map(|ranks| first_evaluations(ranks, ranks)),
            [u64::MAX; 2]
        );
    }

    fn problem(weights: &[u64], ranks: usize, costs: &[u64], slots: usize) -> Problem {
        let edges = (0..ranks * ranks).map(|at| (at / ranks, at % ranks)).filter(|(i, j)| i < j);
        let edge = |(i, j)| Edge {
            source: i as u32,
            destination: j as u32,
            messages: 1,
            bytes: weights[i * ranks + j],
        };
        let graph = TaskGraph {
            processes: vec![Process::default(); ranks],
            edges: edges.map(edge).collect(),
            ..TaskGraph::default()
        };
        let place = |at: usize| (at / slots, at % slots);
        let cost = |(a, b): (usize, usize)| if a == b { 0 } else { costs[a.min(b) * slots + a.max(b)] };
        let system = SystemGraph {
            routing: hopmap_model::Routing::default(),
            nodes: vec![Node::host("host")],
            links: Vec::new(),
            slots: (0..slots as u32).map(|core| Slot { host: 0, core }).collect(),
            cost: CostModel::Matrix(Matrix {
                costs: (0..slots * slots).map(|at| cost(place(at)) as f64).collect(),
            }),
            calibration: Vec::new(),
        };
        Problem::new(&graph, &system, Weight::Bytes).unwrap()
    }

    /// The least cost, by enumeration.
    fn least(problem: &Problem, taken: &mut Vec<u32>) -> i64 {
        if taken.len() == problem.ranks() {
            return problem.cost(taken);
        }
        let mut best = i64::MAX;
        for slot in 0..problem.slots() as u32 {
            if !taken.contains(&slot) {
                taken.push(slot);
                best = best.min(least(problem, taken));
                taken.pop();
            }
        }
        best
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(96))]
        #[test]
        fn any_initial_incumbent_leads_to_the_optimum(
            ranks in 2usize..6, free in 0usize..3, start in 0usize..1000, few in 2u64..30, limit in 1u64..20,
            values in prop::collection::vec(0u64..1000, 128), large in prop::sample::select(vec![1u64, 1_000_003, 10_000_000_000_007])
        ) {
            let slots = ranks + free;
            let weights: Vec<u64> = values[..64].iter().map(|v| v % few / 2 * large + v % few / 2 % 7).collect();
            let costs: Vec<u64> = values[64..].iter().map(|v| v % few).collect();
            let problem = problem(&weights, ranks, &costs, slots);
            let optimum = least(&problem, &mut Vec::new());
            let instance = Instance::new(&problem);
            let first: Vec<u32> = (0..ranks).map(|rank| ((rank + start) % slots) as u32).collect();
            let cost = instance.cost(&first);
            prop_assume!(cost > 0);
            let cx = Context::detached();
            for nodes in [None, Some(limit)] {
                let exact = Exact { seed: 1, budget: Budget::new(nodes, None, 1).unwrap() };
                let initial = First::new(SearchResult::at_once(first.clone()), 0.0);
                let (proof, is_whole) = exact.prove(&instance, &initial, &cx).unwrap();
                prop_assert!(is_whole);
                let found = proof.better.map_or(first.clone(), |slots| instance.complete(&slots));
                prop_assert!(proof.bound * instance.unit <= optimum);
                prop_assert!(nodes.is_none_or(|nodes| proof.nodes <= nodes));
                if nodes.is_none() || proof.bound == instance.cost(&found) {
                    prop_assert_eq!(problem.cost(&found), optimum);
                    prop_assert_eq!(proof.bound * instance.unit, optimum);
                }
            }
            let bound = gilmore_lawler(&problem, || false).unwrap();
            prop_assert!(bound <= optimum);
        }
    }
}
