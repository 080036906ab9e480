//! Weight and cost matrices of a problem.

use hopmap_objective::{OrderedPairs, Problem};

/// Communicating ranks, and all slots; the slots of other ranks do not affect the cost.
///
/// The only code that reads a [`Problem`]. The cost of a rank is [`own`](Self::own), that of two ranks
/// [`pair`](Self::pair), in units of [`unit`](Self::unit), the largest known common divisor of all costs.
#[derive(Debug)]
pub(super) struct Instance<'p> {
    problem: &'p Problem,
    /// The communicating ranks; all ranks if there are constraints.
    active: Vec<u32>,
    /// The place of every rank of the problem among them.
    row_of: Vec<usize>,
    /// Their weight matrix, row by row.
    pub(super) weights: Vec<i64>,
    /// Cost matrix of the slots, row by row.
    pub(super) costs: Vec<i64>,
    pub(super) slots: usize,
    pub(super) unit: i64,
    /// Whether every ordered pair costs a product of its own, with the diagonals; otherwise every pair costs
    /// one.
    pub(super) is_directed: bool,
}

impl<'p> Instance<'p> {
    pub(super) fn new(problem: &'p Problem) -> Self {
        let active = match problem.is_constrained() {
            // Others may need the slots of silent ranks.
            true => (0..problem.ranks() as u32).collect(),
            false => problem.movable().to_vec(),
        };
        let mut row_of = vec![0; problem.ranks()];
        active.iter().enumerate().for_each(|(row, &rank)| row_of[rank as usize] = row);
        let mut weights = vec![0; active.len() * active.len()];
        let mut set = |(source, destination, weight): (u32, u32, i64)| {
            weights[row_of[source as usize] * active.len() + row_of[destination as usize]] = weight;
        };
        let slots = problem.slots();
        let ordered = problem.ordered_pairs();
        let is_directed = ordered.is_some();
        let mut costs: Vec<i64> = match ordered {
            Some(_) if active.is_empty() => vec![0; slots * slots],
            Some(OrderedPairs { weights, costs }) => {
                weights.into_iter().for_each(set);
                costs.to_vec()
            }
            None => {
                for &rank in &active {
                    problem.neighbours(rank).iter().for_each(|n| set((rank, n.rank, n.weight)));
                }
                let all = 0..slots as u32;
                let cost = |a, b| problem.distance().cost(a, b);
                all.clone().flat_map(|a| all.clone().map(move |b| cost(a, b))).collect()
            }
        };
        let unit = divide(&mut weights) * divide(&mut costs);
        Self { problem, active, row_of, weights, costs, slots, unit, is_directed }
    }

    /// Number of communicating ranks.
    pub(super) fn ranks(&self) -> usize {
        self.active.len()
    }

    /// The rank of the problem.
    pub(super) fn rank(&self, row: usize) -> u32 {
        self.active[row]
    }

    /// The same values by ranks of the instance.
    pub(super) fn rows<V>(&self, of_ranks: impl Iterator<Item = (u32, V)>) -> Vec<(u32, V)> {
        of_ranks.map(|(rank, value)| (self.row_of[rank as usize] as u32, value)).collect()
    }

    /// The slots of the communicating ranks among those of all ranks.
    pub(super) fn active(&self, slots: &[u32]) -> Vec<u32> {
        self.active.iter().map(|&rank| slots[rank as usize]).collect()
    }

    /// Cost of a pair of ranks on two slots.
    pub(super) fn pair(&self, ranks: [usize; 2], slots: [usize; 2]) -> i64 {
        let [i, j] = ranks;
        let [k, l] = slots;
        let product = |i, j, k, l| self.weights[i * self.active.len() + j] * self.costs[k * self.slots + l];
        let back = if self.is_directed { product(j, i, l, k) } else { 0 };
        product(i, j, k, l) + back
    }

    /// Cost of a rank on a slot with itself.
    pub(super) fn own(&self, rank: usize, slot: usize) -> i64 {
        match self.is_directed {
            true => self.weights[rank * self.active.len() + rank] * self.costs[slot * self.slots + slot],
            false => 0,
        }
    }

    /// Whether ranks are pinned or hosts forbidden.
    pub(super) fn is_constrained(&self) -> bool {
        self.problem.is_constrained()
    }

    /// Whether a rank may use a slot.
    pub(super) fn admits(&self, rank: usize, slot: usize) -> bool {
        self.problem.admits(self.active[rank], slot as u32)
    }

    /// Cost of a mapping of all ranks.
    pub(super) fn cost(&self, slots: &[u32]) -> i64 {
        self.problem.cost(slots) / self.unit
    }

    /// Maps silent ranks to the remaining slots.
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

/// Divides numbers by their greatest common divisor and returns it; one if all are zero.
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
