//! Searches for mappings of generated instances and of files; prints cost, bound, gap and CPU time.
#![allow(clippy::print_stdout, clippy::unwrap_used)]

use std::path::Path;

use hopmap_route::Instance;
use hopmap_routing::engine::{Engine, Limits, StopCondition};
use hopmap_routing::problem::Problem;
use hopmap_routing::problem::{Rules, Weights};
use hopmap_routing::search::Search;

#[path = "../tests/support/samples.rs"]
mod samples;

use samples::Mesh;

/// CPU seconds of this process.
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
            [size @ ("M16" | "M24" | "M64"), rest @ ..] => mesh(size, rest),
            ["P64", rest @ ..] => pairs(rest),
            ["F32", kind, seed] => fat_tree(kind, seed.parse().unwrap()),
            _ => Instance::read(Path::new(&name)).unwrap(),
        };
        let rules = Rules::from(Weights { longest_route: 1000.0, total_hops: 10.0, table_entries: 1.0 });
        let problem = Problem::new(&instance.graph, &instance.system, None, rules).unwrap();
        let begin = cpu_seconds();
        let limits = Limits { nodes: None, seconds };
        let found = Search::default().solve(&problem, None, &StopCondition::new(limits, &|| false)).unwrap();
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

/// A mesh of switches: their type, the seed, and optionally the bandwidth.
fn mesh(size: &str, rest: &[&str]) -> Instance {
    let number = |at: usize| rest.get(at).map(|text| text.parse::<usize>().unwrap());
    let mesh = Mesh {
        rows: 2,
        columns: 4,
        hosts: 2,
        processes: 16,
        streams: 20,
        bandwidth: number(2).unwrap_or(100),
        switch_type: number(0).unwrap(),
        seed: number(1).unwrap() as u64,
    };
    let mesh = match size {
        "M16" => mesh,
        "M24" => Mesh { rows: 3, processes: 24, streams: 30, ..mesh },
        _ => Mesh {
            rows: 4,
            hosts: 4,
            processes: 64,
            streams: 96,
            bandwidth: number(2).unwrap_or(200),
            ..mesh
        },
    };
    mesh.instance(false).unwrap()
}

/// Two processes on every host of a 4 × 4 mesh.
fn pairs(rest: &[&str]) -> Instance {
    let mesh = Mesh {
        rows: 4,
        columns: 4,
        hosts: 2,
        processes: 64,
        streams: 96,
        bandwidth: 200,
        switch_type: rest[0].parse().unwrap(),
        seed: rest[1].parse().unwrap(),
    };
    let mut instance = mesh.instance(false).unwrap();
    instance.system.nodes.iter_mut().for_each(|node| node.traits.performance = Some(2.0));
    instance
}

/// A fat tree of eight leaf switches with four hosts each and four spine switches, with the program of a mesh of the same number
/// of hosts.
fn fat_tree(kind: &str, seed: u64) -> Instance {
    let all =
        |count: usize, what: &dyn Fn(usize) -> String| (0..count).map(what).collect::<Vec<_>>().join(", ");
    let up = |link: usize| format!("{{ a = \"s{}\", b = \"t{}\", bandwidth = 100 }}", link / 4, link % 4);
    let down = |host: usize| format!("{{ a = \"s{}\", b = \"h{host}\", bandwidth = 200 }}", host / 4);
    let text = format!(
        "hosts = [{}]\nswitches = [{}, {}]\nlinks = [{}, {}]\nprocesses = []\nstreams = []\n",
        all(32, &|host| format!("{{ name = \"h{host}\", performance = 1 }}")),
        all(8, &|switch| format!("{{ name = \"s{switch}\", type = {kind} }}")),
        all(4, &|switch| format!("{{ name = \"t{switch}\", type = {kind} }}")),
        all(32, &up),
        all(32, &down),
    );
    let mesh = Mesh {
        rows: 2,
        columns: 4,
        hosts: 4,
        processes: 32,
        streams: 48,
        bandwidth: 100,
        switch_type: 1,
        seed,
    };
    let network = Instance::parse(text.as_bytes(), Path::new("fat tree")).unwrap();
    Instance { system: network.system, ..mesh.instance(false).unwrap() }
}
