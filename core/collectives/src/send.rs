//! The messages of an algorithm.

use hopmap_model::{CollectiveOperation as Operation, Edge};

use crate::all_to_all::Order;
use crate::blocks::Blocks;
use crate::load::Load;
use crate::network::Network;
use crate::{Algorithm, all_gather, all_to_all, barrier, reduce, tree};

/// Sends the messages of an operation of two or more processes with an algorithm that is one for it and them.
pub(crate) fn send(
    (operation, algorithm): (Operation, Algorithm),
    load: &Load<'_>,
    root: u32,
    network: &mut Network<impl FnMut(u32, Edge)>,
) {
    match (load, algorithm) {
        (Load::Nothing, Algorithm::Tree) => barrier::tree(network),
        (Load::Nothing, _) => barrier::disseminate(network),
        (Load::Vector(bytes), _) => match operation {
            Operation::Broadcast => broadcast(algorithm, *bytes, network),
            Operation::Reduce => reduce(algorithm, *bytes, root, network),
            Operation::AllReduce => all_reduce(algorithm, *bytes, network),
            _ if algorithm == Algorithm::Chain => tree::chain(*bytes, network),
            _ => reduce::scan(*bytes, network),
        },
        (Load::Blocks(blocks), _) => match operation {
            Operation::AllGather | Operation::AllGatherV => all_gather(algorithm, blocks, network),
            Operation::ReduceScatter | Operation::ReduceScatterBlock => match algorithm {
                Algorithm::RecursiveHalving => reduce::reduce_scatter_by_halving(blocks, network),
                _ => all_to_all::to_each(blocks, order(algorithm), network),
            },
            Operation::Gather | Operation::GatherV => match algorithm {
                Algorithm::Linear => tree::to_root(blocks, network),
                _ => tree::gather(blocks, network),
            },
            _ if algorithm == Algorithm::Linear => tree::from_root(blocks, network),
            _ => tree::scatter(blocks, network),
        },
        (Load::Pairs(bytes), Algorithm::Bruck) => all_to_all::bruck(*bytes, network),
        (Load::Pairs(bytes), _) => {
            all_to_all::to_each(&Blocks::equal(*bytes, network.processes()), order(algorithm), network);
        }
        (Load::Shares(sent, received), _) => all_to_all::shares(sent, received, order(algorithm), network),
    }
}

/// When the messages between all pairs are sent.
fn order(algorithm: Algorithm) -> Order {
    if algorithm == Algorithm::Linear { Order::AtOnce } else { Order::InRounds }
}

fn broadcast(algorithm: Algorithm, bytes: u64, network: &mut Network<impl FnMut(u32, Edge)>) {
    let whole = |network: &Network<_>| Blocks::equal(bytes, network.processes());
    match algorithm {
        Algorithm::Linear => tree::from_root(&whole(network), network),
        Algorithm::Chain => tree::chain(bytes, network),
        Algorithm::ScatterRing | Algorithm::ScatterDoubling => {
            broadcast_in_pieces(algorithm, &Blocks::rounded_up(bytes, network.processes()), network);
        }
        _ => tree::broadcast(bytes, network),
    }
}

/// A scatter, then an allgather.
pub(crate) fn broadcast_in_pieces(
    algorithm: Algorithm,
    pieces: &Blocks,
    network: &mut Network<impl FnMut(u32, Edge)>,
) {
    tree::scatter(pieces, network);
    network.next_part();
    match algorithm {
        Algorithm::ScatterDoubling => all_gather::recursive_doubling(pieces, network),
        _ => all_gather::ring(pieces, network),
    }
}

fn reduce(algorithm: Algorithm, bytes: u64, root: u32, network: &mut Network<impl FnMut(u32, Edge)>) {
    let processes = network.processes();
    match algorithm {
        Algorithm::ReduceScatterGather => {
            let pieces = Blocks::even(bytes, 1 << processes.ilog2());
            reduce::reduce_in_pieces(&pieces, root, &mut network.unrotated());
        }
        Algorithm::Linear => tree::to_root(&Blocks::equal(bytes, processes), network),
        _ => tree::reduce(bytes, network),
    }
}

fn all_reduce(algorithm: Algorithm, bytes: u64, network: &mut Network<impl FnMut(u32, Edge)>) {
    let processes = network.processes();
    match algorithm {
        Algorithm::ReduceScatterAllgather => {
            reduce::all_reduce_in_pieces(&Blocks::even(bytes, 1 << processes.ilog2()), network);
        }
        Algorithm::Ring => reduce::all_reduce_in_rings(&Blocks::even(bytes, processes), network),
        _ => reduce::all_reduce_whole(bytes, network),
    }
}

fn all_gather(algorithm: Algorithm, blocks: &Blocks, network: &mut Network<impl FnMut(u32, Edge)>) {
    match algorithm {
        Algorithm::RecursiveDoubling => all_gather::recursive_doubling(blocks, network),
        Algorithm::Bruck => all_gather::bruck(blocks, network),
        Algorithm::NeighbourExchange => all_gather::neighbour_exchange(blocks, network),
        _ => all_gather::ring(blocks, network),
    }
}
