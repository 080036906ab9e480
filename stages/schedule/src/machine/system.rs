//! Machines that are system graphs: a processor for every slot.

use std::collections::HashMap;

use hopmap_model::{LinkState, Paths, Processor, SystemGraph, WorkUnit};

use super::{Distances, Linear, MOST_PROCESSORS, Machine, Network};
use crate::{Distance, MachineError, MachineParams};

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
    let costs = system.costs();
    pairs(system, slots, |a, b| {
        let cost = costs.between(a, b);
        let linear = Linear { latency: cost * base.latency, per_byte: cost * base.per_byte };
        (cost.is_finite()).then_some(linear)
    })
}

fn by_routes(
    system: &SystemGraph,
    slots: usize,
    base: Linear,
) -> Result<(Distances, Vec<Linear>), MachineError> {
    let paths = Paths::new(system).ok_or(MachineError::NoLinks)?;
    let mut between: HashMap<(u32, u32), Option<Linear>> = HashMap::new();
    pairs(system, slots, |a, b| {
        if a == b {
            return Some(Linear { latency: 0.0, per_byte: 0.0 });
        }
        let [from, to] = [a, b].map(|slot| system.slots[slot as usize].host);
        if from == to {
            return Some(Linear { latency: 0.0, per_byte: 1.0 / INSIDE_BANDWIDTH });
        }
        *between.entry((from, to)).or_insert_with(|| {
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
        })
    })
}

fn pairs(
    system: &SystemGraph,
    slots: usize,
    mut linear: impl FnMut(u32, u32) -> Option<Linear>,
) -> Result<(Distances, Vec<Linear>), MachineError> {
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
