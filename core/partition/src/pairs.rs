//! Pairwise refinement of many parts.

use std::sync::{Mutex, PoisonError};

use rayon::prelude::*;

use crate::graph::Graph;
use crate::two_way::{Limits, Refined, Two, TwoWay};

/// Pairs are skipped if their best forward and backward moves lose more than this fraction of the weight of a
/// vertex.
const PROMISING: i64 = 3;

/// Refinement parameters.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sweeps {
    /// Maximum refinements of every pair.
    pub(crate) turns: u32,
    /// Maximum pairs of a part in a sweep, largest cut first.
    pub(crate) pairs: usize,
    /// Passes per pair.
    pub(crate) passes: u32,
    /// Moves without improvement after which a pass ends.
    pub(crate) patience: usize,
}

/// Pairwise refinement; disjoint pairs run in parallel.
struct Pairs<'g> {
    graph: &'g Graph,
    parts: &'g mut [u32],
    sizes: &'g [u32],
    members: Vec<Vec<u32>>,
    /// Index of every vertex in its part.
    places: Vec<u32>,
    weights: Vec<i64>,
    heaviest: i64,
    promise: i64,
    /// Reused memory.
    idle: Mutex<Vec<TwoWay>>,
}

/// Boundary vertices of every part, ordered by the adjacent part.
type Boundary = Vec<Vec<Touch>>;

/// A vertex at the boundary to another part.
#[derive(Debug, Clone, Copy)]
struct Touch {
    other: u32,
    vertex: u32,
    /// Weight of its edges to that part.
    across: i64,
    /// Gain of moving it there.
    gain: i64,
}

/// Refines parts; returns the number of visited edges.
pub(crate) fn refine(graph: &Graph, parts: &mut [u32], sizes: &[u32], how: Sweeps) -> u64 {
    let mut pairs = Pairs::new(graph, parts, sizes);
    let mut changed = vec![true; sizes.len()];
    let mut work = 0;
    for _ in 0..how.turns {
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
        let promise = -all / (graph.vertices().max(1).cast_signed() as i64) / PROMISING;
        let (heaviest, idle) = (graph.heaviest(), Mutex::default());
        Self { graph, parts, sizes, members, places, weights, heaviest, promise, idle }
    }

    /// Pairs of neighbouring parts of which one has changed, in rounds with every part at most once.
    fn rounds(&self, changed: &[bool], most: usize) -> (Vec<Vec<[u32; 2]>>, Boundary) {
        let count = self.sizes.len();
        let of_part = |places: &mut Vec<usize>, part: u32| {
            places.resize(count, 0);
            let boundary = self.boundary(part, places);
            let of_pair = |run: &[Touch]| (run.iter().map(|touch| touch.across).sum(), [part, run[0].other]);
            let pairs = boundary.chunk_by(|a, b| a.other == b.other).filter(|run| run[0].other > part);
            let pairs = pairs.map(of_pair);
            let active =
                pairs.filter(|(_, pair)| pair.iter().any(|&part| changed[part as usize])).collect::<Vec<_>>();
            (boundary, active)
        };
        let parts = (0..count as u32).into_par_iter().with_min_len(64);
        let (boundary, pairs): (Boundary, Vec<_>) = parts.map_init(Vec::new, of_part).unzip();
        (schedule(pairs.concat(), count, most), boundary)
    }

    /// Boundary vertices of a part, by adjacent part. `places` is scratch memory with one entry per part.
    fn boundary(&self, part: u32, places: &mut [usize]) -> Vec<Touch> {
        let mut boundary: Vec<Touch> = Vec::new();
        for &vertex in &self.members[part as usize] {
            let begin = boundary.len();
            let mut own = 0;
            for (target, weight) in self.graph.edges(vertex) {
                let other = self.parts[target as usize];
                let place = places[other as usize];
                if other == part {
                    own += if target == vertex { 0 } else { weight };
                } else if place >= begin && boundary.get(place).is_some_and(|touch| touch.other == other) {
                    boundary[place].across += weight;
                } else {
                    places[other as usize] = boundary.len();
                    boundary.push(Touch { other, vertex, across: weight, gain: 0 });
                }
            }
            boundary[begin..].iter_mut().for_each(|touch| touch.gain = touch.across - own);
        }
        boundary.sort_unstable_by_key(|touch| (touch.other, touch.vertex));
        boundary
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
            // The surplus of both is shared.
            over: over[0] - (over[0] + over[1]).div_euclid(2),
            tolerance: if self.heaviest <= 1 { 0 } else { self.heaviest / 2 },
            slack: self.heaviest.max(2),
            passes: how.passes,
            patience: how.patience,
            promise: self.promise,
        };
        let touches = |from: usize, to: u32| {
            let list = &boundary[from];
            let begin = list.partition_point(|touch| touch.other < to);
            let end = begin + list[begin..].partition_point(|touch| touch.other == to);
            &list[begin..end]
        };
        let touches = [touches(one, pair[1]), touches(other, pair[0])];
        let best = touches.map(|list| list.iter().map(|touch| touch.gain).max().unwrap_or(i64::MIN / 4));
        if limits.over == 0 && best[0] + best[1] <= self.promise {
            return Refined { moved: Vec::new(), work: 0 };
        }
        let seeds = touches.into_iter().flatten().map(|touch| touch.vertex);
        let members = [&self.members[one][..], &self.members[other][..]];
        let two = Two { graph: self.graph, parts: self.parts, pair, members };
        let mut two_way = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop().unwrap_or_default();
        let found = two_way.refine(two, seeds, limits);
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

/// Schedules pairs, largest cut first, in rounds with every part at most once.
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

/// The first round in which both parts are free.
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
