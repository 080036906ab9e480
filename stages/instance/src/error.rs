//! What can be wrong with the parameters of an instance, and how large one may be.

use miette::Diagnostic;

/// Most facilities of an instance: both matrices have so many rows and columns.
pub(crate) const MAX_SIZE: u32 = 1 << 12;

/// Most ranks of a stencil.
pub(crate) const MAX_STENCIL_RANKS: u32 = 1 << 20;

/// Most ranks of a generated graph.
pub(crate) const MAX_RANKS: u32 = 1 << 24;

/// Most pairs of ranks that send to each other.
pub(crate) const MAX_PAIRS: u64 = 1 << 26;

/// An instance that cannot be made of its parameters.
#[derive(Debug, thiserror::Error, Diagnostic)]
#[error("{problem}")]
pub struct InstanceError {
    problem: String,
    #[help]
    help: String,
}

impl InstanceError {
    /// What is wrong, and what to give in its place.
    pub(crate) fn new(problem: impl Into<String>, help: impl Into<String>) -> Self {
        Self { problem: problem.into(), help: help.into() }
    }

    /// The graph would be too large.
    pub(crate) fn too_many_pairs() -> Self {
        let help = "pairs are n · degree / 2: make one of them smaller";
        Self::new(format!("there would be more than {MAX_PAIRS} pairs of neighbours"), help)
    }

    /// The range of bytes is empty or too large.
    pub(crate) fn sizes(least: u32, most: u32) -> Self {
        let help = "give the least and the largest number of bytes of a message, up to 2^30";
        Self::new(format!("bytes is [{least}, {most}]"), help)
    }
}
