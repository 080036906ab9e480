//! `schedule/list` for tasks that may run anywhere: constructive heuristics without backtracking.

mod state;
#[cfg(test)]
mod tests;

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use hopmap_model::{Context, Error};

use self::state::{
    Arrivals, Partial, View, downward, latest_first, most_urgent_first, optimistic_costs, upward,
};
use crate::bounds::lower_bound;
use crate::params::{Heuristic, ListParams};
use crate::plan::{Evaluator, Plan, Scheduler, SearchResult};
use crate::problem::Problem;

/// Limit of tasks² × processors for heuristics of quadratic time in `best`.
const QUICK: u64 = 1 << 26;

/// A list heuristic, or the best of all.
impl Scheduler for ListParams {
    fn schedule(&self, problem: &Problem, cx: &Context<'_>) -> Result<SearchResult<Plan>, Error> {
        let tried = match self.heuristic {
            Heuristic::Best => all(problem),
            one => vec![(one, plan(problem, one))],
        };
        let (heuristic, best, makespan) = best_of(problem, &tried);
        if self.heuristic == Heuristic::Best {
            let out: Vec<_> =
                Heuristic::tried().filter(|one| tried.iter().all(|(tried, _)| tried != one)).collect();
            if !out.is_empty() {
                let names: Vec<_> = out.iter().map(|one| one.name()).collect();
                cx.log(format!("too many tasks for {}, whose time grows quadratically", names.join(", ")));
            }
            cx.log(format!("the best of {} heuristics is {}", tried.len(), heuristic.name()));
        }
        let (evaluations, lower_bound) = (tried.len() as u64, lower_bound(problem).min(makespan));
        Ok(SearchResult { best, makespan, lower_bound, evaluations, convergence: Vec::new(), complete: true })
    }
}

/// The best plan of a list, the first of several.
fn best_of(problem: &Problem, tried: &[(Heuristic, Plan)]) -> (Heuristic, Plan, i64) {
    let mut evaluator = Evaluator::new(problem);
    let mut makespan = |plan: &Plan| evaluator.makespan(plan);
    let timed = tried.iter().map(|(heuristic, plan)| (makespan(plan), *heuristic, plan));
    match timed.min_by_key(|one| one.0) {
        Some((makespan, heuristic, plan)) => (heuristic, plan.clone(), makespan),
        None => {
            let plan = serial(problem);
            let makespan = evaluator.makespan(&plan);
            (Heuristic::Serial, plan, makespan)
        }
    }
}

/// The plan of a heuristic.
#[must_use]
pub fn plan(problem: &Problem, heuristic: Heuristic) -> Plan {
    match heuristic {
        Heuristic::Best => best_of(problem, &all(problem)).1,
        Heuristic::HeftBackward => run(&View::forward(problem).backward(), heuristic),
        _ => run(&View::forward(problem), heuristic),
    }
}

/// The plans of all heuristics; for large problems without those of quadratic time.
#[must_use]
pub fn all(problem: &Problem) -> Vec<(Heuristic, Plan)> {
    let forward = View::forward(problem);
    let backward = forward.backward();
    let (tasks, processors) = (problem.tasks() as u64, problem.processors() as u64);
    let quick = tasks.saturating_mul(tasks).saturating_mul(processors) <= QUICK;
    let chosen = Heuristic::tried().filter(|one| quick || !one.is_quadratic());
    let view = |heuristic| if heuristic == Heuristic::HeftBackward { &backward } else { &forward };
    chosen.map(|heuristic| (heuristic, run(view(heuristic), heuristic))).collect()
}

/// Runs a heuristic on a problem, forwards or reversed.
fn run(view: &View<'_>, heuristic: Heuristic) -> Plan {
    match heuristic {
        Heuristic::Best | Heuristic::Heft | Heuristic::HeftBackward => heft(view, &view.mean_work),
        Heuristic::HeftFastest => heft(view, &view.least_work),
        Heuristic::Lookahead => lookahead(view),
        Heuristic::Cpop => cpop(view),
        Heuristic::Peft => peft(view),
        Heuristic::Mcp => mcp(view),
        Heuristic::Hlfet => hlfet(view),
        Heuristic::Etf | Heuristic::Dls | Heuristic::MinMin | Heuristic::MaxMin | Heuristic::Sufferage => {
            best_pairs(view, heuristic)
        }
        Heuristic::LinearClusters => linear_clusters(view),
        Heuristic::DominantSequence => dominant_sequence(view),
        Heuristic::Serial => serial(view.problem),
    }
}

/// All tasks on the processor that finishes first.
fn serial(problem: &Problem) -> Plan {
    let mut sums = problem.available().to_vec();
    for &task in problem.order() {
        let works = problem.works(task).iter().cycle();
        sums.iter_mut().zip(works).for_each(|(sum, work)| *sum += work);
    }
    let first = (0..).zip(sums).min_by_key(|&(_, sum)| sum);
    Plan::serial(problem, first.map_or(0, |(processor, _)| processor))
}

/// Heterogeneous earliest finish time (Topcuoglu, Hariri, Wu 2002): the task with the highest upward rank goes where it finishes
/// first, with insertion into gaps.
fn heft(view: &View<'_>, work: &[i64]) -> Plan {
    let mut partial = Partial::new(view, true);
    let mut arrivals = Arrivals::default();
    for task in most_urgent_first(view, &upward(view, work, true)) {
        partial.put_first_done(task, &mut arrivals);
    }
    partial.plan()
}

/// Highest level first with estimated times (Adam, Chandy, Dickson 1974): levels without messages, earliest start, no insertion.
fn hlfet(view: &View<'_>) -> Plan {
    begin_first(view, &most_urgent_first(view, &upward(view, &view.mean_work, false)), false)
}

/// Modified critical path (Wu, Gajski 1990): the task with the smallest latest start time goes where it starts first, with
/// insertion into gaps.
fn mcp(view: &View<'_>) -> Plan {
    begin_first(view, &latest_first(view), true)
}

/// Schedules tasks in order where they start first; ties by earliest finish.
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

/// Lookahead (Bittencourt, Sakellariou, Madeira 2010): like HEFT, but every task goes where the last of its children could finish
/// first. Children are appended instead of inserted into gaps, which is faster.
fn lookahead(view: &View<'_>) -> Plan {
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

/// Critical path on a processor (Topcuoglu, Hariri, Wu 2002): the tasks of a critical path go to the processor with the smallest
/// total time for them, others where they finish first.
fn cpop(view: &View<'_>) -> Plan {
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

/// One of the longest chains of tasks.
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

/// Predict earliest finish time (Arabnejad, Barbosa 2014): the ready task with the highest optimistic cost goes where the sum of
/// its finish time and the optimistic remaining cost is smallest.
fn peft(view: &View<'_>) -> Plan {
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

/// Calls a function with every task, always the ready task of the highest priority.
fn as_they_get_ready(view: &View<'_>, urgency: &[i64], mut put: impl FnMut(u32)) {
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

/// A ready task, and its options on all processors.
struct Ready {
    task: u32,
    arrivals: Arrivals,
}

/// Compares all ready tasks on all processors in every step; tasks are appended.
///
/// Earliest time first takes the task with the earliest start, ties by highest level. Dynamic level scheduling takes the largest
/// difference between level and start, adjusted by the speed of the processor for the task. Min-min takes the earliest finish,
/// max-min the latest of the earliest finishes. Sufferage takes the task with the largest difference between its second-best and
/// its best finish.
fn best_pairs(view: &View<'_>, rule: Heuristic) -> Plan {
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

/// The list index of the next task, and its processor. Ties go to the lowest number.
fn choose(
    rule: Heuristic,
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
            Heuristic::Etf => {
                let (start, to) = least(times.map(|((ready, _), end)| *ready.max(end))).0;
                ((start, -level), to)
            }
            Heuristic::Dls => {
                let works = view.problem.works(one.task).iter().cycle();
                let late = times.zip(works).map(|(((ready, _), end), work)| work - mean + ready.max(end));
                let (late, to) = least(late).0;
                ((late - level, 0), to)
            }
            _ => {
                let ((done, to), second) = least(times.map(|((ready, takes), end)| ready.max(end) + takes));
                let value = match rule {
                    Heuristic::MinMin => done,
                    Heuristic::MaxMin => -done,
                    _ => done - second,
                };
                ((value, 0), to)
            }
        }
    };
    let all = ready.iter().enumerate().map(|(at, one)| (value(one), one.task, at));
    all.min_by_key(|&((value, _), task, _)| (value, task)).map(|((_, to), _, at)| (at, to))
}

/// The minimum of values, its index, and the second smallest.
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

/// Linear clustering (Kim, Browne 1988): the longest path of the remaining tasks becomes a cluster.
fn linear_clusters(view: &View<'_>) -> Plan {
    let tasks = view.tasks();
    let mut cluster = vec![u32::MAX; tasks];
    let mut left = tasks;
    let mut count = 0;
    let (mut rank, mut next) = (vec![0i64; tasks], vec![u32::MAX; tasks]);
    while left > 0 {
        let mut longest = (-1, u32::MAX);
        for &task in view.order.iter().rev().filter(|&&task| cluster[task as usize] == u32::MAX) {
            let free = view.children(task).iter().filter(|child| cluster[child.task as usize] == u32::MAX);
            let through = free.map(|child| (view.mean_delay(*child) + rank[child.task as usize], child.task));
            let best = through.max_by_key(|&(length, task)| (length, Reverse(task)));
            let (length, child) = best.unwrap_or((0, u32::MAX));
            next[task as usize] = child;
            rank[task as usize] = length + view.mean_work[task as usize];
            longest = longest.max((rank[task as usize], task));
        }
        let mut at = longest.1;
        while let Some(of) = cluster.get_mut(at as usize) {
            *of = count;
            left -= 1;
            at = next[at as usize];
        }
        count += 1;
    }
    share_out(view, &cluster, count as usize)
}

/// Dominant sequence clustering (after Yang, Gerasoulis 1994): in order of the longest path through them, tasks join the cluster
/// of a parent if they can start earlier there than alone.
fn dominant_sequence(view: &View<'_>) -> Plan {
    let (up, down) = (upward(view, &view.mean_work, true), downward(view));
    let urgency: Vec<i64> = up.iter().zip(&down).map(|(up, down)| up + down).collect();
    let mut cluster = vec![u32::MAX; view.tasks()];
    let mut finish = vec![0i64; view.tasks()];
    let mut ends: Vec<i64> = Vec::new();
    as_they_get_ready(view, &urgency, |task| {
        let parents = view.parents(task);
        // The last message, and the last one from another cluster.
        let (mut last, mut other) = ((0, u32::MAX), 0);
        for message in parents {
            let from = cluster[message.task as usize];
            let arrives = finish[message.task as usize] + view.mean_delay(*message);
            if from == last.1 {
                last.0 = last.0.max(arrives);
            } else if arrives > last.0 {
                (other, last) = (last.0, (arrives, from));
            } else {
                other = other.max(arrives);
            }
        }
        let alone = (last.0, ends.len() as u32);
        let clusters = parents.iter().map(|message| cluster[message.task as usize]);
        let joined =
            clusters.map(|at| (if at == last.1 { other } else { last.0 }.max(ends[at as usize]), at));
        let (begins, at) = joined.min().filter(|joined| joined.0 < alone.0).unwrap_or(alone);
        if at == alone.1 {
            ends.push(0);
        }
        cluster[task as usize] = at;
        finish[task as usize] = begins + view.mean_work[task as usize];
        ends[at as usize] = finish[task as usize];
    });
    share_out(view, &cluster, ends.len())
}

/// Assigns clusters to processors, largest work first, each to the processor that would finish it first (guided load balancing of
/// Radulescu, van Gemund, Lin 1999); tasks are ordered by upward rank.
fn share_out(view: &View<'_>, cluster: &[u32], clusters: usize) -> Plan {
    let mut work = vec![0i64; clusters];
    cluster.iter().zip(&view.mean_work).for_each(|(at, task)| work[*at as usize] += task);
    let mut order: Vec<usize> = (0..clusters).collect();
    order.sort_by_key(|&cluster| (Reverse(work[cluster]), cluster));
    let mut members = vec![Vec::new(); clusters];
    (0..).zip(cluster).for_each(|(task, at): (u32, &u32)| members[*at as usize].push(task));
    let mut ends = view.available();
    let mut on = vec![0u32; clusters];
    for at in order {
        let mut sums = vec![0i64; view.processors()];
        for &task in &members[at] {
            let works = view.problem.works(task);
            sums.iter_mut().zip(works.iter().cycle()).for_each(|(sum, work)| *sum += work);
        }
        let first = (0..ends.len()).min_by_key(|&to| (ends[to] + sums[to], to)).unwrap_or(0);
        ends[first] += sums[first];
        on[at] = first as u32;
    }
    let mut partial = Partial::new(view, true);
    let mut arrivals = Arrivals::default();
    for task in most_urgent_first(view, &upward(view, &view.mean_work, true)) {
        partial.put_on(task, on[cluster[task as usize] as usize], &mut arrivals);
    }
    partial.plan()
}
