//! Tests of paths.

use super::*;
use crate::system_graph::tests::small_tree;
use crate::system_graph::{
    CostModel, Forward, Levels, Link, Node, RouteCosts, RouteMetric, Routing, Slot, Ties,
};

#[test]
fn hops_and_links_of_a_small_tree() {
    let system = small_tree();
    let paths = Paths::new(&system).unwrap();
    let tree = paths.tree().unwrap();
    assert_eq!([0, 1, 2, 3].map(|host| paths.hops(0, host)), [0, 2, 4, 4].map(Some));
    assert_eq!([0, 3, 4, 6].map(|node| tree.parent(node)), [Some(4), Some(5), Some(6), None]);
    let ends = |&link: &u32| (system.links[link as usize].source, system.links[link as usize].destination);
    let path = paths.path(0, 2).unwrap();
    assert_eq!(path.iter().map(ends).collect::<Vec<_>>(), [(0, 4), (4, 6), (6, 5), (5, 2)]);
    let mut walked = Vec::new();
    assert!(paths.walk(0, 2, |link| walked.push(link)));
    walked.sort_unstable();
    assert_eq!(walked, {
        let mut path = path;
        path.sort_unstable();
        path
    });
}

#[test]
fn no_links_no_paths() {
    let mut system = small_tree();
    system.links.clear();
    assert!(Paths::new(&system).is_none());
}

/// Hosts in a ring, each with one slot.
fn ring(hosts: u32) -> SystemGraph {
    let both = |host: u32| [(host, (host + 1) % hosts), ((host + 1) % hosts, host)];
    SystemGraph {
        nodes: (0..hosts).map(|host| Node::host(format!("h{host}"))).collect(),
        links: (0..hosts).flat_map(both).map(|(a, b)| Link::new(a, b)).collect(),
        slots: (0..hosts).map(|host| Slot { host, core: 0 }).collect(),
        cost: CostModel::Routes(RouteCosts {
            metric: RouteMetric::Hops,
            inside: Levels { costs: vec![0.0], groups: vec![(0..hosts).collect()] },
        }),
        routing: Routing { ties: Ties::First, ..Routing::default() },
        calibration: Vec::new(),
    }
}

#[test]
fn paths_in_a_ring_take_the_shorter_direction() {
    let mut system = ring(6);
    system.check().unwrap();
    let paths = Paths::new(&system).unwrap();
    assert!(paths.tree().is_none());
    assert_eq!((0..6).map(|b| paths.hops(0, b).unwrap()).collect::<Vec<_>>(), [0, 1, 2, 3, 2, 1]);
    // Opposite hosts: the first link of a node leads to the next one.
    assert_eq!(paths.path(0, 3).unwrap(), [0, 2, 4]);
    let costs = system.costs();
    assert_eq!([0, 1, 3].map(|b| costs.between(0, b) as u32), [0, 1, 3]);
    // With the link between 0 and 1 down, the path goes all the way round.
    system.links[0].state = LinkState::Down;
    system.links[1].state = LinkState::Down;
    assert_eq!(Paths::new(&system).unwrap().hops(0, 1), Some(5));
}

/// Two leaves with two hosts each, two spines, each leaf connected to each spine.
fn two_spines() -> SystemGraph {
    let mut nodes: Vec<Node> = (0..4).map(|host| Node::host(format!("h{host}"))).collect();
    nodes.extend(["leaf0", "leaf1", "spine0", "spine1"].map(Node::switch));
    let ends = [(0, 4), (1, 4), (2, 5), (3, 5), (4, 6), (4, 7), (5, 6), (5, 7)];
    let links = ends.into_iter().flat_map(|(a, b)| [Link::new(a, b), Link::new(b, a)]);
    let inside = Levels { costs: vec![0.0], groups: vec![(0..4).collect()] };
    SystemGraph {
        nodes,
        links: links.collect(),
        slots: (0..4).map(|host| Slot { host, core: 0 }).collect(),
        cost: CostModel::Routes(RouteCosts { metric: RouteMetric::Hops, inside }),
        routing: Routing::default(),
        calibration: Vec::new(),
    }
}

#[test]
fn destinations_are_spread_over_equal_paths() {
    let system = two_spines();
    system.check().unwrap();
    let paths = Paths::new(&system).unwrap();
    let spine = |a, b| system.links[paths.path(a, b).unwrap()[1] as usize].destination;
    assert_eq!([spine(0, 2), spine(0, 3), spine(1, 2), spine(1, 3)], [6, 7, 6, 7]);
    assert_eq!([spine(2, 0), spine(2, 1)], [6, 7]);
    let explicit = system.explicit(4).unwrap();
    let CostModel::Levels(levels) = &explicit.cost else { panic!("a tree") };
    assert_eq!(levels.costs, [0.0, 2.0, 4.0]);
    assert_eq!(levels.groups, [vec![0, 1, 2, 3], vec![0, 0, 1, 1], vec![0, 0, 0, 0]]);
}

#[test]
fn forwarding_tables_are_followed_and_missing_entries_are_unreachable() {
    let mut system = two_spines();
    let link = |a: u32, b: u32| {
        system.links.iter().position(|link| (link.source, link.destination) == (a, b)).unwrap() as u32
    };
    // All traffic over the second spine, and no entry there for h3.
    let hops = [(4, 2, 7), (4, 3, 7), (7, 2, 5), (5, 2, 2), (5, 3, 3), (4, 1, 1), (4, 0, 0)];
    let entry = |(node, host, next)| Forward {
        node,
        last: link(if host < 2 { 4 } else { 5 }, host),
        link: link(node, next),
    };
    let mut forwarding: Vec<Forward> = hops.map(entry).into();
    forwarding.sort_unstable();
    system.routing.forwarding = forwarding;
    system.check().unwrap();
    let paths = Paths::new(&system).unwrap();
    let nodes = |a, b| {
        let path = paths.path(a, b)?;
        Some(path.into_iter().map(|link| system.links[link as usize].destination).collect::<Vec<_>>())
    };
    assert_eq!(nodes(0, 2), Some(vec![4, 7, 5, 2]));
    assert_eq!(nodes(0, 1), Some(vec![4, 1]));
    assert_eq!([nodes(0, 3), nodes(2, 0)], [None, None]);
    assert_eq!(nodes(2, 3), Some(vec![5, 3]));
    assert!(system.costs().between(0, 3).is_infinite());
    let message = system.explicit(4).unwrap_err().to_string();
    assert!(message.starts_with("host `"), "{message}");
    system.routing.forwarding.swap(0, 1);
    assert!(system.check().unwrap_err().to_string().contains("forwarding"));
}

#[test]
fn hops_by_tables_are_the_lengths_of_paths() {
    // All tables for messages to h3: entries that reach it, form loops, lead to other hosts, or are missing.
    let mut system = two_spines();
    let leaving = |node: u32| -> Vec<Option<u32>> {
        let links = (0..system.links.len() as u32).filter(|&link| system.links[link as usize].source == node);
        links.map(Some).chain([None]).collect()
    };
    let choices = [4, 5, 6, 7].map(leaving);
    let last = system.links.iter().position(|link| link.destination == 3).unwrap() as u32;
    let mut lengths = std::collections::BTreeSet::new();
    for number in 1..choices.iter().map(Vec::len).product() {
        let mut rest = number;
        system.routing.forwarding.clear();
        for (node, links) in (4..).zip(&choices) {
            let link = links[rest % links.len()];
            rest /= links.len();
            system.routing.forwarding.extend(link.map(|link| Forward { node, last, link }));
        }
        if system.routing.forwarding.is_empty() {
            continue;
        }
        system.check().unwrap();
        let paths = Paths::new(&system).unwrap();
        for host in 0..3 {
            let length = paths.path(host, 3).map(|links| links.len() as u32);
            assert_eq!(paths.hops(host, 3), length, "from h{host} by table {number}");
            lengths.insert(length);
        }
    }
    assert_eq!(lengths.into_iter().collect::<Vec<_>>(), [None, Some(2), Some(4)]);
}

#[test]
fn partners_are_spread_over_the_ports_of_hosts() {
    // Two hosts with two ports each, one switch per port number: rails.
    let mut system = two_spines();
    system.nodes = vec![Node::host("a"), Node::host("b"), Node::host("c")];
    system.nodes.extend([Node::switch("rail0"), Node::switch("rail1")]);
    let ends = (0..3).flat_map(|host| [(host, 3), (host, 4)]);
    system.links = ends.flat_map(|(a, b)| [Link::new(a, b), Link::new(b, a)]).collect();
    let paths = Paths::new(&system).unwrap();
    let rail = |a, b| system.links[paths.path(a, b).unwrap()[0] as usize].destination;
    assert_eq!([rail(0, 1), rail(1, 0), rail(0, 2), rail(1, 2)], [4, 4, 3, 4]);
    assert_eq!(paths.hops(0, 2), Some(2));
}

#[test]
fn hosts_with_several_ports_do_not_forward() {
    // c has ports to both leaves, so a route through it would be as short as one through the spine.
    let mut system = two_spines();
    system.nodes = ["a", "b", "c"].map(Node::host).to_vec();
    system.nodes.extend(["leaf0", "leaf1", "spine"].map(Node::switch));
    let ends = [(2, 3), (2, 4), (0, 3), (1, 4), (3, 5), (4, 5)];
    system.links = ends.into_iter().flat_map(|(a, b)| [Link::new(a, b), Link::new(b, a)]).collect();
    let paths = Paths::new(&system).unwrap();
    let nodes = |a, b| -> Vec<u32> {
        paths.path(a, b).unwrap().iter().map(|&link| system.links[link as usize].destination).collect()
    };
    assert_eq!(nodes(1, 0), [4, 5, 3, 0]);
    assert_eq!(nodes(0, 1), [3, 5, 4, 1]);
    assert_eq!(paths.hops(0, 1), Some(4));
    assert_eq!(nodes(2, 1), [4, 1]);
}

#[test]
fn path_times_use_the_narrowest_link() {
    let mut system = two_spines();
    for (index, link) in system.links.iter_mut().enumerate() {
        link.latency_s = Some(1e-6);
        link.bandwidth_bytes_per_s = Some(if index < 8 { 1e9 } else { 4e9 });
    }
    let CostModel::Routes(routes) = &mut system.cost else { unreachable!() };
    routes.metric = RouteMetric::Time { bytes: 1000 };
    system.check().unwrap();
    assert!((system.costs().between(0, 3) - 5.0).abs() < 1e-9);
    let explicit = system.explicit(4).unwrap();
    assert!((explicit.costs().between(0, 1) - 3.0).abs() < 1e-9);
    system.links[3].latency_s = None;
    assert!(system.check().unwrap_err().to_string().contains("link 3"));
}

/// Hosts were joined by trying all pairs of their ports, and every choice looked at all links of a switch: minutes for hundreds
/// of cables.
#[test]
fn thousands_of_parallel_links_are_no_more_work_than_one() {
    let (hosts, cables) = (64, 20_000);
    let mut system = ring(hosts);
    system.nodes.extend(["s0", "s1"].map(Node::switch));
    let both = |(a, b): (u32, u32)| [Link::new(a, b), Link::new(b, a)];
    let cable =
        |number: u32| if number < cables { (hosts, hosts + 1) } else { (number % 2, hosts + number % 2) };
    system.links = (0..2 * cables).map(cable).flat_map(both).collect();
    system.links.extend((2..hosts).flat_map(|host| both((host, hosts + host % 2))));
    system.routing.ties = Ties::Spread;
    let paths = Paths::new(&system).unwrap();
    for (a, b) in (0..hosts).flat_map(|a| (0..hosts).map(move |b| (a, b))).filter(|(a, b)| a != b) {
        let expected = 2 + (a % 2).abs_diff(b % 2);
        assert_eq!(
            (paths.hops(a, b), paths.path(a, b).map(|path| path.len() as u32)),
            (Some(expected), Some(expected))
        );
    }
}
