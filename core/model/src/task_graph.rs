//! The task graph: what the processes of a program did and sent to each other.

use miette::Diagnostic;

use crate::{Artifact, CollectiveTable, CollectiveTableError, Demands, DemandsError};

/// What the processes of a parallel program did and sent to each other.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct TaskGraph {
    /// The processes; the index is the rank.
    pub processes: Vec<Process>,
    /// Traffic per ordered pair, sorted by source and destination, each pair once.
    pub edges: Vec<Edge>,
    /// Time from the first to the last event of the trace in seconds.
    pub duration_s: Option<f64>,
    /// Messages of every pair by their length, sorted by source, destination and length; empty if lengths were not
    /// told apart.
    pub sizes: Vec<SizeBin>,
    /// The same by phases of the program; empty if phases were not told apart.
    pub phases: Vec<Phase>,
    /// The collective operations of the program; empty if they were not kept.
    pub collectives: CollectiveTable,
    /// What processes and streams ask of a machine; empty if nobody said it.
    pub demands: Demands,
}

/// Messages from one process to another whose lengths are alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SizeBin {
    /// Rank of the sender.
    pub source: u32,
    /// Rank of the receiver.
    pub destination: u32,
    /// Least length in bytes, zero or a power of two; lengths are less than twice that.
    pub at_least_bytes: u64,
    /// Number of messages.
    pub messages: u64,
    /// Bytes in all messages.
    pub bytes: u64,
}

/// A part of the time of a program, or of its code.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Phase {
    /// Name of the region it stands for, if any.
    pub name: Option<String>,
    /// When it begins, in seconds after the first event of the trace, if it is a part of the time.
    pub begin_s: Option<f64>,
    /// When it ends, likewise.
    pub end_s: Option<f64>,
    /// Time that each process computed in it, in seconds.
    pub compute_s: Vec<Option<f64>>,
    /// Traffic per ordered pair, as in [`TaskGraph::edges`].
    pub edges: Vec<Edge>,
}

/// One process of the program.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Process {
    /// The host it ran on when it was recorded.
    pub host: Option<String>,
    /// Time it spent outside communication, in seconds.
    pub compute_s: Option<f64>,
    /// Time it spent in communication, waiting included, in seconds.
    pub communication_s: Option<f64>,
    /// Time of that it spent in collective operations, in seconds.
    pub collective_s: Option<f64>,
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
    /// Checks that every edge joins existing ranks and that edges are sorted and unique, those of the phases too, and
    /// that the collective operations are those of existing ranks.
    pub fn check(&self) -> Result<(), TaskGraphError> {
        let processes = self.processes.len();
        check_edges(&self.edges, processes)?;
        self.collectives.check(processes)?;
        self.demands.check(processes)?;
        for (index, phase) in self.phases.iter().enumerate() {
            check_edges(&phase.edges, processes)?;
            if phase.compute_s.len() != processes {
                return Err(TaskGraphError::Phase { index, times: phase.compute_s.len(), processes });
            }
        }
        let key = |bin: &SizeBin| (bin.source, bin.destination, bin.at_least_bytes);
        if let Some(index) = self.sizes.windows(2).position(|pair| key(&pair[0]) >= key(&pair[1])) {
            return Err(TaskGraphError::Unsorted { index: index + 1 });
        }
        let rank = |bin: &SizeBin| [bin.source, bin.destination].into_iter().max();
        match self.sizes.iter().map(rank).enumerate().find(|(_, rank)| *rank >= Some(processes as u32)) {
            Some((index, rank)) => {
                Err(TaskGraphError::NoSuchRank { index, rank: rank.unwrap_or_default(), processes })
            }
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

fn check_edges(edges: &[Edge], processes: usize) -> Result<(), TaskGraphError> {
    for (index, edge) in edges.iter().enumerate() {
        if let Some(&rank) = [edge.source, edge.destination].iter().find(|&&rank| rank as usize >= processes)
        {
            return Err(TaskGraphError::NoSuchRank { index, rank, processes });
        }
    }
    match edges.windows(2).position(|pair| pair[0].pair() >= pair[1].pair()) {
        Some(index) => Err(TaskGraphError::Unsorted { index: index + 1 }),
        None => Ok(()),
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
    /// The collective operations contradict themselves or the processes.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Collectives(#[from] CollectiveTableError),
    /// The demands contradict themselves or the processes.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Demands(#[from] DemandsError),
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
    /// A phase does not have a time for every process.
    #[error("phase {index} has {times} times, but there are {processes} processes")]
    Phase {
        /// Index of the phase.
        index: usize,
        /// Number of times.
        times: usize,
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
        TaskGraph { processes: vec![Process::default(); 3], edges: edges.collect(), ..TaskGraph::default() }
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
