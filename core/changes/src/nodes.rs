//! Hosts and switches that are new, gone, down or back, and the slots of hosts.

use std::collections::{BTreeMap, BTreeSet};

use hopmap_model::{CostModel, Levels, NodeState, SystemGraph};

use crate::change::Change;
use crate::pair::{Both, Key, Side, matched};
use crate::snapshot::{Host, below};

pub(crate) fn changes(both: &Both<'_>) -> Vec<Change> {
    let names: BTreeSet<&str> = both.before.hosts.keys().chain(both.after.hosts.keys()).copied().collect();
    let mut found = Vec::new();
    for name in names {
        let host = name.to_owned();
        match (both.before.hosts.get(name), both.after.hosts.get(name)) {
            (None, Some(new)) => found.push(Change::HostNew { host, slots: new.slots.len() }),
            (Some(old), None) => found.push(Change::HostGone { host, slots: old.slots.len() }),
            (Some(old), Some(new)) => {
                match (old.up, new.up) {
                    (true, false) => found.push(Change::HostDown { host }),
                    (false, true) => found.push(Change::HostBack { host }),
                    _ => {}
                }
                if both.comparable.contains(name) {
                    found.extend(slots(both, name, old, new));
                }
            }
            (None, None) => {}
        }
    }
    found.extend(switches(both));
    found
}

fn slots(both: &Both<'_>, name: &str, old: &Host, new: &Host) -> Option<Change> {
    let host = name.to_owned();
    let (before, after) = (both.before.snapshot.system, both.after.snapshot.system);
    let (old_cores, new_cores) = (cores(before, old), cores(after, new));
    if old_cores != new_cores {
        return Some(Change::Slots { host, before: old_cores, after: new_cores });
    }
    let same = match (&before.cost, &after.cost) {
        (CostModel::Levels(a), CostModel::Levels(b)) if a.groups.len() == b.groups.len() => (0..a
            .groups
            .len())
            .all(|level| grouping(before, &a.groups[level], old) == grouping(after, &b.groups[level], new)),
        _ => true,
    };
    (!same).then_some(Change::Grouping { host })
}

fn cores(system: &SystemGraph, host: &Host) -> Vec<u32> {
    let mut cores: Vec<u32> = host.slots.clone().map(|slot| system.slots[slot as usize].core).collect();
    cores.sort_unstable();
    cores
}

/// The sets of cores of a host that share a group of a level.
fn grouping(system: &SystemGraph, groups: &[u32], host: &Host) -> BTreeSet<Vec<u32>> {
    let mut together: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for slot in host.slots.clone() {
        together.entry(groups[slot as usize]).or_default().push(system.slots[slot as usize].core);
    }
    let sorted = |mut cores: Vec<u32>| {
        cores.sort_unstable();
        cores
    };
    together.into_values().map(sorted).collect()
}

fn switches(both: &Both<'_>) -> Vec<Change> {
    let (before, after) = (both.before.by_key(), both.after.by_key());
    let mut found = Vec::new();
    for (key, &node) in before.iter().filter(|(key, _)| is_switch(key)) {
        let switch = both.before.labels[node as usize].clone();
        match after.get(key) {
            None if counts(&both.before, node, &both.comparable) => found.push(Change::SwitchGone { switch }),
            None => {}
            Some(&other) => {
                let state = |side: &Side<'_>, node: u32| side.snapshot.system.nodes[node as usize].state;
                match (state(&both.before, node), state(&both.after, other)) {
                    (NodeState::Up, NodeState::Down) => found.push(Change::SwitchDown { switch }),
                    (NodeState::Down, NodeState::Up) => found.push(Change::SwitchBack { switch }),
                    _ => {}
                }
            }
        }
    }
    for (key, &node) in after.iter().filter(|(key, _)| is_switch(key) && !before.contains_key(*key)) {
        if !matches!(key, Key::MadeNew(_)) || counts(&both.after, node, &both.comparable) {
            found.push(Change::SwitchNew { switch: both.after.labels[node as usize].clone() });
        }
    }
    found
}

fn is_switch(key: &Key) -> bool {
    !matches!(key, Key::Host(_))
}

/// Whether a switch is reported on its own: it has a real name, or hosts below it that both machines have.
fn counts(side: &Side<'_>, node: u32, comparable: &BTreeSet<&str>) -> bool {
    match side.keys[node as usize] {
        Key::Made(_) | Key::MadeNew(_) => {
            side.made_hosts.get(&node).is_some_and(|hosts| hosts.iter().any(|host| comparable.contains(host)))
        }
        _ => true,
    }
}

/// Nodes whose links go to other switches than before.
#[derive(Debug, Default)]
pub(crate) struct Moves {
    pub(crate) changes: Vec<Change>,
    /// A node that moved, and a switch that it left or joined.
    ends: BTreeSet<(Key, Key)>,
    /// Hosts that moved, or are below a switch that moved.
    hosts: BTreeSet<String>,
}

impl Moves {
    /// Whether a move explains a link that is new or gone.
    pub(crate) fn explains(&self, a: &Key, b: &Key) -> bool {
        self.ends.contains(&(a.clone(), b.clone())) || self.ends.contains(&(b.clone(), a.clone()))
    }
}

/// Nodes that left a switch and joined another one. The parents of a switch are those farther from hosts than
/// itself.
pub(crate) fn of_links(both: &Both<'_>) -> Moves {
    let after = both.after.by_key();
    let mut moves = Moves::default();
    for (key, &node) in &both.before.by_key() {
        let Some(&other) = after.get(key).filter(|_| both.is_comparable(key, &after)) else { continue };
        let (old, new) = (both.before.above(node), both.after.above(other));
        let left: Vec<_> = old.iter().filter(|(key, _)| !new.contains_key(*key)).collect();
        let came: Vec<_> = new.iter().filter(|(key, _)| !old.contains_key(*key)).collect();
        if left.is_empty() || came.is_empty() {
            continue;
        }
        moves.ends.extend(left.iter().chain(&came).map(|(end, _)| ((*key).clone(), (**end).clone())));
        let sides = [(&both.before, node), (&both.after, other)];
        let hosts = sides
            .iter()
            .flat_map(|(side, node)| below(side.snapshot.system, &side.neighbours, &side.tiers, *node));
        moves.hosts.extend(hosts.map(str::to_owned));
        let labels = |ends: Vec<(&&Key, &String)>| ends.into_iter().map(|(_, label)| label.clone()).collect();
        moves.changes.push(Change::Moved {
            nodes: vec![both.before.labels[node as usize].clone()],
            before: labels(left),
            after: labels(came),
        });
    }
    moves
}

impl Side<'_> {
    /// The parent switches of a node, with their labels.
    fn above(&self, node: u32) -> BTreeMap<&Key, String> {
        let higher = |other: &&u32| self.tiers[**other as usize] > self.tiers[node as usize];
        let neighbours = self.neighbours[node as usize].iter().filter(higher);
        neighbours.map(|&other| (&self.keys[other as usize], self.labels[other as usize].clone())).collect()
    }
}

/// Hosts that meet other hosts than before on a level of the cost model, unless their links show the move
/// already.
pub(crate) fn of_groups(both: &Both<'_>, moves: &Moves) -> Vec<Change> {
    let (before, after) = (both.before.snapshot.system, both.after.snapshot.system);
    let (CostModel::Levels(old), CostModel::Levels(new)) = (&before.cost, &after.cost) else {
        return Vec::new();
    };
    if old.groups.len() != new.groups.len() {
        return Vec::new();
    }
    let mut settled: BTreeSet<&str> = moves.hosts.iter().map(String::as_str).collect();
    let mut changes = Vec::new();
    for level in 0..old.groups.len() {
        let (old, new) = (both.groups(&both.before, old, level), both.groups(&both.after, new, level));
        let mut strayed: BTreeMap<(Option<usize>, usize), BTreeSet<&str>> = BTreeMap::new();
        let stands_for = matched(&old, &new);
        let place: BTreeMap<&str, usize> = old
            .iter()
            .enumerate()
            .flat_map(|(index, hosts)| hosts.iter().map(move |&host| (host, index)))
            .collect();
        for (index, hosts) in new.iter().enumerate() {
            for host in hosts.iter().filter(|host| !settled.contains(**host)) {
                let was = place.get(host).copied();
                if was != stands_for[index] {
                    strayed.entry((was, index)).or_default().insert(host);
                }
            }
        }
        for ((was, index), hosts) in &strayed {
            let others =
                |group: &BTreeSet<&str>| group.difference(hosts).map(|&host| host.to_owned()).collect();
            changes.push(Change::Moved {
                nodes: hosts.iter().map(|&host| host.to_owned()).collect(),
                before: was.map_or_else(Vec::new, |was| others(&old[was])),
                after: others(&new[*index]),
            });
        }
        settled.extend(strayed.into_values().flatten());
    }
    changes
}

impl<'a> Both<'a> {
    /// The groups of a level as sets of comparable hosts, each host in the group of its first slot, in
    /// canonical order.
    fn groups(&self, side: &Side<'a>, levels: &Levels, level: usize) -> Vec<BTreeSet<&'a str>> {
        let mut groups: BTreeMap<u32, BTreeSet<&str>> = BTreeMap::new();
        for (name, host) in &side.hosts {
            if self.comparable.contains(name) && !host.slots.is_empty() {
                groups.entry(levels.groups[level][host.slots.start as usize]).or_default().insert(name);
            }
        }
        let mut groups: Vec<_> = groups.into_values().collect();
        groups.sort();
        groups
    }

    /// Whether both machines were measured, so that their values have noise.
    pub(crate) fn is_measured(&self) -> bool {
        self.before.snapshot.measurements.is_some() && self.after.snapshot.measurements.is_some()
    }
}
