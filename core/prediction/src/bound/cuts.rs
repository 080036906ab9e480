//! Least traffic between groups of ranks, over all ways to form groups.

mod flows;
#[cfg(test)]
mod tests;

use std::ops::RangeInclusive;

use super::weights::Weights;

/// Ranks above which no group is searched.
const MOST_SEARCHED_RANKS: usize = 1024;
/// Ranks around which the best group is searched: those with the heaviest surroundings.
const MOST_SEARCHES: usize = 64;

/// How much is spent on a bound.
#[derive(Debug, Clone, Copy)]
pub(super) struct Effort {
    /// Ranks up to which the best division into groups is computed exactly, by dynamic programming over
    /// subsets: up to 3ⁿ / 2 operations.
    subset_ranks: usize,
    /// Pairs that all flows may pass.
    flows: usize,
    /// Ranks and pairs that all searches for the best group may look at.
    search: usize,
}

impl Effort {
    /// Tenths of a second.
    pub(super) const MOST: Self = Self { subset_ranks: 16, flows: 1 << 22, search: 1 << 21 };

    /// A part of it for each of several bounds.
    pub(super) fn shared(count: usize) -> Self {
        match count {
            0..=4 => Self::MOST,
            _ => {
                Self { subset_ranks: 12, flows: Self::MOST.flows / count, search: Self::MOST.search / count }
            }
        }
    }
}

impl Weights {
    /// A lower bound of the weight between ranks that are not near each other, both directions together, if at
    /// most `ball` − 1 others can be near a rank, and chains of near ranks connect at most `group` ranks.
    /// Needs [symmetric](Weights::symmetric) weights.
    ///
    /// Every rank has its heaviest partners near. For few ranks, the best division into groups is computed;
    /// for others, flows between ranks that cannot all be in one group bound it ([`flows`]).
    pub(super) fn crossing(&self, ball: usize, group: usize, effort: Effort) -> f64 {
        let ranks = self.ranks();
        if self.to.iter().all(Vec::is_empty) {
            return 0.0;
        }
        let local = (0..ranks).map(|rank| self.beyond(rank, ball - 1)).sum::<f64>() / 2.0;
        if group >= ranks {
            return local;
        }
        local.max(match ranks <= effort.subset_ranks {
            true => self.best_division(group),
            false => flows::crossing(self, group, effort.flows),
        })
    }

    /// The least weight between groups of at most `most` ranks.
    fn best_division(&self, most: usize) -> f64 {
        let ranks = self.ranks();
        let inside = self.inside_of_subsets();
        let all = (1_usize << ranks) - 1;
        // The most weight inside groups of every subset; a group has the lowest rank of its subset.
        let mut best = vec![0.0_f64; all + 1];
        for subset in 1..=all {
            let lowest = subset & subset.wrapping_neg();
            let rest = subset ^ lowest;
            best[subset] = best_group(&inside, &best, lowest, rest, rest, most - 1);
        }
        let total: f64 = self.iter().map(|(_, _, weight)| weight).sum::<f64>() / 2.0;
        // Sums are rounded up to single precision.
        (total - best[all]).max(0.0)
    }

    /// The weight inside every subset of ranks, rounded up.
    fn inside_of_subsets(&self) -> Vec<f32> {
        let ranks = self.ranks();
        let mut inside = vec![0.0_f32; 1 << ranks];
        for subset in 1..inside.len() {
            let lowest = subset.trailing_zeros() as usize;
            let rest = subset & (subset - 1);
            let to_rest = |&&(other, _): &&(u32, f64)| rest >> other & 1 == 1;
            let added: f64 = self.to[lowest].iter().filter(to_rest).map(|&(_, weight)| weight).sum();
            let sum = (f64::from(inside[rest]) + added) as f32;
            inside[subset] = sum.next_up();
        }
        inside
    }

    /// A lower bound of the weight out of some group that no division avoids: the largest over ranks of the
    /// least weight out of a group with this rank. A group has a number of ranks in `sizes`.
    pub(super) fn heaviest_group(&self, sizes: RangeInclusive<usize>, effort: Effort) -> f64 {
        let ranks = self.ranks();
        let most = *sizes.end();
        if most >= ranks {
            return 0.0;
        }
        let own: Vec<f64> = (0..ranks).map(|rank| self.beyond(rank, most - 1)).collect();
        let total = |rank: usize| self.to[rank].iter().map(|&(_, weight)| weight).sum::<f64>();
        let mut order: Vec<usize> = (0..ranks).collect();
        order.sort_by(|&a, &b| own[b].total_cmp(&own[a]).then(total(b).total_cmp(&total(a))).then(a.cmp(&b)));
        let mut heaviest = own[order[0]];
        if ranks > MOST_SEARCHED_RANKS {
            return heaviest;
        }
        let reversed = self.reversed();
        for &rank in order.iter().take(MOST_SEARCHES) {
            let mut search = GroupSearch::new(self, &reversed, sizes.clone(), heaviest);
            search.effort = effort.search / MOST_SEARCHES;
            heaviest = heaviest.max(search.run(rank, own[rank]));
        }
        heaviest
    }
}

/// The most weight inside groups of a subset whose first group contains `group`, and up to `left` more ranks
/// of `candidates`; `rest` are the ranks that are in no group yet.
fn best_group(
    inside: &[f32],
    best: &[f64],
    group: usize,
    rest: usize,
    mut candidates: usize,
    left: usize,
) -> f64 {
    let mut value = f64::from(inside[group]) + best[rest];
    while left > 0 && candidates != 0 {
        let rank = candidates & candidates.wrapping_neg();
        candidates ^= rank;
        value = value.max(best_group(inside, best, group | rank, rest ^ rank, candidates, left - 1));
    }
    value
}

/// Branch and bound for the least weight out of a group with a given rank.
struct GroupSearch<'a> {
    to: &'a Weights,
    from: &'a Weights,
    sizes: RangeInclusive<usize>,
    state: Vec<State>,
    /// Weight from the group to each rank, less the weight from that rank to those that are out.
    gain: Vec<f64>,
    /// The least weight so far. Groups of at most `enough` are of no interest.
    least: f64,
    enough: f64,
    /// Ranks and pairs that may still be looked at.
    effort: usize,
}

/// Whether a rank is in the group, out of it, or open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Open,
    In,
    Out,
}

impl<'a> GroupSearch<'a> {
    fn new(to: &'a Weights, from: &'a Weights, sizes: RangeInclusive<usize>, enough: f64) -> Self {
        let ranks = to.ranks();
        let state = vec![State::Open; ranks];
        let gain = vec![0.0; ranks];
        Self { to, from, sizes, state, gain, least: f64::INFINITY, enough, effort: 0 }
    }

    /// The least weight; `own`, a lower bound of it, if it takes too long; and any number of at most `enough`
    /// if it is not above that.
    fn run(&mut self, rank: usize, own: f64) -> f64 {
        self.change(rank, State::In);
        let out = self.to.to[rank].iter().map(|&(_, weight)| weight).sum();
        match self.branch(1, out) {
            true => self.least,
            false => own,
        }
    }

    /// Decides on a rank; `out` is the weight out of the group if it stays as it is. Gives up with `false`.
    fn branch(&mut self, size: usize, out: f64) -> bool {
        if self.sizes.contains(&size) {
            self.least = self.least.min(out);
        }
        if size == *self.sizes.end() || self.least <= self.enough {
            return true;
        }
        let left = self.sizes.end() - size;
        let needed = self.sizes.start().saturating_sub(size);
        let mut gains = Vec::new();
        let mut effort = self.state.len();
        for rank in 0..self.state.len() {
            if self.state[rank] == State::Open && (needed > 0 || self.gain[rank] > 0.0) {
                gains.push((self.most_gain(rank, left), rank));
                effort += self.to.to[rank].len();
            }
        }
        let Some(effort) = self.effort.checked_sub(effort) else { return false };
        self.effort = effort;
        gains.sort_unstable_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        let counts = |&(index, (gain, _)): &(usize, &(f64, usize))| index < needed || *gain > 0.0;
        let possible: f64 = gains.iter().take(left).enumerate().filter(counts).map(|(_, gain)| gain.0).sum();
        let may_grow = gains.len() >= needed && out - possible < self.least;
        let Some(&(_, rank)) = gains.first().filter(|first| may_grow && (needed > 0 || first.0 > 0.0)) else {
            return true;
        };
        let within = |edges: &[(u32, f64)]| -> f64 {
            let is_in = |edge: &&(u32, f64)| self.state[edge.0 as usize] == State::In;
            edges.iter().filter(is_in).map(|edge| edge.1).sum()
        };
        let total: f64 = self.to.to[rank].iter().map(|edge| edge.1).sum();
        let with = out + total - within(&self.from.to[rank]) - within(&self.to.to[rank]);
        let mut is_complete = true;
        for (state, size, out) in [(State::In, size + 1, with), (State::Out, size, out)] {
            self.change(rank, state);
            is_complete = is_complete && self.branch(size, out);
            self.change(rank, State::Open);
        }
        is_complete
    }

    /// The most that a rank can take from the weight out of the group if it joins, with the ranks that join
    /// after it: they are at most `left` − 1 of the open ones.
    fn most_gain(&self, rank: usize, left: usize) -> f64 {
        let mut open: Vec<f64> = self.to.to[rank]
            .iter()
            .filter(|edge| self.state[edge.0 as usize] == State::Open)
            .map(|edge| edge.1)
            .collect();
        open.sort_unstable_by(|a, b| b.total_cmp(a));
        self.gain[rank] - open.iter().skip(left - 1).sum::<f64>()
    }

    fn change(&mut self, rank: usize, state: State) {
        let before = std::mem::replace(&mut self.state[rank], state);
        for (state, sign) in [(before, -1.0), (state, 1.0)] {
            let (edges, sign) = match state {
                State::Open => continue,
                State::In => (&self.to.to[rank], sign),
                State::Out => (&self.from.to[rank], -sign),
            };
            edges.iter().for_each(|&(other, weight)| self.gain[other as usize] += sign * weight);
        }
    }
}
