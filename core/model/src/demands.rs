//! What the processes of a program and the streams between them ask of a machine.

use std::collections::BTreeMap;

use miette::Diagnostic;

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
