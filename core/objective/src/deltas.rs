//! Deltas of all exchanges of a mapping, updated incrementally.

use crate::adjacency::{Direction, Neighbour};
use crate::assignment::Assignment;
use crate::dense::{Token, add_products};
use crate::problem::Problem;

/// A mapping and the deltas of all its exchanges.
///
/// After an exchange, the deltas of all other pairs change by one product each (Taillard 1991, Robust taboo
/// search for the quadratic assignment problem, equation 3; Frieze, Yadegar, El-Horbaty and Parkinson 1989),
/// or by two, one per direction, if neither weights nor costs are symmetric (Burkard and Rendl 1984). Those
/// of the exchanged two are recomputed. If the objective is not a sum over pairs, all are recomputed.
///
/// Exchanges are between units: first the movers, which are the ranks whose slot affects the cost, in order,
/// then other ranks and free slots, which cost nothing anywhere. There are as many units as slots.
#[derive(Debug, Clone)]
pub struct Deltas<'p> {
    assignment: Assignment<'p>,
    /// Rank of every mover.
    movers: Vec<u32>,
    /// Mover of every rank; the number of units for other ranks.
    unit_of: Vec<u32>,
    /// Slot of every unit.
    slots: Vec<u32>,
    /// By mover and unit; only the part right of the diagonal is used.
    values: Vec<i64>,
    /// No value of a row is below this.
    least: Vec<i64>,
    change: Change,
}

/// Effect of an exchange on every unit.
#[derive(Debug, Clone)]
struct Change {
    /// Its weight with the first of the two, minus that with the second.
    weights: Vec<i64>,
    /// Its cost to the former slot of the first, minus that to the former slot of the second.
    costs: Vec<i64>,
    /// The units whose weights differ.
    neighbours: Vec<u32>,
    /// Weights and costs for vectors, if all are small.
    narrow: [Vec<i32>; 2],
}

/// Bound of numbers whose differences fit 31 bits.
const NARROW: u64 = 1 << 30;

impl Change {
    /// Copies weights and costs for vectors; `false` if some are too large.
    fn narrow(&mut self) -> bool {
        let Self { weights, costs, narrow: [narrow_weights, narrow_costs], .. } = self;
        let is_small = |value: &i64| value.unsigned_abs() < NARROW;
        let fits = weights.iter().all(is_small) && costs.iter().all(is_small);
        if fits {
            for (narrow, wide) in [(narrow_weights, weights), (narrow_costs, costs)] {
                narrow.clear();
                narrow.extend(wide.iter().map(|&value| value as i32));
            }
        }
        fits
    }

    /// Records the weights of units with the first or the second as neighbour.
    fn note_weights<'p>(
        &mut self,
        movers: &[u32],
        unit_of: &[u32],
        exchanged: [usize; 2],
        neighbours_of: impl Fn(u32) -> &'p [Neighbour],
    ) {
        let Self { weights, neighbours, .. } = self;
        neighbours.drain(..).for_each(|unit| weights[unit as usize] = 0);
        for (unit, sign) in exchanged.into_iter().zip([1, -1]) {
            for neighbour in movers.get(unit).map_or(&[][..], |&rank| neighbours_of(rank)) {
                let other = unit_of[neighbour.rank as usize];
                weights[other as usize] += sign * neighbour.weight;
                neighbours.push(other);
            }
        }
        neighbours.sort_unstable();
        neighbours.dedup();
        neighbours.retain(|&unit| weights[unit as usize] != 0);
    }
}

impl<'p> Deltas<'p> {
    /// Number of deltas: of two movers, or of a mover and another unit.
    #[must_use]
    pub fn pairs(problem: &Problem) -> u64 {
        let movers = problem.movable().len() as u64;
        movers * movers.saturating_sub(1) / 2 + movers * (problem.slots() as u64 - movers)
    }

    /// Number of stored values.
    #[must_use]
    pub fn stored(problem: &Problem) -> u64 {
        problem.movable().len() as u64 * problem.slots() as u64
    }

    /// Computes all deltas; `None` if `more`, called before each row with its number of deltas, returns
    /// false.
    pub fn new(assignment: Assignment<'p>, mut more: impl FnMut(u64) -> bool) -> Option<Self> {
        let mut deltas = Self::unknown(assignment);
        let units = deltas.slots.len();
        for mover in 0..deltas.movers.len() {
            if !more((units - mover - 1) as u64) {
                return None;
            }
            deltas.compute_row(mover);
        }
        Some(deltas)
    }

    /// Computes all deltas.
    #[must_use]
    pub fn of(assignment: Assignment<'p>) -> Self {
        let mut deltas = Self::unknown(assignment);
        (0..deltas.movers.len()).for_each(|mover| deltas.compute_row(mover));
        deltas
    }

    /// A mapping before its deltas are computed.
    fn unknown(assignment: Assignment<'p>) -> Self {
        let problem = assignment.problem();
        let movers = problem.movable().to_vec();
        let units = problem.slots();
        let mut unit_of = vec![units as u32; problem.ranks()];
        let mut is_taken = vec![false; units];
        let mut slots = Vec::with_capacity(units);
        for (unit, &rank) in movers.iter().enumerate() {
            unit_of[rank as usize] = unit as u32;
            slots.push(assignment.slot_of(rank));
            is_taken[assignment.slot_of(rank) as usize] = true;
        }
        slots.extend((0..units as u32).filter(|&slot| !is_taken[slot as usize]));
        let (weights, costs) = (vec![0; units], vec![0; units]);
        let change = Change { weights, costs, neighbours: Vec::new(), narrow: Default::default() };
        let values = vec![0; movers.len() * units];
        let least = vec![i64::MIN; movers.len()];
        Self { assignment, movers, unit_of, slots, values, least, change }
    }

    /// The mapping.
    #[must_use]
    pub fn assignment(&self) -> &Assignment<'p> {
        &self.assignment
    }

    /// Number of movers.
    #[must_use]
    pub fn movers(&self) -> usize {
        self.movers.len()
    }

    /// The slot of every unit.
    #[must_use]
    pub fn slots(&self) -> &[u32] {
        &self.slots
    }

    /// Changes of cost for exchanges of a mover with each later unit, whether or not constraints
    /// [admit](Self::admits) them.
    #[must_use]
    pub fn row(&self, mover: usize) -> &[i64] {
        let units = self.slots.len();
        &self.values[mover * units..][mover + 1..units]
    }

    /// A lower bound of [`row`](Self::row), which spares a search most rows.
    #[must_use]
    pub fn least(&self, mover: usize) -> i64 {
        self.least[mover]
    }

    /// Whether constraints admit the exchange of a mover and a unit.
    #[inline]
    #[must_use]
    pub fn admits(&self, mover: usize, unit: usize) -> bool {
        let is_free = self.assignment.problem().admission.is_none();
        is_free || self.assignment.admits(self.movers[mover], self.slots[unit])
    }

    /// Exchanges a mover and a later unit.
    pub fn exchange(&mut self, mover: usize, unit: usize) {
        let delta = self.row(mover)[unit - mover - 1];
        self.assignment.exchange(self.movers[mover], self.slots[unit], delta);
        if !self.assignment.problem().is_quadratic() {
            self.slots.swap(mover, unit);
            (0..self.movers.len()).for_each(|mover| self.compute_row(mover));
            return;
        }
        if self.assignment.problem().directed.is_some() {
            for direction in [Direction::Sent, Direction::Received] {
                self.note_directed_change(direction, mover, unit);
                self.update();
            }
        } else {
            self.note_change(mover, unit);
            self.update();
        }
        self.slots.swap(mover, unit);
        self.compute(mover);
        self.compute(unit);
    }

    /// Records the effect of an exchange before it is made.
    fn note_change(&mut self, first: usize, second: usize) {
        let problem = self.assignment.problem();
        let neighbours = |rank| problem.neighbours(rank);
        self.change.note_weights(&self.movers, &self.unit_of, [first, second], neighbours);
        let distance = problem.distance();
        let [left, entered] = [first, second].map(|unit| distance.code(self.slots[unit]));
        for (cost, &slot) in self.change.costs.iter_mut().zip(&self.slots) {
            let code = distance.code(slot);
            *cost = distance.between(left, code) - distance.between(entered, code);
        }
    }

    /// The same for one direction.
    fn note_directed_change(&mut self, direction: Direction, first: usize, second: usize) {
        let Some(directed) = &self.assignment.problem().directed else { return };
        let neighbours = |rank| directed.neighbours(direction, rank);
        self.change.note_weights(&self.movers, &self.unit_of, [first, second], neighbours);
        let [left, entered] = [first, second].map(|unit| self.slots[unit]);
        for (cost, &slot) in self.change.costs.iter_mut().zip(&self.slots) {
            *cost = directed.cost(direction, left, slot) - directed.cost(direction, entered, slot);
        }
    }

    /// Updates the deltas of all pairs; valid only for those without the exchanged two.
    fn update(&mut self) {
        let units = self.slots.len();
        let is_sparse = self.change.neighbours.len() < units / 4;
        if !is_sparse && self.change.narrow() {
            let ([weights, costs], token) = (&self.change.narrow, Token::detect());
            for (mover, row) in self.values.chunks_exact_mut(units).enumerate() {
                let [weights, costs] = [weights, costs].map(|all| (all[mover], &all[mover + 1..]));
                self.least[mover] = add_products(token, &mut row[mover + 1..], weights, costs);
            }
            return;
        }
        self.least.fill(i64::MIN);
        let Change { weights, costs, neighbours, .. } = &self.change;
        for (mover, row) in self.values.chunks_exact_mut(units).enumerate() {
            let (weight, cost) = (weights[mover], costs[mover]);
            // Values of the exchanged two are invalid until recomputed, so they may wrap.
            let product =
                |other_weight: i64, other_cost: i64| (weight - other_weight).wrapping_mul(cost - other_cost);
            if weight == 0 && is_sparse {
                let after = neighbours.partition_point(|&unit| unit as usize <= mover);
                for &unit in &neighbours[after..] {
                    let unit = unit as usize;
                    row[unit] = row[unit].wrapping_add(product(weights[unit], costs[unit]));
                }
            } else {
                let changes = weights[mover + 1..].iter().zip(&costs[mover + 1..]);
                for (value, (&other_weight, &other_cost)) in row[mover + 1..].iter_mut().zip(changes) {
                    *value = value.wrapping_add(product(other_weight, other_cost));
                }
            }
        }
    }

    /// Recomputes all deltas of a unit.
    fn compute(&mut self, unit: usize) {
        let (movers, units) = (self.movers.len(), self.slots.len());
        for mover in 0..unit.min(movers) {
            let delta = self.assignment.unconstrained_delta(self.movers[mover], self.slots[unit]);
            self.values[mover * units + unit] = delta;
            self.least[mover] = self.least[mover].min(delta);
        }
        if unit < movers {
            self.compute_row(unit);
        }
    }

    /// Recomputes the deltas of a mover and all later units.
    fn compute_row(&mut self, mover: usize) {
        let (units, rank) = (self.slots.len(), self.movers[mover]);
        for unit in mover + 1..units {
            self.values[mover * units + unit] = self.assignment.unconstrained_delta(rank, self.slots[unit]);
        }
        self.least[mover] = self.row(mover).iter().copied().min().unwrap_or(i64::MAX);
    }
}
