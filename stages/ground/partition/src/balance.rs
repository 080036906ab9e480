//! Parts of exact sizes.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use crate::Graph;

/// Moves vertices, each weighing one, until every part has its size.
///
/// What a part has too much goes on the cheapest way over neighbouring parts to one that lacks it, one vertex at a time.
pub(crate) fn balance(graph: &Graph, parts: &mut [u32], sizes: &[u32]) {
    let mut members = vec![Vec::new(); sizes.len()];
    (0..).zip(parts.iter()).for_each(|(vertex, &part)| members[part as usize].push(vertex));
    let mut moving = Moving { graph, parts, sizes, members };
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
}

impl Moving<'_> {
    fn over(&self, part: u32) -> i64 {
        self.members[part as usize].len() as i64 - i64::from(self.sizes[part as usize])
    }

    /// The least loss of a move from a part to every part beside it, and the vertex.
    fn moves(&self, part: u32) -> BTreeMap<u32, (i64, u32)> {
        let mut best = BTreeMap::new();
        let mut to: Vec<(u32, i64)> = Vec::new();
        for &vertex in &self.members[part as usize] {
            to.clear();
            to.extend(
                self.graph
                    .edges(vertex)
                    .filter(|&(target, _)| target != vertex)
                    .map(|(target, weight)| (self.parts[target as usize], weight)),
            );
            to.sort_unstable_by_key(|entry| entry.0);
            let own: i64 = to.iter().filter(|entry| entry.0 == part).map(|entry| entry.1).sum();
            for run in to.chunk_by(|a, b| a.0 == b.0).filter(|run| run[0].0 != part) {
                let loss = own - run.iter().map(|entry| entry.1).sum::<i64>();
                let entry = best.entry(run[0].0).or_insert((loss, vertex));
                *entry = (*entry).min((loss, vertex));
            }
        }
        best
    }

    /// Takes one vertex from a part and brings one to a part that lacks it.
    fn relieve(&mut self, from: u32) {
        let mut reached: BTreeMap<u32, (i64, u32, u32)> = BTreeMap::new();
        let mut queue = BinaryHeap::from([Reverse((0i64, from))]);
        let mut settled = vec![false; self.sizes.len()];
        while let Some(Reverse((length, part))) = queue.pop() {
            if std::mem::replace(&mut settled[part as usize], true) {
                continue;
            }
            if self.over(part) < 0 {
                return self.shift(from, part, &reached);
            }
            for (to, (loss, vertex)) in self.moves(part) {
                let length = length + loss.max(0);
                if !settled[to as usize] && reached.get(&to).is_none_or(|known| length < known.0) {
                    reached.insert(to, (length, part, vertex));
                    queue.push(Reverse((length, to)));
                }
            }
        }
        self.jump(from);
    }

    /// Moves one vertex along every step of a way.
    fn shift(&mut self, from: u32, to: u32, reached: &BTreeMap<u32, (i64, u32, u32)>) {
        let mut part = to;
        while part != from {
            let Some(&(_, before, vertex)) = reached.get(&part) else { return };
            self.move_to(vertex, part);
            part = before;
        }
    }

    /// Moves the vertex that loses least to some part that lacks one, where no way leads there.
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
        self.members[from as usize].retain(|&other| other != vertex);
        self.members[to as usize].push(vertex);
    }
}
