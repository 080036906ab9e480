//! Partitions of the ranks for the children of every tree node.

use std::borrow::Cow;
use std::ops::Range;

use hopmap_model::Library;
use hopmap_objective::Problem;
use hopmap_partition::{Effort, Graph, partition};
use rayon::prelude::*;

use crate::error::MapError;
use crate::params::{LevelChoice, OtherLevels, Partitioner};

/// Method of distributing ranks to the children of a node.
pub(super) struct Multisection<'a> {
    pub(super) levels: &'a LevelChoice,
    pub(super) other_levels: OtherLevels,
    pub(super) partitioner: Partitioner,
    pub(super) effort: Effort,
    pub(super) seed: u64,
}

/// A tree node and its ranks.
struct Node {
    /// Level of its children; zero for single slots.
    level: usize,
    /// Its open slots in the order of the tree.
    run: Range<usize>,
    graph: Graph,
    /// Rank of every vertex; higher numbers are isolated vertices.
    ranks: Vec<u32>,
}

impl Multisection<'_> {
    /// The slot of every rank.
    pub(super) fn place(&self, problem: &Problem, tree: &Tree) -> Result<Vec<u32>, MapError> {
        let ranks: Vec<u32> = (0..problem.ranks() as u32).collect();
        let run = 0..tree.slots.len();
        let root = Node { level: tree.height(), run, graph: graph_of(problem)?, ranks };
        let mut slots = vec![0; problem.ranks()];
        for (rank, slot) in self.place_node(tree, root)? {
            slots[rank as usize] = slot;
        }
        Ok(slots)
    }

    /// Ranks and their slots.
    fn place_node(&self, tree: &Tree, node: Node) -> Result<Vec<(u32, u32)>, MapError> {
        let Some(level) = self.next_level(tree, node.level).filter(|_| node.ranks.len() > 1) else {
            return Ok(in_order(tree, &node));
        };
        let children = self.enough(tree.children(level, &node.run), node.ranks.len());
        if let [run] = &children[..] {
            return self.place_node(tree, Node { level, run: run.clone(), ..node });
        }
        if level == 0 {
            return Ok(in_order(tree, &node));
        }
        let sizes: Vec<u32> = children.iter().map(|run| run.len() as u32).collect();
        let parts = self.deal(tree, level, &node, &sizes)?;
        let split = node.graph.split(&parts, sizes.len());
        let nodes = children.into_iter().zip(split).map(|(run, (graph, vertices))| {
            let ranks = vertices.iter().map(|&vertex| node.ranks[vertex as usize]).collect();
            Node { level, run, graph, ranks }
        });
        let nodes: Vec<Node> = nodes.filter(|node| !node.ranks.is_empty()).collect();
        let placed: Result<Vec<_>, _> =
            nodes.into_par_iter().map(|node| self.place_node(tree, node)).collect();
        Ok(placed?.concat())
    }

    /// The level of the children of a node; `None` at the bottom.
    fn next_level(&self, tree: &Tree, level: usize) -> Option<usize> {
        let mut below = (0..level).rev();
        let is_listed = |&level: &usize| self.levels.contains((tree.height() - level) as u32);
        match self.other_levels {
            OtherLevels::Ignored => below.clone().find(is_listed).or(below.next_back()),
            OtherLevels::InOrder => below.max(),
        }
    }

    /// The first children with room for twice the ranks, or all, which leaves room to keep related ranks
    /// together.
    fn enough(&self, mut children: Vec<Range<usize>>, ranks: usize) -> Vec<Range<usize>> {
        let mut room = 0;
        let enough = children.iter().position(|run| {
            room += run.len();
            room >= 2 * ranks
        });
        if let (LevelChoice::All, Some(last)) = (self.levels, enough) {
            children.truncate(last + 1);
        }
        children
    }

    /// The child of every rank of a node.
    fn deal(&self, tree: &Tree, level: usize, node: &Node, sizes: &[u32]) -> Result<Vec<u32>, MapError> {
        if !self.levels.contains((tree.height() - level) as u32) {
            let parts = (0..).zip(sizes).flat_map(|(part, &size)| std::iter::repeat_n(part, size as usize));
            return Ok(parts.take(node.ranks.len()).collect());
        }
        let room: u32 = sizes.iter().sum();
        let graph = match room as usize > node.ranks.len() {
            false => Cow::Borrowed(&node.graph),
            true => Cow::Owned(node.graph.padded(room as usize)),
        };
        let seed = self.seed ^ (node.run.start as u64) << 8 ^ level as u64;
        let mut parts = self.partitioner.cut(&graph, sizes, self.effort, seed)?;
        parts.truncate(node.ranks.len());
        Ok(parts)
    }
}

/// Maps ranks to the slots of a node in order.
fn in_order(tree: &Tree, node: &Node) -> Vec<(u32, u32)> {
    node.ranks.iter().copied().zip(tree.slots[node.run.clone()].iter().copied()).collect()
}

/// The graph of all ranks.
fn graph_of(problem: &Problem) -> Result<Graph, MapError> {
    let ranks = problem.ranks() as u32;
    let mut first = vec![0];
    let (mut targets, mut weights) = (Vec::new(), Vec::new());
    for rank in 0..ranks {
        for neighbour in problem.neighbours(rank) {
            targets.push(neighbour.rank);
            weights.push(neighbour.weight);
        }
        first.push(targets.len() as u32);
    }
    Ok(Graph::new(first, targets, weights, vec![1; ranks as usize])?)
}

/// METIS, for comparison.
pub(crate) const METIS: &Library =
    &Library { name: "METIS", install: None, is_built: cfg!(feature = "metis") };

impl Partitioner {
    /// Whether this build has it.
    pub(super) fn check(self) -> Result<(), MapError> {
        match self {
            Self::Metis => Ok(METIS.require("`partitioner = \"metis\"` cuts graphs with")?),
            Self::Own | Self::Scotch => Ok(()),
        }
    }

    /// Cuts a graph into parts of exact sizes; a build without METIS uses hopmap's partitioner.
    pub(super) fn cut(
        self,
        graph: &Graph,
        sizes: &[u32],
        effort: Effort,
        seed: u64,
    ) -> Result<Vec<u32>, MapError> {
        Ok(match self {
            #[cfg(feature = "metis")]
            Self::Metis => hopmap_partition::metis(graph, sizes, seed)?,
            Self::Scotch => hopmap_partition::scotch(graph, sizes)?,
            _ => partition(graph, sizes, effort, seed)?,
        })
    }
}

/// The allowed slots in tree order, and their groups on every level.
pub(super) struct Tree {
    /// Open slots, in the order of the tree.
    pub(super) slots: Vec<u32>,
    /// Offsets of the groups of every level, innermost first, without empty groups and single slots.
    pub(super) levels: Vec<Vec<u32>>,
}

impl Tree {
    pub(super) fn new(problem: &Problem) -> Self {
        let distance = problem.distance();
        let slots = open_slots(problem);
        let starts = |level: usize| {
            let mut starts = vec![0];
            for (index, pair) in slots.windows(2).enumerate() {
                if distance.group(level, pair[0]) != distance.group(level, pair[1]) {
                    starts.push(index as u32 + 1);
                }
            }
            starts.push(slots.len() as u32);
            starts
        };
        let levels = (distance.first_shared_level()..distance.levels()).map(starts).collect();
        Self { slots, levels }
    }

    /// Number of levels.
    pub(super) fn height(&self) -> usize {
        self.levels.len()
    }

    /// Slots per group of a level, if all groups are equal.
    pub(super) fn even_size(&self, level: usize) -> Option<u32> {
        let mut sizes = self.levels[level].windows(2).map(|pair| pair[1] - pair[0]);
        let first = sizes.next()?;
        sizes.all(|size| size == first).then_some(first)
    }

    /// The groups of a level in a range of open slots; single slots on level zero.
    pub(super) fn children(&self, level: usize, run: &Range<usize>) -> Vec<Range<usize>> {
        let Some(level) = level.checked_sub(1) else {
            return run.clone().map(|index| index..index + 1).collect();
        };
        let starts = &self.levels[level];
        let begin = starts.partition_point(|&start| (start as usize) < run.start);
        let pairs = starts[begin..].windows(2).map(|pair| pair[0] as usize..pair[1] as usize);
        pairs.take_while(|group| group.end <= run.end).collect()
    }
}

/// The allowed slots, in tree order.
fn open_slots(problem: &Problem) -> Vec<u32> {
    let order = problem.distance().order();
    if !problem.is_constrained() {
        return order.to_vec();
    }
    let ranks = problem.ranks() as u32;
    let mut last = 0;
    let mut is_open = |slot: u32| {
        let admitted = (0..ranks).map(|rank| (last + rank) % ranks).find(|&rank| problem.admits(rank, slot));
        last = admitted.unwrap_or(last);
        admitted.is_some()
    };
    order.iter().copied().filter(|&slot| is_open(slot)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metis_is_refused_in_a_build_without_it() {
        assert!(Partitioner::Own.check().is_ok());
        let checked = Partitioner::Metis.check().map_err(|error| error.to_string());
        let refused = "`partitioner = \"metis\"` cuts graphs with METIS, which this build does not have";
        assert_eq!(checked, if cfg!(feature = "metis") { Ok(()) } else { Err(refused.into()) });
    }
}
