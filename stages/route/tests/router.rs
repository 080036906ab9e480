//! Routes for processes that are where they are: they keep what they say.
#![allow(clippy::unwrap_used, clippy::print_stderr)]

use std::path::Path;

use hopmap_route::problem::{Plan, Problem};
use hopmap_route::router::{QuickRouter, quick};
use hopmap_route::samples::Mesh;
use hopmap_route::{Instance, Rules, Weights};

/// The paper's.
const WEIGHTS: Weights = Weights { longest: 1000.0, hops: 10.0, entries: 1.0 };

/// A ring of switches of type 1 with a host at each, and streams from every host to the next but one.
fn ring(size: usize) -> Instance {
    let all = |what: &dyn Fn(usize) -> String| (0..size).map(what).collect::<Vec<_>>().join(",");
    let text = format!(
        "hosts=[{}]\nswitches=[{}]\nlinks=[{},{}]\nprocesses=[{}]\nstreams=[{}]\nmapping={{{}}}\n",
        all(&|i| format!("{{ name = \"h{i}\", performance = 1 }}")),
        all(&|i| format!("{{ name = \"s{i}\", type = 1 }}")),
        all(&|i| format!("{{ a = \"s{i}\", b = \"s{}\", bandwidth = 100 }}", (i + 1) % size)),
        all(&|i| format!("{{ a = \"s{i}\", b = \"h{i}\", bandwidth = 100 }}")),
        all(&|i| format!("{{ name = \"p{i}\", requires = 1 }}")),
        all(&|i| format!("{{ from = \"p{i}\", to = \"p{}\", bandwidth = 1 }}", (i + 2) % size)),
        all(&|i| format!("p{i} = \"h{i}\"")),
    );
    Instance::parse(text.as_bytes(), Path::new("ring")).unwrap()
}

#[test]
fn quick_routes_on_rings_are_best() {
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

#[test]
fn a_router_remembers_nothing() {
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
            let found = router.route(&hosts);
            assert_eq!(found, quick(&problem, &hosts));
            assert_eq!(found.keeps_rules, problem.keeps_rules(&found.routes));
            assert_eq!(found.keeps_rules, found.excess <= 0.0);
        }
    }
}
