//! A trace that cannot be generated.

use std::path::PathBuf;

use miette::Diagnostic;

/// A trace that cannot be generated.
#[derive(Debug, thiserror::Error, Diagnostic)]
pub enum GenerateError {
    /// The parameter `ranks` is out of range.
    #[error("`ranks` asks for {ranks} ranks")]
    #[diagnostic(help("there are from 2 to {} ranks", crate::generate::MOST_RANKS))]
    Ranks {
        /// The parameter.
        ranks: u32,
    },
    /// The parameter `events` is less than a round.
    #[error("`events` asks for {events} events, but one round has {needed}")]
    #[diagnostic(help("ask for at least {needed} events, or for fewer ranks"))]
    TooFew {
        /// The parameter.
        events: u64,
        /// Events of one round.
        needed: u64,
    },
    /// The archive cannot be written.
    #[error("cannot write the trace below `{}`", path.display())]
    #[diagnostic(help("an event takes about 14 bytes; TMPDIR names another folder"))]
    Folder {
        /// The folder.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// The user or a deadline stopped the writing. Half a trace is no trace.
    #[error("stopped after {done} of {ranks} ranks")]
    Stopped {
        /// Ranks written.
        done: u32,
        /// Ranks there are.
        ranks: u32,
    },
}
