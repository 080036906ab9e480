//! Where a search on a machine that is not a tree begins: a direct embedding or a dual bisection.

use std::time::Duration;

use hopmap_model::Error;
use hopmap_objective::{Assignment, Problem};

use crate::dual::dual_bisection;
use crate::grids::{Machine, embedding};
use crate::moves::descend_near;

/// Minimum number of ranks for a bisection.
const MANY_RANKS: usize = 64;

/// Expected time of a bisection per rank.
const BISECTION: Duration = Duration::from_micros(150);
/// Maximum evaluations of the descent per rank.
const EVALUATIONS: u64 = 1 << 10;

/// A mapping without search.
pub(crate) struct Start {
    pub(crate) slots: Vec<u32>,
    /// Whether no mapping costs less.
    pub(crate) is_optimal: bool,
}

impl Start {
    /// The best of a direct embedding and, for sparse programs, a dual bisection if there is
    /// time for it; `None` if neither applies or the cost is not a sum.
    pub(crate) fn new(problem: &Problem, seed: u64, time: Option<Duration>) -> Result<Option<Self>, Error> {
        let distance = problem.distance();
        if distance.is_tree() || distance.levels() < 2 || !problem.is_quadratic() {
            return Ok(None);
        }
        let machine = Machine::new(problem);
        let embedded = embedding(problem, &machine);
        if let Some(slots) = embedded.as_ref().filter(|slots| is_optimal(problem, slots)) {
            return Ok(Some(Self { slots: slots.clone(), is_optimal: true }));
        }
        let is_sparse = !distance.near(0).is_empty() && problem.ranks() >= MANY_RANKS;
        let has_time = time.is_none_or(|time| time > BISECTION * problem.ranks() as u32);
        let bisected = match is_sparse && has_time {
            true => dual_bisection(problem, &machine, seed)?,
            false => None,
        };
        let Some(best) = embedded.into_iter().chain(bisected).min_by_key(|slots| problem.cost(slots)) else {
            return Ok(None);
        };
        let mut assignment = Assignment::new(problem, &best)?;
        let mut left = EVALUATIONS * problem.ranks() as u64;
        descend_near(&mut assignment, &mut || {
            left = left.saturating_sub(1);
            left > 0
        });
        Ok(Some(Self { slots: assignment.slots().to_vec(), is_optimal: false }))
    }
}

/// Whether no mapping costs less, because all neighbours are at the least cost from each other.
fn is_optimal(problem: &Problem, slots: &[u32]) -> bool {
    let distance = problem.distance();
    let hosts = distance.hosts();
    let inside = hosts.iter().flat_map(|host| pairs(host.iter().copied()));
    let between = pairs(hosts.iter().map(|host| host[0]));
    let least = inside.chain(between).map(|(one, other)| distance.cost(one, other)).min();
    let is_least = |rank: usize| {
        let mut costs = problem
            .neighbours(rank as u32)
            .iter()
            .map(|near| distance.cost(slots[rank], slots[near.rank as usize]));
        costs.all(|cost| least.is_some_and(|least| cost <= least))
    };
    problem.is_plain() && (0..problem.ranks()).all(is_least)
}

/// All pairs of different elements.
fn pairs(elements: impl Iterator<Item = u32> + Clone) -> impl Iterator<Item = (u32, u32)> {
    let later = elements.clone();
    elements
        .enumerate()
        .flat_map(move |(index, one)| later.clone().take(index).map(move |other| (one, other)))
}
