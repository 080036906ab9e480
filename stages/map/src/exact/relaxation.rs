//! Relaxations of a quadratic assignment problem and their lower bounds by dual ascent.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::instance::Instance;
use super::linear::{Linear, Number};

/// Powers of two by which costs are scaled, so that they can be divided.
#[derive(Debug, Clone, Copy)]
pub(super) struct Scale {
    shift: i32,
}

impl Scale {
    /// The largest at which a cost still fits.
    pub(super) fn of<T: Number>(cost: i64) -> Self {
        let bits = i64::BITS - cost.leading_zeros();
        Self { shift: T::BITS.cast_signed() - bits.cast_signed() }
    }

    /// A scaled cost, rounded down.
    pub(super) fn up(self, cost: i64) -> i64 {
        if self.shift >= 0 { cost << self.shift } else { cost >> -self.shift }
    }

    /// The smallest cost that scales to at least a value.
    pub(super) fn down(self, value: i64) -> i64 {
        if self.shift >= 0 { (value + (1 << self.shift) - 1) >> self.shift } else { value << -self.shift }
    }

    /// Whether the scaling keeps several digits of the smallest costs.
    pub(super) fn is_fine(self) -> bool {
        self.shift >= 4
    }
}

/// The rest of a problem after some ranks are assigned: rows are the other ranks, columns the free slots.
///
/// F is `bound` plus the leader of every row on its column plus the pair of every two rows on theirs (Adams
/// and Johnson 1994; Hahn and Grant 1998), or more for clamped values. No term is negative, so `bound` is a
/// lower bound of F.
#[derive(Debug, Clone)]
pub(super) struct Relaxation<T> {
    /// Rank of every row.
    pub(super) rows: Vec<u32>,
    /// Slot of every column.
    pub(super) columns: Vec<u32>,
    /// Leaders: cost of a row on a column, row by row.
    pub(super) leaders: Vec<T>,
    /// Pair costs of row i on column k and row j > i on column l: one block per (i, j), ordered by k.
    pub(super) pairs: Vec<T>,
    pub(super) bound: T,
    /// The ranks assigned so far, in order.
    pub(super) path: Vec<Step>,
}

/// A rank assigned to a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(super) struct Step {
    pub(super) rank: u32,
    pub(super) slot: u32,
    /// Cost of the incumbent at that time, on which the relaxation depends.
    pub(super) limit: i64,
}

impl Step {
    /// Rank and slot.
    pub(super) fn choice(&self) -> (u32, u32) {
        (self.rank, self.slot)
    }
}

/// An open branch: a relaxation with one more row to assign.
#[derive(Debug, Clone)]
pub(super) struct Branch<T> {
    pub(super) parent: Arc<Relaxation<T>>,
    pub(super) row: usize,
    pub(super) column: usize,
    /// Its lower bound.
    pub(super) bound: T,
    /// Whether ranks and slots may still have symmetries.
    pub(super) alike: [bool; 2],
}

impl<T> Branch<T> {
    /// Rank and slot.
    pub(super) fn choice(&self) -> (u32, u32) {
        (self.parent.rows[self.row], self.parent.columns[self.column])
    }
}

/// Index of the block of rows i < j.
pub(super) fn block(i: usize, j: usize, rows: usize) -> usize {
    i * (2 * rows - i - 1) / 2 + j - i - 1
}

impl<T: Number> Relaxation<T> {
    /// The root. Pairs and ranks that cost `limit` or more, or violate a constraint, are infeasible.
    pub(super) fn new(instance: &Instance<'_>, scale: Scale, limit: i64) -> Self {
        let (rows, columns) = (instance.ranks(), instance.slots);
        let scaled = |cost| if cost >= limit { T::IMPOSSIBLE } else { T::of(scale.up(cost)) };
        let own = |at: usize| scaled(instance.own(at / columns, at % columns));
        let mut pairs = Vec::with_capacity(rows * (rows - 1) / 2 * columns * columns);
        for i in 0..rows {
            for j in i + 1..rows {
                for k in 0..columns {
                    let pair = |l| instance.pair([i, j], [k, l]);
                    pairs.extend((0..columns).map(|l| if k == l { T::IMPOSSIBLE } else { scaled(pair(l)) }));
                }
            }
        }
        let mut root = Self {
            rows: (0..rows as u32).collect(),
            columns: (0..columns as u32).collect(),
            leaders: (0..rows * columns).map(own).collect(),
            pairs,
            bound: T::ZERO,
            path: Vec::new(),
        };
        let all = (0..rows).flat_map(|row| (0..columns).map(move |column| (row, column)));
        all.filter(|&(row, column)| !instance.admits(row, column))
            .for_each(|(row, column)| root.forbid(row, column));
        root
    }

    /// The pairs of rows i < j, column by column of i.
    pub(super) fn block(&self, i: usize, j: usize) -> &[T] {
        let size = self.columns.len() * self.columns.len();
        &self.pairs[block(i, j, self.rows.len()) * size..][..size]
    }

    fn block_mut(&mut self, i: usize, j: usize) -> &mut [T] {
        let size = self.columns.len() * self.columns.len();
        let at = block(i, j, self.rows.len()) * size;
        &mut self.pairs[at..][..size]
    }

    /// The relaxation after assigning a row to a column, with an incumbent of this cost.
    pub(super) fn fix(&self, row: usize, column: usize, limit: i64) -> Self {
        let (rows, columns) = (self.rows.len(), self.columns.len());
        let kept_rows = || (0..rows).filter(|&other| other != row);
        let mut leaders = Vec::with_capacity((rows - 1) * (columns - 1));
        for other in kept_rows() {
            let begin = leaders.len();
            self.with(row, column, other, &mut leaders);
            leaders.remove(begin + column);
        }
        let mut pairs = Vec::with_capacity((rows - 1) * rows.saturating_sub(2) / 2 * (columns - 1).pow(2));
        for i in kept_rows() {
            for j in kept_rows().filter(|&j| j > i) {
                for (k, values) in self.block(i, j).chunks_exact(columns).enumerate() {
                    if k != column {
                        pairs.extend_from_slice(&values[..column]);
                        pairs.extend_from_slice(&values[column + 1..]);
                    }
                }
            }
        }
        let without = |values: &[u32], at: usize| {
            let mut values = values.to_vec();
            values.remove(at);
            values
        };
        let mut path = self.path.clone();
        path.push(Step { rank: self.rows[row], slot: self.columns[column], limit });
        Self {
            rows: without(&self.rows, row),
            columns: without(&self.columns, column),
            leaders,
            pairs,
            bound: self.bound + self.leaders[row * columns + column],
            path,
        }
    }

    /// Appends the leaders of another row after a row is assigned to a column.
    pub(super) fn with(&self, row: usize, column: usize, other: usize, list: &mut Vec<T>) {
        let columns = self.columns.len();
        let leaders = self.leaders[other * columns..][..columns].iter();
        if row < other {
            let pairs = &self.block(row, other)[column * columns..][..columns];
            list.extend(leaders.zip(pairs).map(|(&leader, &pair)| leader.join(pair)));
        } else {
            let pairs = self.block(other, row)[column..].iter().step_by(columns);
            list.extend(leaders.zip(pairs).map(|(&leader, &pair)| leader.join(pair)));
        }
    }

    /// Excludes a row from a column.
    pub(super) fn forbid(&mut self, row: usize, column: usize) {
        let (rows, columns) = (self.rows.len(), self.columns.len());
        self.leaders[row * columns + column] = T::IMPOSSIBLE;
        for other in 0..row {
            let block = self.block_mut(other, row);
            block[column..].iter_mut().step_by(columns).for_each(|pair| *pair = T::IMPOSSIBLE);
        }
        for other in row + 1..rows {
            self.block_mut(row, other)[column * columns..][..columns].fill(T::IMPOSSIBLE);
        }
    }
}

/// Dual ascent, which raises bounds and reuses its memory.
///
/// A sweep visits every row on every column: its leader is distributed to the other rows, its pairs are
/// reduced by the cheapest assignment of the other rows, and that cost is added to its leader. Then the
/// leaders are reduced in the same way, by which the bound rises (Hahn and Grant 1998, Lower bounds for the
/// quadratic assignment problem based upon a dual formulation). Unlike there, a row takes only half of the
/// cost shared with rows later in the sweep; taking all gave much weaker bounds.
#[derive(Debug, Default)]
pub(super) struct Ascent<T> {
    linear: Linear<T>,
    matrix: Vec<T>,
    shares: Vec<T>,
}

/// Stopping criteria.
#[derive(Debug, Clone, Copy)]
pub(super) struct Patience {
    /// Maximum number of double sweeps.
    pub(super) sweeps: u32,
    /// Sweeps in which the gap must close at the current rate.
    pub(super) horizon: i64,
}

impl<T: Number> Ascent<T> {
    /// Raises the bound until it exceeds `most` or progress stalls; `false` if no mapping costs at most
    /// `most`.
    pub(super) fn raise(
        &mut self,
        relaxation: &mut Relaxation<T>,
        most: T,
        patience: Patience,
        stop: impl Fn() -> bool,
    ) -> bool {
        if !self.reduce_leaders(relaxation, most) {
            return false;
        }
        for _ in 0..patience.sweeps / 2 {
            let before = relaxation.bound;
            for forward in [true, false] {
                self.share_leaders(relaxation, forward);
                self.sweep(relaxation, most, forward);
                if !self.reduce_leaders(relaxation, most) {
                    return false;
                }
            }
            forbid_costly(relaxation, most);
            let gain = (relaxation.bound - before).wide();
            if gain * patience.horizon < 2 * (most - relaxation.bound).wide() || stop() {
                return true;
            }
        }
        true
    }

    /// The column of every row in the last minimum assignment of the leaders.
    pub(super) fn columns(&self) -> &[u32] {
        self.linear.columns()
    }

    /// Minimum cost of a row on a column above the bound.
    pub(super) fn look_ahead(&mut self, relaxation: &Relaxation<T>, row: usize, column: usize) -> T {
        let columns = relaxation.columns.len();
        let leader = relaxation.leaders[row * columns + column];
        if leader >= T::HALF {
            return leader;
        }
        self.matrix.clear();
        for other in (0..relaxation.rows.len()).filter(|&other| other != row) {
            let at = self.matrix.len();
            relaxation.with(row, column, other, &mut self.matrix);
            self.matrix[at + column] = T::IMPOSSIBLE;
        }
        if self.matrix.is_empty() {
            return leader;
        }
        self.linear
            .solve(&mut self.matrix, columns, relaxation.rows.len() == columns)
            .map_or(T::IMPOSSIBLE, |value| leader + value)
    }

    /// Adds the minimum assignment of the leaders to the bound; `false` if the bound exceeds `most`.
    fn reduce_leaders(&mut self, relaxation: &mut Relaxation<T>, most: T) -> bool {
        let columns = relaxation.columns.len();
        let Some(value) =
            self.linear.reduce(&mut relaxation.leaders, columns, relaxation.rows.len() == columns)
        else {
            return false;
        };
        relaxation.bound += value;
        for leader in relaxation.leaders.iter_mut().filter(|leader| **leader >= T::HALF) {
            *leader = T::IMPOSSIBLE;
        }
        relaxation.bound <= most
    }

    /// Distributes every leader over its pairs with the other rows. `upright` if no block is transposed.
    fn share_leaders(&mut self, relaxation: &mut Relaxation<T>, upright: bool) {
        let (rows, columns) = (relaxation.rows.len(), relaxation.columns.len());
        if rows == 1 {
            return;
        }
        let others = T::count(rows - 1);
        self.shares.clear();
        for leader in &mut relaxation.leaders {
            let share = if *leader >= T::HALF { T::ZERO } else { *leader / others };
            (1..rows).for_each(|_| *leader -= share);
            self.shares.push(share);
        }
        let of_row = |row: usize| &self.shares[row * columns..][..columns];
        let mut blocks = relaxation.pairs.chunks_exact_mut(columns * columns);
        for i in 0..rows {
            for (j, block) in (i + 1..rows).zip(&mut blocks) {
                let (outer, inner) = if upright { (of_row(i), of_row(j)) } else { (of_row(j), of_row(i)) };
                for (pairs, &share) in block.chunks_exact_mut(columns).zip(outer) {
                    pairs.iter_mut().zip(inner).for_each(|(pair, &other)| *pair += share + other);
                }
            }
        }
    }

    /// Visits all rows on all columns. A forward sweep leaves every block transposed, a backward sweep
    /// restores it.
    fn sweep(&mut self, relaxation: &mut Relaxation<T>, most: T, forward: bool) {
        let rows = relaxation.rows.len();
        let gap = most - relaxation.bound;
        for step in 0..rows {
            let row = if forward { step } else { rows - 1 - step };
            let turned = if forward { 0..row } else { row + 1..rows };
            turned.for_each(|other| transpose(relaxation, row.min(other), row.max(other)));
            for column in 0..relaxation.columns.len() {
                self.raise_leader(relaxation, gap, [row, column], forward);
            }
        }
    }

    /// Raises the leader of a row on a column. The blocks of the row hold its columns contiguously.
    ///
    /// Takes only half of the pairs with rows later in the sweep.
    fn raise_leader(&mut self, relaxation: &mut Relaxation<T>, gap: T, place: [usize; 2], forward: bool) {
        let (rows, columns) = (relaxation.rows.len(), relaxation.columns.len());
        let [row, column] = place;
        let leader = relaxation.leaders[row * columns + column];
        if leader >= T::HALF || rows == 1 {
            return;
        }
        let begin = |other: usize| (block(row.min(other), row.max(other), rows) * columns + column) * columns;
        let later = |other: usize| (other > row) == forward;
        let others = || (0..rows).filter(|&other| other != row);
        self.matrix.clear();
        for other in others() {
            let pairs = &relaxation.pairs[begin(other)..][..columns];
            match later(other) {
                true => self.matrix.extend(pairs.iter().map(|&pair| pair.taken())),
                false => self.matrix.extend_from_slice(pairs),
            }
        }
        let value = self.linear.reduce(&mut self.matrix, columns, rows == columns);
        let raised = value.map(|value| leader + value).filter(|&raised| raised <= gap);
        relaxation.leaders[row * columns + column] = raised.unwrap_or(T::IMPOSSIBLE);
        for (other, reduced) in others().zip(self.matrix.chunks_exact(columns)) {
            let pairs = &mut relaxation.pairs[begin(other)..][..columns];
            let possible = |cost| if cost > gap { T::IMPOSSIBLE } else { cost };
            match (raised, later(other)) {
                // If the row is infeasible here, so are all its pairs.
                (None, _) => pairs.fill(T::IMPOSSIBLE),
                (_, true) => {
                    let left = |pair: T, cost| possible(pair - pair.taken() + cost);
                    pairs.iter_mut().zip(reduced).for_each(|(pair, &cost)| *pair = left(*pair, cost));
                }
                (_, false) => pairs.iter_mut().zip(reduced).for_each(|(pair, &cost)| *pair = possible(cost)),
            }
        }
    }
}

/// Excludes columns on which the row alone costs too much.
fn forbid_costly<T: Number>(relaxation: &mut Relaxation<T>, most: T) {
    let columns = relaxation.columns.len();
    let gap = most - relaxation.bound;
    for at in 0..relaxation.leaders.len() {
        if (gap + T::count(1)..T::HALF).contains(&relaxation.leaders[at]) {
            relaxation.forbid(at / columns, at % columns);
        }
    }
}

/// Transposes the block of rows i < j.
fn transpose<T: Number>(relaxation: &mut Relaxation<T>, i: usize, j: usize) {
    let columns = relaxation.columns.len();
    let size = columns * columns;
    let at = block(i, j, relaxation.rows.len()) * size;
    let block = &mut relaxation.pairs[at..][..size];
    for k in 0..columns {
        for l in 0..k {
            block.swap(k * columns + l, l * columns + k);
        }
    }
}
