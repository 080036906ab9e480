//! J, T and CPU time of `map/hierarchical` on graphs in METIS format, on the tree S = 4:16:N/64, D = 1:10:100 of process mapping.
//!
//! `cargo run --release -p hopmap-map --example procmap -- [--threads N] [--seconds S] [--evaluations N] [--seed N] [--effort E] FILE…`
//!
//! FILE is an uncompressed text file or a generated graph: `grid:WxH`, `grid:WxHxD`, `geometric:N`. J counts
//! every undirected edge once.
#![allow(clippy::unwrap_used, clippy::print_stdout, clippy::panic, reason = "an example")]

use std::time::Instant;

use hopmap_map::{Hierarchical, HierarchicalParams, Mapper};
use hopmap_model::{
    Context, CostModel, Edge, Levels, Node, Observer, Process, Slot, SystemGraph, TaskGraph, Weight,
};
use hopmap_objective::Problem;
use hopmap_partition::Effort;

struct Silent;

impl Observer for Silent {
    fn progress(&self, _: u64, _: u64) {}
    fn log(&self, _: &str) {}
    fn cancelled(&self) -> bool {
        false
    }
}

fn main() {
    let mut params = HierarchicalParams::default();
    let mut threads = 1;
    let mut effort = None;
    let mut files = Vec::new();
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        let mut value = || args.next().unwrap();
        match arg.as_str() {
            "--threads" => threads = value().parse().unwrap(),
            "--seconds" => params.time_limit_s = Some(value().parse().unwrap()),
            "--evaluations" => params.evaluations = Some(value().parse().unwrap()),
            "--levels" => params.levels = hopmap_map::LevelChoice::Listed(vec![value().parse().unwrap()]),
            "--effort" => effort = Some(value()),
            "--seed" => params.seed = value().parse().unwrap(),
            _ => files.push(arg),
        }
    }
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
    println!(
        "{:<24} {:>12} {:>10} {:>12} {:>8} {:>8} {:>8}",
        "graph", "J", "T", "linear", "cpu s", "wall s", "peak MB"
    );
    for file in &files {
        let graph = made(file).unwrap_or_else(|| read(&std::fs::read_to_string(file).unwrap()));
        let system = machine(graph.ranks() as u32);
        let problem = Problem::new(&graph, &system, Weight::Bytes).unwrap();
        let mapper = Hierarchical::new(&params).unwrap();
        let mapper = match &effort {
            Some(effort) => mapper.with_effort(effort_of(effort)),
            None => mapper,
        };
        let (before, begin) = (cpu_seconds(), Instant::now());
        let cx = Context::new(threads, None, &Silent);
        let found = pool.install(|| mapper.map(&problem, &cx)).unwrap();
        let (cpu, wall) = (cpu_seconds() - before, begin.elapsed().as_secs_f64());
        let mut seen = vec![false; problem.slots()];
        assert!(
            found.slots.iter().all(|&slot| !std::mem::replace(&mut seen[slot as usize], true)),
            "one-to-one"
        );
        let shares = (0..problem.ranks()).map(|rank| {
            let cost = |other: u32| problem.distance().cost(found.slots[rank], found.slots[other as usize]);
            problem.neighbours(rank as u32).iter().map(|n| n.weight * cost(n.rank)).sum::<i64>()
        });
        let (t, j) = (shares.max().unwrap_or(0), problem.cost(&found.slots));
        let name = file.rsplit('/').next().unwrap();
        let linear = problem.cost(&problem.linear());
        println!("{name:<24} {j:>12} {t:>10} {linear:>12} {cpu:>8.3} {wall:>8.3} {:>8}", peak_megabytes());
    }
}

/// Tries, firsts, starts, cycles, work, vertices per part, sweeps and pairs.
fn effort_of(text: &str) -> Effort {
    let numbers: Vec<u32> = text.split(',').map(|word| word.parse().unwrap()).collect();
    let [tries, firsts, starts, cycles, work, coarsest, sweeps, pairs] = numbers[..] else {
        panic!("eight numbers")
    };
    Effort { tries, firsts, starts, cycles, work, coarsest, sweeps, pairs }
}

/// CPU seconds of all threads of this process.
fn cpu_seconds() -> f64 {
    let of_task = |task: std::io::Result<std::fs::DirEntry>| {
        let text = std::fs::read_to_string(task.unwrap().path().join("schedstat")).unwrap();
        text.split_whitespace().next().unwrap().parse::<f64>().unwrap()
    };
    std::fs::read_dir("/proc/self/task").unwrap().map(of_task).sum::<f64>() / 1e9
}

fn peak_megabytes() -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = text.lines().find(|line| line.starts_with("VmHWM")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() / 1024
}

/// Undirected edges in one direction, so that J counts each once.
fn graph(ranks: usize, mut edges: Vec<(u32, u32, u64)>) -> TaskGraph {
    edges.sort_unstable();
    let edge = |(source, destination, bytes)| Edge { source, destination, messages: 1, bytes };
    TaskGraph {
        processes: vec![Process::default(); ranks],
        edges: edges.into_iter().map(edge).collect(),
        ..TaskGraph::default()
    }
}

/// A graph in METIS format.
fn read(text: &str) -> TaskGraph {
    let mut lines = text.lines().filter(|line| !line.starts_with('%'));
    let header: Vec<u32> =
        lines.next().unwrap().split_whitespace().map(|word| word.parse().unwrap()).collect();
    let stride = if header.get(2) == Some(&1) { 2 } else { 1 };
    let mut edges = Vec::new();
    for (vertex, line) in (0..header[0]).zip(lines) {
        let numbers: Vec<u64> = line.split_whitespace().map(|word| word.parse().unwrap()).collect();
        for entry in numbers.chunks(stride) {
            let target = entry[0] as u32 - 1;
            if vertex < target {
                edges.push((vertex, target, entry.get(1).copied().unwrap_or(1)));
            }
        }
    }
    graph(header[0] as usize, edges)
}

/// A generated graph.
fn made(name: &str) -> Option<TaskGraph> {
    if let Some(n) = name.strip_prefix("geometric:") {
        return Some(geometric(n.parse().unwrap()));
    }
    let sides: Vec<u32> = name.strip_prefix("grid:")?.split('x').map(|side| side.parse().unwrap()).collect();
    let count: u32 = sides.iter().product();
    let mut edges = Vec::new();
    let mut stride = 1;
    for &side in &sides {
        let inside = |vertex: &u32| vertex / stride % side + 1 < side;
        edges.extend((0..count).filter(inside).map(|vertex| (vertex, vertex + stride, 1)));
        stride *= side;
    }
    Some(graph(count as usize, edges))
}

/// A random geometric graph: points in a square, joined below the radius that keeps the graph connected.
fn geometric(n: u32) -> TaskGraph {
    let mut state = 42u64;
    let mut random = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 11) as f64 / (1u64 << 53) as f64
    };
    let radius = 0.55 * (f64::from(n).ln() / f64::from(n)).sqrt();
    let cells = (1.0 / radius) as usize;
    let points: Vec<(f64, f64)> = (0..n).map(|_| (random(), random())).collect();
    let cell = |at: f64| ((at * cells as f64) as usize).min(cells - 1);
    let mut boxes = vec![Vec::new(); cells * cells];
    for (index, &(x, y)) in (0u32..).zip(&points) {
        boxes[cell(y) * cells + cell(x)].push(index);
    }
    let mut edges = Vec::new();
    for (index, &(x, y)) in (0u32..).zip(&points) {
        let around = |at: usize| at.saturating_sub(1)..(at + 2).min(cells);
        for row in around(cell(y)) {
            for column in around(cell(x)) {
                for &other in boxes[row * cells + column].iter().filter(|&&other| other > index) {
                    let (dx, dy) = (points[other as usize].0 - x, points[other as usize].1 - y);
                    if dx * dx + dy * dy < radius * radius {
                        edges.push((index, other, 1));
                    }
                }
            }
        }
    }
    graph(n as usize, edges)
}

/// S = 4:16:N/64, D = 1:10:100; the last group may be smaller.
fn machine(slots: u32) -> SystemGraph {
    let nodes = (0..slots.div_ceil(4)).map(|host| Node::host(format!("host{host}")));
    let group = |size: u32| (0..slots).map(|slot| slot / size).collect();
    SystemGraph {
        routing: hopmap_model::Routing::default(),
        nodes: nodes.collect(),
        links: Vec::new(),
        slots: (0..slots).map(|slot| Slot { host: slot / 4, core: slot % 4 }).collect(),
        cost: CostModel::Levels(Levels {
            costs: vec![1.0, 10.0, 100.0],
            groups: vec![group(4), group(64), vec![0; slots as usize]],
        }),
        calibration: Vec::new(),
    }
}
