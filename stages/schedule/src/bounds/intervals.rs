//! Whether the work of every interval of time has room.

use super::relaxed::Relaxed;

/// How many additions one test may take.
const MOST_STEPS: usize = 1 << 21;

/// Whether there may be a schedule that is done at a time, as far as the work of intervals tells: a task that begins at `head` at the
/// earliest and has to be done `tail` before the end has a certain part of its work in every interval, whenever it runs, and the
/// processors have to have room for all of it (Fernandez, Bussell 1973; the energetic reasoning of Erschler, Lopez 1990).
pub(crate) fn fits(relaxed: &Relaxed, head: &[i64], tail: &[i64], end: i64) -> bool {
    let tasks = relaxed.work.len();
    let window = |task: usize| (head[task], end - tail[task], relaxed.work[task]);
    let windows: Vec<(i64, i64, i64)> = (0..tasks).map(window).filter(|window| window.2 > 0).collect();
    if windows.iter().any(|&(from, to, work)| from + work > to) {
        return false;
    }
    let most = (MOST_STEPS / tasks.max(1)).isqrt().max(2);
    let begins = ends_of(windows.iter().flat_map(|&(from, to, work)| [from, to - work]), most);
    let ends = ends_of(windows.iter().flat_map(|&(from, to, work)| [to, from + work]), most);
    begins.iter().all(|&from| {
        // What matters of tasks whose window this interval may cut.
        let tails: Vec<(i64, i64, i64)> = windows
            .iter()
            .map(|&(early, to, work)| ((early + work - from).min(work), to - work, work))
            .filter(|window| window.0 > 0)
            .collect();
        ends.iter().filter(|&&to| to > from).all(|&to| {
            let part = |&(left, late, _): &(i64, i64, i64)| left.min(to - late).min(to - from).max(0);
            let work: i64 = tails.iter().map(part).sum();
            work <= room(relaxed, from, to)
        })
    })
}

/// The moments worth looking at, rising; only some of them if they are many.
fn ends_of(moments: impl Iterator<Item = i64>, most: usize) -> Vec<i64> {
    let mut moments: Vec<i64> = moments.collect();
    moments.sort_unstable();
    moments.dedup();
    let every = moments.len().div_ceil(most).max(1);
    let last = moments.last().copied();
    let mut chosen: Vec<i64> = moments.into_iter().step_by(every).collect();
    chosen.extend(last);
    chosen
}

/// What processors can do in an interval.
fn room(relaxed: &Relaxed, from: i64, to: i64) -> i64 {
    let own = |&available: &i64| (to - available.max(from)).max(0);
    relaxed.available.iter().map(own).fold(0, i64::saturating_add)
}
