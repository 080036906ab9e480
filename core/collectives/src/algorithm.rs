//! The algorithms, and the operations that each of them implements.

use std::fmt;

use hopmap_model::CollectiveOperation as Operation;
use miette::Diagnostic;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

hopmap_model::named_values! {
    /// Algorithm that implements a collective operation with messages.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "kebab-case")]
    pub enum Algorithm {
        /// Along a binomial tree: the parent of a process lacks its lowest bit.
        Binomial = "binomial",
        /// Directly between the root and all others, or between all pairs at once.
        Linear = "linear",
        /// From each process to the next.
        Chain = "chain",
        /// A scatter along a binomial tree, then an allgather in a ring.
        ScatterRing = "scatter-ring",
        /// A scatter along a binomial tree, then an allgather by recursive doubling.
        ScatterDoubling = "scatter-doubling",
        /// A reduce-scatter by halving, then a gather along a binomial tree (Rabenseifner).
        ReduceScatterGather = "reduce-scatter-gather",
        /// A reduce-scatter by halving, then an allgather by doubling (Rabenseifner).
        ReduceScatterAllgather = "reduce-scatter-allgather",
        /// Exchanges over the distances 1, 2, 4, …; an allgather needs 2ᵏ processes.
        RecursiveDoubling = "recursive-doubling",
        /// Exchanges of halves over the distances …, 4, 2, 1.
        RecursiveHalving = "recursive-halving",
        /// Around a ring.
        Ring = "ring",
        /// Over the distances 1, 2, 4, … modulo the number of processes, for any number of processes.
        Bruck = "bruck",
        /// Alternately with the left and the right neighbour; for even numbers of processes.
        NeighbourExchange = "neighbour-exchange",
        /// Between all pairs, in rounds in which every process sends one message and receives one.
        Pairwise = "pairwise",
        /// Every process notifies the processes 1, 2, 4, … ranks ahead.
        Dissemination = "dissemination",
        /// Up a binomial tree and down again.
        Tree = "tree",
        /// Along a binomial tree over the distances 1, 2, 4, …: the parent of a process lacks its highest bit.
        BinomialDoubling = "binomial-doubling",
        /// Along a complete binary tree.
        Binary = "binary",
        /// Halves along the two sides of a complete binary tree, which then exchange them.
        SplitBinary = "split-binary",
        /// Along a binary tree that keeps the order of the processes.
        InOrderBinary = "in-order-binary",
        /// Along a k-nomial tree with k = 4.
        Knomial = "knomial",
        /// Directly to the root, which asks one process after the other.
        LinearSync = "linear-sync",
        /// As `reduce-scatter-gather` and `reduce-scatter-allgather`, but the processes beyond 2ᵏ exchange
        /// halves of their vectors with a neighbour instead of leaving it the whole.
        Rabenseifner = "rabenseifner",
        /// Exchanges of halves over the distances 1, 2, 4, …, and a permutation of the results.
        Butterfly = "butterfly",
        /// Up and down two complementary binary trees, half of the vector each, in chunks: every process is a leaf of
        /// one of them.
        DoubleBinaryTree = "double-binary-tree",
        /// Two operations with a root in sequence, such as a reduce and a broadcast for an allreduce; Open MPI's
        /// rules select the algorithm of each.
        NonOverlapping = "non-overlapping",
    }
}

use Algorithm::{
    Binary, Binomial, BinomialDoubling, Bruck, Butterfly, Chain, Dissemination, DoubleBinaryTree,
    InOrderBinary, Knomial, Linear, LinearSync, NeighbourExchange, NonOverlapping, Pairwise, Rabenseifner,
    RecursiveDoubling, RecursiveHalving, ReduceScatterAllgather, ReduceScatterGather, Ring, ScatterDoubling,
    ScatterRing, SplitBinary, Tree,
};

impl Algorithm {
    /// The algorithms of an operation.
    #[must_use]
    pub fn of(operation: Operation) -> &'static [Self] {
        match operation {
            Operation::Barrier => &[Dissemination, Tree, RecursiveDoubling, Linear],
            Operation::Broadcast => &[
                Binomial,
                ScatterRing,
                ScatterDoubling,
                Linear,
                Chain,
                BinomialDoubling,
                Binary,
                SplitBinary,
                Knomial,
            ],
            Operation::Gather | Operation::GatherV => &[Binomial, Linear, LinearSync],
            Operation::Scatter | Operation::ScatterV => &[Binomial, Linear],
            Operation::AllGather | Operation::AllGatherV => {
                &[RecursiveDoubling, Bruck, Ring, NeighbourExchange, NonOverlapping]
            }
            Operation::AllToAll => &[Bruck, Pairwise, Linear],
            Operation::AllToAllV | Operation::AllToAllW => &[Pairwise, Linear],
            Operation::AllReduce => &[
                RecursiveDoubling,
                ReduceScatterAllgather,
                Ring,
                Rabenseifner,
                NonOverlapping,
                Linear,
                DoubleBinaryTree,
            ],
            Operation::Reduce => {
                &[Binomial, ReduceScatterGather, Linear, Rabenseifner, Chain, Binary, InOrderBinary]
            }
            Operation::ReduceScatter | Operation::ReduceScatterBlock => {
                &[RecursiveHalving, Pairwise, RecursiveDoubling, Ring, Butterfly, NonOverlapping]
            }
            Operation::Scan | Operation::ExclusiveScan => &[RecursiveDoubling, Chain],
        }
    }

    /// Whether this many processes can do an operation with the algorithm.
    #[must_use]
    pub fn fits(self, operation: Operation, processes: u32) -> bool {
        let gathers = matches!(operation, Operation::AllGather | Operation::AllGatherV);
        Self::of(operation).contains(&self)
            && match self {
                RecursiveDoubling if gathers => processes.is_power_of_two(),
                NeighbourExchange => processes.is_multiple_of(2),
                _ => true,
            }
    }
}

impl fmt::Display for Algorithm {
    fn fmt(&self, text: &mut fmt::Formatter<'_>) -> fmt::Result {
        text.write_str(self.name())
    }
}

/// Library whose rules select algorithms.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Rules {
    /// MPICH 4.0 and later.
    #[default]
    Mpich,
    /// Open MPI 4.1.
    OpenMpi,
    /// NCCL 2: the collective operations of training on GPUs.
    Nccl,
}

/// Algorithm per operation; operations without one follow the rules of a library.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Algorithms {
    /// The library whose rules select all other algorithms: `mpich` (default), `open-mpi` (4.1), `nccl`.
    pub rules: Rules,
    /// Barriers: `dissemination`, `tree`, `recursive-doubling`, `linear`.
    pub barrier: Option<Algorithm>,
    /// Broadcasts: `binomial`, `scatter-ring`, `scatter-doubling`, `linear`, `chain`, `binomial-doubling`,
    /// `binary`, `split-binary`, `knomial`.
    pub bcast: Option<Algorithm>,
    /// Gathers, also of different lengths: `binomial`, `linear`, `linear-sync`.
    pub gather: Option<Algorithm>,
    /// Scatters, also of different lengths: `binomial`, `linear`.
    pub scatter: Option<Algorithm>,
    /// Allgathers, also of different lengths: `recursive-doubling`, `bruck`, `ring`, `neighbour-exchange`,
    /// `non-overlapping`.
    pub allgather: Option<Algorithm>,
    /// Alltoalls of equal lengths: `bruck`, `pairwise`, `linear`. Other lengths give the same messages with
    /// every algorithm.
    pub alltoall: Option<Algorithm>,
    /// Allreduces: `recursive-doubling`, `reduce-scatter-allgather`, `ring`, `rabenseifner`,
    /// `non-overlapping`, `linear`, `double-binary-tree`.
    pub allreduce: Option<Algorithm>,
    /// Reduces: `binomial`, `reduce-scatter-gather`, `linear`, `rabenseifner`, `chain`, `binary`,
    /// `in-order-binary`.
    pub reduce: Option<Algorithm>,
    /// Reduce-scatters, also of different lengths: `recursive-halving`, `pairwise`, `recursive-doubling`,
    /// `ring`, `butterfly`, `non-overlapping`.
    pub reduce_scatter: Option<Algorithm>,
    /// Scans: `recursive-doubling`, `chain`.
    pub scan: Option<Algorithm>,
}

impl Algorithms {
    /// The chosen algorithm of an operation.
    #[must_use]
    pub fn of(&self, operation: Operation) -> Option<Algorithm> {
        match operation {
            Operation::Barrier => self.barrier,
            Operation::Broadcast => self.bcast,
            Operation::Gather | Operation::GatherV => self.gather,
            Operation::Scatter | Operation::ScatterV => self.scatter,
            Operation::AllGather | Operation::AllGatherV => self.allgather,
            Operation::AllToAll => self.alltoall,
            Operation::AllToAllV | Operation::AllToAllW => None,
            Operation::AllReduce => self.allreduce,
            Operation::Reduce => self.reduce,
            Operation::ReduceScatter | Operation::ReduceScatterBlock => self.reduce_scatter,
            Operation::Scan | Operation::ExclusiveScan => self.scan,
        }
    }

    /// Checks that every chosen algorithm implements its operation.
    pub fn check(&self) -> Result<(), AlgorithmError> {
        let wrong = |operation: &Operation| {
            self.of(*operation).is_some_and(|algorithm| !Algorithm::of(*operation).contains(&algorithm))
        };
        match Operation::ALL.into_iter().find(wrong).and_then(|wrong| Some((wrong, self.of(wrong)?))) {
            Some((operation, algorithm)) => Err(AlgorithmError { operation, algorithm }),
            None => Ok(()),
        }
    }
}

/// The algorithm does not implement the operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error, Diagnostic)]
#[error("`{algorithm}` does not implement `{operation}`")]
#[diagnostic(code(collectives::algorithm), help("algorithms: {}", names(*operation)))]
pub struct AlgorithmError {
    /// The operation.
    pub operation: Operation,
    /// The algorithm.
    pub algorithm: Algorithm,
}

/// The algorithms of an operation as a list for messages.
fn names(operation: Operation) -> String {
    let names: Vec<String> =
        Algorithm::of(operation).iter().map(|algorithm| format!("`{algorithm}`")).collect();
    names.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_match_the_pipeline_file() {
        for algorithm in Operation::ALL.into_iter().flat_map(Algorithm::of) {
            assert_eq!(serde_json::to_value(algorithm).unwrap(), algorithm.name());
        }
    }

    #[test]
    fn an_algorithm_of_another_operation_is_rejected() {
        let ring = Algorithms { allreduce: Some(Ring), allgather: Some(Ring), ..Algorithms::default() };
        assert_eq!(ring.check(), Ok(()));
        let error = Algorithms { bcast: Some(Ring), ..ring }.check().unwrap_err();
        assert_eq!(error.to_string(), "`ring` does not implement `bcast`");
        let help = "algorithms: `binomial`, `scatter-ring`, `scatter-doubling`, `linear`, `chain`, ";
        assert!(error.help().unwrap().to_string().starts_with(help));
    }

    #[test]
    fn some_need_a_power_of_two_or_an_even_number() {
        assert!(
            !RecursiveDoubling.fits(Operation::AllGather, 6) && RecursiveDoubling.fits(Operation::Scan, 6)
        );
        assert!(NeighbourExchange.fits(Operation::AllGather, 6));
        assert!(!NeighbourExchange.fits(Operation::AllGather, 7));
        assert!(ScatterDoubling.fits(Operation::Broadcast, 6) && !Ring.fits(Operation::Broadcast, 8));
    }
}
