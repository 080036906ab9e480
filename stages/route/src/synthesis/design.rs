//! Components with cables: well-known topologies (star, line, ring, mesh, torus, fat tree), conversion to a machine, and the
//! cheapest boards.

use std::collections::{BTreeMap, BTreeSet};

use hopmap_model::{Demands, Link, Node, NodeKind, SystemGraph};

use super::inventory::{BoardType, Component, FixedBoard, Inventory};
use crate::instance::{cable, slots, without_slots};

/// Units and the cables between them.
#[derive(Debug, Clone)]
pub(super) struct Design<'a> {
    /// Hosts, then switches.
    pub(super) units: &'a [Component],
    /// Number of cables between two units, the lower index first.
    pub(super) cables: BTreeMap<(usize, usize), u32>,
}

impl<'a> Design<'a> {
    pub(super) fn new(units: &'a [Component]) -> Self {
        Self { units, cables: BTreeMap::new() }
    }

    /// Sets the number of cables between two units.
    pub(super) fn join(&mut self, a: usize, b: usize, cables: u32) {
        match cables {
            0 => self.cables.remove(&(a.min(b), a.max(b))),
            _ => self.cables.insert((a.min(b), a.max(b)), cables),
        };
    }

    /// Adds a cable between two units.
    pub(super) fn add(&mut self, a: usize, b: usize) {
        *self.cables.entry((a.min(b), a.max(b))).or_default() += 1;
    }

    pub(super) fn between(&self, a: usize, b: usize) -> u32 {
        self.cables.get(&(a.min(b), a.max(b))).copied().unwrap_or_default()
    }

    /// Neighbours of a unit, with the number of cables.
    fn neighbours(&self, unit: usize) -> impl Iterator<Item = (usize, u32)> + '_ {
        let other = move |(&(a, b), &cables): (&(usize, usize), &u32)| match (a == unit, b == unit) {
            (true, _) => Some((b, cables)),
            (_, true) => Some((a, cables)),
            _ => None,
        };
        self.cables.iter().filter_map(other)
    }

    fn used(&self, unit: usize) -> u32 {
        self.neighbours(unit).map(|(_, cables)| cables).sum()
    }

    /// Free ports of a unit.
    pub(super) fn free(&self, unit: usize) -> u32 {
        self.units[unit].ports.saturating_sub(self.used(unit))
    }

    /// Whether no unit has more cables than ports.
    pub(super) fn fits_ports(&self) -> bool {
        (0..self.units.len()).all(|unit| self.used(unit) <= self.units[unit].ports)
    }

    pub(super) fn count(&self) -> u32 {
        self.cables.values().sum()
    }
}

/// Components chosen from an inventory, still without cables: single components, or boards with known contents. The units that
/// cables connect are the components or the connectors of boards.
#[derive(Debug, Clone)]
pub(super) struct Assembly {
    /// Number of components of every kind of the inventory.
    pub(super) counts: Vec<usize>,
    /// Total cost.
    pub(super) cost: f64,
    /// The type of every board with known contents.
    pub(super) kinds: Vec<usize>,
    pub(super) units: Vec<Component>,
    /// The board of every unit; a single component is its own board.
    pub(super) board_of: Vec<usize>,
    /// The node of every unit, and its ports if they are not numbered from 0.
    ports: Vec<(u32, Option<Vec<u32>>)>,
    /// A number for every node, equal for the same place on boards of a type.
    classes: Vec<usize>,
    /// The machine without cables.
    pub(super) parts: SystemGraph,
}

impl Assembly {
    /// The first components of every kind.
    pub(super) fn new(inventory: &Inventory, counts: &[usize]) -> Self {
        if inventory.fixed_boards.is_empty() {
            let first = inventory.classes().zip(counts).flat_map(|(class, &count)| &class[..count]);
            return Self { counts: counts.to_vec(), ..Self::of(first.cloned().collect()) };
        }
        let mut own = Self { counts: counts.to_vec(), ..Self::of(Vec::new()) };
        let mut class = 0;
        for (kind, (board, &count)) in inventory.fixed_boards.iter().zip(counts).enumerate() {
            (0..count).for_each(|number| own.add(kind, board, number, class));
            class += board.inside.nodes.len();
        }
        own
    }

    /// Components that are nodes of the machine.
    pub(super) fn of(units: Vec<Component>) -> Self {
        Self {
            counts: Vec::new(),
            cost: units.iter().map(|unit| unit.cost).sum(),
            kinds: Vec::new(),
            board_of: (0..units.len()).collect(),
            ports: (0..units.len() as u32).map(|node| (node, None)).collect(),
            classes: units.iter().map(|unit| unit.class).collect(),
            parts: without_slots(units.iter().map(|unit| unit.node.clone()).collect(), Vec::new()),
            units,
        }
    }

    fn add(&mut self, kind: usize, board: &FixedBoard, number: usize, class: usize) {
        let first = self.parts.nodes.len() as u32;
        let named = |node: &Node| Node { name: board.chip(number, node), ..node.clone() };
        self.parts.nodes.extend(board.inside.nodes.iter().map(named));
        self.classes.extend(class..class + board.inside.nodes.len());
        self.parts.links.extend(board.inside.links.iter().map(|link| Link {
            source: first + link.source,
            destination: first + link.destination,
            ..*link
        }));
        for group in &board.connectors {
            let node = first + group.node;
            self.units.push(Component {
                class: kind,
                node: self.parts.nodes[node as usize].clone(),
                ports: group.ports.len() as u32,
                bandwidth: group.bandwidth,
                cost: 0.0,
            });
            self.ports.push((node, Some(group.ports.clone())));
            self.board_of.push(self.kinds.len());
        }
        self.kinds.push(kind);
        self.cost += board.cost;
    }

    pub(super) fn is_host(&self, unit: usize) -> bool {
        self.units[unit].node.kind == NodeKind::Host
    }

    /// Whether a cable may connect two units: of different boards, and not two hosts.
    pub(super) fn may_join(&self, a: usize, b: usize) -> bool {
        self.board_of[a] != self.board_of[b] && !(self.is_host(a) && self.is_host(b))
    }

    /// The nodes of a pair of units, the lower id first.
    pub(super) fn nodes(&self, (a, b): (usize, usize)) -> (usize, usize) {
        let (a, b) = (self.ports[a].0 as usize, self.ports[b].0 as usize);
        (a.min(b), a.max(b))
    }

    /// The smaller port bandwidth of two units.
    pub(super) fn width(&self, a: usize, b: usize) -> f64 {
        self.units[a].bandwidth.min(self.units[b].bandwidth)
    }

    /// The machine: fixed links, then the cables in the order of the design at the first ports of units.
    pub(super) fn system(&self, design: &Design<'_>, demands: &Demands) -> SystemGraph {
        let mut system = self.parts.clone();
        let mut next = vec![0; self.units.len()];
        let mut end = |unit: usize| {
            let (node, ports) = &self.ports[unit];
            let number: u32 = next[unit];
            next[unit] += 1;
            (*node, ports.as_ref().map_or(Some(number), |ports| ports.get(number as usize).copied()))
        };
        for (&(a, b), &cables) in &design.cables {
            for _ in 0..cables {
                system.links.extend(cable(end(a), end(b), self.width(a, b)));
            }
        }
        slots(&mut system, demands);
        system
    }

    /// The hosts, each with one port that has the bandwidth of all its links and ports.
    pub(super) fn hosts(&self) -> Vec<Component> {
        let mut widths = vec![[0.0; 2]; self.parts.nodes.len()];
        for link in &self.parts.links {
            let width = link.bandwidth_bytes_per_s.unwrap_or(f64::INFINITY);
            widths[link.source as usize][0] += width;
            widths[link.destination as usize][1] += width;
        }
        for (unit, (node, _)) in self.units.iter().zip(&self.ports) {
            let width = unit.bandwidth * f64::from(unit.ports);
            widths[*node as usize].iter_mut().for_each(|sum| *sum += width);
        }
        let hosts = self.parts.nodes.iter().zip(widths).zip(&self.classes);
        let hosts = hosts.filter(|((node, _), _)| node.kind == NodeKind::Host);
        let unit = |((node, [out, back]), &class): ((&Node, [f64; 2]), &usize)| Component {
            class,
            node: node.clone(),
            ports: 1,
            bandwidth: out.max(back),
            cost: 0.0,
        };
        hosts.map(unit).collect()
    }
}

/// Every list extended by each of its possible next values.
pub(super) fn extended<T: Copy>(lists: &[Vec<T>], next: impl Fn(&[T]) -> Vec<T>) -> Vec<Vec<T>> {
    let longer = |list: &Vec<T>| {
        let list = list.clone();
        next(&list).into_iter().map(move |last| list.iter().copied().chain([last]).collect())
    };
    lists.iter().flat_map(longer).collect()
}

/// All permutations that preserve classes; none if there are more than `most`.
pub(super) fn orders(classes: &[usize], most: usize) -> Option<Vec<Vec<usize>>> {
    let mut orders = vec![Vec::new()];
    for class in classes {
        orders = extended(&orders, |order| {
            let is_free = |place: &usize| classes[*place] == *class && !order.contains(place);
            (0..classes.len()).filter(is_free).collect()
        });
        if orders.len() > most {
            return None;
        }
    }
    Some(orders)
}

/// Machines in which switches form well-known topologies: star, line, ring, meshes, tori, fat trees and complete graph. Hosts are
/// spread evenly; those with several ports connect to several switches. With `thick`, the remaining ports get parallel cables.
pub(super) fn families(units: &[Component], thick: bool) -> Vec<Design<'_>> {
    let of = |kind: NodeKind| -> Vec<usize> {
        (0..units.len()).filter(|&unit| units[unit].node.kind == kind).collect()
    };
    let (hosts, switches) = (of(NodeKind::Host), of(NodeKind::Switch));
    let count = switches.len();
    let mut shapes: Vec<(Vec<(usize, usize)>, usize)> = Vec::new();
    let line = || (1..count).map(|place| (place - 1, place));
    shapes.push((line().collect(), count));
    shapes.push(((1..count).map(|place| (0, place)).collect(), count));
    shapes.push((line().chain((count > 2).then(|| (0, count - 1))).collect(), count));
    for rows in 2..count {
        if count % rows == 0 && rows * rows <= count {
            shapes
                .extend([(grid(rows, count / rows, false), count), (grid(rows, count / rows, true), count)]);
        }
    }
    for spines in 1..count.div_ceil(2) {
        // The first switches are leaves with hosts, the last ones form the spine.
        let leaves = count - spines;
        let joins = |spine: usize| (0..leaves).map(move |leaf| (leaf, leaves + spine));
        shapes.push(((0..spines).flat_map(joins).collect(), leaves));
    }
    shapes.push(((0..count).flat_map(|a| (a + 1..count).map(move |b| (a, b))).collect(), count));
    let mut seen = BTreeSet::new();
    let designs = shapes.into_iter().filter_map(|(shape, leaves)| {
        let shape: Vec<(usize, usize)> = shape.iter().map(|&(a, b)| (switches[a], switches[b])).collect();
        joined(units, &hosts, &switches[..leaves], &shape, thick)
    });
    designs.filter(|design| seen.insert(design.cables.clone())).collect()
}

/// A grid of switches; a torus if both dimensions wrap around.
fn grid(rows: usize, columns: usize, torus: bool) -> Vec<(usize, usize)> {
    let mut shape = BTreeSet::new();
    for (row, column) in (0..rows).flat_map(|row| (0..columns).map(move |column| (row, column))) {
        let here = row * columns + column;
        let right = (column + 1 < columns || torus).then_some(row * columns + (column + 1) % columns);
        let below = (row + 1 < rows || torus).then_some((row + 1) % rows * columns + column);
        let others = [right, below].into_iter().flatten().filter(|&other| other != here);
        shape.extend(others.map(|other| (here.min(other), here.max(other))));
    }
    shape.into_iter().collect()
}

/// Units connected in a topology; none if there are too few ports.
fn joined<'a>(
    units: &'a [Component],
    hosts: &[usize],
    leaves: &[usize],
    shape: &[(usize, usize)],
    thick: bool,
) -> Option<Design<'a>> {
    let mut design = Design::new(units);
    shape.iter().for_each(|&(a, b)| design.join(a, b, 1));
    let most = hosts.iter().map(|&host| units[host].ports).max().unwrap_or_default();
    for round in 0..most as usize {
        for (place, &host) in
            hosts.iter().enumerate().filter(|(_, host)| units[**host].ports as usize > round)
        {
            // In blocks, so that consecutive hosts are near each other.
            let wanted = (place * leaves.len() / hosts.len() + round) % leaves.len().max(1);
            let near = (0..leaves.len()).map(|step| leaves[(wanted + step) % leaves.len()]);
            let free =
                |leaf: &usize| design.free(*leaf) > 0 && (round == 0 || design.between(host, *leaf) == 0);
            let found = near.into_iter().find(free);
            match found {
                Some(leaf) => design.add(host, leaf),
                None if round == 0 && !leaves.is_empty() => return None,
                None => {}
            }
        }
    }
    if thick {
        thicken(&mut design, shape);
    }
    design.fits_ports().then_some(design)
}

/// Adds parallel cables to pairs in turn, as long as there are ports.
fn thicken(design: &mut Design<'_>, shape: &[(usize, usize)]) {
    loop {
        let before = design.count();
        for &(a, b) in shape {
            if design.free(a) > 0 && design.free(b) > 0 {
                design.add(a, b);
            }
        }
        if design.count() == before {
            break;
        }
    }
}

/// Step limit of the search for the cheapest boards.
const MOST_STEPS: u32 = 100_000;

/// An assignment of units to boards.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Packing {
    pub(super) cost: f64,
    /// Type and number of the board of every unit; empty if the inventory has no boards.
    pub(super) boards: Vec<(usize, usize)>,
    /// Whether it is proven cheapest.
    pub(super) proven: bool,
}

/// Lower bound of the cost of boards for a number of chips.
pub(super) fn least(types: &[BoardType], chips: usize) -> f64 {
    // Chips at the price on the board where they are cheapest.
    let price = types.iter().map(|board| board.cost / board.chips as f64).fold(f64::INFINITY, f64::min);
    if types.is_empty() { 0.0 } else { price * chips as f64 }
}

/// The cheapest boards; none, and whether that is proven, if the units do not fit.
pub(super) fn pack(types: &[BoardType], design: &Design<'_>) -> Result<Packing, bool> {
    if types.is_empty() {
        return Ok(Packing { proven: true, ..Packing::default() });
    }
    let mut search = Search { types, design, open: Vec::new(), of: Vec::new(), best: None, steps: 0 };
    search.place(0.0);
    let proven = search.steps < MOST_STEPS;
    search.best.map(|best| Packing { proven, ..best }).ok_or(proven)
}

struct Search<'a> {
    types: &'a [BoardType],
    design: &'a Design<'a>,
    /// Boards in use: type and number, chips, and cables to other boards.
    open: Vec<((usize, usize), usize, u32)>,
    /// The open board of every unit so far.
    of: Vec<usize>,
    best: Option<Packing>,
    steps: u32,
}

impl Search<'_> {
    fn place(&mut self, cost: f64) {
        self.steps += 1;
        if self.steps >= MOST_STEPS || self.best.as_ref().is_some_and(|best| cost >= best.cost) {
            return;
        }
        if self.of.len() == self.design.units.len() {
            let boards = self.of.iter().map(|&board| self.open[board].0).collect();
            self.best = Some(Packing { cost, boards, proven: false });
            return;
        }
        for board in 0..self.open.len() {
            self.put(board, cost);
        }
        for (number, kind) in self.types.iter().enumerate() {
            let used = self.open.iter().filter(|(id, ..)| id.0 == number).count();
            if used < kind.names.len() {
                self.open.push(((number, used), 0, 0));
                self.put(self.open.len() - 1, cost + kind.cost);
                self.open.pop();
            }
        }
    }

    /// Puts the next unit on a board, if chips and connectors allow.
    fn put(&mut self, board: usize, cost: f64) {
        let unit = self.of.len();
        if self.open[board].1 >= self.types[self.open[board].0.0].chips {
            return;
        }
        let before = self.open.clone();
        self.open[board].1 += 1;
        for (other, cables) in self.design.neighbours(unit).filter(|(other, _)| *other < unit) {
            let there = self.of[other];
            if there != board {
                self.open[board].2 += cables;
                self.open[there].2 += cables;
            }
        }
        if self.open.iter().all(|&((kind, _), _, cables)| cables <= self.types[kind].connectors) {
            self.of.push(board);
            self.place(cost);
            self.of.pop();
        }
        self.open = before;
    }
}
