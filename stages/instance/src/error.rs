//! Errors in the parameters of an instance, and size limits.

use miette::Diagnostic;

/// Maximum number of facilities: rows and columns of both matrices.
pub(crate) const MAX_SIZE: u32 = 1 << 12;

/// Maximum number of ranks of a stencil.
pub(crate) const MAX_STENCIL_RANKS: u32 = 1 << 20;

/// Maximum number of ranks of a generated graph.
pub(crate) const MAX_RANKS: u32 = 1 << 24;

/// Maximum number of pairs of neighbours.
pub(crate) const MAX_PAIRS: u64 = 1 << 26;

/// The parameters of an instance are invalid.
#[derive(Debug, thiserror::Error, Diagnostic)]
#[error("{problem}")]
#[diagnostic(code(instance::invalid))]
pub struct InstanceError {
    problem: String,
    #[help]
    help: String,
}

impl InstanceError {
    /// A problem and a hint.
    pub(crate) fn new(problem: impl Into<String>, help: impl Into<String>) -> Self {
        Self { problem: problem.into(), help: help.into() }
    }

    /// The graph would be too large.
    pub(crate) fn too_many_pairs() -> Self {
        let help = "the number of pairs is n · degree / 2: reduce one of them";
        Self::new(format!("the graph has more than {MAX_PAIRS} pairs of neighbours"), help)
    }

    /// The range of bytes is empty or too large.
    pub(crate) fn sizes(least: u32, most: u32) -> Self {
        let help = "expected the minimum and maximum bytes of a message, up to 2^30";
        Self::new(format!("bytes is [{least}, {most}]"), help)
    }
}
