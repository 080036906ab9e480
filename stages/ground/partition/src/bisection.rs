//! A cut in two from nothing.

use crate::Graph;
use crate::coarsening::Coarse;
use crate::heap::Heap;
use crate::random::Random;
use crate::two_way::{Limits, TwoWay};

/// Vertices at which contraction ends, and the least part of the vertices that has to go in every step.
const COARSEST: usize = 80;
const LEAST_SHRINKING: f64 = 0.95;
const PASSES: u32 = 4;

/// Cuts a graph in two, of which the first should weigh `target`.
pub(crate) fn bisect(graph: &Graph, target: i64, tries: u32, random: &mut Random) -> Vec<u8> {
    let mut levels: Vec<Coarse> = Vec::new();
    let heaviest = (graph.total() / 30).max(1);
    let heaviest = u32::try_from(heaviest).unwrap_or(u32::MAX).max(graph.heaviest() as u32);
    loop {
        let current = levels.last().map_or(graph, |level| &level.graph);
        if current.vertices() <= COARSEST {
            break;
        }
        let coarse = Coarse::new(current, None, heaviest, random);
        if coarse.graph.vertices() as f64 > LEAST_SHRINKING * current.vertices() as f64 {
            break;
        }
        levels.push(coarse);
    }
    let mut two_way = TwoWay::default();
    let coarsest = levels.last().map_or(graph, |level| &level.graph);
    let mut side = grow_best(coarsest, target, tries, random, &mut two_way);
    for depth in (0..levels.len()).rev() {
        side = levels[depth].project(&side);
        let finer = if depth == 0 { graph } else { &levels[depth - 1].graph };
        two_way.refine(finer, &mut side, limits(finer, target));
    }
    side
}

fn limits(graph: &Graph, target: i64) -> Limits {
    let heaviest = graph.heaviest();
    let tolerance = if heaviest <= 1 { 0 } else { heaviest / 2 };
    let slack = heaviest.max(graph.total() as i64 / 100);
    let patience = (graph.vertices() / 20).clamp(25, 150);
    Limits { target, tolerance, slack, passes: PASSES, patience }
}

/// The best of some tries.
fn grow_best(graph: &Graph, target: i64, tries: u32, random: &mut Random, two_way: &mut TwoWay) -> Vec<u8> {
    let mut best: Option<((i64, i64), Vec<u8>)> = None;
    let limits = limits(graph, target);
    for _ in 0..tries.max(1) {
        let mut side = grow(graph, target, random);
        two_way.refine(graph, &mut side, limits);
        let value = value(graph, &side, limits);
        if best.as_ref().is_none_or(|best| value < best.0) {
            best = Some((value, side));
        }
    }
    best.map_or_else(Vec::new, |best| best.1)
}

/// By how much the sides are out of balance, and the cut.
fn value(graph: &Graph, side: &[u8], limits: Limits) -> (i64, i64) {
    let (mut weight, mut cut) = (0, 0);
    for vertex in 0..graph.vertices() as u32 {
        if side[vertex as usize] == 0 {
            weight += graph.weight(vertex);
            let across = graph.edges(vertex).filter(|edge| side[edge.0 as usize] != 0);
            cut += across.map(|edge| edge.1).sum::<i64>();
        }
    }
    (((weight - limits.target).abs() - limits.tolerance).max(0), cut)
}

/// Grows the first side from a random vertex, always by the vertex that the cut grows least by.
fn grow(graph: &Graph, target: i64, random: &mut Random) -> Vec<u8> {
    let vertices = graph.vertices();
    let mut side = vec![1; vertices];
    let mut heap = Heap::default();
    heap.reset(vertices);
    let gain = |vertex: u32| -> i64 { -graph.edges(vertex).map(|edge| edge.1).sum::<i64>() };
    let mut gains: Vec<i64> = (0..vertices as u32).map(gain).collect();
    let mut weight = 0;
    let mut seeds: Vec<u32> = (0..vertices as u32).collect();
    random.shuffle(&mut seeds);
    while weight < target {
        let next = heap.first().map(|first| first.1);
        let next = next.or_else(|| {
            while seeds.last().is_some_and(|&seed| side[seed as usize] == 0) {
                seeds.pop();
            }
            seeds.pop()
        });
        let Some(vertex) = next else { break };
        heap.remove(vertex);
        if weight + graph.weight(vertex) - target > target - weight {
            // Closer to the target without it.
            break;
        }
        side[vertex as usize] = 0;
        weight += graph.weight(vertex);
        for (neighbour, edge) in graph.edges(vertex) {
            if side[neighbour as usize] == 1 {
                gains[neighbour as usize] += 2 * edge;
                heap.set(neighbour, gains[neighbour as usize]);
            }
        }
    }
    side
}
