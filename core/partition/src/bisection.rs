//! A cut in two from nothing.

use hopmap_random::{Draw, Pcg64};

use crate::Graph;
use crate::coarsening::Coarse;
use crate::two_way::{Heap, Limits, Two, TwoWay};

/// Vertices at which contraction ends, and the least part of the vertices that has to go in every step.
const COARSEST: usize = 80;
const LEAST_SHRINKING: f64 = 0.95;
const PASSES: u32 = 4;

/// Cuts a graph in two, of which the first should weigh `target`.
pub(crate) fn bisect(graph: &Graph, target: i64, tries: u32, random: &mut Pcg64) -> Vec<u32> {
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
        refine(finer, &mut side, target, &mut two_way);
    }
    side
}

fn tolerance(graph: &Graph) -> i64 {
    if graph.heaviest() <= 1 { 0 } else { graph.heaviest() / 2 }
}

fn refine(graph: &Graph, side: &mut [u32], target: i64, two_way: &mut TwoWay) {
    let mut members = [Vec::new(), Vec::new()];
    (0..).zip(side.iter()).for_each(|(vertex, &side)| members[side as usize].push(vertex));
    let weight: i64 = members[0].iter().map(|&vertex| graph.weight(vertex)).sum();
    let limits = Limits {
        over: weight - target,
        tolerance: tolerance(graph),
        slack: graph.heaviest().max(graph.total().cast_signed() / 100),
        passes: PASSES,
        patience: (graph.vertices() / 20).clamp(25, 150),
        promise: i64::MIN,
    };
    let two = Two { graph, parts: side, pair: [0, 1], members: [&members[0], &members[1]] };
    let touches =
        |&vertex: &u32| graph.edges(vertex).any(|(target, _)| side[target as usize] != side[vertex as usize]);
    let seeds: Vec<u32> = (0..graph.vertices() as u32).filter(touches).collect();
    let refined = two_way.refine(two, seeds.into_iter(), limits);
    refined.moved.into_iter().for_each(|vertex| side[vertex as usize] ^= 1);
}

/// The best of some tries.
fn grow_best(graph: &Graph, target: i64, tries: u32, random: &mut Pcg64, two_way: &mut TwoWay) -> Vec<u32> {
    let mut best: Option<((i64, i64), Vec<u32>)> = None;
    for _ in 0..tries.max(1) {
        let mut side = grow(graph, target, random);
        refine(graph, &mut side, target, two_way);
        let value = value(graph, &side, target);
        if best.as_ref().is_none_or(|best| value < best.0) {
            best = Some((value, side));
        }
    }
    best.map_or_else(Vec::new, |best| best.1)
}

/// By how much the sides are out of balance, and the cut.
fn value(graph: &Graph, side: &[u32], target: i64) -> (i64, i64) {
    let (mut weight, mut cut) = (0, 0);
    for vertex in 0..graph.vertices() as u32 {
        if side[vertex as usize] == 0 {
            weight += graph.weight(vertex);
            let across = graph.edges(vertex).filter(|edge| side[edge.0 as usize] != 0);
            cut += across.map(|edge| edge.1).sum::<i64>();
        }
    }
    (((weight - target).abs() - tolerance(graph)).max(0), cut)
}

/// Grows the first side from a random vertex, always by the vertex that the cut grows least by.
fn grow(graph: &Graph, target: i64, random: &mut Pcg64) -> Vec<u32> {
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
