//! Exact balancing of part sizes.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::graph::Graph;

/// Moves vertices of weight one until every part has its size.
///
/// Surplus vertices move one at a time along the cheapest path over neighbouring parts to a part that lacks
/// one.
pub(crate) fn balance(graph: &Graph, parts: &mut [u32], sizes: &[u32]) {
    let mut members = vec![Vec::new(); sizes.len()];
    (0..).zip(parts.iter()).for_each(|(vertex, &part)| members[part as usize].push(vertex));
    let known = vec![None; sizes.len()];
    let mut moving = Moving {
        graph,
        parts,
        sizes,
        members,
        known,
        reached: vec![Reached::default(); sizes.len()],
        search: 0,
    };
    for part in 0..sizes.len() as u32 {
        while moving.over(part) > 0 {
            moving.relieve(part);
        }
    }
}

struct Moving<'g> {
    graph: &'g Graph,
    parts: &'g mut [u32],
    sizes: &'g [u32],
    members: Vec<Vec<u32>>,
    /// Cached moves from every part, valid until its members change.
    known: Vec<Option<Vec<Move>>>,
    reached: Vec<Reached>,
    search: u64,
}

/// Predecessor of a part in the path search.
#[derive(Debug, Clone, Copy, Default)]
struct Reached {
    search: u64,
    length: i64,
    before: u32,
    vertex: u32,
}

/// A vertex to move to a part, and the increase of the cut.
#[derive(Debug, Clone, Copy)]
struct Move {
    to: u32,
    loss: i64,
    vertex: u32,
}

impl Moving<'_> {
    fn over(&self, part: u32) -> i64 {
        self.members[part as usize].len().cast_signed() as i64 - i64::from(self.sizes[part as usize])
    }

    /// The cheapest move from a part to every neighbouring part.
    fn moves(&self, part: u32) -> Vec<Move> {
        let mut moves: Vec<Move> = Vec::new();
        let mut to: Vec<(u32, i64)> = Vec::new();
        for &vertex in &self.members[part as usize] {
            to.clear();
            let edges = self.graph.edges(vertex).filter(|&(target, _)| target != vertex);
            to.extend(edges.map(|(target, weight)| (self.parts[target as usize], weight)));
            to.sort_unstable_by_key(|entry| entry.0);
            let own: i64 = to.iter().filter(|entry| entry.0 == part).map(|entry| entry.1).sum();
            for run in to.chunk_by(|a, b| a.0 == b.0).filter(|run| run[0].0 != part) {
                let loss = own - run.iter().map(|entry| entry.1).sum::<i64>();
                moves.push(Move { to: run[0].0, loss, vertex });
            }
        }
        moves.sort_unstable_by_key(|step| (step.to, step.loss, step.vertex));
        moves.dedup_by_key(|step| step.to);
        moves
    }

    /// Moves one surplus vertex of a part to a part that lacks one.
    fn relieve(&mut self, from: u32) {
        self.search += 1;
        let search = self.search;
        self.reached[from as usize] = Reached { search, ..Reached::default() };
        let mut queue = BinaryHeap::from([Reverse((0i64, from))]);
        while let Some(Reverse((length, part))) = queue.pop() {
            if length > self.reached[part as usize].length {
                continue;
            }
            if self.over(part) < 0 {
                return self.shift(from, part);
            }
            let moves = self.known[part as usize].take().unwrap_or_else(|| self.moves(part));
            for &Move { to, loss, vertex } in &moves {
                let length = length + loss.max(0) + 1;
                let reached = &mut self.reached[to as usize];
                if reached.search != search || length < reached.length {
                    *reached = Reached { search, length, before: part, vertex };
                    queue.push(Reverse((length, to)));
                }
            }
            self.known[part as usize] = Some(moves);
        }
        self.jump(from);
    }

    /// Moves one vertex along every step of a path.
    fn shift(&mut self, from: u32, to: u32) {
        let mut part = to;
        while part != from {
            let Reached { before, vertex, .. } = self.reached[part as usize];
            self.move_to(vertex, part);
            part = before;
        }
    }

    /// Moves the cheapest vertex to some part that lacks one, if no path leads there.
    fn jump(&mut self, from: u32) {
        let own = |vertex: u32| -> i64 {
            self.graph
                .edges(vertex)
                .filter(|edge| self.parts[edge.0 as usize] == from)
                .map(|edge| edge.1)
                .sum()
        };
        let vertex = self.members[from as usize].iter().copied().min_by_key(|&vertex| (own(vertex), vertex));
        let to = (0..self.sizes.len() as u32).find(|&part| self.over(part) < 0);
        if let (Some(vertex), Some(to)) = (vertex, to) {
            self.move_to(vertex, to);
        }
    }

    fn move_to(&mut self, vertex: u32, to: u32) {
        let from = std::mem::replace(&mut self.parts[vertex as usize], to);
        self.known[from as usize] = None;
        self.known[to as usize] = None;
        self.members[from as usize].retain(|&other| other != vertex);
        self.members[to as usize].push(vertex);
    }
}
