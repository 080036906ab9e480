//! Hosts and switches that hang elsewhere.

use std::collections::{BTreeMap, BTreeSet};

use hopmap_model::{CostModel, Levels};

use crate::Change;
use crate::matching::matched;
use crate::pair::{Both, Key, Side};
use crate::view::below;

/// Nodes whose links go to other switches.
#[derive(Debug, Default)]
pub(crate) struct Moves {
    pub(crate) changes: Vec<Change>,
    /// A node that moved, and a switch that it left or came to.
    ends: BTreeSet<(Key, Key)>,
    /// Hosts that moved, or that are below a switch that did.
    hosts: BTreeSet<String>,
}

impl Moves {
    /// Whether a link is new or gone because a node moved.
    pub(crate) fn explains(&self, a: &Key, b: &Key) -> bool {
        self.ends.contains(&(a.clone(), b.clone())) || self.ends.contains(&(b.clone(), a.clone()))
    }
}

/// Nodes that left a switch and came to another one. A switch hangs on those that are farther from hosts than itself.
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
    /// The switches that a node hangs on, with what they are called.
    fn above(&self, node: u32) -> BTreeMap<&Key, String> {
        let higher = |other: &&u32| self.tiers[**other as usize] > self.tiers[node as usize];
        let neighbours = self.neighbours[node as usize].iter().filter(higher);
        neighbours.map(|&other| (&self.keys[other as usize], self.labels[other as usize].clone())).collect()
    }
}

/// Hosts that meet other hosts than before on a level of the cost model, unless their links say so already.
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
    /// The groups of a level as sets of comparable hosts, each host where its first slot is, in canonical order.
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

    /// Whether both machines were measured, so that their numbers vary from time to time.
    pub(crate) fn is_measured(&self) -> bool {
        self.before.snapshot.measurements.is_some() && self.after.snapshot.measurements.is_some()
    }
}
