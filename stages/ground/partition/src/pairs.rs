//! Refinement of many parts, two at a time.

use rayon::prelude::*;

use crate::Graph;
use crate::two_way::{Limits, TwoWay};

/// How parts are refined.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sweeps {
    /// Most times that every pair is refined.
    pub(crate) sweeps: u32,
    /// Most pairs of a part in a sweep, those with the largest cut first.
    pub(crate) pairs: usize,
    /// Passes for every pair.
    pub(crate) passes: u32,
    /// Moves without a gain after which a pass ends.
    pub(crate) patience: usize,
    /// Whether parts that have their size keep it exactly.
    pub(crate) is_exact: bool,
}

/// Parts of a graph that are refined pair by pair; pairs without a part in common side by side.
struct Pairs<'g> {
    graph: &'g Graph,
    parts: &'g mut [u32],
    sizes: &'g [u32],
    members: Vec<Vec<u32>>,
    /// Place of every vertex among the members of its part.
    places: Vec<u32>,
}

/// Refines parts; says by how much the cut got smaller.
pub(crate) fn refine(graph: &Graph, parts: &mut [u32], sizes: &[u32], how: Sweeps) -> i64 {
    let mut members = vec![Vec::new(); sizes.len()];
    let mut places = Vec::with_capacity(parts.len());
    for (vertex, &part) in (0..).zip(parts.iter()) {
        places.push(members[part as usize].len() as u32);
        members[part as usize].push(vertex);
    }
    let mut pairs = Pairs { graph, parts, sizes, members, places };
    let mut changed = vec![true; sizes.len()];
    let mut saved = 0;
    for _ in 0..how.sweeps {
        let mut next = vec![false; sizes.len()];
        let before = saved;
        for round in pairs.rounds(&changed, how.pairs) {
            saved += pairs.refine_round(&round, how, &mut next);
        }
        changed = next;
        if saved == before && !changed.contains(&true) {
            break;
        }
    }
    saved
}

impl Pairs<'_> {
    /// Pairs of neighbouring parts of which one has changed, in rounds in which every part is at most once.
    fn rounds(&self, changed: &[bool], most: usize) -> Vec<Vec<[u32; 2]>> {
        let neighbours = |part: u32| {
            let mut cuts: Vec<(u32, i64)> = Vec::new();
            for &vertex in &self.members[part as usize] {
                let parts =
                    self.graph.edges(vertex).map(|(target, weight)| (self.parts[target as usize], weight));
                cuts.extend(parts.filter(|entry| entry.0 > part));
            }
            cuts.sort_unstable_by_key(|entry| entry.0);
            let sums = cuts
                .chunk_by(|a, b| a.0 == b.0)
                .map(|run| (run.iter().map(|entry| entry.1).sum(), [part, run[0].0]));
            let active = sums.filter(|(_, pair)| pair.iter().any(|&part| changed[part as usize]));
            active.collect::<Vec<(i64, [u32; 2])>>()
        };
        let mut pairs: Vec<_> =
            (0..self.sizes.len() as u32).into_par_iter().flat_map_iter(neighbours).collect();
        pairs.sort_unstable_by_key(|&(cut, pair)| (-cut, pair));
        let mut rounds: Vec<Vec<[u32; 2]>> = Vec::new();
        let mut taken = vec![Vec::<u64>::new(); self.sizes.len()];
        let mut counts = vec![0; self.sizes.len()];
        for (_, pair) in pairs {
            let [one, other] = pair.map(|part| part as usize);
            if counts[one] >= most || counts[other] >= most {
                continue;
            }
            counts[one] += 1;
            counts[other] += 1;
            let round = first_free(&taken[one], &taken[other]);
            take(&mut taken[one], round);
            take(&mut taken[other], round);
            if rounds.len() <= round {
                rounds.resize(round + 1, Vec::new());
            }
            rounds[round].push(pair);
        }
        rounds
    }

    fn refine_round(&mut self, round: &[[u32; 2]], how: Sweeps, changed: &mut [bool]) -> i64 {
        let refined: Vec<_> = round
            .par_iter()
            .with_min_len(8)
            .map_init(TwoWay::default, |two_way, &pair| self.refine_pair(pair, how, two_way))
            .collect();
        let mut saved = 0;
        for (&pair, refined) in round.iter().zip(refined) {
            let Some((gain, side)) = refined else { continue };
            saved += gain;
            pair.iter().for_each(|&part| changed[part as usize] = true);
            self.take_over(pair, &side);
        }
        saved
    }

    /// The sides of the vertices of two parts, if they are better than before.
    fn refine_pair(&self, pair: [u32; 2], how: Sweeps, two_way: &mut TwoWay) -> Option<(i64, Vec<u8>)> {
        let [one, other] = pair.map(|part| &self.members[part as usize]);
        let vertices: Vec<u32> = one.iter().chain(other).copied().collect();
        let local = |vertex: u32| {
            let part = self.parts[vertex as usize];
            let place = self.places[vertex as usize];
            match part {
                _ if part == pair[0] => Some(place),
                _ if part == pair[1] => Some(place + one.len() as u32),
                _ => None,
            }
        };
        let graph = self.graph.induced(&vertices, local);
        let before: Vec<u8> = one.iter().map(|_| 0).chain(other.iter().map(|_| 1)).collect();
        let weigh = |vertices: &[u32]| vertices.iter().map(|&vertex| self.graph.weight(vertex)).sum::<i64>();
        let over = [(one, pair[0]), (other, pair[1])]
            .map(|(vertices, part)| weigh(vertices) - i64::from(self.sizes[part as usize]));
        let target = weigh(one) - over[0] + (over[0] + over[1]).div_euclid(2);
        let heaviest = graph.heaviest();
        let limits = Limits {
            target,
            tolerance: if how.is_exact || heaviest <= 1 { 0 } else { heaviest / 2 },
            slack: heaviest.max(if heaviest <= 1 { 2 } else { 1 }),
            passes: how.passes,
            patience: how.patience,
        };
        let mut side = before.clone();
        let gain = two_way.refine(&graph, &mut side, limits);
        (side != before).then_some((gain, side))
    }

    fn take_over(&mut self, pair: [u32; 2], side: &[u8]) {
        let [one, other] = pair.map(|part| std::mem::take(&mut self.members[part as usize]));
        for (vertex, &side) in one.into_iter().chain(other).zip(side) {
            let part = pair[usize::from(side)];
            self.parts[vertex as usize] = part;
            let members = &mut self.members[part as usize];
            self.places[vertex as usize] = members.len() as u32;
            members.push(vertex);
        }
    }
}

/// The first round that two parts both have free.
fn first_free(one: &[u64], other: &[u64]) -> usize {
    let word = |words: &[u64], index: usize| words.get(index).copied().unwrap_or(0);
    let mut index = 0;
    loop {
        let free = !(word(one, index) | word(other, index));
        if free != 0 {
            return 64 * index + free.trailing_zeros() as usize;
        }
        index += 1;
    }
}

fn take(rounds: &mut Vec<u64>, round: usize) {
    if rounds.len() <= round / 64 {
        rounds.resize(round / 64 + 1, 0);
    }
    rounds[round / 64] |= 1 << (round % 64);
}
