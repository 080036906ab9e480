//! Evaluations per second of one island of simulated annealing, for grids on the tree 4 x 16 x m.

use divan::Bencher;
use divan::counter::ItemsCount;
use hopmap_map::{Annealing, AnnealingParams, Mapper, greedy};
use hopmap_model::{
    Context, CostModel, Edge, Levels, Node, NodeKind, Process, Slot, SystemGraph, TaskGraph, Weight,
};
use hopmap_objective::Problem;

/// Evaluations of one search, before its descent.
const EVALUATIONS: u64 = 1 << 20;

fn main() {
    divan::main();
}

fn machine(slots: u32) -> SystemGraph {
    let groups = |size: u32| (0..slots).map(|slot| slot / size).collect();
    SystemGraph {
        nodes: vec![Node { name: "host".into(), kind: NodeKind::Host }],
        links: Vec::new(),
        slots: (0..slots).map(|core| Slot { host: 0, core }).collect(),
        cost: CostModel::Levels(Levels {
            costs: vec![1.0, 10.0, 100.0],
            groups: [4, 64, slots].map(groups).to_vec(),
        }),
    }
}

/// A square grid in which every rank sends to its four neighbours.
fn grid(width: u32) -> TaskGraph {
    let ranks = width * width;
    let right = (0..ranks).filter(|rank| rank % width != 0).map(|rank| (rank - 1, rank));
    let down = (width..ranks).map(|rank| (rank - width, rank));
    let mut edges: Vec<_> = right
        .chain(down)
        .flat_map(|(a, b)| [(a, b), (b, a)])
        .map(|(source, destination)| Edge { source, destination, messages: 1, bytes: 8 })
        .collect();
    edges.sort_by_key(Edge::pair);
    TaskGraph { processes: vec![Process::default(); ranks as usize], edges, ..TaskGraph::default() }
}

#[divan::bench(args = [16, 32, 128, 256], sample_count = 5, sample_size = 1)]
fn one_island(bencher: Bencher<'_, '_>, width: u32) {
    let Ok(problem) = Problem::new(&grid(width), &machine(width * width), Weight::Bytes) else { return };
    let params = AnnealingParams { islands: 1, evaluations: Some(EVALUATIONS), ..AnnealingParams::default() };
    let Ok(mapper) = Annealing::new(&params) else { return };
    bencher.counter(ItemsCount::new(EVALUATIONS)).bench(|| mapper.map(&problem, &Context::detached()));
}

#[divan::bench(args = [32, 256], sample_count = 5, sample_size = 1)]
fn greedy_start(bencher: Bencher<'_, '_>, width: u32) {
    let Ok(problem) = Problem::new(&grid(width), &machine(width * width), Weight::Bytes) else { return };
    bencher.counter(ItemsCount::new(width * width)).bench(|| greedy(&problem));
}
