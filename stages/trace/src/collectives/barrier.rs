//! The barrier.

use hopmap_model::Edge;

use super::network::Network;

/// Everybody tells the processes 1, 2, 4, … places ahead that it has come: ⌈log₂ P⌉ empty messages each.
/// Hensgen, Finkel and Manber, "Two Algorithms for Barrier Synchronization", IJPP 17(1), 1988.
pub(super) fn disseminate(network: &mut Network<impl FnMut(Edge)>) {
    for distance in network.distances() {
        for process in 0..network.processes() {
            network.send_all(process, network.after(process, distance), 1, 0);
        }
    }
}
