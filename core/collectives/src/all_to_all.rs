//! Everybody has something else for everybody.

use hopmap_model::Edge;

use crate::blocks::Blocks;
use crate::network::Network;

/// When the messages between all pairs are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    /// All at once.
    AtOnce,
    /// In P − 1 rounds, in each of which everybody sends one message and gets one.
    InRounds,
}

impl Order {
    /// The round in which one sends to the other.
    fn round(self, source: u32, destination: u32, processes: u32) -> u32 {
        match self {
            Self::AtOnce => 0,
            Self::InRounds if destination > source => destination - source - 1,
            Self::InRounds => processes - (source - destination) - 1,
        }
    }
}

/// Over each of the distances 1, 2, 4, … everybody sends the blocks whose way holds that power of two:
/// P · ⌈log₂ P⌉ messages. Bruck et al., 1997.
pub(crate) fn bruck(block: u64, network: &mut Network<impl FnMut(u32, Edge)>) {
    for (round, distance) in (0..).zip(network.distances()) {
        network.round(round);
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
pub(crate) fn to_each(blocks: &Blocks, order: Order, network: &mut Network<impl FnMut(u32, Edge)>) {
    let processes = network.processes();
    for source in 0..processes {
        for destination in (0..processes).filter(|&destination| destination != source) {
            network.round(order.round(source, destination, processes));
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
pub(crate) fn shares(
    sent: &[u64],
    received: &[u64],
    order: Order,
    network: &mut Network<impl FnMut(u32, Edge)>,
) {
    let silent = received.iter().all(|&bytes| bytes == 0);
    let weights = Blocks::of(received.iter().map(|&bytes| if silent { 1 } else { bytes }));
    let processes = network.processes();
    for (source, &bytes) in (0..).zip(sent) {
        let mut given = 0;
        for destination in 0..processes {
            let due = weights.portion(bytes, destination + 1);
            if destination != source {
                network.round(order.round(source, destination, processes));
                network.send(source, destination, due - given);
            }
            given = due;
        }
    }
}
