//! What can be wrong with the description of a machine.

use std::path::PathBuf;

use hopmap_model::SystemGraphError;
use hopmap_process::RunError;
use miette::Diagnostic;

/// A machine that cannot be imported.
#[derive(Debug, thiserror::Error, Diagnostic)]
pub enum ImportError {
    /// A file or folder cannot be read.
    #[error("cannot read {}", path.display())]
    #[diagnostic(help("{help}"))]
    Read {
        /// The file or folder.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
        /// What to do about it.
        help: String,
    },
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
    /// Something is wrong at a place of a file.
    #[error("{}{}: {problem}", path.display(), line.map(|line| format!(":{line}")).unwrap_or_default())]
    #[diagnostic(help("{help}"))]
    Malformed {
        /// The file.
        path: PathBuf,
        /// Line, counted from one, where that means something.
        line: Option<usize>,
        /// What is wrong.
        problem: String,
        /// What it should be, or what to do.
        help: String,
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
