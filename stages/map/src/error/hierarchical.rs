//! What `map/hierarchical` cannot do.

use hopmap_islands::SearchError;
use hopmap_model::NotBuilt;
use hopmap_partition::PartitionError;
use miette::Diagnostic;

/// Parameters or machines for which there is no hierarchical mapping.
#[derive(Debug, thiserror::Error, Diagnostic)]
pub enum HierarchicalError {
    /// The costs are no tree.
    #[error("the machine is no tree: its costs are given pair by pair")]
    #[diagnostic(help("use `map/auto`, which takes any costs, or a machine with levels"))]
    NoTree,
    /// Levels are counted from one.
    #[error("level 0 is none: levels are counted from the root, which is 1")]
    #[diagnostic(help("give `levels = \"all\"`, or a list such as `[1]` or `[1, 2]`"))]
    LevelZero,
    /// No level at all.
    #[error("the list of levels is empty")]
    #[diagnostic(help("give `levels = \"all\"`, a list such as `[1, 2]`, or use `map/linear`"))]
    NoLevels,
    /// The machine has fewer levels.
    #[error("there is no level {level}: the machine has {levels} levels on which slots meet")]
    #[diagnostic(help(
        "levels are counted from the root; those on which the costs do not change are left out"
    ))]
    NoSuchLevel {
        /// The level.
        level: u32,
        /// Levels of the machine.
        levels: usize,
    },
    /// The partitioner is not in this build.
    #[error(transparent)]
    #[diagnostic(transparent)]
    NotBuilt(#[from] NotBuilt),
    /// The budget is none.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Budget(#[from] SearchError),
    /// A graph or parts that contradict themselves.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Partition(#[from] PartitionError),
}
