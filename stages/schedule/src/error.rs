//! What can be wrong with a machine, a program or the parameters of a scheduler.

use std::path::PathBuf;

use hopmap_islands::SearchError;
use hopmap_text::FileError;
use miette::Diagnostic;

/// Processors that make no machine.
#[derive(Debug, thiserror::Error, Diagnostic)]
pub enum MachineError {
    /// The processors make no machine.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Machine(#[from] hopmap_replay::MachineError),
    /// Nobody says what the processors are.
    #[error("nothing says how many processors there are")]
    #[diagnostic(help(
        "give `processors = 4`, connect a `system`, or name the files of PARUS in `procs` and `network`"
    ))]
    NoProcessors,
    /// A machine and files that describe another one.
    #[error("there is a `system`, and `procs` or `network` beside it")]
    #[diagnostic(help("leave one of them out: both say what the processors are"))]
    TwoMachines,
    /// Something is wrong with a file.
    #[error(transparent)]
    #[diagnostic(transparent)]
    File(#[from] FileError),
    /// A network file that was broken off.
    #[error(
        "`{file}` has times for {lengths} of the {expected} lengths of messages that its header promises"
    )]
    #[diagnostic(help(
        "the network test was broken off: run it again, or correct `end message length` in the header"
    ))]
    Incomplete {
        /// The file.
        file: String,
        /// Lengths in it.
        lengths: u64,
        /// Lengths that there should be.
        expected: u64,
    },
    /// A network file of something else than times.
    #[error("`{file}` says how far times scatter, not how long messages take")]
    #[diagnostic(help("give the file of averages, medians or minima of the same test"))]
    Deviations {
        /// The file.
        file: String,
    },
    /// What messages take is said twice.
    #[error("there is a `network` of times that were measured, and `{name}` beside it")]
    #[diagnostic(help("leave one of them out: both say what messages take"))]
    BesideNetwork {
        /// The parameter.
        name: &'static str,
    },
    /// A measurement that failed.
    #[error(
        "`{file}` says that a message of {length} bytes from process {sender} to {receiver} took {time} s"
    )]
    #[diagnostic(help("the network test failed there: run it again, or leave the process out"))]
    Failed {
        /// The file.
        file: String,
        /// Length of the message.
        length: u64,
        /// Process that sends.
        sender: usize,
        /// Process that receives.
        receiver: usize,
        /// What was measured.
        time: f64,
    },
    /// Two files of two machines.
    #[error("`procs` is of {procs} processes and `network` of {network}")]
    #[diagnostic(help("both have to be measured by the same number of processes"))]
    Disagree {
        /// Processes of the one.
        procs: usize,
        /// Processes of the other.
        network: usize,
    },
}

/// A file that holds no task graph.
#[derive(Debug, thiserror::Error, Diagnostic)]
pub enum ImportError {
    /// Something is wrong with a file.
    #[error(transparent)]
    #[diagnostic(transparent)]
    File(#[from] FileError),
    /// A file of another format.
    #[error("`{}` is no task graph of a format that is known here{}", path.display(), found.map(|found| format!(": {found}")).unwrap_or_default())]
    #[diagnostic(help(
        "a graph of PARUS begins with `<GRAPH_BEGIN>`, DOT with `digraph`, a file of the STG set with a number, and WfFormat is JSON"
    ))]
    Unknown {
        /// The file.
        path: PathBuf,
        /// What it looks like.
        found: Option<&'static str>,
    },
    /// A factor that makes no weights.
    #[error("`scale` is {scale}")]
    #[diagnostic(help("it is a number above 0, such as 1000"))]
    Scale {
        /// The parameter.
        scale: f64,
    },
    /// Attributes are named of a file that has none.
    #[error("`{parameter}` names an attribute, but {format} has none")]
    #[diagnostic(help("leave it out: only DOT has attributes"))]
    NoAttributes {
        /// The parameter.
        parameter: &'static str,
        /// The format.
        format: &'static str,
    },
}

/// A parameter of a scheduler that makes no search.
#[derive(Debug, thiserror::Error, Diagnostic)]
pub enum ParameterError {
    /// Something is wrong with the budget.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Budget(#[from] SearchError),
    /// A value that is out of range.
    #[error("{name} is {value}")]
    #[diagnostic(help("{help}"))]
    Value {
        /// The parameter.
        name: &'static str,
        /// Its value.
        value: String,
        /// What it should be.
        help: String,
    },
    /// Something is wrong with a file.
    #[error(transparent)]
    #[diagnostic(transparent)]
    File(#[from] FileError),
}
