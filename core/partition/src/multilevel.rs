//! The multilevel algorithm: coarsening, initial partition, refinement.

use hopmap_model::seed_stream;
use hopmap_random::{Draw, Pcg64, SeedableRng};
use rayon::prelude::*;

use crate::balance::balance;
use crate::coarsening::{Coarse, contractions};
use crate::graph::{Graph, PartitionError, cut};
use crate::pairs::{Sweeps, refine};
use crate::two_way::{bisect, value};

/// Work limit of the V-cycles in edges: proportional to the vertices, with less per vertex for large graphs.
fn work_of(vertices: usize, effort: Effort) -> u64 {
    let vertices = vertices.max(1) as u64;
    let share = u64::from(effort.work) * vertices;
    match vertices {
        0..=4096 => share,
        // Up to 4096 vertices get the full amount, twice as many half of it each, four times as many a third.
        _ => share / (1 + u64::from((vertices / 4096).ilog2())),
    }
}

/// Effort of the partitioner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Effort {
    /// Attempts at growing the first side of every bisection.
    pub tries: u32,
    /// Partitions of the coarsest graph, of which the best is kept.
    pub firsts: u32,
    /// Complete partitions, of which the best is kept.
    pub starts: u32,
    /// V-cycles after that: coarsening inside the parts and refinement.
    pub cycles: u32,
    /// Work limit in edges per vertex after which no further cycle starts.
    pub work: u32,
    /// Vertices per part at which coarsening ends.
    pub coarsest: u32,
    /// Maximum refinements of every pair of parts on a level.
    pub sweeps: u32,
    /// Maximum pairs of a part in each of them.
    pub pairs: u32,
}

impl Default for Effort {
    fn default() -> Self {
        Self { tries: 2, firsts: 1, starts: 1, cycles: 20, work: 2200, coarsest: 4, sweeps: 1, pairs: 8 }
    }
}

/// Size limit of graphs with repeated starts, and their number.
const TINY: usize = 16;
const TINY_STARTS: u32 = 8;
/// The same for graphs with few parts.
const SMALL: usize = 2048;
const FEW: usize = 8;
const SMALL_STARTS: u32 = 4;
/// Cycles without improvement after which no further one starts.
const IDLE: u32 = 6;
/// Initial partitions for two parts; fewer for more parts.
const FIRSTS: u32 = 32;
const PASSES: u32 = 2;
/// Moves without improvement after which a pass ends: minimum, maximum, and fraction of the vertices of a
/// part.
const PATIENCE: [usize; 2] = [10, 100];
const PATIENCE_SHARE: usize = 6;

/// Partitions a graph into parts of these sizes, which must add up to the weight of all vertices, with a
/// small cut.
///
/// Sizes are exact if all vertices have weight one, otherwise as close as possible. A size may be zero.
/// Returns the part of every vertex.
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
        // Consecutive parts are close in memory.
        let mut order: Vec<u32> = (0..graph.vertices() as u32).collect();
        order.sort_by_key(|&vertex| begun[vertex as usize]);
        let ordered = graph.reordered(&order);
        let mut parts: Vec<u32> = order.iter().map(|&vertex| begun[vertex as usize]).collect();
        let mut cost = cut(&ordered, &parts);
        let most = work_of(graph.vertices(), effort);
        // Without coarsening every cycle is the same.
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
        // The order of the parts determines which partitions recursive bisection can find.
        stream(seed, 1 << 60 | start).shuffle(&mut used);
    }
    Ok(best.map_or_else(Vec::new, |best| best.1))
}

/// Cuts a graph of vertices of weight one into two parts of exact sizes, so that the cut is small without what
/// the vertices of the second part save there, which may be negative: terminal propagation (Dunlop and
/// Kernighan 1985). Keeps the best of several attempts.
pub fn bisection(
    mut graph: Graph,
    saved: Vec<i64>,
    sizes: [u32; 2],
    tries: u32,
    seed: u64,
) -> Result<Vec<u32>, PartitionError> {
    check(&graph, &sizes)?;
    if used(&sizes).len() < 2 {
        return Ok(undivided(&graph, &sizes));
    }
    graph.pulls = saved;
    let target = i64::from(sizes[0]);
    let attempt = |turn: u64| {
        let mut parts = bisect(&graph, target, 2, &mut stream(seed, 1 << 59 | turn));
        balance(&graph, &mut parts, &sizes);
        (value(&graph, &parts, target), turn, parts)
    };
    Ok((0..u64::from(tries.max(1))).map(attempt).min().map_or_else(Vec::new, |best| best.2))
}

/// Checks that the part sizes add up to the graph.
pub(crate) fn check(graph: &Graph, sizes: &[u32]) -> Result<(), PartitionError> {
    let (parts, vertices): (u64, u64) = (sizes.iter().map(|&size| u64::from(size)).sum(), graph.total());
    match parts == vertices {
        true => Ok(()),
        false => Err(PartitionError::new(
            format!("the parts have {parts} vertices in total, but the graph has {vertices}"),
            "the part sizes must add up to the weight of all vertices",
        )),
    }
}

/// The non-empty parts.
pub(crate) fn used(sizes: &[u32]) -> Vec<u32> {
    (0..).zip(sizes).filter(|(_, size)| **size > 0).map(|(part, _)| part).collect()
}

/// All vertices in the only non-empty part.
pub(crate) fn undivided(graph: &Graph, sizes: &[u32]) -> Vec<u32> {
    vec![used(sizes).first().copied().unwrap_or(0); graph.vertices()]
}

/// Vertices at which coarsening ends.
fn coarsest(parts: usize, effort: Effort) -> usize {
    parts.saturating_mul(effort.coarsest as usize).max(64)
}

/// Coarsens until there are few vertices per part.
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

/// The initial partition, refined up to the full graph.
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

/// Total overweight of the parts, and the allowed one during refinement.
fn excess(graph: &Graph, parts: &[u32], sizes: &[u32]) -> i64 {
    let tolerance = graph.heaviest() / 2;
    let mut over: Vec<i64> = sizes.iter().map(|&size| -i64::from(size) - tolerance).collect();
    (0..).zip(parts).for_each(|(vertex, &part)| over[part as usize] += graph.weight(vertex));
    over.into_iter().map(|over| over.max(0)).sum()
}

/// Refinement parameters for a number of vertices.
fn sweeps(effort: Effort, vertices: usize, parts: usize) -> Sweeps {
    Sweeps {
        turns: effort.sweeps,
        pairs: effort.pairs as usize,
        passes: PASSES,
        patience: (vertices / PATIENCE_SHARE / parts.max(1)).clamp(PATIENCE[0], PATIENCE[1]),
    }
}

/// Refines the partition of the coarsest graph during uncoarsening.
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

/// One V-cycle: coarsens inside the parts and refines; keeps results that are not worse. Returns the number
/// of visited edges.
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

/// More parts than this are cut in rounds: every pair of a few dozen large parts can be refined, but not of a
/// thousand small ones, and large parts are then cut in parallel.
const MANY: usize = 64;
/// Divisors of the number of cycles in the first and second round, and after both.
const FIRST: u32 = 20;
const SECOND: u32 = 5;
const AFTER: u32 = 32;

/// Partitions a graph in two rounds: into large parts, then each of them into a similar number of parts of
/// exact sizes.
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

/// Vertices from which halves are cut in parallel.
const PARALLEL: usize = 512;

/// Recursive bisection into parts of about these sizes, each more than zero. `path` is the position in the
/// recursion.
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

/// Number of parts and target weight of the first half.
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

/// The random stream of a subproblem, which depends only on the seed and the position in the recursion.
fn stream(seed: u64, path: u64) -> Pcg64 {
    Pcg64::from_seed(seed_stream("partition", seed, path))
}
