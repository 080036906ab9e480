//! Machines with some of their slots.

use hopmap_model::{CostModel, Levels, Matrix, RouteCosts, SystemGraph};

/// The machine topology with the slots of some hosts only, given by ascending index among the hosts with
/// slots.
///
/// Nodes and links are kept, since messages may pass nodes without ranks. Slots keep their order, costs their
/// values.
#[must_use]
pub fn restrict(system: &SystemGraph, hosts: &[u32]) -> SystemGraph {
    let all: Vec<_> = system.hosts().collect();
    let slots = |&host: &u32| {
        let (_, first, count) = all[host as usize];
        first..first + count
    };
    with_slots(system, &hosts.iter().flat_map(slots).collect::<Vec<u32>>())
}

/// The machine with the first `most` slots of every host, of which it is given the index.
pub(crate) fn with_slots_per_host(system: &SystemGraph, most: impl Fn(usize) -> u32) -> SystemGraph {
    let slots = |(host, (_, first, count)): (usize, (u32, u32, u32))| first..first + count.min(most(host));
    with_slots(system, &system.hosts().enumerate().flat_map(slots).collect::<Vec<u32>>())
}

fn with_slots(system: &SystemGraph, kept: &[u32]) -> SystemGraph {
    let levels = |levels: &Levels| {
        let groups = |groups: &Vec<u32>| kept.iter().map(|&slot| groups[slot as usize]).collect();
        Levels { costs: levels.costs.clone(), groups: levels.groups.iter().map(groups).collect() }
    };
    let cost = match &system.cost {
        CostModel::Matrix(_) => CostModel::Matrix(Matrix { costs: system.costs().block(kept) }),
        CostModel::Levels(all) => CostModel::Levels(levels(all)),
        CostModel::Routes(routes) => {
            CostModel::Routes(RouteCosts { metric: routes.metric, inside: levels(&routes.inside) })
        }
    };
    SystemGraph {
        nodes: system.nodes.clone(),
        links: system.links.clone(),
        routing: system.routing.clone(),
        slots: kept.iter().map(|&slot| system.slots[slot as usize]).collect(),
        cost,
        calibration: system.calibration.clone(),
    }
}
