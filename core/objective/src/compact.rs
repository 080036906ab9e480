//! A mapping problem as a dense one, where many ranks send to many others.

use crate::adjacency::{Adjacency, Directed};
use crate::distance::divisor;
use crate::{Dense, DenseAssignment, Distance, Matrix, ObjectiveError};

/// Most slots of which all pairs are stored.
const MOST_SLOTS: usize = 2048;

/// The weights and costs of a problem in small integers.
#[derive(Debug, Clone)]
pub(crate) struct Compact {
    dense: Dense,
    /// What F of the dense problem is multiplied by.
    unit: i64,
    /// One where the dense problem counts both directions of every pair, so that its F has to be halved.
    doubled: u32,
}

impl Compact {
    /// `None` where visiting neighbours one by one is faster, or the numbers are too large.
    pub(crate) fn new(neighbours: &Adjacency, distance: &Distance) -> Option<Self> {
        let size = Size {
            neighbours: neighbours.all().len(),
            ranks: neighbours.ranks(),
            slots: distance.order().len(),
        };
        let cost = |at: usize| distance.cost((at / size.slots) as u32, (at % size.slots) as u32);
        let weights = || neighbours.entries().collect();
        size.pays(1).then(|| Self::of(size, weights(), cost, distance.unit(), 1)).flatten()
    }

    /// The same where every ordered pair counts.
    pub(crate) fn directed(directed: &Directed) -> Option<Self> {
        let (ranks, slots) = (directed.ranks(), directed.slots());
        let weights: Vec<_> = directed.entries().collect();
        let size = Size { neighbours: weights.len(), ranks, slots };
        let unit = directed.costs().iter().fold(0, |unit, &cost| divisor(unit, cost));
        size.pays(1).then(|| Self::of(size, weights, |at| directed.costs()[at], unit, 0)).flatten()
    }

    fn of(
        size: Size,
        mut weights: Vec<(u32, u32, i64)>,
        cost: impl Fn(usize) -> i64,
        cost_unit: i64,
        doubled: u32,
    ) -> Option<Self> {
        let weight_unit = weights.iter().fold(0, |unit, entry| divisor(unit, entry.2));
        if weight_unit == 0 || cost_unit == 0 {
            return None;
        }
        weights.iter_mut().for_each(|entry| entry.2 /= weight_unit);
        let weights = Matrix::sparse(size.ranks, weights).ok()?;
        let costs = (0..size.slots * size.slots).map(|at| cost(at) / cost_unit).collect();
        let dense = Dense::new(&weights, &Matrix::dense(size.slots, costs).ok()?).ok()?;
        let unit = weight_unit.checked_mul(cost_unit)?;
        let fast = dense.has_vectors() && size.pays(dense.bytes());
        fast.then_some(Self { dense, unit, doubled })
    }
}

/// How large a problem is.
#[derive(Clone, Copy)]
struct Size {
    /// Neighbours of all ranks together.
    neighbours: usize,
    ranks: usize,
    slots: usize,
}

impl Size {
    /// Whether rows of so many bytes per slot are faster than neighbours one by one: where a rank has a quarter of all slots
    /// as neighbours, on average; wider numbers take more (measured; annealing also has to keep the rows in order).
    fn pays(self, bytes: usize) -> bool {
        self.slots <= MOST_SLOTS && 16 * self.neighbours >= self.ranks * self.slots * (3 + bytes)
    }
}

/// A placement of a compact problem.
#[derive(Debug, Clone)]
pub(crate) struct CompactAssignment<'p> {
    assignment: DenseAssignment<'p>,
    /// The rank on every slot; on a free one, one that sends nothing.
    ranks: Vec<u32>,
    unit: i64,
    doubled: u32,
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
        let assignment = DenseAssignment::new(&problem.dense, &all)?;
        Ok(Self { assignment, ranks, unit: problem.unit, doubled: problem.doubled })
    }

    #[inline]
    pub(crate) fn delta(&self, rank: u32, slot: u32) -> i64 {
        // An even number where it is halved.
        (self.assignment.delta(rank, self.ranks[slot as usize]) >> self.doubled) * self.unit
    }

    pub(crate) fn exchange(&mut self, rank: u32, slot: u32) {
        let own = self.assignment.slots()[rank as usize];
        let other = self.ranks[slot as usize];
        self.assignment.exchange(rank, other, 0);
        self.ranks[slot as usize] = rank;
        self.ranks[own as usize] = other;
    }
}
