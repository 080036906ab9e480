//! The barrier.

use hopmap_model::Edge;

use crate::network::Network;
use crate::tree::parent;

/// Everybody tells the processes 1, 2, 4, … places ahead that it has come: ⌈log₂ P⌉ empty messages each.
/// Hensgen, Finkel and Manber, "Two Algorithms for Barrier Synchronization", IJPP 17(1), 1988.
pub(crate) fn disseminate(network: &mut Network<impl FnMut(u32, Edge)>) {
    for (round, distance) in (0..).zip(network.distances()) {
        network.round(round);
        for process in 0..network.processes() {
            network.send_all(process, network.after(process, distance), 1, 0);
        }
    }
}

/// News that all have come go up a binomial tree, and the news that all know go down: 2 · (P − 1) empty messages.
/// `barrier_intra_tree` of Open MPI.
pub(crate) fn tree(network: &mut Network<impl FnMut(u32, Edge)>) {
    for process in (1..network.processes()).rev() {
        network.round(process.trailing_zeros());
        network.send_all(process, parent(process), 1, 0);
    }
    network.next_part();
    let rounds = network.doublings();
    for process in 1..network.processes() {
        network.round(rounds - 1 - process.trailing_zeros());
        network.send_all(parent(process), process, 1, 0);
    }
}
