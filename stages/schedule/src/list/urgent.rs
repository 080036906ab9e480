//! Heuristics that take tasks by an urgency that is known from the beginning.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::partial::{Arrivals, Partial};
use super::priorities::{downward, latest_first, most_urgent_first, optimistic_costs, upward};
use super::view::View;
use crate::Plan;

/// Heterogeneous earliest finish time (Topcuoglu, Hariri, Wu 2002): the most urgent task goes where it is done first, between
/// others if there is room.
pub(super) fn heft(view: &View<'_>, work: &[i64]) -> Plan {
    let mut partial = Partial::new(view, true);
    let mut arrivals = Arrivals::default();
    for task in most_urgent_first(view, &upward(view, work, true)) {
        partial.put_first_done(task, &mut arrivals);
    }
    partial.plan()
}

/// Highest level first with estimated times (Adam, Chandy, Dickson 1974): levels without messages, every task after all others
/// where it begins first.
pub(super) fn hlfet(view: &View<'_>) -> Plan {
    begin_first(view, &most_urgent_first(view, &upward(view, &view.mean_work, false)), false)
}

/// Modified critical path (Wu, Gajski 1990): the task that must begin first goes where it can, between others if there is room.
pub(super) fn mcp(view: &View<'_>) -> Plan {
    begin_first(view, &latest_first(view), true)
}

/// Puts tasks in their order where they begin first; of two such processors, where they are done first.
fn begin_first(view: &View<'_>, order: &[u32], inserts: bool) -> Plan {
    let mut partial = Partial::new(view, inserts);
    let mut arrivals = Arrivals::default();
    for &task in order {
        partial.arrivals(task, &mut arrivals);
        let (_, first) = partial.least(&arrivals, |_, start| start);
        let late = |start: i64| if start == first { 0 } else { i64::MAX / 2 };
        let (processor, start) =
            partial.least(&arrivals, |processor, start| late(start) + arrivals.takes[processor]);
        partial.put(task, processor, start, arrivals.takes[processor as usize]);
    }
    partial.plan()
}

/// Lookahead (Bittencourt, Sakellariou, Madeira 2010): as HEFT, but every task goes where the last of its children could be done
/// first. Children are thought of behind all others on their processor, which is quicker than looking for room between them.
pub(super) fn lookahead(view: &View<'_>) -> Plan {
    let processors = view.processors();
    let mut partial = Partial::new(view, true);
    let mut arrivals = Arrivals::default();
    let (mut placed, mut child) = (vec![false; view.tasks()], Arrivals::default());
    for task in most_urgent_first(view, &upward(view, &view.mean_work, true)) {
        partial.arrivals(task, &mut arrivals);
        placed[task as usize] = true;
        let starts: Vec<i64> = (0..processors).map(|to| partial.earliest(&arrivals, to)).collect();
        let ends: Vec<i64> = (0..processors).map(|to| partial.end(to)).collect();
        let mut last: Vec<(i64, i64)> =
            starts.iter().zip(&arrivals.takes).map(|(start, takes)| (0, start + takes)).collect();
        for message in view.children(task) {
            let others = view.parents(message.task).iter().copied();
            let known = others.filter(|parent| parent.task != task && placed[parent.task as usize]);
            partial.arrivals_of(message.task, known, &mut child);
            for (on, last) in last.iter_mut().enumerate() {
                let sent = last.1;
                let mut first = i64::MAX;
                view.for_every(message.size, on as u32, |to, delay| {
                    let free = if to == on { ends[to].max(sent) } else { ends[to] };
                    let (arrived, takes) = if view.receives() { (sent, delay) } else { (sent + delay, 0) };
                    first = first.min(free.max(arrived).max(child.ready[to]) + takes.max(child.takes[to]));
                });
                last.0 = last.0.max(first);
            }
        }
        let best = (0..processors).min_by_key(|&to| last[to]).unwrap_or(0);
        partial.put(task, best as u32, starts[best], arrivals.takes[best]);
    }
    partial.plan()
}

/// Critical path on a processor (Topcuoglu, Hariri, Wu 2002): the tasks of a critical path go to the processor that is the
/// fastest for all of them, others where they are done first.
pub(super) fn cpop(view: &View<'_>) -> Plan {
    let (up, down) = (upward(view, &view.mean_work, true), downward(view));
    let urgency: Vec<i64> = up.iter().zip(&down).map(|(up, down)| up + down).collect();
    let longest = urgency.iter().copied().max().unwrap_or(0);
    let on_path = critical_path(view, &urgency, longest);
    let mut sums = vec![0i64; view.processors()];
    for (task, _) in on_path.iter().enumerate().filter(|(_, on_path)| **on_path) {
        let works = view.problem.works(task as u32);
        sums.iter_mut().zip(works.iter().cycle()).for_each(|(sum, work)| *sum += work);
    }
    let late = view.available();
    let path_on = (0..sums.len()).min_by_key(|&at| sums[at] + late[at]).unwrap_or(0) as u32;
    let mut partial = Partial::new(view, true);
    let mut arrivals = Arrivals::default();
    as_they_get_ready(view, &urgency, |task| {
        if on_path[task as usize] {
            partial.put_on(task, path_on, &mut arrivals);
        } else {
            partial.put_first_done(task, &mut arrivals);
        }
    });
    partial.plan()
}

/// One chain of tasks that is as long as any.
fn critical_path(view: &View<'_>, urgency: &[i64], longest: i64) -> Vec<bool> {
    let mut on_path = vec![false; view.tasks()];
    let is_critical = |task: u32| urgency[task as usize] == longest;
    let begins = |task: u32| is_critical(task) && view.parents(task).is_empty();
    let mut at = view.order.iter().copied().find(|&task| begins(task));
    while let Some(task) = at {
        on_path[task as usize] = true;
        at = view.children(task).iter().map(|message| message.task).find(|&child| is_critical(child));
    }
    on_path
}

/// Predict earliest finish time (Arabnejad, Barbosa 2014): the ready task whose optimistic costs are the highest goes where it
/// is done first if the optimistic cost of what follows is added.
pub(super) fn peft(view: &View<'_>) -> Plan {
    let processors = view.processors();
    let costs = optimistic_costs(view);
    let of = |task: u32| &costs[task as usize * processors..][..processors];
    let urgency: Vec<i64> = (0..view.tasks() as u32).map(|task| of(task).iter().sum()).collect();
    let mut partial = Partial::new(view, true);
    let mut arrivals = Arrivals::default();
    as_they_get_ready(view, &urgency, |task| {
        partial.arrivals(task, &mut arrivals);
        let costs = of(task);
        let (processor, start) = partial.least(&arrivals, |to, start| start + arrivals.takes[to] + costs[to]);
        partial.put(task, processor, start, arrivals.takes[processor as usize]);
    });
    partial.plan()
}

/// Calls a function with every task, always the most urgent of those whose parents it had.
pub(super) fn as_they_get_ready(view: &View<'_>, urgency: &[i64], mut put: impl FnMut(u32)) {
    let mut waits: Vec<usize> = (0..view.tasks() as u32).map(|task| view.parents(task).len()).collect();
    let entry = |task: u32| (urgency[task as usize], Reverse(task));
    let first = (0..view.tasks() as u32).filter(|&task| waits[task as usize] == 0);
    let mut ready: BinaryHeap<_> = first.map(entry).collect();
    while let Some((_, Reverse(task))) = ready.pop() {
        put(task);
        for message in view.children(task) {
            waits[message.task as usize] -= 1;
            if waits[message.task as usize] == 0 {
                ready.push(entry(message.task));
            }
        }
    }
}
