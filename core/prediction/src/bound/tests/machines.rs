//! Machines of the tests.

use hopmap_model::{
    CostModel, Levels, Link, Node, RouteCosts, RouteMetric, Routing, Slot, SystemGraph, Ties,
};

/// A machine under construction.
pub(in crate::bound) struct Builder {
    system: SystemGraph,
    slots: Vec<(u32, u32)>,
}

impl Builder {
    pub(in crate::bound) fn new(ties: Ties) -> Self {
        let system = SystemGraph {
            nodes: Vec::new(),
            links: Vec::new(),
            slots: Vec::new(),
            cost: CostModel::Levels(Levels::default()),
            routing: Routing { forwarding: Vec::new(), ties },
            calibration: Vec::new(),
        };
        Self { system, slots: Vec::new() }
    }

    pub(in crate::bound) fn switch(&mut self) -> u32 {
        let number = self.system.nodes.len() as u32;
        self.system.nodes.push(Node::switch(format!("s{number}")));
        number
    }

    pub(in crate::bound) fn host(&mut self, slots: u32) -> u32 {
        let number = self.system.nodes.len() as u32;
        self.system.nodes.push(Node::host(format!("h{number}")));
        self.slots.push((number, slots));
        number
    }

    /// Links in both directions: latency in seconds, bandwidth in bytes per second.
    pub(in crate::bound) fn link(&mut self, a: u32, b: u32, (latency_s, bandwidth): (f64, f64)) {
        let link =
            Link { latency_s: Some(latency_s), bandwidth_bytes_per_s: Some(bandwidth), ..Link::new(a, b) };
        self.system.links.extend([link, link.reversed()]);
    }

    pub(in crate::bound) fn build(mut self) -> SystemGraph {
        for &(host, slots) in &self.slots {
            self.system.slots.extend((0..slots).map(|core| Slot { host, core }));
        }
        let groups = self.system.slots.iter().map(|slot| slot.host).collect();
        let inside = Levels { costs: vec![0.0], groups: vec![groups] };
        self.system.cost = CostModel::Routes(RouteCosts { metric: RouteMetric::Hops, inside });
        self.system.check().unwrap();
        self.system
    }
}

/// A tree of switches: the number of children on each level from the root, and slots per host.
pub(in crate::bound) fn tree(arities: &[u32], slots: u32, rate: (f64, f64)) -> SystemGraph {
    let mut builder = Builder::new(Ties::Spread);
    let mut level = vec![builder.switch()];
    for (depth, &arity) in arities.iter().enumerate() {
        let is_last = depth + 1 == arities.len();
        let mut next = Vec::new();
        for &parent in &level {
            for _ in 0..arity {
                let child = if is_last { builder.host(slots) } else { builder.switch() };
                builder.link(child, parent, rate);
                next.push(child);
            }
        }
        level = next;
    }
    builder.build()
}

/// Leaf switches with hosts, each connected to all spine switches.
pub(in crate::bound) fn fat_tree(
    leaves: u32,
    hosts: u32,
    spines: u32,
    slots: u32,
    rate: (f64, f64),
) -> SystemGraph {
    let mut builder = Builder::new(Ties::Spread);
    let spines: Vec<u32> = (0..spines).map(|_| builder.switch()).collect();
    for _ in 0..leaves {
        let leaf = builder.switch();
        spines.iter().for_each(|&spine| builder.link(leaf, spine, rate));
        for _ in 0..hosts {
            let host = builder.host(slots);
            builder.link(host, leaf, rate);
        }
    }
    builder.build()
}

/// A torus of switches with a host each, dimension-order routes. `ways` are the sizes of its two dimensions.
pub(in crate::bound) fn torus(ways: (u32, u32), slots: u32, rate: (f64, f64)) -> SystemGraph {
    let mut builder = Builder::new(Ties::First);
    let switches: Vec<u32> = (0..ways.0 * ways.1).map(|_| builder.switch()).collect();
    let at = |x: u32, y: u32| switches[(x % ways.0 * ways.1 + y % ways.1) as usize];
    for x in 0..ways.0 {
        for y in 0..ways.1 {
            if ways.1 > 2 || y + 1 < ways.1 {
                builder.link(at(x, y), at(x, y + 1), rate);
            }
        }
    }
    for x in 0..ways.0 {
        for y in 0..ways.1 {
            if ways.0 > 2 || x + 1 < ways.0 {
                builder.link(at(x, y), at(x + 1, y), rate);
            }
        }
    }
    for &switch in &switches {
        let host = builder.host(slots);
        builder.link(host, switch, rate);
    }
    builder.build()
}

/// Hosts in a ring that forward.
pub(in crate::bound) fn ring_of_hosts(hosts: u32, slots: u32, rate: (f64, f64)) -> SystemGraph {
    let mut builder = Builder::new(Ties::First);
    let nodes: Vec<u32> = (0..hosts).map(|_| builder.host(slots)).collect();
    for index in 0..nodes.len() {
        builder.link(nodes[index], nodes[(index + 1) % nodes.len()], rate);
    }
    builder.build()
}
