//! A series that cannot be generated.

use std::path::PathBuf;

use miette::Diagnostic;

use super::{BYTES, LARGEST, MOST, MOST_INSERTIONS};

/// A series that cannot be generated.
#[derive(Debug, thiserror::Error, Diagnostic)]
pub enum GenerateError {
    /// The parameter `checkpoints` or `ranks` is out of range.
    #[error("`{key}` asks for {value}")]
    #[diagnostic(help("there are from 1 to {MOST}"))]
    Number {
        /// Which.
        key: &'static str,
        /// The parameter.
        value: u32,
    },
    /// The parameter `bytes` is out of range.
    #[error("`bytes` asks for {bytes} bytes of memory")]
    #[diagnostic(help("a rank has from {} to {} bytes", BYTES.start(), BYTES.end()))]
    Bytes {
        /// The parameter.
        bytes: u64,
    },
    /// A share that is none.
    #[error("`{key}` is {share}")]
    #[diagnostic(help("it is a number from 0 to 1"))]
    Share {
        /// Which.
        key: &'static str,
        /// What it is.
        share: f64,
    },
    /// More memory is given away than there is.
    #[error("libraries and fields take {used} of the memory")]
    #[diagnostic(help(
        "`shared` and the `share` of each `drift` are 1 together at most; the heap has the rest"
    ))]
    TooMuch {
        /// What they take of it.
        used: f64,
    },
    /// Insertions that would take forever, or that insert nothing.
    #[error("`insertions` asks for {count} of {bytes} bytes")]
    #[diagnostic(help("up to {} of 1 to {} bytes", MOST_INSERTIONS.0, MOST_INSERTIONS.1))]
    Insertions {
        /// How many.
        count: u32,
        /// Bytes of each.
        bytes: u32,
    },
    /// More memory than there may be at the last checkpoint.
    #[error("the memory of a rank grows to {bytes:.3e} bytes")]
    #[diagnostic(help(
        "it may grow to {LARGEST} bytes; ask for fewer checkpoints, or for less in `growth` and `insertions`"
    ))]
    Grows {
        /// Bytes at the last checkpoint.
        bytes: f64,
    },
    /// A file cannot be written.
    #[error("cannot write the series: {}", path.display())]
    #[diagnostic(help("a file takes `bytes` and what was added to them since; TMPDIR names another folder"))]
    Write {
        /// The file, or the folder.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// The user or a deadline stopped the writing. Half a series is none.
    #[error("stopped after {done} of {files} files")]
    Stopped {
        /// Files written.
        done: u32,
        /// Files there are.
        files: u32,
    },
}
