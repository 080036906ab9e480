//! When tasks can begin at the earliest.

use super::relaxed::{Link, Relaxed};

/// Most parents of which every part is tried where the best is not found by halves.
const MOST_PARENTS: usize = 64;

/// Raises the earliest beginnings: a task begins on the processor of some of its parents, when these are done one after the other
/// and the messages of the others have arrived. The ones whose messages would come last are on its processor.
pub(super) fn earliest(
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
        let mut first = arrival(&mut senders).max(head[task as usize]);
        if let Some(before) = ancestors.get(task as usize) {
            first = first.max(done(before, work, head, processors));
        }
        head[task as usize] = first;
    }
}

/// A parent of a task.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sender {
    pub(super) begins: i64,
    pub(super) takes: i64,
    /// When its message is on another processor.
    pub(super) arrives: i64,
}

/// When the messages of all can be on one processor, if some of them run there.
pub(super) fn arrival(senders: &mut [Sender]) -> i64 {
    senders.sort_unstable_by_key(|sender| std::cmp::Reverse(sender.arrives));
    // The more of them are there the later these are done, and the earlier the last message of the others arrives.
    let (mut few, mut many) = (0, senders.len());
    let mut local = Vec::with_capacity(senders.len());
    let mut both = |count: usize| {
        local.clear();
        local.extend(senders[..count].iter().map(|sender| (sender.begins, sender.takes)));
        let others = senders.get(count).map_or(0, |sender| sender.arrives);
        (one_machine(&mut local), others)
    };
    // The first number at which those that are there take no less than the others.
    while few < many {
        let middle = usize::midpoint(few, many);
        let (own, others) = both(middle);
        if own >= others { many = middle } else { few = middle + 1 }
    }
    let (own, others) = both(few);
    let fewer = if few > 0 { both(few - 1).1 } else { i64::MAX };
    own.max(others).min(fewer)
}

/// When a processor is done with tasks that begin at certain times and take certain times.
pub(super) fn one_machine(tasks: &mut [(i64, i64)]) -> i64 {
    tasks.sort_unstable();
    tasks.iter().fold(0, |end: i64, (begins, takes)| end.max(*begins) + takes)
}

/// When some tasks can be done at the earliest on so many processors: the last of them, those that begin late, have to share them.
fn done(tasks: &[u32], work: &[i64], head: &[i64], processors: usize) -> i64 {
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

/// Raises the earliest beginnings where processors receive before they compute, and the work of every task by what it receives at
/// least. What a message takes from now on is beside that.
pub(super) fn received(relaxed: &mut Relaxed, ancestors: &[Vec<u32>]) {
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
        links.sort_unstable_by_key(|link| std::cmp::Reverse(link.far));
        // With so many of the longest messages on the processor of the task.
        let (mut begins, mut finishes) = (i64::MAX, i64::MAX);
        let mut receives = i64::MAX;
        for count in 0..=links.len() {
            let local = links[..count.min(MOST_PARENTS)].iter();
            let mut local: Vec<_> =
                local.map(|link| (head[link.task as usize], work[link.task as usize])).collect();
            let start = one_machine(&mut local).max(all);
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
            begins = begins.max(done(before, work, head, available.len()));
        }
        // The least that it takes is known to be no more than what lies between the two.
        least[task as usize] = receives;
        work[task as usize] += receives;
        head[task as usize] = begins.max(finishes - receives);
    }
    for link in children.iter_mut().flatten() {
        link.far = (link.far - least[link.task as usize]).max(0);
    }
}

/// For every task all that it waits for, directly or not.
pub(super) fn ancestors(order: &[u32], parents: &[Vec<Link>]) -> Vec<Vec<u32>> {
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
