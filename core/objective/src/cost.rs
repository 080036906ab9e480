//! The cost of a mapping, without a search.

use crate::adjacency::Neighbour;
use crate::objective::Values;
use crate::problem::Problem;

/// A mapping is evaluated from a similar one if at most one in this many ranks has moved.
const FEW_MOVED: usize = 4;

impl Problem {
    /// Integer cost of rank `i` on `slots[i]`, recomputed.
    #[must_use]
    pub fn cost(&self, slots: &[u32]) -> i64 {
        let quadratic = self.quadratic_cost(slots);
        let Some(terms) = &self.terms else { return quadratic };
        terms.cost(&Values {
            quadratic,
            hops: self.hops.each_ref().map(|hops| hops.as_ref().map_or(0, |hops| hops.cost(slots))),
            share: if terms.counts_shares() { terms.largest_share(&self.shares(slots)).value() } else { 0 },
            loads: terms.largest_loads(slots).map(|loads| loads.map_or(0, |loads| loads.value())),
        })
    }

    /// [`cost`](Self::cost) of a mapping `after` another one of a known cost. If they differ in few ranks of a
    /// sum, only the pairs of these are counted.
    #[must_use]
    pub fn cost_after(&self, before: &[u32], cost: i64, after: &[u32]) -> i64 {
        let differs = |rank: usize| before[rank] != after[rank];
        let moved: Vec<usize> = (0..self.ranks()).filter(|&rank| differs(rank)).collect();
        if !self.is_quadratic() || self.directed.is_some() || FEW_MOVED * moved.len() > self.ranks() {
            return self.cost(after);
        }
        let change = |rank: usize, n: &Neighbour| {
            let other = n.rank as usize;
            let [old, new] = [before, after].map(|slots| self.distance().cost(slots[rank], slots[other]));
            n.weight * (new - old)
        };
        let of_rank = |&rank: &usize| -> i64 {
            let neighbours = self.neighbours(rank as u32).iter();
            let once = neighbours.filter(|n| n.rank as usize > rank || !differs(n.rank as usize));
            once.map(|n| change(rank, n)).sum()
        };
        cost + moved.iter().map(of_rank).sum::<i64>()
    }

    /// Cost of every rank with all others, twice its contribution to the quadratic form.
    pub(crate) fn shares(&self, slots: &[u32]) -> Vec<i64> {
        let mut shares = vec![0; slots.len()];
        match &self.directed {
            Some(directed) => directed.each(slots, |one, other, cost| {
                shares[one as usize] += cost;
                shares[other as usize] += cost;
            }),
            None => {
                for (rank, share) in shares.iter_mut().enumerate() {
                    let cost =
                        |n: &Neighbour| n.weight * self.distance().cost(slots[rank], slots[n.rank as usize]);
                    *share = self.neighbours(rank as u32).iter().map(cost).sum();
                }
            }
        }
        shares
    }

    pub(crate) fn quadratic_cost(&self, slots: &[u32]) -> i64 {
        if let Some(directed) = &self.directed {
            return directed.total(slots);
        }
        let of_rank = |rank: u32| -> i64 {
            let cost =
                |n: &Neighbour| n.weight * self.distance().cost(slots[rank as usize], slots[n.rank as usize]);
            self.neighbours(rank).iter().filter(|n| n.rank > rank).map(cost).sum()
        };
        (0..self.ranks() as u32).map(of_rank).sum()
    }
}
