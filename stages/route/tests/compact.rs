//! The compact program and that of the paper have the same optimum, on small instances of every kind (with the feature `highs`).
#![cfg(feature = "highs")]

use std::path::Path;

use hopmap_route::Instance;
use hopmap_routing::answer::answer;
use hopmap_routing::compact::Compact;
use hopmap_routing::engine::{Engine, StopCondition};
use hopmap_routing::paper::Paper;
use hopmap_routing::params::Method;
use hopmap_routing::problem::{Home, Problem};
use hopmap_routing::problem::{Rules, Weights};
use hopmap_routing::solver::Highs;
use hopmap_test_support::{Random, soak};

/// Number of random instances.
const INSTANCES: u64 = 80;

/// Random numbers, and the number of cables so far.
struct Draw(Random, usize);

impl Draw {
    fn below(&mut self, most: usize) -> usize {
        self.0.below(most)
    }

    fn one<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())]
    }
}

/// A few switches with hosts and a program, with every property that instances can have.
fn instance(draw: &mut Draw) -> Instance {
    let (switches, hosts, processes) = (1 + draw.below(4), 2 + draw.below(4), 1 + draw.below(5));
    let kind = draw.one(&[[1, 1], [2, 2], [1, 2]]);
    let shares = draw.one(&[1, 1, 2, 3]);
    let mut lists = [const { Vec::<String>::new() }; 5];
    for switch in 0..switches {
        lists[0].push(format!("{{ name = \"s{switch}\", type = {} }}", kind[draw.below(2)]));
        // A spanning tree and further cables, some parallel or directed.
        if switch > 0 {
            lists[2].push(cable(draw, switch, "s", switch));
        }
    }
    for _ in 0..draw.below(4) {
        let a = draw.below(switches);
        if a > 0 {
            lists[2].push(cable(draw, a, "s", a));
        }
    }
    for host in 0..hosts {
        let kinds =
            ["", ", capabilities = [\"fast\"]", ", devices = { camera = 1 }", ", devices = { camera = 2 }"];
        let extra = draw.one(&["", "", kinds[1], kinds[2], kinds[3]]);
        lists[1].push(format!("{{ name = \"h{host}\", performance = {shares}{extra} }}"));
        lists[2].push(cable(draw, host, "h", switches));
    }
    if draw.below(6) == 0 {
        // A host with a second cable.
        lists[2].push(cable(draw, 0, "h", switches));
    }
    for process in 0..processes {
        let needs = draw.one(&["", "", "", "", ", capabilities = [\"fast\"]", ", devices = { camera = 1 }"]);
        let requires = draw.one(&[1, 1, 1, 0]);
        let requires = if shares == 1 { 1 } else { requires };
        lists[3].push(format!("{{ name = \"p{process}\", requires = {requires}{needs} }}"));
    }
    for _ in 0..draw.below(6) {
        let (from, to, size) = (draw.below(processes), draw.below(processes), 1 + draw.below(3));
        lists[4].push(format!("{{ from = \"p{from}\", to = \"p{to}\", bandwidth = {size} }}"));
    }
    let [switches, names, links, processes_list, streams] = lists.map(|list| list.join(",\n"));
    let mut text = format!(
        "switches=[{switches}]\nhosts=[{names}]\nlinks=[{links}]\nprocesses=[{processes_list}]\nstreams=[{streams}]\n"
    );
    let placed = match draw.below(3) {
        0 => processes,
        _ => draw.below(2).min(processes),
    };
    let place = |process: usize| format!("p{process} = \"h{}\"", (process + hosts / 2) % hosts);
    let with = format!("{text}mapping = {{ {} }}\n", (0..placed).map(place).collect::<Vec<_>>().join(", "));
    if placed > 0 && Instance::parse(with.as_bytes(), Path::new("drawn")).is_ok() {
        text = with;
    }
    Instance::parse(text.as_bytes(), Path::new("drawn")).unwrap()
}

/// A cable from a node to one of the switches below a number.
fn cable(draw: &mut Draw, node: usize, letter: &str, below: usize) -> String {
    let directed = if draw.below(12) == 0 { ", directed = true" } else { "" };
    let (to, size) = (draw.below(below), draw.one(&[2, 4, 9]));
    draw.1 += 1;
    let ports = format!("a_port = {}, b_port = {}", draw.1, draw.1);
    format!("{{ a = \"{letter}{node}\", b = \"s{to}\", bandwidth = {size}, {ports}{directed} }}")
}

fn rules(draw: &mut Draw) -> Rules {
    let weights = [
        (1000.0, 10.0, 1.0),
        (1000.0, 10.0, 1.0),
        (1.0, 1.0, 1.0),
        (0.0, 1.0, 0.25),
        (2.5, 0.0, 1.0),
        (7.0, 0.3, 0.0),
    ];
    let (longest, hops, entries) = draw.one(&weights);
    Rules {
        deadlock_free: draw.below(3) == 0,
        max_hops: draw.one(&[None, None, Some(3), Some(4)]),
        bandwidth_slack: draw.one(&[0.0, 0.0, 0.3]),
        performance_slack: draw.one(&[0.0, 0.0, 0.4]),
        switch_load: draw.one(&[None, None, Some(6.0)]),
        ..Rules::from(Weights { longest_route: longest, total_hops: hops, table_entries: entries })
    }
}

#[test]
fn small_instances_have_equal_optima() {
    let instances = if soak() { 50 * INSTANCES } else { INSTANCES };
    let mut answered = 0;
    for seed in 0..instances {
        let draw = &mut Draw(Random(seed), 0);
        let instance = instance(draw);
        let rules = rules(draw);
        let mapping = instance.mapping.as_ref();
        let mut problem = Problem::new(&instance.graph, &instance.system, mapping, rules).unwrap();
        if draw.below(3) == 0 {
            let hosts = (0..instance.graph.ranks()).map(|_| draw.one(&problem.hosts)).collect();
            problem.home = Some(Home { hosts, cost: draw.one(&[5.0, 0.5, 2000.0]) });
        }
        let paper = Paper { solver: &Highs }.solve(&problem, None, &StopCondition::endless()).unwrap();
        let cost = paper.plan.as_ref().map(|plan| problem.cost(plan));
        let compact = Compact { solver: &Highs }.solve(&problem, None, &StopCondition::endless());
        let compact = compact.unwrap_or_else(|error| panic!("{seed}: {error}"));
        let found = compact.plan.as_ref().map(|plan| problem.cost(plan));
        assert_eq!(cost.is_some(), found.is_some(), "{seed}: {cost:?} {found:?}");
        assert!(compact.proven && paper.proven, "{seed}");
        let (cost, found) = (cost.unwrap_or_default(), found.unwrap_or_default());
        assert!((cost - found).abs() < 1e-6 * cost.max(1.0), "{seed}: paper {cost}, compact {found}");
        if let Some(plan) = &paper.plan {
            answered += 1;
            assert!(
                (compact.bound - found).abs() < 1e-6 * found.max(1.0),
                "{seed}: {} {found}",
                compact.bound
            );
            // No plan below the optimum is found.
            let again =
                Compact { solver: &Highs }.solve(&problem, Some(plan), &StopCondition::endless()).unwrap();
            let cost = again.plan.as_ref().map_or(cost, |plan| problem.cost(plan));
            assert!(again.proven && (cost - found).abs() < 1e-6 * found.max(1.0), "{seed}: {cost} {found}");
            // A given mapping may exceed the capacities of hosts; only the checker tests that.
            let checked = answer(&problem, mapping, Method::Compact, Some(&Highs), &StopCondition::endless());
            assert!(mapping.is_some() || checked.unwrap().is_some(), "{seed}");
        }
    }
    assert!(answered * 3 > instances && answered < instances, "{answered} of {instances}");
}
