//! Machines on which the cost between two slots is the number of links between their hosts.

use hopmap_model::{CostModel, Levels, Paths, RouteCosts, RouteMetric, SystemGraph, Tree};

/// The machine with hops as costs: levels where the links are a tree with all hosts equally deep.
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
