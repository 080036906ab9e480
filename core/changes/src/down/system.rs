//! Nodes, links and slots of hosts that are down.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use hopmap_model::{Forward, Link, Node, NodeKind, Routing, Slot, SystemGraph};

use super::costs;
use crate::Snapshot;
use crate::pair::Both;
use crate::view::made_up;
use crate::words::name;

/// Where something in a restored machine comes from: its index before or after.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum From {
    Before(u32),
    After(u32),
}

/// The machine after, with all that was known of some hosts.
pub(super) fn restore(before: &Snapshot<'_>, after: &Snapshot<'_>, hosts: &BTreeSet<&str>) -> SystemGraph {
    let (old, new) = (before.system, after.system);
    let both = Both::new(before, after);
    let stands_for = counterparts(&both);
    let added = added_nodes(&both, &stands_for, hosts);
    let order = nodes(old, new, &stands_for, &added);
    let id: BTreeMap<From, u32> = order.iter().copied().zip(0..).collect();
    let of_old = |node: u32| match stands_for[node as usize] {
        Some(node) => id.get(&From::After(node)).copied(),
        None => id.get(&From::Before(node)).copied(),
    };
    let moved = |(index, link): (u32, &Link)| {
        let (source, destination) = (id[&From::After(link.source)], id[&From::After(link.destination)]);
        (Some(index), Link { source, destination, ..*link })
    };
    let mut links: Vec<(Option<u32>, Link)> = (0..).zip(&new.links).map(moved).collect();
    let is_lost = |node: u32| {
        let is_host = hosts.contains(name(old, node)) && old.nodes[node as usize].kind == NodeKind::Host;
        let has_links =
            stands_for[node as usize].is_some_and(|node| !both.after.neighbours[node as usize].is_empty());
        (is_host && !has_links) || added.contains(&node)
    };
    for link in old.links.iter().filter(|link| is_lost(link.source) || is_lost(link.destination)) {
        if let (Some(source), Some(destination)) = (of_old(link.source), of_old(link.destination)) {
            links.push((None, Link { source, destination, ..*link }));
        }
    }
    let slots = slots(old, new, hosts);
    let slot = |from: &From| match *from {
        From::Before(slot) => {
            let Slot { host, core } = old.slots[slot as usize];
            Slot { host: of_old(host).unwrap_or_default(), core }
        }
        From::After(slot) => {
            let Slot { host, core } = new.slots[slot as usize];
            Slot { host: id[&From::After(host)], core }
        }
    };
    let links = in_order(old, &of_old, links);
    let mut place = vec![0; new.links.len()];
    for (index, (was, _)) in (0..).zip(&links) {
        was.iter().for_each(|&was| place[was as usize] = index);
    }
    SystemGraph {
        nodes: named(old, new, &order),
        routing: routing(new, |node| id[&From::After(node)], &place),
        links: links.into_iter().map(|(_, link)| link).collect(),
        slots: slots.iter().map(slot).collect(),
        cost: costs::restore(old, new, &slots),
    }
}

/// For every node before, the node after that it is.
fn counterparts(both: &Both<'_>) -> Vec<Option<u32>> {
    let after = both.after.by_key();
    both.before.keys.iter().map(|key| after.get(key).copied()).collect()
}

/// Nodes before that are missing: some hosts, and switches that are reached from these over missing ones.
fn added_nodes(both: &Both<'_>, stands_for: &[Option<u32>], hosts: &BTreeSet<&str>) -> BTreeSet<u32> {
    let system = both.before.snapshot.system;
    let is_named = |node: &u32| {
        hosts.contains(name(system, *node)) && system.nodes[*node as usize].kind == NodeKind::Host
    };
    let mut open: Vec<u32> = (0..system.nodes.len() as u32).filter(is_named).collect();
    let mut seen: BTreeSet<u32> = open.iter().copied().collect();
    while let Some(node) = open.pop() {
        for &other in &both.before.neighbours[node as usize] {
            let is_switch = system.nodes[other as usize].kind == NodeKind::Switch;
            if is_switch && stands_for[other as usize].is_none() && seen.insert(other) {
                open.push(other);
            }
        }
    }
    seen.retain(|&node| stands_for[node as usize].is_none());
    seen
}

/// All nodes in order: those after, and each that is added behind the one that stood before it.
fn nodes(
    old: &SystemGraph,
    new: &SystemGraph,
    stands_for: &[Option<u32>],
    added: &BTreeSet<u32>,
) -> Vec<From> {
    let mut order: Vec<From> = (0..new.nodes.len() as u32).map(From::After).collect();
    let mut place = 0;
    for node in 0..old.nodes.len() as u32 {
        match stands_for[node as usize] {
            Some(other) => {
                place = order.iter().position(|from| *from == From::After(other)).map_or(place, |at| at + 1);
            }
            None if added.contains(&node) => {
                order.insert(place, From::Before(node));
                place += 1;
            }
            None => {}
        }
    }
    order
}

/// The nodes themselves. A switch whose made-up name is taken gets another one of its level.
fn named(old: &SystemGraph, new: &SystemGraph, order: &[From]) -> Vec<Node> {
    let mut taken: BTreeSet<String> = new.nodes.iter().map(|node| node.name.clone()).collect();
    let mut node = |from: &From| match *from {
        From::After(node) => new.nodes[node as usize].clone(),
        From::Before(node) => {
            let mut node = old.nodes[node as usize].clone();
            if let (true, Some(level)) = (taken.contains(&node.name), made_up(&node.name)) {
                let stem = node.name.split('-').next().unwrap_or_default().to_owned();
                let free = (0_u32..).map(|index| format!("{stem}-{level}-{index}"));
                node.name = free.into_iter().find(|name| !taken.contains(name)).unwrap_or_default();
            }
            taken.insert(node.name.clone());
            node
        }
    };
    order.iter().map(&mut node).collect()
}

/// The forwarding tables after. What leads to restored hosts is not in them: nobody is there.
fn routing(new: &SystemGraph, node: impl Fn(u32) -> u32, link: &[u32]) -> Routing {
    let entry = |entry: &Forward| Forward {
        node: node(entry.node),
        last: link[entry.last as usize],
        link: link[entry.link as usize],
    };
    let mut forwarding: Vec<Forward> = new.routing.forwarding.iter().map(entry).collect();
    forwarding.sort_unstable();
    Routing { forwarding, ties: new.routing.ties }
}

/// Links in the order that they had before, and what is new behind them, each with its index after.
fn in_order(
    old: &SystemGraph,
    of_old: &dyn Fn(u32) -> Option<u32>,
    links: Vec<(Option<u32>, Link)>,
) -> Vec<(Option<u32>, Link)> {
    let mut places: BTreeMap<(u32, u32), VecDeque<usize>> = BTreeMap::new();
    for (index, link) in old.links.iter().enumerate() {
        if let (Some(source), Some(destination)) = (of_old(link.source), of_old(link.destination)) {
            places.entry((source, destination)).or_default().push_back(index);
        }
    }
    let mut place = |link: &Link| {
        let places = places.get_mut(&(link.source, link.destination));
        places.and_then(VecDeque::pop_front).unwrap_or(usize::MAX)
    };
    let mut links: Vec<(usize, (Option<u32>, Link))> =
        links.into_iter().map(|link| (place(&link.1), link)).collect();
    links.sort_by_key(|(place, _)| *place);
    links.into_iter().map(|(_, link)| link).collect()
}

/// All slots in order: those after host by host, and those of each restored host behind the host that stood before it.
fn slots(old: &SystemGraph, new: &SystemGraph, hosts: &BTreeSet<&str>) -> Vec<From> {
    let range = |first: u32, count: u32| first..first + count;
    let mut order: Vec<(&str, Vec<From>)> = new
        .hosts()
        .map(|(node, first, count)| (name(new, node), range(first, count).map(From::After).collect()))
        .collect();
    let mut place = 0;
    for (node, first, count) in old.hosts() {
        let host = name(old, node);
        if let Some(at) = order.iter().position(|(name, _)| *name == host) {
            place = at + 1;
        } else if hosts.contains(host) {
            order.insert(place, (host, range(first, count).map(From::Before).collect()));
            place += 1;
        }
    }
    order.into_iter().flat_map(|(_, slots)| slots).collect()
}
