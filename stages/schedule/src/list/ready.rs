//! Heuristics that compare all tasks that are ready on all processors, again for every task.

use super::partial::{Arrivals, Partial};
use super::priorities::upward;
use super::view::View;
use crate::Plan;

/// Which task comes next, and where.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rule {
    /// Earliest time first (Hwang, Chow, Anger, Lee 1989): the task that can begin first; of several the one of the highest level.
    EarliestStart,
    /// Dynamic level scheduling (Sih, Lee 1993): the highest difference between level and beginning, on processors that are
    /// slower or faster for the task than others by that much less or more.
    DynamicLevel,
    /// Min-min (Ibarra, Kim 1977): the task that can be done first.
    MinMin,
    /// Max-min (the same): the task that is done last of those which are put where they are done first.
    MaxMin,
    /// Sufferage (Maheswaran, Ali, Siegel, Hensgen, Freund 1999): the task that would be done the latest on the processor that
    /// is second best for it, compared with the best.
    Sufferage,
}

/// A task that is ready, and what it would find everywhere.
struct Ready {
    task: u32,
    arrivals: Arrivals,
}

/// Schedules by a rule; every task comes after all others on its processor.
pub(super) fn by(view: &View<'_>, rule: Rule) -> Plan {
    let levels = upward(view, &view.mean_work, false);
    let mut waits: Vec<usize> = (0..view.tasks() as u32).map(|task| view.parents(task).len()).collect();
    let mut partial = Partial::new(view, false);
    let mut ready: Vec<Ready> = Vec::new();
    let mut spare: Vec<Arrivals> = Vec::new();
    let enter = |task: u32, partial: &Partial<'_, '_>, ready: &mut Vec<Ready>, spare: &mut Vec<_>| {
        let mut arrivals = spare.pop().unwrap_or_default();
        partial.arrivals(task, &mut arrivals);
        ready.push(Ready { task, arrivals });
    };
    for task in (0..view.tasks() as u32).filter(|&task| view.parents(task).is_empty()) {
        enter(task, &partial, &mut ready, &mut spare);
    }
    let mut ends = view.available();
    while let Some((at, processor)) = choose(rule, &ready, &ends, &levels, view) {
        let Ready { task, arrivals } = ready.swap_remove(at);
        let takes = arrivals.takes[processor];
        let start = arrivals.ready[processor].max(ends[processor]);
        partial.put(task, processor as u32, start, takes);
        ends[processor] = start + takes;
        spare.push(arrivals);
        for message in view.children(task) {
            waits[message.task as usize] -= 1;
            if waits[message.task as usize] == 0 {
                enter(message.task, &partial, &mut ready, &mut spare);
            }
        }
    }
    partial.plan()
}

/// The place in the list of the task that comes next, and its processor. Of several the one with the lowest number.
fn choose(
    rule: Rule,
    ready: &[Ready],
    ends: &[i64],
    levels: &[i64],
    view: &View<'_>,
) -> Option<(usize, usize)> {
    let value = |one: &Ready| {
        let times = one.arrivals.ready.iter().zip(&one.arrivals.takes).zip(ends);
        let level = levels[one.task as usize];
        let mean = view.mean_work[one.task as usize];
        match rule {
            Rule::EarliestStart => {
                let (start, to) = least(times.map(|((ready, _), end)| *ready.max(end))).0;
                ((start, -level), to)
            }
            Rule::DynamicLevel => {
                let works = view.problem.works(one.task).iter().cycle();
                let late = times.zip(works).map(|(((ready, _), end), work)| work - mean + ready.max(end));
                let (late, to) = least(late).0;
                ((late - level, 0), to)
            }
            Rule::MinMin | Rule::MaxMin | Rule::Sufferage => {
                let ((done, to), second) = least(times.map(|((ready, takes), end)| ready.max(end) + takes));
                match rule {
                    Rule::MinMin => ((done, 0), to),
                    Rule::MaxMin => ((-done, 0), to),
                    _ => ((done - second, 0), to),
                }
            }
        }
    };
    let all = ready.iter().enumerate().map(|(at, one)| (value(one), one.task, at));
    all.min_by_key(|&((value, _), task, _)| (value, task)).map(|((_, to), _, at)| (at, to))
}

/// The least of some values and where it is, and the second least.
fn least(values: impl Iterator<Item = i64>) -> ((i64, usize), i64) {
    let (mut best, mut second) = ((i64::MAX / 2, 0), i64::MAX / 2);
    for (at, value) in values.enumerate() {
        if value < best.0 {
            (second, best) = (best.0, (value, at));
        } else {
            second = second.min(value);
        }
    }
    (best, second)
}
