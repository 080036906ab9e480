//! Tasks that cannot be made or replayed.

use std::path::PathBuf;

use miette::Diagnostic;

/// A trace of which no graph of tasks can be made.
#[derive(Debug, thiserror::Error, Diagnostic)]
pub enum DagError {
    /// A parameter is no number that can be.
    #[error("`tiny_s` is {tiny_s}")]
    #[diagnostic(help("give a number of seconds from zero, such as 1e-6"))]
    Tiny {
        /// The parameter.
        tiny_s: f64,
    },
    /// A parameter is no share.
    #[error("`allow_loss` is {allow_loss}")]
    #[diagnostic(help("give a share of the bytes sent, from 0 to 1"))]
    AllowedLoss {
        /// The parameter.
        allow_loss: f64,
    },
    /// Too much of what was sent is in no task.
    #[error(
        "`{}` does not say when {messages} messages were received: {bytes} of {of_bytes} bytes are lost", path.display()
    )]
    #[diagnostic(help(
        "EZTrace leaves out receives that do not block: record with Score-P; or set `allow_loss` to the share of bytes that may be missing, 1 for any"
    ))]
    Loss {
        /// The archive.
        path: PathBuf,
        /// Messages without a receive.
        messages: u64,
        /// Their bytes.
        bytes: u128,
        /// Bytes of all messages.
        of_bytes: u128,
    },
    /// There are no times.
    #[error("`{}` does not say how long a tick of its clock is, so nobody knows how long a task takes", path.display())]
    #[diagnostic(help(
        "record the trace again with a tool that writes the properties of its clock, such as Score-P"
    ))]
    NoClock {
        /// The archive.
        path: PathBuf,
    },
    /// Messages contradict each other.
    #[error("the messages in `{}` contradict each other: what rank {rank} does waits for itself", path.display())]
    #[diagnostic(help(
        "messages of some ranks are missing in the middle, so that others stand in their place: record the trace again"
    ))]
    Contradiction {
        /// The archive.
        path: PathBuf,
        /// One of the ranks.
        rank: u32,
    },
    /// The program would not end if messages waited to be asked for.
    #[error(
        "the program in `{}` hangs if messages of at least {bytes} bytes wait until they are asked for: what rank {rank} does waits for itself", path.display()
    )]
    #[diagnostic(help(
        "the program ran, so its MPI sent longer messages at once: raise `rendezvous_bytes`, or leave it out"
    ))]
    Deadlock {
        /// The archive.
        path: PathBuf,
        /// One of the ranks.
        rank: u32,
        /// From which length messages wait.
        bytes: u64,
    },
}

/// A graph of tasks that no simulator can replay.
#[derive(Debug, thiserror::Error, Diagnostic)]
pub enum ReplayError {
    /// The program has no steps.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Steps(#[from] hopmap_replay::StepsError),
    /// A speed that no machine has.
    #[error("`flops_per_s` is {flops_per_s}")]
    #[diagnostic(help("give the speed of a core of the simulated machine, such as 1e9"))]
    Speed {
        /// The parameter.
        flops_per_s: f64,
    },
    /// The files cannot be written.
    #[error("cannot write below `{}`", path.display())]
    #[diagnostic(help("TMPDIR names another folder"))]
    Folder {
        /// The folder.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
}
