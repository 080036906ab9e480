//! Operations along a binomial tree, a chain, or straight to and from the root. Process 0 is the root.
//!
//! In the tree the parent of a process is the process with its lowest one bit cleared; the subtree below it reaches
//! over as many processes as that bit is worth. On the way down everybody serves its largest subtree first, on the way up
//! its smallest.

use std::ops::Range;

use hopmap_model::Edge;

use crate::blocks::Blocks;
use crate::network::Network;

/// The parent of a process other than the root.
pub(crate) fn parent(process: u32) -> u32 {
    process & (process - 1)
}

/// A process other than the root and all below it.
fn subtree(process: u32, processes: u32) -> Range<u32> {
    process..process.saturating_add(1 << process.trailing_zeros()).min(processes)
}

/// From every parent to every child, so many bytes.
fn down(network: &mut Network<impl FnMut(u32, Edge)>, bytes: impl Fn(u32) -> u64) {
    let rounds = network.doublings();
    for process in 1..network.processes() {
        network.round(rounds - 1 - process.trailing_zeros());
        network.send(parent(process), process, bytes(process));
    }
}

/// From every child to every parent, so many bytes.
fn up(network: &mut Network<impl FnMut(u32, Edge)>, bytes: impl Fn(u32) -> u64) {
    for process in (1..network.processes()).rev() {
        network.round(process.trailing_zeros());
        network.send(process, parent(process), bytes(process));
    }
}

/// Everybody hands on all it got. P − 1 messages.
pub(crate) fn broadcast(bytes: u64, network: &mut Network<impl FnMut(u32, Edge)>) {
    down(network, |_| bytes);
}

/// Everybody hands on all it got to the next. P − 1 messages, one after the other: a chain that is not cut into
/// segments.
pub(crate) fn chain(bytes: u64, network: &mut Network<impl FnMut(u32, Edge)>) {
    for process in 1..network.processes() {
        network.round(process - 1);
        network.send(process - 1, process, bytes);
    }
}

/// Everybody adds up what it got and hands it on. P − 1 messages.
pub(crate) fn reduce(bytes: u64, network: &mut Network<impl FnMut(u32, Edge)>) {
    up(network, |_| bytes);
}

/// Everybody hands on the blocks of the processes below. P − 1 messages.
pub(crate) fn scatter(blocks: &Blocks, network: &mut Network<impl FnMut(u32, Edge)>) {
    let processes = network.processes();
    down(network, |process| blocks.several(subtree(process, processes)));
}

/// Everybody hands on its block and those of the processes below. P − 1 messages.
pub(crate) fn gather(blocks: &Blocks, network: &mut Network<impl FnMut(u32, Edge)>) {
    let processes = network.processes();
    up(network, |process| blocks.several(subtree(process, processes)));
}

/// Everybody sends its own bytes to the root. P − 1 messages.
pub(crate) fn to_root(blocks: &Blocks, network: &mut Network<impl FnMut(u32, Edge)>) {
    network.round(0);
    for process in 1..network.processes() {
        network.send(process, 0, blocks.one(process));
    }
}

/// The root sends everybody its own bytes. P − 1 messages.
pub(crate) fn from_root(blocks: &Blocks, network: &mut Network<impl FnMut(u32, Edge)>) {
    network.round(0);
    for process in 1..network.processes() {
        network.send(0, process, blocks.one(process));
    }
}
