//! T: the largest contribution of a rank to F, counted twice.

use super::super::instance::Instance;
use super::{Maximum, Partial, Prices, least_product};

/// The contributions of all ranks.
#[derive(Clone)]
pub(in super::super) struct Shares<'s> {
    instance: &'s Instance<'s>,
}

impl<'s> Shares<'s> {
    pub(in super::super) fn new(instance: &'s Instance<'s>) -> Self {
        Self { instance }
    }

    fn pair(&self, [rank, other]: [u32; 2], [slot, there]: [u32; 2]) -> i64 {
        self.instance.pair([rank as usize, other as usize], [slot as usize, there as usize])
    }

    /// What a rank on a slot pays for itself in its contribution.
    fn own(&self, rank: u32, slot: u32) -> i64 {
        2 * self.instance.own(rank as usize, slot as usize)
    }

    /// The weights of a rank with all rows but itself, from the largest; both directions.
    fn weights(&self, rank: u32, rows: &[u32]) -> [Vec<i64>; 2] {
        let size = self.instance.ranks();
        self.sorted(rank, rows, |a, b| self.instance.weights[a * size + b]).map(|mut weights| {
            weights.reverse();
            weights
        })
    }

    /// The costs from a slot to all columns but itself, from the smallest; both directions.
    fn costs(&self, slot: u32, columns: &[u32]) -> [Vec<i64>; 2] {
        self.sorted(slot, columns, |a, b| self.instance.costs[a * self.instance.slots + b])
    }

    fn sorted(&self, one: u32, others: &[u32], value: impl Fn(usize, usize) -> i64) -> [Vec<i64>; 2] {
        let others = || others.iter().filter(|&&other| other != one).map(|&other| other as usize);
        let mut there: Vec<i64> = others().map(|other| value(one as usize, other)).collect();
        let back = others().filter(|_| self.instance.is_directed);
        let mut back: Vec<i64> = back.map(|other| value(other, one as usize)).collect();
        there.sort_unstable();
        back.sort_unstable();
        [there, back]
    }
}

fn least(weights: &[Vec<i64>; 2], costs: &[Vec<i64>; 2]) -> i64 {
    (0..2).map(|direction| least_product(&weights[direction], &costs[direction])).sum()
}

impl Maximum for Shares<'_> {
    fn of(&self, slots: &[u32]) -> i64 {
        let slots = self.instance.active(slots);
        let share = |(rank, &slot): (u32, &u32)| {
            let others = (0..).zip(&slots).filter(|&(other, _)| other != rank);
            let pairs = others.map(|(other, &there)| self.pair([rank, other], [slot, there]));
            pairs.sum::<i64>() + self.own(rank, slot)
        };
        (0..).zip(&slots).map(share).max().unwrap_or(0)
    }

    /// A rank pays for the ranks with a slot, and its largest remaining weights at the smallest costs.
    fn prices(&self, partial: &Partial) -> Prices {
        let Partial { rows, columns, .. } = partial;
        let placed: Vec<(u32, u32)> = partial.placed().collect();
        let so_far = |&(rank, slot): &(u32, u32)| {
            let others = placed.iter().filter(|&&(other, _)| other != rank);
            let pairs = others.map(|&(other, there)| self.pair([rank, other], [slot, there]));
            pairs.sum::<i64>() + self.own(rank, slot)
        };
        let paid: Vec<i64> = placed.iter().map(so_far).collect();
        let rest = |&(rank, slot): &(u32, u32)| least(&self.weights(rank, rows), &self.costs(slot, columns));
        let floor = placed.iter().map(rest).zip(&paid).map(|(rest, paid)| rest + paid).max();
        let mut prices = Prices { floor: floor.unwrap_or(0), sum: paid.iter().sum(), ..Prices::default() };
        let costs: Vec<_> = columns.iter().map(|&slot| self.costs(slot, columns)).collect();
        for &rank in rows {
            let weights = self.weights(rank, rows);
            for (&slot, costs) in columns.iter().zip(&costs) {
                let pairs = || placed.iter().map(|&(other, there)| self.pair([rank, other], [slot, there]));
                let (with_placed, own) = (pairs().sum::<i64>(), self.own(rank, slot));
                let with_others = least(&weights, costs);
                let of_others = pairs().zip(&paid).map(|(pair, paid)| pair + paid).max().unwrap_or(0);
                prices.maxima.push((with_placed + own + with_others).max(of_others));
                prices.sums.push(2 * with_placed + own + with_others);
            }
        }
        prices
    }

    fn divisor(&self) -> f64 {
        self.instance.ranks() as f64
    }

    fn costs(&self) -> Option<&[i64]> {
        Some(&self.instance.costs)
    }

    fn is_preserved(&self, _: &[usize]) -> bool {
        true
    }
}
