//! Known optima are found and proven, and every solution passes the check (with the feature `highs`).
#![cfg(feature = "highs")]

use std::path::Path;

use crate::support::ring::ring;
use hopmap_model::{Mapping, Weight};
use hopmap_route::Instance;
use hopmap_routing::answer::{Answer, answer};
use hopmap_routing::engine::StopCondition;
use hopmap_routing::params::Method;
use hopmap_routing::problem::Problem;
use hopmap_routing::problem::{Rules, Weights};
use hopmap_routing::solver::Highs;
use hopmap_test_support::given_data;

/// The weights of the paper.
const WEIGHTS: Weights = Weights { longest_route: 1000.0, total_hops: 10.0, table_entries: 1.0 };

fn solved(instance: &Instance, mapping: Option<&Mapping>, deadlock_free: bool) -> Option<Answer> {
    let rules = Rules { deadlock_free, ..Rules::from(WEIGHTS) };
    let problem = Problem::new(&instance.graph, &instance.system, mapping, rules).unwrap();
    answer(&problem, mapping, Method::Auto, Some(&Highs), &StopCondition::endless()).unwrap()
}

/// Objective, whether it is proven, and whether the routes are deadlock-free.
fn found(answer: &Answer) -> (i64, bool, bool) {
    let metric = |name: &str| answer.routes.metrics[name];
    (metric("objective").round() as i64, metric("proven") > 0.0, metric("deadlock_free") > 0.0)
}

#[test]
fn deadlock_freedom_increases_the_objective() {
    for (size, free, price) in [(5, 4215, 5226), (6, 4258, 6280), (8, 4344, 8388)] {
        let instance = ring(size);
        let (objective, proven, _) = found(&solved(&instance, instance.mapping.as_ref(), false).unwrap());
        assert_eq!((objective, proven), (free, true), "{size}");
        let bound = found(&solved(&instance, instance.mapping.as_ref(), true).unwrap());
        assert_eq!(bound, (price, true, true), "{size}");
    }
}

#[test]
fn given_instances_have_their_known_optima() {
    let Some(data) = given_data() else { return };
    let mut answered = 0;
    for file in std::fs::read_dir(data.join("route")).unwrap().map(|entry| entry.unwrap().path()) {
        let name = file.file_stem().unwrap().to_string_lossy().into_owned();
        // The others take a minute or more.
        let is_quick = name.starts_with("example1-") || name.contains("problem1") || name.contains("perf");
        if !is_quick || file.extension().is_none_or(|extension| extension != "json") {
            continue;
        }
        let instance = Instance::read(&file).unwrap();
        let given: serde_json::Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
        let expected = given["expected"]["objective"].as_i64();
        let answer = solved(&instance, instance.mapping.as_ref(), false);
        assert_eq!(answer.as_ref().map(|answer| found(answer).0), expected, "{name}");
        assert!(answer.is_none_or(|answer| found(&answer).1), "{name}");
        answered += 1;
    }
    assert_eq!(answered, 11);
}

#[test]
fn solutions_respect_capabilities_devices_and_fixed_hosts() {
    let text = r#"
hosts     = [
    { name = "h1", performance = 2, devices = { camera = 1 } }, { name = "h2", performance = 2, capabilities = ["fpga"] },
    { name = "h3", performance = 2 },
]
switches  = [{ name = "A", type = 1 }]
links     = [{ a = "A", b = "h1", bandwidth = 9 }, { a = "A", b = "h2", bandwidth = 9 }, { a = "A", b = "h3", bandwidth = 9 }]
processes = [
    { name = "P1", requires = 1, devices = { camera = 1 } }, { name = "P2", requires = 1, capabilities = ["fpga"] },
    { name = "P3", requires = 1 }, { name = "P4", requires = 1 },
]
streams   = [{ from = "P1", to = "P3", bandwidth = 1 }, { from = "P3", to = "P2", bandwidth = 2 }, { from = "P4", to = "P3", bandwidth = 1 }]
mapping   = { P4 = "h3" }
"#;
    let instance = Instance::parse(text.as_bytes(), Path::new("instance")).unwrap();
    let answer = solved(&instance, None, false).unwrap();
    let hosts: Vec<&str> = (0..4).map(|rank| answer.mapping.host_of(rank)).collect();
    assert_eq!((hosts[0], hosts[1], hosts[3]), ("h1", "h2", "h3"));
    assert!(found(&answer).1);
    // Without the camera the problem is infeasible.
    let without = text.replace(", devices = { camera = 1 } }, { name = \"h2\"", " }, { name = \"h2\"");
    let instance = Instance::parse(without.as_bytes(), Path::new("instance")).unwrap();
    assert!(solved(&instance, None, false).is_none());
    let mapping = Mapping::new(&[0, 2, 4, 5], &instance.system, Weight::Bytes).unwrap();
    assert!(answer.routes.metrics["objective"] < 4000.0 && mapping.ranks.len() == 4);
}
