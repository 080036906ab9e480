//! Traffic between ranks that become known one by one.

use hopmap_model::{Edge, Process, TaskGraph};

use crate::matrix::{Matrix, Overflow};

/// Adds up messages and remembers the highest rank.
#[derive(Debug, Default)]
pub(super) struct Tally {
    matrix: Matrix,
    /// One more than the highest rank so far.
    ranks: u32,
}

impl Tally {
    /// A rank is there, whether it sends or not.
    pub(super) fn see(&mut self, rank: u32) {
        self.ranks = self.ranks.max(rank + 1);
    }

    /// Adds messages.
    pub(super) fn add(&mut self, edge: Edge) -> Result<(), Overflow> {
        self.see(edge.source.max(edge.destination));
        self.matrix.add(edge)
    }

    /// The graph of all messages. Of the processes nothing is known.
    pub(super) fn into_graph(self) -> TaskGraph {
        TaskGraph {
            processes: vec![Process::default(); self.ranks as usize],
            edges: self.matrix.into_edges(),
            ..TaskGraph::default()
        }
    }
}
