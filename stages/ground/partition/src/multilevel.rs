//! The whole way: contraction, first parts, refinement.

use crate::balance::balance;
use crate::coarsening::Coarse;
use crate::pairs::{Sweeps, refine};
use crate::random::Random;
use crate::recursive::recursive;
use crate::{Graph, PartitionError, cut};

/// How much is done for a small cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Effort {
    /// Tries to grow the first side of every cut in two.
    pub tries: u32,
    /// Whole partitions of which the best is kept.
    pub starts: u32,
    /// Cycles of contraction inside the parts and refinement after that.
    pub cycles: u32,
    /// Vertices for every part where contraction ends.
    pub coarsest: u32,
    /// Most times that every pair of parts is refined on a level.
    pub sweeps: u32,
    /// Most pairs of a part that are refined in one of these.
    pub pairs: u32,
}

impl Default for Effort {
    fn default() -> Self {
        Self { tries: 4, starts: 1, cycles: 4, coarsest: 12, sweeps: 3, pairs: 16 }
    }
}

const PASSES: u32 = 3;
const PATIENCE: usize = 30;
/// The least part of the vertices that has to go in every step of contraction.
const LEAST_SHRINKING: f64 = 0.95;

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
    let used: Vec<u32> = (0..).zip(sizes).filter(|(_, size)| **size > 0).map(|(part, _)| part).collect();
    let sizes: Vec<u32> = used.iter().map(|&part| sizes[part as usize]).collect();
    if sizes.len() < 2 {
        return Ok(vec![used.first().copied().unwrap_or(0); graph.vertices()]);
    }
    let mut best: Option<(i128, Vec<u32>)> = None;
    for start in 0..u64::from(effort.starts.max(1)) {
        let mut parts = begin(graph, &sizes, effort, seed, start);
        let mut cost = cut(graph, &parts);
        for turn in 0..u64::from(effort.cycles) {
            cycle(
                graph,
                &mut parts,
                &sizes,
                effort,
                Random::new(seed, (start + 1) << 32 | (1 << 62) | turn),
                &mut cost,
            );
        }
        if best.as_ref().is_none_or(|best| cost < best.0) {
            best = Some((cost, parts));
        }
    }
    let parts = best.map_or_else(Vec::new, |best| best.1);
    Ok(parts.into_iter().map(|part| used[part as usize]).collect())
}

/// Makes parts better that have their sizes already, by `cycles` of contraction inside them; the sizes stay.
pub fn improve(
    graph: &Graph,
    parts: &mut [u32],
    sizes: &[u32],
    effort: Effort,
    seed: u64,
) -> Result<(), PartitionError> {
    check(graph, sizes)?;
    if parts.len() != graph.vertices() {
        return Err(PartitionError::Length {
            what: "parts of vertices",
            found: parts.len(),
            expected: graph.vertices(),
        });
    }
    let count = sizes.len();
    if let Some((vertex, &part)) = parts.iter().enumerate().find(|(_, part)| **part as usize >= count) {
        return Err(PartitionError::NoSuchPart { vertex, part, parts: count });
    }
    let mut better = parts.to_vec();
    let mut cost = cut(graph, parts);
    for turn in 0..u64::from(effort.cycles) {
        cycle(graph, &mut better, sizes, effort, Random::new(seed, 1 << 63 | turn), &mut cost);
    }
    parts.copy_from_slice(&better);
    Ok(())
}

/// Whether the parts add up to the graph.
pub(crate) fn check(graph: &Graph, sizes: &[u32]) -> Result<(), PartitionError> {
    let (parts, vertices) = (sizes.iter().map(|&size| u64::from(size)).sum(), graph.total());
    if parts == vertices { Ok(()) } else { Err(PartitionError::Sizes { parts, vertices }) }
}

/// Contracts until there are few vertices for every part.
fn coarsen(
    graph: &Graph,
    parts: Option<&[u32]>,
    sizes: &[u32],
    effort: Effort,
    random: &mut Random,
) -> Vec<Coarse> {
    let coarsest = sizes.len().saturating_mul(effort.coarsest as usize).max(64);
    let heaviest = (3 * graph.total() / (2 * coarsest as u64)).max(2);
    let heaviest = u32::try_from(heaviest).unwrap_or(u32::MAX);
    let mut levels: Vec<Coarse> = Vec::new();
    let mut parts = parts.map(<[u32]>::to_vec);
    loop {
        let current = levels.last().map_or(graph, |level| &level.graph);
        if current.vertices() <= coarsest {
            return levels;
        }
        let coarse = Coarse::new(current, parts.as_deref(), heaviest, random);
        if coarse.graph.vertices() as f64 > LEAST_SHRINKING * current.vertices() as f64 {
            return levels;
        }
        parts = parts.map(|parts| coarse.restrict(&parts));
        levels.push(coarse);
    }
}

/// The first parts, refined up to the whole graph.
fn begin(graph: &Graph, sizes: &[u32], effort: Effort, seed: u64, start: u64) -> Vec<u32> {
    let levels = coarsen(graph, None, sizes, effort, &mut Random::new(seed, start | 1 << 61));
    let coarsest = levels.last().map_or(graph, |level| &level.graph);
    let parts = recursive(coarsest, sizes, effort.tries, seed, start << 40);
    ascend(graph, &levels, parts, sizes, effort)
}

/// Refines parts of the smallest graph on the way back to the whole one.
fn ascend(graph: &Graph, levels: &[Coarse], mut parts: Vec<u32>, sizes: &[u32], effort: Effort) -> Vec<u32> {
    let how = Sweeps {
        sweeps: effort.sweeps,
        pairs: effort.pairs as usize,
        passes: PASSES,
        patience: PATIENCE,
        is_exact: false,
    };
    for depth in (0..=levels.len()).rev() {
        let current = if depth == 0 { graph } else { &levels[depth - 1].graph };
        if depth < levels.len() {
            parts = levels[depth].project(&parts);
        }
        if depth == 0 && graph.is_unit() {
            balance(graph, &mut parts, sizes);
        }
        refine(current, &mut parts, sizes, how);
    }
    if graph.is_unit() {
        balance(graph, &mut parts, sizes);
    }
    parts
}

/// Contracts inside the parts and refines on the way back; keeps what is not worse.
fn cycle(
    graph: &Graph,
    parts: &mut Vec<u32>,
    sizes: &[u32],
    effort: Effort,
    mut random: Random,
    cost: &mut i128,
) {
    let levels = coarsen(graph, Some(parts), sizes, effort, &mut random);
    let mut coarse = parts.clone();
    for level in &levels {
        coarse = level.restrict(&coarse);
    }
    let found = ascend(graph, &levels, coarse, sizes, effort);
    let after = cut(graph, &found);
    if after <= *cost {
        *parts = found;
        *cost = after;
    }
}
