//! Inputs that do not belong together.

use std::path::PathBuf;

use miette::Diagnostic;

/// Most random placements.
pub(crate) const MAX_SAMPLES: u32 = 1_000_000;

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
    /// A mapping has no such matrix key.
    #[error("`{label}` has no matrix key `{key}`")]
    #[diagnostic(help("`by` names keys of the matrix of the stage that makes the mappings"))]
    NoKey {
        /// The key.
        key: String,
        /// Where the mapping comes from.
        label: String,
    },
    /// A mapping has no such metric.
    #[error("`{label}` has no metric `{metric}`")]
    #[diagnostic(help("it has {metrics}"))]
    NoMetric {
        /// The metric.
        metric: String,
        /// Where the mapping comes from.
        label: String,
        /// Those that it has.
        metrics: String,
    },
    /// The file of known values cannot be read.
    #[error("{}{}: {problem}", path.display(), if *line > 0 { format!(":{line}") } else { String::new() })]
    #[diagnostic(help("give a CSV file with a header, such as `instance,best known`"))]
    Known {
        /// The file.
        path: PathBuf,
        /// The line, from one; zero where it is the file as a whole.
        line: u64,
        /// What is wrong.
        problem: String,
    },
    /// The file of known values has no column that tells the groups apart.
    #[error("{}: none of the columns is one of {keys}", path.display())]
    #[diagnostic(help("the file needs a column with the name of a key in `by`"))]
    NoCommonKey {
        /// The file.
        path: PathBuf,
        /// The keys of the groups.
        keys: String,
    },
    /// A column that values are to be compared with is not in the file of known values.
    #[error("there is no column `{column}` with known values")]
    #[diagnostic(help("`beside` names columns of the file `known`"))]
    NoColumn {
        /// The column.
        column: String,
    },
}
