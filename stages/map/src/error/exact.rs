//! Why there is no exact search.

use hopmap_islands::SearchError;
use miette::Diagnostic;

/// Why there is no exact search.
#[derive(Debug, thiserror::Error, Diagnostic)]
pub enum ExactError {
    /// The budget is empty.
    #[error("nodes is 0")]
    #[diagnostic(help("allow at least one node, or leave `nodes` out"))]
    Nodes,
    /// The machine is too large for any bound.
    #[error("{slots} slots are more than the {most} that map/exact bounds")]
    #[diagnostic(help("use map/auto, or a part of the machine"))]
    Slots {
        /// Slots of the machine.
        slots: usize,
        /// Most slots.
        most: usize,
    },
    /// The cost is no sum over pairs that it knows, or placements are constrained.
    #[error(
        "map/exact minimises F or hop-bytes without constraints, of problems in which weights or costs are symmetric"
    )]
    #[diagnostic(help("leave out `objective`, `pinned` and `forbidden`, or use map/auto"))]
    NotPlain,
    /// Another parameter makes no sense.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Search(#[from] SearchError),
}
