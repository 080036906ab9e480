//! Time of every list heuristic for 100 tasks on 8 processors, and of the fast ones for 100,000 on 64.

use divan::Bencher;
use hopmap_model::{DelayModel, Dependency, Processor, Task, TaskDag, WorkUnit};
use hopmap_replay::{Distances, Linear, Machine, Network};
use hopmap_schedule::{Heuristic, Problem, bounds, list};

fn main() {
    divan::main();
}

/// Layers of tasks, each of which depends on some of the layer before.
fn layered(tasks: u32, width: u32, processors: usize) -> Problem {
    let mut state = 1u64;
    let mut random = move |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    let work = (0..tasks).map(|_| Task { rank: None, work: (1 + random(20)) as f64 }).collect();
    let mut dependencies = Vec::new();
    for destination in width..tasks {
        let first = destination / width * width - width;
        for _ in 0..3 {
            let source = first + random(u64::from(width)) as u32;
            dependencies.push(Dependency { source, destination, bytes: random(20) });
        }
    }
    dependencies.sort_unstable();
    let dag = TaskDag { tasks: work, dependencies, unit: WorkUnit::Time, ..TaskDag::default() };
    let network = Network::Linear {
        distances: Distances::Alike,
        classes: vec![Linear { latency: 0.0, per_byte: 0.0 }, Linear { latency: 0.0, per_byte: 1.0 }],
    };
    let machine =
        Machine { processors: vec![Processor::default(); processors], pace: vec![1.0; processors], network };
    Problem::new(&dag, &machine, DelayModel::Overlap).expect("a problem of small numbers")
}

#[divan::bench(args = Heuristic::tried().map(Heuristic::name))]
fn hundred(bencher: Bencher<'_, '_>, name: &str) {
    let problem = layered(100, 10, 8);
    let heuristic = Heuristic::of_name(name).unwrap_or_default();
    bencher.bench(|| list::plan(&problem, heuristic));
}

#[divan::bench(sample_count = 3, args = Heuristic::tried().filter(|one| !one.is_quadratic()).map(Heuristic::name))]
fn hundred_thousand(bencher: Bencher<'_, '_>, name: &str) {
    let problem = layered(100_000, 300, 64);
    let heuristic = Heuristic::of_name(name).unwrap_or_default();
    bencher.bench(|| list::plan(&problem, heuristic));
}

#[divan::bench]
fn lower_bound_hundred(bencher: Bencher<'_, '_>) {
    let problem = layered(100, 10, 8);
    bencher.bench(|| bounds::lower_bound(&problem));
}
