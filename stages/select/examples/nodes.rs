//! Chooses 256 of 10,000 hosts of a tree, of 2,000 hosts in the plane and, with `--large`, of 10,000 in the
//! plane; 40 % of the hosts are free. Prints the CPU seconds of each method and its gap to the best known
//! value.
//!
//! `cargo run --release -p hopmap-select --example nodes`. The matrix of 10,000 hosts takes 800 MB.

#![expect(clippy::unwrap_used, reason = "an example stops at the first error")]
#![expect(clippy::print_stdout, reason = "its output is its purpose")]

use hopmap_model::{Context, CostModel, Levels, Matrix, Node, Slot, SystemGraph};
use hopmap_select::{Criterion, Method, Request, select};

/// CPU seconds of this thread, from Linux.
fn seconds() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    text.split(' ').next().unwrap().parse::<f64>().unwrap() * 1e-9
}

/// Pseudo-random numbers (`SplitMix64`).
struct Random(u64);

impl Random {
    /// A number in [0, 1).
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }
}

fn machine(hosts: u32, cost: CostModel) -> SystemGraph {
    SystemGraph {
        routing: hopmap_model::Routing::default(),
        nodes: (0..hosts).map(|i| Node::host(format!("n{i:05}"))).collect(),
        links: Vec::new(),
        slots: (0..hosts).map(|host| Slot { host, core: 0 }).collect(),
        cost,
        calibration: Vec::new(),
    }
}

/// 25 hosts per switch, 20 switches per pod, 20 pods.
fn tree() -> SystemGraph {
    let groups = [25, 500, 10_000].map(|size| (0..10_000).map(|host| host / size).collect());
    machine(10_000, CostModel::Levels(Levels { costs: vec![1.0, 10.0, 100.0], groups: groups.into() }))
}

fn plane(hosts: u32, random: &mut Random) -> SystemGraph {
    let points: Vec<(f64, f64)> = (0..hosts).map(|_| (random.next(), random.next())).collect();
    let far = |a: &(f64, f64), b: &(f64, f64)| ((a.0 - b.0).powi(2) + (a.1 - b.1).powi(2)).sqrt();
    let costs = points.iter().flat_map(|a| points.iter().map(move |b| far(a, b))).collect();
    machine(hosts, CostModel::Matrix(Matrix { costs }))
}

fn measure(name: &str, system: &SystemGraph, random: &mut Random, long: u32) {
    let hosts = system.slots.len() as u32;
    let free: Vec<u32> = (0..hosts).filter(|_| random.next() < 0.4).collect();
    println!("{name}: 256 of {} free hosts", free.len());
    for criterion in [Criterion::TotalDistance, Criterion::Cut] {
        let run = |method, starts, seed| {
            let request =
                Request { free: free.clone(), count: 256, criterion, method, seed, starts, roomy: false };
            let start = seconds();
            let selection = select(system, &request, &Context::detached()).unwrap();
            (selection, seconds() - start)
        };
        let (best, seconds) = run(Method::Auto, long, 7);
        let (best, seconds) = if best.proven { (best, seconds) } else { run(Method::Greedy, long, 7) };
        let proven = if best.proven { "proven" } else { "long run" };
        println!("  {criterion:?}: best known {:.4} ({proven}, {seconds:.2} s)", best.value);
        let gap = |value: f64| 100.0 * (value - best.value) / best.value;
        for method in [Method::Auto, Method::Greedy, Method::MinCut] {
            let (found, seconds) = run(method, 8, 1);
            println!("    {method:?}: {seconds:.2} s, {:.3} % above", gap(found.value));
        }
        println!("    first {:.1} %, random {:.1} % above", gap(best.of_first), gap(best.of_random));
    }
}

fn main() {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    pool.install(|| {
        let mut random = Random(2026);
        measure("tree of 10,000 hosts", &tree(), &mut random, 8);
        let system = plane(2_000, &mut random);
        measure("plane of 2,000 hosts", &system, &mut random, 300);
        if std::env::args().any(|argument| argument == "--large") {
            let system = plane(10_000, &mut random);
            measure("plane of 10,000 hosts", &system, &mut random, 100);
        }
    });
}
