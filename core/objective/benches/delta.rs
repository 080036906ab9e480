//! Deltas of exchanges on the tree 4 x 16 x m, for a grid of 1024 and 16,384 ranks and for a random graph of 1024 ranks.

use divan::counter::ItemsCount;
use divan::{Bencher, black_box};
use hopmap_model::{CostModel, Edge, Levels, Node, Process, Slot, SystemGraph, TaskGraph, Weight};
use hopmap_objective::{Assignment, Problem, random};

/// Exchanges timed together.
const EXCHANGES: u32 = 4096;

fn main() {
    divan::main();
}

fn machine(slots: u32) -> SystemGraph {
    let groups = |size: u32| (0..slots).map(|slot| slot / size).collect();
    SystemGraph {
        routing: hopmap_model::Routing::default(),
        nodes: vec![Node::host("host")],
        links: Vec::new(),
        slots: (0..slots).map(|core| Slot { host: 0, core }).collect(),
        cost: CostModel::Levels(Levels {
            costs: vec![1.0, 10.0, 100.0],
            groups: [4, 64, slots].map(groups).to_vec(),
        }),
        calibration: Vec::new(),
    }
}

/// Every rank sends to the ranks at these distances, cyclically.
fn program(ranks: u32, distances: &[u32]) -> TaskGraph {
    let mut edges: Vec<_> = (0..ranks)
        .flat_map(|source| distances.iter().map(move |distance| (source, (source + distance) % ranks)))
        .map(|(source, destination)| Edge { source, destination, messages: 1, bytes: 8 })
        .collect();
    edges.sort_by_key(Edge::pair);
    TaskGraph { processes: vec![Process::default(); ranks as usize], edges, ..TaskGraph::default() }
}

fn deltas(bencher: Bencher<'_, '_>, ranks: u32, distances: &[u32]) {
    let Ok(problem) = Problem::new(&program(ranks, distances), &machine(ranks), Weight::Bytes) else {
        return;
    };
    let Ok(assignment) = Assignment::new(&problem, &random(ranks as usize, ranks as usize, [1; 32])) else {
        return;
    };
    bencher.counter(ItemsCount::new(EXCHANGES)).bench(|| {
        let exchange = |step: u32| assignment.delta(step * 7 % ranks, black_box(step * 641 % ranks));
        (0..EXCHANGES).map(exchange).sum::<i64>()
    });
}

#[divan::bench(args = [1024, 16_384])]
fn four_neighbours(bencher: Bencher<'_, '_>, ranks: u32) {
    deltas(bencher, ranks, &[1, 32]);
}

#[divan::bench(args = [1024, 16_384])]
fn sixteen_neighbours(bencher: Bencher<'_, '_>, ranks: u32) {
    deltas(bencher, ranks, &[1, 2, 31, 32, 33, 100, 300, 500]);
}
