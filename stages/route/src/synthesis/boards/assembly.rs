//! Some boards with known contents, and machines of them.

use std::collections::BTreeMap;

use hopmap_model::{
    CostModel, Demands, Error, Levels, Link, Node, NodeKind, RouteCosts, RouteMetric, Routing, SystemGraph,
};

use crate::instance::slots;
use crate::synthesis::design::Design;
use crate::synthesis::inventory::{Component, FixedBoard, Inventory};
use crate::synthesis::judge::{Judge, is_better, objective};

/// Some boards, not joined yet.
///
/// Their connectors are units: those that are alike are one unit with as many ports, so that a design says how many cables join
/// which of them.
#[derive(Debug, Clone)]
pub(crate) struct Assembly {
    /// What the boards cost.
    pub(super) cost: f64,
    /// The type of every board; boards of a type follow each other.
    pub(super) kinds: Vec<usize>,
    /// Alike connectors of a board.
    pub(super) units: Vec<Component>,
    /// The board of every unit.
    pub(super) board_of: Vec<usize>,
    /// The node and the ports of every unit.
    ports: Vec<(u32, Vec<u32>)>,
    /// A number for every node, the same for a place on boards of a type.
    classes: Vec<usize>,
    /// The boards without cables.
    parts: SystemGraph,
}

impl Assembly {
    /// The first boards of every type.
    pub(crate) fn new(fixed_boards: &[FixedBoard], counts: &[usize]) -> Self {
        let inside = Levels { costs: vec![0.0], groups: vec![Vec::new()] };
        let cost = CostModel::Routes(RouteCosts { metric: RouteMetric::Hops, inside });
        let parts = SystemGraph {
            nodes: Vec::new(),
            links: Vec::new(),
            slots: Vec::new(),
            cost,
            routing: Routing::default(),
        };
        let mut assembly = Self {
            cost: 0.0,
            kinds: Vec::new(),
            units: Vec::new(),
            board_of: Vec::new(),
            ports: Vec::new(),
            classes: Vec::new(),
            parts,
        };
        let mut class = 0;
        for (kind, (board, &count)) in fixed_boards.iter().zip(counts).enumerate() {
            (0..count).for_each(|number| assembly.add(kind, board, number, class));
            class += board.inside.nodes.len();
        }
        assembly
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
            self.ports.push((node, group.ports.clone()));
            self.board_of.push(self.kinds.len());
        }
        self.kinds.push(kind);
        self.cost += board.cost;
    }

    /// Links on the boards: cables follow them in a machine, two links each.
    pub(super) fn links(&self) -> usize {
        self.parts.links.len()
    }

    /// Whether a cable may join connectors: of different boards, not of two hosts.
    pub(super) fn may_join(&self, a: usize, b: usize) -> bool {
        let is_host = |unit: usize| self.units[unit].node.kind == NodeKind::Host;
        self.board_of[a] != self.board_of[b] && !(is_host(a) && is_host(b))
    }

    /// The nodes of a pair of units, the lesser one first.
    pub(super) fn nodes(&self, (a, b): (usize, usize)) -> (usize, usize) {
        let (a, b) = (self.ports[a].0 as usize, self.ports[b].0 as usize);
        (a.min(b), a.max(b))
    }

    /// The machine: the boards, then the cables in the order of the design at the first ports of connectors, with the lesser
    /// bandwidth of both in each direction.
    pub(super) fn system(&self, design: &Design<'_>, demands: &Demands) -> SystemGraph {
        let mut system = self.parts.clone();
        let mut next = vec![0; self.units.len()];
        for (&(a, b), &cables) in &design.cables {
            for _ in 0..cables {
                let mut port = |unit: usize| {
                    next[unit] += 1;
                    self.ports[unit].1.get(next[unit] - 1).copied()
                };
                let link = Link {
                    source_port: port(a),
                    destination_port: port(b),
                    bandwidth_bytes_per_s: Some(self.units[a].bandwidth.min(self.units[b].bandwidth)),
                    ..Link::new(self.ports[a].0, self.ports[b].0)
                };
                system.links.extend([link, link.reversed()]);
            }
        }
        slots(&mut system, demands);
        system
    }

    /// The hosts, each with one port that has the bandwidth of all its links and connectors.
    pub(crate) fn hosts(&self) -> Vec<Component> {
        let mut widths = vec![[0.0; 2]; self.parts.nodes.len()];
        for link in &self.parts.links {
            let width = link.bandwidth_bytes_per_s.unwrap_or(f64::INFINITY);
            widths[link.source as usize][0] += width;
            widths[link.destination as usize][1] += width;
        }
        for (unit, (node, ports)) in self.units.iter().zip(&self.ports) {
            widths[*node as usize].iter_mut().for_each(|width| *width += unit.bandwidth * ports.len() as f64);
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

/// A machine that does.
#[derive(Debug, Clone)]
pub(super) struct Found {
    /// What boards and cables cost.
    pub(super) cost: f64,
    /// The objective (11).
    pub(super) objective: f64,
    /// How many boards of every type there are.
    pub(super) counts: Vec<usize>,
    /// How many cables join two units of the assembly.
    pub(super) cables: BTreeMap<(usize, usize), u32>,
}

/// Takes a design as the best machine if it is.
pub(super) fn offer(
    best: &mut Option<Found>,
    assembly: &Assembly,
    counts: &[usize],
    design: &Design<'_>,
    inventory: &Inventory,
    judge: &mut Judge<'_>,
) -> Result<(), Error> {
    let cost = assembly.cost + inventory.cable_cost * f64::from(design.count());
    let known = best.as_ref().map(|best| (best.cost, best.objective));
    if inventory.cables.is_some_and(|most| design.count() > most)
        || !is_better(known, (cost, f64::NEG_INFINITY))
    {
        return Ok(());
    }
    let system = assembly.system(design, &judge.graph.demands);
    let Some(objective) = objective(judge, &system)? else { return Ok(()) };
    if is_better(known, (cost, objective)) {
        *best = Some(Found { cost, objective, counts: counts.to_vec(), cables: design.cables.clone() });
    }
    Ok(())
}
