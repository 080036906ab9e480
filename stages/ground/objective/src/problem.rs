//! A mapping problem with integer weights and costs.

use std::collections::HashMap;

use hopmap_model::{CostModel, Edge, Matrix as CostMatrix, SystemGraph, TaskGraph, Weight};

use crate::compact::Compact;
use crate::scale::{Scales, check_weight};
use crate::{Distance, ObjectiveError};

/// Ranks that send to each other, and slots with a cost between them: minimise F over all placements.
///
/// F(φ) = `Σ_ij` `w_ij` · c(φ(i), φ(j)) over ordered pairs (GraphHunter, equation 1: a quadratic assignment problem). Weights
/// and costs are integers; their products are [`scale`](Self::scale) times the real ones. The costs of a tree are the same
/// both ways, so all that two ranks send to each other is one weight. Of a machine whose costs are a matrix either these or
/// the weights have to be the same both ways; what a rank sends to itself must cost nothing.
#[derive(Debug, Clone)]
pub struct Problem {
    /// Where the neighbours of every rank begin, and the end.
    first: Vec<usize>,
    neighbours: Vec<Neighbour>,
    distance: Distance,
    /// The same in small integers, where that is faster.
    compact: Option<Compact>,
    slots: usize,
    scale: f64,
}

/// A rank that another one exchanges messages with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Neighbour {
    /// The rank.
    pub rank: u32,
    /// Integer weight of the edges of both directions; more than zero.
    pub weight: i64,
}

impl Problem {
    /// Scales the weights of a program and the costs of a machine to integers.
    ///
    /// Whole numbers stay as they are. Others are multiplied by the power of ten that keeps nine digits, or as many as fit
    /// 64 bits.
    pub fn new(graph: &TaskGraph, system: &SystemGraph, weight: Weight) -> Result<Self, ObjectiveError> {
        graph.check()?;
        system.check()?;
        check_weight(weight)?;
        let (ranks, slots) = (graph.ranks(), system.slots.len());
        if ranks == 0 {
            return Err(ObjectiveError::NoRanks);
        }
        if ranks > slots {
            return Err(ObjectiveError::TooManyRanks { ranks, slots });
        }
        let weights: Vec<f64> = graph.edges.iter().map(|edge| weight.of(edge)).collect();
        let sides = match &system.cost {
            CostModel::Levels(_) => Sides::CostsAlike,
            CostModel::Matrix(matrix) => sides(graph, &weights, matrix, slots)?,
        };
        let costs = match (&system.cost, sides) {
            (CostModel::Levels(levels), _) => levels.costs.clone(),
            (CostModel::Matrix(matrix), Sides::CostsAlike) => matrix.costs.clone(),
            (CostModel::Matrix(matrix), Sides::WeightsAlike) => both_ways(&matrix.costs, slots),
        };
        let scales = Scales::new(&weights, &costs)?;
        let costs: Vec<i64> = costs.iter().map(|cost| (cost * scales.cost).round() as i64).collect();
        let mut pairs = Vec::with_capacity(2 * weights.len());
        for (edge, weight) in graph.edges.iter().zip(&weights) {
            let weight = (weight * scales.weight).round() as i64;
            if edge.source != edge.destination && weight > 0 {
                pairs.push((edge.source, edge.destination, weight));
                if sides == Sides::CostsAlike {
                    pairs.push((edge.destination, edge.source, weight));
                }
            }
        }
        let (first, neighbours) = adjacency(ranks, pairs);
        let distance = match &system.cost {
            CostModel::Levels(levels) => Distance::new(levels, &costs, slots)?,
            CostModel::Matrix(_) => Distance::of_pairs(without_diagonal(costs, slots), slots),
        };
        let compact = Compact::new(&first, &neighbours, &distance);
        Ok(Self { first, neighbours, distance, compact, slots, scale: scales.weight * scales.cost })
    }

    /// Number of ranks.
    #[must_use]
    pub fn ranks(&self) -> usize {
        self.first.len() - 1
    }

    /// Number of slots; at least one for every rank.
    #[must_use]
    pub fn slots(&self) -> usize {
        self.slots
    }

    /// The ranks that a rank exchanges messages with, in order, itself never among them.
    #[must_use]
    pub fn neighbours(&self, rank: u32) -> &[Neighbour] {
        &self.neighbours[self.first[rank as usize]..self.first[rank as usize + 1]]
    }

    /// The cost between slots.
    #[must_use]
    pub fn distance(&self) -> &Distance {
        &self.distance
    }

    pub(crate) fn compact(&self) -> Option<&Compact> {
        self.compact.as_ref()
    }

    /// The same problem, of which every exchange is evaluated neighbour by neighbour. The costs are the same; it is there to
    /// compare the two.
    #[must_use]
    pub fn neighbour_by_neighbour(mut self) -> Self {
        self.compact = None;
        self
    }

    /// Whether exchanges are evaluated by rows of all ranks at once.
    #[must_use]
    pub fn is_compact(&self) -> bool {
        self.compact.is_some()
    }

    /// What an integer cost is multiplied by: one unit of F is this many units here.
    #[must_use]
    pub fn scale(&self) -> f64 {
        self.scale
    }

    /// F of an integer cost.
    #[must_use]
    pub fn real(&self, cost: i64) -> f64 {
        cost as f64 / self.scale
    }

    /// Integer cost of rank `i` on `slots[i]`, summed anew.
    #[must_use]
    pub fn cost(&self, slots: &[u32]) -> i64 {
        let of_rank = |rank: u32| -> i64 {
            let cost =
                |n: &Neighbour| n.weight * self.distance.cost(slots[rank as usize], slots[n.rank as usize]);
            self.neighbours(rank).iter().filter(|n| n.rank > rank).map(cost).sum()
        };
        (0..self.ranks() as u32).map(of_rank).sum()
    }
}

/// What is the same in both directions, so that the cost of a pair of ranks is one product.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sides {
    /// The costs: the weights of both directions are added.
    CostsAlike,
    /// The weights: the costs of both directions are added.
    WeightsAlike,
}

/// Finds what is the same in both directions; `weights` are those of the edges.
fn sides(
    graph: &TaskGraph,
    weights: &[f64],
    matrix: &CostMatrix,
    slots: usize,
) -> Result<Sides, ObjectiveError> {
    let same = |a: f64, b: f64| a.total_cmp(&b).is_eq();
    let to_itself = graph
        .edges
        .iter()
        .zip(weights)
        .any(|(edge, weight)| edge.source == edge.destination && *weight > 0.0);
    if to_itself && (0..slots).any(|slot| matrix.costs[slot * slots + slot] != 0.0) {
        return Err(ObjectiveError::Diagonal);
    }
    let cost = |a: usize, b: usize| matrix.costs[a * slots + b];
    if (0..slots).all(|a| (0..a).all(|b| same(cost(a, b), cost(b, a)))) {
        return Ok(Sides::CostsAlike);
    }
    let by_pair: HashMap<(u32, u32), f64> =
        graph.edges.iter().map(Edge::pair).zip(weights.iter().copied()).collect();
    let alike = by_pair.iter().all(|(&(source, destination), &weight)| {
        same(weight, by_pair.get(&(destination, source)).copied().unwrap_or(0.0))
    });
    if alike { Ok(Sides::WeightsAlike) } else { Err(ObjectiveError::Asymmetric) }
}

/// The costs there and back of all ordered pairs.
fn both_ways(costs: &[f64], slots: usize) -> Vec<f64> {
    let pair = |at: usize| costs[at] + costs[at % slots * slots + at / slots];
    (0..costs.len()).map(pair).collect()
}

/// Costs with zero from every slot to itself, which no rank pays.
fn without_diagonal(mut costs: Vec<i64>, slots: usize) -> Vec<i64> {
    (0..slots).for_each(|slot| costs[slot * slots + slot] = 0);
    costs
}

/// Sorts pairs by rank and neighbour and joins equal ones.
fn adjacency(ranks: usize, mut pairs: Vec<(u32, u32, i64)>) -> (Vec<usize>, Vec<Neighbour>) {
    pairs.sort_unstable_by_key(|&(rank, neighbour, _)| (rank, neighbour));
    pairs.dedup_by(|next, kept| {
        let same = (next.0, next.1) == (kept.0, kept.1);
        if same {
            kept.2 += next.2;
        }
        same
    });
    let mut first = vec![0; ranks + 1];
    for &(rank, ..) in &pairs {
        first[rank as usize + 1] += 1;
    }
    for rank in 0..ranks {
        first[rank + 1] += first[rank];
    }
    (first, pairs.into_iter().map(|(_, rank, weight)| Neighbour { rank, weight }).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use hopmap_model::{Levels, Node, NodeKind, Process, Slot};

    fn graph(ranks: usize, edges: &[(u32, u32, u64)]) -> TaskGraph {
        let edge = |&(source, destination, bytes)| Edge { source, destination, messages: 1, bytes };
        TaskGraph {
            processes: vec![Process::default(); ranks],
            edges: edges.iter().map(edge).collect(),
            ..TaskGraph::default()
        }
    }

    fn pairs_of_cores(hosts: u32, costs: [f64; 2]) -> SystemGraph {
        let slots = 2 * hosts;
        let host = |host| Node { name: format!("h{host}"), kind: NodeKind::Host };
        SystemGraph {
            nodes: (0..hosts).map(host).collect(),
            links: Vec::new(),
            slots: (0..slots).map(|slot| Slot { host: slot / 2, core: slot % 2 }).collect(),
            cost: CostModel::Levels(Levels {
                costs: costs.to_vec(),
                groups: vec![(0..slots).map(|slot| slot / 2).collect(), vec![0; slots as usize]],
            }),
        }
    }

    #[test]
    fn both_directions_count_and_a_rank_to_itself_does_not() {
        let graph = graph(3, &[(0, 1, 5), (1, 0, 7), (1, 1, 1000), (2, 0, 1)]);
        let problem = Problem::new(&graph, &pairs_of_cores(2, [1.0, 10.0]), Weight::Bytes).unwrap();
        assert_eq!(
            problem.neighbours(0),
            [Neighbour { rank: 1, weight: 12 }, Neighbour { rank: 2, weight: 1 }]
        );
        assert_eq!(problem.cost(&[0, 1, 2]), 12 + 10);
        assert!((problem.scale() - 1.0).abs() < f64::EPSILON);
    }

    #[test]
    fn real_costs_come_back_from_scaled_ones() {
        let graph = graph(2, &[(0, 1, 4)]);
        let weight = Weight::Time { latency_s: 2.5e-6, bandwidth_bytes_per_s: 1e9 };
        let problem = Problem::new(&graph, &pairs_of_cores(1, [0.5, 1.0]), weight).unwrap();
        assert!((problem.real(problem.cost(&[0, 1])) - 0.5 * 2.504e-6).abs() < 1e-18);
    }

    #[test]
    fn problems_without_an_answer_are_named() {
        let machine = pairs_of_cores(1, [1.0, 10.0]);
        let message = |graph: &TaskGraph, machine: &SystemGraph| {
            Problem::new(graph, machine, Weight::Bytes).unwrap_err().to_string()
        };
        assert_eq!(message(&graph(0, &[]), &machine), "the task graph has no processes");
        assert_eq!(message(&graph(3, &[]), &machine), "3 ranks do not fit on 2 slots");
        assert!(message(&graph(2, &[(0, 1, u64::MAX)]), &machine).contains("does not fit"));
        assert!(message(&graph(2, &[(0, 5, 1)]), &machine).contains("names rank 5"));
    }
}
