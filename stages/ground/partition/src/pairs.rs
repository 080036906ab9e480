//! Refinement of many parts, two at a time.

use std::sync::{Mutex, PoisonError};

use rayon::prelude::*;

use crate::Graph;
use crate::two_way::{Limits, Refined, Two, TwoWay};

/// Pairs of which the best moves forth and back lose more than this part of the weight of a vertex are left alone.
const PROMISING: i64 = 3;

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
}

/// Parts of a graph that are refined pair by pair; pairs without a part in common side by side.
struct Pairs<'g> {
    graph: &'g Graph,
    parts: &'g mut [u32],
    sizes: &'g [u32],
    members: Vec<Vec<u32>>,
    /// Place of every vertex among the members of its part.
    places: Vec<u32>,
    weights: Vec<i64>,
    heaviest: i64,
    promise: i64,
    /// Memory that is used again.
    idle: Mutex<Vec<TwoWay>>,
}

/// The vertices of every part that touch another one: that one and the vertex, in order.
type Boundary = Vec<Vec<(u32, u32)>>;

/// Refines parts; says at how many edges it looked.
pub(crate) fn refine(graph: &Graph, parts: &mut [u32], sizes: &[u32], how: Sweeps) -> u64 {
    let mut pairs = Pairs::new(graph, parts, sizes);
    let mut changed = vec![true; sizes.len()];
    let mut work = 0;
    for _ in 0..how.sweeps {
        let mut next = vec![false; sizes.len()];
        work += graph.targets.len() as u64;
        let (rounds, boundary) = pairs.rounds(&changed, how.pairs);
        for round in rounds {
            work += pairs.refine_round(&round, &boundary, how, &mut next);
        }
        changed = next;
        if !changed.contains(&true) {
            break;
        }
    }
    work
}

impl<'g> Pairs<'g> {
    fn new(graph: &'g Graph, parts: &'g mut [u32], sizes: &'g [u32]) -> Self {
        let mut members = vec![Vec::new(); sizes.len()];
        let mut weights = vec![0; sizes.len()];
        let mut places = Vec::with_capacity(parts.len());
        for (vertex, &part) in (0..).zip(parts.iter()) {
            places.push(members[part as usize].len() as u32);
            members[part as usize].push(vertex);
            weights[part as usize] += graph.weight(vertex);
        }
        let all: i64 = graph.weights.iter().sum();
        let promise = -all / (graph.vertices().max(1) as i64) / PROMISING;
        let (heaviest, idle) = (graph.heaviest(), Mutex::default());
        Self { graph, parts, sizes, members, places, weights, heaviest, promise, idle }
    }

    /// Pairs of neighbouring parts of which one has changed, in rounds in which every part is at most once.
    fn rounds(&self, changed: &[bool], most: usize) -> (Vec<Vec<[u32; 2]>>, Boundary) {
        let count = self.sizes.len();
        let of_part = |(cuts, last): &mut (Vec<i64>, Vec<u32>), part: u32| {
            cuts.resize(count, 0);
            last.resize(count, u32::MAX);
            let (mut boundary, mut pairs) = (Vec::new(), Vec::new());
            for &vertex in &self.members[part as usize] {
                for (target, weight) in self.graph.edges(vertex) {
                    let other = self.parts[target as usize];
                    if other != part {
                        cuts[other as usize] += weight;
                        if std::mem::replace(&mut last[other as usize], vertex) != vertex {
                            boundary.push((other, vertex));
                        }
                    }
                }
            }
            boundary.sort_unstable();
            for run in boundary.chunk_by(|a, b| a.0 == b.0) {
                let other = run[0].0;
                last[other as usize] = u32::MAX;
                let cut = std::mem::take(&mut cuts[other as usize]);
                if other > part && (changed[part as usize] || changed[other as usize]) {
                    pairs.push((cut, [part, other]));
                }
            }
            (boundary, pairs)
        };
        let parts = (0..count as u32).into_par_iter().with_min_len(64);
        let (boundary, pairs): (Boundary, Vec<_>) =
            parts.map_init(|| (Vec::new(), Vec::new()), of_part).unzip();
        (schedule(pairs.concat(), count, most), boundary)
    }

    fn refine_round(
        &mut self,
        round: &[[u32; 2]],
        boundary: &Boundary,
        how: Sweeps,
        changed: &mut [bool],
    ) -> u64 {
        let refined: Vec<_> =
            round.par_iter().with_min_len(16).map(|&pair| self.refine_pair(pair, boundary, how)).collect();
        let mut work = 0;
        for (&pair, Refined { moved, work: own }) in round.iter().zip(refined) {
            work += own;
            if !moved.is_empty() {
                pair.iter().for_each(|&part| changed[part as usize] = true);
                moved.into_iter().for_each(|vertex| self.move_over(vertex, pair));
            }
        }
        work
    }

    /// Refines two parts.
    fn refine_pair(&self, pair: [u32; 2], boundary: &Boundary, how: Sweeps) -> Refined {
        let [one, other] = pair.map(|part| part as usize);
        let over = [one, other].map(|part| self.weights[part] - i64::from(self.sizes[part]));
        let limits = Limits {
            // What both have too much they share.
            over: over[0] - (over[0] + over[1]).div_euclid(2),
            tolerance: if self.heaviest <= 1 { 0 } else { self.heaviest / 2 },
            slack: self.heaviest.max(2),
            passes: how.passes,
            patience: how.patience,
            promise: self.promise,
        };
        let seeds = |from: usize, to: u32| {
            let list = &boundary[from];
            let begin = list.partition_point(|entry| entry.0 < to);
            list[begin..].iter().take_while(move |entry| entry.0 == to).map(|entry| entry.1)
        };
        let members = [&self.members[one][..], &self.members[other][..]];
        let two = Two { graph: self.graph, parts: self.parts, pair, members };
        let mut two_way = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop().unwrap_or_default();
        let found = two_way.refine(two, seeds(one, pair[1]).chain(seeds(other, pair[0])), limits);
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(two_way);
        found
    }

    /// Moves a vertex to the other part of a pair.
    fn move_over(&mut self, vertex: u32, pair: [u32; 2]) {
        let from = self.parts[vertex as usize];
        let to = if from == pair[0] { pair[1] } else { pair[0] };
        let place = self.places[vertex as usize] as usize;
        self.members[from as usize].swap_remove(place);
        if let Some(&last) = self.members[from as usize].get(place) {
            self.places[last as usize] = place as u32;
        }
        self.places[vertex as usize] = self.members[to as usize].len() as u32;
        self.members[to as usize].push(vertex);
        self.parts[vertex as usize] = to;
        self.weights[from as usize] -= self.graph.weight(vertex);
        self.weights[to as usize] += self.graph.weight(vertex);
    }
}

/// Deals pairs, those with the largest cut first, out to rounds in which every part is at most once.
fn schedule(mut pairs: Vec<(i64, [u32; 2])>, count: usize, most: usize) -> Vec<Vec<[u32; 2]>> {
    pairs.sort_unstable_by_key(|&(cut, pair)| (-cut, pair));
    let mut rounds: Vec<Vec<[u32; 2]>> = Vec::new();
    let mut taken = vec![Vec::<u64>::new(); count];
    let mut counts = vec![0; count];
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
