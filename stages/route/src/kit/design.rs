//! Units and the cables between them.

use std::collections::BTreeMap;

use hopmap_model::{
    CostModel, Demands, Levels, Link, NodeKind, RouteCosts, RouteMetric, Routing, SystemGraph,
};

use super::stock::Unit;
use crate::instance::slots;

/// Units and the cables between them.
#[derive(Debug, Clone)]
pub(super) struct Design<'a> {
    /// Hosts, then switches.
    pub(super) units: &'a [Unit],
    /// How many cables join two units, the lesser one first.
    pub(super) cables: BTreeMap<(usize, usize), u32>,
}

impl<'a> Design<'a> {
    pub(super) fn new(units: &'a [Unit]) -> Self {
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
pub(super) fn orders(units: &[Unit]) -> Vec<Vec<usize>> {
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
