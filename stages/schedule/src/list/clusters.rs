//! Heuristics that first put together what should not be apart, and then share it out.

use super::partial::{Arrivals, Partial};
use super::priorities::{downward, most_urgent_first, upward};
use super::view::View;
use crate::Plan;

/// Linear clusters (Kim, Browne 1988): what lies on the longest path of the tasks that are left stays together.
pub(super) fn linear(view: &View<'_>) -> Plan {
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
            let best = through.max_by_key(|&(length, task)| (length, std::cmp::Reverse(task)));
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

/// Clusters along the dominant sequence (after Yang, Gerasoulis 1994): tasks by the length of the longest path through them join the
/// cluster of a parent if they can begin earlier there than with none.
pub(super) fn dominant(view: &View<'_>) -> Plan {
    let (up, down) = (upward(view, &view.mean_work, true), downward(view));
    let urgency: Vec<i64> = up.iter().zip(&down).map(|(up, down)| up + down).collect();
    let mut cluster = vec![u32::MAX; view.tasks()];
    let mut finish = vec![0i64; view.tasks()];
    let mut ends: Vec<i64> = Vec::new();
    super::urgent::as_they_get_ready(view, &urgency, |task| {
        let parents = view.parents(task);
        // The last message, and the last of those from other clusters than its own.
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

/// Gives clusters to processors, those with the most work first and each to the processor that would be done with it first (the
/// guided load balancing of Radulescu, van Gemund, Lin 1999), and orders the tasks by urgency.
fn share_out(view: &View<'_>, cluster: &[u32], clusters: usize) -> Plan {
    let mut work = vec![0i64; clusters];
    cluster.iter().zip(&view.mean_work).for_each(|(at, task)| work[*at as usize] += task);
    let mut order: Vec<usize> = (0..clusters).collect();
    order.sort_by_key(|&cluster| (std::cmp::Reverse(work[cluster]), cluster));
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
