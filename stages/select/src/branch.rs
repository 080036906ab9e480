//! The best choice among few hosts, by branch and bound.

use crate::goal::Goal;
use crate::space::Space;

/// Parts of the search after which it counts as too long.
const MAX_NODES: u64 = 1 << 22;
/// Most hosts to search among.
const MAX_HOSTS: usize = 256;

/// How a search ended.
pub(crate) enum Ending {
    /// Nothing is better than this.
    Proven(Vec<i64>),
    /// Somebody stopped it; the best so far.
    Stopped(Vec<i64>),
    /// It would take too long.
    TooLong,
}

/// The best choice of `count` hosts of a space in which every class is one host, with `known` to begin with.
///
/// A part of the search has decided about the first hosts. Its bound: each of the hosts still to come costs at least its price beside
/// those chosen and half of its distances to the hosts nearest to it.
pub(crate) fn branch_and_bound(
    space: &Space,
    goal: &Goal,
    count: usize,
    known: Vec<i64>,
    stop: &dyn Fn() -> bool,
) -> Ending {
    if space.classes() > MAX_HOSTS {
        return Ending::TooLong;
    }
    let best = (goal.value(space, &known), known);
    let base = goal.value(space, &vec![0; space.classes()]);
    let near = (0..space.classes()).map(|class| nearest(space, class)).collect();
    let mut search = Search { space, goal, near, best, nodes: 0, stop, stopped: false };
    search.extend(0, count, &mut vec![0; space.classes()], &goal.single.clone(), base);
    match search {
        Search { stopped: true, best, .. } => Ending::Stopped(best.1),
        Search { nodes, .. } if nodes > MAX_NODES => Ending::TooLong,
        Search { best, .. } => Ending::Proven(best.1),
    }
}

/// Sums of the distances from a host to the `index` nearest other ones.
fn nearest(space: &Space, class: usize) -> Vec<i64> {
    let mut distances = Vec::new();
    space.for_row(class, |other, distance| {
        if other != class {
            distances.push(distance);
        }
    });
    distances.sort_unstable();
    let mut sum = 0;
    let sums = distances.into_iter().map(|distance| {
        sum += distance;
        sum
    });
    std::iter::once(0).chain(sums).collect()
}

struct Search<'s> {
    space: &'s Space,
    goal: &'s Goal,
    near: Vec<Vec<i64>>,
    best: (i64, Vec<i64>),
    nodes: u64,
    stop: &'s dyn Fn() -> bool,
    stopped: bool,
}

impl Search<'_> {
    /// Decides about the hosts from `next` on: `missing` more of them, at `price` each beside those chosen, which cost `value`.
    fn extend(&mut self, next: usize, missing: usize, chosen: &mut Vec<i64>, price: &[i64], value: i64) {
        if missing == 0 {
            if value < self.best.0 {
                self.best = (value, chosen.clone());
            }
            return;
        }
        for host in next..=price.len() - missing {
            self.nodes += 1;
            self.stopped |= self.nodes.is_multiple_of(1024) && (self.stop)();
            if self.stopped || self.nodes > MAX_NODES || !self.is_promising(host, missing, price, value) {
                return;
            }
            let mut dearer = price.to_vec();
            self.space.for_row(host, |other, distance| dearer[other] += self.goal.pairs * distance);
            chosen[host] = 1;
            self.extend(host + 1, missing - 1, chosen, &dearer, value + price[host]);
            chosen[host] = 0;
        }
    }

    /// Whether some choice of `missing` hosts from `next` on may be better than the best one known. Twice all values are compared.
    fn is_promising(&self, next: usize, missing: usize, price: &[i64], value: i64) -> bool {
        let least = |host: usize| 2 * price[host] + self.goal.pairs * self.near[host][missing - 1];
        let mut least: Vec<i64> = (next..price.len()).map(least).collect();
        least.select_nth_unstable(missing - 1);
        2 * value + least[..missing].iter().sum::<i64>() < 2 * self.best.0
    }
}
