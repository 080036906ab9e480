//! Branches of a quadratic assignment problem: relaxations with one more rank to place.

use std::collections::HashMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::instance::Instance;
use super::linear::Number;
use super::relaxation::{Ascent, Branch, Patience, Relaxation, Scale, Step};
use super::search::{Incumbent, MOST_AT_ONCE, Space, Stop};
use super::symmetry::Symmetry;

/// Memory limit of the relaxations of a round.
const MEMORY: usize = 1 << 30;
/// Maximum nodes per branch in a round, and costs of pairs that they may bound: about a second for all.
const NODES_OF_ROUND: usize = 48;
const PAIRS_OF_ROUND: usize = 1 << 20;
/// Effort at the root and at other nodes.
const ROOT: Patience = Patience { sweeps: 600, horizon: 200 };
const NODE: Patience = Patience { sweeps: 20, horizon: 8 };

/// The mappings of a quadratic assignment problem. Costs are in units of the instance.
#[derive(Clone)]
pub(super) struct Quadratic<'s, T> {
    instance: &'s Instance<'s>,
    symmetries: Symmetries<'s>,
    scale: Scale,
    /// Cost of the initial incumbent.
    cost: i64,
    /// All mappings.
    root: Relaxation<T>,
}

/// The open branches of a relaxation in stored form.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct SavedBranches {
    /// The path of the relaxation from the root.
    path: Vec<Step>,
    /// Rank and slot of every branch.
    choices: Vec<(u32, u32)>,
}

impl<T: Number> Space for Quadratic<'_, T> {
    type Branch = Branch<T>;
    type Saved = SavedBranches;

    fn root(&self, incumbent: &mut Incumbent, stop: Stop<'_>) -> Vec<Branch<T>> {
        self.node(self.root.clone(), [!self.instance.is_constrained(); 2], ROOT, incumbent, stop)
    }

    fn split(&self, branch: &Branch<T>, incumbent: &mut Incumbent, stop: Stop<'_>) -> Vec<Branch<T>> {
        let relaxation = branch.parent.fix(branch.row, branch.column, incumbent.cost);
        if relaxation.rows.len() == 1 {
            self.finish(&relaxation, incumbent);
            return Vec::new();
        }
        self.node(relaxation, branch.alike, NODE, incumbent, stop)
    }

    fn bound(&self, branch: &Branch<T>) -> i64 {
        self.scale.down(branch.bound.wide())
    }

    fn save(open: &[Branch<T>]) -> Vec<SavedBranches> {
        let of_parent = |open: &[Branch<T>]| SavedBranches {
            path: open[0].parent.path.clone(),
            choices: open.iter().map(Branch::choice).collect(),
        };
        open.chunk_by(|a, b| Arc::ptr_eq(&a.parent, &b.parent)).map(of_parent).collect()
    }

    /// Bounds the relaxations on all paths again, from the root down.
    fn restore(&self, saved: &[SavedBranches], stop: Stop<'_>) -> Option<Vec<Branch<T>>> {
        let mut below: HashMap<&[Step], Vec<Branch<T>>> = HashMap::new();
        let longest = saved.iter().map(|saved| saved.path.len()).max().unwrap_or(0);
        for length in 0..=longest {
            let mut paths: Vec<&[Step]> = saved.iter().filter_map(|saved| saved.path.get(..length)).collect();
            paths.sort_unstable();
            paths.dedup();
            let again = |path: &[Step]| match path.split_last() {
                None => Some(self.root(&mut Incumbent::first(self.cost), stop)),
                Some((last, parent)) => {
                    let branch = below.get(parent)?.iter().find(|branch| branch.choice() == last.choice())?;
                    Some(self.split(branch, &mut Incumbent::first(last.limit), stop))
                }
            };
            let split: Option<Vec<_>> = stop.map(paths.clone(), again).into_iter().collect();
            below.extend(paths.into_iter().zip(split?));
            if stop.is_now() {
                return None;
            }
        }
        let open = saved.iter().flat_map(|saved| saved.choices.iter().map(|&choice| (&*saved.path, choice)));
        let branch = |(path, choice)| {
            below.get(path)?.iter().find(|branch: &&Branch<T>| branch.choice() == choice).cloned()
        };
        open.map(branch).collect()
    }

    /// As many branches as fit the memory limit.
    fn round(&self) -> (usize, u64) {
        let pairs = self.root.pairs.as_slice();
        let bytes = size_of_val(pairs).max(1) * self.root.rows.len();
        let nodes = (PAIRS_OF_ROUND / pairs.len().max(1)).clamp(1, NODES_OF_ROUND);
        ((MEMORY / bytes).clamp(2, MOST_AT_ONCE), nodes as u64)
    }
}

impl<'s, T: Number> Quadratic<'s, T> {
    /// For mappings that cost less than an initial incumbent.
    pub(super) fn new(instance: &'s Instance<'s>, scale: Scale, cost: i64) -> Self {
        let symmetries = Symmetries {
            ranks: Symmetry::new(&instance.weights, instance.ranks()),
            slots: Symmetry::new(&instance.costs, instance.slots),
        };
        Self { instance, symmetries, scale, cost, root: Relaxation::new(instance, scale, cost) }
    }

    /// Bounds a relaxation and branches; empty if it contains no improvement on the incumbent.
    fn node(
        &self,
        mut relaxation: Relaxation<T>,
        alike: [bool; 2],
        patience: Patience,
        incumbent: &mut Incumbent,
        stop: Stop<'_>,
    ) -> Vec<Branch<T>> {
        let mut ascent = Ascent::default();
        let mut most = self.most(incumbent.cost);
        let ahead = loop {
            if !ascent.raise(&mut relaxation, most, patience, || stop.is_now()) {
                return Vec::new();
            }
            self.try_columns(&relaxation, ascent.columns(), incumbent);
            most = self.most(incumbent.cost);
            if relaxation.bound > most {
                return Vec::new();
            }
            let gap = most - relaxation.bound;
            let (ahead, forbidden) = look_ahead(&mut relaxation, &mut ascent, gap);
            if forbidden * 10 < relaxation.leaders.len() || stop.is_now() {
                break ahead;
            }
        };
        let gap = most - relaxation.bound;
        branches(relaxation, ahead, gap, &self.symmetries, alike)
    }

    /// Scaled maximum cost of an improvement.
    fn most(&self, cost: i64) -> T {
        T::of(self.scale.up(cost - 1))
    }

    /// Tries all columns of the last row.
    fn finish(&self, relaxation: &Relaxation<T>, incumbent: &mut Incumbent) {
        (0..relaxation.columns.len() as u32)
            .for_each(|column| self.try_columns(relaxation, &[column], incumbent));
    }

    /// Tries an assignment of the remaining rows.
    fn try_columns(&self, relaxation: &Relaxation<T>, columns: &[u32], incumbent: &mut Incumbent) {
        let mut slots = vec![0; self.instance.ranks()];
        relaxation.path.iter().for_each(|step| slots[step.rank as usize] = step.slot);
        for (&rank, &column) in relaxation.rows.iter().zip(columns) {
            slots[rank as usize] = relaxation.columns[column as usize];
        }
        if slots.iter().enumerate().all(|(rank, &slot)| self.instance.admits(rank, slot as usize)) {
            incumbent.replace(self.instance.cost(&self.instance.complete(&slots)), slots);
        }
    }
}

/// The automorphisms of program and machine.
#[derive(Clone)]
struct Symmetries<'m> {
    ranks: Symmetry<'m>,
    slots: Symmetry<'m>,
}

/// Minimum costs of rows on columns, and equivalent rows and columns.
struct Split<T> {
    columns: usize,
    gap: T,
    ahead: Vec<T>,
    row_class: Vec<u32>,
    column_class: Vec<u32>,
}

/// A row on a column, and its minimum addition to the bound.
#[derive(Clone, Copy)]
struct Choice<T> {
    at: usize,
    ahead: T,
}

/// Branches on all columns of a row, or on all rows of a column if no slot stays free, whichever leaves the
/// least to search.
///
/// Of equivalent rows or columns only one is tried. The most promising branch comes last.
fn branches<T: Number>(
    relaxation: Relaxation<T>,
    ahead: Vec<T>,
    gap: T,
    symmetries: &Symmetries<'_>,
    alike: [bool; 2],
) -> Vec<Branch<T>> {
    let (rows, columns) = (relaxation.rows.len(), relaxation.columns.len());
    let (ranks, slots): (Vec<u32>, Vec<u32>) = relaxation.path.iter().map(Step::choice).unzip();
    let row_class = alike[0].then(|| symmetries.ranks.classes(&ranks, |_| true)).flatten();
    let column_class = alike[1].then(|| symmetries.slots.classes(&slots, |_| true)).flatten();
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

/// Minimum cost of every row on every column above the bound; excludes assignments that cost too much and
/// counts them.
fn look_ahead<T: Number>(relaxation: &mut Relaxation<T>, ascent: &mut Ascent<T>, gap: T) -> (Vec<T>, usize) {
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
    /// One choice per class that may improve.
    fn choices(&self, places: impl Iterator<Item = usize>, by_columns: bool) -> Vec<Choice<T>> {
        let class = |at: usize| match by_columns {
            true => self.column_class[at % self.columns],
            false => self.row_class[at / self.columns],
        };
        let mut choices: Vec<Choice<T>> = Vec::new();
        for at in places {
            let ahead = self.ahead[at];
            match choices.iter_mut().find(|choice| class(choice.at) == class(at)) {
                // All members of a class are equivalent.
                Some(choice) => choice.ahead = choice.ahead.max(ahead),
                None => choices.push(Choice { at, ahead }),
            }
        }
        choices.retain(|choice| choice.ahead <= self.gap);
        choices
    }

    /// Estimates the size of the remaining search.
    fn work(&self, choices: &[Choice<T>]) -> f64 {
        let gap = self.gap.wide() as f64 + 1.0;
        let part = |choice: &Choice<T>| {
            let open = 1.0 - choice.ahead.wide() as f64 / gap;
            open * open * open
        };
        choices.iter().map(part).sum()
    }
}
