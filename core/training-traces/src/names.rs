//! The names of collective operations in PyTorch, NCCL and Chakra.

use hopmap_model::CollectiveOperation as Operation;

/// What a name of an operation means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Named {
    /// A collective operation.
    Collective(Operation),
    /// A message to a rank.
    Send,
    /// A message from a rank.
    Receive,
    /// Sends nothing: waiting, and marks of groups of operations.
    Nothing,
}

/// The operation of a name such as `nccl:all_reduce`, `_allgather_base` or `ReduceScatter`. Capitals, underscores,
/// prefixes and the suffixes of variants do not matter. The names are those of `ProcessGroupNCCL.cpp` of PyTorch
/// and of `ncclFuncToString`.
pub(crate) fn named(name: &str) -> Option<Named> {
    let name = name.rsplit_once(':').map_or(name, |(_, name)| name);
    let mut name: String = name.chars().filter(char::is_ascii_alphanumeric).collect();
    name.make_ascii_lowercase();
    let variants = ["base", "coalesced", "intotensor", "tensor", "oop", "single", "sparse"];
    let mut name = name.as_str();
    while let Some(stem) = variants.iter().find_map(|variant| name.strip_suffix(variant)) {
        name = stem;
    }
    Some(match name {
        "allreduce" => Named::Collective(Operation::AllReduce),
        "allgather" => Named::Collective(Operation::AllGather),
        "reducescatter" => Named::Collective(Operation::ReduceScatterBlock),
        "alltoall" => Named::Collective(Operation::AllToAll),
        "alltoallv" => Named::Collective(Operation::AllToAllV),
        "broadcast" => Named::Collective(Operation::Broadcast),
        "reduce" => Named::Collective(Operation::Reduce),
        "gather" => Named::Collective(Operation::Gather),
        "scatter" => Named::Collective(Operation::Scatter),
        "barrier" | "allreducebarrier" => Named::Collective(Operation::Barrier),
        "send" => Named::Send,
        "recv" | "receive" => Named::Receive,
        "" | "wait" | "init" | "start" | "end" | "startcoalescing" | "endcoalescing" => Named::Nothing,
        _ => return None,
    })
}

/// The operation of a number of Chakra's `CollectiveCommType`.
pub(crate) fn of_chakra(number: u64) -> Option<Operation> {
    const TYPES: [Operation; 10] = [
        Operation::AllReduce,
        Operation::Reduce,
        Operation::AllGather,
        Operation::Gather,
        Operation::Scatter,
        Operation::Broadcast,
        Operation::AllToAll,
        Operation::ReduceScatterBlock,
        Operation::ReduceScatterBlock,
        Operation::Barrier,
    ];
    TYPES.get(usize::try_from(number).ok()?).copied()
}

/// Bytes of an element of a type of PyTorch.
pub(crate) fn element_bytes(name: &str) -> Option<u64> {
    Some(match name {
        "Byte" | "Char" | "Bool" | "QInt8" | "QUInt8" => 1,
        eight if eight.starts_with("Float8") => 1,
        "Short" | "Half" | "BFloat16" | "UInt16" => 2,
        "Int" | "Float" | "UInt32" | "ComplexHalf" | "QInt32" => 4,
        "Long" | "Double" | "UInt64" | "ComplexFloat" => 8,
        "ComplexDouble" => 16,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variants_are_one_operation() {
        let is =
            |name: &str, operation| assert_eq!(named(name), Some(Named::Collective(operation)), "{name}");
        for name in ["nccl:all_reduce", "allreduce", "AllReduce", "allreduce_coalesced", "c10d:allreduce_"] {
            is(name, Operation::AllReduce);
        }
        for name in ["_allgather_base", "all_gather_into_tensor", "nccl:_all_gather_base_coalesced"] {
            is(name, Operation::AllGather);
        }
        for name in ["_reduce_scatter_base", "nccl:reduce_scatter_tensor_coalesced", "ReduceScatter"] {
            is(name, Operation::ReduceScatterBlock);
        }
        for name in ["all_to_all", "alltoall_base", "all_to_all_single"] {
            is(name, Operation::AllToAll);
        }
        assert_eq!(
            [named("nccl:send"), named("Recv"), named("wait")],
            [Some(Named::Send), Some(Named::Receive), Some(Named::Nothing)]
        );
        assert_eq!(named("nccl:teleport"), None);
    }
}
