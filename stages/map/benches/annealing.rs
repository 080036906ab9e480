//! Evaluations per second of one island of simulated annealing and tabu search, for grids and all-to-all programs on the tree
//! 4 x 16 x m.

use divan::Bencher;
use divan::counter::ItemsCount;
use hopmap_map::{Annealing, AnnealingParams, Mapper, Tabu, TabuParams, greedy};
use hopmap_model::{Context, CostModel, Edge, Levels, Node, Process, Slot, SystemGraph, TaskGraph, Weight};
use hopmap_objective::Problem;

/// Evaluations of one search, before its descent.
const EVALUATIONS: u64 = 1 << 20;

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
    anneal(bencher, &problem);
}

#[divan::bench(args = [32, 256], sample_count = 5, sample_size = 1)]
fn greedy_start(bencher: Bencher<'_, '_>, width: u32) {
    let Ok(problem) = Problem::new(&grid(width), &machine(width * width), Weight::Bytes) else { return };
    bencher.counter(ItemsCount::new(width * width)).bench(|| greedy(&problem));
}

/// All-to-all communication with bytes below a bound.
fn everybody(ranks: u32, bound: u32) -> TaskGraph {
    let pairs = (0..ranks).flat_map(|source| (0..ranks).map(move |destination| (source, destination)));
    let bytes = |source: u32, destination: u32| u64::from(1 + (source * 31 + destination * 17) % bound);
    let edge =
        |(source, destination)| Edge { source, destination, messages: 1, bytes: bytes(source, destination) };
    TaskGraph {
        processes: vec![Process::default(); ranks as usize],
        edges: pairs.filter(|(source, destination)| source != destination).map(edge).collect(),
        ..TaskGraph::default()
    }
}

fn anneal(bencher: Bencher<'_, '_>, problem: &Problem) {
    let params = AnnealingParams { islands: 1, evaluations: Some(EVALUATIONS), ..AnnealingParams::default() };
    let Ok(mapper) = Annealing::new(&params) else { return };
    bencher.counter(ItemsCount::new(EVALUATIONS)).bench(|| mapper.map(problem, &Context::detached()));
}

#[divan::bench(args = [64, 256, 1024], sample_count = 3, sample_size = 1)]
fn dense_program(bencher: Bencher<'_, '_>, ranks: u32) {
    let Ok(problem) = Problem::new(&everybody(ranks, 50), &machine(ranks), Weight::Bytes) else { return };
    anneal(bencher, &problem);
}

#[divan::bench(args = [64, 256, 1024], sample_count = 3, sample_size = 1)]
fn dense_program_neighbour_by_neighbour(bencher: Bencher<'_, '_>, ranks: u32) {
    let Ok(problem) = Problem::new(&everybody(ranks, 50), &machine(ranks), Weight::Bytes) else { return };
    anneal(bencher, &problem.neighbour_by_neighbour());
}

#[divan::bench(args = [4, 8, 16, 32], sample_count = 3, sample_size = 1)]
fn tabu(bencher: Bencher<'_, '_>, width: u32) {
    let Ok(problem) = Problem::new(&grid(width), &machine(width * width), Weight::Bytes) else { return };
    tabu_search(bencher, &problem);
}

#[divan::bench(args = [27, 64, 256, 1024], sample_count = 3, sample_size = 1)]
fn tabu_of_a_dense_program(bencher: Bencher<'_, '_>, ranks: u32) {
    let Ok(problem) = Problem::new(&everybody(ranks, 50), &machine(ranks), Weight::Bytes) else { return };
    tabu_search(bencher, &problem);
}

fn tabu_search(bencher: Bencher<'_, '_>, problem: &Problem) {
    const TABU_EVALUATIONS: u64 = 1 << 25;
    let params = TabuParams { islands: 1, evaluations: Some(TABU_EVALUATIONS), ..TabuParams::default() };
    let Ok(mapper) = Tabu::new(&params) else { return };
    bencher.counter(ItemsCount::new(TABU_EVALUATIONS)).bench(|| mapper.map(problem, &Context::detached()));
}
