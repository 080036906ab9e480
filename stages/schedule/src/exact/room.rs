//! Whether the work that is left has room on the processors.

use super::state::{Fixed, MOST_TASKS, State};
use super::windows::{NEVER, Windows};

/// A task that is left.
#[derive(Debug, Clone, Copy, Default)]
struct Left {
    /// When it can begin.
    head: i64,
    work: i64,
    /// When it has to be done.
    due: i64,
}

/// Whether what is left may have room before a limit, on single processors and on all together.
pub(super) fn has_room(fixed: &Fixed<'_>, state: &State, windows: &Windows, limit: i64) -> bool {
    let columns = state.columns(fixed);
    let mut left = [Left::default(); MOST_TASKS];
    let mut count = 0;
    let mut bound = [(0usize, Left::default()); MOST_TASKS];
    let mut settled = 0;
    for task in (0..fixed.tasks).filter(|&task| !state.is_done(task)) {
        let row = task * fixed.processors;
        let mut all = Left { head: NEVER, work: NEVER, due: 0 };
        let (mut places, mut place) = (0, 0);
        for processor in 0..columns {
            let finish = windows.finish[row + processor];
            if finish < NEVER {
                let work = fixed.work(task, processor);
                all.head = all.head.min(finish - work);
                all.work = all.work.min(work);
                all.due = all.due.max(limit - windows.tail[row + processor]);
                (places, place) = (places + 1, processor);
            }
        }
        left[count] = all;
        count += 1;
        // The column of a processor that runs nothing yet stands for all of those.
        if places == 1 && (place < state.used || state.used + 1 == fixed.processors) {
            bound[settled] = (place, all);
            settled += 1;
        }
    }
    alone(&mut bound[..settled]) && together(fixed, state, &mut left[..count], limit)
}

/// Whether every processor has room for the tasks that can only run there.
fn alone(bound: &mut [(usize, Left)]) -> bool {
    bound.sort_unstable_by_key(|(processor, left)| (*processor, left.due));
    let due = bound.chunk_by(|a, b| a.0 == b.0).all(|tasks| {
        let (mut head, mut sum) = (NEVER, 0);
        tasks.iter().all(|(_, left)| {
            (head, sum) = (head.min(left.head), sum + left.work);
            head + sum <= left.due
        })
    });
    bound.sort_unstable_by_key(|(processor, left)| (*processor, -left.head));
    due && bound.chunk_by(|a, b| a.0 == b.0).all(|tasks| {
        let (mut due, mut sum) = (0, 0);
        tasks.iter().all(|(_, left)| {
            (due, sum) = (due.max(left.due), sum + left.work);
            left.head + sum <= due
        })
    })
}

/// Whether the processors have room for what has to be done before every moment, and for what has to be done after it.
fn together(fixed: &Fixed<'_>, state: &State, left: &mut [Left], limit: i64) -> bool {
    let began = state.began.0;
    let before = |moment: i64| {
        let own = |free: &i64| (moment - began.max(*free)).max(0);
        state.free.iter().map(own).fold(0, i64::saturating_add)
    };
    let after = |moment: i64| {
        let own = |free: &i64| (limit - moment.max(*free)).max(0);
        state.free.iter().map(own).fold(0, i64::saturating_add)
    };
    debug_assert!(state.free.len() == fixed.processors);
    let early = |moment: i64| {
        let part = |one: &Left| (moment - one.due + one.work).clamp(0, one.work);
        left.iter().map(part).sum::<i64>()
    };
    let late = |moment: i64| {
        let part = |one: &Left| (one.head + one.work - moment).clamp(0, one.work);
        left.iter().map(part).sum::<i64>()
    };
    left.iter().all(|one| early(one.due) <= before(one.due) && late(one.head) <= after(one.head))
}
