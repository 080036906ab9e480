//! The emulated network takes the links that mappers expect: it reads the machine as hopmap exports it.

use hopmap_artifact::Folder;
use hopmap_model::{
    CostModel, Forward, Levels, Link, LinkState, Node, NodeKind, NodeState, Paths, Routing, Slot,
    SystemGraph, Ties,
};
use hopmap_test_network::Description;
use hopmap_test_support::{Random, seeds};

use crate::sandbox::Sandbox;

#[test]
fn an_emulated_machine_has_the_routes_of_the_mappers() {
    for shape in ["tree:2x3x2", "fat-tree:3x2x2", "torus:3x4", "mesh:3x2x2", "ring:5", "dragonfly:4x2x2"] {
        let sandbox = Sandbox::new();
        let shape_word = format!("shape={shape}");
        sandbox.stdout(&["exec", "topology/synthetic", "-p", &shape_word, "--out", "machine"]);
        let mut system: SystemGraph = Folder::read(&sandbox.path().join("machine")).unwrap();
        assert_same_routes(&system, shape);
        // Hosts behind one that is down keep their numbers, by which routes are chosen.
        system.nodes[1].state = NodeState::Down;
        system.links[0].state = LinkState::Down;
        assert_same_routes(&system, &format!("{shape} with a host and a link down"));
    }
}

#[test]
fn hosts_with_several_ports_use_those_of_the_mappers() {
    // Two rails, to which the last host has one port only.
    let ends = [(0, 4), (0, 5), (1, 4), (1, 5), (2, 4), (2, 5), (3, 5), (4, 5)];
    let mut system = machine(4, 2, &ends);
    assert_same_routes(&system, "rails");
    system.nodes[0].state = NodeState::Down;
    assert_same_routes(&system, "rails with a host down");
    system.nodes[0].state = NodeState::Up;
    give_tables(&mut system, &mut Random(1));
    assert_same_routes(&system, "rails with forwarding tables");
}

#[test]
fn random_machines_have_the_routes_of_the_mappers() {
    for seed in seeds(20, 2000) {
        let system = random_machine(&mut Random(seed));
        assert_same_routes(&system, &format!("seed {seed}"));
    }
}

fn assert_same_routes(system: &SystemGraph, what: &str) {
    let sandbox = Sandbox::new();
    system.check().unwrap();
    Folder::write(&sandbox.path().join("machine"), system).unwrap();
    let export = ["exec", "topology/export", "--in", "system=machine", "-p", "format=graph-json"];
    sandbox.stdout(&[&export[..], &["--out", "file"]].concat());
    let emulated = Description::read_machine(&sandbox.path().join("file/files/machine.json")).unwrap();
    let paths = Paths::new(system).unwrap();
    // What is down has no number in the network.
    let is_up = |node: u32| system.nodes[node as usize].state == NodeState::Up;
    let hosts: Vec<u32> = (0..system.nodes.len() as u32)
        .filter(|&node| system.nodes[node as usize].kind == NodeKind::Host && is_up(node))
        .collect();
    let links: Vec<u32> = (0..system.links.len() as u32)
        .filter(|&link| {
            let Link { source, destination, state, .. } = system.links[link as usize];
            state == LinkState::Up && is_up(source) && is_up(destination) && source != destination
        })
        .collect();
    assert_eq!((hosts.len(), links.len()), (emulated.hosts.len(), emulated.links.len()), "{what}");
    for (from, &a) in hosts.iter().enumerate() {
        for (to, &b) in hosts.iter().enumerate().filter(|(_, b)| **b != a) {
            let route: Vec<u32> = emulated.route(from, to).iter().map(|&link| links[link]).collect();
            assert_eq!(route, paths.path(a, b).unwrap_or_default(), "{what}: {from} to {to}");
        }
    }
}

/// Hosts, then switches, with links in both directions.
fn machine(hosts: u32, switches: u32, ends: &[(u32, u32)]) -> SystemGraph {
    let links = ends.iter().flat_map(|&(a, b)| [Link::new(a, b), Link::new(b, a)]);
    SystemGraph {
        nodes: (0..hosts)
            .map(|host| Node::host(format!("h{host}")))
            .chain((0..switches).map(|switch| Node::switch(format!("s{switch}"))))
            .collect(),
        links: links.collect(),
        slots: (0..hosts).map(|host| Slot { host, core: 0 }).collect(),
        cost: CostModel::Levels(Levels { costs: vec![1.0], groups: vec![vec![0; hosts as usize]] }),
        routing: Routing::default(),
        calibration: Vec::new(),
    }
}

/// A few hosts and switches, some of them down, hosts with one to three ports, parallel links, and tables every other time.
fn random_machine(random: &mut Random) -> SystemGraph {
    let (hosts, switches) = (3 + random.below(5), random.below(6));
    let nodes = hosts + switches;
    let mut ends = Vec::new();
    let mut between = |a: usize, b: usize| ends.push((a as u32, b as u32));
    for host in 0..hosts {
        for _ in 0..=random.below(3).min(random.below(3)) {
            between(host, hosts + random.below(switches).min(nodes - hosts));
        }
    }
    for _ in 0..random.below(2 * switches + 3) {
        between(random.below(nodes), random.below(nodes));
    }
    ends.iter_mut().for_each(|(_, b)| *b %= nodes as u32);
    let mut system = machine(hosts as u32, switches as u32, &ends);
    system.routing.ties = if random.below(2) == 0 { Ties::First } else { Ties::Spread };
    for node in &mut system.nodes[2..] {
        node.state = if random.below(8) == 0 { NodeState::Down } else { NodeState::Up };
    }
    for link in &mut system.links {
        link.state = if random.below(12) == 0 { LinkState::Down } else { LinkState::Up };
    }
    if random.below(2) == 0 {
        give_tables(&mut system, random);
    }
    system
}

/// Tables of switches that lead to every port of a host over shortest paths, with gaps; some hosts prefer a port.
fn give_tables(system: &mut SystemGraph, random: &mut Random) {
    let is_host = |node: u32| system.nodes[node as usize].kind == NodeKind::Host;
    let links = || (0_u32..).zip(&system.links);
    let mut forwarding = Vec::new();
    for (last, to_host) in links().filter(|(_, link)| is_host(link.destination)) {
        let mut reached = vec![(to_host.source, last)];
        let mut next = 0;
        while let Some(&(node, link)) = reached.get(next) {
            next += 1;
            if random.below(20) > 0 {
                forwarding.push(Forward { node, last, link });
            }
            for (link, ends) in links().filter(|(_, ends)| ends.destination == node && !is_host(ends.source))
            {
                if reached.iter().all(|(node, _)| *node != ends.source) {
                    reached.push((ends.source, link));
                }
            }
        }
        for (link, ends) in links().filter(|(_, ends)| is_host(ends.source)) {
            if random.below(8) == 0 {
                forwarding.push(Forward { node: ends.source, last, link });
            }
        }
    }
    forwarding.sort_unstable();
    forwarding.dedup_by_key(|entry| (entry.node, entry.last));
    system.routing.forwarding = forwarding;
}
