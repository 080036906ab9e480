//! Branch and bound for the quadratic assignment problem.

mod instance;
mod linear;
mod relaxation;
mod search;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use hopmap_islands::time_limit;
use hopmap_model::{Context, Error};
use hopmap_objective::{Metric, Problem};

use crate::error::check_plain;
use crate::{ExactParams, MapError, Mapper, SearchResult, Tabu, TabuParams};
use instance::{Instance, Symmetry};
use relaxation::{Scale, gilmore_lawler};
use search::{Limits, Proof, Search, Symmetries};

/// Ranks that send or receive, times slots, that are branched on; beyond it there is one bound, and no search.
const MOST_PLACES: usize = 1600;
/// Most slots of which there is a bound.
const MOST_SLOTS: usize = 1024;
/// Evaluations of every island of the search that finds the first placement: so many for every two ranks and exchange, and
/// most.
const FIRST_STEPS: u64 = 50;
const FIRST_EVALUATIONS: u64 = 1 << 24;

/// What F is never below.
pub const BOUND: Metric =
    Metric { name: "bound", unit: "weight × cost", explanation: "No placement has a smaller F." };

/// How far F may be from the optimum.
pub const GAP: Metric = Metric {
    name: "gap",
    unit: "1",
    explanation: "(F - bound) / bound; missing where only the bound is zero.",
};

/// Whether F is proven to be the optimum.
pub const PROVEN: Metric = Metric {
    name: "proven",
    unit: "1",
    explanation: "1 if no placement has a smaller F, 0 if that is not known.",
};

/// How many nodes were bounded.
pub const NODES: Metric = Metric {
    name: "nodes",
    unit: "nodes",
    explanation: "Number of partial placements whose bound the search computed.",
};

/// Branch and bound: the optimum with its proof, or the best placement known and a bound.
///
/// Robust tabu search finds the first placement. The bound of a node is that of the level-1 reformulation by dual ascent (Hahn
/// and Grant 1998), which every branch takes over from its parent. What costs more than the best placement is forbidden for
/// good. A node is split by the row or the column that leaves least to search, and of slots or ranks that an automorphism of
/// machine or program exchanges only one is tried.
///
/// If there are more than 1600 ways to put a rank that sends or receives on a slot, nothing is searched: the placement is that
/// of tabu search, the bound that of Gilmore and Lawler.
#[derive(Debug, Clone, PartialEq)]
pub struct Exact {
    seed: u64,
    nodes: Option<u64>,
    time: Option<Duration>,
}

impl Exact {
    /// Checks the parameters.
    pub fn new(params: &ExactParams) -> Result<Self, MapError> {
        let &ExactParams { seed, max_search_nodes: nodes, time_limit_s, .. } = params;
        if nodes == Some(0) {
            let help = "allow at least one node, or leave `max_search_nodes` out";
            return Err(MapError::new("max_search_nodes is 0", help));
        }
        Ok(Self { seed, nodes, time: time_limit(time_limit_s)? })
    }

    /// The placement that the search begins with.
    fn first(&self, problem: &Problem, cx: &Context<'_>) -> Result<SearchResult, Error> {
        let time_limit_s = self.time.map(|time| time.as_secs_f64() / 4.0);
        let [ranks, slots] = [problem.ranks(), problem.slots()].map(|count| count as u64);
        let evaluations = (FIRST_STEPS * ranks * ranks * ranks * slots).min(FIRST_EVALUATIONS);
        let (seed, evaluations) = (self.seed, Some(evaluations));
        let params = TabuParams { seed, evaluations, time_limit_s, ..TabuParams::default() };
        Tabu::new(&params)?.map(problem, cx)
    }

    /// Searches for something better than a placement.
    fn prove(
        &self,
        instance: &Instance<'_>,
        cost: i64,
        deadline: Option<Instant>,
        cx: &Context<'_>,
    ) -> Proof {
        let scale = Scale::of::<i32>(cost);
        let fine = scale.is_fine();
        let search = Search {
            instance,
            symmetries: Symmetries {
                ranks: Symmetry::new(&instance.weights, instance.ranks()),
                slots: Symmetry::new(&instance.costs, instance.slots),
            },
            limits: Limits { nodes: self.nodes, deadline },
            cx: *cx,
            scale: if fine { scale } else { Scale::of::<i64>(cost) },
        };
        if fine { search.run::<i32>(cost) } else { search.run::<i64>(cost) }
    }
}

impl Mapper for Exact {
    fn map(&self, problem: &Problem, cx: &Context<'_>) -> Result<SearchResult, Error> {
        check_plain(problem, "map/exact minimises", MOST_SLOTS, "that map/exact bounds")?;
        let deadline = self.time.and_then(|time| Instant::now().checked_add(time));
        let mut found = self.first(problem, cx)?;
        let instance = Instance::new(problem);
        let cost = instance.cost(&found.slots);
        let proof = if cost == 0 {
            Proof { better: None, bound: 0, nodes: 0 }
        } else if instance.ranks() * instance.slots > MOST_PLACES {
            let bound = gilmore_lawler(&instance, || cx.should_stop()).unwrap_or(0).min(cost);
            Proof { better: None, bound, nodes: 0 }
        } else {
            self.prove(&instance, cost, deadline, cx)
        };
        if let Some(slots) = &proof.better {
            found.slots = instance.complete(slots);
        }
        let proven = proof.bound == instance.cost(&found.slots);
        found.complete = proven || !cx.should_stop();
        found.metrics = BTreeMap::from([
            (BOUND.name.to_owned(), problem.real(proof.bound * instance.unit)),
            (PROVEN.name.to_owned(), f64::from(u8::from(proven))),
            (NODES.name.to_owned(), proof.nodes as f64),
        ]);
        Ok(found)
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
        };
        Problem::new(&graph, &system, Weight::Bytes).unwrap()
    }

    /// The least cost, by trying all placements.
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
        fn whatever_is_known_before_the_optimum_is_found(
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
                let exact = Exact { seed: 1, nodes, time: None };
                let proof = exact.prove(&instance, cost, None, &cx);
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
