//! What a placement costs by level of the machine: F as a sum of parts.

use std::collections::{BTreeMap, HashMap};

use hopmap_model::{CostModel, Costs, Paths, SystemGraph, TaskGraph, Weight};
use serde::Serialize;

/// What the pairs of ranks that meet on one level cost.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct LevelCost {
    /// Number of ordered pairs of which one sends to the other.
    pub pairs: u64,
    /// Sum of their weights.
    pub weight: f64,
    /// Sum of weight × cost: their part of F.
    pub cost: f64,
}

/// The part that a level has in F before and after.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LevelShare {
    /// The level.
    pub level: String,
    /// What it cost before.
    pub before: LevelCost,
    /// What it costs after.
    pub after: LevelCost,
}

/// Number and name of a level; levels are in the order of their numbers.
pub(super) type Level = (u32, String);

/// A machine and the levels on which its slots meet: those of its costs, else the number of hops between the hosts.
pub(super) struct Meeting<'a> {
    system: &'a SystemGraph,
    paths: Option<Paths>,
    /// Of costs by levels: whether all slots that meet on a level are on one host.
    within_host: Vec<bool>,
}

impl<'a> Meeting<'a> {
    pub(super) fn new(system: &'a SystemGraph) -> Self {
        let within_host = match &system.cost {
            CostModel::Levels(levels) => {
                levels.groups.iter().map(|groups| is_within_hosts(system, groups)).collect()
            }
            _ => Vec::new(),
        };
        Self { system, paths: Paths::new(system), within_host }
    }

    /// Level on which two slots meet.
    pub(super) fn level(&self, a: u32, b: u32) -> Level {
        if let CostModel::Levels(levels) = &self.system.cost {
            let level = levels.meeting_level(a, b);
            let within = if self.within_host.get(level) == Some(&true) { " (within a host)" } else { "" };
            return (level as u32, format!("level {level}{within}"));
        }
        let [from, to] = [a, b].map(|slot| self.system.slots[slot as usize].host);
        if from == to {
            return (0, "within a host".to_owned());
        }
        match self.paths.as_ref().and_then(|paths| paths.hops(from, to)) {
            Some(hops) => (hops, format!("{hops} hops")),
            None => (u32::MAX, "between hosts".to_owned()),
        }
    }

    /// F of a placement by level. `None` if a message has no way.
    pub(super) fn costs(
        &self,
        graph: &TaskGraph,
        slots: &[u32],
        weight: Weight,
    ) -> Option<BTreeMap<Level, LevelCost>> {
        let costs = Costs::with_paths(self.system, self.paths.as_ref());
        let mut parts: BTreeMap<Level, LevelCost> = BTreeMap::new();
        for edge in &graph.edges {
            let [from, to] = [edge.source, edge.destination].map(|rank| slots[rank as usize]);
            let between = costs.between(from, to);
            if between.is_infinite() {
                return None;
            }
            let part = parts.entry(self.level(from, to)).or_default();
            part.pairs += 1;
            part.weight += weight.of(edge);
            part.cost += weight.of(edge) * between;
        }
        Some(parts)
    }
}

fn is_within_hosts(system: &SystemGraph, groups: &[u32]) -> bool {
    let mut host_of_group: HashMap<u32, u32> = HashMap::new();
    groups
        .iter()
        .zip(&system.slots)
        .all(|(&group, slot)| *host_of_group.entry(group).or_insert(slot.host) == slot.host)
}
