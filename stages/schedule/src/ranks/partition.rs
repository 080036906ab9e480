//! Placement by partition: ranks are dealt out to the children of every node of the tree, so that what goes between them is little.

use hopmap_partition::{Effort, Graph, PartitionError, partition};
use rayon::prelude::*;

use super::problem::RankProblem;

/// Ranks beyond which less is done for a small cut.
const MANY: usize = 2048;
/// The stream of random numbers.
const SEED: u64 = 1;

/// Ranks that share the slots `begin..end` of the order of the tree.
struct Part {
    /// Its children are the groups of the level below; zero where they are single slots.
    level: usize,
    begin: u32,
    end: u32,
    graph: Graph,
    /// The rank that every vertex is.
    ranks: Vec<u32>,
}

/// Places ranks so that heavy links are short, in parts that have room for so many times the ranks: room to keep together what belongs
/// together.
pub(super) fn place(
    problem: &RankProblem,
    weights: &[i64],
    room_for: usize,
) -> Result<Vec<u32>, PartitionError> {
    let level = problem.places.levels.len();
    let ranks = (0..problem.ranks as u32).collect();
    let root = Part { level, begin: 0, end: problem.slots as u32, graph: graph(problem, weights)?, ranks };
    let mut slots = vec![0; problem.ranks];
    for (rank, slot) in place_part(problem, root, room_for)? {
        slots[rank as usize] = slot;
    }
    Ok(slots)
}

fn place_part(problem: &RankProblem, part: Part, room_for: usize) -> Result<Vec<(u32, u32)>, PartitionError> {
    let Some(level) = part.level.checked_sub(1).filter(|&level| level > 0 && part.ranks.len() > 1) else {
        let order = &problem.places.order[part.begin as usize..part.end as usize];
        return Ok(part.ranks.into_iter().zip(order.iter().copied()).collect());
    };
    let children = children(problem, &part, room_for, level - 1);
    if let [(begin, end)] = children[..] {
        return place_part(problem, Part { level, begin, end, ..part }, room_for);
    }
    let sizes: Vec<u32> = children.iter().map(|(begin, end)| end - begin).collect();
    let room = sizes.iter().sum::<u32>() as usize;
    let effort = Effort { cycles: if problem.ranks > MANY { 2 } else { 20 }, ..Effort::default() };
    let mut parts = partition(
        &part.graph.padded(room),
        &sizes,
        effort,
        SEED ^ u64::from(part.begin) << 8 ^ level as u64,
    )?;
    parts.truncate(part.ranks.len());
    let split = part.graph.split(&parts, sizes.len());
    let below = children.into_iter().zip(split).map(|((begin, end), (graph, vertices))| {
        let ranks = vertices.iter().map(|&vertex| part.ranks[vertex as usize]).collect();
        Part { level, begin, end, graph, ranks }
    });
    let below: Vec<Part> = below.filter(|part| !part.ranks.is_empty()).collect();
    let placed: Result<Vec<_>, _> =
        below.into_par_iter().map(|part| place_part(problem, part, room_for)).collect();
    Ok(placed?.concat())
}

/// The first groups of a level in a part that have room for so many times its ranks, or all.
fn children(problem: &RankProblem, part: &Part, room_for: usize, level: usize) -> Vec<(u32, u32)> {
    let starts = &problem.places.levels[level].starts;
    let first = starts.partition_point(|&start| start < part.begin);
    let mut room = 0;
    let mut children = Vec::new();
    for pair in starts[first..].windows(2).take_while(|pair| pair[1] <= part.end) {
        children.push((pair[0], pair[1]));
        room += (pair[1] - pair[0]) as usize;
        if room >= room_for * part.ranks.len() {
            break;
        }
    }
    children
}

/// The graph of all ranks: an edge weighs as much as the links between its two ranks.
fn graph(problem: &RankProblem, weights: &[i64]) -> Result<Graph, PartitionError> {
    let links = problem.program.links.all.iter().zip(weights);
    let mut edges: Vec<(u32, u32, i64)> = links
        .filter(|(link, weight)| link.from != link.to && **weight > 0)
        .flat_map(|(link, &weight)| [(link.from, link.to, weight), (link.to, link.from, weight)])
        .collect();
    edges.sort_unstable();
    edges.dedup_by(|next, kept| {
        let is_same = (next.0, next.1) == (kept.0, kept.1);
        if is_same {
            kept.2 = kept.2.saturating_add(next.2);
        }
        is_same
    });
    let mut first = vec![0u32; problem.ranks + 1];
    edges.iter().for_each(|edge| first[edge.0 as usize + 1] += 1);
    (0..problem.ranks).for_each(|rank| first[rank + 1] += first[rank]);
    let targets = edges.iter().map(|edge| edge.1).collect();
    Graph::new(first, targets, edges.iter().map(|edge| edge.2).collect(), vec![1; problem.ranks])
}
