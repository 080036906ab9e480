//! Coarse start for large dense problems: cluster ranks and slots with similar rows, solve the quotient QAP,
//! project back.

use hopmap_islands::Candidate;
use hopmap_model::{
    CostModel, Edge, Matrix, Node, Process, Slot, SystemGraph, TaskGraph, Weight, seed_stream,
};
use hopmap_objective::{ObjectiveError, Problem};
use hopmap_random::{Pcg64, Rng, SeedableRng};

use crate::moves::below;
use crate::params::kind;

/// Minimum number of ranks to group, and the approximate number of groups.
const FEWEST_RANKS: usize = 256;
const GROUPS: usize = 170;
/// Columns by which rows are compared.
const COLUMNS: usize = 96;

/// Groups of ranks with similar rows of weights, groups of slots with similar rows of costs, and the quotient
/// problem.
///
/// In hierarchical programs and machines, the position of a group affects the cost far more than positions
/// inside a group. Rank-by-rank annealing decides it at high temperatures, where exchanges are expensive.
pub(super) struct Coarse {
    pub(super) problem: Problem,
    ranks: Vec<Vec<u32>>,
    slots: Vec<Vec<u32>>,
}

impl Coarse {
    /// `None` for small, sparse or constrained problems and those with free slots.
    pub(super) fn new(problem: &Problem) -> Result<Option<Self>, ObjectiveError> {
        let size = problem.ranks();
        if size < FEWEST_RANKS || size != problem.slots() || !problem.is_compact() || !problem.is_plain() {
            return Ok(None);
        }
        let together = size / GROUPS;
        let weights = weights(problem);
        let costs: Vec<i64> = (0..size * size)
            .map(|at| problem.distance().cost((at / size) as u32, (at % size) as u32))
            .collect();
        let ranks = groups(&weights, size, together);
        let slots = groups(&costs, size, together);
        let graph = TaskGraph {
            processes: vec![Process::default(); ranks.len()],
            edges: edges(&sums(&weights, size, &ranks), ranks.len()),
            ..TaskGraph::default()
        };
        let system = machine(&sums(&costs, size, &slots), slots.len());
        Ok(Some(Self { problem: Problem::new(&graph, &system, Weight::Bytes)?, ranks, slots }))
    }

    /// Projects a mapping of groups to all ranks: each group in order on the slots of its slot group,
    /// ungrouped ranks on the rest.
    pub(super) fn project(&self, found: &Candidate<Vec<u32>>, size: usize) -> Vec<u32> {
        let mut placement = vec![u32::MAX; size];
        let mut is_taken = vec![false; size];
        for (ranks, &group) in self.ranks.iter().zip(&found.solution) {
            for (&rank, &slot) in ranks.iter().zip(&self.slots[group as usize]) {
                placement[rank as usize] = slot;
                is_taken[slot as usize] = true;
            }
        }
        let mut free = (0..size as u32).filter(|&slot| !is_taken[slot as usize]);
        for slot in placement.iter_mut().filter(|slot| **slot == u32::MAX) {
            *slot = free.next().unwrap_or_default();
        }
        placement
    }
}

/// The weights of all pairs of ranks, row by row.
fn weights(problem: &Problem) -> Vec<i64> {
    let size = problem.ranks();
    let mut weights = vec![0; size * size];
    for rank in 0..size {
        for neighbour in problem.neighbours(rank as u32) {
            weights[rank * size + neighbour.rank as usize] = neighbour.weight;
        }
    }
    weights
}

/// Groups of a given size of similar rows, compared by a few random columns; a limited number of rows is left
/// over.
fn groups(matrix: &[i64], size: usize, together: usize) -> Vec<Vec<u32>> {
    let mut random = Pcg64::from_seed(seed_stream(kind::AUTO, 0, u64::MAX - 2));
    let columns: Vec<usize> = (0..COLUMNS).map(|_| below(random.next_u32(), size)).collect();
    let signature =
        |row: usize| -> Vec<i64> { columns.iter().map(|&column| matrix[row * size + column]).collect() };
    let signatures: Vec<Vec<i64>> = (0..size).map(signature).collect();
    let difference = |a: u32, b: u32| -> u64 {
        let pairs = signatures[a as usize].iter().zip(&signatures[b as usize]);
        pairs.fold(0, |sum, (a, b)| sum.saturating_add(a.abs_diff(*b)))
    };
    let mut left: Vec<u32> = (0..size as u32).collect();
    let mut groups = Vec::new();
    while left.len() >= together {
        let first = left[0];
        let mut near: Vec<(u64, u32)> = left.iter().map(|&row| (difference(first, row), row)).collect();
        near.sort_unstable();
        // A row is equal to itself, but perhaps also to others.
        near.retain(|&(_, row)| row != first);
        let mut group: Vec<u32> = std::iter::once(first).chain(near.iter().map(|&(_, row)| row)).collect();
        group.truncate(together);
        left.retain(|row| !group.contains(row));
        groups.push(group);
    }
    groups
}

/// Sums over the pairs of every two groups.
fn sums(matrix: &[i64], size: usize, groups: &[Vec<u32>]) -> Vec<i64> {
    let sum = |a: &Vec<u32>, b: &Vec<u32>| -> i64 {
        let of_row =
            |&row: &u32| b.iter().map(|&column| matrix[row as usize * size + column as usize]).sum::<i64>();
        a.iter().map(of_row).sum()
    };
    groups.iter().flat_map(|a| groups.iter().map(move |b| sum(a, b))).collect()
}

fn edges(weights: &[i64], groups: usize) -> Vec<Edge> {
    let edge = |(at, &weight): (usize, &i64)| {
        let (source, destination) = ((at / groups) as u32, (at % groups) as u32);
        (weight > 0).then(|| Edge { source, destination, messages: 1, bytes: weight.unsigned_abs() })
    };
    weights.iter().enumerate().filter_map(edge).collect()
}

fn machine(costs: &[i64], groups: usize) -> SystemGraph {
    SystemGraph {
        routing: hopmap_model::Routing::default(),
        nodes: vec![Node::host("groups")],
        links: Vec::new(),
        slots: (0..groups as u32).map(|core| Slot { host: 0, core }).collect(),
        cost: CostModel::Matrix(Matrix { costs: costs.iter().map(|&cost| cost as f64).collect() }),
        calibration: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn similar_rows_are_grouped() {
        // Rows 0, 3, 6, … are similar, as are 1, 4, 7, … and 2, 5, 8, ….
        let size = 30;
        let value = |at: i64| at / 30 % 3 * 100 + at % 30;
        let matrix: Vec<i64> = (0..900).map(value).collect();
        let groups = groups(&matrix, size, 4);
        assert_eq!(groups.len(), 7);
        let alike = groups.iter().filter(|group| group.iter().all(|row| row % 3 == group[0] % 3)).count();
        assert_eq!(alike, 6);
        let mut all: Vec<u32> = groups.concat();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), 28);
    }
}
