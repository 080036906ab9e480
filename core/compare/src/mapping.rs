//! Compares two mappings: the ranks that moved, and the effect on the cost F, in total and by level of the
//! machine.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use hopmap_artifact::{ArtifactError, Folder};
use hopmap_model::{Artifact, CostModel, Costs, Mapping, Paths, SystemGraph, TaskGraph, Weight};
use serde::Serialize;

use crate::common::{Compared, MOST_SHOWN, more, percent};

/// A rank that moved.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Move {
    /// The rank.
    pub rank: u32,
    /// Name of the host before.
    pub from: String,
    /// Name of the host after.
    pub to: String,
    /// The slot before and after.
    pub slots: [u32; 2],
    /// The level on which the two slots meet; `None` if the machine is unknown or has changed.
    pub level: Option<String>,
}

/// The differences between two mappings.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MappingChanges {
    /// Number of ranks before and after.
    pub ranks: [u64; 2],
    /// The ranks that moved.
    pub moved: Vec<Move>,
    /// Numbers of moves by the level on which the old and new slot meet, the lowest first.
    pub moved_by_level: Vec<(String, u64)>,
    /// F by level of the machine, before and after; the sum is F.
    pub cost_by_level: Vec<LevelShare>,
    /// F before and after, as the sum over the levels.
    pub cost: Option<[f64; 2]>,
    /// Why the costs cannot be compared.
    pub cost_unknown: Option<String>,
}

/// A mapping and its inputs, if they still exist.
struct Placed {
    mapping: Mapping,
    system: Option<SystemGraph>,
    graph: Option<TaskGraph>,
}

impl Placed {
    fn read(side: &Compared<'_>) -> Result<Self, ArtifactError> {
        let input = |kind| (side.input)(kind);
        Ok(Self {
            mapping: Folder::read(side.folder.path())?,
            system: input(SystemGraph::KIND).map(|path| Folder::read(&path)).transpose()?,
            graph: input(TaskGraph::KIND).map(|path| Folder::read(&path)).transpose()?,
        })
    }

    /// F by level, or why it is unknown.
    fn costs(&self, which: &str) -> Result<BTreeMap<Level, LevelCost>, String> {
        let (Some(system), Some(graph)) = (&self.system, &self.graph) else {
            let missing = match (&self.system, &self.graph) {
                (None, None) => "the machine and the program",
                (None, _) => "the machine",
                _ => "the program",
            };
            return Err(format!("{missing} of {which} mapping cannot be found in its store"));
        };
        let slots = self.mapping.slots();
        let fits =
            slots.len() == graph.ranks() && slots.iter().all(|&slot| (slot as usize) < system.slots.len());
        if !fits {
            return Err(format!("{which} mapping does not fit its program and its machine"));
        }
        let costs = Meeting::new(system).costs(graph, &slots, self.mapping.weight);
        costs.ok_or_else(|| format!("{which} mapping has messages without a route"))
    }
}

/// The ranks that moved and the change of cost; `None` if no rank moved and the cost is equal.
pub(super) fn compare(
    before: &Compared<'_>,
    after: &Compared<'_>,
) -> Result<Option<MappingChanges>, ArtifactError> {
    let found = changes(&Placed::read(before)?, &Placed::read(after)?);
    let is_same = |share: &LevelShare| share.before == share.after;
    let nothing =
        found.moved.is_empty() && found.ranks[0] == found.ranks[1] && found.cost_by_level.iter().all(is_same);
    Ok((!nothing).then_some(found))
}

fn changes(before: &Placed, after: &Placed) -> MappingChanges {
    let (old, new) = (&before.mapping, &after.mapping);
    let is_same_machine = old.hosts == new.hosts;
    let slots = new.slot_count() as usize;
    let system = after.system.as_ref().filter(|system| is_same_machine && system.slots.len() == slots);
    let meeting = system.map(Meeting::new);
    let mut by_level: BTreeMap<Level, u64> = BTreeMap::new();
    let mut moved = Vec::new();
    for (rank, (from, to)) in (0..).zip(old.ranks.iter().zip(&new.ranks)) {
        let hosts = [old.host_of(rank as usize), new.host_of(rank as usize)];
        if from.slot == to.slot && hosts[0] == hosts[1] {
            continue;
        }
        let level = meeting.as_ref().map(|meeting| meeting.level(from.slot, to.slot));
        let coarse = if hosts[0] == hosts[1] {
            (0, "within a host".to_owned())
        } else {
            (1, "to another host".to_owned())
        };
        *by_level.entry(level.clone().unwrap_or(coarse)).or_default() += 1;
        let level = level.map(|(_, name)| name);
        moved.push(Move {
            rank,
            from: hosts[0].into(),
            to: hosts[1].into(),
            slots: [from.slot, to.slot],
            level,
        });
    }
    let costs = before.costs("the first").and_then(|old| Ok((old, after.costs("the second")?)));
    let (cost_by_level, cost, cost_unknown) = match costs {
        Ok((old, new)) => {
            let total =
                |parts: &BTreeMap<Level, LevelCost>| parts.values().map(|part| part.cost).sum::<f64>();
            (shares(&old, &new), Some([total(&old), total(&new)]), None)
        }
        Err(reason) => (Vec::new(), None, Some(reason)),
    };
    MappingChanges {
        ranks: [old.ranks.len() as u64, new.ranks.len() as u64],
        moved,
        moved_by_level: by_level.into_iter().map(|((_, name), count)| (name, count)).collect(),
        cost_by_level,
        cost,
        cost_unknown,
    }
}

fn shares(before: &BTreeMap<Level, LevelCost>, after: &BTreeMap<Level, LevelCost>) -> Vec<LevelShare> {
    let levels: BTreeSet<&Level> = before.keys().chain(after.keys()).collect();
    let share = |level: &Level| LevelShare {
        level: level.1.clone(),
        before: before.get(level).copied().unwrap_or_default(),
        after: after.get(level).copied().unwrap_or_default(),
    };
    levels.into_iter().map(share).collect()
}

impl MappingChanges {
    pub(super) fn words(&self) -> Vec<String> {
        let mut lines = Vec::new();
        let [before, after] = self.ranks;
        if before != after {
            lines.push(format!("ranks: {before} → {after}"));
        }
        if self.moved.is_empty() {
            lines.push("no rank moved".to_owned());
        } else {
            let of_level = |(level, count): &(String, u64)| format!("{count} {level}");
            let levels: Vec<String> = self.moved_by_level.iter().map(of_level).collect();
            let (moved, all) = (self.moved.len(), before.min(after));
            lines.push(format!("{moved} of {all} ranks moved: {}", levels.join(", ")));
            let line = |Move { rank, from, to, slots: [old, new], .. }: &Move| {
                format!("  rank {rank}: {from} → {to} (slot {old} → {new})")
            };
            lines.extend(self.moved.iter().take(MOST_SHOWN).map(line));
            lines.extend(more(self.moved.len() as u64, MOST_SHOWN));
        }
        if let Some([before, after]) = self.cost {
            let relative = (after - before) / before;
            let relative =
                if relative.is_finite() { format!("  ({})", percent(relative)) } else { String::new() };
            lines.push(format!("F by level of the machine: {before} → {after}{relative}"));
            let line = |LevelShare { level, before, after }: &LevelShare| {
                let difference = after.cost - before.cost;
                let (old, new) = (before.pairs, after.pairs);
                format!(
                    "  {level:<24} {} → {}  ({difference:+}), pairs {old} → {new}",
                    before.cost, after.cost
                )
            };
            lines.extend(self.cost_by_level.iter().map(line));
        }
        lines.extend(self.cost_unknown.iter().map(|reason| format!("the costs are not compared: {reason}")));
        lines
    }
}

/// The cost of the pairs of ranks that meet on one level.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct LevelCost {
    /// Number of ordered pairs with messages.
    pub pairs: u64,
    /// Sum of their weights.
    pub weight: f64,
    /// Sum of weight × cost: their share of F.
    pub cost: f64,
}

/// The share of a level in F before and after.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LevelShare {
    /// The level.
    pub level: String,
    /// Its cost before.
    pub before: LevelCost,
    /// Its cost after.
    pub after: LevelCost,
}

/// Number and name of a level; levels are sorted by number.
pub(super) type Level = (u32, String);

/// A machine and the levels on which its slots meet: the levels of its costs, otherwise numbers of hops
/// between hosts.
pub(super) struct Meeting<'a> {
    system: &'a SystemGraph,
    paths: Option<Paths>,
    /// For each level of the costs: whether all slots that meet on it are on one host.
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

    /// The level on which two slots meet.
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

    /// F of a mapping by level. `None` if a message has no route.
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

#[cfg(test)]
mod tests {
    use super::*;
    use hopmap_model::{Edge, Levels, Node, NodeKind, Process, Routing, Slot};
    use proptest::prelude::*;

    /// Two switches with two hosts each, two cores per host; costs 1, 10, 100.
    fn machine() -> SystemGraph {
        let groups = |size: u32| (0..8).map(|slot| slot / size).collect();
        SystemGraph {
            nodes: ["h0", "h1", "h2", "h3"].map(|name| Node::new(name, NodeKind::Host)).into(),
            routing: Routing::default(),
            links: Vec::new(),
            slots: (0..8).map(|slot| Slot { host: slot / 2, core: slot % 2 }).collect(),
            cost: CostModel::Levels(Levels {
                costs: vec![1.0, 10.0, 100.0],
                groups: [2, 4, 8].map(groups).to_vec(),
            }),
            calibration: Vec::new(),
        }
    }

    fn placed(slots: &[u32], edges: &BTreeMap<(u32, u32), u64>) -> Placed {
        let edge = |(&(source, destination), &bytes)| Edge { source, destination, messages: 1, bytes };
        let graph = TaskGraph {
            processes: vec![Process::default(); slots.len()],
            edges: edges.iter().map(edge).collect(),
            ..TaskGraph::default()
        };
        let mapping = Mapping::new(slots, &machine(), Weight::Bytes).unwrap();
        Placed { mapping, system: Some(machine()), graph: Some(graph) }
    }

    #[test]
    fn moves_and_costs_by_level() {
        let edges = BTreeMap::from([((0, 1), 5), ((0, 2), 7)]);
        let found = changes(&placed(&[0, 1, 2], &edges), &placed(&[0, 4, 3], &edges));
        assert_eq!(
            found.words(),
            [
                "2 of 3 ranks moved: 1 level 0 (within a host), 1 level 2",
                "  rank 1: h0 → h2 (slot 1 → 4)",
                "  rank 2: h1 → h1 (slot 2 → 3)",
                "F by level of the machine: 75 → 570  (+660.0 %)",
                "  level 0 (within a host)  5 → 0  (-5), pairs 1 → 0",
                "  level 1                  70 → 70  (+0), pairs 1 → 1",
                "  level 2                  0 → 500  (+500), pairs 0 → 1",
            ]
        );
    }

    #[test]
    fn costs_that_cannot_be_compared_have_a_reason() {
        let mut before = placed(&[0, 1], &BTreeMap::new());
        before.system = None;
        let found = changes(&before, &placed(&[1, 0], &BTreeMap::new()));
        assert_eq!(found.cost, None);
        assert!(found.words().last().unwrap().contains("the machine of the first mapping cannot be found"));
    }

    proptest! {
        #[test]
        fn the_levels_add_up_to_the_cost(
            before in Just([0u32, 1, 2, 3, 4, 5, 6, 7]).prop_shuffle(),
            after in Just([0u32, 1, 2, 3, 4, 5, 6, 7]).prop_shuffle(),
            edges in proptest::collection::btree_map((0..8u32, 0..8u32), 0..1000u64, 0..30),
        ) {
            let (old, new) = (placed(&before, &edges), placed(&after, &edges));
            let found = changes(&old, &new);
            let total = |slots: &[u32]| {
                let system = machine();
                let costs = system.costs();
                edges.iter().map(|(&(a, b), &bytes)| bytes as f64 * costs.between(slots[a as usize], slots[b as usize])).sum::<f64>()
            };
            // All are integers, so sums are exact.
            prop_assert_eq!(found.cost, Some([total(&before), total(&after)]));
            let parts: f64 = found.cost_by_level.iter().map(|share| share.after.cost - share.before.cost).sum();
            prop_assert!((parts - (total(&after) - total(&before))).abs() < 0.5);
            prop_assert_eq!(found.moved.is_empty(), before == after);
        }
    }
}
