//! Branch and bound in rounds, which can be interrupted and resumed.

use std::time::Instant;

use hopmap_islands::{Budget, Candidate, Evolution, Meter, Resumable, Save};
use hopmap_model::{Context, ConvergencePoint, Error};
use rayon::prelude::*;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// Maximum branches explored in parallel in a round.
pub(super) const MOST_AT_ONCE: usize = 32;

/// The best mapping so far.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Incumbent {
    /// Its cost in units of the space.
    pub(super) cost: i64,
    /// The slots of the ranks of the space, if they improve on the initial incumbent.
    pub(super) slots: Option<Vec<u32>>,
}

impl Incumbent {
    /// The initial incumbent of a search.
    pub(super) fn first(cost: i64) -> Self {
        Self { cost, slots: None }
    }

    /// Takes a mapping if it costs less.
    pub(super) fn replace(&mut self, cost: i64, slots: Vec<u32>) {
        if cost < self.cost {
            *self = Self { cost, slots: Some(slots) };
        }
    }
}

/// The partial mappings of a problem, and lower bounds of what their completions cost.
///
/// Unless stopped, all results depend on the arguments alone, so that a saved branch is restored identically.
pub(super) trait Space: Clone + Sync {
    /// A partial mapping.
    type Branch: Clone + Send + Sync;
    /// Branches in stored form.
    type Saved: Clone + Serialize + DeserializeOwned + Send + Sync;

    /// Branches that contain every mapping better than the incumbent.
    fn root(&self, incumbent: &mut Incumbent, stop: Stop<'_>) -> Vec<Self::Branch>;

    /// The same in a branch; improves the incumbent by mappings found on the way.
    fn split(&self, branch: &Self::Branch, incumbent: &mut Incumbent, stop: Stop<'_>) -> Vec<Self::Branch>;

    /// Lower bound of a branch.
    fn bound(&self, branch: &Self::Branch) -> i64;

    /// Branches in stored form, in order.
    fn save(open: &[Self::Branch]) -> Vec<Self::Saved>;

    /// Saved branches; `None` if stopped, or if they are not of this space.
    fn restore(&self, saved: &[Self::Saved], stop: Stop<'_>) -> Option<Vec<Self::Branch>>;

    /// Number of branches explored in parallel, and the maximum of nodes of each in a round.
    fn round(&self) -> (usize, u64);
}

/// When a search must stop.
#[derive(Clone, Copy)]
pub(super) struct Stop<'c> {
    deadline: Option<Instant>,
    cx: Context<'c>,
}

impl Stop<'_> {
    pub(super) fn is_now(self) -> bool {
        self.deadline.is_some_and(|deadline| Instant::now() >= deadline) || self.cx.should_stop()
    }

    /// Applies a function to all items on the threads of the context.
    pub(super) fn map<I: Send, R: Send>(self, items: Vec<I>, apply: impl Fn(I) -> R + Send + Sync) -> Vec<R> {
        let share = items.len().div_ceil(self.cx.threads().max(1)).max(1);
        items.into_par_iter().with_min_len(share).map(apply).collect()
    }
}

/// The search that gave the initial incumbent; part of the saved state.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct First {
    pub(super) slots: Vec<u32>,
    pub(super) evaluations: u64,
    pub(super) seconds: f64,
    convergence: Vec<(u32, u64, f64)>,
}

impl First {
    pub(super) fn new(found: crate::mapper::SearchResult, seconds: f64) -> Self {
        let points = found.convergence.into_iter();
        Self {
            slots: found.slots,
            evaluations: found.evaluations,
            seconds,
            convergence: points.map(|point| (point.island, point.evaluations, point.cost)).collect(),
        }
    }

    pub(super) fn convergence(&self) -> Vec<ConvergencePoint> {
        let point = |&(island, evaluations, cost)| ConvergencePoint { island, evaluations, cost };
        self.convergence.iter().map(point).collect()
    }
}

/// Result of a search.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Proof {
    /// The slots of the ranks of the space, if they improve on the initial incumbent.
    pub(super) better: Option<Vec<u32>>,
    /// Cost and lower bound in units of the space.
    pub(super) cost: i64,
    pub(super) bound: i64,
    /// Nodes whose bound was computed.
    pub(super) nodes: u64,
}

impl Proof {
    /// What is known of the initial incumbent without a search.
    pub(super) fn without_search(cost: i64, bound: i64) -> Self {
        Self { better: None, cost, bound, nodes: 0 }
    }
}

/// A search for a mapping that costs less than the incumbent.
///
/// Every round explores some open branches independently, each for a fixed maximum number of nodes and with
/// the incumbent at the start of the round. The result therefore does not depend on the number of threads.
/// A round is an epoch of an [`Evolution`] with one island: the state between two rounds is the incumbent and
/// the open branches, of which spaces save the path from the root.
pub(super) struct Search<'s, S> {
    pub(super) space: &'s S,
    pub(super) first: &'s First,
    /// Cost of the initial incumbent.
    pub(super) cost: i64,
    pub(super) cx: Context<'s>,
}

impl<S: Space> Search<'_, S> {
    /// The bound of the root alone.
    pub(super) fn root(&self) -> Proof {
        self.begin_at_root(self.stop(None)).proof()
    }

    /// Searches until the optimum is proven or the budget is spent; whether it was not interrupted.
    pub(super) fn run(&self, budget: &Budget) -> Result<(Proof, bool), Error> {
        let found = budget.evolve(self, u64::MAX, &self.cx)?;
        Ok((found.best.solution, found.complete))
    }

    fn stop(&self, deadline: Option<Instant>) -> Stop<'_> {
        Stop { deadline, cx: self.cx }
    }

    fn begin_at_root(&self, stop: Stop<'_>) -> Tree<S> {
        let mut incumbent = Incumbent::first(self.cost);
        let open = self.space.root(&mut incumbent, stop);
        let mut tree = Tree {
            first: self.first.clone(),
            incumbent,
            bound: 0,
            nodes: 1,
            open: Resumable::Live(Open(open)),
        };
        tree.note_bound(self.space);
        tree
    }

    /// Explores a branch depth first.
    fn explore(
        &self,
        branch: S::Branch,
        quota: u64,
        mut incumbent: Incumbent,
        stop: Stop<'_>,
    ) -> Explored<S> {
        let mut open = vec![branch];
        let mut nodes = 0;
        while nodes < quota {
            let Some(branch) = open.pop() else { break };
            if self.space.bound(&branch) >= incumbent.cost {
                continue;
            }
            let split = self.space.split(&branch, &mut incumbent, stop);
            if stop.is_now() {
                // The split may be incomplete.
                open.push(branch);
                break;
            }
            nodes += 1;
            open.extend(split);
        }
        Explored { open, incumbent, nodes }
    }
}

/// Result of a branch in a round.
struct Explored<S: Space> {
    open: Vec<S::Branch>,
    incumbent: Incumbent,
    nodes: u64,
}

/// A search between two rounds.
#[derive(Clone, Serialize, Deserialize)]
#[serde(bound = "")]
pub(super) struct Tree<S: Space> {
    first: First,
    incumbent: Incumbent,
    bound: i64,
    nodes: u64,
    open: Resumable<Open<S>>,
}

/// The open branches, the most promising one last.
struct Open<S: Space>(Vec<S::Branch>);

impl<S: Space> Save for Open<S> {
    type Saved = Vec<S::Saved>;

    fn save(&self) -> Vec<S::Saved> {
        S::save(&self.0)
    }
}

impl<S: Space> Tree<S> {
    fn note_bound(&mut self, space: &S) {
        if let Some(Open(open)) = self.open.live() {
            let least = open.iter().map(|branch| space.bound(branch)).min();
            self.bound = least.map_or(self.incumbent.cost, |bound| bound.min(self.incumbent.cost));
        }
    }

    fn proof(&self) -> Proof {
        let Incumbent { cost, slots } = &self.incumbent;
        Proof { better: slots.clone(), cost: *cost, bound: self.bound, nodes: self.nodes }
    }
}

impl<S: Space> Evolution for Search<'_, S> {
    type Island = Tree<S>;
    type Solution = Proof;

    fn begin(&self, _: u32, meter: &mut Meter<'_>) -> Result<Tree<S>, Error> {
        let tree = self.begin_at_root(self.stop(meter.deadline()));
        meter.take_all(1);
        meter.look();
        Ok(tree)
    }

    fn advance(&self, tree: &mut Tree<S>, _: u64, meter: &mut Meter<'_>) -> Result<bool, Error> {
        let stop = self.stop(meter.deadline());
        if let Resumable::Saved(saved) = &tree.open {
            match self.space.restore(saved, stop) {
                Some(open) => tree.open = Resumable::Live(Open(open)),
                None if stop.is_now() => return Ok(meter.look()),
                // The state is not one of this search.
                None => *tree = self.begin_at_root(stop),
            }
        }
        let Some(Open(open)) = tree.open.live() else { return Ok(false) };
        let (at_once, most_nodes) = self.space.round();
        let batch = (at_once as u64).min(meter.left()).min(open.len() as u64);
        if batch == 0 {
            return Ok(false);
        }
        let taken = open.split_off(open.len() - batch as usize);
        let quota = most_nodes.min(meter.left() / batch);
        let cost = tree.incumbent.cost;
        let explore = |branch| self.explore(branch, quota, Incumbent::first(cost), stop);
        let mut nodes = 0;
        for explored in stop.map(taken, explore) {
            nodes += explored.nodes;
            open.extend(explored.open);
            if explored.incumbent.cost < tree.incumbent.cost {
                tree.incumbent = explored.incumbent;
            }
        }
        open.retain(|branch| self.space.bound(branch) < tree.incumbent.cost);
        let is_open = !open.is_empty();
        tree.nodes += nodes;
        tree.note_bound(self.space);
        meter.take_all(nodes);
        meter.look();
        Ok(is_open)
    }

    fn best(&self, tree: &Tree<S>) -> Candidate<Proof> {
        Candidate { cost: tree.incumbent.cost, solution: tree.proof() }
    }
}
