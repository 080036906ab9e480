//! The task graph: what the processes of a program did and sent to each other.

use miette::Diagnostic;

use crate::Artifact;

/// What the processes of a parallel program did and sent to each other.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct TaskGraph {
    /// The processes; the index is the rank.
    pub processes: Vec<Process>,
    /// Traffic per ordered pair, sorted by source and destination, each pair once.
    pub edges: Vec<Edge>,
    /// Time from the first to the last event of the trace in seconds.
    pub duration_s: Option<f64>,
}

/// One process of the program.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Process {
    /// The host it ran on when it was recorded.
    pub host: Option<String>,
    /// Time it spent outside communication, in seconds.
    pub compute_s: Option<f64>,
}

/// What one process sent to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Edge {
    /// Rank of the sender.
    pub source: u32,
    /// Rank of the receiver; may equal the sender.
    pub destination: u32,
    /// Number of messages.
    pub messages: u64,
    /// Bytes in all messages.
    pub bytes: u64,
}

impl TaskGraph {
    /// Checks that every edge joins existing ranks and that edges are sorted and unique.
    pub fn check(&self) -> Result<(), TaskGraphError> {
        let processes = self.processes.len();
        for (index, edge) in self.edges.iter().enumerate() {
            if let Some(&rank) =
                [edge.source, edge.destination].iter().find(|&&rank| rank as usize >= processes)
            {
                return Err(TaskGraphError::NoSuchRank { index, rank, processes });
            }
        }
        match self.edges.windows(2).position(|pair| pair[0].pair() >= pair[1].pair()) {
            Some(index) => Err(TaskGraphError::Unsorted { index: index + 1 }),
            None => Ok(()),
        }
    }

    /// Number of processes.
    #[must_use]
    pub fn ranks(&self) -> usize {
        self.processes.len()
    }

    /// Messages of all edges.
    #[must_use]
    pub fn messages(&self) -> u64 {
        self.edges.iter().map(|edge| edge.messages).sum()
    }

    /// Bytes of all edges.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.edges.iter().map(|edge| edge.bytes).sum()
    }
}

impl Edge {
    /// Sender and receiver.
    #[must_use]
    pub fn pair(&self) -> (u32, u32) {
        (self.source, self.destination)
    }
}

impl Artifact for TaskGraph {
    const KIND: &'static str = "task-graph";
}

/// A task graph that contradicts itself.
#[derive(Debug, thiserror::Error, Diagnostic)]
pub enum TaskGraphError {
    /// An edge names a rank that does not exist.
    #[error("edge {index} names rank {rank}, but the graph has {processes} processes")]
    NoSuchRank {
        /// Index of the edge.
        index: usize,
        /// The rank.
        rank: u32,
        /// Number of processes.
        processes: usize,
    },
    /// Edges are not sorted by source and destination, or a pair stands twice.
    #[error("edge {index} is not behind the one before it: edges are sorted and every pair stands once")]
    Unsorted {
        /// Index of the edge.
        index: usize,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    fn graph(pairs: &[(u32, u32)]) -> TaskGraph {
        let edges =
            pairs.iter().map(|&(source, destination)| Edge { source, destination, messages: 1, bytes: 8 });
        TaskGraph { processes: vec![Process::default(); 3], edges: edges.collect(), duration_s: None }
    }

    #[test]
    fn sorted_edges_between_existing_ranks_are_accepted() {
        assert!(graph(&[(0, 1), (0, 2), (2, 2)]).check().is_ok());
    }

    #[test]
    fn unknown_ranks_and_repeated_pairs_are_refused() {
        assert!(matches!(graph(&[(0, 3)]).check(), Err(TaskGraphError::NoSuchRank { rank: 3, .. })));
        assert!(matches!(graph(&[(0, 1), (0, 1)]).check(), Err(TaskGraphError::Unsorted { index: 1 })));
        assert!(matches!(graph(&[(1, 0), (0, 1)]).check(), Err(TaskGraphError::Unsorted { index: 1 })));
    }
}
