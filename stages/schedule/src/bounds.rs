//! Makespans that no schedule of a problem is below.

mod heads;
mod intervals;
mod relaxed;
#[cfg(test)]
mod tests;

use crate::Problem;

pub(crate) use intervals::fits;
pub(crate) use relaxed::Relaxed;

/// The highest lower bound that is quick to compute, in ticks.
///
/// It is the largest of three: the longest chain, in which a task with several parents waits for messages from those that cannot
/// all be on its own processor; what the longest tasks take that share a processor because they are more than processors; and the
/// least time in which the work of every interval has room on all processors.
#[must_use]
pub fn lower_bound(problem: &Problem) -> i64 {
    let relaxed = Relaxed::new(problem);
    let longest = relaxed.chain().max(relaxed.crowded());
    first(longest, |limit| fits(&relaxed, &relaxed.head, &relaxed.tail, limit))
}

/// The first number from `low` on that is feasible, where all after it are too.
pub(crate) fn first(low: i64, feasible: impl Fn(i64) -> bool) -> i64 {
    if feasible(low) {
        return low;
    }
    let (mut below, mut step) = (low, 1);
    while !feasible(below + step) {
        below += step;
        step *= 2;
    }
    let mut above = below + step;
    while above - below > 1 {
        let middle = below + (above - below) / 2;
        if feasible(middle) {
            above = middle;
        } else {
            below = middle;
        }
    }
    above
}
