//! How the time until the deadline of a run is shared: with what runs behind a cell, and with cells that wait for the same cores.

use std::time::{Duration, Instant};

use super::record::{PipelineId, ResultRecord};
use super::store::Store;
use crate::pipeline::Pipeline;

/// A stage that never ended here and is no search is taken to need this part of the time in all.
const UNKNOWN: f64 = 0.05;
/// Seconds, and at most a part of the time left, by which a search may be late without taking them from what runs behind it.
const LATE: (f64, f64) = (0.2, 0.1);
/// A cell that took less than this part of the time left when it last ran does not count among those that wait for cores.
const QUICK: f64 = 0.05;

/// When a run has to end, and what that leaves to every cell.
pub(super) struct Deadline {
    end: Instant,
    /// Seconds that a cell took when it last ended.
    took: Vec<Option<f64>>,
    behind: Vec<Behind>,
}

/// What has to run after a cell, along the longest way.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Behind {
    /// Seconds that it is likely to take, apart from the searches.
    seconds: f64,
    /// Searches that never ended here: they take what they are given.
    searches: u32,
    cells: u32,
}

impl Deadline {
    /// So much time from now; `None` if the clock of the machine does not go as far.
    pub(super) fn new(
        time: Duration,
        pipeline: &Pipeline,
        store: &Store,
        dependents: &[Vec<usize>],
    ) -> Option<Self> {
        let end = Instant::now().checked_add(time)?;
        let identity = PipelineId::of(pipeline, store.root());
        let last = |id: &str| store.result(store.current(&identity, id)?).and_then(seconds);
        let took: Vec<Option<f64>> = pipeline.cells.iter().map(|cell| last(&cell.id)).collect();
        let is_search: Vec<bool> = pipeline.cells.iter().map(|cell| cell.entry.distributed).collect();
        let behind = behind(dependents, &took, &is_search, time.as_secs_f64());
        Some(Self { end, took, behind })
    }

    /// When a cell that starts now has to deliver. `busy` says until when other cells have a core each, `waiting` how many cores
    /// are wanted by cells that wait, this one included.
    pub(super) fn of(&self, cell: usize, jobs: usize, busy: &[Instant], waiting: usize) -> Instant {
        let now = Instant::now();
        let left = self.end.saturating_duration_since(now).as_secs_f64();
        let left = self.behind[cell].leaves(left);
        let busy = busy.iter().map(|until| until.saturating_duration_since(now).as_secs_f64());
        now + Duration::from_secs_f64(share(left, jobs, &busy.collect::<Vec<f64>>(), waiting))
    }

    /// Whether a cell is known to take next to nothing of the time left.
    pub(super) fn is_quick(&self, cell: usize) -> bool {
        let left = self.end.saturating_duration_since(Instant::now()).as_secs_f64();
        self.took[cell].is_some_and(|seconds| seconds < QUICK * left)
    }
}

fn seconds(result: &ResultRecord) -> Option<f64> {
    result.seconds.filter(|seconds| seconds.is_finite() && *seconds >= 0.0)
}

/// What has to run after each cell; cells stand behind those that they need.
fn behind(dependents: &[Vec<usize>], took: &[Option<f64>], is_search: &[bool], time: f64) -> Vec<Behind> {
    let mut behind = vec![Behind::default(); dependents.len()];
    for cell in (0..dependents.len()).rev() {
        let ways = dependents[cell].iter().map(|&next| behind[next].after(took[next], is_search[next], time));
        let length = |way: &Behind| way.seconds + f64::from(way.searches) * time;
        behind[cell] = ways.max_by(|one, other| length(one).total_cmp(&length(other))).unwrap_or_default();
    }
    behind
}

impl Behind {
    /// The same with one more cell before it.
    fn after(self, took: Option<f64>, is_search: bool, time: f64) -> Self {
        let searches = u32::from(is_search && took.is_none());
        let unknown = if is_search { 0.0 } else { UNKNOWN * time };
        Self {
            seconds: self.seconds + took.unwrap_or(unknown),
            searches: self.searches + searches,
            cells: self.cells + 1,
        }
    }

    /// What all this leaves to the cell before it: never less than an equal share.
    fn leaves(self, left: f64) -> f64 {
        if self.cells == 0 {
            return left;
        }
        let late = LATE.0.min(LATE.1 * left);
        let rest = (left - self.seconds - late) / f64::from(self.searches + 1);
        rest.max(left / f64::from(self.cells + 1))
    }
}

/// The most time that each of so many waiting cells can have, one core each, where every cell that runs now ends when it has to.
fn share(left: f64, jobs: usize, busy: &[f64], waiting: usize) -> f64 {
    let free = jobs.saturating_sub(busy.len());
    let open: Vec<f64> = busy.iter().map(|until| (left - until).max(0.0)).collect();
    let fit = |time: f64| {
        let turns = |open: f64| (open / time + 1e-9).floor();
        turns(left) * free as f64 + open.iter().map(|&open| turns(open)).sum::<f64>()
    };
    let (mut enough, mut too_much) = (0.0, left);
    if left <= 0.0 || fit(left) >= waiting as f64 {
        return left.max(0.0);
    }
    for _ in 0..50 {
        let middle = f64::midpoint(enough, too_much);
        match fit(middle) >= waiting as f64 {
            true => enough = middle,
            false => too_much = middle,
        }
    }
    enough
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(one: f64, other: f64) -> bool {
        (one - other).abs() < 1e-6
    }

    #[test]
    fn a_search_gets_all_but_what_the_stages_behind_it_took() {
        // A search, then two stages side by side, then one that needs both.
        let dependents = [vec![1, 2], vec![3], vec![3], vec![]];
        let took = [None, Some(1.0), Some(3.0), Some(0.5)];
        let all = behind(&dependents, &took, &[true, false, false, false], 100.0);
        assert!(close(all[0].leaves(100.0), 96.3));
        assert!(close(all[0].leaves(90.0), 86.3));
        // Where there is not enough for all, an equal share.
        assert!(close(all[0].leaves(3.0), 1.0));
        assert!(close(all[3].leaves(3.0), 3.0));
    }

    #[test]
    fn what_never_ran_counts_a_little_and_a_search_as_much_as_the_one_before() {
        let dependents = [vec![1], vec![2], vec![]];
        let searches = behind(&dependents, &[None; 3], &[true, true, false], 100.0);
        assert!(close(searches[0].leaves(100.0), 47.4));
        assert!(close(searches[1].leaves(100.0), 94.8));
        assert!(close(searches[2].leaves(100.0), 100.0));
    }

    #[test]
    fn cells_that_wait_for_the_same_cores_all_get_as_much() {
        assert!(close(share(10.0, 2, &[], 8), 2.5));
        // The other one of the first two, and those that follow them.
        assert!(close(share(10.0, 2, &[2.5], 7), 2.5));
        assert!(close(share(7.5, 2, &[0.0], 6), 2.5));
        assert!(close(share(2.5, 2, &[2.5], 1), 2.5));
        assert!(close(share(10.0, 2, &[], 3), 5.0));
        assert!(close(share(10.0, 4, &[10.0, 10.0, 10.0], 2), 5.0));
        assert!(close(share(0.0, 2, &[], 8), 0.0));
    }
}
