//! How urgent tasks are before anything runs.

use super::view::View;

/// What is left from the beginning of every task to the end of the program: the longest chain of work and messages that begins with
/// it. The upward rank of HEFT (equation 8 of Topcuoglu, Hariri, Wu 2002) for what tasks take on average.
pub(super) fn upward(view: &View<'_>, work: &[i64], with_messages: bool) -> Vec<i64> {
    let mut rank = vec![0i64; view.tasks()];
    for &task in view.order.iter().rev() {
        let longest = view.children(task).iter().map(|message| {
            let delay = if with_messages { view.mean_delay(*message) } else { 0 };
            delay + rank[message.task as usize]
        });
        rank[task as usize] = work[task as usize] + longest.max().unwrap_or(0);
    }
    rank
}

/// The longest chain of work and messages before every task: the downward rank (equation 10 of the same).
pub(super) fn downward(view: &View<'_>) -> Vec<i64> {
    let mut rank = vec![0i64; view.tasks()];
    for &task in &view.order {
        let longest = view.parents(task).iter().map(|message| {
            let before = message.task as usize;
            rank[before] + view.mean_work[before] + view.mean_delay(*message)
        });
        rank[task as usize] = longest.max().unwrap_or(0);
    }
    rank
}

/// The most urgent first; of equally urgent tasks in an order in which none comes before one that it waits for.
pub(super) fn most_urgent_first(view: &View<'_>, rank: &[i64]) -> Vec<u32> {
    let mut order = view.order.clone();
    order.sort_by_key(|&task| std::cmp::Reverse(rank[task as usize]));
    order
}

/// The order of MCP: latest possible beginnings, rising; of two that are alike the one whose child must begin earlier.
pub(super) fn latest_first(view: &View<'_>) -> Vec<u32> {
    let rank = upward(view, &view.mean_work, true);
    let child = |task: u32| view.children(task).iter().map(|message| rank[message.task as usize]).max();
    let mut order = view.order.clone();
    order.sort_by_cached_key(|&task| std::cmp::Reverse((rank[task as usize], child(task).unwrap_or(0))));
    // A child that is as urgent as its parent takes no time, and a parent may come after it then.
    if rank_falls(view, &rank) { order } else { most_urgent_first(view, &rank) }
}

/// Whether every task is more urgent than those that wait for it.
fn rank_falls(view: &View<'_>, rank: &[i64]) -> bool {
    let falls =
        |task: u32| view.children(task).iter().all(|child| rank[child.task as usize] < rank[task as usize]);
    view.order.iter().all(|&task| falls(task))
}

/// The least time from the end of every task on every processor to the end of the program, if nothing stood in the way: the
/// optimistic cost table of PEFT (equation 5 of Arabnejad, Barbosa 2014), at `task * processors + processor`.
pub(super) fn optimistic_costs(view: &View<'_>) -> Vec<i64> {
    let processors = view.processors();
    let mut table = vec![0i64; view.tasks() * processors];
    let mut row = vec![0i64; processors];
    for &task in view.order.iter().rev() {
        row.fill(0);
        for message in view.children(task) {
            let child = message.task as usize;
            let works = view.problem.works(message.task);
            let costs = &table[child * processors..][..processors];
            let there = |at: usize| costs[at] + if works.len() == 1 { works[0] } else { works[at] };
            let elsewhere = (0..processors).map(there).min().unwrap_or(0) + view.mean_delay(*message);
            row.iter_mut().enumerate().for_each(|(at, cost)| *cost = (*cost).max(there(at).min(elsewhere)));
        }
        table[task as usize * processors..][..processors].copy_from_slice(&row);
    }
    table
}
