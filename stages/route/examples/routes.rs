//! Cost, bound and time of routes on generated meshes: `cargo run --release -p hopmap-route --example routes`.
#![allow(clippy::print_stdout, clippy::unwrap_used, missing_docs)]

use std::time::Instant;

use hopmap_routing::engine::{Engine, StopCondition};
use hopmap_routing::problem::{Plan, Problem};
use hopmap_routing::problem::{Rules, Weights};
use hopmap_routing::router::{QuickRouter, Router};

#[path = "../tests/support/samples.rs"]
mod samples;

use samples::Mesh;

fn main() {
    let m16 = Mesh {
        rows: 2,
        columns: 4,
        hosts: 2,
        processes: 16,
        streams: 20,
        bandwidth: 100,
        switch_type: 1,
        seed: 1,
    };
    let m24 = Mesh { rows: 3, processes: 24, streams: 30, ..m16 };
    let m64 = Mesh { rows: 4, hosts: 4, processes: 64, streams: 96, bandwidth: 200, ..m16 };
    let r256 = Mesh { rows: 8, columns: 8, hosts: 4, processes: 256, streams: 1000, bandwidth: 2000, ..m16 };
    println!("instance        quick µs    quick     cost      bound    gap %  proven  seconds");
    for (name, mesh) in [
        ("M16", m16),
        ("M24", m24),
        ("M64", m64),
        ("R256", r256),
        ("R256-1200", Mesh { bandwidth: 1200, ..r256 }),
        ("R256-900", Mesh { bandwidth: 900, ..r256 }),
        ("R256-700", Mesh { bandwidth: 700, ..r256 }),
    ] {
        for (switch_type, seed) in [(1, 1), (1, 2), (1, 3), (2, 1)] {
            measure(name, Mesh { switch_type, seed, ..mesh });
        }
    }
}

fn measure(name: &str, mesh: Mesh) {
    let instance = mesh.instance(true).unwrap();
    let weights = Weights { longest_route: 1000.0, total_hops: 10.0, table_entries: 1.0 };
    let problem =
        Problem::new(&instance.graph, &instance.system, instance.mapping.as_ref(), Rules::from(weights))
            .unwrap();
    let hosts = problem.mapped.clone().unwrap();
    let mut router = QuickRouter::new(&problem);
    let mut quick = router.route(&hosts, &StopCondition::endless());
    let begin = Instant::now();
    let times = 5;
    for _ in 0..times {
        quick = router.route(&hosts, &StopCondition::endless());
    }
    let micros = begin.elapsed().as_secs_f64() * 1e6 / f64::from(times);
    let first = match quick.keeps_rules {
        true => problem.cost(&Plan { hosts, routes: quick.routes }).to_string(),
        false => format!("+{:.2}", quick.excess),
    };
    let begin = processor_seconds();
    let found = Router::default().solve(&problem, None, &StopCondition::endless()).unwrap();
    let seconds = processor_seconds() - begin;
    let cost = found.plan.as_ref().map_or(f64::INFINITY, |plan| problem.cost(plan));
    let gap = (cost - found.bound) / cost * 100.0;
    println!(
        "{name:9} t{} s{} {micros:9.0} {first:>9} {cost:9} {:10.1} {gap:8.3} {:>6} {seconds:9.3} {:6}",
        mesh.switch_type, mesh.seed, found.bound, found.proven, found.nodes
    );
}

/// CPU seconds of this process, in the resolution of Linux (10 ms).
fn processor_seconds() -> f64 {
    let text = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let ticks = text.rsplit(')').next().unwrap_or_default().split_whitespace().skip(11).take(2);
    ticks.filter_map(|ticks| ticks.parse::<f64>().ok()).sum::<f64>() / 100.0
}
