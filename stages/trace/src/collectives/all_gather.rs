//! Everybody gets the block of everybody.

use hopmap_model::Edge;

use super::blocks::Blocks;
use super::network::Network;

/// Below so many bytes in all, 2ᵏ processes double what they have: `MPIR_CVAR_ALLGATHER_LONG_MSG_SIZE`.
const LONG: u128 = 524_288;
/// Below so many bytes in all, other numbers of processes do: `MPIR_CVAR_ALLGATHER_SHORT_MSG_SIZE`.
const SHORT: u128 = 81_920;

/// `MPI_Allgather` and `MPI_Allgatherv`.
pub(super) fn all_gather(blocks: &Blocks, network: &mut Network<impl FnMut(Edge)>) {
    match network.processes().is_power_of_two() {
        true if blocks.total() < LONG => recursive_doubling(blocks, network),
        false if blocks.total() < SHORT => bruck(blocks, network),
        _ => ring(blocks, network),
    }
}

/// 2ᵏ processes exchange all they have over the distances 1, 2, 4, …: P · k messages.
pub(super) fn recursive_doubling(blocks: &Blocks, network: &mut Network<impl FnMut(Edge)>) {
    for distance in network.distances() {
        for process in 0..network.processes() {
            let first = process & !(distance - 1);
            network.send(process, process ^ distance, blocks.several(first..first + distance));
        }
    }
}

/// Everybody sends all it has, the last time only what is missing, to the processes 1, 2, 4, … places before:
/// P · ⌈log₂ P⌉ messages. Bruck et al., "Efficient Algorithms for All-to-All Communications in Multiport
/// Message-Passing Systems", IEEE TPDS 8(11), 1997.
fn bruck(blocks: &Blocks, network: &mut Network<impl FnMut(Edge)>) {
    for distance in network.distances() {
        let count = distance.min(network.processes() - distance);
        for process in 0..network.processes() {
            network.send(process, network.before(process, distance), blocks.around(process, count));
        }
    }
}

/// Every block goes around the ring, up to the process before its own: P · (P − 1) messages.
pub(super) fn ring(blocks: &Blocks, network: &mut Network<impl FnMut(Edge)>) {
    let filled = blocks.filled();
    for process in 0..network.processes() {
        let next = network.after(process, 1);
        let messages = filled - u64::from(blocks.one(next) > 0);
        network.send_all(process, next, messages, blocks.all_but(next));
    }
}
