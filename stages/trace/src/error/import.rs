//! A file of another tool that cannot be read.

use std::path::PathBuf;

use miette::Diagnostic;

use crate::Format;

/// A file of another tool that cannot be read.
#[derive(Debug, thiserror::Error, Diagnostic)]
pub enum ImportError {
    /// A file cannot be opened or read.
    #[error("cannot read `{}`", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
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
    /// A line makes no sense.
    #[error("`{}`, line {line}: {what}", path.display())]
    #[diagnostic(help("{hint}"))]
    Line {
        /// The file.
        path: PathBuf,
        /// The line, counted from one.
        line: u64,
        /// What is wrong.
        what: String,
        /// What the format asks for.
        hint: &'static str,
    },
    /// Bytes make no sense.
    #[error("`{}` is damaged at byte {offset}: {what}", path.display())]
    #[diagnostic(help(
        "the file was not written to its end, or not copied as a whole: copy or record it again"
    ))]
    Byte {
        /// The file.
        path: PathBuf,
        /// Where.
        offset: u64,
        /// What is wrong there.
        what: String,
    },
    /// The file as a whole makes no sense.
    #[error("`{}`: {what}", path.display())]
    #[diagnostic(help("{hint}"))]
    File {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        what: String,
        /// What the format asks for.
        hint: &'static str,
    },
    /// Sums do not fit.
    #[error("the messages or bytes of all pairs in `{}` exceed 64 bits", path.display())]
    Overflow {
        /// The file.
        path: PathBuf,
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
    /// The user or a deadline stopped the reading. Half a trace is no answer.
    #[error("stopped after {done} of {total} bytes")]
    Stopped {
        /// Bytes read.
        done: u64,
        /// Bytes there are.
        total: u64,
    },
}

fn known_formats() -> String {
    let formats = Format::ALL.into_iter().filter(|format| *format != Format::Auto);
    formats.map(Format::name).collect::<Vec<_>>().join(", ")
}
