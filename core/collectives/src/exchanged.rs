//! What processes exchange by the definition of an operation.

use hopmap_model::CollectiveOperation as Operation;

use crate::{Collective, sizes};

/// What every process gives to the others and gets from them by the definition of an operation, whatever messages it is
/// made of: bytes by rank of the communicator. Of operations with a root it is what goes to or comes from the root.
#[must_use]
pub fn exchanged(collective: &Collective<'_>) -> (Vec<u64>, Vec<u64>) {
    use Operation::{
        AllGather, AllGatherV, AllToAll, AllToAllV, AllToAllW, Barrier, GatherV, ReduceScatter,
        ReduceScatterBlock, ScatterV,
    };
    let Collective { operation, sent, received, root, .. } = *collective;
    let others = sent.len().saturating_sub(1) as u64;
    let block = sizes::block(collective, root.unwrap_or(0));
    let all = |bytes: u64| vec![bytes; sent.len()];
    let each = |bytes: &dyn Fn(u32) -> u64| (0..sent.len() as u32).map(bytes).collect::<Vec<u64>>();
    match operation {
        Barrier => (all(0), all(0)),
        GatherV | ScatterV | AllToAllV | AllToAllW => (sent.to_vec(), received.to_vec()),
        AllGather => (all(block), all(block.saturating_mul(others))),
        AllToAll => (all(block.saturating_mul(others)), all(block.saturating_mul(others))),
        ReduceScatterBlock => (all(block.saturating_mul(others)), all(block)),
        AllGatherV => {
            let blocks = sizes::contributions(collective);
            (each(&|rank| blocks.one(rank)), each(&|rank| blocks.all_but(rank)))
        }
        ReduceScatter => {
            let blocks = sizes::results(collective);
            (each(&|rank| blocks.all_but(rank)), each(&|rank| blocks.one(rank)))
        }
        _ => (all(block), all(block)),
    }
}
