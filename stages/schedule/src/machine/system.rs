//! Machines that are system graphs: a processor for every slot.

use std::collections::HashMap;

use hopmap_model::{CostModel, Levels, LinkState, Paths, Processor, SystemGraph, WorkUnit};

use super::{Distances, Hosts, Level, Linear, MOST_OF_PAIRS, MOST_PROCESSORS, Machine, Network, Tree};
use crate::{Distance, MachineError, MachineParams};

/// Slots whose pairs are all looked up in a table, which is faster than a tree and takes 16 megabytes at most.
const FEW: usize = 1 << 11;
/// Bytes per second between two slots of one host whose links are known.
const INSIDE_BANDWIDTH: f64 = 1e10;

pub(super) fn machine(
    params: &MachineParams,
    system: &SystemGraph,
    unit: WorkUnit,
) -> Result<Machine, MachineError> {
    let slots = params.processors.map_or(system.slots.len(), |most| system.slots.len().min(most as usize));
    if slots > MOST_PROCESSORS as usize {
        return Err(MachineError::TooManySlots { slots, most: MOST_PROCESSORS });
    }
    let processor = |slot: usize| {
        let place = system.slots[slot];
        let name = format!("{}:{}", system.nodes[place.host as usize].name, place.core);
        Processor { name, slot: Some(slot as u32), ..Processor::default() }
    };
    let base = super::linear(params, unit)?;
    let by_links =
        system.links.iter().all(|link| link.bandwidth_bytes_per_s.is_some()) && !system.links.is_empty();
    let default = if by_links { Distance::Links } else { Distance::Costs };
    let (distances, classes) = match params.distance.unwrap_or(default) {
        Distance::Links => by_routes(system, slots, base)?,
        Distance::Costs => by_costs(system, slots, base)?,
    };
    Ok(Machine {
        processors: (0..slots).map(processor).collect(),
        pace: vec![1.0; slots],
        network: Network::Linear { distances, classes },
    })
}

/// Classes of pairs that take the same, numbered as they come up.
#[derive(Default)]
struct Classes {
    known: HashMap<[u64; 2], u32>,
    classes: Vec<Linear>,
}

impl Classes {
    fn of(&mut self, linear: Linear) -> u32 {
        let key = [linear.latency.to_bits(), linear.per_byte.to_bits()];
        *self.known.entry(key).or_insert_with(|| {
            self.classes.push(linear);
            self.classes.len() as u32 - 1
        })
    }
}

fn by_costs(
    system: &SystemGraph,
    slots: usize,
    base: Linear,
) -> Result<(Distances, Vec<Linear>), MachineError> {
    let of_cost = |cost: f64| Linear { latency: cost * base.latency, per_byte: cost * base.per_byte };
    let costs = system.costs();
    let between = |a, b| Some(costs.between(a, b)).filter(|cost| cost.is_finite()).map(of_cost);
    match &system.cost {
        CostModel::Levels(levels) if slots > FEW => {
            let mut found = Classes::default();
            let tree = tree(levels, slots, &mut found, of_cost);
            Ok((Distances::Tree(tree), found.classes))
        }
        CostModel::Routes(routes) if slots > FEW => {
            let mut found = Classes::default();
            let inside = tree(&routes.inside, slots, &mut found, of_cost);
            hosts(system, slots, (inside, found), between)
        }
        _ => pairs(system, slots, between),
    }
}

/// The first so many slots of a tree whose costs are known.
fn tree(levels: &Levels, slots: usize, found: &mut Classes, of_cost: impl Fn(f64) -> Linear) -> Tree {
    let level = |(cost, groups): (&f64, &Vec<u32>)| Level {
        class: found.of(of_cost(*cost)),
        groups: groups[..slots].to_vec(),
    };
    let levels = levels.costs.iter().zip(&levels.groups).map(level).collect();
    Tree { own: found.of(of_cost(0.0)), levels }
}

fn by_routes(
    system: &SystemGraph,
    slots: usize,
    base: Linear,
) -> Result<(Distances, Vec<Linear>), MachineError> {
    let paths = Paths::new(system).ok_or(MachineError::NoLinks)?;
    let nothing = Linear { latency: 0.0, per_byte: 0.0 };
    let on_host = Linear { latency: 0.0, per_byte: 1.0 / INSIDE_BANDWIDTH };
    let between = |a: u32, b: u32| {
        let [from, to] = [a, b].map(|slot| system.slots[slot as usize].host);
        let mut linear = Linear { latency: base.latency, per_byte: 0.0 };
        let mut passes = true;
        let reached = paths.walk(from, to, |link| {
            let link = &system.links[link as usize];
            passes &= link.state == LinkState::Up;
            linear.latency += link.latency_s.unwrap_or(0.0);
            let per_byte = link.bandwidth_bytes_per_s.map_or(base.per_byte, |bandwidth| 1.0 / bandwidth);
            linear.per_byte = linear.per_byte.max(per_byte);
        });
        (reached && passes && linear.per_byte.is_finite()).then_some(linear)
    };
    if slots > FEW {
        let mut found = Classes::default();
        let groups = system.slots[..slots].iter().map(|slot| slot.host).collect();
        let level = Level { class: found.of(on_host), groups };
        let inside = Tree { own: found.of(nothing), levels: vec![level] };
        return hosts(system, slots, (inside, found), between);
    }
    let mut known: HashMap<(u32, u32), Option<Linear>> = HashMap::new();
    pairs(system, slots, |a, b| {
        if a == b {
            return Some(nothing);
        }
        let [from, to] = [a, b].map(|slot| system.slots[slot as usize].host);
        if from == to {
            return Some(on_host);
        }
        *known.entry((from, to)).or_insert_with(|| between(a, b))
    })
}

/// A class for every pair of hosts of the first so many slots.
fn hosts(
    system: &SystemGraph,
    slots: usize,
    (inside, mut found): (Tree, Classes),
    linear: impl Fn(u32, u32) -> Option<Linear>,
) -> Result<(Distances, Vec<Linear>), MachineError> {
    let all: Vec<_> = system.hosts().take_while(|&(_, first, _)| (first as usize) < slots).collect();
    if all.len() > MOST_OF_PAIRS {
        return Err(MachineError::TooManyHosts { hosts: all.len(), most: MOST_OF_PAIRS });
    }
    let host = (0..).zip(&all).flat_map(|(host, one)| std::iter::repeat_n(host, one.2 as usize));
    let host = host.take(slots).collect();
    let name = |node: u32| system.nodes[node as usize].name.clone();
    let mut between = Vec::with_capacity(all.len() * all.len());
    for &(from, first, _) in &all {
        for &(to, other, _) in &all {
            let class = match from == to {
                true => Some(inside.own),
                false => linear(first, other).map(|linear| found.of(linear)),
            };
            between.push(class.ok_or_else(|| MachineError::NoRoute { from: name(from), to: name(to) })?);
        }
    }
    let hosts = Hosts { host, hosts: all.len(), between: between.into(), inside };
    Ok((Distances::Hosts(hosts), found.classes))
}

fn pairs(
    system: &SystemGraph,
    slots: usize,
    mut linear: impl FnMut(u32, u32) -> Option<Linear>,
) -> Result<(Distances, Vec<Linear>), MachineError> {
    if slots > MOST_OF_PAIRS {
        return Err(MachineError::TooManyPairs { slots, most: MOST_OF_PAIRS });
    }
    let mut found = Classes::default();
    let mut classes = Vec::with_capacity(slots * slots);
    for a in 0..slots as u32 {
        for b in 0..slots as u32 {
            let name = |slot: u32| system.nodes[system.slots[slot as usize].host as usize].name.clone();
            let linear = linear(a, b).ok_or_else(|| MachineError::NoRoute { from: name(a), to: name(b) })?;
            classes.push(found.of(linear));
        }
    }
    Ok((Distances::Pairs { processors: slots, classes }, found.classes))
}
