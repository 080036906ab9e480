//! Machines of boards with known contents (with the feature `highs`).
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

/// Two processes and a stream.
const PAIR: &str = r#"
processes = [{ name = "P1", requires = 1 }, { name = "P2", requires = 1 }]
streams   = [{ from = "P1", to = "P2", bandwidth = 1 }]
"#;

/// Four processes in a ring.
const RING: &str = r#"
processes = [{ name = "P1", requires = 1 }, { name = "P2", requires = 1 }, { name = "P3", requires = 1 }, { name = "P4", requires = 1 }]
streams   = [{ from = "P1", to = "P2", bandwidth = 30 }, { from = "P2", to = "P3", bandwidth = 30 },
             { from = "P3", to = "P4", bandwidth = 30 }, { from = "P4", to = "P1", bandwidth = 30 }]
"#;

/// Two nodes and a switch on each board.
const CARRIERS: &str = r#"
boards = [{ name = "carrier", count = 3,
            nodes      = [{ name = "cpu0", performance = 1 }, { name = "cpu1", performance = 1 }],
            switches   = [{ name = "sw", type = 1 }],
            links      = [{ a = "cpu0", b = "sw", bandwidth = 100 }, { a = "cpu1", b = "sw", bandwidth = 100 }],
            connectors = [{ at = "sw", bandwidth = 50 }, { at = "sw", bandwidth = 50 }] }]
"#;

fn instance(text: &str) -> Instance {
    let hosts = if text.contains("hosts") { "" } else { r#"hosts = [{ name = "any", performance = 0 }]"# };
    Instance::parse(format!("{hosts}\n{text}").as_bytes(), Path::new("program")).unwrap()
}

fn run_graph(
    graph: TaskGraph,
    given: Option<SystemGraph>,
    kit: &str,
    params: &str,
) -> Result<Outcome, String> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("kit.toml");
    std::fs::write(&file, kit).unwrap();
    let mut params: serde_json::Value = serde_json::from_str(params).unwrap();
    params["path"] = file.to_string_lossy().into();
    let params: BuildParams = serde_json::from_value(params).unwrap();
    let mut inputs = Inputs::new();
    inputs.connect("task-graph", Arc::new(graph), String::new(), String::new());
    if let Some(system) = given {
        inputs.connect("system", Arc::new(system), String::new(), String::new());
    }
    BuildStage::check(&params).map_err(|error| error.to_string())?;
    BuildStage::run(params, inputs, &Context::detached()).map_err(|error| {
        let help = error.help().map(|help| help.to_string()).unwrap_or_default();
        format!("{error} ({help})")
    })
}

fn run(program: &str, kit: &str, params: &str) -> Result<Outcome, String> {
    run_graph(instance(program).graph, None, kit, params)
}

fn value<A: Clone + Send + Sync + 'static>(outputs: &Outputs, port: &str) -> A {
    Arc::clone(outputs.get(port).unwrap()).downcast::<A>().unwrap().as_ref().clone()
}

/// A machine that passed the check.
#[derive(Debug, PartialEq)]
struct Built {
    system: SystemGraph,
    mapping: Mapping,
    routes: Routes,
    tables: Tables,
}

impl Built {
    fn of(graph: &TaskGraph, outcome: Outcome) -> Self {
        let Outcome::Done(outputs) = outcome else { panic!("no machine") };
        let system: SystemGraph = value(&outputs, "system");
        let (mapping, routes, tables): (Mapping, Routes, Tables) =
            (value(&outputs, "mapping"), value(&outputs, "routes"), value(&outputs, "tables"));
        system.check().unwrap();
        let rules = Rules::from(WEIGHTS);
        let checked = check(graph, &system, &mapping, &tables, Some(&routes), &rules, false).unwrap().routes;
        assert_eq!(checked.metrics["objective"], routes.metrics["objective"]);
        Self { system, mapping, routes, tables }
    }

    fn new(program: &str, kit: &str, params: &str) -> Self {
        Self::of(&instance(program).graph, run(program, kit, params).unwrap())
    }

    /// Cost, objective, and whether they are proven.
    fn score(&self) -> (f64, i64, bool) {
        let metric = |name: &str| self.routes.metrics[name];
        (metric("cost"), metric("objective").round() as i64, metric("proven") > 0.0)
    }

    fn board(&self, node: u32) -> &str {
        self.system.nodes[node as usize].name.split_once('_').unwrap().0
    }

    /// Cables between boards.
    fn cables(&self) -> usize {
        let between = |link: &&hopmap_model::Link| self.board(link.source) != self.board(link.destination);
        self.system.links.iter().filter(between).count() / 2
    }
}

fn causes(program: &str, kit: &str, params: &str) -> Vec<String> {
    let Outcome::Infeasible(outputs) = run(program, kit, params).unwrap() else { panic!("a machine") };
    let diagnosis: Diagnosis = value(&outputs, "diagnosis");
    diagnosis.causes.into_iter().map(|cause| cause.words).collect()
}

/// Boards of a type for the exhaustive search: hosts, switches with their types, links and connectors with their bandwidths.
struct Board {
    name: &'static str,
    count: usize,
    cost: f64,
    hosts: &'static [&'static str],
    switches: &'static [(&'static str, u32)],
    links: &'static [(&'static str, &'static str, f64)],
    connectors: &'static [(&'static str, f64)],
}

impl Board {
    fn kit(&self) -> String {
        let join = |list: Vec<String>| list.join(", ");
        let hosts = self.hosts.iter().map(|name| format!("{{ name = \"{name}\", performance = 1 }}"));
        let switches =
            self.switches.iter().map(|(name, kind)| format!("{{ name = \"{name}\", type = {kind} }}"));
        let links =
            self.links.iter().map(|(a, b, w)| format!("{{ a = \"{a}\", b = \"{b}\", bandwidth = {w:?} }}"));
        let connectors =
            self.connectors.iter().map(|(at, w)| format!("{{ at = \"{at}\", bandwidth = {w:?} }}"));
        format!(
            "{{ name = \"{}\", count = {}, cost = {:?}, nodes = [{}], switches = [{}], links = [{}], connectors = [{}] }}",
            self.name,
            self.count,
            self.cost,
            join(hosts.collect()),
            join(switches.collect()),
            join(links.collect()),
            join(connectors.collect())
        )
    }
}

/// All sets of pairs of connectors that cables can connect; every connector is distinct.
fn matchings(connectors: &[(usize, bool)]) -> Vec<Vec<(usize, usize)>> {
    fn go(
        at: usize,
        taken: &mut Vec<bool>,
        own: &mut Vec<(usize, usize)>,
        connectors: &[(usize, bool)],
        all: &mut Vec<Vec<(usize, usize)>>,
    ) {
        if at == connectors.len() {
            all.push(own.clone());
            return;
        }
        go(at + 1, taken, own, connectors, all);
        if taken[at] {
            return;
        }
        for other in at + 1..connectors.len() {
            let (a, b) = (connectors[at], connectors[other]);
            if !taken[other] && a.0 != b.0 && !(a.1 && b.1) {
                taken[other] = true;
                own.push((at, other));
                go(at + 1, taken, own, connectors, all);
                own.pop();
                taken[other] = false;
            }
        }
    }
    let mut all = Vec::new();
    go(0, &mut vec![false; connectors.len()], &mut Vec::new(), connectors, &mut all);
    all
}

/// The least cost and objective of all machines, by enumeration; with `survives` only of machines that survive the failure of any
/// one link with remapping.
fn exhaustive(program: &str, boards: &[Board], cable: f64, survives: bool) -> Option<(f64, i64)> {
    let mut best: Option<(f64, i64)> = None;
    let choices: usize = boards.iter().map(|board| board.count + 1).product();
    for choice in 1..choices {
        let mut rest = choice;
        let mut used: Vec<&Board> = Vec::new();
        for board in boards {
            used.extend(std::iter::repeat_n(board, rest % (board.count + 1)));
            rest /= board.count + 1;
        }
        let (mut hosts, mut switches, mut links, mut connectors) = (vec![], vec![], vec![], vec![]);
        for (number, board) in used.iter().enumerate() {
            hosts.extend(
                board.hosts.iter().map(|name| format!("{{ name = \"b{number}{name}\", performance = 1 }}")),
            );
            switches.extend(
                board
                    .switches
                    .iter()
                    .map(|(name, kind)| format!("{{ name = \"b{number}{name}\", type = {kind} }}")),
            );
            links.extend(
                board.links.iter().map(|&(a, b, w)| (format!("b{number}{a}"), format!("b{number}{b}"), w)),
            );
            connectors.extend(
                board
                    .connectors
                    .iter()
                    .map(|&(at, w)| (number, format!("b{number}{at}"), w, board.hosts.contains(&at))),
            );
        }
        if hosts.is_empty() {
            continue;
        }
        let ends: Vec<(usize, bool)> =
            connectors.iter().map(|(board, _, _, is_host)| (*board, *is_host)).collect();
        for cables in matchings(&ends) {
            let cost = used.iter().map(|board| board.cost).sum::<f64>() + cable * cables.len() as f64;
            if best.is_some_and(|best| cost > best.0) {
                continue;
            }
            let all = links.iter().cloned().chain(cables.iter().map(|&(a, b)| {
                let (a, b) = (&connectors[a], &connectors[b]);
                (a.1.clone(), b.1.clone(), a.2.min(b.2))
            }));
            let all: Vec<(String, String, f64)> = all.collect();
            let objective = |without: Option<usize>| -> Option<i64> {
                let links = all.iter().enumerate().filter(|(port, _)| Some(*port) != without);
                let links: Vec<String> = links
                    .map(|(port, (a, b, w))| {
                        format!("{{ a = \"{a}\", b = \"{b}\", a_port = {port}, b_port = {port}, bandwidth = {w:?} }}")
                    })
                    .collect();
                let text = format!(
                    "hosts=[{}]\nswitches=[{}]\nlinks=[{}]\n{program}",
                    hosts.join(","),
                    switches.join(","),
                    links.join(",")
                );
                let Instance { graph, system, .. } =
                    Instance::parse(text.as_bytes(), Path::new("one")).unwrap();
                let problem = Problem::new(&graph, &system, None, Rules::from(WEIGHTS)).unwrap();
                let found =
                    answer(&problem, None, Method::Auto, Some(&Highs), &StopCondition::endless()).unwrap();
                found.map(|found| found.routes.metrics["objective"].round() as i64)
            };
            let outlives = || !survives || (0..all.len()).all(|link| objective(Some(link)).is_some());
            if let Some(objective) = objective(None).filter(|_| outlives()) {
                let own = (cost, objective);
                if best.is_none_or(|best| own < best) {
                    best = Some(own);
                }
            }
        }
    }
    best
}

#[test]
fn best_cabling_matches_enumeration() {
    const CARRIER: Board = Board {
        name: "carrier",
        count: 3,
        cost: 1.0,
        hosts: &["cpu"],
        switches: &[("sw", 1)],
        links: &[("cpu", "sw", 4.0)],
        connectors: &[("sw", 3.0), ("sw", 2.0)],
    };
    const HUB: Board = Board {
        name: "hub",
        count: 1,
        cost: 0.5,
        hosts: &[],
        switches: &[("a", 1), ("b", 2)],
        links: &[("a", "b", 9.0)],
        connectors: &[("a", 2.0), ("b", 3.0), ("b", 3.0)],
    };
    const EYE: Board = Board {
        name: "eye",
        count: 2,
        cost: 0.75,
        hosts: &["cpu"],
        switches: &[],
        links: &[],
        connectors: &[("cpu", 3.0)],
    };
    let star = |width: &str| {
        format!(
            r#"processes = [{{ name = "P1", requires = 1 }}, {{ name = "P2", requires = 1 }}, {{ name = "P3", requires = 1 }}]
streams = [{{ from = "P1", to = "P3", bandwidth = {width} }}, {{ from = "P2", to = "P3", bandwidth = 1 }}, {{ from = "P3", to = "P2", bandwidth = 2 }}]"#
        )
    };
    let (wide, narrow, too_wide) = (star("3"), star("1"), star("4"));
    let cases: [(&str, Vec<Board>, f64); 7] = [
        (PAIR, vec![Board { count: 2, ..CARRIER }], 0.0),
        (&wide, vec![CARRIER], 0.25),
        (&narrow, vec![CARRIER], 0.0),
        (&too_wide, vec![CARRIER], 0.0),
        (&narrow, vec![Board { count: 1, ..CARRIER }, EYE], 0.25),
        (&narrow, vec![Board { count: 3, ..EYE }, HUB], 0.0),
        (&wide, vec![Board { count: 3, ..EYE }, Board { count: 2, ..CARRIER }, HUB], 0.125),
    ];
    let answers =
        cases.iter().filter(|(program, boards, cable)| is_best(program, boards, *cable, false)).count();
    assert!((4..7).contains(&answers), "{answers}");
}

/// Compares the machine with the enumerated optimum; returns whether one exists.
fn is_best(program: &str, boards: &[Board], cable: f64, survives: bool) -> bool {
    let list: Vec<String> = boards.iter().map(Board::kit).collect();
    let kit = format!("cable_cost = {cable:?}\nboards = [{}]", list.join(",\n"));
    let expected = exhaustive(program, boards, cable, survives);
    let params = if survives { r#"{ "tolerate_single_failure": ["link"], "remap": true }"# } else { "{}" };
    let found = match run(program, &kit, params).unwrap() {
        Outcome::Infeasible(_) => None,
        outcome => {
            let (cost, objective, proven) = Built::of(&instance(program).graph, outcome).score();
            assert!(proven, "{kit}");
            Some((cost, objective))
        }
    };
    assert_eq!(found, expected, "{survives} {program}{kit}");
    found.is_some()
}

/// Up to two types of boards, the first with a node.
fn drawn(below: &mut dyn FnMut(u64) -> u64) -> Vec<Board> {
    let mut boards = Vec::new();
    for name in ["x", "y"] {
        let two = [("a", 1 + below(2) as u32), ("b", 1)];
        let switches = two[..below(3) as usize].to_vec();
        let hosts = ["h", "i"][..(u64::from(name == "x") + below(2)) as usize].to_vec();
        let mut links = Vec::new();
        for host in hosts.iter().filter(|_| !switches.is_empty()) {
            links.push((*host, switches[below(switches.len() as u64) as usize].0, 1.0 + below(3) as f64));
        }
        if switches.len() > 1 && below(3) > 0 {
            links.push(("a", "b", 1.0 + below(3) as f64));
        }
        let chips: Vec<&str> = hosts.iter().copied().chain(switches.iter().map(|switch| switch.0)).collect();
        let connectors = if chips.is_empty() { 0 } else { below(if name == "x" { 3 } else { 4 }) };
        let connectors: Vec<(&str, f64)> = (0..connectors)
            .map(|_| (chips[below(chips.len() as u64) as usize], 1.0 + below(3) as f64))
            .collect();
        if chips.is_empty() {
            continue;
        }
        boards.push(Board {
            name,
            count: 1 + below(if name == "x" { 3 } else { 2 }) as usize,
            cost: 0.5 + 0.25 * below(3) as f64,
            hosts: hosts.leak(),
            switches: switches.leak(),
            links: links.leak(),
            connectors: connectors.leak(),
        });
    }
    boards
}

#[test]
fn best_cabling_of_random_boards_matches_enumeration() {
    let mut state: u64 = 1;
    let mut below = |bound: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % bound
    };
    let mut answers = 0;
    for round in 0..24 {
        let boards = drawn(&mut below);
        let streams = [below(2) + 1, below(2) + 1, below(2) + 1];
        let program = format!(
            r#"processes = [{{ name = "P1", requires = 1 }}, {{ name = "P2", requires = 1 }}, {{ name = "P3", requires = 1 }}]
streams = [{{ from = "P1", to = "P2", bandwidth = {} }}, {{ from = "P2", to = "P3", bandwidth = {} }}, {{ from = "P3", to = "P1", bandwidth = {} }}]"#,
            streams[0], streams[1], streams[2]
        );
        let cable = [0.0, 0.25][below(2) as usize];
        let program = if round % 3 == 2 { PAIR } else { &program };
        answers += usize::from(is_best(program, &boards, cable, round % 3 == 2));
    }
    assert!(answers > 2, "{answers}");
}

#[test]
fn two_carriers_hold_four_processes() {
    let built = Built::new(RING, CARRIERS, "{}");
    // Two streams cross between the boards, one in each direction: one cable suffices.
    assert_eq!(built.score(), (2.0, 3000 + 10 * (2 + 2 + 3 + 3) + 6, true));
    assert_eq!((built.cables(), built.system.nodes.len()), (1, 6));
    let names: Vec<&str> = built.system.nodes.iter().map(|node| node.name.as_str()).collect();
    assert_eq!(names[..3], ["carrier0_cpu0", "carrier0_cpu1", "carrier0_sw"]);
    assert_eq!(names[3..], ["carrier1_cpu0", "carrier1_cpu1", "carrier1_sw"]);
    // The connectors are at the ports after those of the links, and have half of their bandwidth.
    let cable = built.system.links.last().unwrap();
    assert_eq!((cable.source_port, cable.bandwidth_bytes_per_s), (Some(2), Some(50.0)));
    // Two streams of a process in each direction need two cables.
    let both = RING.replace(
        "streams   = [",
        r#"streams   = [{ from = "P1", to = "P3", bandwidth = 30 }, { from = "P2", to = "P4", bandwidth = 30 }, "#,
    );
    let priced = format!("cable_cost = 0.5\n{CARRIERS}");
    let built = Built::new(&both, &priced, "{}");
    assert_eq!((built.score().0, built.score().2, built.cables()), (3.0, true, 2));
    // No machine is sufficient with one cable or none.
    assert_eq!(
        causes(&both, &format!("cables = 1\n{CARRIERS}"), "{}"),
        ["no cabling of the boards of the inventory satisfies all constraints"]
    );
    let wide = CARRIERS.replace("performance = 1", "performance = 2");
    assert_eq!(Built::new(RING, &wide, "{}").score().0, 1.0);
}

#[test]
fn an_additional_cable_survives_link_failures() {
    // Each node has two links to the switch of its board.
    let kit = r#"
boards = [{ name = "carrier", count = 2,
            nodes      = [{ name = "cpu", performance = 1 }],
            switches   = [{ name = "sw", type = 1 }],
            links      = [{ a = "cpu", b = "sw", a_port = 0, b_port = 4, bandwidth = 9 }, { a = "cpu", b = "sw", a_port = 1, b_port = 5, bandwidth = 9 }],
            connectors = [{ at = "sw", bandwidth = 5 }, { at = "sw", bandwidth = 5, port = 7 }, { at = "sw", bandwidth = 5 }] }]
cable_cost = 0.1
"#;
    assert_eq!(Built::new(PAIR, kit, "{}").cables(), 1);
    for remap in [false, true] {
        let params = format!(r#"{{ "tolerate_single_failure": ["link"], "remap": {remap} }}"#);
        let built = Built::new(PAIR, kit, &params);
        assert_eq!((built.cables(), built.score()), (2, (2.2, 3032, true)));
        let ports: Vec<u32> =
            built.system.links.iter().rev().step_by(2).take(2).filter_map(|link| link.source_port).collect();
        assert_eq!(ports, [7, 0]);
    }
    let lone = kit.replace(r#", { at = "sw", bandwidth = 5, port = 7 }, { at = "sw", bandwidth = 5 }"#, "");
    let words = causes(PAIR, &lone, r#"{ "tolerate_single_failure": ["link"] }"#);
    assert_eq!(words, ["no cabling of the boards of the inventory survives every failure"]);
}

#[test]
fn boards_without_connectors_are_used_alone() {
    let (kit, _) = CARRIERS.split_once("connectors").unwrap();
    let kit = format!("{} }}]", kit.trim_end().trim_end_matches(','));
    assert_eq!(Built::new(PAIR, &kit, "{}").score(), (1.0, 2021, true));
    assert_eq!(
        causes(RING, &kit, "{}"),
        ["one board does not suffice, and the boards of the inventory have no connectors"]
    );
    // Processes that do not communicate can be on unconnected boards.
    let apart = RING.split("streams").next().unwrap();
    assert_eq!(
        (Built::new(apart, &kit, "{}").score(), Built::new(apart, &kit, "{}").cables()),
        ((2.0, 0, true), 0)
    );
}

#[test]
fn processes_can_be_fixed_to_hosts_of_boards() {
    let mut graph = instance(PAIR).graph;
    graph.demands.processes[0].host = Some("carrier2_cpu1".to_owned());
    graph.demands.processes[1].host = Some("carrier0_cpu0".to_owned());
    let built = Built::of(&graph, run_graph(graph.clone(), None, CARRIERS, "{}").unwrap());
    assert_eq!((built.score(), built.cables()), ((2.0, 3032, true), 1));
    graph.demands.processes[1].host = Some("carrier3_cpu0".to_owned());
    let refused = run_graph(graph, None, CARRIERS, "{}").unwrap_err();
    assert!(refused.contains("`carrier3_cpu0`, which does not exist"), "{refused}");
}

#[test]
fn larger_inventories_of_boards_are_deterministic() {
    let of = |what: &dyn Fn(usize) -> String| (0..10).map(what).collect::<Vec<_>>().join(",");
    let program = format!(
        "processes = [{}]\nstreams = [{}]\n",
        of(&|i| format!("{{ name = \"P{i}\", requires = 1 }}")),
        of(&|i| format!("{{ from = \"P{i}\", to = \"P{}\", bandwidth = 20 }}", (i + 3) % 10))
    );
    let kit = CARRIERS.replace("count = 3", "count = 6").replace("count", "cost = 2, count");
    let kit = format!("cable_cost = 0.5\n{kit}");
    let params = r#"{ "candidates": 60, "max_search_nodes": 20, "seed": 7 }"#;
    let first = Built::new(&program, &kit, params);
    assert_eq!((first.score().2, first.system.nodes.len()), (false, 15));
    assert!(first.score().0 <= 10.0 + 0.5 * 5.0, "{:?}", first.score());
    assert_eq!(first.score().0, 10.0 + 0.5 * first.cables() as f64);
    assert_eq!(first, Built::new(&program, &kit, params));
}

#[test]
fn contradictory_boards_are_rejected() {
    let refused = |from: &str, to: &str| {
        assert!(CARRIERS.contains(from), "{from}");
        run(PAIR, &CARRIERS.replacen(from, to, 1), "{}").unwrap_err()
    };
    let cases = [
        (
            r#"{ at = "sw", "#,
            r#"{ at = "swx", "#,
            "board `carrier`: a connector is at `swx`, which is not on the board",
        ),
        ("bandwidth = 50", "bandwidth = 0", "board `carrier`: a connector of `sw` has a bandwidth of 0"),
        ("bandwidth = 50", "bandwidth = 50, port = 1", "board `carrier`: port 1 of `sw` is used twice"),
        ("bandwidth = 50", "width = 50", "unknown field `width`"),
        ("bandwidth = 100", "bandwidth = 0", "between `cpu0` and `sw` has a bandwidth of 0"),
        (
            r#"b = "sw""#,
            r#"b = "switch""#,
            "names `switch`, which is not a host or switch (did you mean `sw`?)",
        ),
        (r#"b = "sw""#, r#"b = "cpu1""#, "connects two hosts"),
        (r#""cpu1", performance"#, r#""cpu0", performance"#, "board `carrier`: two nodes are named `cpu0`"),
        ("performance = 1", "performance = -1", "a performance of -1"),
        ("type = 1", "type = 3", "switch `sw` is of type 3"),
        ("count = 3", "count = 0", "there are 0 of board `carrier`"),
        ("count = 3", "cost = -1", "`carrier` costs -1"),
        ("count = 3", "chips = 3", "board `carrier` is incomplete"),
        (
            "boards =",
            "nodes = [{ name = \"a\", performance = 1, bandwidth = 1 }]\nboards =",
            "with other components",
        ),
        ("boards = [", "boards = [{ name = \"b\", chips = 3, connectors = 1 }, ", "with other components"),
        ("boards = [", "boards = [{ name = \"b\" }, ", "board `b` is empty"),
        ("boards = [", "boards = [{ name = \"b\", connectors = 2 }, ", "board `b` is incomplete"),
        (
            "boards = [",
            "boards = [{ name = \"b\", connectors = -2 }, ",
            "a number of connectors or a list of them",
        ),
        (
            "boards = [",
            "boards = [{ name = \"carrier\", count = 4, switches = [{ name = \"a\", type = 1 }] }, ",
            "two units are named `carrier0`",
        ),
        (
            "boards = [",
            "boards = [{ name = \"carrier0_cpu0\", nodes = [{ name = \"x\", performance = 1 }] },\n{ name = \"carrier0\", nodes = [{ name = \"cpu0_x\", performance = 1 }] }, ",
            "two",
        ),
    ];
    for (from, to, words) in cases {
        let refused = refused(from, to);
        assert!(refused.contains(words), "{to}: {refused}");
    }
    let hosts = run(PAIR, r#"boards = [{ name = "b", switches = [{ name = "a", type = 1 }] }]"#, "{}");
    assert!(hosts.unwrap_err().contains("no board of the inventory has a node"));
    let system = instance(&format!("hosts = [{{ name = \"h\", performance = 2 }}]\n{PAIR}")).system;
    let given = run_graph(instance(PAIR).graph, Some(system), CARRIERS, "{}").unwrap_err();
    assert!(given.contains("cannot extend an existing machine"), "{given}");
}

#[test]
fn a_machine_has_hosts_of_the_boards_that_it_uses() {
    let built = Built::new(PAIR, CARRIERS, "{}");
    let hosts = built.system.nodes.iter().filter(|node| node.kind == NodeKind::Host).count();
    assert_eq!((built.score(), hosts, built.system.links.len()), ((1.0, 2021, true), 2, 4));
}
