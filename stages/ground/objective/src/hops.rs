//! Machines on which the cost between two slots is the number of links between their hosts.

use hopmap_model::{CostModel, CostsError, Levels, Paths, RouteCosts, RouteMetric, SystemGraph, Tree};

use crate::ObjectiveError;

/// Most slots of which all pairs are stored.
pub(crate) const MOST_SLOTS: usize = 4096;

/// The machine with hops as costs: levels where they are those of a tree, else a matrix.
pub(crate) fn with_hops(system: &SystemGraph, paths: &Paths) -> Result<SystemGraph, ObjectiveError> {
    let with = |cost| SystemGraph { cost, ..system.clone() };
    if let Some(levels) = paths.tree().and_then(|tree| levels(system, tree)) {
        return Ok(with(CostModel::Levels(levels)));
    }
    let hosts = system.slots.iter().map(|slot| slot.host).collect();
    let inside = Levels { costs: vec![0.0], groups: vec![hosts] };
    let routed = with(CostModel::Routes(RouteCosts { metric: RouteMetric::Hops, inside }));
    match routed.explicit(MOST_SLOTS) {
        Ok(explicit) => Ok(explicit.into_owned()),
        Err(CostsError::TooMany { slots, most }) => Err(ObjectiveError::TooManyHops { slots, most }),
        Err(error) => Err(error.into()),
    }
}

/// Slots of one host, of hosts under one node, and so on: two hosts that meet k nodes up are 2 k hops apart. `None` where not all
/// hosts are equally deep.
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
