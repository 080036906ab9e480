//! Dual ascent: the bound of a relaxation.

use super::linear::Linear;
use super::number::Number;
use super::relaxation::{Relaxation, block};

/// Raises bounds, and keeps its memory.
///
/// A sweep takes every row on every column in turn: its leader is shared among the other rows, the pairs it is part of are
/// reduced by the assignment of the other rows that costs least with it, whose cost becomes its leader. Then the leaders are
/// reduced in the same way, by what the bound rises (Hahn and Grant 1998, Lower bounds for the quadratic assignment problem
/// based upon a dual formulation). The first sweep alone is at least the bound of Gilmore and Lawler.
#[derive(Debug, Default)]
pub(super) struct Ascent<T> {
    linear: Linear<T>,
    matrix: Vec<T>,
}

/// How long to go on.
#[derive(Debug, Clone, Copy)]
pub(super) struct Patience {
    /// Most sweeps, by twos.
    pub(super) sweeps: u32,
    /// In so many sweeps at the present pace the gap has to be closed.
    pub(super) horizon: i64,
}

impl<T: Number> Ascent<T> {
    /// Raises the bound until it exceeds `most`, or it is hardly worth it any more; `false` if there is no placement that
    /// costs at most `most`.
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

    /// The column of every row in the assignment that cost least when the leaders were last reduced.
    pub(super) fn columns(&self) -> &[u32] {
        self.linear.columns()
    }

    /// What placing a row on a column costs at least, beyond the bound.
    pub(super) fn look_ahead(&mut self, relaxation: &Relaxation<T>, row: usize, column: usize) -> T {
        let columns = relaxation.columns.len();
        let leader = relaxation.leaders[row * columns + column];
        if leader >= T::HALF {
            return leader;
        }
        self.matrix.clear();
        for other in (0..relaxation.rows.len()).filter(|&other| other != row) {
            let at = self.matrix.len();
            self.matrix.extend(relaxation.with(row, column, other));
            self.matrix[at + column] = T::IMPOSSIBLE;
        }
        if self.matrix.is_empty() {
            return leader;
        }
        self.linear.solve(&mut self.matrix, columns).map_or(T::IMPOSSIBLE, |value| leader + value)
    }

    /// Adds the cheapest assignment of the leaders to the bound; `false` if it is more than `most`.
    fn reduce_leaders(&mut self, relaxation: &mut Relaxation<T>, most: T) -> bool {
        let columns = relaxation.columns.len();
        let Some(value) = self.linear.reduce(&mut relaxation.leaders, columns) else { return false };
        relaxation.bound += value;
        for leader in relaxation.leaders.iter_mut().filter(|leader| **leader >= T::HALF) {
            *leader = T::IMPOSSIBLE;
        }
        relaxation.bound <= most
    }

    /// Takes all rows on all columns in turn. A sweep forward leaves every block transposed, one back turns it again.
    fn sweep(&mut self, relaxation: &mut Relaxation<T>, most: T, forward: bool) {
        let rows = relaxation.rows.len();
        for step in 0..rows {
            let row = if forward { step } else { rows - 1 - step };
            let turned = if forward { 0..row } else { row + 1..rows };
            turned.for_each(|other| transpose(relaxation, row.min(other), row.max(other)));
            for column in 0..relaxation.columns.len() {
                self.raise_leader(relaxation, most, row, column);
            }
        }
    }

    /// Raises the leader of a row on a column. The blocks of the row hold its columns one behind the other.
    fn raise_leader(&mut self, relaxation: &mut Relaxation<T>, most: T, row: usize, column: usize) {
        let (rows, columns) = (relaxation.rows.len(), relaxation.columns.len());
        let at = row * columns + column;
        let gap = most - relaxation.bound;
        let place = |other: usize| (block(row.min(other), row.max(other), rows) * columns + column) * columns;
        let others = || (0..rows).filter(|&other| other != row);
        let leader = relaxation.leaders[at];
        if leader >= T::HALF || rows == 1 {
            return;
        }
        let share = leader / T::of(rows as i64 - 1);
        let mut kept = leader;
        self.matrix.clear();
        for other in others() {
            let pairs = &relaxation.pairs[place(other)..][..columns];
            self.matrix.extend(pairs.iter().map(|&pair| pair + share));
            kept -= share;
        }
        let value = self.linear.reduce(&mut self.matrix, columns).filter(|&value| kept + value <= gap);
        relaxation.leaders[at] = value.map_or(T::IMPOSSIBLE, |value| kept + value);
        // If the row cannot be here, nor can any pair of which that is a part.
        let most = if value.is_some() { gap } else { T::ZERO - T::HALF };
        for (other, reduced) in others().zip(self.matrix.chunks_exact(columns)) {
            let pairs = &mut relaxation.pairs[place(other)..][..columns];
            for (pair, &cost) in pairs.iter_mut().zip(reduced) {
                *pair = if cost > most { T::IMPOSSIBLE } else { cost };
            }
        }
    }
}

/// Forbids every row the columns on which it alone costs too much.
fn forbid_costly<T: Number>(relaxation: &mut Relaxation<T>, most: T) {
    let columns = relaxation.columns.len();
    let gap = most - relaxation.bound;
    for at in 0..relaxation.leaders.len() {
        if (gap + T::of(1)..T::HALF).contains(&relaxation.leaders[at]) {
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
