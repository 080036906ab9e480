//! Branch and bound for the quadratic assignment problem.

mod instance;
mod linear;
mod quadratic;
mod relaxation;
mod search;
mod symmetry;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use hopmap_islands::{Budget, saved_islands};
use hopmap_model::{Context, Error, require_above_zero};
use hopmap_objective::{Metric, Problem};
use serde::Deserialize;

use crate::error::check_slots;
use crate::{ExactParams, MapError, Mapper, SearchResult, Tabu, TabuParams};
use instance::Instance;
use quadratic::Quadratic;
use relaxation::{Scale, gilmore_lawler};
use search::{First, Proof, Search, Space};

/// Maximum communicating ranks times slots for branching; beyond it there is only a lower bound.
const MOST_PLACES: usize = 1600;
/// Maximum slots for a lower bound.
const MOST_SLOTS: usize = 1024;
/// Evaluations per island of the initial search: per pair of rank and exchange, and the maximum.
const FIRST_STEPS: u64 = 50;
const FIRST_EVALUATIONS: u64 = 1 << 24;

/// Lower bound of F.
pub const BOUND: Metric = Metric { name: "bound", unit: "weight × cost", explanation: "Lower bound of F." };

/// Optimality gap.
pub const GAP: Metric = Metric {
    name: "gap",
    unit: "1",
    explanation: "Optimality gap (F - bound) / bound; missing if only the bound is zero.",
};

/// Whether F is proven to be the optimum.
pub const PROVEN: Metric =
    Metric { name: "proven", unit: "1", explanation: "1 if F is proven optimal, 0 otherwise." };

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
/// With more than 1600 assignments of a communicating rank to a slot there is no search: the mapping is that
/// of tabu search, the bound that of Gilmore and Lawler.
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
    pub fn new(params: &ExactParams) -> Result<Self, MapError> {
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
        let time_limit_s = self.budget.time().map(|time| time.as_secs_f64() / 4.0);
        let [ranks, slots] = [problem.ranks(), problem.slots()].map(|count| count as u64);
        let evaluations = (FIRST_STEPS * ranks * ranks * ranks * slots).min(FIRST_EVALUATIONS);
        let (seed, evaluations) = (self.seed, Some(evaluations));
        let params = TabuParams { seed, evaluations, time_limit_s, ..TabuParams::default() };
        let found = Tabu::new(&params)?.map(problem, &cx.without_state())?;
        Ok(First::new(found, begin.elapsed().as_secs_f64()))
    }

    /// Searches for a mapping better than the incumbent; whether the search was not interrupted.
    fn prove(
        &self,
        instance: &Instance<'_>,
        first: &First,
        cx: &Context<'_>,
    ) -> Result<(Proof, bool), Error> {
        let cost = instance.cost(&first.slots);
        let scale = Scale::of::<i32>(cost);
        match scale.is_fine() {
            true => self.search(&Quadratic::<i32>::new(instance, scale, cost), first, cost, cx),
            false => {
                let scale = Scale::of::<i64>(cost);
                self.search(&Quadratic::<i64>::new(instance, scale, cost), first, cost, cx)
            }
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
        if !problem.is_quadratic() {
            let problem = "map/exact supports only F or hop-bytes";
            return Err(MapError::new(problem, "omit `objective`, or use map/auto").into());
        }
        check_slots(problem, "map/exact", MOST_SLOTS)?;
        let first = self.first(problem, cx)?;
        let instance = Instance::new(problem);
        let cost = instance.cost(&first.slots);
        let without_search = |bound| (Proof { better: None, bound, nodes: 0 }, !cx.should_stop());
        let (proof, is_whole) = if cost == 0 || instance.ranks() == 0 {
            without_search(cost)
        } else if instance.ranks() * instance.slots > MOST_PLACES {
            without_search(gilmore_lawler(&instance, || cx.should_stop()).unwrap_or(0).min(cost))
        } else {
            self.prove(&instance, &first, cx)?
        };
        let slots = proof.better.map_or_else(|| first.slots.clone(), |slots| instance.complete(&slots));
        let is_proven = proof.bound == instance.cost(&slots);
        let metrics = BTreeMap::from([
            (BOUND.name.to_owned(), problem.real(proof.bound * instance.unit)),
            (PROVEN.name.to_owned(), f64::from(u8::from(is_proven))),
            (NODES.name.to_owned(), proof.nodes as f64),
        ]);
        let (evaluations, convergence) = (first.evaluations, first.convergence());
        Ok(SearchResult { slots, evaluations, convergence, complete: is_proven || is_whole, metrics })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hopmap_model::{CostModel, Edge, Matrix, Node, Process, Slot, SystemGraph, TaskGraph, Weight};
    use proptest::prelude::*;

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
            let bound = gilmore_lawler(&instance, || false).unwrap();
            prop_assert!(bound * instance.unit <= optimum);
        }
    }
}
