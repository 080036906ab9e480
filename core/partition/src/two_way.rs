//! Bisection by coarsening and growth, and its refinement.

use std::cmp::Reverse;

use hopmap_graph::IndexedHeap;
use hopmap_random::{Draw, Pcg64};

use crate::coarsening::contractions;
use crate::graph::Graph;

/// Refinement parameters of a bisection.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// Overweight of the first side.
    pub(crate) over: i64,
    /// Allowed imbalance at the end.
    pub(crate) tolerance: i64,
    /// Allowed imbalance during a pass.
    pub(crate) slack: i64,
    /// Maximum passes.
    pub(crate) passes: u32,
    /// Moves without improvement after which a pass ends.
    pub(crate) patience: usize,
    /// Minimum total gain of the best forward and backward moves.
    pub(crate) promise: i64,
}

/// Two parts of a graph.
#[derive(Clone, Copy)]
pub(crate) struct Two<'a> {
    pub(crate) graph: &'a Graph,
    /// The part of every vertex.
    pub(crate) parts: &'a [u32],
    pub(crate) pair: [u32; 2],
    /// The vertices of both parts.
    pub(crate) members: [&'a [u32]; 2],
}

/// Moves vertices between two parts, each at most once per pass, and keeps the best state of every pass
/// (Fiduccia and Mattheyses 1982). Vertices are loaded only when they or their neighbours may move, so that
/// the work grows with the boundary.
#[derive(Default)]
pub(crate) struct TwoWay {
    vertices: Vec<Vertex>,
    /// Counts the refinements.
    epoch: u32,
    /// Counts the passes.
    turn: u32,
    known: Vec<u32>,
    heaps: [Heap; 2],
    moves: Vec<u32>,
    /// Visited edges.
    work: u64,
}

/// Result of a refinement.
pub(crate) struct Refined {
    /// The vertices to move.
    pub(crate) moved: Vec<u32>,
    /// Visited edges.
    pub(crate) work: u64,
}

/// State of a vertex.
#[derive(Clone, Copy, Default)]
struct Vertex {
    gain: i64,
    /// The refinement in which it was loaded.
    epoch: u32,
    /// The pass in which it moved.
    turn: u32,
    side: u8,
}

/// In neither part.
const ELSEWHERE: u8 = 2;

impl TwoWay {
    /// Refines from some vertices at the boundary.
    pub(crate) fn refine(
        &mut self,
        two: Two<'_>,
        seeds: impl Iterator<Item = u32>,
        limits: Limits,
    ) -> Refined {
        self.begin(two.graph.vertices());
        for seed in seeds {
            if self.vertices[seed as usize].epoch != self.epoch && self.side(two, seed) != ELSEWHERE {
                self.meet(two, seed);
            }
        }
        let mut over = limits.over;
        for pass in 0..limits.passes {
            self.fill();
            if pass == 0 && limits.over == 0 && self.promise() <= limits.promise {
                break;
            }
            over = self.pass(two, over, limits);
            if self.moves.is_empty() {
                break;
            }
        }
        let changed = |&vertex: &u32| {
            let side = usize::from(self.vertices[vertex as usize].side);
            two.parts[vertex as usize] != two.pair[side]
        };
        Refined { moved: self.known.iter().copied().filter(changed).collect(), work: self.work }
    }

    fn begin(&mut self, vertices: usize) {
        if self.vertices.len() < vertices || self.epoch == u32::MAX || self.turn > u32::MAX / 2 {
            self.vertices.clear();
            self.vertices.resize(vertices, Vertex::default());
            (self.epoch, self.turn) = (0, 0);
        }
        self.epoch += 1;
        self.known.clear();
        self.work = 0;
        self.heaps.iter_mut().for_each(Heap::clear);
    }

    #[inline]
    fn side(&self, two: Two<'_>, vertex: u32) -> u8 {
        let known = self.vertices[vertex as usize];
        if known.epoch == self.epoch {
            return known.side;
        }
        match two.parts[vertex as usize] {
            part if part == two.pair[0] => 0,
            part if part == two.pair[1] => 1,
            _ => ELSEWHERE,
        }
    }

    /// Loads a vertex of one of the two parts.
    fn meet(&mut self, two: Two<'_>, vertex: u32) {
        let own = self.side(two, vertex);
        self.work += two.graph.degree(vertex) as u64;
        let mut gain = if own == 0 { two.graph.pull(vertex) } else { -two.graph.pull(vertex) };
        for (target, weight) in two.graph.edges(vertex) {
            let side = self.side(two, target);
            if side != ELSEWHERE && target != vertex {
                gain += if side == own { -weight } else { weight };
            }
        }
        self.vertices[vertex as usize] = Vertex { gain, epoch: self.epoch, turn: 0, side: own };
        self.known.push(vertex);
    }

    /// Total gain of the best forward and backward moves.
    fn promise(&self) -> i64 {
        let gain = |heap: &Heap| heap.first().map_or(i64::MIN / 4, |first| first.0);
        gain(&self.heaps[0]) + gain(&self.heaps[1])
    }

    /// Allows all loaded vertices to move.
    fn fill(&mut self) {
        self.turn += 1;
        self.moves.clear();
        self.heaps.iter_mut().for_each(Heap::clear);
        for &vertex in &self.known {
            let Vertex { gain, side, .. } = self.vertices[vertex as usize];
            self.heaps[usize::from(side)].set(vertex, gain);
        }
    }

    /// One pass from an overweight of `over`; returns the new overweight. Keeps the moves of the best state.
    fn pass(&mut self, two: Two<'_>, mut over: i64, limits: Limits) -> i64 {
        let excess = |over: i64| (over.abs() - limits.tolerance).max(0);
        let mut best = (excess(over), 0i64, over, 0usize);
        let mut saved = 0;
        while self.moves.len() - best.3 < limits.patience {
            let Some((vertex, gain)) = self.choose(two, over, limits) else { break };
            let weight = two.graph.weight(vertex);
            over += if self.vertices[vertex as usize].side == 0 { -weight } else { weight };
            saved += gain;
            self.move_over(two, vertex, true);
            self.moves.push(vertex);
            let point = (excess(over), -saved, over.abs());
            if point < (best.0, -best.1, best.2.abs()) {
                best = (point.0, saved, over, self.moves.len());
            }
        }
        let undone = self.moves.split_off(best.3);
        for &vertex in undone.iter().rev() {
            self.move_over(two, vertex, false);
        }
        best.2
    }

    /// The vertex to move next.
    fn choose(&mut self, two: Two<'_>, over: i64, limits: Limits) -> Option<(u32, i64)> {
        if over.abs() > limits.tolerance && self.heaps[usize::from(over < 0)].first().is_none() {
            self.open(two, usize::from(over < 0));
        }
        loop {
            let tops = [self.heaps[0].first(), self.heaps[1].first()];
            let from = match tops {
                [None, None] => return None,
                [Some(_), None] => 0,
                [None, Some(_)] => 1,
                [Some(_), Some(_)] if over > limits.slack => 0,
                [Some(_), Some(_)] if over < -limits.slack => 1,
                [Some((zero, _)), Some((one, _))] if zero == one => usize::from(over < 0),
                [Some((zero, _)), Some((one, _))] => usize::from(one > zero),
            };
            let (gain, vertex) = tops[from]?;
            self.heaps[from].remove(vertex);
            let weight = two.graph.weight(vertex);
            let after = over + if from == 0 { -weight } else { weight };
            if after.abs() <= limits.slack || after.abs() < over.abs() {
                return Some((vertex, gain));
            }
        }
    }

    /// Allows all vertices of a side to move, not only those at the boundary.
    fn open(&mut self, two: Two<'_>, from: usize) {
        for &vertex in two.members[from] {
            if self.vertices[vertex as usize].epoch != self.epoch {
                self.meet(two, vertex);
            }
            let Vertex { gain, turn, side, .. } = self.vertices[vertex as usize];
            if turn != self.turn && usize::from(side) == from {
                self.heaps[from].set(vertex, gain);
            }
        }
    }

    /// Moves a vertex to the other side; if `forth`, it may not move again, and its neighbours become
    /// candidates.
    fn move_over(&mut self, two: Two<'_>, vertex: u32, forth: bool) {
        let entry = &mut self.vertices[vertex as usize];
        let own = entry.side;
        entry.side = 1 - own;
        entry.gain = -entry.gain;
        entry.turn = self.turn;
        self.work += two.graph.degree(vertex) as u64;
        for (target, weight) in two.graph.edges(vertex) {
            let side = self.side(two, target);
            if side == ELSEWHERE || target == vertex {
                continue;
            }
            if self.vertices[target as usize].epoch == self.epoch {
                let change = if side == own { 2 * weight } else { -2 * weight };
                self.vertices[target as usize].gain += change;
            } else if forth {
                self.meet(two, target);
            } else {
                continue;
            }
            let Vertex { gain, turn, .. } = self.vertices[target as usize];
            if forth && turn != self.turn {
                self.heaps[usize::from(side)].set(target, gain);
            }
        }
    }
}

/// Priority queue of vertices by gain, largest first; ties go to the latest change.
#[derive(Default)]
pub(crate) struct Heap {
    /// Gain, time of change, vertex.
    entries: IndexedHeap<(i64, u32, u32)>,
    clock: u32,
}

impl Heap {
    /// Clears it.
    pub(crate) fn clear(&mut self) {
        self.entries.clear();
        self.clock = 0;
    }

    /// The largest gain and its vertex.
    #[inline]
    pub(crate) fn first(&self) -> Option<(i64, u32)> {
        self.entries.first().map(|(gain, _, vertex)| (gain, vertex))
    }

    /// Inserts a vertex or changes its gain.
    pub(crate) fn set(&mut self, vertex: u32, gain: i64) {
        self.clock += 1;
        self.entries.set((gain, self.clock, vertex));
    }

    /// Removes a vertex, if present.
    pub(crate) fn remove(&mut self, vertex: u32) {
        self.entries.remove(vertex);
    }
}

/// Vertices at which coarsening ends.
const COARSEST: usize = 80;
const PASSES: u32 = 4;

/// Bisects a graph; the target weight of the first side is `target`.
pub(crate) fn bisect(graph: &Graph, target: i64, tries: u32, random: &mut Pcg64) -> Vec<u32> {
    let heaviest = (graph.total() / 30).max(1);
    let heaviest = u32::try_from(heaviest).unwrap_or(u32::MAX).max(graph.heaviest() as u32);
    let levels = contractions(graph, None, COARSEST, heaviest, random);
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

/// The best of several attempts.
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

/// Imbalance of the sides, and the cut without what the vertices of the second side save.
pub(crate) fn value(graph: &Graph, side: &[u32], target: i64) -> (i64, i64) {
    let (mut weight, mut cut) = (0, 0);
    for vertex in 0..graph.vertices() as u32 {
        if side[vertex as usize] == 0 {
            weight += graph.weight(vertex);
            let across = graph.edges(vertex).filter(|edge| side[edge.0 as usize] != 0);
            cut += graph.pull(vertex) + across.map(|edge| edge.1).sum::<i64>();
        }
    }
    (((weight - target).abs() - tolerance(graph)).max(0), cut)
}

/// Greedy graph growing: grows the first side from a random vertex, or that with the strongest pull to it, by
/// the vertex with the smallest increase of the cut.
fn grow(graph: &Graph, target: i64, random: &mut Pcg64) -> Vec<u32> {
    let vertices = graph.vertices();
    let mut side = vec![1; vertices];
    let mut heap = Heap::default();
    let gain =
        |vertex: u32| -> i64 { -graph.pull(vertex) - graph.edges(vertex).map(|edge| edge.1).sum::<i64>() };
    let mut gains: Vec<i64> = (0..vertices as u32).map(gain).collect();
    let mut weight = 0;
    let mut seeds: Vec<u32> = (0..vertices as u32).collect();
    random.shuffle(&mut seeds);
    if !graph.pulls.is_empty() {
        seeds.sort_by_key(|&seed| Reverse(graph.pull(seed)));
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_gain_comes_first_and_the_latest_of_ties() {
        let mut heap = Heap::default();
        for (vertex, gain) in [(0, 3), (1, 7), (2, -4), (3, 7), (4, 0)] {
            heap.set(vertex, gain);
        }
        assert_eq!(heap.first(), Some((7, 3)));
        heap.set(2, 9);
        heap.set(3, -9);
        heap.remove(0);
        let mut order = Vec::new();
        while let Some((_, vertex)) = heap.first() {
            order.push(vertex);
            heap.remove(vertex);
        }
        assert_eq!(order, [2, 1, 4, 3]);
    }
}
