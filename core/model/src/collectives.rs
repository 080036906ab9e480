//! The collective operations of a program, summed by communicator.

use std::fmt;

use miette::Diagnostic;

crate::named_values! {
    /// A collective operation of MPI.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
    pub enum CollectiveOperation {
        /// `MPI_Barrier`
        Barrier = "barrier",
        /// `MPI_Bcast`
        Broadcast = "bcast",
        /// `MPI_Gather`
        Gather = "gather",
        /// `MPI_Gatherv`
        GatherV = "gatherv",
        /// `MPI_Scatter`
        Scatter = "scatter",
        /// `MPI_Scatterv`
        ScatterV = "scatterv",
        /// `MPI_Allgather`
        AllGather = "allgather",
        /// `MPI_Allgatherv`
        AllGatherV = "allgatherv",
        /// `MPI_Alltoall`
        AllToAll = "alltoall",
        /// `MPI_Alltoallv`
        AllToAllV = "alltoallv",
        /// `MPI_Alltoallw`
        AllToAllW = "alltoallw",
        /// `MPI_Allreduce`
        AllReduce = "allreduce",
        /// `MPI_Reduce`
        Reduce = "reduce",
        /// `MPI_Reduce_scatter`
        ReduceScatter = "reduce_scatter",
        /// `MPI_Reduce_scatter_block`
        ReduceScatterBlock = "reduce_scatter_block",
        /// `MPI_Scan`
        Scan = "scan",
        /// `MPI_Exscan`
        ExclusiveScan = "exscan",
    }
}

impl CollectiveOperation {
    /// Whether one process is the source or the destination of all data.
    #[must_use]
    pub fn has_root(self) -> bool {
        use CollectiveOperation::{Broadcast, Gather, GatherV, Reduce, Scatter, ScatterV};
        matches!(self, Broadcast | Gather | GatherV | Scatter | ScatterV | Reduce)
    }
}

impl fmt::Display for CollectiveOperation {
    fn fmt(&self, text: &mut fmt::Formatter<'_>) -> fmt::Result {
        text.write_str(self.name())
    }
}

/// The collective operations of a program; empty if they were not recorded.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CollectiveTable {
    /// The ranks of each communicator in the order of their ranks in it. Lists are sorted and unique.
    pub communicators: Vec<Vec<u32>>,
    /// The operations, sorted by communicator, operation, root and bytes, without duplicates.
    pub calls: Vec<CollectiveCalls>,
}

/// Identical collective operations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CollectiveCalls {
    /// Index of the communicator.
    pub communicator: u32,
    /// Kind of the operation.
    pub operation: CollectiveOperation,
    /// Rank of the root in the communicator, if the operation has one.
    pub root: Option<u32>,
    /// Bytes of a block: the vector of a broadcast, reduction or scan; the contribution of each process to a
    /// gather or allgather; the share of each process of a scatter or reduce-scatter; the block between each
    /// pair of an alltoall.
    pub bytes: u64,
    /// Number of calls; a call by all processes of the communicator counts once.
    pub calls: u64,
    /// Number of calls with blocks of different lengths; `bytes` is then the mean, rounded up.
    pub uneven: u64,
}

impl CollectiveCalls {
    /// The key that distinguishes operations.
    #[must_use]
    pub fn key(&self) -> (u32, CollectiveOperation, Option<u32>, u64) {
        (self.communicator, self.operation, self.root, self.bytes)
    }
}

impl CollectiveTable {
    /// Whether there are no operations and no communicators.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.communicators.is_empty() && self.calls.is_empty()
    }

    /// Total number of calls.
    #[must_use]
    pub fn operations(&self) -> u64 {
        self.calls.iter().map(|calls| calls.calls).fold(0, u64::saturating_add)
    }

    /// Checks that communicators are sorted and unique and have members among `processes`, and that
    /// operations are sorted and refer to existing communicators and roots.
    pub fn check(&self, processes: usize) -> Result<(), CollectiveTableError> {
        for (index, members) in self.communicators.iter().enumerate() {
            if members.is_empty() {
                return Err(CollectiveTableError::NoMembers(index));
            }
            if let Some(&rank) = members.iter().find(|&&rank| rank as usize >= processes) {
                return Err(CollectiveTableError::NoSuchRank { index, rank, processes });
            }
        }
        if let Some(index) = self.communicators.windows(2).position(|pair| pair[0] >= pair[1]) {
            return Err(CollectiveTableError::Communicators(index + 1));
        }
        self.calls.iter().enumerate().try_for_each(|(index, calls)| self.check_calls(index, calls))?;
        match self.calls.windows(2).position(|pair| pair[0].key() >= pair[1].key()) {
            Some(index) => Err(CollectiveTableError::Unsorted(index + 1)),
            None => Ok(()),
        }
    }

    fn check_calls(&self, index: usize, calls: &CollectiveCalls) -> Result<(), CollectiveTableError> {
        let CollectiveCalls { communicator, operation, root, .. } = *calls;
        let Some(members) = self.communicators.get(communicator as usize) else {
            let communicators = self.communicators.len();
            return Err(CollectiveTableError::NoSuchCommunicator { index, communicator, communicators });
        };
        if root.is_some() != operation.has_root() {
            return Err(CollectiveTableError::Root { index, operation });
        }
        if let Some(root) = root.filter(|&root| root as usize >= members.len()) {
            return Err(CollectiveTableError::NoSuchRoot { index, root, members: members.len() });
        }
        match calls.calls == 0 || calls.uneven > calls.calls {
            true => Err(CollectiveTableError::Calls(index)),
            false => Ok(()),
        }
    }
}

/// An inconsistent table of collective operations.
#[derive(Debug, thiserror::Error, Diagnostic, PartialEq, Eq)]
pub enum CollectiveTableError {
    /// A communicator is empty.
    #[error("communicator {0} has no members")]
    #[diagnostic(code(model::no_members))]
    NoMembers(usize),
    /// A communicator contains a rank that does not exist.
    #[error("communicator {index} contains rank {rank}, but the graph has {processes} processes")]
    #[diagnostic(code(model::no_such_rank))]
    NoSuchRank {
        /// Index of the communicator.
        index: usize,
        /// The rank.
        rank: u32,
        /// Number of processes.
        processes: usize,
    },
    /// Communicators are not sorted or not unique.
    #[error("communicator {0} is out of order: communicators must be sorted and unique")]
    #[diagnostic(code(model::communicators))]
    Communicators(usize),
    /// An operation refers to a communicator that does not exist.
    #[error(
        "collective operation {index} refers to communicator {communicator}, but there are {communicators}"
    )]
    #[diagnostic(code(model::no_such_communicator))]
    NoSuchCommunicator {
        /// Index of the operation.
        index: usize,
        /// The communicator.
        communicator: u32,
        /// Number of communicators.
        communicators: usize,
    },
    /// A rooted operation has no root, or another operation has one.
    #[error("collective operation {index}: {operation} {}", if operation.has_root() { "needs a root" } else { "must not have a root" })]
    #[diagnostic(code(model::root))]
    Root {
        /// Index of the operation.
        index: usize,
        /// The operation.
        operation: CollectiveOperation,
    },
    /// The root is not a member of the communicator.
    #[error(
        "collective operation {index} has rank {root} as root, but its communicator has {members} members"
    )]
    #[diagnostic(code(model::no_such_root))]
    NoSuchRoot {
        /// Index of the operation.
        index: usize,
        /// The root.
        root: u32,
        /// Number of members.
        members: usize,
    },
    /// An operation has no calls, or more uneven calls than calls.
    #[error("collective operation {0} has no calls, or more uneven calls than calls")]
    #[diagnostic(code(model::calls))]
    Calls(usize),
    /// Operations are not sorted or not unique.
    #[error("collective operation {0} is out of order: operations must be sorted and unique")]
    #[diagnostic(code(model::unsorted))]
    Unsorted(usize),
}

#[cfg(test)]
mod tests {
    use super::*;
    use CollectiveOperation::{AllReduce, Broadcast};

    fn calls(communicator: u32, operation: CollectiveOperation, root: Option<u32>) -> CollectiveCalls {
        CollectiveCalls { communicator, operation, root, bytes: 8, calls: 3, uneven: 0 }
    }

    fn check(communicators: &[&[u32]], calls: &[CollectiveCalls]) -> Result<(), CollectiveTableError> {
        let communicators = communicators.iter().map(|members| members.to_vec()).collect();
        CollectiveTable { communicators, calls: calls.to_vec() }.check(4)
    }

    #[test]
    fn names_map_back_to_their_operations() {
        for operation in CollectiveOperation::ALL {
            assert_eq!(CollectiveOperation::of_name(operation.name()), Some(operation));
        }
        assert_eq!(CollectiveOperation::of_name("MPI_Bcast"), None);
    }

    #[test]
    fn operations_of_existing_communicators_are_accepted() {
        let all = [calls(0, Broadcast, Some(1)), calls(0, AllReduce, None), calls(1, AllReduce, None)];
        assert_eq!(check(&[&[0, 1], &[3, 2, 1]], &all), Ok(()));
        assert_eq!(check(&[], &[]), Ok(()));
    }

    #[test]
    fn inconsistent_tables_are_rejected() {
        use CollectiveTableError as Error;
        let one = calls(0, AllReduce, None);
        assert_eq!(check(&[&[]], &[]), Err(Error::NoMembers(0)));
        assert_eq!(check(&[&[0, 4]], &[]), Err(Error::NoSuchRank { index: 0, rank: 4, processes: 4 }));
        assert_eq!(check(&[&[0], &[0]], &[]), Err(Error::Communicators(1)));
        let unknown = Error::NoSuchCommunicator { index: 0, communicator: 0, communicators: 0 };
        assert_eq!(check(&[], &[one]), Err(unknown));
        let rootless = Error::Root { index: 0, operation: Broadcast };
        assert_eq!(rootless.to_string(), "collective operation 0: bcast needs a root");
        assert_eq!(check(&[&[0]], &[calls(0, Broadcast, None)]), Err(rootless));
        let rooted = Error::Root { index: 0, operation: AllReduce };
        assert_eq!(check(&[&[0]], &[calls(0, AllReduce, Some(0))]), Err(rooted));
        let stranger = Error::NoSuchRoot { index: 0, root: 1, members: 1 };
        assert_eq!(check(&[&[0]], &[calls(0, Broadcast, Some(1))]), Err(stranger));
        assert_eq!(check(&[&[0]], &[one, one]), Err(Error::Unsorted(1)));
        assert_eq!(check(&[&[0]], &[CollectiveCalls { calls: 0, ..one }]), Err(Error::Calls(0)));
        assert_eq!(check(&[&[0]], &[CollectiveCalls { uneven: 4, ..one }]), Err(Error::Calls(0)));
    }
}
