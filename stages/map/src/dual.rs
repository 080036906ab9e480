//! Dual recursive bisection: machine and program are cut in halves together (Pellegrini 1994).
//!
//! The machine is cut first, into halves of neighbouring nodes, down to single slots. The ranks of every part
//! are then cut into those of its halves, level by level. Ranks are drawn to the half that is closer to the parts
//! of their neighbours outside; edges inside cost the distance between the halves.

use std::collections::HashMap;
use std::ops::Range;

use hopmap_objective::Problem;
use hopmap_partition::{Graph, PartitionError, bisection};
use rayon::prelude::*;

use crate::grids::Machine;

/// Slots of a part that represent it in distances.
const SAMPLE: usize = 8;
/// Attempts at every bisection.
const TRIES: u32 = 4;
/// Maximum number of complete attempts; fewer for many ranks, and one from the second number on.
const ATTEMPTS: usize = 4;
const MANY_RANKS: usize = 4096;
/// Largest sum of the weights of a graph.
const LARGEST: f64 = (1u64 << 50) as f64;

/// The best of several dual bisections: the slot of every rank.
pub(crate) fn dual_bisection(
    problem: &Problem,
    machine: &Machine,
    seed: u64,
) -> Result<Option<Vec<u32>>, PartitionError> {
    let attempts = (MANY_RANKS / problem.ranks().max(1)).clamp(1, ATTEMPTS) as u64;
    let attempt = |turn: u64| attempt(problem, machine, seed.wrapping_add(turn << 48));
    let found: Result<Vec<_>, _> = (0..attempts).into_par_iter().map(attempt).collect();
    Ok(found?.into_iter().min_by_key(|slots| problem.cost(slots)))
}

fn attempt(problem: &Problem, machine: &Machine, seed: u64) -> Result<Vec<u32>, PartitionError> {
    let mut halves = Halves { machine, seed, order: Vec::new(), middles: HashMap::new() };
    halves.cut((0..machine.nodes.len() as u32).collect())?;
    let Halves { order, middles, .. } = halves;
    let ranks = problem.ranks();
    let mut dual = Dual {
        problem,
        order,
        parts: vec![0..problem.slots(); ranks],
        scale: scale(problem),
        local: vec![u32::MAX; ranks],
    };
    let mut level = vec![(0..problem.slots(), (0..ranks as u32).collect::<Vec<u32>>())];
    while !level.is_empty() {
        let mut next = Vec::new();
        for (run, ranks) in level {
            if run.len() < 2 || ranks.is_empty() {
                continue;
            }
            let middle =
                middles.get(&(run.start, run.end)).copied().unwrap_or(run.start + run.len().div_ceil(2));
            let runs = [run.start..middle, middle..run.end];
            let halves = dual.split(&ranks, &runs, seed)?;
            next.extend(runs.into_iter().zip(halves));
        }
        level = next;
    }
    let slots = dual.parts.iter().map(|run| dual.order[run.start]).collect();
    Ok(problem.admit(slots))
}

/// Integer weights per weight and cost, small enough for sums of a whole graph.
fn scale(problem: &Problem) -> f64 {
    let weights = (0..problem.ranks() as u32).flat_map(|rank| problem.neighbours(rank));
    let all: f64 = weights.map(|near| near.weight as f64).sum();
    let outermost = problem.distance().levels().saturating_sub(1);
    // The mean cost; the largest one is seldom more than 16 times as high.
    let cost = 16.0 * problem.distance().level_cost(outermost) as f64;
    (LARGEST / (all * cost.max(1.0) * (SAMPLE * SAMPLE) as f64)).min(1.0)
}

/// The machine, cut in halves.
struct Halves<'a> {
    machine: &'a Machine,
    seed: u64,
    /// All slots; those of every part are contiguous.
    order: Vec<u32>,
    /// Where parts of several nodes are cut.
    middles: HashMap<(usize, usize), usize>,
}

impl Halves<'_> {
    fn cut(&mut self, nodes: Vec<u32>) -> Result<(), PartitionError> {
        if let [node] = nodes[..] {
            self.order.extend(&self.machine.nodes[node as usize]);
            return Ok(());
        }
        let begin = self.order.len();
        let sizes = [nodes.len().div_ceil(2) as u32, (nodes.len() / 2) as u32];
        let links = self.links(&nodes)?;
        let halves = bisection(links, Vec::new(), sizes, TRIES, self.seed ^ begin as u64)?;
        let [mut first, mut second] = [Vec::new(), Vec::new()];
        for (node, half) in nodes.into_iter().zip(halves) {
            if half == 0 { &mut first } else { &mut second }.push(node);
        }
        self.cut(first)?;
        let middle = self.order.len();
        self.cut(second)?;
        self.middles.insert((begin, self.order.len()), middle);
        Ok(())
    }

    /// The links among some nodes, which are sorted.
    fn links(&self, nodes: &[u32]) -> Result<Graph, PartitionError> {
        let (mut first, mut targets) = (vec![0], Vec::new());
        for &node in nodes {
            let links = self.machine.links[node as usize].iter();
            targets
                .extend(links.filter_map(|other| nodes.binary_search(other).ok()).map(|index| index as u32));
            first.push(targets.len() as u32);
        }
        let weights = vec![1; targets.len()];
        Graph::new(first, targets, weights, vec![1; nodes.len()])
    }
}

/// The program, while it is cut.
struct Dual<'a> {
    problem: &'a Problem,
    order: Vec<u32>,
    /// The part of the machine of every rank.
    parts: Vec<Range<usize>>,
    scale: f64,
    /// Number of every rank in the graph of its part.
    local: Vec<u32>,
}

impl Dual<'_> {
    /// Distributes the ranks of a part to its halves.
    fn split(
        &mut self,
        ranks: &[u32],
        runs: &[Range<usize>; 2],
        seed: u64,
    ) -> Result<[Vec<u32>; 2], PartitionError> {
        for (&rank, number) in ranks.iter().zip(0..) {
            self.local[rank as usize] = number;
        }
        let [one, other] = runs.each_ref();
        let inside = f64::midpoint(self.distance(one, one), self.distance(other, other));
        let apart = self.distance(one, other) - inside;
        let mut closer: HashMap<(usize, usize), f64> = HashMap::new();
        let (mut first, mut targets, mut weights, mut saved) = (vec![0], Vec::new(), Vec::new(), Vec::new());
        for &rank in ranks {
            let mut pull = 0.0;
            for near in self.problem.neighbours(rank) {
                let weight = near.weight as f64 * self.scale;
                let part = &self.parts[near.rank as usize];
                if part.start == one.start && part.end == other.end {
                    targets.push(self.local[near.rank as usize]);
                    weights.push((weight * apart).max(1.0) as i64);
                } else {
                    let closer = closer.entry((part.start, part.end));
                    pull += weight
                        * *closer.or_insert_with(|| self.distance(one, part) - self.distance(other, part));
                }
            }
            first.push(targets.len() as u32);
            saved.push(pull as i64);
        }
        let room = one.len() + other.len();
        saved.resize(room, 0);
        let graph = Graph::new(first, targets, weights, vec![1; ranks.len()])?.padded(room);
        let sizes = [one.len() as u32, other.len() as u32];
        let half_of = bisection(graph, saved, sizes, TRIES, seed ^ (one.start as u64) << 20 ^ room as u64)?;
        let mut halves = [Vec::new(), Vec::new()];
        for (&rank, half) in ranks.iter().zip(half_of) {
            halves[half as usize].push(rank);
            self.parts[rank as usize] = runs[half as usize].clone();
        }
        Ok(halves)
    }

    /// Sum of the costs between sampled slots of two parts.
    fn distance(&self, one: &Range<usize>, other: &Range<usize>) -> f64 {
        let slots = |run: &Range<usize>| {
            let (start, length) = (run.start, run.len());
            let order = &self.order;
            (0..SAMPLE).map(move |index| order[start + (2 * index + 1) * length / (2 * SAMPLE)])
        };
        let distance = self.problem.distance();
        let costs = slots(one).flat_map(|a| slots(other).map(move |b| distance.cost(a, b)));
        costs.map(|cost| cost as f64).sum()
    }
}
