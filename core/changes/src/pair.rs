//! Matches the nodes of two snapshots.

use std::collections::{BTreeMap, BTreeSet};

use hopmap_model::NodeKind;

use crate::change::host_list;
use crate::snapshot::{Host, Snapshot, below, hosts, made_up, neighbours, tiers};

/// Identity of a node in both snapshots.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Key {
    /// A host, by name.
    Host(String),
    /// A switch, by name.
    Switch(String),
    /// A switch with a generated name that exists before, or before and after, by index.
    Made(usize),
    /// A switch with a generated name that exists only after.
    MadeNew(usize),
}

/// One of two snapshots.
#[derive(Debug)]
pub(crate) struct Side<'a> {
    pub(crate) snapshot: Snapshot<'a>,
    pub(crate) hosts: BTreeMap<&'a str, Host>,
    /// Keys of the nodes.
    pub(crate) keys: Vec<Key>,
    /// Labels of the nodes in reports.
    pub(crate) labels: Vec<String>,
    pub(crate) neighbours: Vec<BTreeSet<u32>>,
    /// Number of links to the nearest host.
    pub(crate) tiers: Vec<u32>,
    /// Comparable hosts below each switch with a generated name.
    pub(crate) made_hosts: BTreeMap<u32, BTreeSet<&'a str>>,
}

/// Two snapshots with matched nodes.
#[derive(Debug)]
pub(crate) struct Both<'a> {
    pub(crate) before: Side<'a>,
    pub(crate) after: Side<'a>,
    /// Hosts of which both sides know more than the state.
    pub(crate) comparable: BTreeSet<&'a str>,
}

impl<'a> Both<'a> {
    pub(crate) fn new(before: &Snapshot<'a>, after: &Snapshot<'a>) -> Self {
        let (mut before, mut after) = (Side::new(before), Side::new(after));
        let known = |(name, host): (&&'a str, &Host)| {
            let other = after.hosts.get(name)?;
            (!host.is_bare() && !other.is_bare()).then_some(*name)
        };
        let comparable: BTreeSet<&str> = before.hosts.iter().filter_map(known).collect();
        let (old, new) = (before.made_up(&comparable), after.made_up(&comparable));
        let sets =
            |made: &[(u32, BTreeSet<&'a str>)]| made.iter().map(|(_, s)| s.clone()).collect::<Vec<_>>();
        for (index, (node, _)) in old.iter().enumerate() {
            before.keys[*node as usize] = Key::Made(index);
        }
        for (index, stands_for) in matched(&sets(&old), &sets(&new)).into_iter().enumerate() {
            let stands_for = stands_for.or_else(|| without_hosts(&before, &old, &after, &new[index]));
            after.keys[new[index].0 as usize] = stands_for.map_or(Key::MadeNew(index), Key::Made);
        }
        Self { before, after, comparable }
    }

    /// Whether a node can be compared: a switch that both machines have, or a host with known slots.
    pub(crate) fn is_comparable(&self, key: &Key, other: &BTreeMap<&Key, u32>) -> bool {
        match key {
            Key::Host(name) => self.comparable.contains(name.as_str()),
            _ => other.contains_key(key),
        }
    }
}

/// The switch before with the same generated name, if neither has comparable hosts.
fn without_hosts(
    before: &Side<'_>,
    old: &[(u32, BTreeSet<&str>)],
    after: &Side<'_>,
    (node, hosts): &(u32, BTreeSet<&str>),
) -> Option<usize> {
    let name = |side: &Side<'_>, node: u32| side.snapshot.system.nodes[node as usize].name.clone();
    let is_same = |(other, others): &(u32, BTreeSet<&str>)| {
        others.is_empty() && name(before, *other) == name(after, *node)
    };
    old.iter().position(is_same).filter(|_| hosts.is_empty())
}

impl<'a> Side<'a> {
    fn new(snapshot: &Snapshot<'a>) -> Self {
        let system = snapshot.system;
        let key = |node: &hopmap_model::Node| match node.kind {
            NodeKind::Host => Key::Host(node.name.clone()),
            NodeKind::Switch => Key::Switch(node.name.clone()),
        };
        let neighbours = neighbours(system);
        Self {
            snapshot: *snapshot,
            hosts: hosts(snapshot),
            keys: system.nodes.iter().map(key).collect(),
            labels: system.nodes.iter().map(|node| node.name.clone()).collect(),
            tiers: tiers(system, &neighbours),
            neighbours,
            made_hosts: BTreeMap::new(),
        }
    }

    /// Switches with generated names and the comparable hosts below them, in canonical order. Their labels
    /// list these hosts.
    fn made_up(&mut self, comparable: &BTreeSet<&'a str>) -> Vec<(u32, BTreeSet<&'a str>)> {
        let system = self.snapshot.system;
        let height: Vec<u32> = system
            .nodes
            .iter()
            .map(|node| match node.kind {
                NodeKind::Host => 0,
                NodeKind::Switch => made_up(&node.name).map_or(u32::MAX, |level| level.saturating_add(1)),
            })
            .collect();
        let mut found = Vec::new();
        for (id, node) in (0..).zip(&system.nodes) {
            if node.kind == NodeKind::Host || made_up(&node.name).is_none() {
                continue;
            }
            let hosts = below(system, &self.neighbours, &height, id);
            self.labels[id as usize] = match hosts.is_empty() {
                true => "a switch without hosts".to_owned(),
                false => format!("the switch of {}", host_list(&hosts)),
            };
            let hosts: BTreeSet<&str> = hosts.intersection(comparable).copied().collect();
            found.push((height[id as usize], hosts, id));
        }
        found.sort();
        self.made_hosts = found.iter().map(|(_, hosts, id)| (*id, hosts.clone())).collect();
        found.into_iter().map(|(_, hosts, id)| (id, hosts)).collect()
    }

    /// Nodes by key.
    pub(crate) fn by_key(&self) -> BTreeMap<&Key, u32> {
        self.keys.iter().zip(0..).collect()
    }
}

/// For each set after, the index of the matching set before: greedy one-to-one matching by the number of
/// common hosts. Ties are broken in order, so the order of the sets has to be canonical.
pub(crate) fn matched(before: &[BTreeSet<&str>], after: &[BTreeSet<&str>]) -> Vec<Option<usize>> {
    let mut holders: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (index, hosts) in before.iter().enumerate() {
        hosts.iter().for_each(|host| holders.entry(host).or_default().push(index));
    }
    let mut common: BTreeMap<(usize, usize), usize> = BTreeMap::new();
    for (index, hosts) in after.iter().enumerate() {
        for &holder in hosts.iter().filter_map(|host| holders.get(host)).flatten() {
            *common.entry((holder, index)).or_default() += 1;
        }
    }
    let mut candidates: Vec<((usize, usize), usize)> = common.into_iter().collect();
    let foreign = |&((b, a), common): &((usize, usize), usize)| before[b].len() + after[a].len() - 2 * common;
    candidates.sort_by_key(|candidate| (std::cmp::Reverse(candidate.1), foreign(candidate), candidate.0));
    let (mut taken, mut found) = (vec![false; before.len()], vec![None; after.len()]);
    for ((b, a), _) in candidates {
        if !taken[b] && found[a].is_none() {
            taken[b] = true;
            found[a] = Some(b);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_with_most_in_common_are_matched() {
        let set = |hosts: &'static str| hosts.split(' ').collect::<BTreeSet<_>>();
        let before = [set("a b c d"), set("e f"), set("x")];
        let after = [set("d e f"), set("a b c"), set("y")];
        assert_eq!(matched(&before, &after), [Some(1), Some(0), None]);
        let chain = [set("a b"), set("a b")];
        assert_eq!(matched(&chain, &chain), [Some(0), Some(1)]);
    }
}
