//! Prints the time of goals and diagnoses on generated meshes: `cargo run --release -p hopmap-route --features highs --example
//! goals [SECONDS]`, with a time limit for each.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::time::Instant;

use hopmap_route::Instance;
use hopmap_routing::diagnosis::diagnose;
use hopmap_routing::engine::{Limits, StopCondition};
use hopmap_routing::goals::reach;
use hopmap_routing::params::{Goal, Method};
use hopmap_routing::problem::Problem;
use hopmap_routing::problem::{Rules, Weights};
use hopmap_routing::solver;

#[path = "../tests/support/samples.rs"]
mod samples;

use samples::Mesh;

/// The paper's.
const WEIGHTS: Weights = Weights { longest_route: 1000.0, total_hops: 10.0, table_entries: 1.0 };
const MESH: Mesh = Mesh {
    rows: 2,
    columns: 4,
    hosts: 2,
    processes: 16,
    streams: 20,
    bandwidth: 100,
    switch_type: 1,
    seed: 1,
};

fn main() {
    let seconds: f64 = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(60.0);
    let wide = Mesh { rows: 4, columns: 4, hosts: 4, processes: 64, streams: 96, bandwidth: 200, ..MESH };
    let large =
        Mesh { rows: 8, columns: 8, hosts: 4, processes: 256, streams: 1000, bandwidth: 2000, ..MESH };
    for (name, mesh, mapped) in [
        ("M16", MESH, false),
        ("M16 mapped", MESH, true),
        ("M64 mapped", wide, true),
        ("M64", wide, false),
        ("R256", large, true),
    ] {
        for goal in [Goal::BandwidthSlack, Goal::PerformanceSlack, Goal::SwitchLoad] {
            reached(name, &mesh.instance(mapped).unwrap(), goal, seconds);
        }
    }
    for (name, mesh, mapped) in [
        ("M16, 20", Mesh { bandwidth: 20, ..MESH }, false),
        ("M16 mapped, 50", Mesh { bandwidth: 50, ..MESH }, true),
        ("M64 mapped, 60", Mesh { bandwidth: 60, ..wide }, true),
        ("M64, 40", Mesh { bandwidth: 40, ..wide }, false),
        ("R256, 400", Mesh { bandwidth: 400, ..large }, true),
    ] {
        diagnosed(name, &mesh.instance(mapped).unwrap(), seconds);
    }
}

fn problem(instance: &Instance) -> Problem<'_> {
    let rules = Rules::from(WEIGHTS);
    Problem::new(&instance.graph, &instance.system, instance.mapping.as_ref(), rules).unwrap()
}

fn reached(name: &str, instance: &Instance, goal: Goal, seconds: f64) {
    let begin = Instant::now();
    let limits = Limits { nodes: None, seconds: Some(seconds) };
    let stop = StopCondition::new(limits, &|| false);
    let solver = solver::default();
    let mapping = instance.mapping.as_ref();
    let answer = reach(&problem(instance), mapping, goal, Method::Auto, solver.as_deref(), &stop);
    let took = begin.elapsed().as_secs_f64();
    match answer {
        Ok(Some(answer)) => {
            let metric = |name: &str| answer.routes.metrics.get(name).copied().unwrap_or(f64::NAN);
            println!(
                "{name:16} {goal:?}: {:.4} bound {:.4} proven {}, objective {} bound {} proven {}, {took:.1} s",
                metric("goal"),
                metric("goal_bound"),
                metric("goal_proven"),
                metric("objective"),
                metric("bound"),
                metric("proven"),
            );
        }
        Ok(None) => println!("{name:16} {goal:?}: infeasible, {took:.1} s"),
        Err(error) => println!("{name:16} {goal:?}: {error}, {took:.1} s"),
    }
}

fn diagnosed(name: &str, instance: &Instance, seconds: f64) {
    let begin = Instant::now();
    let limits = Limits { nodes: None, seconds: Some(seconds) };
    let stop = StopCondition::new(limits, &|| false);
    let solver = solver::default();
    let diagnosis = diagnose(&problem(instance), solver.as_deref(), &stop).unwrap();
    println!("{name:16} {:?}, {:.1} s", diagnosis.metrics, begin.elapsed().as_secs_f64());
    for cause in diagnosis.causes.iter().take(8) {
        println!("    {} {}", cause.remedy, cause.words);
    }
}
