//! JSON and CSV exports are imported as the same machine.

use std::fs;

use hopmap_model::{
    CostModel, Forward, Levels, Link, LinkState, Matrix, Node, NodeKind, NodeState, NodeTraits, RouteCosts,
    RouteMetric, Routing, Slot, SwitchType, SystemGraph, Ties,
};
use hopmap_topology::export::{ExportFormat, ExportParams, write};
use hopmap_topology_import::import::{ImportParams, read, recognise};
use proptest::prelude::*;

fn again(system: &SystemGraph, format: ExportFormat) -> (SystemGraph, Vec<String>) {
    let (file, lost) = write(system, &ExportParams { format }).unwrap();
    let path = tempfile::NamedTempFile::new().unwrap();
    fs::write(path.path(), &file.text).unwrap();
    let name = recognise(path.path()).unwrap().name();
    assert!(["graph-json", "graph-csv"].contains(&name));
    let networks = if name == "graph-csv" { vec!["*".to_owned()] } else { Vec::new() };
    (read(path.path(), &ImportParams { networks, ..ImportParams::default() }).unwrap().system, lost)
}

fn any_rate() -> impl Strategy<Value = Option<f64>> {
    proptest::option::of(prop_oneof![0.0..1e-3, 1e9..1e12, Just(1.5e-7), Just(0.1 + 0.2)])
}

fn any_link(nodes: u32) -> impl Strategy<Value = Link> {
    let port = || proptest::option::of(any::<u32>());
    (0..nodes, 0..nodes, any_rate(), any_rate(), port(), port(), any::<bool>()).prop_map(
        |(source, destination, latency_s, bandwidth, source_port, destination_port, is_up)| Link {
            latency_s,
            bandwidth_bytes_per_s: bandwidth.filter(|bandwidth| *bandwidth > 0.0),
            source_port,
            destination_port,
            state: if is_up { LinkState::Up } else { LinkState::Down },
            ..Link::new(source, destination)
        },
    )
}

fn any_node() -> impl Strategy<Value = (NodeKind, NodeState, Option<String>, String)> {
    let kind = prop_oneof![Just(NodeKind::Host), Just(NodeKind::Switch)];
    let state = prop_oneof![Just(NodeState::Up), Just(NodeState::Down)];
    (kind, state, proptest::option::of("[0-9a-f]{16}"), "[a-z\",;µ \\\\]{0,5}x")
}

/// Slots on hosts, in another order than the nodes.
fn slots(nodes: &[Node], seed: u32) -> Vec<Slot> {
    let hosts =
        (0..).zip(nodes).filter(|(_, node)| node.kind == NodeKind::Host).map(|(host, _): (u32, _)| host);
    let mut hosts: Vec<u32> = hosts.collect();
    if seed % 2 == 1 {
        hosts.reverse();
    }
    let core = |host: u32| move |core| Slot { host, core: core * (1 + seed % 3) };
    hosts.into_iter().flat_map(|host| (0..(seed + host) % 3).map(core(host))).collect()
}

fn cost(slots: &[Slot], links: &[Link], seed: u32) -> CostModel {
    let count = slots.len() as u32;
    let by_host = |slot: &Slot| slot.host;
    let known = links.iter().all(|link| link.latency_s.is_some());
    let wide = links.iter().all(|link| link.bandwidth_bytes_per_s.is_some());
    let metric = match seed % 5 {
        0 => {
            let groups = vec![slots.iter().map(by_host).collect(), vec![0; slots.len()]];
            return CostModel::Levels(Levels { costs: vec![0.1, 1.0 / 3.0], groups });
        }
        1 => {
            let costs = (0..count * count).map(|cell| f64::from(cell) / 7.0).collect();
            return CostModel::Matrix(Matrix { costs });
        }
        2 if known => RouteMetric::Latency,
        3 if known && wide => RouteMetric::Time { bytes: u64::MAX },
        _ => RouteMetric::Hops,
    };
    let groups = vec![(0..count).collect(), slots.iter().map(by_host).collect()];
    CostModel::Routes(RouteCosts { metric, inside: Levels { costs: vec![0.0, 0.7], groups } })
}

fn forwarding(nodes: &[Node], links: &[Link]) -> Vec<Forward> {
    let into_host = |link: &Link| nodes[link.destination as usize].kind == NodeKind::Host;
    let lasts: Vec<u32> =
        (0..).zip(links).filter(|(_, link)| into_host(link)).map(|(index, _)| index).collect();
    let mut all: Vec<Forward> = Vec::new();
    for (index, link) in (0..).zip(links) {
        all.extend(lasts.iter().map(|&last| Forward { node: link.source, last, link: index }));
    }
    all.sort_unstable();
    all.dedup_by_key(|entry| (entry.node, entry.last));
    all
}

fn any_machine() -> impl Strategy<Value = SystemGraph> {
    (proptest::collection::vec(any_node(), 1..7), any::<u32>())
        .prop_flat_map(|(nodes, seed)| {
            let links = proptest::collection::vec(any_link(nodes.len() as u32), 0..12);
            (Just(nodes), links, Just(seed))
        })
        .prop_map(|(nodes, links, seed)| {
            let node =
                |(index, (kind, state, address, name)): (usize, (_, _, Option<String>, String))| Node {
                    state,
                    traits: traits(index, address.is_some()),
                    address,
                    ..Node::new(format!("{}{index}", name.trim()), kind)
                };
            let nodes: Vec<Node> = nodes.into_iter().enumerate().map(node).collect();
            let slots = slots(&nodes, seed);
            let cost = cost(&slots, &links, seed);
            let forwarding = if seed % 4 == 0 { forwarding(&nodes, &links) } else { Vec::new() };
            let ties = if seed % 8 < 4 { Ties::Spread } else { Ties::First };
            let system = SystemGraph {
                nodes,
                links,
                slots,
                cost,
                routing: Routing { forwarding, ties },
                calibration: Vec::new(),
            };
            system.check().unwrap();
            system
        })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(256) })]

    #[test]
    fn nothing_is_lost_in_json(system in any_machine()) {
        let (found, lost) = again(&system, ExportFormat::GraphJson);
        prop_assert_eq!(found, system);
        prop_assert!(lost.is_empty());
    }

    #[test]
    fn nodes_and_links_stay_in_csv(mut system in any_machine()) {
        // The file contains neither costs nor forwarding tables, nor the tie-breaking rule.
        system.routing = Routing::default();
        // An import needs hosts.
        prop_assume!(!system.links.is_empty() && system.nodes.iter().any(|node| node.kind == NodeKind::Host));
        let (found, lost) = again(&system, ExportFormat::GraphCsv);
        let reported = lost.iter().any(|line| line.contains("capabilities"));
        prop_assert_eq!(reported, system.nodes.iter().any(|node| node.traits != NodeTraits::default()));
        system.nodes.iter_mut().for_each(|node| node.traits = NodeTraits::default());
        prop_assert_eq!(found.nodes, system.nodes);
        prop_assert_eq!(found.links, system.links);
    }
}

#[test]
fn csv_needs_links_and_reports_that_ties_are_lost() {
    let shaped = |shape: &str| {
        let params = serde_json::from_value(serde_json::json!({ "shape": shape })).unwrap();
        hopmap_machines::synthetic(&params).unwrap()
    };
    let params = ExportParams { format: ExportFormat::GraphCsv };
    let refused = write(&shaped("tree:4"), &params).unwrap_err();
    assert_eq!(refused.to_string(), "CSV cannot represent this machine topology: it has no links");
    let (_, lost) = write(&shaped("mesh:4x3"), &params).unwrap();
    assert!(lost.contains(&"the choice among shortest paths".to_owned()), "{lost:?}");
}

#[test]
fn cost_parameters_are_rejected_for_machines_with_costs() {
    let mut system = SystemGraph {
        nodes: vec![Node::host("a")],
        links: Vec::new(),
        slots: vec![Slot { host: 0, core: 0 }],
        cost: CostModel::Matrix(Matrix { costs: vec![0.0] }),
        routing: Routing::default(),
        calibration: Vec::new(),
    };
    let (file, _) = write(&system, &ExportParams { format: ExportFormat::GraphJson }).unwrap();
    let path = tempfile::NamedTempFile::new().unwrap();
    fs::write(path.path(), &file.text).unwrap();
    let params = ImportParams { intra_node_costs: vec![4.0], ..ImportParams::default() };
    let refused = read(path.path(), &params).unwrap_err().to_string();
    assert!(refused.contains("`intra_node_costs` has no effect"), "{refused}");
    fs::write(path.path(), file.text.replace("\"host\"", "\"hist\"")).unwrap();
    assert!(read(path.path(), &ImportParams::default()).unwrap_err().to_string().contains("nodes[0]"));
    system.links.push(Link { latency_s: Some(f64::INFINITY), ..Link::new(0, 0) });
    assert!(write(&system, &ExportParams { format: ExportFormat::GraphJson }).is_err());
}

/// Traits of every second node, in varying combinations.
fn traits(index: usize, more: bool) -> NodeTraits {
    let mut traits = NodeTraits::default();
    if index % 2 == 1 {
        traits.performance = more.then_some(2.5);
        traits.switch_type = SwitchType::of_number(index as u32 % 3);
        traits.capabilities = if more { vec!["fpga".into(), "gpu".into()] } else { Vec::new() };
        traits.devices = (0..index as u32 % 3).map(|count| (format!("device {count}"), count + 1)).collect();
    }
    traits
}

/// Hosts with one or two cables to leaf switches below two spines, as CSV; names of hosts, leaves and spines, and of a host's port.
fn cables(hosts: &[(usize, bool)], names: [&str; 3], port: &str) -> String {
    let mut text = "Source,Source_Port,Destination\n".to_owned();
    let [host, leaf, spine] = names;
    for (number, &(below, two)) in hosts.iter().enumerate() {
        for other in [below % 4, (below + 1) % 4].into_iter().take(1 + usize::from(two)) {
            text.push_str(&format!("{host}{number},{port},{leaf}{other}\n"));
        }
    }
    (0..8).for_each(|cable| text.push_str(&format!("{leaf}{},,{spine}{}\n", cable % 4, cable / 4)));
    text
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(64) })]

    /// Kinds that the file does not name are right, or asked for.
    #[test]
    fn no_server_becomes_a_switch_and_no_switch_a_server(
        hosts in proptest::collection::vec((0..4_usize, any::<bool>()), 1..9),
        clear in any::<bool>(),
        style in 0..3_usize,
    ) {
        let (names, port) = [
            (["gpu-", "leaf", "spine-"], ""),
            (["h", "SW-a", "Core-Router"], "ens1f0"),
            (["a", "b", "c"], ""),
        ][if clear { style % 2 } else { 2 }];
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), cables(&hosts, names, port)).unwrap();
        match read(file.path(), &ImportParams::default()) {
            Ok(imported) => {
                let is_host = |node: &Node| node.kind == NodeKind::Host;
                let wrong: Vec<_> =
                    imported.system.nodes.iter().filter(|node| is_host(node) != node.name.starts_with(names[0])).collect();
                prop_assert!(wrong.is_empty(), "{:?}", wrong);
            }
            Err(error) => {
                prop_assert!(!clear, "{}", error);
                prop_assert!(error.to_string().contains("nodes that may be hosts or switches"), "{}", error);
            }
        }
    }
}

#[test]
fn dual_homed_servers_are_hosts_or_asked_for() {
    let Some(data) = hopmap_test_support::given_data() else { return };
    let path = data.join("reports/cables-mlag.csv");
    let imported = read(&path, &ImportParams::default()).unwrap();
    let of = |kind| imported.system.nodes.iter().filter(|node| node.kind == kind).count();
    assert_eq!((of(NodeKind::Host), of(NodeKind::Switch)), (2, 3));
    assert!(
        imported.notes.contains(
            &"5 nodes of unknown kind, by their names and cables hosts: 2 (`h1`, `h2`); switches: 3 (`leaf1`, `leaf2`, `spine1`)"
                .to_owned()
        ),
        "{:?}",
        imported.notes
    );
    let unclear = fs::read_to_string(path).unwrap().replace("eth", "p").replace("spine", "x");
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(file.path(), unclear).unwrap();
    let error = read(file.path(), &ImportParams::default()).unwrap_err().to_string();
    assert!(error.ends_with("nodes that may be hosts or switches: 3 (`h1`, `h2`, `x1`)"), "{error}");
}
