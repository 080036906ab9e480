//! Square matrices of a quadratic assignment problem.

use std::fmt::{Debug, Display};
use std::ops::{Add, Mul, Sub};

use crate::ObjectiveError;

mod sealed {
    pub trait Sealed {}
    impl Sealed for i64 {}
    impl Sealed for f64 {}
}

/// What weights and costs are: `i64`, summed without rounding in `i128`, or `f64`.
pub trait Number: sealed::Sealed + Copy + PartialEq + Default + Debug + Display {
    /// What their products are summed in.
    type Wide: Copy
        + Default
        + Debug
        + PartialEq
        + Add<Output = Self::Wide>
        + Sub<Output = Self::Wide>
        + Mul<Output = Self::Wide>;

    /// The number as a sum of one.
    fn wide(self) -> Self::Wide;

    /// Whether it is a number at all: neither infinite nor none.
    fn is_number(self) -> bool;

    /// Whether `Σ |weight| · max |cost|`, with room for the four sums of a difference, fits [`Wide`](Self::Wide).
    fn fit(weights: &mut dyn Iterator<Item = Self>, costs: &mut dyn Iterator<Item = Self>) -> bool;
}

impl Number for i64 {
    type Wide = i128;

    fn wide(self) -> i128 {
        self.into()
    }

    fn is_number(self) -> bool {
        true
    }

    fn fit(weights: &mut dyn Iterator<Item = Self>, costs: &mut dyn Iterator<Item = Self>) -> bool {
        bound(weights, costs).is_some_and(|bound| bound <= u128::MAX >> 4)
    }
}

/// `Σ |weight| · max |cost|`, if it fits.
pub(crate) fn bound(
    mut weights: impl Iterator<Item = i64>,
    costs: impl Iterator<Item = i64>,
) -> Option<u128> {
    let total = weights.try_fold(0u128, |sum, weight| sum.checked_add(weight.unsigned_abs().into()))?;
    total.checked_mul(costs.map(i64::unsigned_abs).max().unwrap_or(0).into())
}

impl Number for f64 {
    type Wide = Self;

    fn wide(self) -> Self {
        self
    }

    fn is_number(self) -> bool {
        self.is_finite()
    }

    fn fit(weights: &mut dyn Iterator<Item = Self>, costs: &mut dyn Iterator<Item = Self>) -> bool {
        (16.0 * weights.map(Self::abs).sum::<Self>() * costs.map(Self::abs).fold(0.0, Self::max)).is_finite()
    }
}

/// A square matrix, dense or sparse.
#[derive(Debug, Clone, PartialEq)]
pub struct Matrix<T> {
    size: usize,
    entries: Entries<T>,
}

#[derive(Debug, Clone, PartialEq)]
enum Entries<T> {
    /// Row after row.
    Dense(Vec<T>),
    /// Where every row begins, and the end; columns, in order within a row; values.
    Sparse { first: Vec<usize>, columns: Vec<u32>, values: Vec<T> },
}

impl<T: Number> Matrix<T> {
    /// A dense matrix, given row after row.
    pub fn dense(size: usize, values: Vec<T>) -> Result<Self, ObjectiveError> {
        if size.checked_mul(size) != Some(values.len()) {
            return Err(ObjectiveError::NotSquare { values: values.len(), size });
        }
        if let Some(at) = values.iter().position(|value| !value.is_number()) {
            return Err(ObjectiveError::NotANumber { row: at / size, column: at % size });
        }
        Ok(Self { size, entries: Entries::Dense(values) })
    }

    /// A sparse matrix of entries (row, column, value), each place at most once; the others are zero.
    pub fn sparse(size: usize, mut entries: Vec<(u32, u32, T)>) -> Result<Self, ObjectiveError> {
        entries.sort_unstable_by_key(|&(row, column, _)| (row, column));
        if let Some(&(row, column, _)) =
            entries.iter().find(|&&(row, column, _)| row.max(column) as usize >= size)
        {
            return Err(ObjectiveError::NoSuchEntry { row, column, size });
        }
        if let Some(pair) = entries.windows(2).find(|pair| (pair[0].0, pair[0].1) == (pair[1].0, pair[1].1)) {
            return Err(ObjectiveError::EntryTwice { row: pair[0].0, column: pair[0].1 });
        }
        if let Some(&(row, column, _)) = entries.iter().find(|(.., value)| !value.is_number()) {
            return Err(ObjectiveError::NotANumber { row: row as usize, column: column as usize });
        }
        let first = (0..=size).map(|row| entries.partition_point(|entry| (entry.0 as usize) < row)).collect();
        let columns = entries.iter().map(|entry| entry.1).collect();
        let values = entries.iter().map(|entry| entry.2).collect();
        Ok(Self { size, entries: Entries::Sparse { first, columns, values } })
    }

    /// Number of rows, and of columns.
    #[must_use]
    pub fn size(&self) -> usize {
        self.size
    }

    /// The value in a row and column.
    #[must_use]
    pub fn get(&self, row: u32, column: u32) -> T {
        match &self.entries {
            Entries::Dense(values) => values[row as usize * self.size + column as usize],
            Entries::Sparse { first, columns, values } => {
                let range = first[row as usize]..first[row as usize + 1];
                let found = columns[range.clone()].binary_search(&column);
                found.map_or_else(|_| T::default(), |at| values[range.start + at])
            }
        }
    }

    /// Columns and values of a row; of a sparse matrix only those that were given.
    pub fn row(&self, row: u32) -> impl Iterator<Item = (u32, T)> + '_ {
        let (columns, values) = match &self.entries {
            Entries::Dense(values) => (None, &values[row as usize * self.size..][..self.size]),
            Entries::Sparse { first, columns, values } => {
                let range = first[row as usize]..first[row as usize + 1];
                (Some(&columns[range.clone()]), &values[range])
            }
        };
        let column = move |at: usize| columns.map_or(at as u32, |columns| columns[at]);
        values.iter().enumerate().map(move |(at, &value)| (column(at), value))
    }

    /// All values; of a sparse matrix only those that were given.
    #[must_use]
    pub fn values(&self) -> &[T] {
        match &self.entries {
            Entries::Dense(values) | Entries::Sparse { values, .. } => values,
        }
    }

    /// Rows as columns.
    #[must_use]
    pub fn transposed(&self) -> Self {
        let size = self.size as u32;
        let entries = match &self.entries {
            Entries::Dense(_) => Entries::Dense(
                (0..size).flat_map(|column| (0..size).map(move |row| self.get(row, column))).collect(),
            ),
            Entries::Sparse { .. } => {
                let turned = |row| self.row(row).map(move |(column, value)| (column, row, value));
                let mut entries: Vec<_> = (0..size).flat_map(turned).collect();
                entries.sort_unstable_by_key(|&(row, column, _)| (row, column));
                let first = |row| entries.partition_point(|entry| (entry.0 as usize) < row);
                Entries::Sparse {
                    first: (0..=self.size).map(first).collect(),
                    columns: entries.iter().map(|entry| entry.1).collect(),
                    values: entries.iter().map(|entry| entry.2).collect(),
                }
            }
        };
        Self { size: self.size, entries }
    }

    /// Whether it is the same with rows as columns.
    #[must_use]
    pub fn is_symmetric(&self) -> bool {
        (0..self.size as u32).all(|row| self.row(row).all(|(column, value)| self.get(column, row) == value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sparse_and_dense_hold_the_same() {
        let dense = Matrix::dense(3, vec![0i64, 5, 0, 7, 0, 0, 0, 0, 2]).unwrap();
        let sparse = Matrix::sparse(3, vec![(2, 2, 2), (0, 1, 5), (1, 0, 7)]).unwrap();
        for row in 0..3 {
            for column in 0..3 {
                assert_eq!(dense.get(row, column), sparse.get(row, column));
                assert_eq!(dense.get(row, column), sparse.transposed().get(column, row));
                assert_eq!(dense.get(row, column), dense.transposed().get(column, row));
            }
        }
        assert_eq!(sparse.row(1).collect::<Vec<_>>(), [(0, 7)]);
        assert!(!sparse.is_symmetric() && !dense.is_symmetric());
        assert!(Matrix::sparse(2, vec![(0, 1, 4), (1, 0, 4)]).unwrap().is_symmetric());
    }

    #[test]
    fn what_is_no_matrix_is_named() {
        let message = |error: Result<Matrix<f64>, ObjectiveError>| error.unwrap_err().to_string();
        assert_eq!(message(Matrix::dense(2, vec![1.0; 3])), "3 values are no matrix of 2 × 2");
        assert_eq!(
            message(Matrix::dense(2, vec![0.0, 1.0, f64::NAN, 1.0])),
            "the value in row 1, column 0 is not a finite number"
        );
        assert_eq!(
            message(Matrix::sparse(2, vec![(0, 2, 1.0)])),
            "row 0, column 2 lies outside a matrix of 2 × 2"
        );
        assert_eq!(
            message(Matrix::sparse(2, vec![(0, 1, 1.0), (0, 1, 2.0)])),
            "row 0, column 1 is given twice"
        );
    }
}
