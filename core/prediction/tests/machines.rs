//! Random machines.

use hopmap_model::{CostModel, Levels, Link, Node, RouteCosts, RouteMetric, Routing, Slot, SystemGraph};
use hopmap_random::{Draw, Pcg64};

/// Shapes of networks.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Shape {
    Star,
    Tree,
    FatTree,
    Torus,
}

pub(crate) const SHAPES: [Shape; 4] = [Shape::Star, Shape::Tree, Shape::FatTree, Shape::Torus];

/// Latency in seconds and bandwidth in bytes per second of a link.
pub(crate) type Speed<'a> = dyn FnMut(&mut Pcg64) -> (f64, f64) + 'a;

/// Builds machines link by link.
struct Builder<'a> {
    nodes: Vec<Node>,
    links: Vec<Link>,
    speed: &'a mut Speed<'a>,
}

impl Builder<'_> {
    fn switches(&mut self, count: u32) -> u32 {
        let first = self.nodes.len() as u32;
        self.nodes.extend((first..first + count).map(|node| Node::switch(format!("s{node}"))));
        first
    }

    /// Links in both directions, of different speed.
    fn join(&mut self, a: u32, b: u32, random: &mut Pcg64) {
        for (source, destination) in [(a, b), (b, a)] {
            let (latency, bandwidth) = (self.speed)(random);
            self.links.push(Link {
                latency_s: Some(latency),
                bandwidth_bytes_per_s: Some(bandwidth),
                ..Link::new(source, destination)
            });
        }
    }
}

/// A machine of hosts with some slots each; the slots of a host share one core, or have one each.
pub(crate) fn machine<'a>(
    shape: Shape,
    hosts: u32,
    (slots, share_core): (u32, bool),
    random: &mut Pcg64,
    speed: &'a mut Speed<'a>,
) -> SystemGraph {
    let nodes = (0..hosts).map(|host| Node::host(format!("h{host}"))).collect();
    let mut builder = Builder { nodes, links: Vec::new(), speed };
    match shape {
        Shape::Star => {
            let centre = builder.switches(1);
            (0..hosts).for_each(|host| builder.join(host, centre, random));
        }
        Shape::Tree => {
            let switches = 1 + hosts.div_ceil(3);
            let first = builder.switches(switches);
            for switch in 1..switches {
                builder.join(first + switch, first + random.below(switch as usize) as u32, random);
            }
            for host in 0..hosts {
                builder.join(host, first + random.below(switches as usize) as u32, random);
            }
        }
        Shape::FatTree => {
            let per_leaf = 4;
            let (leaves, spines) = (hosts.div_ceil(per_leaf), 2 + random.below(3) as u32);
            let (leaf, spine) = (builder.switches(leaves), builder.switches(spines));
            (0..hosts).for_each(|host| builder.join(host, leaf + host / per_leaf, random));
            for a in leaf..leaf + leaves {
                (spine..spine + spines).for_each(|b| builder.join(a, b, random));
            }
        }
        Shape::Torus => {
            let (width, height) = (3, hosts.div_ceil(3).max(3));
            let first = builder.switches(width * height);
            let at = |x: u32, y: u32| first + y % height * width + x % width;
            for y in 0..height {
                for x in 0..width {
                    builder.join(at(x, y), at(x + 1, y), random);
                    builder.join(at(x, y), at(x, y + 1), random);
                }
            }
            (0..hosts).for_each(|host| builder.join(host, first + host, random));
        }
    }
    let Builder { nodes, links, .. } = builder;
    let slot = |slot: u32| Slot { host: slot / slots, core: if share_core { 0 } else { slot % slots } };
    let count = hosts * slots;
    let inside = Levels { costs: vec![0.0], groups: vec![(0..count).map(|slot| slot / slots).collect()] };
    let system = SystemGraph {
        nodes,
        links,
        slots: (0..count).map(slot).collect(),
        cost: CostModel::Routes(RouteCosts { metric: RouteMetric::Hops, inside }),
        routing: Routing::default(),
        calibration: Vec::new(),
    };
    system.check().unwrap();
    system
}
