//! The collective operations of a recording, and their numbers in the file of a rank.

use hopmap_model::CollectiveOperation;

/// A collective operation; its number is the position in [`CollectiveKind::ALL`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CollectiveKind(u32);

/// Names of the operations in MPI, in lower case and without `MPI_`. The position is the number in the file.
const NAMES: [&str; 22] = [
    "barrier",
    "bcast",
    "gather",
    "gatherv",
    "scatter",
    "scatterv",
    "allgather",
    "allgatherv",
    "alltoall",
    "alltoallv",
    "alltoallw",
    "reduce",
    "allreduce",
    "reduce_scatter",
    "reduce_scatter_block",
    "scan",
    "exscan",
    "neighbor_allgather",
    "neighbor_allgatherv",
    "neighbor_alltoall",
    "neighbor_alltoallv",
    "neighbor_alltoallw",
];

impl CollectiveKind {
    /// All operations, in order of their numbers.
    #[expect(clippy::cast_possible_truncation, reason = "a constant of few")]
    pub const ALL: [Self; NAMES.len()] = {
        let mut all = [Self(0); NAMES.len()];
        let mut number = 0;
        while number < all.len() {
            all[number] = Self(number as u32);
            number += 1;
        }
        all
    };

    /// The operation of a number.
    #[must_use]
    pub fn of_number(number: u32) -> Option<Self> {
        Self::ALL.get(number as usize).copied()
    }

    /// The operation of a name.
    #[must_use]
    pub fn of_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// The number in files.
    #[must_use]
    pub fn number(self) -> u32 {
        self.0
    }

    /// The name in MPI, in lower case and without `MPI_`.
    #[must_use]
    pub fn name(self) -> &'static str {
        NAMES[self.0 as usize]
    }

    /// The operation of a task graph; `None` for neighbourhood collectives, whose messages depend on the
    /// topology of the communicator.
    #[must_use]
    pub fn operation(self) -> Option<CollectiveOperation> {
        CollectiveOperation::of_name(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_of_the_format() {
        let number = |name: &str| CollectiveKind::of_name(name).map(CollectiveKind::number);
        assert_eq!((number("barrier"), number("bcast"), number("alltoallw")), (Some(0), Some(1), Some(10)));
        assert_eq!((number("reduce"), number("allreduce"), number("exscan")), (Some(11), Some(12), Some(16)));
        assert_eq!((number("neighbor_alltoallw"), number("send")), (Some(21), None));
        assert_eq!(CollectiveKind::of_number(22), None);
    }

    #[test]
    fn all_but_neighbourhood_collectives_are_operations_of_a_task_graph() {
        for kind in CollectiveKind::ALL {
            assert_eq!(kind.operation().is_none(), kind.name().starts_with("neighbor_"), "{}", kind.name());
        }
    }
}
