//! Weighted undirected graphs, and errors of partitioning.

use miette::Diagnostic;
use rayon::prelude::*;

/// Maximum bits of the total edge weight, so that sums and differences of gains stay far inside 64 bits.
const WEIGHT_BITS: u32 = 59;

/// An undirected graph with weights on edges and vertices.
///
/// The edges of vertex `v` are `first[v]..first[v + 1]` of `targets` and `weights`; every edge is stored at
/// both ends with the same weight. Loops do not count in any cut.
#[derive(Debug, Clone)]
pub struct Graph {
    pub(crate) first: Vec<u32>,
    pub(crate) targets: Vec<u32>,
    pub(crate) weights: Vec<i64>,
    pub(crate) vertex_weights: Vec<u32>,
    /// For bisections, what every vertex saves on the second side; empty if nothing.
    pub(crate) pulls: Vec<i64>,
}

impl Graph {
    /// Checks the arrays. If all weights together exceed 59 bits, they are divided by a power of two.
    pub fn new(
        first: Vec<u32>,
        targets: Vec<u32>,
        mut weights: Vec<i64>,
        vertex_weights: Vec<u32>,
    ) -> Result<Self, PartitionError> {
        let (vertices, edges) = (vertex_weights.len(), targets.len());
        let count = |what, count| match u32::try_from(count) {
            Ok(small) if small < u32::MAX => Ok(()),
            _ => Err(PartitionError::too_many(what, count)),
        };
        count("vertices", vertices)?;
        count("edges", edges)?;
        let refused = |problem: String| Err(PartitionError::new(problem, ""));
        for (what, found, expected) in
            [("offsets", first.len(), vertices + 1), ("weights of edges", weights.len(), edges)]
        {
            if found != expected {
                return refused(format!("{what}: {found} instead of {expected}"));
            }
        }
        let rises = first.windows(2).all(|pair| pair[0] <= pair[1]);
        if first[0] != 0 || first[vertices] as usize != edges || !rises {
            return refused(format!(
                "the edge offsets do not rise from zero to the number of edges, {edges}"
            ));
        }
        for vertex in 0..vertices {
            let range = first[vertex] as usize..first[vertex + 1] as usize;
            if let Some(&target) = targets[range.clone()].iter().find(|&&target| target as usize >= vertices)
            {
                return refused(format!(
                    "an edge of vertex {vertex} leads to vertex {target}, but there are {vertices} vertices"
                ));
            }
            if let Some(&weight) = weights[range].iter().find(|&&weight| weight < 0) {
                let problem = format!("an edge of vertex {vertex} has weight {weight}");
                return Err(PartitionError::new(problem, "weights must not be negative"));
            }
        }
        let total: i128 = weights.iter().map(|&weight| i128::from(weight)).sum();
        let shift = (i128::BITS - total.leading_zeros()).saturating_sub(WEIGHT_BITS);
        if shift > 0 {
            weights.iter_mut().for_each(|weight| *weight >>= shift);
        }
        Ok(Self { first, targets, weights, vertex_weights, pulls: Vec::new() })
    }

    /// Number of vertices.
    #[must_use]
    pub fn vertices(&self) -> usize {
        self.vertex_weights.len()
    }

    /// Weight of all vertices.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.vertex_weights.iter().map(|&weight| u64::from(weight)).sum()
    }

    /// The neighbours of a vertex and the weights of the edges to them.
    #[inline]
    pub fn edges(&self, vertex: u32) -> impl Iterator<Item = (u32, i64)> + '_ {
        let range = self.first[vertex as usize] as usize..self.first[vertex as usize + 1] as usize;
        self.targets[range.clone()].iter().copied().zip(self.weights[range].iter().copied())
    }

    pub(crate) fn degree(&self, vertex: u32) -> usize {
        (self.first[vertex as usize + 1] - self.first[vertex as usize]) as usize
    }

    pub(crate) fn weight(&self, vertex: u32) -> i64 {
        i64::from(self.vertex_weights[vertex as usize])
    }

    pub(crate) fn pull(&self, vertex: u32) -> i64 {
        self.pulls.get(vertex as usize).copied().unwrap_or(0)
    }

    pub(crate) fn heaviest(&self) -> i64 {
        self.vertex_weights.iter().copied().max().map_or(0, i64::from)
    }

    /// Whether every vertex weighs one.
    pub(crate) fn is_unit(&self) -> bool {
        self.vertex_weights.iter().all(|&weight| weight == 1)
    }

    /// The subgraph of some vertices; `local(v)` is the new number of a vertex in it.
    pub(crate) fn induced(&self, vertices: &[u32], local: impl Fn(u32) -> Option<u32>) -> Self {
        let most: usize = vertices.iter().map(|&vertex| self.degree(vertex)).sum();
        let mut first = Vec::with_capacity(vertices.len() + 1);
        let (mut targets, mut weights) = (Vec::with_capacity(most), Vec::with_capacity(most));
        first.push(0);
        for &vertex in vertices {
            for (target, weight) in self.edges(vertex) {
                if let Some(target) = local(target) {
                    targets.push(target);
                    weights.push(weight);
                }
            }
            first.push(targets.len() as u32);
        }
        let vertex_weights = vertices.iter().map(|&vertex| self.vertex_weights[vertex as usize]).collect();
        Self { first, targets, weights, vertex_weights, pulls: Vec::new() }
    }

    /// The same graph, extended by isolated vertices of weight one to a number of vertices.
    #[must_use]
    pub fn padded(&self, vertices: usize) -> Self {
        let mut padded = self.clone();
        let vertices = vertices.max(self.vertices());
        padded.first.resize(vertices + 1, self.targets.len() as u32);
        padded.vertex_weights.resize(vertices, 1);
        padded
    }

    /// The same graph with vertex `order[i]` as vertex `i`.
    pub(crate) fn reordered(&self, order: &[u32]) -> Self {
        let mut numbers = vec![0; order.len()];
        (0..).zip(order).for_each(|(number, &vertex)| numbers[vertex as usize] = number);
        self.induced(order, |vertex| Some(numbers[vertex as usize]))
    }

    /// The subgraph of every part, and the sorted vertices of each.
    ///
    /// # Panics
    /// If `parts` is shorter than the vertices, or a part number is out of range.
    #[must_use]
    pub fn split(&self, parts: &[u32], count: usize) -> Vec<(Self, Vec<u32>)> {
        let mut vertices = vec![Vec::new(); count];
        let mut local = vec![0; self.vertices()];
        for (vertex, &part) in parts.iter().enumerate() {
            local[vertex] = vertices[part as usize].len() as u32;
            vertices[part as usize].push(vertex as u32);
        }
        let of_part = |(part, vertices): (usize, Vec<u32>)| {
            let inside =
                |vertex: u32| (parts[vertex as usize] as usize == part).then(|| local[vertex as usize]);
            (self.induced(&vertices, inside), vertices)
        };
        vertices.into_par_iter().enumerate().map(of_part).collect()
    }
}

/// Weight of all edges between different parts, each counted once.
#[must_use]
pub fn cut(graph: &Graph, parts: &[u32]) -> i128 {
    let of_vertex = |vertex: u32| -> i128 {
        let other = |target: u32| parts[target as usize] != parts[vertex as usize];
        graph.edges(vertex).filter(|&(target, _)| other(target)).map(|(_, weight)| i128::from(weight)).sum()
    };
    (0..graph.vertices() as u32).map(of_vertex).sum::<i128>() / 2
}

/// An invalid graph, invalid part sizes, or a failure of an external partitioner.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Diagnostic)]
#[error("{problem}")]
#[diagnostic(code(partition::invalid))]
pub struct PartitionError {
    /// What is wrong.
    pub problem: String,
    /// How to fix it, if known.
    #[help]
    pub help: Option<String>,
}

impl PartitionError {
    #[cold]
    pub(crate) fn new(problem: String, help: &str) -> Self {
        Self { problem, help: Some(help.to_owned()).filter(|help| !help.is_empty()) }
    }

    /// More vertices or directed edges than 32 bits can number.
    pub(crate) fn too_many(what: &str, count: usize) -> Self {
        let help = "vertices and directed edges are numbered with 32 bits";
        Self::new(format!("the graph has {count} {what}, too many"), help)
    }

    /// An external partitioner failed.
    pub(crate) fn foreign(partitioner: &str, problem: &str) -> Self {
        let help = "`partitioner = \"own\"` supports any graph";
        Self::new(format!("{partitioner} cannot partition the graph: {problem}"), help)
    }
}
