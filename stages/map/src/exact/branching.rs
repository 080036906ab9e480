//! How a relaxation is split.

use std::sync::Arc;

use super::ascent::Ascent;
use super::number::Number;
use super::relaxation::{Branch, Relaxation};
use super::symmetry::Symmetry;

/// The automorphisms of program and machine.
#[derive(Debug)]
pub(super) struct Symmetries<'m> {
    pub(super) ranks: Symmetry<'m>,
    pub(super) slots: Symmetry<'m>,
}

/// What rows on columns cost at least, and which rows and columns are alike.
struct Split<T> {
    columns: usize,
    gap: T,
    ahead: Vec<T>,
    row_class: Vec<u32>,
    column_class: Vec<u32>,
}

/// A row on a column, and what is at least added to the bound by it.
#[derive(Clone, Copy)]
struct Choice<T> {
    at: usize,
    ahead: T,
}

/// Splits a relaxation by all columns of a row, or all rows of a column where no slot stays free: what leaves least to search.
///
/// Of rows or columns that are alike only one is tried. The most promising branch comes last.
pub(super) fn branches<T: Number>(
    relaxation: Relaxation<T>,
    ahead: Vec<T>,
    gap: T,
    symmetries: &Symmetries<'_>,
    alike: [bool; 2],
) -> Vec<Branch<T>> {
    let (rows, columns) = (relaxation.rows.len(), relaxation.columns.len());
    let (ranks, slots): (Vec<u32>, Vec<u32>) = relaxation.placed.iter().copied().unzip();
    let row_class = alike[0].then(|| symmetries.ranks.classes(&ranks)).flatten();
    let column_class = alike[1].then(|| symmetries.slots.classes(&slots)).flatten();
    let alike = [row_class.is_some(), column_class.is_some()];
    let classes = |classes: Option<Vec<u32>>, points: &[u32]| match classes {
        Some(classes) => points.iter().map(|&point| classes[point as usize]).collect(),
        None => points.to_vec(),
    };
    let row_class = classes(row_class, &relaxation.rows);
    let column_class = classes(column_class, &relaxation.columns);
    let split = Split { columns, gap, ahead, row_class, column_class };
    let by_rows = (0..rows).map(|row| split.choices((0..columns).map(|column| row * columns + column), true));
    let full = if rows == columns { columns } else { 0 };
    let by_columns =
        (0..full).map(|column| split.choices((0..rows).map(|row| row * columns + column), false));
    let least = by_rows.chain(by_columns).min_by(|a, b| split.work(a).total_cmp(&split.work(b)));
    let mut choices = least.unwrap_or_default();
    choices.sort_by(|a, b| b.ahead.cmp(&a.ahead).then(a.at.cmp(&b.at)));
    let parent = Arc::new(relaxation);
    let branch = |choice: Choice<T>| Branch {
        row: choice.at / columns,
        column: choice.at % columns,
        bound: parent.bound + choice.ahead,
        parent: Arc::clone(&parent),
        alike,
    };
    choices.into_iter().map(branch).collect()
}

/// What every row on every column costs at least beyond the bound; forbids what costs too much, and says how many did.
pub(super) fn look_ahead<T: Number>(
    relaxation: &mut Relaxation<T>,
    ascent: &mut Ascent<T>,
    gap: T,
) -> (Vec<T>, usize) {
    let columns = relaxation.columns.len();
    let mut forbidden = 0;
    let ahead = (0..relaxation.leaders.len()).map(|at| {
        let (row, column) = (at / columns, at % columns);
        let ahead = ascent.look_ahead(relaxation, row, column);
        if ahead > gap && relaxation.leaders[at] < T::HALF {
            relaxation.forbid(row, column);
            forbidden += 1;
        }
        ahead
    });
    (ahead.collect(), forbidden)
}

impl<T: Number> Split<T> {
    /// One choice for every class that is worth it.
    fn choices(&self, places: impl Iterator<Item = usize>, by_columns: bool) -> Vec<Choice<T>> {
        let class = |at: usize| match by_columns {
            true => self.column_class[at % self.columns],
            false => self.row_class[at / self.columns],
        };
        let mut choices: Vec<Choice<T>> = Vec::new();
        for at in places {
            let ahead = self.ahead[at];
            match choices.iter_mut().find(|choice| class(choice.at) == class(at)) {
                // What holds for one of a class holds for all.
                Some(choice) => choice.ahead = choice.ahead.max(ahead),
                None => choices.push(Choice { at, ahead }),
            }
        }
        choices.retain(|choice| choice.ahead <= self.gap);
        choices
    }

    /// A guess at the size of the search that choices leave.
    fn work(&self, choices: &[Choice<T>]) -> f64 {
        let gap = self.gap.wide() as f64 + 1.0;
        let part = |choice: &Choice<T>| {
            let open = 1.0 - choice.ahead.wide() as f64 / gap;
            open * open * open
        };
        choices.iter().map(part).sum()
    }
}
