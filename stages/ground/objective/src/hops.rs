//! Machines on which the cost between two slots is the number of links between their hosts.

use hopmap_model::{CostModel, Levels, Matrix, Paths, SystemGraph};

use crate::ObjectiveError;

/// Most slots of which all pairs are stored.
const MOST_SLOTS: usize = 4096;

/// The machine with hops as costs: a tree where all hosts are equally deep, else a matrix.
pub(crate) fn with_hops(system: &SystemGraph, paths: &Paths) -> Result<SystemGraph, ObjectiveError> {
    let cost = match levels(system, paths) {
        Some(levels) => CostModel::Levels(levels),
        None if system.slots.len() <= MOST_SLOTS => CostModel::Matrix(matrix(system, paths)),
        None => return Err(ObjectiveError::TooManyHops { slots: system.slots.len(), most: MOST_SLOTS }),
    };
    let (nodes, links, slots) = (system.nodes.clone(), system.links.clone(), system.slots.clone());
    Ok(SystemGraph { nodes, links, slots, cost })
}

/// Slots of one host, of hosts under one node, and so on: two hosts that meet k nodes up are 2 k hops apart.
fn levels(system: &SystemGraph, paths: &Paths) -> Option<Levels> {
    let mut groups: Vec<u32> = system.slots.iter().map(|slot| slot.host).collect();
    let mut levels = Levels::default();
    loop {
        levels.costs.push(2.0 * levels.costs.len() as f64);
        levels.groups.push(groups.clone());
        if groups.windows(2).all(|pair| pair[0] == pair[1]) {
            return Some(levels);
        }
        groups = groups.into_iter().map(|node| paths.parent(node)).collect::<Option<_>>()?;
    }
}

fn matrix(system: &SystemGraph, paths: &Paths) -> Matrix {
    let hops = |a: usize, b: usize| f64::from(paths.hops(system.slots[a].host, system.slots[b].host));
    let slots = system.slots.len();
    Matrix { costs: (0..slots * slots).map(|at| hops(at / slots, at % slots)).collect() }
}
