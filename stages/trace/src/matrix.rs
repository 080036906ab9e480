//! Messages and bytes per ordered pair, added up.

use hopmap_model::Edge;

/// Edges that are kept in any case before those of one pair are added up.
const FIRST_LIMIT: usize = 1 << 20;

/// Collects traffic between pairs of ranks in any order and adds up what belongs to one pair.
#[derive(Debug, Default)]
pub(crate) struct Matrix {
    edges: Vec<Edge>,
    /// From so many edges on, those of one pair are added up before more come.
    limit: usize,
    messages: u64,
    bytes: u64,
}

/// There are more than 2⁶⁴ messages or bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the messages or bytes of all pairs exceed 64 bits")]
pub(crate) struct Overflow;

impl Matrix {
    /// An empty matrix with room for traffic between so many pairs.
    pub(crate) fn with_capacity(pairs: usize) -> Self {
        Self { edges: Vec::with_capacity(pairs), limit: pairs, ..Self::default() }
    }

    /// Adds traffic. The sums over the whole matrix must fit into 64 bits, so those of a pair do as well.
    pub(crate) fn add(&mut self, edge: Edge) -> Result<(), Overflow> {
        self.messages = self.messages.checked_add(edge.messages).ok_or(Overflow)?;
        self.bytes = self.bytes.checked_add(edge.bytes).ok_or(Overflow)?;
        if edge.messages > 0 || edge.bytes > 0 {
            if self.edges.len() >= self.limit.max(FIRST_LIMIT) {
                self.merge();
                self.limit = 2 * self.edges.len();
            }
            self.edges.push(edge);
        }
        Ok(())
    }

    /// All pairs that sent something, sorted by source and destination.
    pub(crate) fn into_edges(mut self) -> Vec<Edge> {
        self.merge();
        self.edges
    }

    /// Sorts the edges and adds up those of one pair.
    fn merge(&mut self) {
        self.edges.sort_unstable_by_key(Edge::pair);
        self.edges.dedup_by(|next, kept| {
            let same = next.pair() == kept.pair();
            if same {
                kept.messages += next.messages;
                kept.bytes += next.bytes;
            }
            same
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edge(source: u32, destination: u32, messages: u64, bytes: u64) -> Edge {
        Edge { source, destination, messages, bytes }
    }

    #[test]
    fn one_pair_is_one_edge_and_silence_is_none() {
        let mut matrix = Matrix::default();
        for edge in [edge(1, 0, 1, 5), edge(0, 1, 2, 6), edge(1, 0, 3, 7), edge(2, 2, 0, 0)] {
            matrix.add(edge).unwrap();
        }
        assert_eq!(matrix.into_edges(), [edge(0, 1, 2, 6), edge(1, 0, 4, 12)]);
    }

    #[test]
    fn sums_beyond_64_bits_are_refused() {
        let mut matrix = Matrix::default();
        matrix.add(edge(0, 1, 1, u64::MAX)).unwrap();
        assert_eq!(matrix.add(edge(1, 0, 1, 1)), Err(Overflow));
    }
}
