//! Operations along a binomial tree, or straight to and from the root. Process 0 is the root.
//!
//! In the tree the parent of a process is the process with its lowest one bit cleared; the subtree below it reaches
//! over as many processes as that bit is worth.

use std::ops::Range;

use hopmap_model::Edge;

use super::blocks::Blocks;
use super::network::Network;

/// The parent of a process other than the root.
fn parent(process: u32) -> u32 {
    process & (process - 1)
}

/// A process other than the root and all below it.
fn subtree(process: u32, processes: u32) -> Range<u32> {
    process..process.saturating_add(1 << process.trailing_zeros()).min(processes)
}

/// Everybody hands on all it got. P − 1 messages.
pub(super) fn broadcast(bytes: u64, network: &mut Network<impl FnMut(Edge)>) {
    for process in 1..network.processes() {
        network.send(parent(process), process, bytes);
    }
}

/// Everybody adds up what it got and hands it on. P − 1 messages.
pub(super) fn reduce(bytes: u64, network: &mut Network<impl FnMut(Edge)>) {
    for process in (1..network.processes()).rev() {
        network.send(process, parent(process), bytes);
    }
}

/// Everybody hands on the blocks of the processes below. P − 1 messages.
pub(super) fn scatter(blocks: &Blocks, network: &mut Network<impl FnMut(Edge)>) {
    for process in 1..network.processes() {
        network.send(parent(process), process, blocks.several(subtree(process, network.processes())));
    }
}

/// Everybody hands on its block and those of the processes below. P − 1 messages.
pub(super) fn gather(blocks: &Blocks, network: &mut Network<impl FnMut(Edge)>) {
    for process in (1..network.processes()).rev() {
        network.send(process, parent(process), blocks.several(subtree(process, network.processes())));
    }
}

/// Everybody sends its own bytes, given by rank of the communicator, to the root. P − 1 messages.
pub(super) fn to_root(bytes: &[u64], network: &mut Network<impl FnMut(Edge)>) {
    for process in 1..network.processes() {
        network.send(process, 0, bytes[network.rank(process) as usize]);
    }
}

/// The root sends everybody its own bytes, given by rank of the communicator. P − 1 messages.
pub(super) fn from_root(bytes: &[u64], network: &mut Network<impl FnMut(Edge)>) {
    for process in 1..network.processes() {
        network.send(0, process, bytes[network.rank(process) as usize]);
    }
}
