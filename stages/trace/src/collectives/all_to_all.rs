//! Everybody has something else for everybody.

use hopmap_model::Edge;

use super::blocks::Blocks;
use super::network::Network;

/// Up to so many bytes per pair, blocks travel together: `MPIR_CVAR_ALLTOALL_SHORT_MSG_SIZE`.
const SHORT: u64 = 256;
/// Fewer processes than these send every block straight to its destination.
const FEW_PROCESSES: u32 = 8;

/// `MPI_Alltoall`, with so many bytes per pair.
pub(super) fn all_to_all(block: u64, network: &mut Network<impl FnMut(Edge)>) {
    if network.processes() >= FEW_PROCESSES && block <= SHORT {
        bruck(block, network);
    } else {
        to_each(&Blocks::equal(block, network.processes()), network);
    }
}

/// Over each of the distances 1, 2, 4, … everybody sends the blocks whose way holds that power of two:
/// P · ⌈log₂ P⌉ messages. Bruck et al., 1997.
fn bruck(block: u64, network: &mut Network<impl FnMut(Edge)>) {
    for distance in network.distances() {
        let bytes = block.saturating_mul(ways_with(distance, network.processes()));
        for process in 0..network.processes() {
            network.send(process, network.after(process, distance), bytes);
        }
    }
}

/// How many of the numbers below `limit` have the one bit that `bit` has.
fn ways_with(bit: u32, limit: u32) -> u64 {
    let (bit, limit) = (u64::from(bit), u64::from(limit));
    limit / (2 * bit) * bit + (limit % (2 * bit)).saturating_sub(bit)
}

/// Everybody sends everybody else that one's block: P · (P − 1) messages.
pub(super) fn to_each(blocks: &Blocks, network: &mut Network<impl FnMut(Edge)>) {
    for source in 0..network.processes() {
        for destination in (0..network.processes()).filter(|&destination| destination != source) {
            network.send(source, destination, blocks.one(destination));
        }
    }
}

/// `MPI_Alltoallv` and `MPI_Alltoallw`: P · (P − 1) messages.
///
/// A trace tells what a process sends to all and receives from all, itself included, not what goes from one to one.
/// The estimate is sent(i) · received(j) / all received, as if everybody sent to all in proportion to what they get.
/// It is rounded so that what i sends, with its share for itself, adds up to sent(i); the columns are off by less than
/// a byte per process. Where nobody received anything, everybody gets the same.
pub(super) fn shares(sent: &[u64], received: &[u64], network: &mut Network<impl FnMut(Edge)>) {
    let silent = received.iter().all(|&bytes| bytes == 0);
    let weights = Blocks::of(received.iter().map(|&bytes| if silent { 1 } else { bytes }));
    for (source, &bytes) in (0..).zip(sent) {
        let mut given = 0;
        for destination in 0..network.processes() {
            let due = weights.portion(bytes, destination + 1);
            if destination != source {
                network.send(source, destination, due - given);
            }
            given = due;
        }
    }
}
