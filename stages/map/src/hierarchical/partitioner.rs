//! The partitioners to choose from.

use hopmap_model::Library;
use hopmap_partition::{Effort, Graph, partition};

use crate::Partitioner;
use crate::error::HierarchicalError;

/// METIS, as a partitioner to compare with.
pub(crate) const METIS: &Library =
    &Library { name: "METIS", install: None, is_built: cfg!(feature = "metis") };

impl Partitioner {
    /// Whether this build has it.
    pub(super) fn check(self) -> Result<(), HierarchicalError> {
        match self {
            Self::Metis => Ok(METIS.require("`partitioner = \"metis\"` cuts graphs with")?),
            Self::Own | Self::Scotch => Ok(()),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metis_is_refused_in_a_build_without_it() {
        assert!(Partitioner::Own.check().is_ok());
        let said = Partitioner::Metis.check().map_err(|error| error.to_string());
        let refused = "`partitioner = \"metis\"` cuts graphs with METIS, which this build does not have";
        assert_eq!(said, if cfg!(feature = "metis") { Ok(()) } else { Err(refused.into()) });
    }
}
