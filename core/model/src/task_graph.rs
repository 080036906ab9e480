//! What a program does: its task graph (what the processes did and sent to each other), what its processes and the streams between them
//! ask of a machine, its messages one by one, and all that in a few numbers.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use miette::Diagnostic;

use crate::{Artifact, CollectiveTable, CollectiveTableError, Keeper};

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
            return Err(TaskGraphError::Unsorted(index + 1));
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
        Some(index) => Err(TaskGraphError::Unsorted(index + 1)),
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
    #[error("edge {0} is not behind the one before it: edges are sorted and every pair stands once")]
    Unsorted(usize),
}

/// The messages of a program, one row each, in a Parquet file. There may be more than fit into memory, so they stay on
/// disk.
///
/// Columns of the table `messages`: `time_s` (after the first event of the trace; missing if the trace has no clock),
/// `source` and `destination` (ranks), `tag`, `bytes`, `communicator` (its name or else its number), `operation` (the
/// call that sent it) and `region` (the function that called it), the last two as far as they are known. Rows stand
/// location by location; those of one location are in the order in which it recorded them.
#[derive(Debug, Clone)]
pub struct Events {
    table: PathBuf,
    rows: u64,
    /// Held, never looked at.
    _keeper: Option<Arc<dyn Keeper>>,
}

impl Events {
    /// The messages in a Parquet file that others keep.
    #[must_use]
    pub fn new(table: PathBuf, rows: u64) -> Self {
        Self { table, rows, _keeper: None }
    }

    /// Lets something live as long as the messages do, such as the folder of the file.
    #[must_use]
    pub fn kept_by(self, keeper: impl Keeper) -> Self {
        Self { _keeper: Some(Arc::new(keeper)), ..self }
    }

    /// The Parquet file.
    #[must_use]
    pub fn table(&self) -> &Path {
        &self.table
    }

    /// Number of messages.
    #[must_use]
    pub fn rows(&self) -> u64 {
        self.rows
    }
}

impl Artifact for Events {
    const KIND: &'static str = "events";
}

/// What a program did, in a few numbers.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct TraceSummary {
    /// Totals, shares and imbalances by name, such as `collective_share`. What the trace does not tell is missing.
    pub totals: BTreeMap<String, f64>,
    /// The ranks in their order.
    pub ranks: Vec<RankSummary>,
    /// The pairs with the most bytes, the heaviest first.
    pub heaviest: Vec<Edge>,
    /// The phases in their order, if the trace was read with phases.
    pub phases: Vec<PhaseSummary>,
}

/// What one rank did.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct RankSummary {
    /// Messages to other ranks.
    pub messages_sent: u64,
    /// Bytes to other ranks.
    pub bytes_sent: u64,
    /// Messages from other ranks.
    pub messages_received: u64,
    /// Bytes from other ranks.
    pub bytes_received: u64,
    /// Other ranks that it sends to or receives from.
    pub partners: u32,
    /// Time outside communication, in seconds.
    pub compute_s: Option<f64>,
    /// Time in communication, in seconds.
    pub communication_s: Option<f64>,
    /// Time of that in collective operations, in seconds.
    pub collective_s: Option<f64>,
}

/// What happened in one phase.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct PhaseSummary {
    /// Name of the region it stands for, if any.
    pub name: Option<String>,
    /// Messages of all pairs.
    pub messages: u64,
    /// Bytes of all pairs.
    pub bytes: u64,
    /// Time that all ranks computed in it, in seconds.
    pub compute_s: Option<f64>,
}

impl Artifact for TraceSummary {
    const KIND: &'static str = "trace-summary";
}

/// What the processes of a program and the streams between them ask of a machine; empty if nobody said it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Demands {
    /// What every process asks for; one for every process, or none.
    pub processes: Vec<ProcessDemand>,
    /// Streams of data that flow all the time; several may join the same processes, and they may go round.
    pub streams: Vec<Stream>,
}

/// What a process asks of its host.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ProcessDemand {
    /// Its name.
    pub name: String,
    /// Performance that it needs, in the units of [`NodeTraits::performance`](crate::NodeTraits::performance).
    pub performance: f64,
    /// Capabilities that its host must have; sorted.
    pub capabilities: Vec<String>,
    /// Devices of its host that it takes for itself.
    pub devices: BTreeMap<String, u32>,
    /// Name of the host that it has to be on, if that is settled.
    pub host: Option<String>,
}

/// A stream of data from one process to another.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Stream {
    /// Rank of the process that sends.
    pub source: u32,
    /// Rank of the process that receives.
    pub destination: u32,
    /// Bandwidth that it needs, in bytes per second or whatever the links of the machine count in.
    pub bandwidth_bytes_per_s: f64,
}

impl Demands {
    /// Whether nobody said what is asked for.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.processes.is_empty() && self.streams.is_empty()
    }

    pub(crate) fn check(&self, processes: usize) -> Result<(), DemandsError> {
        if !self.processes.is_empty() && self.processes.len() != processes {
            return Err(DemandsError::Processes { demands: self.processes.len(), processes });
        }
        for (rank, demand) in self.processes.iter().enumerate() {
            if !(demand.performance.is_finite() && demand.performance >= 0.0) {
                return Err(DemandsError::Performance { rank, performance: demand.performance });
            }
        }
        for (index, stream) in self.streams.iter().enumerate() {
            if stream.source.max(stream.destination) as usize >= processes {
                return Err(DemandsError::NoSuchRank { index, processes });
            }
            let bandwidth = stream.bandwidth_bytes_per_s;
            if !(bandwidth.is_finite() && bandwidth > 0.0) {
                return Err(DemandsError::Bandwidth { index, bandwidth });
            }
        }
        Ok(())
    }
}

/// Demands that contradict themselves.
#[derive(Debug, Clone, PartialEq, thiserror::Error, Diagnostic)]
pub enum DemandsError {
    /// Not one demand for every process.
    #[error("{demands} processes ask for something, but there are {processes}")]
    Processes {
        /// Number of demands.
        demands: usize,
        /// Number of processes.
        processes: usize,
    },
    /// Performance that nobody can give.
    #[error("process {rank} asks for a performance of {performance}")]
    Performance {
        /// The process.
        rank: usize,
        /// What it asks for.
        performance: f64,
    },
    /// A stream joins processes that do not exist.
    #[error("stream {index} names a process that does not exist: there are {processes}")]
    NoSuchRank {
        /// The stream.
        index: usize,
        /// Number of processes.
        processes: usize,
    },
    /// A stream without a bandwidth.
    #[error("stream {index} asks for a bandwidth of {bandwidth}")]
    Bandwidth {
        /// The stream.
        index: usize,
        /// What it asks for.
        bandwidth: f64,
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
        assert!(matches!(graph(&[(0, 1), (0, 1)]).check(), Err(TaskGraphError::Unsorted(1))));
        assert!(matches!(graph(&[(1, 0), (0, 1)]).check(), Err(TaskGraphError::Unsorted(1))));
    }
}
