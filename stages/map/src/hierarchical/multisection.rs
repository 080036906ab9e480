//! Parts of the ranks for the children of every node of the tree.

use std::ops::Range;

use hopmap_objective::Problem;
use hopmap_partition::{Effort, Graph};
use rayon::prelude::*;

use super::tree::Tree;
use crate::error::HierarchicalError;
use crate::{LevelChoice, OtherLevels, Partitioner};

/// How ranks are dealt out to the children of a node.
pub(super) struct Multisection<'a> {
    pub(super) levels: &'a LevelChoice,
    pub(super) other_levels: OtherLevels,
    pub(super) partitioner: Partitioner,
    pub(super) effort: Effort,
    pub(super) seed: u64,
}

/// A node of the tree, and the ranks that it gets.
struct Node {
    /// Its groups are those of the level below; zero where they are single slots.
    level: usize,
    /// Its open slots in the order of the tree.
    run: Range<usize>,
    graph: Graph,
    /// The rank that every vertex is; numbers above are of nobody.
    ranks: Vec<u32>,
}

impl Multisection<'_> {
    /// The slot of every rank.
    pub(super) fn place(&self, problem: &Problem, tree: &Tree) -> Result<Vec<u32>, HierarchicalError> {
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
    fn place_node(&self, tree: &Tree, node: Node) -> Result<Vec<(u32, u32)>, HierarchicalError> {
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

    /// The level whose groups are the children of a node of a level; none where nothing is below.
    fn next_level(&self, tree: &Tree, level: usize) -> Option<usize> {
        let mut below = (0..level).rev();
        let is_listed = |&level: &usize| self.levels.contains((tree.height() - level) as u32);
        match self.other_levels {
            OtherLevels::Ignored => below.clone().find(is_listed).or(below.next_back()),
            OtherLevels::InOrder => below.max(),
        }
    }

    /// The first children that have room for twice the ranks, or all: room to keep together what belongs together.
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
    fn deal(
        &self,
        tree: &Tree,
        level: usize,
        node: &Node,
        sizes: &[u32],
    ) -> Result<Vec<u32>, HierarchicalError> {
        if !self.levels.contains((tree.height() - level) as u32) {
            let parts = (0..).zip(sizes).flat_map(|(part, &size)| std::iter::repeat_n(part, size as usize));
            return Ok(parts.take(node.ranks.len()).collect());
        }
        let room: u32 = sizes.iter().sum();
        let padded;
        let graph = match room as usize > node.ranks.len() {
            false => &node.graph,
            true => {
                padded = node.graph.padded(room as usize);
                &padded
            }
        };
        let seed = self.seed ^ (node.run.start as u64) << 8 ^ level as u64;
        let mut parts = self.partitioner.cut(graph, sizes, self.effort, seed)?;
        parts.truncate(node.ranks.len());
        Ok(parts)
    }
}

/// Ranks on the slots of a node one behind the other.
fn in_order(tree: &Tree, node: &Node) -> Vec<(u32, u32)> {
    node.ranks.iter().copied().zip(tree.slots[node.run.clone()].iter().copied()).collect()
}

/// The graph of all ranks.
fn graph_of(problem: &Problem) -> Result<Graph, HierarchicalError> {
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
