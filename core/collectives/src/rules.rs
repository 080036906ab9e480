//! The rules by which libraries select algorithms.
//!
//! Open MPI's are a table, `open-mpi.csv`: a row holds from a number of processes and a number of bytes up to
//! the next row of its operation. They are those of `coll/tuned` (priority 30) without rule file, from
//! `ompi/mca/coll/tuned/coll_tuned_decision_fixed.c` of 4.1.4, for commutative reductions; 4.1.0 to 4.1.8
//! have the same. `coll/tuned` has no `MPI_Gatherv`, `MPI_Scatterv`, `MPI_Alltoallw`, `MPI_Scan` and
//! `MPI_Exscan`, which go to `coll/basic` (priority 10). `coll/sm`, `coll/han` and `coll/adapt` have
//! priority 0, that is, they are off, and `coll/sync` does nothing by default: so it is with Debian's 4.1.4,
//! also if all processes share a host.
//!
//! Bytes are those of a block ([`crate::Call::bytes`]), but the total for a reduce-scatter and the mean block
//! for an allgatherv. The table has neither segments nor fan-outs, because the fixed rules set both to zero:
//! nothing is segmented, pipelines and chains are one chain, and a segmented ring is a ring. Algorithms that
//! differ only in the number of outstanding requests have one name.
//!
//! NCCL estimates the time of every algorithm (`src/graph/tuning.cc` of 2.28). Here an allreduce takes the
//! double binary tree or the ring by its formulas for the protocol Simple, with a process per node, because
//! the hosts of the processes are what a mapper decides, and a network of 400 Gbit/s. `NVLS`, `CollNet` and `PAT`,
//! which need switches that reduce or single GPUs per node, are left out. Everything else has one algorithm:
//! a ring, which is a chain for an operation with a root, and direct messages for alltoall, gather and scatter,
//! which are groups of `ncclSend` and `ncclRecv`. NCCL has no scans; these follow MPICH.

use std::sync::LazyLock;

use hopmap_model::CollectiveOperation as Operation;

use crate::algorithm::{Algorithm, Rules};
use crate::load::{self, Load};
use crate::sizes::saturate;

impl Rules {
    /// The rules of MPI libraries.
    pub const OF_MPI: [Self; 2] = [Self::Mpich, Self::OpenMpi];

    /// The algorithm for one or more processes, which supports their number and bytes.
    pub(crate) fn algorithm(self, operation: Operation, load: &Load<'_>, processes: u32) -> Algorithm {
        match self {
            Self::Mpich => load::algorithm(operation, load, processes),
            Self::OpenMpi => open_mpi(operation, load, processes),
            Self::Nccl => nccl(operation, load, processes),
        }
    }
}

fn nccl(operation: Operation, load: &Load<'_>, processes: u32) -> Algorithm {
    let chosen = match (operation, load) {
        (Operation::Barrier, _) => Algorithm::Tree,
        (Operation::AllReduce, Load::Vector(bytes)) if is_tree_faster(*bytes, processes) => {
            Algorithm::DoubleBinaryTree
        }
        (Operation::Broadcast | Operation::Reduce, _) => Algorithm::Chain,
        (
            Operation::AllReduce
            | Operation::AllGather
            | Operation::AllGatherV
            | Operation::ReduceScatter
            | Operation::ReduceScatterBlock,
            _,
        ) => Algorithm::Ring,
        (Operation::Scan | Operation::ExclusiveScan, _) => Algorithm::RecursiveDoubling,
        _ => Algorithm::Linear,
    };
    match load.suits(operation, chosen, processes) {
        true => chosen,
        // A vector with fewer elements than processes.
        false => load::algorithm(operation, load, processes),
    }
}

/// Microseconds of a step between nodes: `hwLatencies` of the network, protocol Simple.
const NCCL_STEP_US: f64 = 14.0;
/// Bytes per microsecond of a network of 400 Gbit/s.
const NCCL_BYTES_PER_US: f64 = 50_000.0;
/// The share of the bandwidth that trees reach.
const NCCL_TREE_SHARE: f64 = 0.92;

/// Whether the double binary tree takes less time for an allreduce than the ring. The ring has 2 (P − 1) steps
/// and moves 2 (P − 1) / P vectors, the trees have 2 log₂ P steps and move two vectors.
fn is_tree_faster(bytes: u64, processes: u32) -> bool {
    let (processes, bytes) = (f64::from(processes), bytes as f64);
    let steps = 2.0 * (processes - 1.0);
    let ring = steps * NCCL_STEP_US + bytes * steps / processes / NCCL_BYTES_PER_US;
    let tree = 2.0 * libm::log2(processes).floor() * NCCL_STEP_US
        + bytes * 2.0 / (NCCL_BYTES_PER_US * NCCL_TREE_SHARE);
    tree < ring
}

/// A row of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Row {
    operation: Operation,
    processes_from: u32,
    bytes_from: u64,
    algorithm: Algorithm,
}

/// The rows of Open MPI's table.
static OPEN_MPI: LazyLock<Vec<Row>> = LazyLock::new(|| lines().filter_map(row).collect());

/// The lines of the table without its header.
fn lines() -> impl Iterator<Item = &'static str> {
    include_str!("open-mpi.csv").lines().skip(1)
}

fn row(line: &str) -> Option<Row> {
    let mut fields = line.split(',');
    let operation = Operation::of_name(fields.next()?)?;
    let (processes_from, bytes_from) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
    let name = fields.next()?;
    let algorithm = *Algorithm::of(operation).iter().find(|algorithm| algorithm.name() == name)?;
    fields.next().is_none().then_some(Row { operation, processes_from, bytes_from, algorithm })
}

fn open_mpi(operation: Operation, load: &Load<'_>, processes: u32) -> Algorithm {
    let bytes = match load {
        Load::Nothing | Load::Shares(..) => 0,
        Load::Vector(bytes) | Load::Pairs(bytes) => *bytes,
        Load::Blocks(blocks) => match operation {
            Operation::ReduceScatter => saturate(blocks.total()),
            _ => saturate(blocks.total() / u128::from(processes)),
        },
    };
    let holds = |row: &&Row| {
        row.operation == operation && row.processes_from <= processes.max(2) && row.bytes_from <= bytes
    };
    // Every number of processes in the table has a row from zero bytes, so the last row that holds is in the
    // group of the highest number.
    let mut algorithm = OPEN_MPI.iter().rfind(holds).map_or(Algorithm::Linear, |row| row.algorithm);
    while !load.suits(operation, algorithm, processes) {
        algorithm = substitute(operation, algorithm);
    }
    algorithm
}

/// What Open MPI uses instead of an algorithm that needs 2ᵏ or an even number of processes, or more elements.
fn substitute(operation: Operation, algorithm: Algorithm) -> Algorithm {
    match (operation, algorithm) {
        (_, Algorithm::NeighbourExchange) => Algorithm::Ring,
        (Operation::AllGather, Algorithm::RecursiveDoubling) => Algorithm::Bruck,
        (Operation::AllReduce, Algorithm::Ring) => Algorithm::RecursiveDoubling,
        _ => Algorithm::Linear,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Call;

    fn open_mpi(operation: Operation, processes: u32, bytes: u64) -> Algorithm {
        let root = operation.has_root().then_some(0);
        Call { operation, processes, root, bytes }.usual(Rules::OpenMpi)
    }

    #[test]
    fn every_line_of_the_table_is_a_row_and_every_group_starts_at_zero_bytes() {
        assert_eq!(OPEN_MPI.len(), lines().count());
        for operation in Operation::ALL {
            let rows: Vec<&Row> = OPEN_MPI.iter().filter(|row| row.operation == operation).collect();
            assert!(rows.is_sorted_by_key(|row| (row.processes_from, row.bytes_from)), "{operation}");
            let groups = rows.chunk_by(|one, other| one.processes_from == other.processes_from);
            assert!(groups.map(|group| group[0].bytes_from).all(|bytes| bytes == 0), "{operation}");
            assert_eq!(rows.first().map(|row| row.processes_from), Some(2), "{operation}");
        }
    }

    #[test]
    fn a_row_holds_up_to_the_next() {
        use Algorithm::{BinomialDoubling, Knomial, ScatterDoubling};
        let broadcast = |processes, bytes| open_mpi(Operation::Broadcast, processes, bytes);
        assert_eq!([broadcast(16, 4095), broadcast(16, 4096)], [Knomial, BinomialDoubling]);
        assert_eq!([broadcast(31, 1 << 20), broadcast(32, 1 << 20)], [ScatterDoubling, Knomial]);
        // 16 blocks of 16384 bytes.
        let scattered = |bytes| open_mpi(Operation::ReduceScatter, 16, bytes);
        assert_eq!([scattered(16_383), scattered(16_384)], [Algorithm::RecursiveHalving, Algorithm::Ring]);
        assert_eq!(open_mpi(Operation::AllGatherV, 16, 128), Algorithm::Bruck);
    }

    #[test]
    fn nccl_takes_trees_for_many_processes_and_rings_for_many_bytes() {
        use Algorithm::{DoubleBinaryTree, Linear, Ring};
        let nccl =
            |operation, processes, bytes| Call { operation, processes, root: None, bytes }.usual(Rules::Nccl);
        let all_reduce = |processes, bytes| nccl(Operation::AllReduce, processes, bytes);
        assert_eq!(
            [all_reduce(2, 1 << 10), all_reduce(4, 1 << 20), all_reduce(4, 4 << 20)],
            [Ring, DoubleBinaryTree, Ring]
        );
        assert_eq!([all_reduce(64, 256 << 20), all_reduce(64, 512 << 20)], [DoubleBinaryTree, Ring]);
        assert_eq!(nccl(Operation::AllGather, 64, 8), Ring);
        assert_eq!(nccl(Operation::AllToAll, 64, 8), Linear);
        // An element cannot go around a ring in pieces.
        assert_eq!(all_reduce(2, 8), Algorithm::RecursiveDoubling);
    }

    #[test]
    fn what_an_algorithm_does_not_support_goes_to_its_substitute() {
        assert_eq!(open_mpi(Operation::AllGather, 12, 8), Algorithm::Bruck);
        assert_eq!(open_mpi(Operation::AllGather, 33, 1024), Algorithm::Ring);
        assert_eq!(open_mpi(Operation::AllReduce, 16, 8), Algorithm::RecursiveDoubling);
        // 128 bytes are 16 elements, fewer than the 32 pieces.
        assert_eq!(open_mpi(Operation::AllReduce, 32, 128), Algorithm::Linear);
        assert_eq!(open_mpi(Operation::AllReduce, 32, 256), Algorithm::Rabenseifner);
    }
}
