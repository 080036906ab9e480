//! Searches for mappings on generated instances and on files: cost, bound, gap and CPU time.
#![allow(clippy::print_stdout, clippy::unwrap_used)]

use std::path::Path;

use hopmap_route::engine::{Engine, Watch};
use hopmap_route::problem::Problem;
use hopmap_route::samples::Mesh;
use hopmap_route::search::Search;
use hopmap_route::solver::Limits;
use hopmap_route::{Instance, Rules, Weights};

/// CPU seconds of this process so far.
fn cpu_seconds() -> f64 {
    let text = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let rest = text.rsplit(')').next().unwrap_or_default();
    let ticks: f64 =
        rest.split_whitespace().skip(11).take(2).filter_map(|ticks| ticks.parse::<f64>().ok()).sum();
    ticks / 100.0
}

fn main() {
    let mut names: Vec<String> = std::env::args().skip(1).collect();
    let seconds = names.first().and_then(|name| name.parse::<f64>().ok());
    if seconds.is_some() {
        names.remove(0);
    }
    for name in names {
        let instance = match name.split(['-', '.']).collect::<Vec<_>>().as_slice() {
            [size @ ("M16" | "M24" | "M64"), kind, seed] => mesh(size, kind, seed),
            _ => Instance::read(Path::new(&name)).unwrap(),
        };
        let rules = Rules::from(Weights { longest: 1000.0, hops: 10.0, entries: 1.0 });
        let problem = Problem::new(&instance.graph, &instance.system, None, rules).unwrap();
        let begin = cpu_seconds();
        let limits = Limits { nodes: None, seconds };
        let found = Search::default().solve(&problem, None, &Watch::new(limits, &|| false)).unwrap();
        let cost = found.plan.as_ref().map_or(f64::INFINITY, |plan| problem.cost(plan));
        let kept = found.plan.as_ref().is_none_or(|plan| problem.keeps_rules(&plan.routes));
        println!(
            "{name}: cost {cost} bound {:.1} gap {:.1} % proven {} nodes {} cpu {:.2} s kept {kept}",
            found.bound,
            100.0 * (cost - found.bound) / cost,
            found.proven,
            found.nodes,
            cpu_seconds() - begin
        );
    }
}

fn mesh(size: &str, kind: &str, seed: &str) -> Instance {
    let mesh = Mesh {
        rows: 2,
        columns: 4,
        hosts: 2,
        processes: 16,
        streams: 20,
        bandwidth: 100,
        switch_type: kind.parse().unwrap(),
        seed: seed.parse().unwrap(),
    };
    let mesh = match size {
        "M16" => mesh,
        "M24" => Mesh { rows: 3, processes: 24, streams: 30, ..mesh },
        _ => Mesh { rows: 4, hosts: 4, processes: 64, streams: 96, bandwidth: 200, ..mesh },
    };
    mesh.instance(false).unwrap()
}
