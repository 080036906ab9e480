//! Lower bounds of the makespan.

#[cfg(test)]
mod tests;

use std::cmp::Reverse;

use hopmap_model::DelayModel;

use crate::problem::{Message, Problem};

/// Maximum number of tasks for bounds that examine all pairs.
const MOST_TASKS: usize = 2048;
/// Maximum number of parents for which all prefixes are tried if bisection does not find the best.
const MOST_PARENTS: usize = 64;
/// Limit of additions per test.
const MOST_STEPS: usize = 1 << 21;

/// The best lower bound that is quick to compute, in ticks.
///
/// It is the largest of three. The first is the longest chain, in which a task with several parents waits for messages from those
/// that cannot all be on its own processor. The second is the time of the longest tasks that must share a processor because there
/// are more of them than processors. The third is the least time in which the work of every interval fits on all processors.
#[must_use]
pub fn lower_bound(problem: &Problem) -> i64 {
    let relaxed = Relaxed::new(problem);
    let longest = relaxed.longest_chain().max(relaxed.crowded_processor());
    first_feasible(longest, |limit| fits(&relaxed, &relaxed.head, &relaxed.tail, limit))
}

/// The first feasible number from `low` on, if feasibility is monotonic.
pub(crate) fn first_feasible(low: i64, feasible: impl Fn(i64) -> bool) -> i64 {
    if feasible(low) {
        return low;
    }
    let (mut below, mut step) = (low, 1);
    while !feasible(below + step) {
        below += step;
        step *= 2;
    }
    let mut above = below + step;
    while above - below > 1 {
        let middle = below + (above - below) / 2;
        if feasible(middle) {
            above = middle;
        } else {
            below = middle;
        }
    }
    above
}

/// A relaxation in which every task runs on its fastest processor and every message takes its minimum time.
#[derive(Debug, Clone)]
pub(crate) struct Relaxed {
    /// The tasks in topological order.
    pub(crate) order: Vec<u32>,
    /// Minimum execution time of every task.
    pub(crate) work: Vec<i64>,
    /// Earliest start of every task.
    pub(crate) head: Vec<i64>,
    /// Lower bound of the remaining time after a task.
    pub(crate) tail: Vec<i64>,
    /// Availability of processors, ascending.
    pub(crate) available: Vec<i64>,
    /// Incoming messages of every task.
    pub(crate) parents: Vec<Vec<Link>>,
    /// Outgoing messages of every task.
    pub(crate) children: Vec<Vec<Link>>,
}

/// A message from the point of view of the task at one end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Link {
    /// The task at the other end.
    pub(crate) task: u32,
    /// Minimum time between two processors.
    pub(crate) far: i64,
    /// Minimum time on one processor, at most `far`.
    pub(crate) near: i64,
}

impl Relaxed {
    pub(crate) fn new(problem: &Problem) -> Self {
        let summary = problem.delay_summary();
        let link = |message: &Message| {
            let (far, near) = (summary.shortest[message.size as usize], summary.local[message.size as usize]);
            Link { task: message.task, far, near: near.min(far) }
        };
        let tasks = 0..problem.tasks() as u32;
        let links = |messages: &[Message]| messages.iter().map(link).collect::<Vec<_>>();
        let least = |task| problem.works(task).iter().copied().min().unwrap_or(0);
        let mut available = problem.available().to_vec();
        available.sort_unstable();
        let mut relaxed = Self {
            order: problem.order().to_vec(),
            work: tasks.clone().map(least).collect(),
            head: vec![available.first().copied().unwrap_or(0); problem.tasks()],
            tail: vec![0; problem.tasks()],
            available,
            parents: tasks.clone().map(|task| links(problem.parents(task))).collect(),
            children: tasks.map(|task| links(problem.children(task))).collect(),
        };
        relaxed.find_windows(problem.model());
        relaxed
    }

    fn find_windows(&mut self, model: DelayModel) {
        let quick = self.work.len() <= MOST_TASKS;
        let backward: Vec<u32> = self.order.iter().rev().copied().collect();
        let before = if quick { ancestors(&self.order, &self.parents) } else { Vec::new() };
        let after = if quick { ancestors(&backward, &self.children) } else { Vec::new() };
        let processors = self.available.len();
        match model {
            DelayModel::Overlap => {
                raise_heads(&self.order, &self.parents, &self.work, &mut self.head, &before, processors);
            }
            DelayModel::Receive => raise_heads_by_receiving(self, &before),
        }
        // Reversed, both models are alike: a message to another processor takes its time before the work.
        raise_heads(&backward, &self.children, &self.work, &mut self.tail, &after, processors);
    }

    /// The longest chain.
    pub(crate) fn longest_chain(&self) -> i64 {
        let windows = self.head.iter().zip(&self.work).zip(&self.tail);
        windows.map(|((head, work), tail)| head + work + tail).max().unwrap_or(0)
    }

    /// Of one more task than `count` on every processor, some processor runs `count + 1`: at least the shortest of them, between
    /// the earliest start and the smallest tail.
    pub(crate) fn crowded_processor(&self) -> i64 {
        let processors = self.available.len();
        let mut longest: Vec<usize> = (0..self.work.len()).collect();
        longest.sort_unstable_by_key(|&task| (Reverse(self.work[task]), task));
        let (mut head, mut tail, mut most, mut taken) = (i64::MAX, i64::MAX, 0, 0);
        for (count, group) in longest.chunks(processors).enumerate() {
            // The group starts with the surplus task.
            let one = group[0];
            (head, tail) = (head.min(self.head[one]), tail.min(self.tail[one]));
            taken += 1;
            let shortest = &longest[taken - 1 - count..taken];
            let work: i64 = shortest.iter().map(|&task| self.work[task]).sum();
            most = most.max(head + work + tail);
            for &task in &group[1..] {
                (head, tail) = (head.min(self.head[task]), tail.min(self.tail[task]));
                taken += 1;
            }
            if count > MOST_TASKS {
                break;
            }
        }
        most
    }
}

/// Raises the earliest starts: a task starts after those parents that share its processor have run in sequence, and after the
/// messages of the others. The parents with the latest messages share its processor.
fn raise_heads(
    order: &[u32],
    parents: &[Vec<Link>],
    work: &[i64],
    head: &mut [i64],
    ancestors: &[Vec<u32>],
    processors: usize,
) {
    let mut senders: Vec<Sender> = Vec::new();
    for &task in order {
        let links = &parents[task as usize];
        if links.is_empty() {
            continue;
        }
        senders.clear();
        senders.extend(links.iter().map(|link| {
            let (begins, takes) = (head[link.task as usize], work[link.task as usize]);
            Sender { begins, takes, arrives: begins + takes + link.far }
        }));
        let mut first = earliest_arrival(&mut senders).max(head[task as usize]);
        if let Some(before) = ancestors.get(task as usize) {
            first = first.max(finish_of_all(before, work, head, processors));
        }
        head[task as usize] = first;
    }
}

/// A parent of a task.
#[derive(Debug, Clone, Copy)]
struct Sender {
    begins: i64,
    takes: i64,
    /// Arrival of its message on another processor.
    arrives: i64,
}

/// Time at which the messages of all parents can be on one processor, if some of them run there.
fn earliest_arrival(senders: &mut [Sender]) -> i64 {
    senders.sort_unstable_by_key(|sender| Reverse(sender.arrives));
    // The more parents share it, the later these finish, and the earlier the last message of the others arrives.
    let (mut few, mut many) = (0, senders.len());
    let mut local = Vec::with_capacity(senders.len());
    let mut both = |count: usize| {
        local.clear();
        local.extend(senders[..count].iter().map(|sender| (sender.begins, sender.takes)));
        let others = senders.get(count).map_or(0, |sender| sender.arrives);
        (finish_in_turn(&mut local), others)
    };
    // The first number at which the local parents take at least as long as the messages of the others.
    while few < many {
        let middle = usize::midpoint(few, many);
        let (own, others) = both(middle);
        if own >= others { many = middle } else { few = middle + 1 }
    }
    let (own, others) = both(few);
    let fewer = if few > 0 { both(few - 1).1 } else { i64::MAX };
    own.max(others).min(fewer)
}

/// Finish time of a processor that runs tasks with given earliest starts and durations.
fn finish_in_turn(tasks: &mut [(i64, i64)]) -> i64 {
    tasks.sort_unstable();
    tasks.iter().fold(0, |end: i64, (begins, takes)| end.max(*begins) + takes)
}

/// Earliest finish of tasks on a number of processors: the tasks with the latest starts have to share them.
fn finish_of_all(tasks: &[u32], work: &[i64], head: &[i64], processors: usize) -> i64 {
    let mut windows: Vec<(i64, i64)> =
        tasks.iter().map(|&task| (head[task as usize], work[task as usize])).collect();
    windows.sort_unstable();
    let (mut sum, mut latest) = (0, 0);
    for (begins, takes) in windows.into_iter().rev() {
        sum += takes;
        let shared = (i128::from(sum) + processors as i128 - 1) / processors as i128;
        latest = latest.max(begins + shared as i64);
    }
    latest
}

/// Raises the earliest starts if processors receive before they compute, and adds the minimum receive time to the work of every
/// task. Message times are then counted in addition to that.
fn raise_heads_by_receiving(relaxed: &mut Relaxed, ancestors: &[Vec<u32>]) {
    let Relaxed { order, work, head, available, parents, children, .. } = relaxed;
    let mut least = vec![0i64; work.len()];
    for &task in order.iter() {
        let mut links = parents[task as usize].clone();
        if links.is_empty() {
            continue;
        }
        let done_at = |link: &Link| head[link.task as usize] + work[link.task as usize];
        let all = links.iter().map(done_at).max().unwrap_or(0).max(head[task as usize]);
        let near = links.iter().map(|link| link.near).max().unwrap_or(0);
        links.sort_unstable_by_key(|link| Reverse(link.far));
        // With this many of the longest messages on the processor of the task.
        let (mut begins, mut finishes) = (i64::MAX, i64::MAX);
        let mut receives = i64::MAX;
        for count in 0..=links.len() {
            let local = links[..count.min(MOST_PARENTS)].iter();
            let mut local: Vec<_> =
                local.map(|link| (head[link.task as usize], work[link.task as usize])).collect();
            let start = finish_in_turn(&mut local).max(all);
            begins = begins.min(start);
            let is_last = count > MOST_PARENTS || start + near >= finishes;
            let receive =
                if is_last { near } else { links.get(count).map_or(near, |link| link.far.max(near)) };
            finishes = finishes.min(start + receive);
            receives = receives.min(receive);
            if is_last {
                break;
            }
        }
        if let Some(before) = ancestors.get(task as usize) {
            begins = begins.max(finish_of_all(before, work, head, available.len()));
        }
        // The minimum receive time counts as work; the rest of the delay raises the earliest start.
        least[task as usize] = receives;
        work[task as usize] += receives;
        head[task as usize] = begins.max(finishes - receives);
    }
    for link in children.iter_mut().flatten() {
        link.far = (link.far - least[link.task as usize]).max(0);
    }
}

/// All direct and indirect predecessors of every task.
fn ancestors(order: &[u32], parents: &[Vec<Link>]) -> Vec<Vec<u32>> {
    let words = order.len().div_ceil(64);
    let mut sets = vec![0u64; order.len() * words];
    for &task in order {
        for link in &parents[task as usize] {
            let (from, to) = (link.task as usize, task as usize);
            for word in 0..words {
                sets[to * words + word] |= sets[from * words + word];
            }
            sets[to * words + from / 64] |= 1 << (from % 64);
        }
    }
    let members = |set: &[u64]| {
        let tasks = (0..order.len() as u32).filter(|&task| set[task as usize / 64] >> (task % 64) & 1 == 1);
        tasks.collect()
    };
    sets.chunks(words.max(1)).map(members).collect()
}

/// Whether a makespan is not refuted by energetic reasoning: a task that starts at `head` at the earliest and must finish `tail`
/// before the end has a minimum work in every interval. The processors must have the capacity for all of it (Fernandez, Bussell
/// 1973; Erschler, Lopez 1990).
pub(crate) fn fits(relaxed: &Relaxed, head: &[i64], tail: &[i64], end: i64) -> bool {
    let tasks = relaxed.work.len();
    let window = |task: usize| (head[task], end - tail[task], relaxed.work[task]);
    let windows: Vec<(i64, i64, i64)> = (0..tasks).map(window).filter(|window| window.2 > 0).collect();
    if windows.iter().any(|&(from, to, work)| from + work > to) {
        return false;
    }
    let most = (MOST_STEPS / tasks.max(1)).isqrt().max(2);
    let begins = chosen_moments(windows.iter().flat_map(|&(from, to, work)| [from, to - work]), most);
    let ends = chosen_moments(windows.iter().flat_map(|&(from, to, work)| [to, from + work]), most);
    begins.iter().all(|&from| {
        // Terms of tasks whose window this interval may cut.
        let tails: Vec<(i64, i64, i64)> = windows
            .iter()
            .map(|&(early, to, work)| ((early + work - from).min(work), to - work, work))
            .filter(|window| window.0 > 0)
            .collect();
        ends.iter().filter(|&&to| to > from).all(|&to| {
            let part = |&(left, late, _): &(i64, i64, i64)| left.min(to - late).min(to - from).max(0);
            let work: i64 = tails.iter().map(part).sum();
            work <= capacity(relaxed, from, to)
        })
    })
}

/// The relevant interval boundaries, ascending; a sample if there are many.
fn chosen_moments(moments: impl Iterator<Item = i64>, most: usize) -> Vec<i64> {
    let mut moments: Vec<i64> = moments.collect();
    moments.sort_unstable();
    moments.dedup();
    let every = moments.len().div_ceil(most).max(1);
    let last = moments.last().copied();
    let mut chosen: Vec<i64> = moments.into_iter().step_by(every).collect();
    chosen.extend(last);
    chosen
}

/// Capacity of the processors in an interval.
fn capacity(relaxed: &Relaxed, from: i64, to: i64) -> i64 {
    let own = |&available: &i64| (to - available.max(from)).max(0);
    relaxed.available.iter().map(own).fold(0, i64::saturating_add)
}
