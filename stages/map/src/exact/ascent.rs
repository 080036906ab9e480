//! Dual ascent: the bound of a relaxation.

use super::linear::Linear;
use super::number::Number;
use super::relaxation::{Relaxation, block};

/// Raises bounds, and keeps its memory.
///
/// A sweep takes every row on every column in turn: its leader is shared among the other rows, the pairs it is part of are
/// reduced by the assignment of the other rows that costs least with it, whose cost is added to its leader. Then the leaders are
/// reduced in the same way, by what the bound rises (Hahn and Grant 1998, Lower bounds for the quadratic assignment problem
/// based upon a dual formulation). Unlike there, a row takes only half of what it has in common with rows whose turn comes
/// later in the sweep: where it took all, the ascent ended far lower.
#[derive(Debug, Default)]
pub(super) struct Ascent<T> {
    linear: Linear<T>,
    matrix: Vec<T>,
    shares: Vec<T>,
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

    /// Adds the cheapest assignment of the leaders to the bound; `false` if it is more than `most`.
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

    /// Shares every leader among the pairs of it with the other rows. `upright` if no block is transposed.
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

    /// Takes all rows on all columns in turn. A sweep forward leaves every block transposed, one back turns it again.
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

    /// Raises the leader of a row on a column. The blocks of the row hold its columns one behind the other.
    ///
    /// Of pairs with rows whose turn comes later it takes only half.
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
                // If the row cannot be here, nor can any pair of which that is a part.
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

/// Forbids every row the columns on which it alone costs too much.
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
