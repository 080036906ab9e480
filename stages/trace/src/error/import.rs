//! A file of another tool that cannot be read.

use std::path::PathBuf;

use hopmap_text::FileError;
use miette::Diagnostic;

use crate::Format;

/// A file of another tool that cannot be read.
#[derive(Debug, thiserror::Error, Diagnostic)]
pub enum ImportError {
    /// Something is wrong with a file.
    #[error(transparent)]
    #[diagnostic(transparent)]
    File(#[from] FileError),
    /// Nothing in the file is known.
    #[error("`{}` looks like nothing that is known", path.display())]
    #[diagnostic(help("known are {}; `format` says which it is", known_formats()))]
    Unknown {
        /// The file.
        path: PathBuf,
    },
    /// The format is known, and gives no task graph here.
    #[error("`{}` is {what}: {why}", path.display())]
    #[diagnostic(help("{instead}"))]
    Refused {
        /// The file.
        path: PathBuf,
        /// What it is.
        what: &'static str,
        /// Why it gives no task graph.
        why: &'static str,
        /// What to do in its place.
        instead: &'static str,
    },
    /// The parameter `ranks` is out of range.
    #[error("`ranks` asks for {ranks} ranks")]
    #[diagnostic(help("a graph has from 1 to {most} ranks"))]
    Ranks {
        /// The parameter.
        ranks: u32,
        /// The most there can be.
        most: u32,
    },
    /// The file has more ranks than the parameter `ranks` allows.
    #[error("`{}` has {found} ranks, and `ranks` asks for {ranks}", path.display())]
    MoreRanks {
        /// The file.
        path: PathBuf,
        /// Ranks it has.
        found: usize,
        /// The parameter.
        ranks: u32,
    },
}

fn known_formats() -> String {
    let formats = Format::ALL.into_iter().filter(|format| *format != Format::Auto);
    formats.map(Format::name).collect::<Vec<_>>().join(", ")
}
