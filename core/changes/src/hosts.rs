//! Hosts and switches that are new, gone, down or back, and the slots of hosts.

use std::collections::{BTreeMap, BTreeSet};

use hopmap_model::{CostModel, NodeState, SystemGraph};

use crate::Change;
use crate::pair::{Both, Key, Side};
use crate::view::Host;

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

/// Which cores of a host are together in the groups of a level.
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

/// Whether a switch says more than the hosts below it: one with a name of its own, or one above hosts that are there on both
/// sides.
fn counts(side: &Side<'_>, node: u32, comparable: &BTreeSet<&str>) -> bool {
    match side.keys[node as usize] {
        Key::Made(_) | Key::MadeNew(_) => {
            side.made_hosts.get(&node).is_some_and(|hosts| hosts.iter().any(|host| comparable.contains(host)))
        }
        _ => true,
    }
}
