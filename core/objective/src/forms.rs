//! The forms in which costs between slots are kept.

use std::borrow::Cow;

use hopmap_model::{CostModel, CostsError, Levels, Matrix, RouteCosts, SystemGraph, TaskGraph};

use crate::sides::{Sides, both_ways, sides, without_diagonal};
use crate::{Distance, ObjectiveError};

/// Most slots of which all pairs are stored.
pub(crate) const MOST_SLOTS: usize = 4096;
/// Most hosts of which all pairs are stored.
const MOST_HOSTS: usize = 4096;

/// The costs between the slots of a machine.
pub(crate) enum Form<'s> {
    /// The slots are the leaves of a tree.
    Levels(Cow<'s, Levels>),
    /// Every ordered pair of slots.
    Matrix(Cow<'s, Matrix>),
    /// Every pair of hosts, the same in both directions, and a tree inside every host.
    Hosts {
        inside: &'s Levels,
        /// Row by row.
        between: Vec<f64>,
    },
}

impl<'s> Form<'s> {
    /// What follows from routes becomes levels where it is a tree, else pairs.
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
            return Err(ObjectiveError::TooManyHosts { hosts, most: MOST_HOSTS });
        }
        let between = system.costs_of_hosts()?;
        let same = |a: usize, b: usize| between[a * hosts + b].total_cmp(&between[b * hosts + a]).is_eq();
        if (0..hosts).all(|a| (0..a).all(|b| same(a, b))) {
            return Ok(Self::Hosts { inside: &routes.inside, between });
        }
        match slots <= MOST_SLOTS {
            true => Ok(Self::Matrix(Cow::Owned(system.matrix()?))),
            false => Err(CostsError::TooMany { slots, most: MOST_SLOTS }.into()),
        }
    }

    /// What is the same in both directions, and all costs: of levels or those inside hosts first, then row by row; of both directions
    /// together where only weights are the same.
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

    /// The costs as integers, looked up fast.
    pub(crate) fn distance(&self, mut costs: Vec<i64>, slots: usize) -> Result<Distance, ObjectiveError> {
        match self {
            Self::Levels(levels) => Distance::new(levels, &costs, slots),
            Self::Matrix(_) => Ok(Distance::of_pairs(without_diagonal(costs, slots), slots)),
            Self::Hosts { inside, .. } => {
                let between = costs.split_off(inside.costs.len());
                Distance::of_hosts(inside, &costs, between)
            }
        }
    }
}
