//! Earliest finish times of the remaining tasks on every processor, and a capacity test.

use super::state::{Fixed, MOST_TASKS, State};

/// Infinite time.
pub(super) const NEVER: i64 = i64::MAX / 4;

/// Earliest finish and remaining times of tasks, per processor.
#[derive(Debug, Clone)]
pub(super) struct Windows {
    /// Earliest finish of task `t` on processor `p`, at `t * processors + p`, or infinite.
    pub(super) finish: Vec<i64>,
    /// The earliest finish over all processors.
    soonest: Vec<i64>,
    /// Lower bound of the remaining time after task `t` on processor `p`, at `t * processors + p`.
    pub(super) tail: Vec<i64>,
    /// Lower bound of the time of a task and all that follows.
    least: Vec<i64>,
    receives: Vec<i64>,
    group: Vec<Member>,
}

/// A neighbour of the current task: a predecessor or a successor.
#[derive(Debug, Clone, Copy)]
struct Member {
    task: usize,
    /// Its effect on the current task if it runs on another processor.
    apart: i64,
}

impl Windows {
    pub(super) fn new(fixed: &Fixed<'_>) -> Self {
        let tail = fixed.relaxed.tail.iter();
        Self {
            finish: vec![0; fixed.tasks * fixed.processors],
            soonest: vec![0; fixed.tasks],
            tail: tail.flat_map(|&tail| std::iter::repeat_n(tail, fixed.processors)).collect(),
            least: vec![0; fixed.tasks],
            receives: vec![0; fixed.processors],
            group: Vec::with_capacity(fixed.tasks),
        }
    }

    /// Copies the windows of the previous empty processor to the next one.
    pub(super) fn split(&mut self, fixed: &Fixed<'_>, opened: usize) {
        for row in self.tail.chunks_mut(fixed.processors) {
            row[opened] = row[opened - 1];
        }
    }

    /// Updates the windows of all remaining tasks. Returns whether each has a possible processor.
    pub(super) fn narrow(&mut self, fixed: &Fixed<'_>, state: &State, limit: i64) -> bool {
        self.forward(fixed, state, limit) && self.backward(fixed, state, limit)
    }

    fn forward(&mut self, fixed: &Fixed<'_>, state: &State, limit: i64) -> bool {
        let columns = state.columns(fixed);
        let stride = fixed.processors;
        for &task in fixed.problem.order() {
            let task = task as usize;
            if state.is_done(task) {
                continue;
            }
            self.receives[..columns].fill(0);
            let row = task * stride;
            let began = state.began.0;
            for processor in 0..columns {
                self.finish[row + processor] = state.free[processor].max(began);
            }
            self.senders(fixed, state, task, columns);
            self.stay(fixed, row, columns);
            let mut soonest = NEVER;
            for processor in 0..columns {
                let begins = self.finish[row + processor];
                let done = begins + self.receives[processor] + fixed.work(task, processor);
                let fits = begins < NEVER && done + self.tail[row + processor] <= limit;
                self.finish[row + processor] = if fits { done } else { NEVER };
                soonest = soonest.min(self.finish[row + processor]);
            }
            self.soonest[task] = soonest;
            if soonest == NEVER {
                return false;
            }
        }
        true
    }

    /// Applies the predecessors of a task one by one, and collects those that could share its processor.
    fn senders(&mut self, fixed: &Fixed<'_>, state: &State, task: usize, columns: usize) {
        let row = task * fixed.processors;
        self.group.clear();
        let links = &fixed.relaxed.parents[task];
        for (link, message) in links.iter().zip(fixed.problem.parents(task as u32)) {
            let from = link.task as usize;
            if state.is_done(from) {
                let (sent, on) = (state.finish[from], state.on[from]);
                for processor in 0..columns {
                    let delay = fixed.problem.delay(message.size, on, processor as u32);
                    let at = &mut self.finish[row + processor];
                    if fixed.receives {
                        *at = sent.max(*at);
                        self.receives[processor] = delay.max(self.receives[processor]);
                    } else {
                        *at = (sent + delay).max(*at);
                    }
                }
                continue;
            }
            let (sent, other) = (self.soonest[from], from * fixed.processors);
            if fixed.receives {
                for processor in 0..columns {
                    let at = &mut self.finish[row + processor];
                    *at = sent.max(*at);
                    if self.finish[other + processor] == NEVER {
                        self.receives[processor] = link.far.max(self.receives[processor]);
                    }
                }
            } else {
                for processor in 0..columns {
                    let arrives = self.finish[other + processor].min(sent + link.far);
                    let at = &mut self.finish[row + processor];
                    *at = arrives.max(*at);
                }
                self.group.push(Member { task: from, apart: sent + link.far });
            }
        }
    }

    /// The remaining predecessors with the latest messages run in sequence on the processor of the task.
    fn stay(&mut self, fixed: &Fixed<'_>, row: usize, columns: usize) {
        if self.group.len() < 2 {
            return;
        }
        let mut group = std::mem::take(&mut self.group);
        group.sort_unstable_by_key(|member| std::cmp::Reverse(member.apart));
        for processor in 0..columns {
            let best = in_sequence(&group, |next| {
                let done = self.finish[next.task * fixed.processors + processor];
                let work = fixed.work(next.task, processor);
                Some([done - work, work, done])
            });
            let at = &mut self.finish[row + processor];
            *at = best.max(*at);
        }
        self.group = group;
    }

    fn backward(&mut self, fixed: &Fixed<'_>, state: &State, limit: i64) -> bool {
        let columns = state.columns(fixed);
        let stride = fixed.processors;
        for &task in fixed.problem.order().iter().rev() {
            let task = task as usize;
            if state.is_done(task) {
                continue;
            }
            let row = task * stride;
            let mut group = std::mem::take(&mut self.group);
            group.clear();
            for link in &fixed.relaxed.children[task] {
                let to = link.task as usize;
                group.push(Member { task: to, apart: self.least[to] + link.far });
            }
            group.sort_unstable_by_key(|member| std::cmp::Reverse(member.apart));
            let mut least = NEVER;
            for processor in 0..columns {
                if self.finish[row + processor] == NEVER {
                    continue;
                }
                let follows = self.follow(fixed, &group, processor);
                let tail = self.tail[row + processor].max(follows);
                self.tail[row + processor] = tail.min(NEVER);
                if self.finish[row + processor] + tail > limit {
                    self.finish[row + processor] = NEVER;
                } else {
                    least = least.min(fixed.work(task, processor) + tail);
                }
            }
            self.group = group;
            self.least[task] = least;
            if least == NEVER {
                return false;
            }
        }
        true
    }

    /// Lower bound of the time of the successors of a task on a processor: those that would finish last elsewhere run in sequence
    /// on the same processor.
    fn follow(&self, fixed: &Fixed<'_>, group: &[Member], processor: usize) -> i64 {
        in_sequence(group, |next| {
            let at = next.task * fixed.processors + processor;
            let work = fixed.work(next.task, processor);
            (self.finish[at] != NEVER).then(|| [self.tail[at], work, work + self.tail[at]])
        })
    }
}

/// Lower bound of the time between a task and its neighbours, if those of the greatest effect run in sequence on its processor and the
/// others elsewhere. `times` are the least time before or after the work of a neighbour, its work, and both; none if it cannot run there.
fn in_sequence(group: &[Member], times: impl Fn(&Member) -> Option<[i64; 3]>) -> i64 {
    let (mut least, mut sum, mut most, mut best) = (NEVER, 0, 0, NEVER);
    for count in 0..=group.len() {
        let own = if count == 0 { 0 } else { most.max(least + sum) };
        let others = group.get(count).map_or(0, |member| member.apart);
        best = best.min(own.max(others));
        if own >= best || own >= NEVER {
            break;
        }
        let Some([apart, work, together]) = group.get(count).and_then(&times) else { break };
        least = least.min(apart);
        sum += work;
        most = most.max(together);
    }
    best
}

/// A remaining task.
#[derive(Debug, Clone, Copy, Default)]
struct Left {
    /// Its earliest start.
    head: i64,
    work: i64,
    /// Its deadline.
    due: i64,
}

/// Whether the remaining tasks may fit before a limit, on single processors and on all together.
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
        // The column of one empty processor represents all of them.
        if places == 1 && (place < state.used || state.used + 1 == fixed.processors) {
            bound[settled] = (place, all);
            settled += 1;
        }
    }
    alone(&mut bound[..settled]) && together(fixed, state, &mut left[..count], limit)
}

/// Whether every processor has capacity for the tasks that can only run there.
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

/// Whether the processors have capacity for the work due before every time, and released after it.
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
