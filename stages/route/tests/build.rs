//! Machines from inventories (with the feature `highs`).
#![cfg(feature = "highs")]

use std::path::Path;
use std::sync::Arc;

use hopmap_model::{
    Context, Diagnosis, Inputs, Mapping, NodeKind, Outcome, Outputs, Routes, Stage, SystemGraph, Tables,
    TaskGraph,
};
use hopmap_route::{BuildParams, BuildStage, Instance};
use hopmap_routing::answer::answer;
use hopmap_routing::check::check;
use hopmap_routing::engine::StopCondition;
use hopmap_routing::params::Method;
use hopmap_routing::problem::Problem;
use hopmap_routing::problem::{Rules, Weights};
use hopmap_routing::solver::Highs;

const WEIGHTS: Weights = Weights { longest_route: 1000.0, total_hops: 10.0, table_entries: 1.0 };

/// The program of the paper's first example.
const PROGRAM: &str = r#"
processes = [{ name = "P1", requires = 1 }, { name = "P2", requires = 1 }, { name = "P3", requires = 1 }]
streams   = [{ from = "P1", to = "P3", bandwidth = 3 }, { from = "P2", to = "P3", bandwidth = 1 }]
"#;

/// Two processes and a stream.
const PAIR: &str = r#"
processes = [{ name = "P1", requires = 1 }, { name = "P2", requires = 1 }]
streams   = [{ from = "P1", to = "P2", bandwidth = 1 }]
"#;

fn instance(text: &str) -> Instance {
    let hosts = if text.contains("hosts") { "" } else { r#"hosts = [{ name = "any", performance = 0 }]"# };
    Instance::parse(format!("{hosts}\n{text}").as_bytes(), Path::new("program")).unwrap()
}

fn run(program: &str, given: Option<SystemGraph>, kit: &str, params: &str) -> Result<Outcome, String> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("kit.toml");
    std::fs::write(&file, kit).unwrap();
    let mut params: serde_json::Value = serde_json::from_str(params).unwrap();
    params["path"] = file.to_string_lossy().into();
    let params: BuildParams = serde_json::from_value(params).unwrap();
    let mut inputs = Inputs::new();
    inputs.connect("task-graph", Arc::new(instance(program).graph), String::new(), String::new());
    if let Some(system) = given {
        inputs.connect("system", Arc::new(system), String::new(), String::new());
    }
    BuildStage::check(&params).map_err(|error| error.to_string())?;
    BuildStage::run(params, inputs, &Context::detached()).map_err(|error| {
        let help = error.help().map(|help| help.to_string()).unwrap_or_default();
        format!("{error} ({help})")
    })
}

fn value<A: Clone + Send + Sync + 'static>(outputs: &Outputs, port: &str) -> A {
    Arc::clone(outputs.get(port).unwrap()).downcast::<A>().unwrap().as_ref().clone()
}

/// A machine that passed the check: hosts, switches, cables, cost, objective, and whether it is proven.
fn machine(
    program: &str,
    given: Option<SystemGraph>,
    kit: &str,
    params: &str,
) -> (usize, usize, usize, f64, i64, bool) {
    let Outcome::Done(outputs) = run(program, given, kit, params).unwrap() else { panic!("no machine") };
    let system: SystemGraph = value(&outputs, "system");
    let (mapping, routes, tables): (Mapping, Routes, Tables) =
        (value(&outputs, "mapping"), value(&outputs, "routes"), value(&outputs, "tables"));
    system.check().unwrap();
    let graph: TaskGraph = instance(program).graph;
    let rules = Rules::from(WEIGHTS);
    let checked = check(&graph, &system, &mapping, &tables, Some(&routes), &rules, false).unwrap().routes;
    assert_eq!(checked.metrics["objective"], routes.metrics["objective"]);
    let count = |kind| system.nodes.iter().filter(|node| node.kind == kind).count();
    let metric = |name: &str| routes.metrics[name];
    let numbers = (metric("cost"), metric("objective") as i64, metric("proven") > 0.0);
    (count(NodeKind::Host), count(NodeKind::Switch), system.links.len() / 2, numbers.0, numbers.1, numbers.2)
}

#[test]
fn hosts_that_fit_share_one_switch() {
    let kit = r#"
nodes    = [{ name = "cpu", count = 4, performance = 1, bandwidth = 4 }]
switches = [{ name = "sw", count = 3, type = 1, ports = 3, bandwidth = 9 }]
"#;
    assert_eq!(machine(PROGRAM, None, kit, "{}"), (3, 1, 3, 4.0, 2041, true));
    // With two processes per node, two nodes suffice; with three, a single node without a switch.
    let twice = kit.replace("performance = 1", "performance = 2");
    assert_eq!(machine(PROGRAM, None, &twice, "{}"), (2, 1, 2, 3.0, 2021, true));
    let thrice = kit.replace("performance = 1", "performance = 3");
    assert_eq!(machine(PROGRAM, None, &thrice, "{}"), (1, 0, 0, 1.0, 0, true));
    // P3 receives more than the bandwidth of a port of this switch.
    let narrow = kit.replace("bandwidth = 9", "bandwidth = 3");
    let Outcome::Infeasible(outputs) = run(PROGRAM, None, &narrow, "{}").unwrap() else {
        panic!("a machine")
    };
    let diagnosis: Diagnosis = value(&outputs, "diagnosis");
    assert_eq!(
        diagnosis.causes[0].words,
        "no cabling of the units of the inventory satisfies all constraints"
    );
}

#[test]
fn parallel_cables_are_used_for_narrow_ports() {
    // Two hosts on each switch; the traffic between the switches needs two cables and separate routes.
    let program = r#"
processes = [{ name = "P1", requires = 1 }, { name = "P2", requires = 1 }, { name = "P3", requires = 1 }, { name = "P4", requires = 1 }]
streams   = [{ from = "P1", to = "P3", bandwidth = 3 }, { from = "P2", to = "P4", bandwidth = 3 }, { from = "P1", to = "P2", bandwidth = 1 },
    { from = "P3", to = "P4", bandwidth = 1 }]
"#;
    let kit = r#"
nodes    = [{ name = "cpu", count = 4, performance = 1, bandwidth = 9 }]
switches = [{ name = "sw", count = 2, type = 1, ports = 3, bandwidth = 4 }]
"#;
    let (hosts, switches, cables, cost, _, proven) = machine(program, None, kit, "{}");
    assert_eq!((hosts, switches, cables, cost, proven), (4, 2, 5, 6.0, true));
    // An expensive switch is avoided if cheap ones suffice.
    let dear = kit.replace(
        "switches = [",
        r#"switches = [{ name = "big", type = 1, ports = 8, bandwidth = 9, cost = 3 }, "#,
    );
    assert_eq!(machine(program, None, &dear, "{}").3, 6.0);
    let cheap = dear.replace("cost = 3", "cost = 1.5");
    let (_, switches, _, cost, _, proven) = machine(program, None, &cheap, "{}");
    assert_eq!((switches, cost, proven), (1, 5.5, true));
}

/// The least cost and objective of all labelled machines, by enumeration.
fn exhaustive(
    program: &str,
    hosts: usize,
    switches: usize,
    ports: (usize, usize),
    bandwidth: (f64, f64),
    cable: f64,
) -> Option<(f64, i64)> {
    let mut best: Option<(f64, i64)> = None;
    for (used_hosts, used_switches) in (1..=hosts).flat_map(|h| (0..=switches).map(move |s| (h, s))) {
        let nodes = used_hosts + used_switches;
        let pairs: Vec<(usize, usize)> =
            (0..nodes).flat_map(|a| (a.max(used_hosts - 1) + 1..nodes).map(move |b| (a, b))).collect();
        let all = 3_usize.pow(pairs.len() as u32);
        for number in 0..all {
            let cables: Vec<usize> = (0..pairs.len()).map(|at| number / 3_usize.pow(at as u32) % 3).collect();
            let at = |node: usize| -> usize {
                pairs
                    .iter()
                    .zip(&cables)
                    .filter(|((a, b), _)| *a == node || *b == node)
                    .map(|(_, cables)| cables)
                    .sum()
            };
            let fits = (0..nodes).all(|node| at(node) <= if node < used_hosts { ports.0 } else { ports.1 });
            let cost = nodes as f64 + cable * cables.iter().sum::<usize>() as f64;
            if !fits || best.is_some_and(|best| cost > best.0) {
                continue;
            }
            let name = |node: usize| if node < used_hosts { format!("h{node}") } else { format!("s{node}") };
            let list = |nodes: std::ops::Range<usize>, more: &str| {
                nodes
                    .map(|node| format!("{{ name = \"{}\", {more} }}", name(node)))
                    .collect::<Vec<_>>()
                    .join(",")
            };
            let mut next = vec![0; nodes];
            let mut links = Vec::new();
            for (&(a, b), &cables) in pairs.iter().zip(&cables) {
                for _ in 0..cables {
                    let width = if a < used_hosts { bandwidth.0.min(bandwidth.1) } else { bandwidth.1 };
                    links.push(format!(
                        "{{ a = \"{}\", b = \"{}\", a_port = {}, b_port = {}, bandwidth = {width} }}",
                        name(a),
                        name(b),
                        next[a],
                        next[b]
                    ));
                    next[a] += 1;
                    next[b] += 1;
                }
            }
            let text = format!(
                "hosts=[{}]\nswitches=[{}]\nlinks=[{}]\n{program}",
                list(0..used_hosts, "performance = 1"),
                list(used_hosts..nodes, "type = 1"),
                links.join(",")
            );
            let Instance { graph, system, .. } = Instance::parse(text.as_bytes(), Path::new("one")).unwrap();
            let problem = Problem::new(&graph, &system, None, Rules::from(WEIGHTS)).unwrap();
            let found =
                answer(&problem, None, Method::Paper, Some(&Highs), &StopCondition::endless()).unwrap();
            if let Some(found) = found {
                let own = (cost, found.routes.metrics["objective"].round() as i64);
                if best.is_none_or(|best| own < best) {
                    best = Some(own);
                }
            }
        }
    }
    best
}

#[test]
fn best_machine_matches_enumeration() {
    for (program, hosts, switches, ports, bandwidth, cable) in [
        (PAIR, 2, 2, (2, 2), (1.0, 2.0), 0.0),
        (PAIR, 2, 2, (1, 2), (0.5, 2.0), 0.25),
        (PROGRAM, 3, 1, (2, 4), (3.0, 3.0), 0.25),
        (PROGRAM, 3, 2, (1, 2), (4.0, 4.0), 0.0),
    ] {
        let kit = format!(
            "nodes = [{{ name = \"cpu\", count = {hosts}, performance = 1, ports = {}, bandwidth = {:?} }}]\n\
             switches = [{{ name = \"sw\", count = {switches}, type = 1, ports = {}, bandwidth = {:?} }}]\ncable_cost = {cable:?}\n",
            ports.0, bandwidth.0, ports.1, bandwidth.1
        );
        let expected = exhaustive(program, hosts, switches, ports, bandwidth, cable);
        let found = match run(program, None, &kit, "{}").unwrap() {
            Outcome::Done(_) => {
                let (_, _, _, cost, objective, proven) = machine(program, None, &kit, "{}");
                assert!(proven, "{kit}");
                Some((cost, objective))
            }
            Outcome::Infeasible(_) => None,
            Outcome::Partial(_) => panic!("partial"),
        };
        assert_eq!(found, expected, "{kit}");
    }
}

#[test]
fn machines_survive_the_requested_failures() {
    let kit = r#"
nodes    = [{ name = "cpu", count = 3, performance = 1, ports = 2, bandwidth = 4 }]
switches = [{ name = "sw", count = 2, type = 1, ports = 4, bandwidth = 4 }]
"#;
    assert_eq!(machine(PAIR, None, kit, "{}"), (2, 1, 2, 3.0, 2021, true));
    // Two cables of each host to one switch; a second switch; a third host.
    let cables = machine(PAIR, None, kit, r#"{ "tolerate_single_failure": ["link"] }"#);
    assert_eq!((cables.0, cables.1, cables.3, cables.5), (2, 1, 3.0, true));
    let switches = machine(PAIR, None, kit, r#"{ "tolerate_single_failure": ["link", "switch"] }"#);
    assert_eq!((switches.0, switches.1, switches.3, switches.5), (2, 2, 4.0, true));
    let hosts = machine(PAIR, None, kit, r#"{ "tolerate_single_failure": ["host"], "remap": true }"#);
    assert_eq!((hosts.0, hosts.1, hosts.3, hosts.5), (3, 1, 4.0, true));
    let refused = run(PAIR, None, kit, r#"{ "tolerate_single_failure": ["host"] }"#).unwrap_err();
    assert!(refused.contains("cannot stay there"), "{refused}");
    let lone = kit.replace("count = 2, type", "count = 1, type");
    let Outcome::Infeasible(outputs) =
        run(PAIR, None, &lone, r#"{ "tolerate_single_failure": ["switch"] }"#).unwrap()
    else {
        panic!("a machine")
    };
    let diagnosis: Diagnosis = value(&outputs, "diagnosis");
    assert_eq!(diagnosis.causes[0].words, "no cabling of the units of the inventory survives every failure");
}

#[test]
fn the_fewest_sufficient_cables_are_added() {
    let line = instance(&format!(
        r#"
hosts    = [{{ name = "h0", performance = 1 }}, {{ name = "h1", performance = 1 }}]
switches = [{{ name = "A", type = 1 }}, {{ name = "B", type = 1 }}]
links    = [{{ a = "h0", b = "A", bandwidth = 4 }}, {{ a = "A", b = "B", bandwidth = 4 }}, {{ a = "B", b = "h1", bandwidth = 4 }}]
{PAIR}"#
    ));
    let kit = r#"
nodes    = [{ name = "h", count = 2, performance = 1, ports = 2, bandwidth = 4 }]
switches = [{ name = "A", type = 1, ports = 4, bandwidth = 4 }, { name = "B", type = 1, ports = 4, bandwidth = 4 }]
"#;
    // Each host is also connected to the switch of the other.
    let (.., cables, cost, objective, proven) =
        machine(PAIR, Some(line.system.clone()), kit, r#"{ "tolerate_single_failure": ["link", "switch"] }"#);
    assert_eq!((cables, cost, objective, proven), (5, 2.0, 2021, true));
    let (.., cables, cost, _, _) = machine(PAIR, Some(line.system.clone()), kit, "{}");
    assert_eq!((cables, cost), (3, 0.0));
    // With too few candidates: all cables, minus the unnecessary ones.
    let thinned = machine(
        PAIR,
        Some(line.system.clone()),
        kit,
        r#"{ "tolerate_single_failure": ["link", "switch"], "candidates": 20 }"#,
    );
    assert_eq!((thinned.3, thinned.5), (2.0, false));
    let few = format!("cables = 1\n{kit}");
    let none = run(PAIR, Some(line.system), &few, r#"{ "tolerate_single_failure": ["link"] }"#).unwrap();
    assert!(matches!(none, Outcome::Infeasible(_)));
}

#[test]
fn boards_hold_few_chips_and_connectors() {
    let kit = r#"
nodes    = [{ name = "cpu", count = 3, performance = 1, bandwidth = 4 }]
switches = [{ name = "sw", count = 2, type = 1, ports = 3, bandwidth = 4 }]
boards   = [{ name = "carrier", count = 2, chips = 3, connectors = 1 }]
"#;
    // A switch and two nodes on a board, the third node on the other one: one cable between them.
    assert_eq!(machine(PROGRAM, None, kit, "{}"), (3, 1, 3, 6.0, 2041, true));
    let Outcome::Done(outputs) = run(PROGRAM, None, kit, "{}").unwrap() else { panic!("no machine") };
    let system: SystemGraph = value(&outputs, "system");
    assert!(system.nodes.iter().all(|node| node.name.starts_with("carrier")), "{:?}", system.nodes);
    let bare = kit.replace("connectors = 1", "connectors = 0");
    assert!(matches!(run(PROGRAM, None, &bare, "{}").unwrap(), Outcome::Infeasible(_)));
    let room = bare.replace("chips = 3", "chips = 4");
    assert_eq!(machine(PROGRAM, None, &room, "{}").3, 5.0);
}

#[test]
fn larger_inventories_get_a_machine_without_proof() {
    let processes = |i: usize| format!("{{ name = \"P{i}\", requires = 1 }}");
    let stream = |i: usize| format!("{{ from = \"P{i}\", to = \"P{}\", bandwidth = 1 }}", (i + 1) % 5);
    let all = |what: &dyn Fn(usize) -> String| (0..5).map(what).collect::<Vec<_>>().join(",");
    let program = format!("processes = [{}]\nstreams = [{}]\n", all(&processes), all(&stream));
    let kit = r#"
nodes    = [{ name = "cpu", count = 5, performance = 1, bandwidth = 4 }]
switches = [{ name = "sw", count = 4, type = 1, ports = 3, bandwidth = 4 }]
"#;
    let params = r#"{ "candidates": 24, "max_search_nodes": 20 }"#;
    let (hosts, switches, _, cost, _, proven) = machine(&program, None, kit, params);
    assert_eq!((hosts, switches, cost, proven), (5, 3, 8.0, false));
    assert_eq!(machine(&program, None, kit, params), machine(&program, None, kit, params));
}

#[test]
fn contradictory_inventories_are_rejected() {
    let kit = r#"
nodes    = [{ name = "cpu", count = 2, performance = 1, bandwidth = 4 }]
switches = [{ name = "sw", type = 1, ports = 3, bandwidth = 9 }]
boards   = [{ name = "board", chips = 4, connectors = 1 }]
"#;
    let refused = |from: &str, to: &str| {
        assert!(kit.contains(from), "{from}");
        run(PAIR, None, &kit.replacen(from, to, 1), "{}").unwrap_err()
    };
    assert!(refused("count = 2", "count = 0").contains("there are 0 of node `cpu`"));
    assert!(refused("type = 1", "type = 3").contains("switch `sw` is of type 3"));
    assert!(refused("ports = 3", "ports = 0").contains("switch `sw` has 0 ports"));
    assert!(refused("bandwidth = 4", "bandwidth = 0").contains("have a bandwidth of 0"));
    assert!(refused("performance = 1", "performance = -1").contains("a performance of -1"));
    assert!(refused("chips = 4", "chips = 0").contains("no room for chips"));
    assert!(refused(r#"name = "sw""#, r#"name = "cpu1""#).contains("two units are named `cpu1`"));
    assert!(refused("ports = 3", "port = 3").contains(":3: unknown field `port`"));
    assert!(refused("chips = 4", "chips = 4, cost = -2").contains("`board` costs -2"));
    assert!(run(PAIR, None, "", "{}").unwrap_err().contains("the file is empty"));
    assert!(run(PAIR, None, "switches = []", "{}").unwrap_err().contains("the inventory has no nodes"));
}

#[test]
fn hosts_of_fixed_processes_are_distinct() {
    // The first and the third host need one switch, the second and the fourth the other one.
    let program = r#"
processes = [{ name = "P1", requires = 1 }, { name = "P2", requires = 1 }, { name = "P3", requires = 1 }, { name = "P4", requires = 1 }]
streams   = [{ from = "P1", to = "P2", bandwidth = FIRST }, { from = "P3", to = "P4", bandwidth = SECOND }]
mapping   = { P1 = "cpu0", P2 = "cpu2", P3 = "cpu1", P4 = "cpu3" }
hosts     = [{ name = "cpu0", performance = 1 }, { name = "cpu1", performance = 1 }, { name = "cpu2", performance = 1 }, { name = "cpu3", performance = 1 }]
"#;
    let kit = r#"
nodes    = [{ name = "cpu", count = 5, performance = 1, bandwidth = 9 }]
switches = [{ name = "narrow", type = 1, ports = 2, bandwidth = 1 }, { name = "wide", type = 1, ports = 2, bandwidth = 9 }]
"#;
    for (first, second) in [("1", "9"), ("9", "1")] {
        let program = program.replace("FIRST", first).replace("SECOND", second);
        assert_eq!(machine(&program, None, kit, "{}"), (4, 2, 4, 6.0, 2042, true));
    }
}

#[test]
fn equal_costs_are_compared_by_objective() {
    // The tables of the second switch, which is tried first, need one more entry.
    let kit = r#"
nodes    = [{ name = "cpu", count = 3, performance = 1, bandwidth = 9 }]
switches = [{ name = "one", type = 1, ports = 3, bandwidth = 9 }, { name = "two", type = 2, ports = 3, bandwidth = 9 }]
"#;
    assert_eq!(machine(PROGRAM, None, kit, "{}"), (3, 1, 3, 4.0, 2041, true));
}
