//! Components and the cables between them: well-known shapes (stars, lines, rings, meshes, tori, fat trees) and the cheapest boards.

use std::collections::{BTreeMap, BTreeSet};

use hopmap_model::{
    CostModel, Demands, Levels, Link, NodeKind, RouteCosts, RouteMetric, Routing, SystemGraph,
};

use super::inventory::{BoardType, Component};
use crate::instance::slots;

/// Units and the cables between them.
#[derive(Debug, Clone)]
pub(super) struct Design<'a> {
    /// Hosts, then switches.
    pub(super) units: &'a [Component],
    /// How many cables join two units, the lesser one first.
    pub(super) cables: BTreeMap<(usize, usize), u32>,
}

impl<'a> Design<'a> {
    pub(super) fn new(units: &'a [Component]) -> Self {
        Self { units, cables: BTreeMap::new() }
    }

    pub(super) fn hosts(&self) -> usize {
        self.units.iter().filter(|unit| unit.node.kind == NodeKind::Host).count()
    }

    /// Says how many cables join two units.
    pub(super) fn join(&mut self, a: usize, b: usize, cables: u32) {
        match cables {
            0 => self.cables.remove(&(a.min(b), a.max(b))),
            _ => self.cables.insert((a.min(b), a.max(b)), cables),
        };
    }

    pub(super) fn between(&self, a: usize, b: usize) -> u32 {
        self.cables.get(&(a.min(b), a.max(b))).copied().unwrap_or_default()
    }

    /// Units that cables join a unit to, and how many.
    pub(super) fn neighbours(&self, unit: usize) -> impl Iterator<Item = (usize, u32)> + '_ {
        let other = move |(&(a, b), &cables): (&(usize, usize), &u32)| match (a == unit, b == unit) {
            (true, _) => Some((b, cables)),
            (_, true) => Some((a, cables)),
            _ => None,
        };
        self.cables.iter().filter_map(other)
    }

    /// Ports of a unit without a cable.
    pub(super) fn free(&self, unit: usize) -> u32 {
        let used: u32 = self.neighbours(unit).map(|(_, cables)| cables).sum();
        self.units[unit].ports.saturating_sub(used)
    }

    /// Whether no unit has more cables than ports.
    pub(super) fn fits_ports(&self) -> bool {
        let used = |unit: usize| self.neighbours(unit).map(|(_, cables)| cables).sum::<u32>();
        (0..self.units.len()).all(|unit| used(unit) <= self.units[unit].ports)
    }

    pub(super) fn count(&self) -> u32 {
        self.cables.values().sum()
    }

    /// The machine: units are nodes in their order, ports are numbered in the order of cables, a cable has the lesser bandwidth
    /// of its ports in each direction.
    pub(super) fn system(&self, demands: &Demands) -> SystemGraph {
        let mut next = vec![0; self.units.len()];
        let mut port = |unit: usize| {
            next[unit] += 1;
            next[unit] - 1
        };
        let mut links = Vec::new();
        for (&(a, b), &cables) in &self.cables {
            for _ in 0..cables {
                let link = Link {
                    source_port: Some(port(a)),
                    destination_port: Some(port(b)),
                    bandwidth_bytes_per_s: Some(self.units[a].bandwidth.min(self.units[b].bandwidth)),
                    ..Link::new(a as u32, b as u32)
                };
                links.extend([link, link.reversed()]);
            }
        }
        let nodes = self.units.iter().map(|unit| unit.node.clone()).collect();
        let inside = Levels { costs: vec![0.0], groups: vec![Vec::new()] };
        let cost = CostModel::Routes(RouteCosts { metric: RouteMetric::Hops, inside });
        let mut system = SystemGraph { nodes, links, slots: Vec::new(), cost, routing: Routing::default() };
        slots(&mut system, demands);
        system
    }

    /// The same for designs that differ only in the order of units of a class; nothing where there are too many orders to tell.
    pub(super) fn canonical(&self, orders: &[Vec<usize>]) -> Vec<u32> {
        let first = self.hosts();
        let keys = orders.iter().map(|order| self.key(first, order));
        keys.min().unwrap_or_default()
    }

    /// Classes of units and cables with switches in an order, hosts of a class sorted by what they are joined to.
    fn key(&self, first: usize, order: &[usize]) -> Vec<u32> {
        let mut key = Vec::new();
        let mut hosts: Vec<Vec<u32>> = (0..first)
            .map(|host| {
                let mut row = vec![self.units[host].class as u32];
                row.extend(order.iter().map(|&switch| self.between(host, switch)));
                row
            })
            .collect();
        hosts.sort_unstable();
        key.extend(hosts.into_iter().flatten());
        for (place, &a) in order.iter().enumerate() {
            key.push(self.units[a].class as u32);
            key.extend(order[..place].iter().map(|&b| self.between(a, b)));
        }
        key
    }
}

/// All orders of switches that keep classes in place.
pub(super) fn orders(units: &[Component]) -> Vec<Vec<usize>> {
    let is_switch = |index: &usize| units[*index].node.kind == NodeKind::Switch;
    let switches: Vec<usize> = (0..units.len()).filter(is_switch).collect();
    let mut orders = vec![Vec::new()];
    for place in &switches {
        let mut longer = Vec::new();
        for order in &orders {
            let free = switches.iter().filter(|switch| !order.contains(*switch));
            for &switch in free.filter(|switch| units[**switch].class == units[*place].class) {
                longer.push(order.iter().copied().chain([switch]).collect());
            }
        }
        orders = longer;
    }
    orders
}

/// Machines of some units in which switches are joined in well-known ways: a star, a line, a ring, meshes, tori, fat trees and
/// all with all. Hosts are spread evenly; those with several ports go to several switches. With `thick` what ports are left take
/// parallel cables.
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
        // The first switches hold hosts, the last ones join them.
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

/// A grid of switches, closed in both directions if it is a torus.
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

/// Units joined in a shape; nothing if the ports do not suffice.
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
            // In blocks, so that hosts that stand together are near each other.
            let wanted = (place * leaves.len() / hosts.len() + round) % leaves.len().max(1);
            let near = (0..leaves.len()).map(|step| leaves[(wanted + step) % leaves.len()]);
            let free =
                |leaf: &usize| design.free(*leaf) > 0 && (round == 0 || design.between(host, *leaf) == 0);
            let found = near.into_iter().find(free);
            match found {
                Some(leaf) => {
                    let cables = design.between(host, leaf);
                    design.join(host, leaf, cables + 1);
                }
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

/// Gives pairs parallel cables in turn, as long as there are ports.
fn thicken(design: &mut Design<'_>, shape: &[(usize, usize)]) {
    loop {
        let before = design.count();
        for &(a, b) in shape {
            if design.free(a) > 0 && design.free(b) > 0 {
                design.join(a, b, design.between(a, b) + 1);
            }
        }
        if design.count() == before {
            break;
        }
    }
}

/// Steps of a search for the cheapest boards.
const MOST_STEPS: u32 = 100_000;

/// Which board every unit is on.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Packing {
    pub(super) cost: f64,
    /// Type and number of the board of every unit; empty where a kit has no boards.
    pub(super) boards: Vec<(usize, usize)>,
    /// Whether there is surely no cheaper one.
    pub(super) proven: bool,
}

/// What boards for so many chips cost at least.
pub(super) fn least(types: &[BoardType], chips: usize) -> f64 {
    // Chips at the price that they have on the board where they are cheapest.
    let price = types.iter().map(|board| board.cost / board.chips as f64).fold(f64::INFINITY, f64::min);
    if types.is_empty() { 0.0 } else { price * chips as f64 }
}

/// The cheapest boards; nothing and whether that is proven where units do not fit.
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
    /// Type and number, chips, and cables to other boards of the boards in use.
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
