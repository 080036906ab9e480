//! Refinement of a cut in two.

use crate::Graph;
use crate::heap::Heap;

/// How a cut in two is refined.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// What the first side should weigh.
    pub(crate) target: i64,
    /// By how much it may differ in the end.
    pub(crate) tolerance: i64,
    /// By how much it may differ on the way.
    pub(crate) slack: i64,
    /// Most passes.
    pub(crate) passes: u32,
    /// Moves without a gain after which a pass ends.
    pub(crate) patience: usize,
}

/// Moves vertices between two sides, each at most once in a pass, and keeps the best point of every pass (Fiduccia and Mattheyses
/// 1982).
#[derive(Default)]
pub(crate) struct TwoWay {
    gains: Vec<i64>,
    is_boundary: Vec<bool>,
    heaps: [Heap; 2],
    is_locked: Vec<bool>,
    moves: Vec<u32>,
}

impl TwoWay {
    /// Refines; says by how much the cut is smaller, which may be less than zero where the sides were out of balance.
    pub(crate) fn refine(&mut self, graph: &Graph, side: &mut [u8], limits: Limits) -> i64 {
        self.compute_gains(graph, side);
        let first = |vertex: usize| i64::from(side[vertex] == 0) * graph.weight(vertex as u32);
        let mut over = (0..graph.vertices()).map(first).sum::<i64>() - limits.target;
        let mut saved = 0;
        for _ in 0..limits.passes {
            let (gain, next, moved) = self.pass(graph, side, over, limits);
            saved += gain;
            over = next;
            if !moved {
                break;
            }
        }
        saved
    }

    fn compute_gains(&mut self, graph: &Graph, side: &[u8]) {
        let vertices = graph.vertices();
        self.gains.clear();
        self.is_boundary.clear();
        for vertex in 0..vertices as u32 {
            let own = side[vertex as usize];
            let (mut gain, mut touches) = (0, false);
            for (target, weight) in graph.edges(vertex) {
                if target == vertex {
                    continue;
                }
                let same = side[target as usize] == own;
                gain += if same { -weight } else { weight };
                touches |= !same;
            }
            self.gains.push(gain);
            self.is_boundary.push(touches);
        }
    }

    /// One pass from `over` the target: what it saved, how much the first side is over then, and whether anything moved.
    fn pass(&mut self, graph: &Graph, side: &mut [u8], mut over: i64, limits: Limits) -> (i64, i64, bool) {
        self.fill(graph.vertices(), side);
        let excess = |over: i64| (over.abs() - limits.tolerance).max(0);
        let mut best = (excess(over), 0i64, over, 0usize);
        let mut saved = 0;
        while self.moves.len() - best.3 < limits.patience {
            let Some((vertex, gain)) = self.choose(graph, side, over, limits) else { break };
            over += if side[vertex as usize] == 0 { -graph.weight(vertex) } else { graph.weight(vertex) };
            saved += gain;
            self.move_over(graph, side, vertex, true);
            self.moves.push(vertex);
            let point = (excess(over), -saved, over.abs());
            if point < (best.0, -best.1, best.2.abs()) {
                best = (point.0, saved, over, self.moves.len());
            }
        }
        let undone = self.moves.split_off(best.3);
        for &vertex in undone.iter().rev() {
            self.move_over(graph, side, vertex, false);
        }
        (best.1, best.2, best.3 > 0)
    }

    fn fill(&mut self, vertices: usize, side: &[u8]) {
        self.heaps.iter_mut().for_each(|heap| heap.reset(vertices));
        self.is_locked.clear();
        self.is_locked.resize(vertices, false);
        self.moves.clear();
        for vertex in 0..vertices {
            if self.is_boundary[vertex] {
                self.heaps[usize::from(side[vertex])].set(vertex as u32, self.gains[vertex]);
            }
        }
    }

    /// The vertex to move next.
    fn choose(&mut self, graph: &Graph, side: &[u8], over: i64, limits: Limits) -> Option<(u32, i64)> {
        if over.abs() > limits.tolerance && self.heaps[usize::from(over < 0)].first().is_none() {
            self.open(side, u8::from(over < 0));
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
            let weight = graph.weight(vertex);
            let after = over + if from == 0 { -weight } else { weight };
            if after.abs() <= limits.slack || after.abs() < over.abs() {
                return Some((vertex, gain));
            }
        }
    }

    /// Lets all vertices of a side move, not only those at the boundary.
    fn open(&mut self, side: &[u8], from: u8) {
        for (vertex, &own) in side.iter().enumerate() {
            if own == from && !self.is_locked[vertex] {
                self.heaps[usize::from(own)].set(vertex as u32, self.gains[vertex]);
            }
        }
    }

    /// Moves a vertex to the other side; on the way `forth` it is locked and its neighbours may move next.
    fn move_over(&mut self, graph: &Graph, side: &mut [u8], vertex: u32, forth: bool) {
        let own = side[vertex as usize];
        side[vertex as usize] = 1 - own;
        self.gains[vertex as usize] = -self.gains[vertex as usize];
        self.is_locked[vertex as usize] = true;
        let mut touches = false;
        for (target, weight) in graph.edges(vertex) {
            if target == vertex {
                continue;
            }
            let other = side[target as usize];
            touches |= other == own;
            let change = if other == own { 2 * weight } else { -2 * weight };
            self.gains[target as usize] += change;
            if forth {
                self.is_boundary[target as usize] |= other == own;
                if !self.is_locked[target as usize] {
                    self.heaps[usize::from(other)].set(target, self.gains[target as usize]);
                }
            }
        }
        self.is_boundary[vertex as usize] |= touches;
    }
}
