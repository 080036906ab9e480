//! The tree of switches as a job scheduler needs it: which hosts are near each other, without individual
//! cables.

use std::collections::{BTreeMap, BTreeSet};

use hopmap_model::{CostModel, Levels, NodeKind, SystemGraph};

use super::ExportError;

/// A switch, or several equivalent ones, above hosts or above other groups.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Group {
    pub(super) name: String,
    /// Whether the name is not that of a switch of the machine.
    pub(super) is_made_up: bool,
    /// Nodes of the hosts directly below; empty if there are children.
    pub(super) hosts: Vec<u32>,
    /// Groups directly below, which precede it in the list.
    pub(super) children: Vec<usize>,
}

type Grouped = (Vec<Group>, Vec<String>);

/// The groups of a machine: by its links, or by its costs if there are none. Every host is in one group. Also
/// returns what the tree does not represent.
pub(super) fn groups(system: &SystemGraph, format: &'static str) -> Result<Grouped, ExportError> {
    let joined = Joined::new(system);
    let is_direct = joined.hosts().any(|host| joined.of(host).iter().any(|&other| !joined.is_switch(other)));
    let mut lost = Vec::new();
    let groups = match (&system.cost, system.links.is_empty() || is_direct) {
        (_, false) => by_links(&joined, &mut lost),
        (CostModel::Levels(levels), _) => by_levels(system, levels),
        (CostModel::Matrix(_), true) => {
            let problem = "it has costs for pairs of hosts, but no switches";
            return Err(ExportError::impossible(format, problem, "find levels with topology/levels first"));
        }
        (CostModel::Routes(_), true) => {
            let problem = "its hosts are linked directly, without switches";
            let help = "find levels of its costs with topology/levels first, or use Slurm's plugin topology/3d_torus";
            return Err(ExportError::impossible(format, problem, help));
        }
    };
    Ok((with_all_hosts(system, groups, &mut lost), lost))
}

/// Adds a group for hosts that are in none.
fn with_all_hosts(system: &SystemGraph, mut groups: Vec<Group>, lost: &mut Vec<String>) -> Vec<Group> {
    let placed: BTreeSet<u32> = groups.iter().flat_map(|group| &group.hosts).copied().collect();
    let hosts =
        (0..).zip(&system.nodes).filter(|(_, node)| node.kind == NodeKind::Host).map(|(host, _)| host);
    let left: Vec<u32> = hosts.filter(|host| !placed.contains(host)).collect();
    if !left.is_empty() {
        lost.push(format!(
            "the position of {} hosts without links: they are below an unconnected switch `unlinked`",
            left.len()
        ));
        groups.insert(
            0,
            Group { name: "unlinked".into(), is_made_up: true, hosts: left, children: Vec::new() },
        );
        for child in groups.iter_mut().flat_map(|group| &mut group.children) {
            *child += 1;
        }
    }
    groups
}

/// Adjacency of nodes, ignoring number, direction and state of links.
struct Joined<'a> {
    system: &'a SystemGraph,
    neighbours: Vec<Vec<u32>>,
}

impl<'a> Joined<'a> {
    fn new(system: &'a SystemGraph) -> Self {
        let mut neighbours = vec![Vec::new(); system.nodes.len()];
        for link in system.links.iter().filter(|link| link.source != link.destination) {
            neighbours[link.source as usize].push(link.destination);
            neighbours[link.destination as usize].push(link.source);
        }
        for others in &mut neighbours {
            others.sort_unstable();
            others.dedup();
        }
        Self { system, neighbours }
    }

    fn of(&self, node: u32) -> &[u32] {
        &self.neighbours[node as usize]
    }

    fn is_switch(&self, node: u32) -> bool {
        self.system.nodes[node as usize].kind == NodeKind::Switch
    }

    fn hosts(&self) -> impl Iterator<Item = u32> + '_ {
        (0..self.neighbours.len() as u32).filter(|&node| !self.is_switch(node))
    }

    fn name(&self, node: u32) -> &str {
        &self.system.nodes[node as usize].name
    }

    /// The nodes of each connected component, in numerical order.
    fn parts(&self) -> Vec<Vec<u32>> {
        let mut seen = vec![false; self.neighbours.len()];
        let mut parts = Vec::new();
        for start in 0..self.neighbours.len() as u32 {
            if seen[start as usize] {
                continue;
            }
            seen[start as usize] = true;
            let mut part = vec![start];
            let mut next = 0;
            while let Some(&node) = part.get(next) {
                next += 1;
                for &other in self.of(node) {
                    if !seen[other as usize] {
                        seen[other as usize] = true;
                        part.push(other);
                    }
                }
            }
            part.sort_unstable();
            parts.push(part);
        }
        parts
    }
}

fn by_links(joined: &Joined<'_>, lost: &mut Vec<String>) -> Vec<Group> {
    let mut groups = Vec::new();
    let mut idle = 0;
    for part in joined.parts() {
        let switches: Vec<u32> = part.iter().copied().filter(|&node| joined.is_switch(node)).collect();
        if switches.len() == part.len() {
            idle += switches.len();
            continue;
        }
        let ends: usize = part.iter().map(|&node| joined.of(node).len()).sum();
        let is_inside = |node: &u32| !joined.is_switch(*node) && joined.of(*node).len() > 1;
        if ends == 2 * (part.len() - 1) && !part.iter().any(is_inside) {
            idle += tree(joined, &part, &mut groups, lost);
        } else {
            fabric(joined, &part, &mut groups, lost);
        }
    }
    if idle > 0 {
        lost.push(format!("{idle} switches without hosts below them"));
    }
    ordered(groups)
}

/// The groups of a component whose links form a tree, from its centre down; returns the number of switches
/// without hosts below them.
fn tree(joined: &Joined<'_>, part: &[u32], groups: &mut Vec<Group>, lost: &mut Vec<String>) -> usize {
    let Some(root) = middle(joined, part) else { return 0 };
    let mut order = vec![(root, root)];
    let mut next = 0;
    while let Some(&(node, parent)) = order.get(next) {
        next += 1;
        let below = joined.of(node).iter().filter(|&&other| other != parent && joined.is_switch(other));
        order.extend(below.map(|&other| (other, node)));
    }
    let (mut place, mut idle, mut mixed) = (BTreeMap::new(), 0, 0);
    for &(node, parent) in order.iter().rev() {
        let others = || joined.of(node).iter().copied().filter(|&other| other != parent || node == parent);
        let hosts: Vec<u32> = others().filter(|&other| !joined.is_switch(other)).collect();
        let mut children: Vec<usize> = others().filter_map(|other| place.get(&other).copied()).collect();
        let name = joined.name(node).to_owned();
        if hosts.is_empty() && children.is_empty() {
            idle += 1;
            continue;
        }
        let group = match children.is_empty() || hosts.is_empty() {
            true => Group { name, is_made_up: false, hosts, children },
            false => {
                mixed += 1;
                children.push(groups.len());
                groups.push(Group {
                    name: format!("{name}-hosts"),
                    is_made_up: true,
                    hosts,
                    children: Vec::new(),
                });
                Group { name, is_made_up: false, hosts: Vec::new(), children }
            }
        };
        place.insert(node, groups.len());
        groups.push(group);
    }
    if mixed > 0 {
        lost.push(format!("{mixed} switches with both hosts and switches below them: these hosts are below an additional switch"));
    }
    idle
}

/// The centre of the tree: the switch with the smallest eccentricity; of two, the one with the larger number.
fn middle(joined: &Joined<'_>, part: &[u32]) -> Option<u32> {
    let mut degree: BTreeMap<u32, usize> = part.iter().map(|&node| (node, joined.of(node).len())).collect();
    let mut ring: Vec<u32> = part.iter().copied().filter(|node| degree[node] <= 1).collect();
    loop {
        ring.iter().for_each(|&node| _ = degree.remove(&node));
        let mut inner = Vec::new();
        for other in ring.iter().flat_map(|&node| joined.of(node)) {
            let Some(count) = degree.get_mut(other) else { continue };
            *count = count.saturating_sub(1);
            if *count == 1 {
                inner.push(*other);
            }
        }
        if inner.is_empty() {
            return ring.into_iter().filter(|&node| joined.is_switch(node)).max();
        }
        ring = inner;
    }
}

/// The groups of a component with redundant paths: hosts below the same switches form one group; tier by
/// tier, groups connected by switches form one group.
fn fabric(joined: &Joined<'_>, part: &[u32], groups: &mut Vec<Group>, lost: &mut Vec<String>) {
    let mut leaves: BTreeMap<&[u32], Vec<u32>> = BTreeMap::new();
    part.iter()
        .filter(|&&node| !joined.is_switch(node))
        .for_each(|&host| leaves.entry(joined.of(host)).or_default().push(host));
    let tiers = tiers(joined, part);
    let mut merged = leaves.keys().filter(|switches| switches.len() > 1).count();
    // One group of each switch; groups without a parent so far.
    let mut group_of: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
    let mut sets = Sets::default();
    let mut open: BTreeSet<usize> = BTreeSet::new();
    for (switches, hosts) in leaves {
        let name = switches.first().map_or("", |&switch| joined.name(switch)).to_owned();
        open.insert(groups.len());
        for &switch in switches {
            group_of.entry(switch).or_default().push(groups.len());
        }
        groups.push(Group { name, is_made_up: switches.len() > 1, hosts, children: Vec::new() });
    }
    let first = open.first().copied().unwrap_or(0);
    for tier in tiers.values().copied().filter(|&tier| tier > 1).collect::<BTreeSet<_>>() {
        let own: Vec<u32> =
            tiers.iter().filter(|(_, other)| **other == tier).map(|(&switch, _)| switch).collect();
        sets.clear();
        for &switch in &own {
            for other in
                joined.of(switch).iter().filter(|other| tiers.get(*other).is_some_and(|&other| other <= tier))
            {
                match group_of.get(other) {
                    Some(groups) => {
                        groups
                            .iter()
                            .for_each(|&group| sets.join(Member::Switch(switch), Member::Group(group)));
                    }
                    None => sets.join(Member::Switch(switch), Member::Switch(*other)),
                }
            }
        }
        merged += join(joined, &sets.all(), groups, &mut open, &mut group_of);
    }
    if merged > 0 {
        lost.push(format!(
            "individual cables: {merged} switches of the tree represent several equivalent switches each"
        ));
    }
    if open.len() > 1 {
        let name = format!("{}-all", groups.get(first).map_or("", |group| group.name.as_str()));
        groups.push(Group {
            name,
            is_made_up: true,
            hosts: Vec::new(),
            children: open.into_iter().collect(),
        });
        lost.push("links between switches of one tier: an additional switch is above them".into());
    }
}

/// Puts a group above all groups of a set; returns how many groups represent several switches.
fn join(
    joined: &Joined<'_>,
    sets: &[Vec<Member>],
    groups: &mut Vec<Group>,
    open: &mut BTreeSet<usize>,
    group_of: &mut BTreeMap<u32, Vec<usize>>,
) -> usize {
    let mut merged = 0;
    for set in sets {
        let switches: Vec<u32> = set.iter().filter_map(Member::switch).collect();
        let mut children: Vec<usize> = set.iter().filter_map(Member::group).collect();
        children.retain(|child| open.contains(child));
        let Some(&switch) = switches.first() else { continue };
        merged += usize::from(switches.len() > 1);
        let group = Group {
            name: joined.name(switch).to_owned(),
            is_made_up: switches.len() > 1,
            hosts: Vec::new(),
            children,
        };
        if group.children.is_empty() {
            continue;
        }
        group.children.iter().for_each(|child| _ = open.remove(child));
        open.insert(groups.len());
        switches.iter().for_each(|&switch| _ = group_of.insert(switch, vec![groups.len()]));
        groups.push(group);
    }
    merged
}

/// Number of links from each switch to the nearest host.
fn tiers(joined: &Joined<'_>, part: &[u32]) -> BTreeMap<u32, usize> {
    let mut tiers = BTreeMap::new();
    let mut ring: Vec<u32> = part.iter().copied().filter(|&node| !joined.is_switch(node)).collect();
    let mut tier = 0;
    while !ring.is_empty() {
        tier += 1;
        let mut outer = Vec::new();
        for other in ring.iter().flat_map(|&node| joined.of(node)).filter(|&&other| joined.is_switch(other)) {
            if !tiers.contains_key(other) {
                tiers.insert(*other, tier);
                outer.push(*other);
            }
        }
        ring = outer;
    }
    tiers
}

/// A switch of the current tier, or a group below it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Member {
    Switch(u32),
    Group(usize),
}

impl Member {
    fn switch(&self) -> Option<u32> {
        match self {
            Self::Switch(switch) => Some(*switch),
            Self::Group(_) => None,
        }
    }

    fn group(&self) -> Option<usize> {
        match self {
            Self::Group(group) => Some(*group),
            Self::Switch(_) => None,
        }
    }
}

/// Connected members (union-find).
#[derive(Debug, Default)]
struct Sets {
    head: BTreeMap<Member, Member>,
}

impl Sets {
    fn clear(&mut self) {
        self.head.clear();
    }

    fn find(&mut self, member: Member) -> Member {
        let mut head = *self.head.entry(member).or_insert(member);
        while let Some(&above) = self.head.get(&head).filter(|&&above| above != head) {
            head = above;
        }
        self.head.insert(member, head);
        head
    }

    fn join(&mut self, a: Member, b: Member) {
        let (a, b) = (self.find(a), self.find(b));
        self.head.insert(a.max(b), a.min(b));
    }

    fn all(&mut self) -> Vec<Vec<Member>> {
        let members: Vec<Member> = self.head.keys().copied().collect();
        let mut sets: BTreeMap<Member, Vec<Member>> = BTreeMap::new();
        for member in members {
            let head = self.find(member);
            sets.entry(head).or_default().push(member);
        }
        sets.into_values().collect()
    }
}

/// Groups of hosts with equal costs, level by level; levels without new groups are omitted.
fn by_levels(system: &SystemGraph, levels: &Levels) -> Vec<Group> {
    let hosts: Vec<(u32, u32)> = system.hosts().map(|(host, first, _)| (host, first)).collect();
    let mut groups: Vec<Group> = Vec::new();
    // For each group of the last level: its number, its hosts, and the group that contains all of them.
    let mut last: Vec<(Vec<u32>, Option<usize>)> =
        hosts.iter().map(|&(host, _)| (vec![host], None)).collect();
    let mut first: Vec<u32> = hosts.iter().map(|&(_, first)| first).collect();
    for (level, numbers) in levels.groups.iter().enumerate() {
        let mut members: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
        for (index, &slot) in first.iter().enumerate() {
            members.entry(numbers[slot as usize]).or_default().push(index);
        }
        let is_last = level + 1 == levels.groups.len();
        let (mut next, mut next_first) = (Vec::new(), Vec::new());
        for (number, members) in members.into_values().enumerate() {
            let head = first[members[0]];
            let hosts: Vec<u32> = members.iter().flat_map(|&member| last[member].0.clone()).collect();
            let group = match members.as_slice() {
                [only] if !(is_last && last[*only].1.is_none()) => last[*only].1,
                _ => {
                    let group = above(&mut groups, level, number, &members, &last, &hosts);
                    Some(group)
                }
            };
            next.push((hosts, group));
            next_first.push(head);
        }
        (last, first) = (next, next_first);
    }
    ordered(groups)
}

/// A group above others; hosts next to groups get their own groups.
fn above(
    groups: &mut Vec<Group>,
    level: usize,
    number: usize,
    members: &[usize],
    last: &[(Vec<u32>, Option<usize>)],
    hosts: &[u32],
) -> usize {
    let name = format!("level{level}-{number}");
    let mut group = Group { name, is_made_up: true, ..Group::default() };
    if members.iter().all(|&member| last[member].1.is_none()) {
        group.hosts = hosts.to_vec();
    } else {
        let mut single = Vec::new();
        for &member in members {
            match last[member].1 {
                Some(child) => group.children.push(child),
                None => single.extend(&last[member].0),
            }
        }
        if !single.is_empty() {
            group.children.push(groups.len());
            let name = format!("level{level}-{number}-hosts");
            groups.push(Group { name, is_made_up: true, hosts: single, children: Vec::new() });
        }
    }
    groups.push(group);
    groups.len() - 1
}

/// Sorts groups by height, preserving their order otherwise.
fn ordered(groups: Vec<Group>) -> Vec<Group> {
    let mut height = vec![0; groups.len()];
    for (index, group) in groups.iter().enumerate() {
        height[index] = group.children.iter().map(|&child| height[child] + 1).max().unwrap_or(0);
    }
    let first_host = first_hosts(&groups);
    let mut order: Vec<usize> = (0..groups.len()).collect();
    order.sort_by_key(|&index| (height[index], first_host[index]));
    let mut place = vec![0; groups.len()];
    order.iter().enumerate().for_each(|(new, &old)| place[old] = new);
    let mut old: Vec<Option<Group>> = groups.into_iter().map(Some).collect();
    let mut new = Vec::with_capacity(old.len());
    for index in order {
        let Some(mut group) = old[index].take() else { continue };
        group.children.iter_mut().for_each(|child| *child = place[*child]);
        group.children.sort_unstable();
        group.hosts.sort_unstable();
        new.push(group);
    }
    new
}

/// The first host below each group.
fn first_hosts(groups: &[Group]) -> Vec<u32> {
    let mut first = vec![u32::MAX; groups.len()];
    for (index, group) in groups.iter().enumerate() {
        let own = group.hosts.iter().min().copied().unwrap_or(u32::MAX);
        first[index] = group.children.iter().map(|&child| first[child]).min().unwrap_or(u32::MAX).min(own);
    }
    first
}
