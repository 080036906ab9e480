//! Reductions with a result on several processes, and reductions in pieces.
//!
//! If P is not 2ᵏ, a fold reduces it first: for every process above 2ᵏ, one pair of neighbours merges its
//! vectors, and one of the two drops out.

use std::ops::Range;

use hopmap_model::Edge;

use crate::network::{self, Network, powers};
use crate::sizes::Blocks;

/// What the processes beyond 2ᵏ do with their vectors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Excess {
    /// A neighbour receives and reduces it: MPICH.
    Whole,
    /// Both neighbours reduce a half, and one passes its half on: Rabenseifner, Open MPI.
    Halves,
}

/// The 2ᵏ of P processes that take part, renumbered, and the neighbours that drop out.
#[derive(Debug, Clone, Copy)]
struct Fold {
    /// k: number of halvings.
    halvings: u32,
    /// P − 2ᵏ.
    excess: u32,
    /// Of a folded pair the odd process stays, not the even one.
    odd_stays: bool,
}

impl Fold {
    fn new(processes: u32, odd_stays: bool) -> Self {
        let halvings = processes.ilog2();
        Self { halvings, excess: processes - (1 << halvings), odd_stays }
    }

    /// 2ᵏ.
    fn members(self) -> u32 {
        1 << self.halvings
    }

    /// The process of a member.
    fn process(self, member: u32) -> u32 {
        match member < self.excess {
            true => 2 * member + u32::from(self.odd_stays),
            false => member + self.excess,
        }
    }

    /// The process that drops out in favour of one of the first members.
    fn left_out(self, member: u32) -> u32 {
        2 * member + u32::from(!self.odd_stays)
    }

    /// The first process, dropped ones included, that a member represents.
    fn first(self, member: u32) -> u32 {
        member + member.min(self.excess)
    }

    /// The pieces of a vector that a member holds after this many halvings, starting with the next
    /// neighbour: at each halving the member whose bit is zero keeps the lower half.
    fn kept(self, member: u32, halvings: u32) -> Range<u32> {
        let first: u32 = (0..halvings).map(|bit| ((member >> bit) & 1) << (self.halvings - 1 - bit)).sum();
        first..first + (self.members() >> halvings)
    }

    /// Every process that drops out sends its vector.
    fn fold(self, bytes: u64, network: &mut Network<impl FnMut(u32, Edge)>) {
        network.round(0);
        for member in 0..self.excess {
            network.send(self.left_out(member), self.process(member), bytes);
        }
        network.next_part();
    }

    /// Every process that drops out leaves its pieces to its neighbour.
    fn fold_pieces(self, pieces: &Blocks, excess: Excess, network: &mut Network<impl FnMut(u32, Edge)>) {
        let half = pieces.count() / 2;
        let (lower, upper) = (pieces.several(0..half), pieces.several(half..pieces.count()));
        if excess == Excess::Whole {
            return self.fold(pieces.several(0..pieces.count()), network);
        }
        for member in 0..self.excess {
            network.send(self.left_out(member), self.process(member), lower);
            network.send(self.process(member), self.left_out(member), upper);
        }
        network.next_part();
        self.fold(upper, network);
    }

    /// Every process that dropped out receives the result.
    fn unfold(self, bytes: u64, network: &mut Network<impl FnMut(u32, Edge)>) {
        network.next_part();
        for member in 0..self.excess {
            network.send(self.process(member), self.left_out(member), bytes);
        }
    }

    /// Partners over the distances 1, 2, 4, … exchange the pieces that the other keeps.
    fn halve(self, pieces: &Blocks, network: &mut Network<impl FnMut(u32, Edge)>) {
        for bit in 0..self.halvings {
            network.round(bit);
            for member in 0..self.members() {
                let partner = member ^ (1 << bit);
                let bytes = pieces.several(self.kept(partner, bit + 1));
                network.send(self.process(member), self.process(partner), bytes);
            }
        }
        network.next_part();
    }
}

/// Without splitting vectors: 2ᵏ processes exchange their vectors over the distances 1, 2, 4, …: 2ᵏ · k
/// messages and two per dropped process.
pub(crate) fn all_reduce_unsplit(bytes: u64, network: &mut Network<impl FnMut(u32, Edge)>) {
    let fold = Fold::new(network.processes(), true);
    fold.fold(bytes, network);
    for (round, distance) in (0..).zip(powers(fold.halvings)) {
        network.round(round);
        for member in 0..fold.members() {
            network.send(fold.process(member), fold.process(member ^ distance), bytes);
        }
    }
    fold.unfold(bytes, network);
}

/// Vectors in pieces: a reduce-scatter by halving, then an allgather in reverse order: 2 · 2ᵏ · k messages
/// and two or four per dropped process. Rabenseifner, "Optimization of Collective Reduction Operations",
/// ICCS 2004.
pub(crate) fn all_reduce_in_pieces(
    pieces: &Blocks,
    excess: Excess,
    network: &mut Network<impl FnMut(u32, Edge)>,
) {
    let fold = Fold::new(network.processes(), excess == Excess::Whole);
    let bytes = pieces.several(0..pieces.count());
    fold.fold_pieces(pieces, excess, network);
    fold.halve(pieces, network);
    for bit in (0..fold.halvings).rev() {
        network.round(fold.halvings - 1 - bit);
        for member in 0..fold.members() {
            let bytes = pieces.several(fold.kept(member, bit + 1));
            network.send(fold.process(member), fold.process(member ^ (1 << bit)), bytes);
        }
    }
    fold.unfold(bytes, network);
}

/// Vectors in pieces: a reduce-scatter by halving, then a gather: 2ᵏ · k + 2ᵏ − 1 messages, one or three per
/// dropped process, and one more if the root drops out: it then takes the place of process 0. Rabenseifner,
/// 2004.
pub(crate) fn reduce_in_pieces(
    pieces: &Blocks,
    (root, excess): (u32, Excess),
    network: &mut Network<impl FnMut(u32, Edge)>,
) {
    let fold = Fold::new(network.processes(), false);
    fold.fold_pieces(pieces, excess, network);
    fold.halve(pieces, network);

    let folded = root / 2 < fold.excess;
    let replaces = folded && root % 2 == 1;
    let root_member = match folded {
        true if replaces => 0,
        true => root / 2,
        false => root - fold.excess,
    };
    if replaces {
        network.send(fold.process(0), root, pieces.one(0));
        network.next_part();
    }
    let process = |member| if replaces && member == 0 { root } else { fold.process(member) };
    for bit in (0..fold.halvings).rev() {
        network.round(fold.halvings - 1 - bit);
        for member in (0..fold.members()).filter(|member| (member ^ root_member) >> bit == 1) {
            let bytes = pieces.several(fold.kept(member, bit + 1));
            network.send(process(member), process(member ^ (1 << bit)), bytes);
        }
    }
}

/// Two rings: the first reduces every piece, the second distributes the results: 2 · P · (P − 1) messages,
/// reported as two rounds. Patarasuk and Yuan, "Bandwidth Optimal All-reduce Algorithms for Clusters of
/// Workstations", JPDC 69(2), 2009.
pub(crate) fn all_reduce_in_rings(pieces: &Blocks, network: &mut Network<impl FnMut(u32, Edge)>) {
    network.round(0);
    network::around(pieces, 1, network);
    network.next_part();
    network::around(pieces, 2, network);
}

/// Partners over the distances …, 4, 2, 1 exchange the blocks of the processes on the other's side: 2ᵏ · k
/// messages and two per dropped process.
pub(crate) fn reduce_scatter_by_halving(blocks: &Blocks, network: &mut Network<impl FnMut(u32, Edge)>) {
    let fold = Fold::new(network.processes(), true);
    fold.fold(blocks.several(0..blocks.count()), network);
    for (round, distance) in (0..).zip(powers(fold.halvings).rev()) {
        network.round(round);
        for member in 0..fold.members() {
            let partner = member ^ distance;
            let first = partner & !(distance - 1);
            let bytes = blocks.several(fold.first(first)..fold.first(first + distance));
            network.send(fold.process(member), fold.process(partner), bytes);
        }
    }
    network.next_part();
    for member in 0..fold.excess {
        let left_out = fold.left_out(member);
        network.send(fold.process(member), left_out, blocks.one(left_out));
    }
}

/// Every block is reduced around a ring that ends at its owner: P · (P − 1) messages, reported as one round.
pub(crate) fn reduce_scatter_in_ring(blocks: &Blocks, network: &mut Network<impl FnMut(u32, Edge)>) {
    network.round(0);
    network::around(blocks, 0, network);
}

/// Processes exchange over the distances 1, 2, 4, … what the other side lacks: everything but the blocks of
/// the own side. `reduce_scatter_block_intra_recursivedoubling` of Open MPI.
pub(crate) fn reduce_scatter_by_doubling(blocks: &Blocks, network: &mut Network<impl FnMut(u32, Edge)>) {
    let others = |group: Range<u32>| {
        blocks.several(0..group.start).saturating_add(blocks.several(group.end..blocks.count()))
    };
    network::exchange_by_doubling(others, network);
}

/// Partners over the distances 1, 2, 4, … exchange halves, so the result of every member is at the process
/// with its bits in reverse order, which sends it on. With 2ᵏ processes, blocks of equal length may be in that
/// order from the start. Träff, "An Improved Algorithm for (Non-commutative) Reduce-Scatter with an
/// Application", EuroPVM/MPI 2005.
pub(crate) fn reduce_scatter_by_butterfly(
    blocks: &Blocks,
    reordered: bool,
    network: &mut Network<impl FnMut(u32, Edge)>,
) {
    let fold = Fold::new(network.processes(), true);
    let mirror = |member: u32| member.reverse_bits() >> (u32::BITS - fold.halvings);
    if reordered && fold.excess == 0 {
        return fold.halve(&Blocks::of((0..fold.members()).map(|place| blocks.one(mirror(place)))), network);
    }
    fold.fold(blocks.several(0..blocks.count()), network);
    let of_member = |member| blocks.several(fold.first(member)..fold.first(member + 1));
    fold.halve(&Blocks::of((0..fold.members()).map(of_member)), network);
    for member in 0..fold.excess {
        let left_out = fold.left_out(member);
        network.send(fold.process(mirror(member)), left_out, blocks.one(left_out));
    }
    network.next_part();
    for member in (0..fold.members()).filter(|&member| mirror(member) != member) {
        let owner = fold.process(member);
        network.send(fold.process(mirror(member)), owner, blocks.one(owner));
    }
}

/// `MPI_Scan` and `MPI_Exscan`: processes exchange partial results over the distances 1, 2, 4, …, as far as
/// a partner exists. The chain of [`network::chain`] gives the same result.
pub(crate) fn scan(bytes: u64, network: &mut Network<impl FnMut(u32, Edge)>) {
    for (round, distance) in (0..).zip(network.distances()) {
        network.round(round);
        for process in 0..network.processes() {
            let partner = process ^ distance;
            if partner < network.processes() {
                network.send(process, partner, bytes);
            }
        }
    }
}
