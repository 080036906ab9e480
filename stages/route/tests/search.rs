//! The search for mappings finds the optima of the paper's program, and its bounds are valid.

// Random instances are compared with the paper's program, which needs a solver.
#![cfg_attr(not(feature = "highs"), allow(dead_code))]

use std::fmt::Write;
use std::path::Path;

use crate::support::samples::Mesh;
use hopmap_model::{Link, LinkState};
use hopmap_route::Instance;
use hopmap_routing::engine::{Engine, Limits, SearchResult, StopCondition};
use hopmap_routing::problem::{Home, Problem};
use hopmap_routing::problem::{Rules, Weights};
use hopmap_routing::search::Search;
use hopmap_test_support::{Random, given_data};

/// The weights of the paper.
const WEIGHTS: Weights = Weights { longest_route: 1000.0, total_hops: 10.0, table_entries: 1.0 };

/// A small random instance: rings, trees and structures in between, hosts with several links, links that are down in one
/// direction, several processes per host, devices, capabilities, fixed processes and cyclic streams.
fn instance(random: &mut Random) -> Instance {
    let (switches, hosts) = (1 + random.below(4), 2 + random.below(4));
    let processes = 1 + random.below(5);
    let mut text = String::from("hosts = [");
    for host in 0..hosts {
        let more = ["", ", devices = { camera = 1 }", ", capabilities = [\"fast\"]"][random.below(3)];
        write!(text, "{{ name = \"h{host}\", performance = {}{more} }}, ", 1 + random.below(3)).unwrap();
    }
    text += "]\nswitches = [";
    let mixed = random.below(3);
    for switch in 0..switches {
        let kind = if mixed == 2 { 1 + random.below(2) } else { 1 + mixed };
        write!(text, "{{ name = \"s{switch}\", type = {kind} }}, ").unwrap();
    }
    text += "]\nlinks = [";
    let link = |text: &mut String, a: String, b: String, bandwidth: usize| {
        write!(text, "{{ a = \"{a}\", b = \"{b}\", bandwidth = {bandwidth} }}, ").unwrap();
    };
    for switch in 1..switches {
        let other = random.below(switch);
        link(&mut text, format!("s{switch}"), format!("s{other}"), 2 + random.below(6));
        if switch > 1 && random.below(2) == 0 {
            let next = (other + 1) % switch;
            link(&mut text, format!("s{switch}"), format!("s{next}"), 1 + random.below(6));
        }
    }
    for host in 0..hosts {
        let switch = random.below(switches);
        link(&mut text, format!("h{host}"), format!("s{switch}"), 3 + random.below(8));
        if switches > 1 && random.below(6) == 0 {
            link(&mut text, format!("h{host}"), format!("s{}", (switch + 1) % switches), 3 + random.below(8));
        }
    }
    text += "]\nprocesses = [";
    for process in 0..processes {
        let more = ["", "", "", ", devices = { camera = 1 }", ", capabilities = [\"fast\"]"][random.below(5)];
        let requires = if random.below(10) == 0 { 0 } else { 1 + usize::from(random.below(5) == 0) };
        write!(text, "{{ name = \"p{process}\", requires = {requires}{more} }}, ").unwrap();
    }
    text += "]\nstreams = [";
    for _ in 0..random.below(7) {
        let (from, to) = (random.below(processes), random.below(processes));
        let bandwidth = 1 + random.below(4);
        write!(text, "{{ from = \"p{from}\", to = \"p{to}\", bandwidth = {bandwidth} }}, ").unwrap();
    }
    text += "]\n";
    let mut instance = Instance::parse(text.as_bytes(), Path::new("instance")).unwrap();
    if random.below(4) == 0 {
        let demands = &mut instance.graph.demands.processes;
        demands[0].host = Some(format!("h{}", random.below(hosts)));
    }
    if random.below(8) == 0 {
        for (source, destination) in [(0, 1), (1, 0)] {
            let (source_port, destination_port) = (Some(90), Some(90));
            let link = Link { source_port, destination_port, ..Link::new(source, destination) };
            instance.system.links.push(link);
        }
    }
    for link in &mut instance.system.links {
        match random.below(40) {
            0 => link.state = LinkState::Down,
            1 => link.bandwidth_bytes_per_s = None,
            2 => link.bandwidth_bytes_per_s = Some(2.0),
            _ => {}
        }
    }
    if random.below(10) == 0 {
        instance.system.nodes[0].traits.performance = None;
    }
    instance
}

fn rules(random: &mut Random) -> Rules {
    let weights = [
        (1000.0, 10.0, 1.0),
        (1000.0, 10.0, 1.0),
        (1.0, 1.0, 1.0),
        (0.0, 0.5, 0.25),
        (0.0, 0.0, 1.0),
        (7.0, 0.0, 0.0),
        (0.0, 0.0, 0.0),
        (2.0, 1.0, 9.0),
    ];
    let (longest, hops, entries) = weights[random.below(weights.len())];
    Rules {
        deadlock_free: random.below(5) == 0,
        max_hops: (random.below(6) == 0).then_some(2 + random.below(3) as u32),
        bandwidth_slack: if random.below(8) == 0 { 0.25 } else { 0.0 },
        performance_slack: if random.below(10) == 0 { 0.5 } else { 0.0 },
        switch_load: (random.below(8) == 0).then_some(6.0),
        ..Rules::from(Weights { longest_route: longest, total_hops: hops, table_entries: entries })
    }
}

fn home(random: &mut Random, problem: &Problem<'_>) -> Option<Home> {
    let hosts = problem.allowed.iter().map(|allowed| allowed.first().copied().unwrap_or(problem.hosts[0]));
    (random.below(6) == 0).then(|| Home { hosts: hosts.collect(), cost: 3.5 })
}

fn found(problem: &Problem<'_>, limits: Limits) -> SearchResult {
    Search::default().solve(problem, None, &StopCondition::new(limits, &|| false)).unwrap()
}

/// Number of nodes that proves nearly all small instances.
const MANY: Limits = Limits { nodes: Some(200_000), seconds: None };

fn cost(problem: &Problem<'_>, found: &SearchResult) -> f64 {
    found.plan.as_ref().map_or(f64::INFINITY, |plan| problem.cost(plan))
}

#[cfg(feature = "highs")]
#[test]
fn the_search_agrees_with_the_program_of_the_paper() {
    use hopmap_routing::paper::Paper;
    use hopmap_routing::solver::Highs;

    let count = if hopmap_test_support::soak() { 1500 } else { 60 };
    let (mut feasible, mut certain) = (0, 0);
    for seed in 0..count {
        let mut random = Random(seed * 7919 + 1);
        let instance = instance(&mut random);
        let rules = rules(&mut random);
        let mut problem = Problem::new(&instance.graph, &instance.system, None, rules).unwrap();
        problem.home = home(&mut random, &problem);
        let paper = Paper { solver: &Highs }.solve(&problem, None, &StopCondition::endless()).unwrap();
        assert!(paper.proven, "{seed}");
        let best = cost(&problem, &paper);
        for limits in [MANY, Limits { nodes: Some(3), seconds: None }] {
            let found = found(&problem, limits);
            let here = cost(&problem, &found);
            let close = 1e-6 * best.abs().clamp(1.0, 1e9);
            assert!(found.bound <= best + close, "{seed}: bound {} of {best}", found.bound);
            assert!(here >= best - close, "{seed}: {here} below {best}");
            if found.proven {
                let is_equal = here.is_infinite() == best.is_infinite()
                    && (best.is_infinite() || (here - best).abs() <= close);
                assert!(is_equal, "{seed}: {here} for {best}");
            }
            if let Some(plan) = &found.plan {
                assert!(problem.keeps_rules(&plan.routes), "{seed}");
            }
            certain += u64::from(found.proven && limits == MANY);
        }
        feasible += u64::from(best.is_finite());
    }
    eprintln!("{feasible} feasible, {certain} certain of {count}");
    assert!(feasible > count / 3 && feasible < count && certain * 20 >= count * 19);
}

#[test]
fn the_result_is_independent_of_the_number_of_threads() {
    let mesh = Mesh {
        rows: 2,
        columns: 3,
        hosts: 2,
        processes: 12,
        streams: 15,
        bandwidth: 100,
        switch_type: 1,
        seed: 4,
    };
    let instance = mesh.instance(false).unwrap();
    let problem = Problem::new(&instance.graph, &instance.system, None, Rules::from(WEIGHTS)).unwrap();
    let with = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| found(&problem, Limits { nodes: Some(50), seconds: None }))
    };
    let one = with(1);
    assert!(one.plan.is_some());
    assert_eq!(one, with(2));
    assert_eq!(one, with(4));
}

#[test]
fn a_stop_request_ends_the_search() {
    let mesh = Mesh {
        rows: 4,
        columns: 4,
        hosts: 4,
        processes: 64,
        streams: 96,
        bandwidth: 200,
        switch_type: 1,
        seed: 1,
    };
    let instance = mesh.instance(false).unwrap();
    let problem = Problem::new(&instance.graph, &instance.system, None, Rules::from(WEIGHTS)).unwrap();
    let found =
        Search::default().solve(&problem, None, &StopCondition::new(Limits::default(), &|| true)).unwrap();
    assert!(!found.proven && found.nodes < 500);
    assert!(found.bound <= cost(&problem, &found));
}

#[test]
fn given_instances_have_their_known_optima() {
    let Some(data) = given_data() else { return };
    let mut solved = 0;
    for file in std::fs::read_dir(data.join("route")).unwrap().map(|entry| entry.unwrap().path()) {
        let name = file.file_stem().unwrap().to_string_lossy().into_owned();
        if !name.contains("problem2") {
            continue;
        }
        let instance = Instance::read(&file).unwrap();
        let given: serde_json::Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
        let problem = Problem::new(&instance.graph, &instance.system, None, Rules::from(WEIGHTS)).unwrap();
        let found = found(&problem, MANY);
        assert!(found.proven, "{name}");
        assert_eq!(Some(cost(&problem, &found)), given["expected"]["objective"].as_f64(), "{name}");
        solved += 1;
    }
    assert_eq!(solved, 6);
}
