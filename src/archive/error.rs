//! What can be wrong with an archive.

use std::path::PathBuf;

use hopmap_durable::DurableError;
use miette::Diagnostic;

/// An archive that cannot be read or written.
#[derive(Debug, thiserror::Error, Diagnostic)]
pub enum ArchiveError {
    /// The system is in the way.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Durable(#[from] DurableError),
    /// It is no archive, or its directory is damaged.
    #[error("{} is no archive, or a damaged one: {place}: {reason}", path.display())]
    #[diagnostic(help("get it once more: what is damaged cannot be told from what is forged"))]
    Damaged {
        /// The archive.
        path: PathBuf,
        /// Where in it.
        place: String,
        /// What is wrong.
        reason: String,
    },
    /// It has something in it that no export writes and that could do harm.
    #[error("{} is refused: {place}: {reason}", path.display())]
    #[diagnostic(help(
        "`hopmap export` writes nothing like this; do not unpack it with other programs either"
    ))]
    Refused {
        /// The archive.
        path: PathBuf,
        /// Which entry of it.
        place: String,
        /// What is wrong with it.
        reason: String,
    },
    /// It is an archive of something else.
    #[error("{} was not written by `hopmap export`: {reason}", path.display())]
    #[diagnostic(help("`hopmap export` packs a run"))]
    Foreign {
        /// The archive.
        path: PathBuf,
        /// Why not.
        reason: String,
    },
    /// It was written without the input files.
    #[error("{} has no input files, so nothing in it can be made again", path.display())]
    #[diagnostic(help(
        "unpack it, put the files where `pipeline/` needs them, and run `hopmap verify` on the pipeline with --lock"
    ))]
    NoInputs {
        /// The archive.
        path: PathBuf,
    },
    /// An artifact in the store is damaged.
    #[error("the artifact of `{cell}` is damaged: {} has other bytes than when it was made", path.display())]
    #[diagnostic(help(
        "remove the folder of the artifact and `hopmap run` makes it again; `hopmap verify` finds all that are damaged"
    ))]
    DamagedArtifact {
        /// The cell that gave it.
        cell: String,
        /// The file.
        path: PathBuf,
    },
    /// A file changed while it was packed.
    #[error("{name} changed since the run, or while it was packed")]
    #[diagnostic(help("run the pipeline again, then export it"))]
    Changed {
        /// The file.
        name: String,
    },
}
