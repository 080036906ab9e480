//! Inputs that do not belong together.

use miette::Diagnostic;

use crate::compare::MAX_SAMPLES;

/// A mapping that cannot be compared with others.
#[derive(Debug, thiserror::Error, Diagnostic)]
pub enum EvaluateError {
    /// The mapping is of another program.
    #[error("the mapping has {mapped} ranks, but the task graph has {ranks}")]
    #[diagnostic(help("connect the task graph that the mapping was made for"))]
    OtherProgram {
        /// Ranks of the mapping.
        mapped: usize,
        /// Ranks of the task graph.
        ranks: usize,
    },
    /// The mapping is for a machine with more or fewer hosts.
    #[error("the mapping is for a machine of {mapped} hosts, but the system has {hosts}")]
    #[diagnostic(help("connect the system that the mapping was made for"))]
    OtherHosts {
        /// Hosts of the mapping.
        mapped: usize,
        /// Hosts of the machine.
        hosts: usize,
    },
    /// The mapping is for a machine with another host.
    #[error(
        "host {index} of the mapping is `{mapped}` with {mapped_slots} slots, but that of the system is `{host}` with {slots}"
    )]
    #[diagnostic(help("connect the system that the mapping was made for"))]
    OtherHost {
        /// Index of the host in slot order.
        index: usize,
        /// Its name in the mapping.
        mapped: String,
        /// Its slots in the mapping.
        mapped_slots: u32,
        /// Its name in the machine.
        host: String,
        /// Its slots in the machine.
        slots: u32,
    },
    /// There are far too many random placements.
    #[error("samples is {samples}")]
    #[diagnostic(help("give a number of random placements up to {MAX_SAMPLES}"))]
    Samples {
        /// The parameter.
        samples: u32,
    },
}
