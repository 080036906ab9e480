//! Nodes, links and slots of hosts that are down.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use hopmap_model::{
    CostModel, Costs, Forward, Levels, Link, Matrix, Node, NodeKind, RouteCosts, Routing, Slot, SystemGraph,
};

use crate::change::name;
use crate::pair::Both;
use crate::snapshot::{Snapshot, made_up};

/// Index of an item of a restored machine, in the machine before or after.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum From {
    Before(u32),
    After(u32),
}

impl From {
    fn before(self) -> Option<u32> {
        match self {
            Self::Before(index) => Some(index),
            Self::After(_) => None,
        }
    }
}

/// The machine after, with the old data of some hosts.
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
        cost: restore_costs(old, new, &slots),
        calibration: new.calibration.clone(),
    }
}

/// The new index of every node before.
fn counterparts(both: &Both<'_>) -> Vec<Option<u32>> {
    let after = both.after.by_key();
    both.before.keys.iter().map(|key| after.get(key).copied()).collect()
}

/// Nodes before that are missing: some hosts, and switches that are reached from them through missing
/// switches.
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

/// All nodes in order: those after; each added node follows its old predecessor.
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

/// The nodes. A switch gets another name of its level if its generated name is taken.
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

/// The forwarding tables after. They have no entries for restored hosts, which are down anyway.
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

/// Links in their old order, then new ones, each with its new index.
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

/// All slots in order: new slots host by host, those of each restored host after its old predecessor.
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

/// The new costs, and the old ones of restored slots.
pub(super) fn restore_costs(old: &SystemGraph, new: &SystemGraph, slots: &[From]) -> CostModel {
    if new.slots.is_empty() {
        return of_before(old, slots);
    }
    let twins = Twins::new(old, new);
    match &new.cost {
        CostModel::Levels(levels) => CostModel::Levels(with_levels(old, levels, slots, &twins)),
        CostModel::Matrix(_) => CostModel::Matrix(with_matrix(old, new, slots, &twins)),
        CostModel::Routes(routes) => {
            let inside = with_inside(old, &routes.inside, slots);
            CostModel::Routes(RouteCosts { metric: routes.metric, inside })
        }
    }
}

/// If no host is up, the remaining slots keep their old costs.
fn of_before(old: &SystemGraph, slots: &[From]) -> CostModel {
    let slots: Vec<u32> = slots.iter().map(|&(From::Before(slot) | From::After(slot))| slot).collect();
    match &old.cost {
        CostModel::Matrix(_) => CostModel::Matrix(Matrix { costs: old.costs().block(&slots) }),
        CostModel::Levels(levels) => CostModel::Levels(levels_of(levels, &slots)),
        CostModel::Routes(routes) => {
            CostModel::Routes(RouteCosts { metric: routes.metric, inside: levels_of(&routes.inside, &slots) })
        }
    }
}

fn levels_of(levels: &Levels, slots: &[u32]) -> Levels {
    let groups = |groups: &Vec<u32>| slots.iter().map(|&slot| groups[slot as usize]).collect();
    Levels { costs: levels.costs.clone(), groups: levels.groups.iter().map(groups).collect() }
}

/// Costs within hosts: a restored host keeps its own, or all its slots are equally near if it had other
/// levels.
fn with_inside(old: &SystemGraph, inside: &Levels, slots: &[From]) -> Levels {
    let before = match &old.cost {
        CostModel::Routes(routes) if routes.inside.costs.len() == inside.costs.len() => Some(&routes.inside),
        _ => None,
    };
    let last = inside.costs.len().saturating_sub(1);
    let group = |level: usize, from: &From| match (from, before) {
        (From::After(slot), _) => Group::Known(inside.groups[level][*slot as usize]),
        (From::Before(slot), Some(before)) => Group::Lost(level, before.groups[level][*slot as usize]),
        (From::Before(slot), None) if level < last => Group::Slot(*slot),
        (From::Before(slot), None) => Group::Lost(level, old.slots[*slot as usize].host),
    };
    numbered(&inside.costs, slots, group)
}

/// The groups of slots on every level, numbered in order of appearance.
fn numbered(costs: &[f64], slots: &[From], group: impl Fn(usize, &From) -> Group) -> Levels {
    let on_level = |level: usize| {
        let mut numbers: BTreeMap<Group, u32> = BTreeMap::new();
        let number = |from: &From| {
            let next = numbers.len() as u32;
            *numbers.entry(group(level, from)).or_insert(next)
        };
        slots.iter().map(number).collect()
    };
    Levels { costs: costs.to_vec(), groups: (0..costs.len()).map(on_level).collect() }
}

/// Slots that exist before and after: the same core of the same host.
struct Twins {
    after: BTreeMap<u32, u32>,
    before: BTreeMap<u32, u32>,
}

impl Twins {
    fn new(old: &SystemGraph, new: &SystemGraph) -> Self {
        let key = |system: &SystemGraph, slot: u32| {
            let slot = system.slots[slot as usize];
            (name(system, slot.host).to_owned(), slot.core)
        };
        let known: BTreeMap<_, u32> =
            (0..new.slots.len() as u32).map(|slot| (key(new, slot), slot)).collect();
        let twin = |slot: u32| Some((slot, *known.get(&key(old, slot))?));
        let after: BTreeMap<u32, u32> = (0..old.slots.len() as u32).filter_map(twin).collect();
        Self { before: after.iter().map(|(&old, &new)| (new, old)).collect(), after }
    }
}

/// A cost matrix; an unknown cost is the largest that the restored slot had.
fn with_matrix(old: &SystemGraph, new: &SystemGraph, slots: &[From], twins: &Twins) -> Matrix {
    let was = |from: &From| match from {
        From::Before(slot) => Some(*slot),
        From::After(slot) => twins.before.get(slot).copied(),
    };
    let count = old.slots.len() as u32;
    let (old_costs, new_costs) = (old.costs(), new.costs());
    let most = |slot: u32| {
        (0..count).fold(0.0, |most: f64, other| {
            most.max(old_costs.between(slot, other)).max(old_costs.between(other, slot))
        })
    };
    let largest: BTreeMap<From, f64> =
        slots.iter().filter_map(|from| Some((*from, most(from.before()?)))).collect();
    let cost = |a: &From, b: &From| match (a, b, was(a), was(b)) {
        (From::After(a), From::After(b), ..) => new_costs.between(*a, *b),
        (_, _, Some(a), Some(b)) => old_costs.between(a, b),
        _ => largest.get(a).or(largest.get(b)).copied().unwrap_or_default(),
    };
    let pairs = slots.iter().flat_map(|a| slots.iter().map(move |b| (a, b)));
    Matrix { costs: pairs.map(|(a, b)| cost(a, b)).collect() }
}

/// The group of a slot on a level.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Group {
    /// A group of the machine after.
    Known(u32),
    /// A group of the machine before, on one of its levels; all its slots are down.
    Lost(usize, u32),
    /// A single slot.
    Slot(u32),
}

/// How a slot of a host that is down joins the tree: from `level` on it is in the groups of the slot
/// `next_to`.
struct Join {
    next_to: u32,
    level: usize,
}

/// A tree in which every restored slot meets running slots on its old levels, or on levels of equal cost.
fn with_levels(old: &SystemGraph, levels: &Levels, slots: &[From], twins: &Twins) -> Levels {
    let heights = Heights::new(old, levels);
    let restored = slots.iter().filter_map(|from| from.before());
    let joins: BTreeMap<u32, Join> = restored.map(|slot| (slot, heights.join(slot, twins))).collect();
    let group = |level: usize, from: &From| match from {
        From::After(slot) => Group::Known(levels.groups[level][*slot as usize]),
        From::Before(slot) => match &joins[slot] {
            join if level >= join.level => Group::Known(levels.groups[level][join.next_to as usize]),
            _ => heights.lost(*slot, level),
        },
    };
    numbered(&levels.costs, slots, group)
}

/// The level after that has the cost of each level before.
struct Heights<'a> {
    old: &'a SystemGraph,
    old_costs: Costs<'a>,
    costs: &'a [f64],
    /// By level before; empty if costs were a matrix.
    levels: Vec<usize>,
}

impl<'a> Heights<'a> {
    fn new(old: &'a SystemGraph, new: &'a Levels) -> Self {
        let mut heights = Self { old, old_costs: old.costs(), costs: &new.costs, levels: Vec::new() };
        if let CostModel::Levels(before) = &old.cost {
            heights.levels = match before.costs.len() == new.costs.len() {
                true => (0..new.costs.len()).collect(),
                false => before.costs.iter().map(|&cost| heights.of(cost)).collect(),
            };
        }
        heights
    }

    /// The first level of about the same or a higher cost; the last one if there is none.
    fn of(&self, cost: f64) -> usize {
        let enough = |level: &f64| level * 1.3 >= cost;
        self.costs.iter().position(enough).unwrap_or(self.costs.len().saturating_sub(1))
    }

    /// Next to the nearest slot that is up.
    fn join(&self, slot: u32, twins: &Twins) -> Join {
        // The slots of a host stay together if the distances within it are not a tree.
        let slot = match &self.old.cost {
            CostModel::Levels(_) => slot,
            _ => self.first_of_host(slot),
        };
        let nearest = twins.after.iter().min_by(|a, b| {
            let cost = |other: u32| self.old_costs.between(slot, other);
            cost(*a.0).total_cmp(&cost(*b.0)).then(a.0.cmp(b.0))
        });
        let Some((&was, &next_to)) = nearest else {
            return Join { next_to: 0, level: self.costs.len().saturating_sub(1) };
        };
        let level = match &self.old.cost {
            CostModel::Levels(levels) => self.levels[levels.meeting_level(slot, was)],
            _ => self.of(self.old_costs.between(slot, was)),
        };
        Join { next_to, level }
    }

    /// The group of a slot below the level on which it joins other slots.
    fn lost(&self, slot: u32, level: usize) -> Group {
        let CostModel::Levels(before) = &self.old.cost else {
            return Group::Slot(self.first_of_host(slot));
        };
        match self.levels.iter().rposition(|&height| height <= level) {
            Some(was) => Group::Lost(was, before.groups[was][slot as usize]),
            None => Group::Slot(slot),
        }
    }

    fn first_of_host(&self, slot: u32) -> u32 {
        let host = self.old.slots[slot as usize].host;
        let first = self.old.slots.iter().position(|slot| slot.host == host);
        first.map_or(slot, |first| first as u32)
    }
}
