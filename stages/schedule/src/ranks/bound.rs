//! A makespan that no placement is below.

use super::problem::RankProblem;

/// The longest chain of work, each where it is fastest, and of messages, each between the nearest two slots: every rank is alone on its
/// slot, so messages between ranks leave it. The work of every rank is such a chain.
pub(super) fn lower_bound(problem: &RankProblem) -> i64 {
    problem.earliest + problem.tails.whole.iter().copied().max().unwrap_or(0)
}
