//! Branch and bound in rounds.

use std::time::Instant;

use hopmap_model::Context;
use rayon::prelude::*;

use super::ascent::{Ascent, Patience};
use super::branching::{Symmetries, branches, look_ahead};
use super::instance::Instance;
use super::number::Number;
use super::relaxation::{Branch, Relaxation, Scale};

/// Most branches that are explored side by side in a round, and the memory that their relaxations may take.
const MOST_AT_ONCE: usize = 32;
const MEMORY: usize = 1 << 30;
/// Nodes of a branch in a round.
const NODES_OF_ROUND: u64 = 48;
/// Effort at the root and at every other node.
const ROOT: Patience = Patience { sweeps: 600, horizon: 200 };
const NODE: Patience = Patience { sweeps: 20, horizon: 8 };

/// When to stop.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    pub(super) nodes: Option<u64>,
    pub(super) deadline: Option<Instant>,
}

/// What a search ends with.
#[derive(Debug, Clone)]
pub(super) struct Proof {
    /// The slots of the ranks that send or receive, if they cost less than what was known.
    pub(super) better: Option<Vec<u32>>,
    /// No placement costs less, in units of the instance.
    pub(super) bound: i64,
    pub(super) nodes: u64,
}

/// The best placement known.
#[derive(Debug, Clone)]
struct Incumbent {
    cost: i64,
    slots: Option<Vec<u32>>,
}

/// What came of a branch in a round.
struct Explored<T> {
    open: Vec<Branch<T>>,
    incumbent: Incumbent,
    nodes: u64,
}

/// A search for a placement that costs less than one that is known.
///
/// In every round some open branches are explored, each for itself and for at most a fixed number of nodes, with the best
/// placement known when the round begins. So threads change nothing but the time.
pub(super) struct Search<'s> {
    pub(super) instance: &'s Instance<'s>,
    pub(super) symmetries: Symmetries<'s>,
    pub(super) limits: Limits,
    pub(super) cx: Context<'s>,
    pub(super) scale: Scale,
}

impl Search<'_> {
    /// Searches until it is proven that nothing costs less, or a limit is reached. `cost` is that of a placement.
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

    /// Bounds a relaxation and splits it; empty if it holds nothing better than the incumbent.
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

    /// Scaled, the largest cost of a placement that would be better.
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

    /// Tries a placement of the rows that are left.
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

/// How many branches may be explored at once.
fn at_once<T>(root: &Relaxation<T>) -> usize {
    let bytes = size_of_val(root.pairs.as_slice()).max(1) * root.rows.len();
    (MEMORY / bytes).clamp(2, MOST_AT_ONCE)
}
