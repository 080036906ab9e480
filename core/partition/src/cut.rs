//! What a partition costs.

use crate::Graph;

/// Weight of all edges between different parts, each counted once.
#[must_use]
pub fn cut(graph: &Graph, parts: &[u32]) -> i128 {
    let of_vertex = |vertex: u32| -> i128 {
        let other = |target: u32| parts[target as usize] != parts[vertex as usize];
        graph.edges(vertex).filter(|&(target, _)| other(target)).map(|(_, weight)| i128::from(weight)).sum()
    };
    (0..graph.vertices() as u32).map(of_vertex).sum::<i128>() / 2
}
