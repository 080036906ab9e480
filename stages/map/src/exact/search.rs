//! Branch and bound in rounds.

use std::sync::Arc;
use std::time::Instant;

use hopmap_model::Context;
use rayon::prelude::*;

use super::instance::{Instance, Symmetry};
use super::linear::Number;
use super::relaxation::{Ascent, Branch, Patience, Relaxation, Scale};

/// Maximum branches explored in parallel in a round, and the memory limit of their relaxations.
const MOST_AT_ONCE: usize = 32;
const MEMORY: usize = 1 << 30;
/// Nodes per branch in a round.
const NODES_OF_ROUND: u64 = 48;
/// Effort at the root and at other nodes.
const ROOT: Patience = Patience { sweeps: 600, horizon: 200 };
const NODE: Patience = Patience { sweeps: 20, horizon: 8 };

/// Stopping criteria.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    pub(super) nodes: Option<u64>,
    pub(super) deadline: Option<Instant>,
}

/// Result of a search.
#[derive(Debug, Clone)]
pub(super) struct Proof {
    /// The slots of the communicating ranks, if they improve on the initial incumbent.
    pub(super) better: Option<Vec<u32>>,
    /// Lower bound in units of the instance.
    pub(super) bound: i64,
    pub(super) nodes: u64,
}

/// The incumbent.
#[derive(Debug, Clone)]
struct Incumbent {
    cost: i64,
    slots: Option<Vec<u32>>,
}

/// Result of a branch in a round.
struct Explored<T> {
    open: Vec<Branch<T>>,
    incumbent: Incumbent,
    nodes: u64,
}

/// A search for a mapping that costs less than the incumbent.
///
/// Every round explores some open branches independently, each for a fixed maximum number of nodes and with
/// the incumbent at the start of the round. The result therefore does not depend on the number of threads.
pub(super) struct Search<'s> {
    pub(super) instance: &'s Instance<'s>,
    pub(super) symmetries: Symmetries<'s>,
    pub(super) limits: Limits,
    pub(super) cx: Context<'s>,
    pub(super) scale: Scale,
}

impl Search<'_> {
    /// Searches until the optimum is proven or a limit is reached. `cost` is that of the initial incumbent.
    pub(super) fn run<T: Number>(&self, cost: i64) -> Proof {
        let mut incumbent = Incumbent { cost, slots: None };
        let root = Relaxation::<T>::new(self.instance, self.scale, cost);
        let at_once = at_once::<T>(&root);
        let mut open = self.node(root, [true; 2], ROOT, &mut incumbent);
        let mut nodes = 1;
        while !open.is_empty() && !self.stopped() {
            let left = self.limits.nodes.map_or(u64::MAX, |most| most.saturating_sub(nodes));
            let batch = (at_once as u64).min(left).min(open.len() as u64);
            if batch == 0 {
                break;
            }
            let taken = open.split_off(open.len() - batch as usize);
            let quota = NODES_OF_ROUND.min(left / batch);
            for explored in self.round(taken, quota, &incumbent) {
                nodes += explored.nodes;
                open.extend(explored.open);
                if explored.incumbent.cost < incumbent.cost {
                    incumbent = explored.incumbent;
                }
            }
            let most = self.most::<T>(incumbent.cost);
            open.retain(|branch| branch.bound <= most);
            self.cx.progress(nodes, self.limits.nodes.unwrap_or(0));
        }
        let bound = open.iter().map(|branch| self.scale.down(branch.bound.wide())).min();
        Proof {
            better: incumbent.slots,
            bound: bound.map_or(incumbent.cost, |bound| bound.min(incumbent.cost)),
            nodes,
        }
    }

    fn round<T: Number>(&self, taken: Vec<Branch<T>>, quota: u64, incumbent: &Incumbent) -> Vec<Explored<T>> {
        let share = taken.len().div_ceil(self.cx.threads().max(1)).max(1);
        let explore = |branch| self.explore(branch, quota, Incumbent { cost: incumbent.cost, slots: None });
        taken.into_par_iter().with_min_len(share).map(explore).collect()
    }

    /// Explores a branch depth first.
    fn explore<T: Number>(&self, branch: Branch<T>, quota: u64, mut incumbent: Incumbent) -> Explored<T> {
        let mut open = vec![branch];
        let mut nodes = 0;
        while nodes < quota && !self.stopped() {
            let Some(branch) = open.pop() else { break };
            if branch.bound > self.most(incumbent.cost) {
                continue;
            }
            nodes += 1;
            let relaxation = branch.parent.fix(branch.row, branch.column);
            if relaxation.rows.len() == 1 {
                self.finish(&relaxation, &mut incumbent);
            } else {
                open.extend(self.node(relaxation, branch.alike, NODE, &mut incumbent));
            }
            if self.stopped() {
                open.push(branch);
            }
        }
        Explored { open, incumbent, nodes }
    }

    /// Bounds a relaxation and branches; empty if it contains no improvement on the incumbent.
    fn node<T: Number>(
        &self,
        mut relaxation: Relaxation<T>,
        alike: [bool; 2],
        patience: Patience,
        incumbent: &mut Incumbent,
    ) -> Vec<Branch<T>> {
        let mut ascent = Ascent::default();
        let mut most = self.most(incumbent.cost);
        let ahead = loop {
            if !ascent.raise(&mut relaxation, most, patience, || self.stopped()) {
                return Vec::new();
            }
            self.try_columns(&relaxation, ascent.columns(), incumbent);
            most = self.most(incumbent.cost);
            if relaxation.bound > most {
                return Vec::new();
            }
            let gap = most - relaxation.bound;
            let (ahead, forbidden) = look_ahead(&mut relaxation, &mut ascent, gap);
            if forbidden * 10 < relaxation.leaders.len() || self.stopped() {
                break ahead;
            }
        };
        let gap = most - relaxation.bound;
        branches(relaxation, ahead, gap, &self.symmetries, alike)
    }

    /// Scaled maximum cost of an improvement.
    fn most<T: Number>(&self, cost: i64) -> T {
        T::of(self.scale.up(cost - 1))
    }

    fn stopped(&self) -> bool {
        self.limits.deadline.is_some_and(|deadline| Instant::now() >= deadline) || self.cx.should_stop()
    }

    /// Tries all columns of the last row.
    fn finish<T: Number>(&self, relaxation: &Relaxation<T>, incumbent: &mut Incumbent) {
        (0..relaxation.columns.len() as u32)
            .for_each(|column| self.try_columns(relaxation, &[column], incumbent));
    }

    /// Tries an assignment of the remaining rows.
    fn try_columns<T: Number>(&self, relaxation: &Relaxation<T>, columns: &[u32], incumbent: &mut Incumbent) {
        let mut slots = vec![0; self.instance.ranks()];
        relaxation.placed.iter().for_each(|&(rank, slot)| slots[rank as usize] = slot);
        for (&rank, &column) in relaxation.rows.iter().zip(columns) {
            slots[rank as usize] = relaxation.columns[column as usize];
        }
        let cost = self.instance.cost(&self.instance.complete(&slots));
        if cost < incumbent.cost {
            *incumbent = Incumbent { cost, slots: Some(slots) };
        }
    }
}

/// Number of branches explored in parallel.
fn at_once<T>(root: &Relaxation<T>) -> usize {
    let bytes = size_of_val(root.pairs.as_slice()).max(1) * root.rows.len();
    (MEMORY / bytes).clamp(2, MOST_AT_ONCE)
}

/// The automorphisms of program and machine.
#[derive(Debug)]
pub(super) struct Symmetries<'m> {
    pub(super) ranks: Symmetry<'m>,
    pub(super) slots: Symmetry<'m>,
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

/// Minimum cost of every row on every column above the bound; excludes assignments that cost too much and
/// counts them.
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
