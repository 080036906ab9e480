//! The linear assignment problem, and the integer types of bounds.

use std::fmt::Debug;
use std::ops::{Add, AddAssign, Div, Sub, SubAssign};

/// Solves assignments of rows to distinct columns, at least as many, and reuses its memory.
///
/// Shortest augmenting paths after a reduction of the rows (Jonker and Volgenant 1987). Free columns have
/// dual value zero, all others at most zero, so that the value is a lower bound for any choice of columns. If
/// every column is assigned, columns are reduced as well.
#[derive(Debug, Default)]
pub(super) struct Linear<T> {
    row_dual: Vec<T>,
    column_dual: Vec<T>,
    row_of: Vec<u32>,
    column_of: Vec<u32>,
    distance: Vec<T>,
    from: Vec<u32>,
    /// Columns of the path and their distances.
    scanned: Vec<(u32, T)>,
}

/// No row or column.
const NONE: u32 = u32::MAX;

impl<T: Number> Linear<T> {
    /// The minimum cost of an assignment; replaces `costs`, row by row, by reduced costs. `None` if
    /// infeasible.
    ///
    /// `full` if every column allowed for some row is assigned.
    pub(super) fn reduce(&mut self, costs: &mut [T], columns: usize, full: bool) -> Option<T> {
        let value = self.solve(costs, columns, full)?;
        for (row, &dual) in costs.chunks_exact_mut(columns).zip(&self.row_dual) {
            for (cost, &column) in row.iter_mut().zip(&self.column_dual) {
                *cost -= dual + column;
            }
        }
        Some(value)
    }

    /// The minimum cost of an assignment. Overwrites `costs`.
    pub(super) fn solve(&mut self, costs: &mut [T], columns: usize, full: bool) -> Option<T> {
        let rows = costs.len() / columns;
        self.clear(rows, columns);
        let mut value = T::ZERO;
        for row in costs.chunks_exact_mut(columns) {
            let least = row.iter().copied().fold(T::IMPOSSIBLE, T::min);
            if least >= T::HALF {
                return None;
            }
            value += least;
            row.iter_mut().for_each(|cost| *cost -= least);
        }
        if full {
            value += self.reduce_columns(costs, columns);
        }
        self.match_zeros(costs, columns);
        for row in 0..rows {
            if self.column_of[row] == NONE {
                value += self.augment(costs, columns, row)?;
            }
        }
        Some(value)
    }

    /// The column of every row.
    pub(super) fn columns(&self) -> &[u32] {
        &self.column_of
    }

    fn clear(&mut self, rows: usize, columns: usize) {
        self.row_dual.clear();
        self.row_dual.resize(rows, T::ZERO);
        self.column_of.clear();
        self.column_of.resize(rows, NONE);
        self.column_dual.clear();
        self.column_dual.resize(columns, T::ZERO);
        self.row_of.clear();
        self.row_of.resize(columns, NONE);
        self.distance.resize(columns, T::ZERO);
        self.from.resize(columns, NONE);
    }

    /// Subtracts the minimum of every column allowed for some row, and returns the sum.
    fn reduce_columns(&mut self, costs: &mut [T], columns: usize) -> T {
        self.distance.fill(T::IMPOSSIBLE);
        for row in costs.chunks_exact(columns) {
            self.distance.iter_mut().zip(row).for_each(|(least, &cost)| *least = cost.min(*least));
        }
        let mut sum = T::ZERO;
        for least in &mut self.distance {
            *least = if *least >= T::HALF { T::ZERO } else { *least };
            sum += *least;
        }
        for row in costs.chunks_exact_mut(columns) {
            row.iter_mut().zip(&self.distance).for_each(|(cost, &least)| *cost -= least);
        }
        sum
    }

    /// Assigns every row its first free column of minimum cost.
    fn match_zeros(&mut self, costs: &[T], columns: usize) {
        for (row, costs) in costs.chunks_exact(columns).enumerate() {
            for (column, &cost) in costs.iter().enumerate() {
                if cost == T::ZERO && self.row_of[column] == NONE {
                    self.row_of[column] = row as u32;
                    self.column_of[row] = column as u32;
                    break;
                }
            }
        }
    }

    /// Assigns a row by a shortest augmenting path and returns its length.
    fn augment(&mut self, costs: &[T], columns: usize, start: usize) -> Option<T> {
        self.scanned.clear();
        self.distance.fill(T::IMPOSSIBLE);
        let (mut row, mut length) = (start, T::ZERO);
        let end = loop {
            self.scan(&costs[row * columns..][..columns], row, length);
            let column = self.closest()?;
            length = self.distance[column];
            if self.row_of[column] == NONE {
                break column;
            }
            self.distance[column] = Self::SCANNED;
            self.scanned.push((column as u32, length));
            row = self.row_of[column] as usize;
        };
        self.row_dual[start] += length;
        for &(column, distance) in &self.scanned {
            let rest = length - distance;
            self.column_dual[column as usize] -= rest;
            self.row_dual[self.row_of[column as usize] as usize] += rest;
        }
        self.exchange(start as u32, end as u32);
        Some(length)
    }

    /// Distance of a scanned column; no path is shorter.
    const SCANNED: T = T::BELOW;

    /// Relaxes the distances to the columns through a row. Branch-free, so that the compiler vectorises it.
    fn scan(&mut self, costs: &[T], row: usize, length: T) {
        let base = length - self.row_dual[row];
        let ways = self.distance.iter_mut().zip(&mut self.from);
        for ((&cost, &dual), (distance, from)) in costs.iter().zip(&self.column_dual).zip(ways) {
            let through = base + cost - dual;
            let shorter = through < *distance;
            *distance = if shorter { through } else { *distance };
            *from = if shorter { row as u32 } else { *from };
        }
    }

    /// The closest unscanned column; free columns first.
    fn closest(&self) -> Option<usize> {
        let open = |&distance: &T| if distance == Self::SCANNED { T::IMPOSSIBLE } else { distance };
        let least = self.distance.iter().map(open).fold(T::IMPOSSIBLE, T::min);
        if least >= T::HALF {
            return None;
        }
        let mut closest = (0..self.distance.len()).filter(|&column| self.distance[column] == least);
        let first = closest.next()?;
        if self.row_of[first] == NONE {
            return Some(first);
        }
        closest.find(|&column| self.row_of[column] == NONE).or(Some(first))
    }

    /// Augments along a path.
    fn exchange(&mut self, start: u32, end: u32) {
        let mut column = end;
        loop {
            let row = self.from[column as usize];
            self.row_of[column as usize] = row;
            std::mem::swap(&mut self.column_of[row as usize], &mut column);
            if row == start {
                return;
            }
        }
    }
}

/// An integer type for costs: small ones are faster, large ones have more range.
///
/// A cost is at most [`LARGEST`](Self::LARGEST); values from [`HALF`](Self::HALF) on mean infeasible. A
/// shortest path of 64 costs is far below.
pub(super) trait Number:
    Copy
    + Ord
    + Default
    + Debug
    + Send
    + Sync
    + Add<Output = Self>
    + Sub<Output = Self>
    + Div<Output = Self>
    + AddAssign
    + SubAssign
{
    const ZERO: Self;
    const LARGEST: Self;
    const HALF: Self;
    const IMPOSSIBLE: Self;
    /// Below any cost.
    const BELOW: Self;
    /// Bits of the largest cost.
    const BITS: u32;

    /// Converts a value, clamped to the largest cost.
    fn of(value: i64) -> Self;
    /// A small number of things.
    fn count(things: usize) -> Self;
    fn wide(self) -> i64;

    /// Half of a pair cost; infeasible values are unchanged.
    #[inline]
    fn taken(self) -> Self {
        if self >= Self::HALF { Self::IMPOSSIBLE } else { self.halved() }
    }

    /// Half of it, rounded down.
    fn halved(self) -> Self;

    /// A sum in which infeasible values stay infeasible.
    #[inline]
    fn join(self, other: Self) -> Self {
        if self >= Self::HALF || other >= Self::HALF { Self::IMPOSSIBLE } else { self + other }
    }
}

macro_rules! number {
    ($type:ty, $bits:expr, $impossible:expr) => {
        impl Number for $type {
            const ZERO: Self = 0;
            const LARGEST: Self = 1 << $bits;
            const HALF: Self = 1 << ($impossible - 1);
            const IMPOSSIBLE: Self = 1 << $impossible;
            const BELOW: Self = -1;
            const BITS: u32 = $bits;

            #[inline]
            fn of(value: i64) -> Self {
                value.min(i64::from(Self::LARGEST)) as Self
            }

            #[inline]
            fn halved(self) -> Self {
                self >> 1
            }

            fn count(things: usize) -> Self {
                Self::of(i64::from(things as u32))
            }

            #[inline]
            fn wide(self) -> i64 {
                i64::from(self)
            }
        }
    };
}

number!(i32, 21, 29);
number!(i64, 44, 58);

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The minimum cost by enumeration.
    fn least(costs: &[i64], columns: usize, taken: &mut Vec<usize>) -> i64 {
        let row = taken.len();
        if row * columns == costs.len() {
            return 0;
        }
        let mut best = i64::IMPOSSIBLE;
        for column in 0..columns {
            if !taken.contains(&column) {
                taken.push(column);
                best = best.min(costs[row * columns + column] + least(costs, columns, taken));
                taken.pop();
            }
        }
        best
    }

    proptest! {
        #[test]
        fn the_value_is_minimal_and_reduced_costs_are_not_negative(
            rows in 1usize..5, free in 0usize..3, values in prop::collection::vec(0i64..12, 35)
        ) {
            let columns = rows + free;
            let costs = &values[..rows * columns];
            let mut reduced = costs.to_vec();
            let mut linear = Linear::default();
            let value = linear.reduce(&mut reduced, columns, free == 0).unwrap();
            prop_assert_eq!(value, least(costs, columns, &mut Vec::new()));
            prop_assert!(reduced.iter().all(|&cost| cost >= 0));
            let chosen = linear.columns().iter().enumerate().map(|(row, &column)| row * columns + column as usize);
            prop_assert_eq!(chosen.clone().map(|at| costs[at]).sum::<i64>(), value);
            prop_assert!(chosen.clone().all(|at| reduced[at] == 0));
            // Any other assignment costs at least the value plus its reduced costs.
            prop_assert!(least(&reduced, columns, &mut Vec::new()) == 0);
        }
    }

    #[test]
    fn infeasible_assignments_are_reported() {
        let gone = i32::IMPOSSIBLE;
        assert_eq!(Linear::default().solve(&mut [1, gone, 2, gone], 2, false), None);
        assert_eq!(Linear::default().solve(&mut [gone, gone, 0, 0], 2, false), None);
        assert_eq!(Linear::default().solve(&mut [1, gone, 2, 3], 2, false), Some(4));
    }
}
