//! The compact program on instances whose optima are known (with the feature `highs`, and some with `HOPMAP_DATA`).
#![cfg(feature = "highs")]

use std::path::Path;

use crate::support::ring::ring;
use crate::support::samples::Mesh;
use hopmap_route::Instance;
use hopmap_routing::answer::answer;
use hopmap_routing::engine::StopCondition;
use hopmap_routing::params::Method;
use hopmap_routing::problem::Problem;
use hopmap_routing::problem::{Rules, Weights};
use hopmap_routing::solver::Highs;
use hopmap_test_support::given_data;
use serde_json::Value;

/// The objective, which is proven; none if infeasible.
fn optimum(instance: &Instance, deadlock_free: bool) -> Option<f64> {
    let rules = Rules {
        deadlock_free,
        ..Rules::from(Weights { longest_route: 1000.0, total_hops: 10.0, table_entries: 1.0 })
    };
    let mapping = instance.mapping.as_ref();
    let problem = Problem::new(&instance.graph, &instance.system, mapping, rules).unwrap();
    let answer =
        answer(&problem, mapping, Method::Compact, Some(&Highs), &StopCondition::endless()).unwrap()?;
    let metric = |name: &str| answer.routes.metrics[name];
    assert!(metric("proven") > 0.0 && (metric("deadlock_free") > 0.0 || !deadlock_free));
    Some(metric("objective").round())
}

/// A given instance as parsed from its file.
fn given(name: &str) -> Option<Value> {
    let data = given_data()?;
    let text = std::fs::read(data.join("route").join(name)).unwrap();
    Some(serde_json::from_slice(&text).unwrap())
}

fn of(value: &Value) -> Instance {
    Instance::parse(value.to_string().as_bytes(), Path::new("given")).unwrap()
}

#[test]
fn given_instances_have_their_known_optima() {
    let names =
        ["1-problem1", "1-problem1-type1", "1-problem2", "1-problem2-type1", "2-problem1", "2-problem1-CE"];
    let others =
        ["2-problem1-CF", "2-problem2-perf10", "2-problem2-perf20", "2-problem2-perf30", "2-problem2-perf60"];
    for name in names.into_iter().chain(others) {
        let Some(value) = given(&format!("example{name}.json")) else { return };
        assert_eq!(optimum(&of(&value), false), value["expected"]["objective"].as_f64(), "{name}");
    }
}

#[test]
fn one_switch_of_type_1_can_make_routing_infeasible() {
    let Some(value) = given("example1-problem1.json") else { return };
    for name in ["A", "B"] {
        let mut value = value.clone();
        let switches = value["switches"].as_array_mut().unwrap();
        let switch = switches.iter_mut().find(|switch| switch["name"] == name).unwrap();
        assert_eq!(switch["type"], 2);
        switch["type"] = 1.into();
        assert_eq!(optimum(&of(&value), false), None, "{name}");
    }
}

#[test]
fn with_more_performance_one_stream_leaves_its_host() {
    let Some(mut value) = given("example2-problem2-perf10.json") else { return };
    for performance in [40, 50] {
        for host in value["hosts"].as_array_mut().unwrap() {
            host["performance"] = performance.into();
        }
        // Two hops, one entry. The ten processes form groups of six and four that communicate.
        assert_eq!(optimum(&of(&value), false), Some(2021.0), "{performance}");
    }
}

#[test]
fn deadlock_freedom_on_rings_costs_hops() {
    for (size, free, price) in [(5, 4215.0, 5226.0), (6, 4258.0, 6280.0), (8, 4344.0, 8388.0)] {
        assert_eq!(optimum(&ring(size), false), Some(free), "{size}");
        assert_eq!(optimum(&ring(size), true), Some(price), "{size}");
    }
}

#[test]
fn meshes_are_proven() {
    let mesh = Mesh {
        rows: 2,
        columns: 2,
        hosts: 2,
        processes: 8,
        streams: 9,
        bandwidth: 100,
        switch_type: 1,
        seed: 1,
    };
    assert_eq!(optimum(&mesh.instance(false).unwrap(), false), Some(3251.0));
    let mesh = Mesh { columns: 3, processes: 12, streams: 14, ..mesh };
    assert_eq!(optimum(&mesh.instance(false).unwrap(), false), Some(3416.0));
}
