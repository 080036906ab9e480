//! A lower bound of the weight between groups from flows.
//!
//! Every rank sends one unit to each rank of a surrounding that is larger than a group, along the edges of the
//! graph of weights. At least `surrounding − group` units leave its group, each over an edge between groups. If
//! an edge of weight w carries at most c · w units, the weight between groups is at least the units that leave
//! over c. Such flows are the solutions of the dual of the linear program of spreading metrics (Even, Naor, Rao
//! and Schieber, "Fast Approximate Graph Partitioning Algorithms", SIAM J. Comput. 28(6), 1999), whose value is
//! 83 % of the best division of a large torus into squares of 16. Lengths of edges rise with the load of the
//! rounds before, which spreads the next ones (multiplicative weights); the flow of all rounds together counts.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::bound::weights::Weights;

/// Sizes of surroundings in groups.
const SURROUNDINGS: [f64; 3] = [1.6, 2.5, 4.0];
/// Rounds with the best of these sizes.
const ROUNDS: usize = 8;
/// Ranks of a surrounding are equally far up to this relative difference.
const SAME: f64 = 1e-9;

/// The least weight between groups of at most `group` ranks. Visits about `effort` pairs.
pub(super) fn crossing(weights: &Weights, group: usize, effort: usize) -> f64 {
    let ranks = weights.ranks();
    let size = |factor: f64| ((group as f64 * factor).ceil() as usize + 1).min(ranks);
    let mut spread = Spread::new(weights, group, effort);
    let (mut best, mut chosen) = (0.0, None);
    for size in SURROUNDINGS.map(size) {
        let Some(flow) = spread.round(size) else { break };
        if flow.value() > best {
            best = flow.value();
            chosen = Some((size, flow));
        }
        if size == ranks {
            break;
        }
    }
    let Some((size, mut together)) = chosen else { return best };
    for _ in 0..ROUNDS {
        spread.lengthen(&together);
        let Some(flow) = spread.round(size) else { break };
        best = best.max(flow.value());
        together.add(&flow);
        best = best.max(together.value());
    }
    best
}

/// Units on every edge.
struct Flow {
    /// Units that leave groups, whatever the division.
    leaving: f64,
    /// The largest load of an edge over its weight.
    congestion: f64,
    /// Load over weight of the edges of each rank, in the order of its partners.
    loads: Vec<Vec<f64>>,
}

impl Flow {
    fn value(&self) -> f64 {
        if self.congestion > 0.0 { self.leaving / self.congestion } else { 0.0 }
    }

    fn add(&mut self, other: &Self) {
        self.leaving += other.leaving;
        self.congestion = 0.0;
        for (own, other) in self.loads.iter_mut().flatten().zip(other.loads.iter().flatten()) {
            *own += other;
            self.congestion = self.congestion.max(*own);
        }
    }
}

/// Shortest paths from every rank to its surrounding.
struct Spread<'a> {
    weights: &'a Weights,
    group: usize,
    /// Length of the edges of each rank, in the order of its partners; the same in both directions.
    lengths: Vec<Vec<f64>>,
    distances: Vec<f64>,
    /// Number of shortest paths to each rank.
    paths: Vec<f64>,
    /// Units that pass a rank or end there.
    units: Vec<f64>,
    /// Pairs that may still be visited.
    effort: usize,
}

impl<'a> Spread<'a> {
    fn new(weights: &'a Weights, group: usize, effort: usize) -> Self {
        let ranks = weights.ranks();
        let length = |edge: &(u32, f64)| edge.1.recip();
        Self {
            weights,
            group,
            lengths: weights.to.iter().map(|row| row.iter().map(length).collect()).collect(),
            distances: vec![f64::INFINITY; ranks],
            paths: vec![0.0; ranks],
            units: vec![0.0; ranks],
            effort,
        }
    }

    /// Edges with high loads become longer.
    fn lengthen(&mut self, flow: &Flow) {
        for (rank, lengths) in self.lengths.iter_mut().enumerate() {
            for ((length, load), edge) in
                lengths.iter_mut().zip(&flow.loads[rank]).zip(&self.weights.to[rank])
            {
                *length = (3.0 * load / flow.congestion).exp() / edge.1;
            }
        }
    }

    /// One unit from every rank to all of its surrounding; `None` if that visits too many pairs.
    fn round(&mut self, size: usize) -> Option<Flow> {
        let loads = self.weights.to.iter().map(|row| vec![0.0; row.len()]).collect();
        let mut flow = Flow { leaving: 0.0, congestion: 0.0, loads };
        for source in 0..self.weights.ranks() {
            let surrounding = self.surrounding(source, size);
            if surrounding.len() > self.group {
                let lost = self.send(&surrounding, &mut flow.loads);
                flow.leaving += (surrounding.len() - self.group) as f64 - lost;
            }
            let visited: usize = surrounding.iter().map(|&rank| self.weights.to[rank].len()).sum();
            for rank in surrounding {
                self.distances[rank] = f64::INFINITY;
                self.paths[rank] = 0.0;
                self.units[rank] = 0.0;
            }
            self.effort = self.effort.checked_sub(visited)?;
        }
        self.share(&mut flow);
        Some(flow)
    }

    /// The ranks around a source by distance, at least `size` of them unless fewer can be reached, with all that
    /// are as far as the last one (Dijkstra).
    fn surrounding(&mut self, source: usize, size: usize) -> Vec<usize> {
        let mut order: Vec<usize> = Vec::with_capacity(2 * size);
        let mut queue = BinaryHeap::from([Reverse((0_u64, source))]);
        let mut reached = vec![(source, 0.0)];
        self.distances[source] = 0.0;
        self.paths[source] = 1.0;
        while let Some(Reverse((bits, rank))) = queue.pop() {
            let distance = f64::from_bits(bits);
            if distance > self.distances[rank] {
                continue;
            }
            if order.len() >= size && distance > self.distances[order[order.len() - 1]] * (1.0 + SAME) {
                break;
            }
            order.push(rank);
            for (&(other, _), length) in self.weights.to[rank].iter().zip(&self.lengths[rank]) {
                let (other, next) = (other as usize, distance + length);
                let known = self.distances[other];
                if next < known * (1.0 - SAME) || known.is_infinite() {
                    self.distances[other] = next;
                    self.paths[other] = self.paths[rank];
                    reached.push((other, next));
                    queue.push(Reverse((next.to_bits(), other)));
                } else if next <= known * (1.0 + SAME) {
                    self.paths[other] += self.paths[rank];
                }
            }
        }
        // Ranks that were seen but are too far are not part of it.
        let last = order.last().map_or(0.0, |&rank| self.distances[rank]);
        for (rank, _) in reached {
            if self.distances[rank] > last * (1.0 + SAME) {
                self.distances[rank] = f64::INFINITY;
                self.paths[rank] = 0.0;
            }
        }
        order
    }

    /// Adds the units to all ranks of a surrounding to the edges of the shortest paths, in equal shares of all
    /// paths (Brandes 2001). Gives the units that find no path because of rounding.
    fn send(&mut self, surrounding: &[usize], loads: &mut [Vec<f64>]) -> f64 {
        let mut lost = 0.0;
        for &rank in surrounding[1..].iter().rev() {
            self.units[rank] += 1.0;
            let distance = self.distances[rank];
            let is_before = |&(_, ((before, _), length)): &(usize, (&(u32, f64), &f64))| {
                let before = self.distances[*before as usize];
                before < distance && before + length <= distance * (1.0 + SAME)
            };
            let edges =
                || self.weights.to[rank].iter().zip(&self.lengths[rank]).enumerate().filter(is_before);
            let paths: f64 = edges().map(|(_, ((before, _), _))| self.paths[*before as usize]).sum();
            if paths == 0.0 {
                lost += self.units[rank];
                continue;
            }
            let of_path = self.units[rank] / paths;
            for (index, ((before, _), _)) in edges() {
                let units = of_path * self.paths[*before as usize];
                self.units[*before as usize] += units;
                loads[rank][index] += units;
            }
        }
        lost
    }

    /// Adds up both directions of every edge, and divides by its weight.
    fn share(&self, flow: &mut Flow) {
        for rank in 0..self.weights.ranks() {
            for (index, &(other, weight)) in self.weights.to[rank].iter().enumerate() {
                let other = other as usize;
                if rank < other
                    && let Ok(back) =
                        self.weights.to[other].binary_search_by_key(&(rank as u32), |edge| edge.0)
                {
                    let load = (flow.loads[rank][index] + flow.loads[other][back]) / weight;
                    flow.loads[rank][index] = load;
                    flow.loads[other][back] = load;
                    flow.congestion = flow.congestion.max(load);
                }
            }
        }
    }
}
