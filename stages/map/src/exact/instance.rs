//! The weights and costs of a problem as matrices.

use hopmap_objective::Problem;

/// Ranks that send or receive, and all slots: where the other ranks are costs nothing.
///
/// The only place that reads a [`Problem`]. What two ranks cost together is [`pair`](Self::pair), in units of
/// [`unit`](Self::unit), the largest number that surely divides every cost.
#[derive(Debug)]
pub(super) struct Instance<'p> {
    problem: &'p Problem,
    /// The ranks that send or receive.
    active: Vec<u32>,
    /// Weights of all pairs of them, row by row.
    weights: Vec<i64>,
    /// Costs of all pairs of slots, row by row.
    costs: Vec<i64>,
    slots: usize,
    unit: i64,
}

impl<'p> Instance<'p> {
    pub(super) fn new(problem: &'p Problem) -> Self {
        let active: Vec<u32> =
            (0..problem.ranks() as u32).filter(|&rank| !problem.neighbours(rank).is_empty()).collect();
        let mut row_of = vec![0; problem.ranks()];
        active.iter().enumerate().for_each(|(row, &rank)| row_of[rank as usize] = row);
        let mut weights = vec![0; active.len() * active.len()];
        for (row, &rank) in active.iter().enumerate() {
            for neighbour in problem.neighbours(rank) {
                weights[row * active.len() + row_of[neighbour.rank as usize]] = neighbour.weight;
            }
        }
        let slots = problem.slots();
        let all = 0..slots as u32;
        let distance = problem.distance();
        let mut costs: Vec<i64> =
            all.clone().flat_map(|a| all.clone().map(move |b| distance.cost(a, b))).collect();
        let unit = divide(&mut weights) * divide(&mut costs);
        Self { problem, active, weights, costs, slots, unit }
    }

    /// Number of ranks that send or receive.
    pub(super) fn ranks(&self) -> usize {
        self.active.len()
    }

    pub(super) fn slots(&self) -> usize {
        self.slots
    }

    pub(super) fn unit(&self) -> i64 {
        self.unit
    }

    /// What a pair of ranks costs on two slots.
    pub(super) fn pair(&self, ranks: [usize; 2], slots: [usize; 2]) -> i64 {
        let [i, j] = ranks;
        let [k, l] = slots;
        self.weights[i * self.active.len() + j] * self.costs[k * self.slots + l]
    }

    /// The weights of all pairs of ranks, row by row.
    pub(super) fn weights(&self) -> &[i64] {
        &self.weights
    }

    /// The costs of all pairs of slots, row by row.
    pub(super) fn costs(&self) -> &[i64] {
        &self.costs
    }

    /// What a placement of all ranks costs.
    pub(super) fn cost(&self, slots: &[u32]) -> i64 {
        self.problem.cost(slots) / self.unit
    }

    /// Places the ranks that neither send nor receive on the slots that are left.
    pub(super) fn complete(&self, slots: &[u32]) -> Vec<u32> {
        let mut taken = vec![false; self.slots];
        let mut of_rank = vec![None; self.problem.ranks()];
        for (&rank, &slot) in self.active.iter().zip(slots) {
            taken[slot as usize] = true;
            of_rank[rank as usize] = Some(slot);
        }
        let mut free = (0..self.slots as u32).filter(|&slot| !taken[slot as usize]);
        of_rank.into_iter().filter_map(|slot| slot.or_else(|| free.next())).collect()
    }
}

/// Divides numbers by the largest one that divides them all, and returns it; one if all are zero.
fn divide(values: &mut [i64]) -> i64 {
    let mut unit = 0i64;
    for &value in values.iter() {
        let mut other = value;
        while other != 0 {
            (unit, other) = (other, unit % other);
        }
    }
    let unit = unit.max(1);
    values.iter_mut().for_each(|value| *value /= unit);
    unit
}
