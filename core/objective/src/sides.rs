//! Which of weights and costs is the same in both directions.

use std::collections::HashMap;
use std::ops::Add;

use hopmap_model::{Edge, Matrix, TaskGraph};

use crate::adjacency::Adjacency;

/// What is the same in both directions, so that the cost of a pair of ranks is one product.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sides {
    /// The costs: the weights of both directions are added.
    CostsAlike,
    /// The weights: the costs of both directions are added.
    WeightsAlike,
    /// Nothing, or ranks pay to send to themselves.
    Neither,
}

/// Finds what is the same in both directions; `weights` are those of the edges.
pub(crate) fn sides(graph: &TaskGraph, weights: &[f64], matrix: &Matrix, slots: usize) -> Sides {
    let same = |a: f64, b: f64| a.total_cmp(&b).is_eq();
    let to_itself = graph
        .edges
        .iter()
        .zip(weights)
        .any(|(edge, weight)| edge.source == edge.destination && *weight > 0.0);
    if to_itself && (0..slots).any(|slot| matrix.costs[slot * slots + slot] != 0.0) {
        return Sides::Neither;
    }
    let cost = |a: usize, b: usize| matrix.costs[a * slots + b];
    if (0..slots).all(|a| (0..a).all(|b| same(cost(a, b), cost(b, a)))) {
        return Sides::CostsAlike;
    }
    let by_pair: HashMap<(u32, u32), f64> =
        graph.edges.iter().map(Edge::pair).zip(weights.iter().copied()).collect();
    let alike = by_pair.iter().all(|(&(source, destination), &weight)| {
        same(weight, by_pair.get(&(destination, source)).copied().unwrap_or(0.0))
    });
    if alike { Sides::WeightsAlike } else { Sides::Neither }
}

/// The costs there and back of all ordered pairs.
pub(crate) fn both_ways<T: Copy + Add<Output = T>>(costs: &[T], slots: usize) -> Vec<T> {
    let pair = |at: usize| costs[at] + costs[at % slots * slots + at / slots];
    (0..costs.len()).map(pair).collect()
}

/// Costs with zero from every slot to itself, which no rank pays.
pub(crate) fn without_diagonal(mut costs: Vec<i64>, slots: usize) -> Vec<i64> {
    (0..slots).for_each(|slot| costs[slot * slots + slot] = 0);
    costs
}

/// The neighbours of all ranks by triples of source, destination and weight.
pub(crate) fn neighbours(ranks: usize, edges: &[(u32, u32, i64)], sides: Sides) -> Adjacency {
    let back = |&(source, destination, weight): &(u32, u32, i64)| match sides {
        Sides::WeightsAlike => None,
        Sides::CostsAlike | Sides::Neither => Some((destination, source, weight)),
    };
    let pairs = edges.iter().filter(|edge| edge.0 != edge.1).flat_map(|edge| [Some(*edge), back(edge)]);
    Adjacency::new(ranks, pairs.flatten().collect())
}
