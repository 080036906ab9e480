//! A machine with some of its hosts.

use hopmap_model::{CostModel, Levels, Matrix, RouteCosts, SystemGraph};

/// The machine with the slots of some hosts only, given by their index among the hosts that have slots, ascending.
///
/// Nodes and links stay as they are: messages may pass what no rank runs on. Slots keep their order, costs their values.
#[must_use]
pub fn restrict(system: &SystemGraph, hosts: &[u32]) -> SystemGraph {
    let all: Vec<_> = system.hosts().collect();
    let slots = |&host: &u32| {
        let (_, first, count) = all[host as usize];
        first..first + count
    };
    let kept: Vec<u32> = hosts.iter().flat_map(slots).collect();
    let levels = |levels: &Levels| {
        let groups = |groups: &Vec<u32>| kept.iter().map(|&slot| groups[slot as usize]).collect();
        Levels { costs: levels.costs.clone(), groups: levels.groups.iter().map(groups).collect() }
    };
    let cost = match &system.cost {
        CostModel::Matrix(_) => CostModel::Matrix(Matrix { costs: system.costs().block(&kept) }),
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
    }
}
