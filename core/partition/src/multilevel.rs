//! The whole way: contraction, first parts, refinement.

use hopmap_model::seed_stream;
use hopmap_random::{Draw, Pcg64, SeedableRng};
use rayon::prelude::*;

use crate::balance::balance;
use crate::coarsening::{Coarse, contractions};
use crate::pairs::{Sweeps, refine};
use crate::two_way::bisect;
use crate::{Graph, PartitionError, cut};

/// Edges at which cycles of a graph may look: in proportion to its vertices, and less for each where there are many.
fn work_of(vertices: usize, effort: Effort) -> u64 {
    let vertices = vertices.max(1) as u64;
    let share = u64::from(effort.work) * vertices;
    match vertices {
        0..=4096 => share,
        // 4096 vertices get all, twice as many half of it each, four times as many a third.
        _ => share / (1 + u64::from((vertices / 4096).ilog2())),
    }
}

/// How much is done for a small cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Effort {
    /// Tries to grow the first side of every cut in two.
    pub tries: u32,
    /// Partitions of the most contracted graph of which the best is kept.
    pub firsts: u32,
    /// Whole partitions of which the best is kept.
    pub starts: u32,
    /// Cycles of contraction inside the parts and refinement after that.
    pub cycles: u32,
    /// Edges for every vertex after which no further cycle begins.
    pub work: u32,
    /// Vertices for every part where contraction ends.
    pub coarsest: u32,
    /// Most times that every pair of parts is refined on a level.
    pub sweeps: u32,
    /// Most pairs of a part that are refined in one of these.
    pub pairs: u32,
}

impl Default for Effort {
    fn default() -> Self {
        Self { tries: 2, firsts: 1, starts: 1, cycles: 20, work: 2200, coarsest: 4, sweeps: 1, pairs: 8 }
    }
}

/// Vertices of graphs that are begun more often, and how often.
const TINY: usize = 16;
const TINY_STARTS: u32 = 8;
/// The same of graphs that are cut into few parts.
const SMALL: usize = 2048;
const FEW: usize = 8;
const SMALL_STARTS: u32 = 4;
/// Cycles without a gain after which no further one begins.
const IDLE: u32 = 6;
/// First partitions of two halves; fewer of more parts.
const FIRSTS: u32 = 32;
const PASSES: u32 = 2;
/// Moves without a gain after which a pass ends: at least, at most, and as a part of the vertices of a part.
const PATIENCE: [usize; 2] = [10, 100];
const PATIENCE_SHARE: usize = 6;

/// Cuts a graph into parts of these sizes, which add up to the weight of all vertices, with few and light edges between them.
///
/// Where all vertices weigh one, the parts have exactly these sizes; else as nearly as vertices can be dealt out. A size may be zero. The part of
/// every vertex comes back.
pub fn partition(
    graph: &Graph,
    sizes: &[u32],
    effort: Effort,
    seed: u64,
) -> Result<Vec<u32>, PartitionError> {
    check(graph, sizes)?;
    let mut used = used(sizes);
    if used.len() < 2 {
        return Ok(undivided(graph, sizes));
    }
    let starts = match graph.vertices() {
        ..=TINY => effort.starts.max(TINY_STARTS),
        ..=SMALL if used.len() <= FEW => effort.starts.max(SMALL_STARTS),
        _ => effort.starts.max(1),
    };
    let mut best: Option<(i128, Vec<u32>)> = None;
    for start in 0..u64::from(starts) {
        let own: Vec<u32> = used.iter().map(|&part| sizes[part as usize]).collect();
        let (begun, cycles) = match own.len() > MANY {
            true => (in_rounds(graph, &own, effort, seed ^ start << 48)?, effort.cycles / AFTER),
            false => (begin(graph, &own, effort, seed, start), effort.cycles),
        };
        // Parts one behind the other are close to each other in memory.
        let mut order: Vec<u32> = (0..graph.vertices() as u32).collect();
        order.sort_by_key(|&vertex| begun[vertex as usize]);
        let ordered = graph.reordered(&order);
        let mut parts: Vec<u32> = order.iter().map(|&vertex| begun[vertex as usize]).collect();
        let mut cost = cut(&ordered, &parts);
        let most = work_of(graph.vertices(), effort);
        // Without contraction every cycle is the same.
        let enough = if graph.vertices() <= coarsest(own.len(), effort) { 1 } else { IDLE };
        let (mut work, mut idle) = (0, 0);
        for turn in 0..u64::from(cycles) {
            let random = stream(seed, (start + 1) << 32 | 1 << 62 | turn);
            let before = cost;
            work += cycle(&ordered, &mut parts, &own, effort, random, &mut cost);
            idle = if cost < before { 0 } else { idle + 1 };
            if work >= most || idle == enough {
                break;
            }
        }
        if best.as_ref().is_none_or(|best| cost < best.0) {
            let mut found = begun;
            order.iter().zip(parts).for_each(|(&vertex, part)| found[vertex as usize] = used[part as usize]);
            best = Some((cost, found));
        }
        // Which parts are side by side decides about what recursive bisection can find.
        stream(seed, 1 << 60 | start).shuffle(&mut used);
    }
    Ok(best.map_or_else(Vec::new, |best| best.1))
}

/// Whether the parts add up to the graph.
pub(crate) fn check(graph: &Graph, sizes: &[u32]) -> Result<(), PartitionError> {
    let (parts, vertices): (u64, u64) = (sizes.iter().map(|&size| u64::from(size)).sum(), graph.total());
    match parts == vertices {
        true => Ok(()),
        false => Err(PartitionError::new(
            format!("parts of {parts} vertices in all cannot hold the {vertices} of the graph"),
            "the sizes of the parts have to add up to the weight of all vertices",
        )),
    }
}

/// The parts that are not empty.
pub(crate) fn used(sizes: &[u32]) -> Vec<u32> {
    (0..).zip(sizes).filter(|(_, size)| **size > 0).map(|(part, _)| part).collect()
}

/// All vertices in the only part that is not empty.
pub(crate) fn undivided(graph: &Graph, sizes: &[u32]) -> Vec<u32> {
    vec![used(sizes).first().copied().unwrap_or(0); graph.vertices()]
}

/// Vertices at which contraction ends.
fn coarsest(parts: usize, effort: Effort) -> usize {
    parts.saturating_mul(effort.coarsest as usize).max(64)
}

/// Contracts until there are few vertices for every part.
fn coarsen(
    graph: &Graph,
    parts: Option<&[u32]>,
    sizes: &[u32],
    effort: Effort,
    random: &mut Pcg64,
) -> Vec<Coarse> {
    let coarsest = coarsest(sizes.len(), effort);
    let heaviest = (3 * graph.total() / (2 * coarsest as u64)).max(2);
    let heaviest = u32::try_from(heaviest).unwrap_or(u32::MAX);
    contractions(graph, parts, coarsest, heaviest, random)
}

/// The first parts, refined up to the whole graph.
fn begin(graph: &Graph, sizes: &[u32], effort: Effort, seed: u64, start: u64) -> Vec<u32> {
    let levels = coarsen(graph, None, sizes, effort, &mut stream(seed, start | 1 << 61));
    let coarsest = levels.last().map_or(graph, |level| &level.graph);
    let first = |turn: u64| {
        let mut parts = recursive(coarsest, sizes, effort.tries, seed, start << 40 | turn << 32);
        refine(coarsest, &mut parts, sizes, sweeps(effort, coarsest.vertices(), sizes.len()));
        (excess(coarsest, &parts, sizes), cut(coarsest, &parts), turn, parts)
    };
    let parts = (0..u64::from(effort.firsts.max(FIRSTS / sizes.len() as u32).max(1)))
        .into_par_iter()
        .map(first)
        .min();
    ascend(graph, &levels, parts.map_or_else(Vec::new, |best| best.3), sizes, effort).0
}

/// By how much parts are heavier than they should be and may be on the way, all together.
fn excess(graph: &Graph, parts: &[u32], sizes: &[u32]) -> i64 {
    let tolerance = graph.heaviest() / 2;
    let mut over: Vec<i64> = sizes.iter().map(|&size| -i64::from(size) - tolerance).collect();
    (0..).zip(parts).for_each(|(vertex, &part)| over[part as usize] += graph.weight(vertex));
    over.into_iter().map(|over| over.max(0)).sum()
}

/// How parts of a graph with so many vertices are refined.
fn sweeps(effort: Effort, vertices: usize, parts: usize) -> Sweeps {
    Sweeps {
        turns: effort.sweeps,
        pairs: effort.pairs as usize,
        passes: PASSES,
        patience: (vertices / PATIENCE_SHARE / parts.max(1)).clamp(PATIENCE[0], PATIENCE[1]),
    }
}

/// Refines parts of the smallest graph on the way back to the whole one.
fn ascend(
    graph: &Graph,
    levels: &[Coarse],
    mut parts: Vec<u32>,
    sizes: &[u32],
    effort: Effort,
) -> (Vec<u32>, u64) {
    let mut work = 0;
    for depth in (0..=levels.len()).rev() {
        let current = if depth == 0 { graph } else { &levels[depth - 1].graph };
        if depth < levels.len() {
            parts = levels[depth].project(&parts);
        }
        if depth == 0 && graph.is_unit() {
            balance(graph, &mut parts, sizes);
        }
        let how = sweeps(effort, current.vertices(), sizes.len());
        work += refine(current, &mut parts, sizes, how);
    }
    if graph.is_unit() {
        balance(graph, &mut parts, sizes);
    }
    (parts, work)
}

/// Contracts inside the parts and refines on the way back; keeps what is not worse. Says at how many edges it looked.
fn cycle(
    graph: &Graph,
    parts: &mut Vec<u32>,
    sizes: &[u32],
    effort: Effort,
    mut random: Pcg64,
    cost: &mut i128,
) -> u64 {
    let levels = coarsen(graph, Some(parts), sizes, effort, &mut random);
    let mut coarse = parts.clone();
    for level in &levels {
        coarse = level.restrict(&coarse);
    }
    let (found, work) = ascend(graph, &levels, coarse, sizes, effort);
    let after = cut(graph, &found);
    if after <= *cost {
        *parts = found;
        *cost = after;
    }
    work
}

/// More parts than this are cut in rounds: every pair of a few dozen large parts can be refined, which of a thousand small ones it
/// cannot, and the parts of a large one are cut beside those of all others.
const MANY: usize = 64;
/// Cycles of the whole effort are divided by this in the first and the second round, and after both.
const FIRST: u32 = 20;
const SECOND: u32 = 5;
const AFTER: u32 = 32;

/// Cuts a graph into about as many large parts as each of these then has parts, of exactly these sizes.
fn in_rounds(graph: &Graph, sizes: &[u32], effort: Effort, seed: u64) -> Result<Vec<u32>, PartitionError> {
    let run = sizes.len().isqrt().max(2);
    let large: Vec<u32> = sizes.chunks(run).map(|run| run.iter().sum()).collect();
    let first = Effort { cycles: effort.cycles.div_ceil(FIRST), ..effort };
    let second = Effort { cycles: effort.cycles.div_ceil(SECOND), ..effort };
    let split = graph.split(&partition(graph, &large, first, seed)?, large.len());
    let rounds: Result<Vec<_>, PartitionError> = (split.par_iter(), sizes.par_chunks(run))
        .into_par_iter()
        .enumerate()
        .map(|(index, ((part, _), sizes))| partition(part, sizes, second, seed ^ (index as u64 + 1) << 32))
        .collect();
    let mut found = vec![0; graph.vertices()];
    for (index, ((_, vertices), parts)) in split.iter().zip(rounds?).enumerate() {
        for (&vertex, part) in vertices.iter().zip(parts) {
            found[vertex as usize] = (index * run) as u32 + part;
        }
    }
    Ok(found)
}

/// Vertices of a graph whose halves are cut side by side.
const PARALLEL: usize = 512;

/// Cuts a graph into parts of about these sizes, each more than zero. `path` is the place of the graph in the recursion.
fn recursive(graph: &Graph, sizes: &[u32], tries: u32, seed: u64, path: u64) -> Vec<u32> {
    let mut parts = vec![0; graph.vertices()];
    if sizes.len() < 2 || graph.vertices() == 0 {
        return parts;
    }
    let (middle, target) = halve(graph, sizes);
    let mut random = stream(seed, path);
    let side = bisect(graph, target, tries, &mut random);
    let (left, right) = sizes.split_at(middle);
    let halves = graph.split(&side, 2);
    let half = |index: usize, sizes: &[u32]| {
        let path = path.wrapping_mul(2).wrapping_add(index as u64 + 1);
        recursive(&halves[index].0, sizes, tries, seed, path)
    };
    let found = match graph.vertices() >= PARALLEL {
        true => rayon::join(|| half(0, left), || half(1, right)),
        false => (half(0, left), half(1, right)),
    };
    for ((_, vertices), (found, offset)) in halves.iter().zip([(found.0, 0), (found.1, middle as u32)]) {
        vertices.iter().zip(found).for_each(|(&vertex, part)| parts[vertex as usize] = part + offset);
    }
    parts
}

/// How many parts the first half has, and what it should weigh.
fn halve(graph: &Graph, sizes: &[u32]) -> (usize, i64) {
    let total: u64 = sizes.iter().map(|&size| u64::from(size)).sum();
    let mut before = 0u64;
    let mut best = (u64::MAX, 1, 0);
    for (index, &size) in sizes[..sizes.len() - 1].iter().enumerate() {
        before += u64::from(size);
        let off = (2 * before).abs_diff(total);
        if off < best.0 {
            best = (off, index + 1, before);
        }
    }
    let weight = u128::from(graph.total());
    let target = (weight * u128::from(best.2) + u128::from(total) / 2) / u128::from(total.max(1));
    (best.1, target as i64)
}

/// The random stream of a subproblem, which depends on nothing but the seed and the place of the subproblem.
fn stream(seed: u64, path: u64) -> Pcg64 {
    Pcg64::from_seed(seed_stream("partition", seed, path))
}
