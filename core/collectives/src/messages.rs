//! The messages of every operation and algorithm.

use hopmap_model::{CollectiveOperation as Operation, Edge};

use crate::algorithm::{Algorithm, Rules};
use crate::load::Load;
use crate::network::{self, Network, Order};
use crate::reduce::{self, Excess};
use crate::sizes::{Blocks, saturate};
use crate::trees;

/// Sends the messages of an operation of two or more processes with an algorithm that supports them.
pub(crate) fn send(
    (operation, algorithm): (Operation, Algorithm),
    load: &Load<'_>,
    root: u32,
    network: &mut Network<impl FnMut(u32, Edge)>,
) {
    match (load, algorithm) {
        (_, Algorithm::NonOverlapping) => non_overlapping(operation, load, network),
        (Load::Nothing, _) => barrier(algorithm, network),
        (Load::Vector(bytes), _) => match operation {
            Operation::Broadcast => broadcast(algorithm, *bytes, network),
            Operation::Reduce => reduce(algorithm, *bytes, root, network),
            Operation::AllReduce => all_reduce(algorithm, *bytes, network),
            _ if algorithm == Algorithm::Chain => network::chain(*bytes, network),
            _ => reduce::scan(*bytes, network),
        },
        (Load::Blocks(blocks), _) => match operation {
            Operation::AllGather | Operation::AllGatherV => all_gather(algorithm, blocks, network),
            Operation::ReduceScatter | Operation::ReduceScatterBlock => {
                reduce_scatter((operation, algorithm), blocks, network);
            }
            Operation::Gather | Operation::GatherV => match algorithm {
                Algorithm::Linear => network::to_root(blocks, network),
                Algorithm::LinearSync => network::to_root_in_turn(blocks, network),
                _ => network::gather(blocks, network),
            },
            _ if algorithm == Algorithm::Linear => network::from_root(blocks, network),
            _ => network::scatter(blocks, network),
        },
        (Load::Pairs(bytes), Algorithm::Bruck) => network::bruck_all_to_all(*bytes, network),
        (Load::Pairs(bytes), _) => {
            network::to_each(&Blocks::equal(*bytes, network.processes()), order(algorithm), network);
        }
        (Load::Shares(sent, received), _) => network::shares(sent, received, order(algorithm), network),
    }
}

/// The two parts of an operation, to and from process 0, each with the algorithm that Open MPI selects.
fn non_overlapping(operation: Operation, load: &Load<'_>, network: &mut Network<impl FnMut(u32, Edge)>) {
    let vector = match load {
        Load::Blocks(blocks) => Load::Vector(saturate(blocks.total())),
        _ => load.clone(),
    };
    let parts = match operation {
        Operation::AllGather => [(Operation::Gather, load), (Operation::Broadcast, &vector)],
        Operation::AllGatherV => [(Operation::GatherV, load), (Operation::Broadcast, &vector)],
        Operation::ReduceScatter => [(Operation::Reduce, &vector), (Operation::ScatterV, load)],
        Operation::ReduceScatterBlock => [(Operation::Reduce, &vector), (Operation::Scatter, load)],
        _ => [(Operation::Reduce, &vector), (Operation::Broadcast, &vector)],
    };
    for (part, load) in parts {
        let algorithm = Rules::OpenMpi.algorithm(part, load, network.processes());
        send((part, algorithm), load, 0, network);
        network.next_part();
    }
}

fn barrier(algorithm: Algorithm, network: &mut Network<impl FnMut(u32, Edge)>) {
    match algorithm {
        Algorithm::Tree => network::tree(network),
        Algorithm::Linear => network::notify_root(network),
        Algorithm::RecursiveDoubling => network::notify_by_doubling(network),
        _ => network::disseminate(network),
    }
}

/// Order of the messages between all pairs.
fn order(algorithm: Algorithm) -> Order {
    if algorithm == Algorithm::Linear { Order::AtOnce } else { Order::InRounds }
}

fn broadcast(algorithm: Algorithm, bytes: u64, network: &mut Network<impl FnMut(u32, Edge)>) {
    let equal = |network: &Network<_>| Blocks::equal(bytes, network.processes());
    match algorithm {
        Algorithm::Linear => network::from_root(&equal(network), network),
        Algorithm::Chain => network::chain(bytes, network),
        Algorithm::BinomialDoubling => trees::down(trees::doubling, |_| bytes, network),
        Algorithm::Binary => trees::down(trees::binary, |_| bytes, network),
        Algorithm::SplitBinary => trees::split_binary(bytes, network),
        Algorithm::Knomial => trees::down(trees::knomial, |_| bytes, network),
        Algorithm::ScatterRing | Algorithm::ScatterDoubling => {
            broadcast_in_pieces(algorithm, &Blocks::rounded_up(bytes, network.processes()), network);
        }
        _ => network::broadcast(bytes, network),
    }
}

/// A scatter, then an allgather.
pub(crate) fn broadcast_in_pieces(
    algorithm: Algorithm,
    pieces: &Blocks,
    network: &mut Network<impl FnMut(u32, Edge)>,
) {
    network::scatter(pieces, network);
    network.next_part();
    match algorithm {
        Algorithm::ScatterDoubling => network::recursive_doubling(pieces, network),
        _ => network::ring(pieces, network),
    }
}

fn reduce(algorithm: Algorithm, bytes: u64, root: u32, network: &mut Network<impl FnMut(u32, Edge)>) {
    let processes = network.processes();
    let pieces = 1 << processes.ilog2();
    match algorithm {
        Algorithm::ReduceScatterGather => network.unrotated(|network| {
            reduce::reduce_in_pieces(&Blocks::even(bytes, pieces), (root, Excess::Whole), network);
        }),
        Algorithm::Rabenseifner => network.unrotated(|network| {
            reduce::reduce_in_pieces(&Blocks::halved(bytes, pieces), (root, Excess::Halves), network);
        }),
        Algorithm::InOrderBinary => {
            network.unrotated(|network| trees::reduce_in_order(bytes, root, network));
        }
        Algorithm::Linear => network::to_root(&Blocks::equal(bytes, processes), network),
        Algorithm::Chain => trees::up(trees::chain, |node| node, bytes, network),
        Algorithm::Binary => trees::up(trees::binary, |node| node, bytes, network),
        _ => network::reduce(bytes, network),
    }
}

fn all_reduce(algorithm: Algorithm, bytes: u64, network: &mut Network<impl FnMut(u32, Edge)>) {
    let processes = network.processes();
    let pieces = 1 << processes.ilog2();
    match algorithm {
        Algorithm::ReduceScatterAllgather => {
            reduce::all_reduce_in_pieces(&Blocks::even(bytes, pieces), Excess::Whole, network);
        }
        Algorithm::Rabenseifner => {
            reduce::all_reduce_in_pieces(&Blocks::halved(bytes, pieces), Excess::Halves, network);
        }
        Algorithm::Ring => reduce::all_reduce_in_rings(&Blocks::even(bytes, processes), network),
        Algorithm::DoubleBinaryTree => trees::double_binary(bytes, network),
        Algorithm::Linear => {
            let vectors = Blocks::equal(bytes, processes);
            network::to_root(&vectors, network);
            network.next_part();
            network::from_root(&vectors, network);
        }
        _ => reduce::all_reduce_unsplit(bytes, network),
    }
}

fn reduce_scatter(
    (operation, algorithm): (Operation, Algorithm),
    blocks: &Blocks,
    network: &mut Network<impl FnMut(u32, Edge)>,
) {
    match algorithm {
        Algorithm::RecursiveHalving => reduce::reduce_scatter_by_halving(blocks, network),
        Algorithm::RecursiveDoubling => reduce::reduce_scatter_by_doubling(blocks, network),
        Algorithm::Ring => reduce::reduce_scatter_in_ring(blocks, network),
        Algorithm::Butterfly => {
            let reordered = operation == Operation::ReduceScatterBlock;
            reduce::reduce_scatter_by_butterfly(blocks, reordered, network);
        }
        _ => network::to_each(blocks, order(algorithm), network),
    }
}

fn all_gather(algorithm: Algorithm, blocks: &Blocks, network: &mut Network<impl FnMut(u32, Edge)>) {
    match algorithm {
        Algorithm::RecursiveDoubling => network::recursive_doubling(blocks, network),
        Algorithm::Bruck => network::bruck(blocks, network),
        Algorithm::NeighbourExchange => network::neighbour_exchange(blocks, network),
        _ => network::ring(blocks, network),
    }
}
