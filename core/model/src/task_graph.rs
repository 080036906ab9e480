//! The communication matrix of a program, the demands of its processes and streams, its individual messages,
//! and summary statistics.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use miette::Diagnostic;

use crate::collectives::{CollectiveTable, CollectiveTableError};
use crate::files::Keeper;
use crate::stage::Artifact;

/// Computation and communication of the processes of a parallel program.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct TaskGraph {
    /// The processes; the index is the rank.
    pub processes: Vec<Process>,
    /// Traffic per ordered pair, sorted by source and destination, each pair once.
    pub edges: Vec<Edge>,
    /// Time from the first to the last trace event in seconds.
    pub duration_s: Option<f64>,
    /// Messages of each pair by length, sorted by source, destination and length; empty if not recorded.
    pub sizes: Vec<SizeBin>,
    /// The same by program phase; empty if not recorded.
    pub phases: Vec<Phase>,
    /// The collective operations of the program; empty if not recorded.
    pub collectives: CollectiveTable,
    /// Bytes of `edges` that collective operations sent, if known.
    pub collective_bytes: Option<f64>,
    /// Whether parts of the recording are missing, such as those of a rank that was killed.
    pub is_incomplete: bool,
    /// Resource demands of processes and streams; empty if none are given.
    pub demands: Demands,
}

/// Messages from one process to another in a range of lengths.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SizeBin {
    /// Rank of the sender.
    pub source: u32,
    /// Rank of the receiver.
    pub destination: u32,
    /// Lower end of the range in bytes, zero or a power of two; lengths are less than twice that.
    pub at_least_bytes: u64,
    /// Number of messages.
    pub messages: u64,
    /// Bytes of all messages.
    pub bytes: u64,
}

/// A phase: a time interval of the program, or a code region.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Phase {
    /// Name of the region, if any.
    pub name: Option<String>,
    /// Begin of the interval in seconds after the first trace event, if it is an interval.
    pub begin_s: Option<f64>,
    /// End of the interval, likewise.
    pub end_s: Option<f64>,
    /// Computation time of each process in the phase, in seconds.
    pub compute_s: Vec<Option<f64>>,
    /// Traffic per ordered pair, as in [`TaskGraph::edges`].
    pub edges: Vec<Edge>,
}

/// One process of the program.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Process {
    /// The host it ran on during recording.
    pub host: Option<String>,
    /// Time outside communication, in seconds.
    pub compute_s: Option<f64>,
    /// Time in communication, including waiting, in seconds.
    pub communication_s: Option<f64>,
    /// Part of that time in collective operations, in seconds.
    pub collective_s: Option<f64>,
}

/// Traffic from one process to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Edge {
    /// Rank of the sender.
    pub source: u32,
    /// Rank of the receiver; may equal the sender.
    pub destination: u32,
    /// Number of messages.
    pub messages: u64,
    /// Bytes of all messages.
    pub bytes: u64,
}

impl TaskGraph {
    /// Checks that edges, including those of phases, connect existing ranks and are sorted and unique, and
    /// that collective operations refer to existing ranks. The messages and bytes of all edges are 64-bit numbers.
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

    /// Number of messages of all edges.
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
    let sum = |amount: fn(&Edge) -> u64| edges.iter().map(|edge| u128::from(amount(edge))).sum::<u128>();
    if sum(|edge| edge.bytes).max(sum(|edge| edge.messages)) > u128::from(u64::MAX) {
        return Err(TaskGraphError::TooMuch);
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

/// An inconsistent communication matrix.
#[derive(Debug, thiserror::Error, Diagnostic)]
pub enum TaskGraphError {
    /// The collective operations are inconsistent.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Collectives(#[from] CollectiveTableError),
    /// The demands are inconsistent.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Demands(#[from] DemandsError),
    /// An edge refers to a rank that does not exist.
    #[error("edge {index} refers to rank {rank}, but the graph has {processes} processes")]
    #[diagnostic(code(model::task_graph_no_such_rank))]
    NoSuchRank {
        /// Index of the edge.
        index: usize,
        /// The rank.
        rank: u32,
        /// Number of processes.
        processes: usize,
    },
    /// A phase does not have a time for each process.
    #[error("phase {index} has {times} times, but there are {processes} processes")]
    #[diagnostic(code(model::phase))]
    Phase {
        /// Index of the phase.
        index: usize,
        /// Number of times.
        times: usize,
        /// Number of processes.
        processes: usize,
    },
    /// The messages or bytes of all edges have no 64-bit sum.
    #[error("the edges together have more than {} messages or bytes", u64::MAX)]
    #[diagnostic(code(model::task_graph_too_much))]
    TooMuch,
    /// Edges are not sorted by source and destination, or not unique.
    #[error("edge {0} is out of order: edges must be sorted and unique")]
    #[diagnostic(code(model::task_graph_unsorted))]
    Unsorted(usize),
}

/// The messages of a program, one per row, in a Parquet file. They may not fit into memory, so they remain on
/// disk.
///
/// Columns of the table `messages`: `time_s` (after the first trace event; missing if the trace has no
/// clock), `source` and `destination` (ranks), `tag`, `bytes`, `communicator` (its name, otherwise its
/// number), `operation` (the call that sent it) and `region` (the calling function), the last two if known.
/// Rows are ordered by location, and within a location in recording order.
#[derive(Debug, Clone)]
pub struct Events {
    table: PathBuf,
    rows: u64,
    /// Held for its destructor.
    _keeper: Option<Arc<dyn Keeper>>,
}

impl Events {
    /// The messages in an external Parquet file.
    #[must_use]
    pub fn new(table: PathBuf, rows: u64) -> Self {
        Self { table, rows, _keeper: None }
    }

    /// Ties the lifetime of a guard, such as the folder of the file, to the messages.
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

/// Summary statistics of a program.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct TraceSummary {
    /// Totals, fractions and imbalances by name, such as `collective_share`. Quantities that the trace does
    /// not contain are missing.
    pub totals: BTreeMap<String, f64>,
    /// The ranks in order.
    pub ranks: Vec<RankSummary>,
    /// The pairs with the most bytes, in descending order.
    pub heaviest: Vec<Edge>,
    /// The phases in order, if the trace was read with phases.
    pub phases: Vec<PhaseSummary>,
}

/// Statistics of one rank.
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
    /// Number of other ranks it exchanges messages with.
    pub partners: u32,
    /// Time outside communication, in seconds.
    pub compute_s: Option<f64>,
    /// Time in communication, in seconds.
    pub communication_s: Option<f64>,
    /// Part of that time in collective operations, in seconds.
    pub collective_s: Option<f64>,
}

/// Statistics of one phase.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct PhaseSummary {
    /// Name of the region, if any.
    pub name: Option<String>,
    /// Messages of all pairs.
    pub messages: u64,
    /// Bytes of all pairs.
    pub bytes: u64,
    /// Computation time of all ranks in the phase, in seconds.
    pub compute_s: Option<f64>,
}

impl Artifact for TraceSummary {
    const KIND: &'static str = "trace-summary";
}

/// Resource demands of processes and streams; empty if none are given.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Demands {
    /// Demands of the processes; one per process, or none.
    pub processes: Vec<ProcessDemand>,
    /// Continuous data streams; several may connect the same processes, and they may form cycles.
    pub streams: Vec<Stream>,
}

/// Demands of a process on its host.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ProcessDemand {
    /// The name.
    pub name: String,
    /// Required performance, in the units of [`NodeTraits::performance`](crate::NodeTraits::performance).
    pub performance: f64,
    /// Required capabilities of the host; sorted.
    pub capabilities: Vec<String>,
    /// Devices of the host that it reserves.
    pub devices: BTreeMap<String, u32>,
    /// Name of the required host, if any.
    pub host: Option<String>,
}

/// A stream of data from one process to another.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Stream {
    /// Rank of the sending process.
    pub source: u32,
    /// Rank of the receiving process.
    pub destination: u32,
    /// Required bandwidth, in bytes per second or in the unit of the links of the machine.
    pub bandwidth_bytes_per_s: f64,
}

impl Demands {
    /// Whether there are no demands.
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

/// Inconsistent demands.
#[derive(Debug, Clone, PartialEq, thiserror::Error, Diagnostic)]
pub enum DemandsError {
    /// The number of demands differs from the number of processes.
    #[error("there are demands of {demands} processes, but {processes} processes")]
    #[diagnostic(code(model::processes))]
    Processes {
        /// Number of demands.
        demands: usize,
        /// Number of processes.
        processes: usize,
    },
    /// A negative or non-finite performance.
    #[error("process {rank} requires an invalid performance of {performance}")]
    #[diagnostic(code(model::performance))]
    Performance {
        /// The process.
        rank: usize,
        /// The required performance.
        performance: f64,
    },
    /// A stream connects processes that do not exist.
    #[error("stream {index} refers to a process that does not exist; there are {processes} processes")]
    #[diagnostic(code(model::demands_no_such_rank))]
    NoSuchRank {
        /// The stream.
        index: usize,
        /// Number of processes.
        processes: usize,
    },
    /// An invalid bandwidth.
    #[error("stream {index} requires an invalid bandwidth of {bandwidth}")]
    #[diagnostic(code(model::bandwidth))]
    Bandwidth {
        /// The stream.
        index: usize,
        /// The required bandwidth.
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
    fn unknown_ranks_and_repeated_pairs_are_rejected() {
        assert!(matches!(graph(&[(0, 3)]).check(), Err(TaskGraphError::NoSuchRank { rank: 3, .. })));
        assert!(matches!(graph(&[(0, 1), (0, 1)]).check(), Err(TaskGraphError::Unsorted(1))));
        assert!(matches!(graph(&[(1, 0), (0, 1)]).check(), Err(TaskGraphError::Unsorted(1))));
    }

    /// The loads of links overflowed.
    #[test]
    fn bytes_of_all_edges_have_64_bits() {
        let mut large = graph(&[(0, 1), (0, 2)]);
        large.edges[0].bytes = u64::MAX - large.edges[1].bytes;
        assert!(large.check().is_ok() && large.bytes() == u64::MAX);
        large.edges[0].bytes += 1;
        assert!(matches!(large.check(), Err(TaskGraphError::TooMuch)));
    }
}
