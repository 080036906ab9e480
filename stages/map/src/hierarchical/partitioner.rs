//! The partitioners to choose from.

use hopmap_partition::{Effort, Graph, partition};

use crate::Partitioner;
use crate::error::HierarchicalError;

impl Partitioner {
    /// Whether this build has it.
    pub(super) fn check(self) -> Result<(), HierarchicalError> {
        match self {
            Self::Metis if cfg!(not(feature = "metis")) => {
                Err(HierarchicalError::NotBuilt { partitioner: "METIS", feature: "metis" })
            }
            Self::Own | Self::Metis | Self::Scotch => Ok(()),
        }
    }

    /// Cuts a graph into parts of exact sizes; a build without the partitioner takes its own.
    pub(super) fn cut(
        self,
        graph: &Graph,
        sizes: &[u32],
        effort: Effort,
        seed: u64,
    ) -> Result<Vec<u32>, HierarchicalError> {
        Ok(match self {
            #[cfg(feature = "metis")]
            Self::Metis => hopmap_partition::metis(graph, sizes, seed)?,
            Self::Scotch => hopmap_partition::scotch(graph, sizes)?,
            _ => partition(graph, sizes, effort, seed)?,
        })
    }
}
