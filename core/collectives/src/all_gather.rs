//! Everybody gets the block of everybody.

use hopmap_model::Edge;

use crate::blocks::Blocks;
use crate::network::Network;

/// 2ᵏ processes exchange all they have over the distances 1, 2, 4, …: P · k messages.
pub(crate) fn recursive_doubling(blocks: &Blocks, network: &mut Network<impl FnMut(u32, Edge)>) {
    for (round, distance) in (0..).zip(network.distances()) {
        network.round(round);
        for process in 0..network.processes() {
            let first = process & !(distance - 1);
            network.send(process, process ^ distance, blocks.several(first..first + distance));
        }
    }
}

/// Everybody sends all it has, the last time only what is missing, to the processes 1, 2, 4, … places before:
/// P · ⌈log₂ P⌉ messages. Bruck et al., "Efficient Algorithms for All-to-All Communications in Multiport
/// Message-Passing Systems", IEEE TPDS 8(11), 1997.
pub(crate) fn bruck(blocks: &Blocks, network: &mut Network<impl FnMut(u32, Edge)>) {
    for (round, distance) in (0..).zip(network.distances()) {
        network.round(round);
        let count = distance.min(network.processes() - distance);
        for process in 0..network.processes() {
            network.send(process, network.before(process, distance), blocks.around(process, count));
        }
    }
}

/// Every block goes around the ring, up to the process before its own: P · (P − 1) messages, told as one round.
pub(crate) fn ring(blocks: &Blocks, network: &mut Network<impl FnMut(u32, Edge)>) {
    network.round(0);
    around(blocks, 1, network);
}

/// Everybody passes on all blocks around the ring but the one of the process so many places after it.
pub(crate) fn around(blocks: &Blocks, kept: u32, network: &mut Network<impl FnMut(u32, Edge)>) {
    let filled = blocks.filled();
    for process in 0..network.processes() {
        let (next, kept) = (network.after(process, 1), network.after(process, kept));
        let messages = filled - u64::from(blocks.one(kept) > 0);
        network.send_all(process, next, messages, blocks.all_but(kept));
    }
}

/// An even number of processes exchange in pairs, once with the one neighbour and once with the other: first their own
/// blocks, then the two blocks that came last. P / 2 · P messages. Chen et al., "Performance Evaluation of Allgather
/// Algorithms on Terascale Linux Cluster with Fast Ethernet", HPC Asia 2005.
pub(crate) fn neighbour_exchange(blocks: &Blocks, network: &mut Network<impl FnMut(u32, Edge)>) {
    let processes = network.processes();
    network.round(0);
    for process in 0..processes {
        network.send(process, process ^ 1, blocks.one(process));
    }
    for round in 1..processes / 2 {
        network.round(round);
        for process in 0..processes {
            // Even processes turn to the one before in odd rounds, odd ones to the one after; a pair of blocks has been
            // so many pairs away.
            let backwards = (process % 2 == 0) == (round % 2 == 1);
            let partner = if backwards { network.before(process, 1) } else { network.after(process, 1) };
            let way = 2 * (round / 2);
            let own = process & !1;
            let first = if backwards { network.after(own, way) } else { network.before(own, way) };
            network.send(process, partner, blocks.around(first, 2));
        }
    }
}
