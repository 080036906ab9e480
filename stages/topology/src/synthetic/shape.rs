//! The shape of a regular tree.

use std::num::IntErrorKind;

use crate::{SyntheticError, SyntheticParams};

/// Most slots of a machine.
pub(crate) const MAX_SLOTS: u32 = 1 << 24;
/// Most levels of a tree: more only repeat single branches, for every other one doubles the slots.
pub(crate) const MAX_LEVELS: usize = 32;

/// A regular tree over slots with a cost for every level.
pub(crate) struct Shape {
    /// Slots of one group of every level, innermost first.
    pub(crate) sizes: Vec<u32>,
    pub(crate) costs: Vec<f64>,
    /// Slots of one host.
    pub(crate) cores: u32,
    /// Number of innermost levels inside a host.
    pub(crate) host_level: usize,
}

impl Shape {
    /// Checks the shape, the costs and the level of the hosts.
    pub(crate) fn new(params: &SyntheticParams) -> Result<Self, SyntheticError> {
        let shape = params.shape.clone();
        let sizes = sizes(&shape)?;
        if let Some(parameter) = of_networks(params) {
            let problem = "is for networks with routes; a tree has `costs`".to_owned();
            return Err(SyntheticError::Parameter { parameter, shape, problem });
        }
        let costs = match params.costs.is_empty() {
            true => std::iter::successors(Some(1.0), |cost| Some(10.0 * cost)).take(sizes.len()).collect(),
            false => params.costs.clone(),
        };
        check_costs(&costs, sizes.len(), &shape)?;
        let host_level = params.host_level.unwrap_or(1) as usize;
        if host_level > sizes.len() {
            return Err(SyntheticError::HostLevel {
                host_level: host_level as u32,
                shape,
                levels: sizes.len(),
            });
        }
        let cores = if host_level == 0 { 1 } else { sizes[host_level - 1] };
        Ok(Self { sizes, costs, cores, host_level })
    }

    pub(crate) fn slots(&self) -> u32 {
        self.sizes.last().copied().unwrap_or(1)
    }

    pub(crate) fn hosts(&self) -> u32 {
        self.slots() / self.cores
    }
}

/// A parameter that means nothing to a tree.
fn of_networks(params: &SyntheticParams) -> Option<&'static str> {
    let given = [
        ("cores", !params.cores.is_empty()),
        ("inside", !params.inside.is_empty()),
        ("cost", params.cost.is_some()),
        ("bytes", params.bytes.is_some()),
        ("link_latency", !params.link_latency.is_empty()),
        ("bandwidth", !params.bandwidth.is_empty()),
    ];
    given.into_iter().find_map(|(name, is_given)| is_given.then_some(name))
}

/// Slots of one group of every level: the products of the branches. The trees of `KaHIP` are innermost first as well.
fn sizes(shape: &str) -> Result<Vec<u32>, SyntheticError> {
    let branches: Vec<&str> = if let Some(tree) = shape.strip_prefix("tree:") {
        tree.split(['x', ':']).collect()
    } else if let Some(hierarchy) = shape.strip_prefix("kahip:") {
        hierarchy.split(':').collect()
    } else {
        return Err(SyntheticError::Unknown { shape: shape.to_owned() });
    };
    if branches.len() > MAX_LEVELS {
        return Err(SyntheticError::TooManyLevels { shape: shape.to_owned(), levels: branches.len() });
    }
    let malformed = |level, text: &str| SyntheticError::Branches {
        shape: shape.to_owned(),
        level,
        branches: text.to_owned(),
    };
    let mut size = 1u32;
    let mut next = |(level, text): (usize, &&str)| {
        let branches = match text.parse::<u64>() {
            Ok(branches) if branches > 0 => branches,
            Err(error) if *error.kind() == IntErrorKind::PosOverflow => u64::MAX,
            _ => return Err(malformed(level, text)),
        };
        size = u64::from(size)
            .checked_mul(branches)
            .filter(|&size| size <= u64::from(MAX_SLOTS))
            .ok_or_else(|| SyntheticError::TooManySlots { shape: shape.to_owned() })? as u32;
        Ok(size)
    };
    branches.iter().enumerate().map(&mut next).collect()
}

fn check_costs(costs: &[f64], levels: usize, shape: &str) -> Result<(), SyntheticError> {
    if costs.len() != levels {
        return Err(SyntheticError::CostCount { shape: shape.to_owned(), levels, costs: costs.to_vec() });
    }
    let mut inner = 0.0;
    for (level, &cost) in costs.iter().enumerate() {
        if !(cost.is_finite() && cost >= 0.0) {
            return Err(SyntheticError::Cost { level, cost });
        }
        if cost < inner {
            return Err(SyntheticError::FallingCost { level, cost, inner });
        }
        inner = cost;
    }
    Ok(())
}
