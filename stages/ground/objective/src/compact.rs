//! A mapping problem as a dense one, where many ranks send to many others.

use crate::distance::divisor;
use crate::{Dense, DenseAssignment, Distance, Matrix, Neighbour, ObjectiveError};

/// Most slots of which all pairs are stored.
const MOST_SLOTS: usize = 2048;
/// The weights and costs of a problem in small integers.
#[derive(Debug, Clone)]
pub(crate) struct Compact {
    dense: Dense,
    /// What F of the dense problem is multiplied by. It counts both directions of every pair, so it is halved as well.
    unit: i64,
}

impl Compact {
    /// `None` where visiting neighbours one by one is faster, or the numbers are too large.
    pub(crate) fn new(first: &[usize], neighbours: &[Neighbour], distance: &Distance) -> Option<Self> {
        let (ranks, slots) = (first.len() - 1, distance.order().len());
        if slots > MOST_SLOTS || !pays(neighbours.len(), ranks, slots, 1) {
            return None;
        }
        let weight_unit = neighbours.iter().fold(0, |unit, neighbour| divisor(unit, neighbour.weight));
        let cost_unit = distance.unit();
        if weight_unit == 0 || cost_unit == 0 {
            return None;
        }
        let of_rank = |rank: usize| {
            let entry = move |n: &Neighbour| (rank as u32, n.rank, n.weight / weight_unit);
            neighbours[first[rank]..first[rank + 1]].iter().map(entry)
        };
        let weights = Matrix::sparse(ranks, (0..ranks).flat_map(of_rank).collect()).ok()?;
        let cost = |at: usize| distance.cost((at / slots) as u32, (at % slots) as u32) / cost_unit;
        let costs = Matrix::dense(slots, (0..slots * slots).map(cost).collect()).ok()?;
        let dense = Dense::new(&weights, &costs).ok()?;
        let unit = weight_unit.checked_mul(cost_unit)?;
        let fast = dense.has_vectors() && pays(neighbours.len(), ranks, slots, dense.bytes());
        fast.then_some(Self { dense, unit })
    }
}

/// Whether rows of so many bytes per slot are faster than neighbours one by one: where a rank has a quarter of all slots as
/// neighbours, on average; wider numbers take more (measured; annealing also has to keep the rows in order).
fn pays(neighbours: usize, ranks: usize, slots: usize, bytes: usize) -> bool {
    16 * neighbours >= ranks * slots * (3 + bytes)
}

/// A placement of a compact problem.
#[derive(Debug, Clone)]
pub(crate) struct CompactAssignment<'p> {
    assignment: DenseAssignment<'p>,
    /// The rank on every slot; on a free one, one that sends nothing.
    ranks: Vec<u32>,
    unit: i64,
}

impl<'p> CompactAssignment<'p> {
    /// Puts rank `i` on `slots[i]`, each on its own.
    pub(crate) fn new(problem: &'p Compact, slots: &[u32]) -> Result<Self, ObjectiveError> {
        let size = problem.dense.size();
        let mut taken = vec![false; size];
        slots.iter().for_each(|&slot| taken[slot as usize] = true);
        let free = (0..size as u32).filter(|&slot| !taken[slot as usize]);
        let all: Vec<u32> = slots.iter().copied().chain(free).collect();
        let mut ranks = vec![0; size];
        for (rank, &slot) in all.iter().enumerate() {
            ranks[slot as usize] = rank as u32;
        }
        Ok(Self { assignment: DenseAssignment::new(&problem.dense, &all)?, ranks, unit: problem.unit })
    }

    #[inline]
    pub(crate) fn delta(&self, rank: u32, slot: u32) -> i64 {
        self.assignment.delta(rank, self.ranks[slot as usize]) / 2 * self.unit
    }

    pub(crate) fn exchange(&mut self, rank: u32, slot: u32) {
        let own = self.assignment.slots()[rank as usize];
        let other = self.ranks[slot as usize];
        self.assignment.exchange(rank, other, 0);
        self.ranks[slot as usize] = rank;
        self.ranks[own as usize] = other;
    }
}
