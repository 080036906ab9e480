//! Cables to add to a machine that is there.

use hopmap_model::{Error, Link, LinkState, NodeKind, SystemGraph};

use super::inventory::Inventory;
use super::judge::Judge;
use crate::CheckError;

/// A machine that is there, and its ports without a cable.
struct Spare<'a> {
    system: &'a SystemGraph,
    /// Free ports of every node, least first, and the bandwidth of its ports.
    ports: Vec<(Vec<u32>, f64)>,
    /// Pairs of nodes that a cable could join.
    pairs: Vec<(usize, usize)>,
}

/// The machine with as few more cables as will do; nothing if none was found. Says as well whether that is proven.
pub(super) fn extend(
    judge: &mut Judge<'_>,
    inventory: &Inventory,
    system: &SystemGraph,
) -> Result<(Option<SystemGraph>, bool), Error> {
    let spare = Spare::new(inventory, system)?;
    let free: usize = spare.ports.iter().map(|(ports, _)| ports.len()).sum();
    let most = inventory.cables.map_or(free / 2, |most| (most as usize).min(free / 2));
    let all = judge.left;
    judge.left = all / 2;
    for cables in 0..=most {
        let mut best: Option<(f64, SystemGraph)> = None;
        let whole = spare.search(judge, &mut Vec::new(), cables, &mut best)?;
        if let Some((_, system)) = best {
            return Ok((Some(system), whole && !judge.unsure));
        }
        if !whole {
            judge.left = all.saturating_sub(judge.looked);
            let added = spare.thinned(judge)?.filter(|added| added.len() <= most);
            return Ok((added.map(|added| spare.with(&added)), false));
        }
    }
    Ok((None, !judge.unsure))
}

impl<'a> Spare<'a> {
    fn new(inventory: &Inventory, system: &'a SystemGraph) -> Result<Self, CheckError> {
        let kit = inventory.by_name();
        let mut ports = Vec::new();
        for (id, node) in (0..).zip(&system.nodes) {
            let Some(unit) = kit.get(node.name.as_str()) else {
                ports.push((Vec::new(), 0.0));
                continue;
            };
            if unit.node.kind != node.kind {
                return Err(CheckError::new(
                    format!("`{}` is a host in one of kit and machine and a switch in the other", node.name),
                    "the kit says of nodes of the machine, by their names, how many ports they have",
                ));
            }
            let is_taken = |port: &u32| {
                system.links.iter().any(|link| {
                    (link.source == id && link.source_port == Some(*port))
                        || (link.destination == id && link.destination_port == Some(*port))
                })
            };
            let free = (0..unit.ports).filter(|port| !is_taken(port)).collect();
            ports.push((free, unit.bandwidth));
        }
        let is_host = |node: usize| system.nodes[node].kind == NodeKind::Host;
        let open: Vec<usize> = (0..ports.len()).filter(|&node| !ports[node].0.is_empty()).collect();
        let pairs = open.iter().flat_map(|&a| open.iter().map(move |&b| (a, b)));
        let pairs = pairs.filter(|&(a, b)| a < b && !(is_host(a) && is_host(b))).collect();
        Ok(Self { system, ports, pairs })
    }

    /// Goes through all ways to add so many cables; false if there are too many.
    fn search(
        &self,
        judge: &mut Judge<'_>,
        added: &mut Vec<usize>,
        cables: usize,
        best: &mut Option<(f64, SystemGraph)>,
    ) -> Result<bool, Error> {
        if judge.is_over() {
            return Ok(false);
        }
        if added.len() == cables {
            let system = self.with(added);
            // First whether it survives what the last one did not.
            if judge.may_do(&system, &std::collections::BTreeSet::new())?
                && let Some(found) = judge.best(&system)?
                && let Some(plan) = &found.plan
            {
                let problem = crate::problem::Problem::new(judge.graph, &system, None, judge.rules)?;
                let cost = problem.cost(plan);
                if best.as_ref().is_none_or(|(known, _)| cost < *known) {
                    *best = Some((cost, system));
                }
            }
            return Ok(true);
        }
        for pair in added.last().copied().unwrap_or_default()..self.pairs.len() {
            added.push(pair);
            let whole = !self.fits(added) || self.search(judge, added, cables, best)?;
            added.pop();
            if !whole {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Cables at all free ports, less those that are not needed, one after the other; nothing if even all of them do not do.
    fn thinned(&self, judge: &mut Judge<'_>) -> Result<Option<Vec<usize>>, Error> {
        let mut added = Vec::new();
        // Every pair in turn, so that cables are spread.
        loop {
            let before = added.len();
            for pair in 0..self.pairs.len() {
                added.push(pair);
                if !self.fits(&added) {
                    added.pop();
                }
            }
            if added.len() == before {
                break;
            }
        }
        if judge.best(&self.with(&added))?.is_none() {
            return Ok(None);
        }
        for at in (0..added.len()).rev() {
            if judge.is_over() {
                break;
            }
            let cable = added.remove(at);
            if judge.best(&self.with(&added))?.is_none() {
                added.insert(at, cable);
            }
        }
        Ok(Some(added))
    }

    /// Whether there are ports for all these cables.
    fn fits(&self, added: &[usize]) -> bool {
        let ends = || added.iter().flat_map(|&pair| [self.pairs[pair].0, self.pairs[pair].1]);
        ends().all(|node| ends().filter(|other| *other == node).count() <= self.ports[node].0.len())
    }

    /// The machine with cables at the least free ports.
    fn with(&self, added: &[usize]) -> SystemGraph {
        let mut system = self.system.clone();
        let mut next = vec![0; self.ports.len()];
        for &pair in added {
            let (a, b) = self.pairs[pair];
            let mut port = |node: usize| {
                next[node] += 1;
                self.ports[node].0.get(next[node] - 1).copied()
            };
            let link = Link {
                source_port: port(a),
                destination_port: port(b),
                bandwidth_bytes_per_s: Some(self.ports[a].1.min(self.ports[b].1)),
                state: LinkState::Up,
                ..Link::new(a as u32, b as u32)
            };
            system.links.extend([link, link.reversed()]);
        }
        system
    }
}
