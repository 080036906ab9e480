//! Representations of costs between slots: trees, matrices, hops, and their symmetries.

use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::Add;

use hopmap_model::{
    CostModel, CostsError, Edge, Levels, Matrix, Paths, RouteCosts, RouteMetric, SystemGraph, TaskGraph, Tree,
};

use crate::adjacency::Adjacency;
use crate::distance::Distance;
use crate::error::ObjectiveError;

/// Maximum slots for a matrix of all pairs.
pub(crate) const MOST_SLOTS: usize = 4096;
/// Maximum hosts for a matrix of all pairs.
const MOST_HOSTS: usize = 4096;

/// The costs between the slots of a machine.
pub(crate) enum Form<'s> {
    /// The slots are the leaves of a tree.
    Levels(Cow<'s, Levels>),
    /// Every ordered pair of slots.
    Matrix(Cow<'s, Matrix>),
    /// A symmetric matrix of hosts, and a tree inside every host.
    Hosts {
        inside: &'s Levels,
        /// Row by row.
        between: Vec<f64>,
    },
}

impl<'s> Form<'s> {
    /// Costs that follow from routes become levels if they form a tree, otherwise a matrix.
    pub(crate) fn new(system: &'s SystemGraph) -> Result<Self, ObjectiveError> {
        match &system.cost {
            CostModel::Levels(levels) => Ok(Self::Levels(Cow::Borrowed(levels))),
            CostModel::Matrix(matrix) => Ok(Self::Matrix(Cow::Borrowed(matrix))),
            CostModel::Routes(routes) => Self::of_routes(system, routes),
        }
    }

    fn of_routes(system: &'s SystemGraph, routes: &'s RouteCosts) -> Result<Self, ObjectiveError> {
        match system.explicit(0) {
            Ok(explicit) => match explicit.into_owned().cost {
                CostModel::Levels(levels) => return Ok(Self::Levels(Cow::Owned(levels))),
                CostModel::Matrix(matrix) => return Ok(Self::Matrix(Cow::Owned(matrix))),
                CostModel::Routes(_) => {}
            },
            Err(CostsError::TooMany { .. }) => {}
            Err(error) => return Err(error.into()),
        }
        let (hosts, slots) = (system.hosts().count(), system.slots.len());
        if hosts > MOST_HOSTS {
            let problem = format!(
                "the route costs between {hosts} hosts are not a tree; a matrix is supported for up to {MOST_HOSTS} hosts"
            );
            let help = "choose the hosts of the job with select/hosts or select/nodes first";
            return Err(ObjectiveError::new(problem, help));
        }
        let between = system.costs_of_hosts()?;
        let same = |a: usize, b: usize| between[a * hosts + b].total_cmp(&between[b * hosts + a]).is_eq();
        if (0..hosts).all(|a| (0..a).all(|b| same(a, b))) {
            return Ok(Self::Hosts { inside: &routes.inside, between });
        }
        match slots <= MOST_SLOTS {
            true => Ok(Self::Matrix(Cow::Owned(system.matrix_of_hosts(&between)))),
            false => Err(CostsError::TooMany { slots, most: MOST_SLOTS }.into()),
        }
    }

    /// Symmetry, and all costs: first those of levels or inside hosts, then row by row; summed over both
    /// directions if only weights are symmetric.
    pub(crate) fn costs(&self, graph: &TaskGraph, weights: &[f64], slots: usize) -> (Sides, Vec<f64>) {
        match self {
            Self::Levels(levels) => (Sides::CostsAlike, levels.costs.clone()),
            Self::Hosts { inside, between } => {
                (Sides::CostsAlike, inside.costs.iter().chain(between).copied().collect())
            }
            Self::Matrix(matrix) => {
                let sides = sides(graph, weights, matrix, slots);
                let is_summed = sides == Sides::WeightsAlike;
                (sides, if is_summed { both_ways(&matrix.costs, slots) } else { matrix.costs.clone() })
            }
        }
    }

    /// Builds the integer lookup of costs.
    pub(crate) fn distance(&self, mut costs: Vec<i64>, slots: usize) -> Result<Distance, ObjectiveError> {
        match self {
            Self::Levels(levels) => Distance::new(levels, &costs, slots),
            Self::Matrix(_) => {
                // A rank does not pay for its own slot.
                (0..slots).for_each(|slot| costs[slot * slots + slot] = 0);
                Ok(Distance::of_pairs(costs, slots))
            }
            Self::Hosts { inside, .. } => {
                let between = costs.split_off(inside.costs.len());
                Distance::of_hosts(inside, &costs, between)
            }
        }
    }
}

/// Which inputs are symmetric, so that the cost of a pair of ranks is one product.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sides {
    /// Costs: the weights of both directions are added.
    CostsAlike,
    /// Weights: the costs of both directions are added.
    WeightsAlike,
    /// None, or ranks pay to send to themselves.
    Neither,
}

/// Detects symmetry; `weights` are those of the edges.
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

/// The costs of all ordered pairs in both directions.
pub(crate) fn both_ways<T: Copy + Add<Output = T>>(costs: &[T], slots: usize) -> Vec<T> {
    let pair = |at: usize| costs[at] + costs[at % slots * slots + at / slots];
    (0..costs.len()).map(pair).collect()
}

/// Builds the neighbours of all ranks from triples of source, destination and weight.
pub(crate) fn neighbours(ranks: usize, edges: &[(u32, u32, i64)], sides: Sides) -> Adjacency {
    let back = |&(source, destination, weight): &(u32, u32, i64)| match sides {
        Sides::WeightsAlike => None,
        Sides::CostsAlike | Sides::Neither => Some((destination, source, weight)),
    };
    let pairs = edges.iter().filter(|edge| edge.0 != edge.1).flat_map(|edge| [Some(*edge), back(edge)]);
    Adjacency::new(ranks, pairs.flatten().collect())
}

/// The machine with hops as costs: levels if the links form a tree with all hosts at the same depth.
pub(crate) fn with_hops(system: &SystemGraph, paths: &Paths) -> SystemGraph {
    let cost = match paths.tree().and_then(|tree| levels(system, tree)) {
        Some(levels) => CostModel::Levels(levels),
        None => {
            let hosts = system.slots.iter().map(|slot| slot.host).collect();
            let inside = Levels { costs: vec![0.0], groups: vec![hosts] };
            CostModel::Routes(RouteCosts { metric: RouteMetric::Hops, inside })
        }
    };
    SystemGraph { cost, ..system.clone() }
}

/// Groups of slots on one host, under one node, and so on: hosts that meet k nodes up are 2 k hops apart.
/// `None` if hosts have different depths.
fn levels(system: &SystemGraph, tree: &Tree) -> Option<Levels> {
    let mut groups: Vec<u32> = system.slots.iter().map(|slot| slot.host).collect();
    let mut levels = Levels::default();
    loop {
        levels.costs.push(2.0 * levels.costs.len() as f64);
        levels.groups.push(groups.clone());
        if groups.windows(2).all(|pair| pair[0] == pair[1]) {
            return Some(levels);
        }
        groups = groups.into_iter().map(|node| tree.parent(node)).collect::<Option<_>>()?;
    }
}
