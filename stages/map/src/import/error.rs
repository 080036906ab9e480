//! Why a file gave no placement.

use std::path::PathBuf;

use miette::Diagnostic;

use super::MOST_BYTES;

pub(super) const NOT_ONE_TO_ONE: &str = "a slot takes one rank. KaHIP and Scotch balance loads, and with as many parts as vertices \
                                         they often put two ranks on a PE and leave another empty: use VieM, or SharedMap with an \
                                         imbalance of 0";
pub(super) const OTHER_MACHINE: &str = "PE i is slot i of the machine, counted from zero in the order of its hosts: is this the \
                                        machine that the file was made for, with its levels in this order?";
pub(super) const OTHER_PROGRAM: &str = "the file needs a place for every rank of the task graph: is it the graph that the file was \
                                        made for?";

/// A file that gives no placement.
#[derive(Debug, thiserror::Error, Diagnostic)]
pub enum ImportError {
    /// The file cannot be read.
    #[error("cannot read `{}`", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// The file is far too long.
    #[error("`{}` is longer than {MOST_BYTES} bytes", path.display())]
    #[diagnostic(help("a placement has one short line for every rank"))]
    TooLong {
        /// The file.
        path: PathBuf,
    },
    /// What is in the file is no placement.
    #[error("`{}`{}: {}", path.display(), fault.place(), fault.what)]
    #[diagnostic(help("{}", fault.hint))]
    Placement {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        fault: Box<PlacementFault>,
    },
}

/// What is wrong with a placement.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {what}")]
pub struct PlacementFault {
    /// The line, from one; zero where it is the file as a whole.
    pub line: usize,
    /// What is wrong.
    pub what: String,
    /// How to mend it.
    pub hint: &'static str,
}

impl PlacementFault {
    #[cold]
    pub(super) fn new(line: usize, what: impl Into<String>, hint: &'static str) -> Self {
        Self { line, what: what.into(), hint }
    }

    fn place(&self) -> String {
        if self.line > 0 { format!(", line {}", self.line) } else { String::new() }
    }
}
