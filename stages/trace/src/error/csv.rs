//! A CSV matrix that cannot be read.

use std::path::PathBuf;

use miette::Diagnostic;

/// A CSV matrix that cannot be read.
#[derive(Debug, thiserror::Error, Diagnostic)]
pub enum CsvError {
    /// The file cannot be opened or read.
    #[error("cannot read `{}`", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// There is no header, or nothing below it.
    #[error("`{}` holds no traffic", path.display())]
    #[diagnostic(help(
        "the first line is `source,destination,messages,bytes`, then one line for every pair of ranks"
    ))]
    Empty {
        /// The file.
        path: PathBuf,
    },
    /// The header names other columns than it should.
    #[error("`{}`: {what}", path.display())]
    #[diagnostic(help(
        "the columns are source, destination, messages and bytes, in any order, separated by commas, and no others"
    ))]
    Header {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        what: String,
    },
    /// A line has more or fewer values than the header has columns.
    #[error("`{}`, line {line}: {found} values where the header has {expected}", path.display())]
    Length {
        /// The file.
        path: PathBuf,
        /// The line, counted from one.
        line: u64,
        /// Columns of the header.
        expected: u64,
        /// Values in the line.
        found: u64,
    },
    /// A value is not what its column holds.
    #[error("`{}`, line {line}, column {column} ({name}): `{value}` {reason}", path.display())]
    #[diagnostic(help("ranks, messages and bytes are whole numbers from zero"))]
    Value {
        /// The file.
        path: PathBuf,
        /// The line, counted from one.
        line: u64,
        /// The column, counted from one.
        column: usize,
        /// Name of the column.
        name: &'static str,
        /// What stands there.
        value: String,
        /// Why it cannot be.
        reason: String,
    },
    /// Sums do not fit.
    #[error("`{}`, line {line}: the messages or bytes of all pairs exceed 64 bits", path.display())]
    Overflow {
        /// The file.
        path: PathBuf,
        /// The line, counted from one.
        line: u64,
    },
    /// The file is not UTF-8.
    #[error("`{}`, line {line}: this is not text in UTF-8", path.display())]
    NotText {
        /// The file.
        path: PathBuf,
        /// The line, counted from one.
        line: u64,
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
}
