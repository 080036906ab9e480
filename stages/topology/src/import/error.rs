//! What can be wrong with the description of a machine.

use std::path::PathBuf;

use hopmap_model::SystemGraphError;
use hopmap_process::RunError;
use hopmap_text::FileError;
use miette::Diagnostic;

/// A machine that cannot be imported.
#[derive(Debug, thiserror::Error, Diagnostic)]
pub enum ImportError {
    /// Something is wrong with a file or folder.
    #[error(transparent)]
    #[diagnostic(transparent)]
    File(#[from] FileError),
    /// Nothing here knows what is in the file.
    #[error("{}: this is no description of a machine that is known here", path.display())]
    #[diagnostic(help("say what it is with `format`; `hopmap stages topology/import` lists the formats"))]
    Unknown {
        /// The file or folder.
        path: PathBuf,
    },
    /// The file holds something else than what the stage reads.
    #[error("{}: this is {found}, which this stage does not read", path.display())]
    #[diagnostic(help("topology/import reads all formats"))]
    OtherFormat {
        /// The file or folder.
        path: PathBuf,
        /// What it looks like.
        found: &'static str,
    },
    /// The machine contradicts itself.
    #[error("{}: the machine contradicts itself", path.display())]
    Machine {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        #[source]
        source: SystemGraphError,
    },
    /// A parameter is wrong or missing.
    #[error("`{name}` {problem}")]
    #[diagnostic(help("{help}"))]
    Parameter {
        /// The parameter.
        name: &'static str,
        /// What is wrong with it.
        problem: String,
        /// What it may be.
        help: String,
    },
    /// hwloc is not installed.
    #[error("`lstopo` is not there")]
    #[diagnostic(help(
        "hwloc says what this machine is like inside; on Debian and Ubuntu: `apt install hwloc-nox`"
    ))]
    NoHwloc,
    /// A program that describes this machine did not.
    #[error(transparent)]
    #[diagnostic(help("try it by hand; `path` takes a file that it has written"))]
    Command(RunError),
}
