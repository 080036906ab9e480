//! Pictures of routes are valid XML, small, and nothing in them overlaps.

use hopmap_model::{
    CostModel, Link, LinkState, Mapping, Matrix, Node, NodeState, Route, Routes, Routing, Slot, SwitchType,
    SystemGraph, TableEntry, Tables, Weight,
};
use hopmap_views::{Routed, route_loads, routes};
use proptest::prelude::*;

const NASTY: &str = "<b>&\"'\u{0}\u{7}]]>é漢";

/// The text of all elements, after checking what every picture promises.
fn check(picture: &str, limit: usize) -> String {
    assert!(picture.len() < limit, "{} bytes", picture.len());
    let document = roxmltree::Document::parse(picture).unwrap();
    assert!(
        document
            .descendants()
            .all(|node| node.tag_name().name() != "script" && node.attribute("id").is_none())
    );
    assert!(!picture.contains("NaN") && !picture.contains("inf"), "a number is missing");
    document
        .descendants()
        .filter(roxmltree::Node::is_text)
        .filter_map(|node| node.text())
        .collect::<Vec<_>>()
        .join("\n")
}

/// A machine of nodes, hosts first, with cables between them: a link each way of bandwidth 4.
fn machine(hosts: u32, switches: u32, cables: &[(u32, u32)], name: &str) -> SystemGraph {
    let node = |index: u32| match index < hosts {
        true => Node::host(format!("{name}h{index}")),
        false => {
            let mut node = Node::switch(format!("{name}s{index}"));
            node.traits.switch_type =
                Some(if index.is_multiple_of(2) { SwitchType::One } else { SwitchType::Two });
            node
        }
    };
    let link = |(port, &(a, b)): (u32, &(u32, u32))| {
        let link = Link {
            bandwidth_bytes_per_s: Some(4.0),
            source_port: Some(port),
            destination_port: Some(port),
            ..Link::new(a, b)
        };
        [link, link.reversed()]
    };
    SystemGraph {
        nodes: (0..hosts + switches).map(node).collect(),
        links: (0..).zip(cables).flat_map(link).collect(),
        slots: (0..hosts).map(|host| Slot { host, core: 0 }).collect(),
        cost: CostModel::Matrix(Matrix { costs: vec![0.0; (hosts * hosts) as usize] }),
        routing: Routing::default(),
        calibration: Vec::new(),
    }
}

/// Hosts at every switch, whose cables are given by the places of switches.
fn with_hosts(switches: u32, each: u32, between: &[(u32, u32)], name: &str) -> SystemGraph {
    let hosts = switches * each;
    let at_hosts = (0..hosts).map(|host| (host, hosts + host / each.max(1)));
    let cables: Vec<(u32, u32)> =
        at_hosts.chain(between.iter().map(|&(a, b)| (hosts + a, hosts + b))).collect();
    machine(hosts, switches, &cables, name)
}

fn mesh(columns: u32, rows: u32) -> Vec<(u32, u32)> {
    let right = (0..columns * rows).filter(|node| node % columns + 1 < columns).map(|node| (node, node + 1));
    let down = (0..columns * (rows - 1)).map(|node| (node, node + columns));
    right.chain(down).collect()
}

/// A shortest way from every host to the one `step` numbers on, as far as there is one.
fn shortest(system: &SystemGraph, step: u32) -> Routes {
    let hosts = system.slots.len() as u32;
    let mut leaving = vec![Vec::new(); system.nodes.len()];
    for (index, link) in (0_u32..).zip(&system.links) {
        leaving[link.source as usize].push((index, link.destination));
    }
    let way = |source: u32, destination: u32| -> Option<Vec<u32>> {
        let mut by: Vec<Option<u32>> = vec![None; system.nodes.len()];
        let mut queue = vec![source];
        let mut next = 0;
        while let Some(&node) = queue.get(next) {
            next += 1;
            for &(index, other) in &leaving[node as usize] {
                if other != source && by[other as usize].is_none() {
                    by[other as usize] = Some(index);
                    queue.push(other);
                }
            }
        }
        let (mut links, mut at) = (Vec::new(), destination);
        while at != source {
            let link = by[at as usize]?;
            links.push(link);
            at = system.links[link as usize].source;
        }
        links.reverse();
        Some(links)
    };
    let route = |source: u32| {
        let destination = (source + step) % hosts;
        let links = way(source, destination)?;
        Some(Route { source, destination, bandwidth_bytes_per_s: 1.0, streams: vec![source], links })
    };
    Routes { routes: (0..hosts).filter_map(route).collect(), ..Routes::default() }
}

fn routed<'a>(system: &'a SystemGraph, routes: &'a Routes) -> Routed<'a> {
    Routed { system, routes, tables: None, graph: None, mapping: None }
}

/// Boxes of nodes: left, top, right and bottom.
fn boxes(picture: &str) -> Vec<[f64; 4]> {
    let document = roxmltree::Document::parse(picture).unwrap();
    let nodes = document.descendants().filter(|node| node.attribute("class") == Some("b"));
    nodes
        .map(|node| {
            let [x, y, width, height] = ["x", "y", "width", "height"]
                .map(|name| node.attribute(name).unwrap().parse::<f64>().unwrap());
            [x, y, x + width, y + height]
        })
        .collect()
}

fn assert_apart(picture: &str) {
    let boxes = boxes(picture);
    for (index, a) in boxes.iter().enumerate() {
        for b in &boxes[..index] {
            let overlap = a[0] < b[2] && b[0] < a[2] && a[1] < b[3] && b[1] < a[3];
            assert!(!overlap, "{a:?} and {b:?}");
        }
    }
}

#[test]
fn meshes_rings_and_trees_have_a_box_for_every_node() {
    let ring: Vec<(u32, u32)> = (0..8).map(|node| (node, (node + 1) % 8)).collect();
    let tree: Vec<(u32, u32)> = (0..4).flat_map(|leaf| [(leaf, 4), (leaf, 5)]).collect();
    let mut systems = vec![
        with_hosts(8, 2, &mesh(4, 2), ""),
        with_hosts(16, 4, &mesh(4, 4), ""),
        with_hosts(8, 1, &ring, ""),
        with_hosts(1, 40, &[], ""),
        machine(9, 0, &mesh(3, 3), ""),
        machine(5, 0, &[], ""),
    ];
    let cables: Vec<(u32, u32)> =
        (0..12).map(|host| (host, 12 + host / 3)).chain(tree.iter().map(|(a, b)| (12 + a, 12 + b))).collect();
    systems.push(machine(12, 6, &cables, ""));
    for system in &systems {
        let picture = routes(&routed(system, &shortest(system, 3)));
        check(&picture, 300_000);
        assert_eq!(boxes(&picture).len(), system.nodes.len());
        assert_apart(&picture);
    }
}

#[test]
fn every_link_has_its_load() {
    let system = with_hosts(8, 2, &mesh(4, 2), "");
    let routes_of = shortest(&system, 5);
    let text = check(&routes(&routed(&system, &routes_of)), 200_000);
    for (index, link) in (0..).zip(&system.links) {
        let load = routes_of.routes.iter().filter(|route| route.links.contains(&index)).count();
        let [from, to] = [link.source, link.destination].map(|node| &system.nodes[node as usize].name);
        let said = match load {
            0 => format!("{from} → {to}: idle, bandwidth 4 B/s"),
            _ => format!("{from} → {to}: {load} B/s of 4 B/s ("),
        };
        assert_eq!(text.matches(&said).count(), 1, "{said}");
    }
    let longest = routes_of.routes.iter().map(|route| route.links.len()).max().unwrap();
    assert!(text.contains(&format!("longest route {longest} hops")), "{text}");
}

#[test]
fn overload_cycles_and_what_is_down_are_marked() {
    let ring: Vec<(u32, u32)> = (0..4).map(|node| (node, (node + 1) % 4)).collect();
    let mut system = with_hosts(4, 1, &ring, "");
    let mut all = shortest(&system, 2);
    all.routes.iter_mut().for_each(|route| route.bandwidth_bytes_per_s = 5.0);
    all.cycle = (8..16).step_by(2).collect();
    let text = check(&routes(&routed(&system, &all)), 100_000);
    for part in ["overloaded", "possible deadlock: cycle of 4 links", "5 B/s of 4 B/s (125 %)"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let bars = check(&route_loads(&routed(&system, &all)), 100_000);
    assert!(bars.contains("overloaded") && bars.contains("10 B/s of 4 B/s (250 %)"), "{bars}");
    system.links[0].state = LinkState::Down;
    system.nodes[1].state = NodeState::Down;
    system.links[3].bandwidth_bytes_per_s = None;
    let text = check(&routes(&routed(&system, &all)), 100_000);
    assert!(text.contains("down, 5 B/s routed over it") && text.contains("bandwidth not known"), "{text}");
}

#[test]
fn without_streams_the_network_is_drawn() {
    let system = with_hosts(3, 1, &[(0, 1), (1, 2), (2, 0)], NASTY);
    let none = Routes::default();
    let text = check(&routes(&routed(&system, &none)), 100_000);
    assert!(text.contains("<b>&\"'") && text.contains("idle") && !text.contains("stream\n"), "{text}");
    assert!(check(&route_loads(&routed(&system, &none)), 20_000).contains("no traffic on any of 12 links"));
    let nothing = machine(0, 0, &[], "");
    check(&routes(&routed(&nothing, &none)), 20_000);
    check(&route_loads(&routed(&nothing, &none)), 20_000);
}

#[test]
fn processes_and_entries_are_named() {
    let system = with_hosts(3, 1, &[(0, 1), (1, 2), (2, 0)], NASTY);
    let routes_of = shortest(&system, 1);
    let mapping = Mapping::new(&[2, 0, 1], &system, Weight::Bytes).unwrap();
    let entry = TableEntry { switch: 3, input_port: None, destination: 1, output_port: 3 };
    let tables = Tables { entries: vec![entry], ..Tables::default() };
    let whole = Routed { tables: Some(&tables), mapping: Some(&mapping), ..routed(&system, &routes_of) };
    let text = check(&routes(&whole), 100_000);
    for part in
        ["runs 0", "1 entry", "0 entries", "type 2: a table for every port", "sends 1 B/s, receives 1 B/s"]
    {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn large_networks_stay_small() {
    // Only switches, with the number of their hosts.
    let system = with_hosts(256, 4, &mesh(16, 16), "");
    let picture = routes(&routed(&system, &shortest(&system, 300)));
    let text = check(&picture, 900_000);
    assert!(text.contains("4 hosts") && text.contains("and 1,000 more"), "{text}");
    assert_eq!(boxes(&picture).len(), 256);
    assert_apart(&picture);
    // A network of its busiest links.
    let all: Vec<(u32, u32)> = (0..100).flat_map(|a| (a + 1..100).map(move |b| (a, b))).collect();
    let system = with_hosts(100, 1, &all, "");
    let text = check(&routes(&routed(&system, &shortest(&system, 7))), 900_000);
    assert!(text.contains("the busiest 2,000 of 9,900 links"), "{text}");
    // Nothing but a table.
    let system = with_hosts(2500, 4, &mesh(50, 50), &"n".repeat(200));
    let few = Routes { routes: shortest(&with_hosts(1, 30, &[], ""), 1).routes, ..Routes::default() };
    let text = check(&routes(&routed(&system, &few)), 200_000);
    assert!(text.contains("too large to be drawn") && text.contains("and 6 more"), "{text}");
    check(&route_loads(&routed(&system, &few)), 100_000);
}

#[test]
fn routes_of_another_machine_are_no_panic() {
    let system = with_hosts(2, 1, &[(0, 1)], "");
    let strange = Routes {
        routes: vec![Route {
            source: 9,
            destination: 99,
            bandwidth_bytes_per_s: 1.0,
            streams: vec![7],
            links: vec![0, 500],
        }],
        cycle: vec![400],
        ..Routes::default()
    };
    check(&routes(&routed(&system, &strange)), 100_000);
    check(&route_loads(&routed(&system, &strange)), 100_000);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    /// Trees with some more cables, some of them twice, with hosts here and there.
    #[test]
    fn boxes_of_any_network_are_apart(
        above in proptest::collection::vec(any::<prop::sample::Index>(), 0..18),
        more in proptest::collection::vec((0_u32..19, 0_u32..19), 0..12),
        homes in proptest::collection::vec(0_u32..19, 0..30),
        step in 1_u32..5,
    ) {
        let switches = above.len() as u32 + 1;
        let hosts = homes.len() as u32;
        let tree = above.iter().zip(1_u32..).map(|(above, node)| (above.index(node as usize) as u32, node));
        let more = more.iter().map(|&(a, b)| (a % switches, b % switches));
        let between = tree.chain(more).map(|(a, b)| (hosts + a, hosts + b));
        let at_hosts = homes.iter().zip(0..).map(|(&home, host)| (host, hosts + home % switches));
        let cables: Vec<(u32, u32)> = at_hosts.chain(between).collect();
        let system = machine(hosts, switches, &cables, "");
        let all = if hosts == 0 { Routes::default() } else { shortest(&system, step) };
        let picture = routes(&routed(&system, &all));
        check(&picture, 400_000);
        prop_assert_eq!(boxes(&picture).len(), system.nodes.len());
        assert_apart(&picture);
        prop_assert_eq!(routes(&routed(&system, &all)), picture);
    }
}
