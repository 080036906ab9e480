//! Graphs as partitioners of others take them: 32-bit numbers, no loops, no edges without weight.

use crate::{Graph, PartitionError};

/// The weights of all edges, both directions counted, add up to no more.
const MOST_WEIGHT: i64 = 1 << 30;

/// A graph in compressed rows.
pub(crate) struct Compressed {
    /// Where the edges of every vertex begin, and the end.
    pub(crate) first: Vec<i32>,
    pub(crate) targets: Vec<i32>,
    pub(crate) weights: Vec<i32>,
    /// Parts that are not empty.
    pub(crate) used: Vec<u32>,
}

impl Compressed {
    /// `None` where there are fewer than two parts to choose from.
    ///
    /// Weights are divided by a common number until they fit; those that become zero are one, since edges without weight are
    /// refused or ignored.
    pub(crate) fn new(graph: &Graph, sizes: &[u32]) -> Result<Option<Self>, PartitionError> {
        let used: Vec<u32> = (0..).zip(sizes).filter(|(_, size)| **size > 0).map(|(part, _)| part).collect();
        if used.len() < 2 {
            return Ok(None);
        }
        let count =
            |what, count: usize| i32::try_from(count).map_err(|_| PartitionError::TooMany { what, count });
        let vertices = count("vertices", graph.vertices())? as u32;
        let kept =
            |vertex: u32| graph.edges(vertex).filter(move |&(target, weight)| target != vertex && weight > 0);
        let all: i128 = (0..vertices).flat_map(kept).map(|(_, weight)| i128::from(weight)).sum();
        let divisor = (all / i128::from(MOST_WEIGHT / 2) + 1) as i64;
        let (mut first, mut targets, mut weights) = (vec![0], Vec::new(), Vec::new());
        for vertex in 0..vertices {
            for (target, weight) in kept(vertex) {
                targets.push(target.cast_signed());
                weights.push((weight / divisor).max(1) as i32);
            }
            first.push(count("edges", targets.len())?);
        }
        Ok(Some(Self { first, targets, weights, used }))
    }

    /// Parts as they are numbered outside.
    pub(crate) fn numbered(&self, parts: &[i32]) -> Vec<u32> {
        let number = |&part: &i32| self.used[usize::try_from(part).unwrap_or(0).min(self.used.len() - 1)];
        parts.iter().map(number).collect()
    }
}

/// All vertices in the only part that is not empty.
pub(crate) fn undivided(graph: &Graph, sizes: &[u32]) -> Vec<u32> {
    let part = sizes.iter().position(|&size| size > 0).unwrap_or(0);
    vec![part as u32; graph.vertices()]
}
