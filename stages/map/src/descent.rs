//! Descent to a placement that no exchange improves.

use std::ops::Range;

use hopmap_objective::Assignment;

/// Exchanges a rank with what is on another slot for as long as that lowers the cost.
///
/// Ends where no exchange of two ranks and no move to a free slot lowers the cost, or when `more`, asked before every
/// evaluation, says no. An exchange that lowers the cost brings one of its ranks closer to a neighbour, so only slots closer
/// to a neighbour are tried, or all where the machine is no tree or the objective is about links.
pub fn descend(assignment: &mut Assignment<'_>, mut more: impl FnMut() -> bool) {
    let ranks = assignment.slots().len() as u32;
    loop {
        let before = assignment.cost();
        for rank in 0..ranks {
            if !improve(assignment, rank, &mut more) {
                return;
            }
        }
        if assignment.cost() == before {
            return;
        }
    }
}

/// Makes every exchange of a rank that lowers the cost; `false` if `more` said no.
fn improve(assignment: &mut Assignment<'_>, rank: u32, more: &mut impl FnMut() -> bool) -> bool {
    let order = assignment.problem().distance().order();
    for run in closer(assignment, rank) {
        for &slot in &order[run] {
            if !more() {
                return false;
            }
            let delta = assignment.delta(rank, slot);
            if delta < 0 {
                assignment.exchange(rank, slot, delta);
            }
        }
    }
    true
}

/// The slots that are closer to some neighbour than the own slot is, as runs in the order of the tree that do not overlap.
fn closer(assignment: &Assignment<'_>, rank: u32) -> Vec<Range<usize>> {
    let distance = assignment.problem().distance();
    if !assignment.problem().is_about_closeness() {
        // Any slot may be closer to some neighbour.
        return std::iter::once(0..distance.order().len()).collect();
    }
    let here = assignment.slot_of(rank);
    let closer_to = |there| {
        let level = distance.meeting_level(here, there).checked_sub(1)?;
        Some(distance.group(level, there))
    };
    let neighbours = assignment.problem().neighbours(rank).iter();
    let mut runs: Vec<_> =
        neighbours.filter_map(|neighbour| closer_to(assignment.slot_of(neighbour.rank))).collect();
    runs.sort_unstable_by_key(|run| (run.start, std::cmp::Reverse(run.end)));
    // Groups of a tree lie inside each other or apart.
    runs.dedup_by(|inner, outer| inner.end <= outer.end);
    runs
}
