//! The router for given mappings: its claims are correct.

use std::path::Path;

use crate::support::ring::ring;
use crate::support::samples::Mesh;

use hopmap_route::Instance;
use hopmap_routing::answer::answer;
use hopmap_routing::engine::{Engine, Limits, StopCondition};
use hopmap_routing::params::Method;
use hopmap_routing::problem::{Plan, Problem};
use hopmap_routing::problem::{Rules, Weights};
use hopmap_routing::router::{Quick, QuickRouter, Router};
use hopmap_test_support::given_data;

/// The weights of the paper.
const WEIGHTS: Weights = Weights { longest_route: 1000.0, total_hops: 10.0, table_entries: 1.0 };

fn quick(problem: &Problem<'_>, hosts: &[u32]) -> Quick {
    QuickRouter::new(problem).route(hosts, &StopCondition::endless())
}

#[test]
fn quick_routes_on_rings_are_optimal() {
    for (size, deadlock_free, expected) in [
        (5, false, 4215.0),
        (6, false, 4258.0),
        (8, false, 4344.0),
        (5, true, 5226.0),
        (6, true, 6280.0),
        (8, true, 8388.0),
    ] {
        let Instance { graph, system, mapping, .. } = ring(size);
        let rules = Rules { deadlock_free, ..Rules::from(WEIGHTS) };
        let problem = Problem::new(&graph, &system, mapping.as_ref(), rules).unwrap();
        let hosts = problem.mapped.clone().unwrap();
        let routes = quick(&problem, &hosts);
        assert!(routes.keeps_rules, "{size}");
        let cost = problem.cost(&Plan { hosts, routes: routes.routes });
        assert!((cost - expected).abs() < 1e-9, "{size} {deadlock_free}: {cost}");
    }
}

/// Cost and whether it is proven.
fn routed(instance: &Instance, deadlock_free: bool) -> (f64, bool) {
    let rules = Rules { deadlock_free, ..Rules::from(WEIGHTS) };
    let problem = Problem::new(&instance.graph, &instance.system, instance.mapping.as_ref(), rules).unwrap();
    let found = Router::default().solve(&problem, None, &StopCondition::endless()).unwrap();
    if let Some(plan) = &found.plan {
        assert!(problem.keeps_rules(&plan.routes));
    }
    let cost = found.plan.map_or(f64::INFINITY, |plan| problem.cost(&plan));
    assert!(!found.proven || (cost - found.bound).abs() < 1e-6 || cost.is_infinite());
    (cost, found.proven)
}

#[test]
fn known_optima_are_proven_without_a_solver() {
    for (size, free, price) in
        [(4, 4172.0, 4172.0), (5, 4215.0, 5226.0), (6, 4258.0, 6280.0), (8, 4344.0, 8388.0)]
    {
        assert_eq!(routed(&ring(size), false), (free, true), "{size}");
        assert_eq!(routed(&ring(size), true), (price, true), "{size}");
    }
    let Some(data) = given_data() else { return };
    for (name, expected) in [
        ("example1-problem1", 4085.0),
        ("example1-problem1-type1", f64::INFINITY),
        ("example2-problem1", f64::INFINITY),
        ("example2-problem1-CE", 5277.0),
        ("example2-problem1-CF", 5266.0),
    ] {
        let instance = Instance::read(&data.join("route").join(format!("{name}.json"))).unwrap();
        assert_eq!(routed(&instance, false), (expected, true), "{name}");
    }
}

#[test]
fn an_interrupted_search_keeps_its_bound_and_is_deterministic() {
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
    let Instance { graph, system, mapping, .. } = mesh.instance(true).unwrap();
    let problem = Problem::new(&graph, &system, mapping.as_ref(), Rules::from(WEIGHTS)).unwrap();
    let found = |nodes| {
        let limits = Limits { nodes: Some(nodes), seconds: None };
        Router::default().solve(&problem, None, &StopCondition::new(limits, &|| false)).unwrap()
    };
    let short = found(2);
    assert_eq!(short, found(2));
    let cost = problem.cost(short.plan.as_ref().unwrap());
    assert!(short.bound <= cost && cost - short.bound < 0.01 * cost, "{} {cost}", short.bound);
    assert!(!short.proven && short.nodes <= 3);
    // Nothing worse than the known plan is returned, and the known plan suffices.
    let again = Router::default().solve(
        &problem,
        short.plan.as_ref(),
        &StopCondition::new(Limits { nodes: Some(1), seconds: None }, &|| false),
    );
    assert!(problem.cost(&again.unwrap().plan.unwrap()) <= cost);
}

#[test]
fn a_router_is_independent_of_earlier_queries() {
    let mesh = Mesh {
        rows: 3,
        columns: 4,
        hosts: 2,
        processes: 24,
        streams: 30,
        bandwidth: 60,
        switch_type: 1,
        seed: 3,
    };
    let Instance { graph, system, .. } = mesh.instance(false).unwrap();
    for deadlock_free in [false, true] {
        let rules = Rules { deadlock_free, ..Rules::from(WEIGHTS) };
        let problem = Problem::new(&graph, &system, None, rules).unwrap();
        let mut router = QuickRouter::new(&problem);
        for shift in 0..5 {
            let hosts: Vec<u32> = (0..24).map(|rank| problem.hosts[(rank * 5 + shift) % 24]).collect();
            let found = router.route(&hosts, &StopCondition::endless());
            assert_eq!(found, quick(&problem, &hosts));
            assert_eq!(found.keeps_rules, problem.keeps_rules(&found.routes));
            assert_eq!(found.keeps_rules, found.excess <= 0.0);
        }
    }
}

/// A small random network: a tree of switches with further cables, some directed, some parallel, mixed types, hosts with one or
/// two cables.
#[cfg(feature = "highs")]
fn small(random: &mut hopmap_test_support::Random) -> String {
    let (switches, hosts) = (2 + random.below(4), 2 + random.below(4));
    let mut cables = Vec::new();
    let mut ports: std::collections::BTreeMap<String, usize> = std::collections::BTreeMap::new();
    let mut join = |a: String, b: String, bandwidth: usize, directed: bool| {
        let mut port = |name: &String| {
            let next = ports.entry(name.clone()).or_default();
            *next += 1;
            *next
        };
        let (a_port, b_port) = (port(&a), port(&b));
        cables.push(format!(
            "{{ a = \"{a}\", b = \"{b}\", bandwidth = {bandwidth}, a_port = {a_port}, b_port = {b_port}, directed = {directed} }}"
        ));
    };
    for switch in 1..switches {
        let other = random.below(switch);
        join(format!("s{switch}"), format!("s{other}"), 2 + random.below(8), false);
    }
    for _ in 0..random.below(5) {
        let (a, b) = (random.below(switches), random.below(switches));
        if a != b {
            join(format!("s{a}"), format!("s{b}"), 1 + random.below(8), random.below(3) == 0);
        }
    }
    for host in 0..hosts {
        for _ in 0..=random.below(5) / 4 {
            join(format!("h{host}"), format!("s{}", random.below(switches)), 6 + random.below(12), false);
        }
    }
    let all =
        |count: usize, what: &dyn Fn(usize) -> String| (0..count).map(what).collect::<Vec<_>>().join(",");
    let types: Vec<usize> = (0..switches).map(|_| 1 + random.below(2)).collect();
    let places: Vec<usize> = (0..=hosts).map(|_| random.below(hosts)).collect();
    let streams: Vec<String> = (0..=random.below(7))
        .map(|_| {
            let (from, to) = (random.below(hosts + 1), random.below(hosts + 1));
            format!("{{ from = \"p{from}\", to = \"p{to}\", bandwidth = {} }}", 1 + random.below(4))
        })
        .collect();
    format!(
        "hosts=[{}]\nswitches=[{}]\nlinks=[{}]\nprocesses=[{}]\nstreams=[{}]\nmapping={{{}}}\n",
        all(hosts, &|i| format!("{{ name = \"h{i}\", performance = 9 }}")),
        all(switches, &|i| format!("{{ name = \"s{i}\", type = {} }}", types[i])),
        cables.join(","),
        all(hosts + 1, &|i| format!("{{ name = \"p{i}\", requires = 1 }}")),
        streams.join(","),
        all(hosts + 1, &|i| format!("p{i} = \"h{}\"", places[i])),
    )
}

#[test]
#[cfg(feature = "highs")]
fn bounds_and_costs_enclose_the_optimum_of_the_paper() {
    use hopmap_routing::paper::Paper;
    use hopmap_routing::solver::Highs;

    let cases: u64 = if hopmap_test_support::soak() { 6000 } else { 60 };
    let (mut solved, mut infeasible, mut open) = (0, 0, 0);
    for seed in 0..cases {
        let mut random = hopmap_test_support::Random(seed);
        let text = small(&mut random);
        let Ok(instance) = Instance::parse(text.as_bytes(), std::path::Path::new("small")) else { continue };
        let rules = Rules {
            deadlock_free: random.below(3) == 0,
            max_hops: (random.below(4) == 0).then(|| 3 + random.below(3) as u32),
            switch_load: (random.below(4) == 0).then(|| 4.0 + random.below(8) as f64),
            bandwidth_slack: if random.below(4) == 0 { 0.2 } else { 0.0 },
            ..Rules::from(match random.below(5) {
                0 => Weights { longest_route: 0.0, total_hops: 1.0, table_entries: 3.5 },
                1 => Weights { longest_route: 2.5, total_hops: 0.5, table_entries: 4.0 },
                2 => Weights { longest_route: 1.0, total_hops: 0.0, table_entries: 1.0 },
                _ => WEIGHTS,
            })
        };
        let Instance { graph, system, mapping, .. } = &instance;
        let problem = Problem::new(graph, system, mapping.as_ref(), rules).unwrap();
        let found = Router::default().solve(&problem, None, &StopCondition::endless()).unwrap();
        let paper = Paper { solver: &Highs }.solve(&problem, None, &StopCondition::endless()).unwrap();
        assert!(paper.proven);
        let optimum = paper.plan.as_ref().map_or(f64::INFINITY, |plan| problem.cost(plan));
        let cost = found.plan.as_ref().map_or(f64::INFINITY, |plan| problem.cost(plan));
        assert!(found.bound <= optimum + 1e-6, "{seed}: bound {} above {optimum}\n{text}", found.bound);
        assert!(cost >= optimum - 1e-6, "{seed}: {cost} below {optimum}\n{text}");
        assert!(found.plan.is_none_or(|plan| problem.keeps_rules(&plan.routes)));
        if found.proven {
            let is_same = cost.is_infinite() && optimum.is_infinite() || (cost - optimum).abs() < 1e-6;
            assert!(is_same, "{seed}: {cost} is not {optimum}\n{text}");
        } else {
            open += 1;
            eprintln!("open: {seed} {} {optimum} {cost} {rules:?}", found.bound);
        }
        if optimum.is_finite() { solved += 1 } else { infeasible += 1 }
    }
    assert!(solved > 10 && infeasible > 5 && open * 10 < solved, "{solved} {infeasible} {open}");
}

/// Two leaves with `hosts` hosts each, and as many spines; every host of the first leaf sends to one of the second.
fn two_leaves(hosts: usize) -> Instance {
    let mut text = "hosts = [".to_owned();
    let each = |text: &mut String, item: &dyn Fn(usize) -> String| {
        (0..hosts).for_each(|index| text.push_str(&(item(index) + ", ")));
    };
    each(&mut text, &|host| {
        format!("{{ name = 'a{host}', performance = 1 }}, {{ name = 'b{host}', performance = 1 }}")
    });
    text.push_str("]\nswitches = [{ name = 'A', type = 1 }, { name = 'B', type = 1 }, ");
    each(&mut text, &|spine| format!("{{ name = 's{spine}', type = 1 }}"));
    text.push_str("]\nlinks = [");
    for leaf in ["a", "b"] {
        let switch = leaf.to_uppercase();
        each(&mut text, &|host| {
            format!(
                "{{ a = '{switch}', b = '{leaf}{host}', bandwidth = 1 }}, {{ a = '{switch}', b = 's{host}', bandwidth = 100 }}"
            )
        });
    }
    text.push_str("]\nprocesses = [");
    each(&mut text, &|host| {
        format!("{{ name = 'p{host}', requires = 1 }}, {{ name = 'q{host}', requires = 1 }}")
    });
    text.push_str("]\nstreams = [");
    each(&mut text, &|host| format!("{{ from = 'p{host}', to = 'q{host}', bandwidth = 1 }}"));
    text.push_str("]\n[mapping]\n");
    (0..hosts).for_each(|host| text.push_str(&format!("p{host} = 'a{host}'\nq{host} = 'b{host}'\n")));
    Instance::parse(text.as_bytes(), Path::new("instance")).unwrap()
}

#[test]
fn routes_that_cost_the_same_are_spread_over_the_spines() {
    for (hosts, deadlock_free) in [(4, false), (4, true), (12, false)] {
        let Instance { graph, system, mapping, .. } = two_leaves(hosts);
        let rules = Rules { deadlock_free, ..Rules::from(WEIGHTS) };
        let problem = Problem::new(&graph, &system, mapping.as_ref(), rules).unwrap();
        let answer = answer(&problem, mapping.as_ref(), Method::Search, None, &StopCondition::endless());
        let metrics = answer.unwrap().unwrap().routes.metrics;
        let metric = |name: &str| metrics[name];
        assert!((metric("largest_link_load") - 1.0).abs() < 1e-9, "{metrics:?}");
        assert!((metric("largest_link_load_bound") - 1.0).abs() < 1e-9, "{metrics:?}");
        assert!((metric("proven") - 1.0).abs() < 1e-9, "{metrics:?}");
    }
}
