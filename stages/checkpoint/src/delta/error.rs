//! What goes wrong with deltas of a series.

use std::path::PathBuf;

use hopmap_durable::DurableError;
use miette::Diagnostic;

use crate::cut::CutError;
use crate::series::SeriesError;

/// Why the deltas of a series are not known.
#[derive(Debug, thiserror::Error, Diagnostic)]
pub enum DeltaError {
    /// The checkpoints cannot be found.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Series(#[from] SeriesError),
    /// The system refused something.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Durable(#[from] DurableError),
    /// A file of a checkpoint that cannot be used.
    #[error("{} cannot be compared", path.display())]
    #[diagnostic(help("with `align = \"position\"` images are compared like any other file, whole or not"))]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        source: CutError,
    },
    /// A length of blocks that there is not.
    #[error("`block` is {block}, but blocks have 256, 512, 1024 … or 65536 bytes")]
    Block {
        /// What was asked for.
        block: u32,
    },
    /// A list without entries.
    #[error("`{name}` is an empty list")]
    Nothing {
        /// Name of the parameter.
        name: &'static str,
    },
    /// A threshold that is no part.
    #[error(
        "`epsilon` is {epsilon}, but has to be at least 0 and below 1: it is a part of the size of a delta"
    )]
    Epsilon {
        /// What was asked for.
        epsilon: f64,
    },
    /// Seconds or bytes per second that cannot be.
    #[error("`{name}` is {value}, but has to be {least}")]
    Cost {
        /// Name of the parameter.
        name: &'static str,
        /// What was asked for.
        value: f64,
        /// What it may be, in words.
        least: &'static str,
    },
    /// The same thing is to be measured and is given.
    #[error("`{name}` is given, and `target` is to be measured")]
    #[diagnostic(help(
        "leave out `target` to use the given time of writing, or the given time to measure it"
    ))]
    MeasuredAndGiven {
        /// Name of the parameter.
        name: &'static str,
    },
}
