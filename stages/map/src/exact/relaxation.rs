//! The level-1 reformulation of what is left of a problem.

use std::sync::Arc;

use super::instance::Instance;
use super::number::Number;

/// Powers of two that costs are multiplied by, so that they can be divided into shares.
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

    /// A cost, or a little less where it is too fine.
    pub(super) fn up(self, cost: i64) -> i64 {
        if self.shift >= 0 { cost << self.shift } else { cost >> -self.shift }
    }

    /// The least cost that may have been scaled to at least a value.
    pub(super) fn down(self, value: i64) -> i64 {
        if self.shift >= 0 { (value + (1 << self.shift) - 1) >> self.shift } else { value << -self.shift }
    }

    /// Whether costs of one digit are known to several digits.
    pub(super) fn is_fine(self) -> bool {
        self.shift >= 4
    }
}

/// What is left of a problem where some ranks are placed: rows are the other ranks, columns the free slots.
///
/// F is `bound` plus the leader of every row on its column plus the pair of every two rows on theirs (Adams and Johnson 1994;
/// Hahn and Grant 1998), or more where it was cut. Nothing in it is negative, so F is at least `bound`.
#[derive(Debug, Clone)]
pub(super) struct Relaxation<T> {
    /// Which rank every row is.
    pub(super) rows: Vec<u32>,
    /// Which slot every column is.
    pub(super) columns: Vec<u32>,
    /// What a row on a column costs, row by row.
    pub(super) leaders: Vec<T>,
    /// What row i on column k and row j > i on column l cost: a block for every (i, j), in it k by k.
    pub(super) pairs: Vec<T>,
    pub(super) bound: T,
    /// Ranks and their slots.
    pub(super) placed: Vec<(u32, u32)>,
}

/// An open branch: a relaxation in which one more row takes a column.
#[derive(Debug, Clone)]
pub(super) struct Branch<T> {
    pub(super) parent: Arc<Relaxation<T>>,
    pub(super) row: usize,
    pub(super) column: usize,
    /// No placement in it costs less.
    pub(super) bound: T,
    /// Whether ranks, and whether slots, may still be alike.
    pub(super) alike: [bool; 2],
}

/// Where the block of rows i < j begins among so many rows, in blocks.
pub(super) fn block(i: usize, j: usize, rows: usize) -> usize {
    i * (2 * rows - i - 1) / 2 + j - i - 1
}

impl<T: Number> Relaxation<T> {
    /// Nothing is placed yet. A pair that costs `limit` or more cannot be.
    pub(super) fn new(instance: &Instance<'_>, scale: Scale, limit: i64) -> Self {
        let (rows, columns) = (instance.ranks(), instance.slots());
        let mut pairs = Vec::with_capacity(rows * (rows - 1) / 2 * columns * columns);
        for i in 0..rows {
            for j in i + 1..rows {
                for k in 0..columns {
                    let pair = |l| instance.pair([i, j], [k, l]);
                    pairs.extend((0..columns).map(|l| match k == l || pair(l) >= limit {
                        true => T::IMPOSSIBLE,
                        false => T::of(scale.up(pair(l))),
                    }));
                }
            }
        }
        Self {
            rows: (0..rows as u32).collect(),
            columns: (0..columns as u32).collect(),
            leaders: vec![T::ZERO; rows * columns],
            pairs,
            bound: T::ZERO,
            placed: Vec::new(),
        }
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

    /// What remains when a row takes a column.
    pub(super) fn fix(&self, row: usize, column: usize) -> Self {
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
        let mut placed = self.placed.clone();
        placed.push((self.rows[row], self.columns[column]));
        Self {
            rows: without(&self.rows, row),
            columns: without(&self.columns, column),
            leaders,
            pairs,
            bound: self.bound + self.leaders[row * columns + column],
            placed,
        }
    }

    /// Adds the leaders of another row when a row takes a column to a list.
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

    /// Notes that no placement worth finding has a row on a column.
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
