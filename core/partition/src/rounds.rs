//! Many parts in two rounds.

use rayon::prelude::*;

use crate::multilevel::partition;
use crate::{Effort, Graph, PartitionError};

/// More parts than this are cut in rounds: every pair of a few dozen large parts can be refined, which of a thousand small ones it
/// cannot, and the parts of a large one are cut beside those of all others.
const MANY: usize = 64;
/// Cycles of the whole effort are divided by this in the first and the second round, and after both.
const FIRST: u32 = 20;
const SECOND: u32 = 5;
const AFTER: u32 = 32;

/// Whether parts are cut in rounds.
pub(crate) fn are_many(parts: usize) -> bool {
    parts > MANY
}

/// Cycles that are left for the whole graph after the rounds.
pub(crate) fn cycles_after(effort: Effort) -> u32 {
    effort.cycles / AFTER
}

/// Cuts a graph into about as many large parts as each of these then has parts, of exactly these sizes.
pub(crate) fn in_rounds(
    graph: &Graph,
    sizes: &[u32],
    effort: Effort,
    seed: u64,
) -> Result<Vec<u32>, PartitionError> {
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
