//! Branches of a problem whose cost is a maximum: T, or the largest load of a link.
//!
//! # Method
//!
//! A node bounds a partial mapping in two ways. Every remaining rank on every free slot has a price: the least
//! that the maximum becomes by it. The cheapest assignment by its largest price (the linear bottleneck
//! assignment problem; Burkard, Dell'Amico and Martello 2009) is one bound. The numbers of which the maximum is
//! taken also have a least sum, by a linear assignment, and the maximum is at least their mean. A node branches
//! on the rank with the fewest slots that are cheap enough; of slots exchanged by an automorphism of the machine
//! only one is tried.

mod loads;
mod shares;

use serde::{Deserialize, Serialize};

use super::instance::Instance;
use super::linear::{Linear, Number};
use super::search::{Incumbent, MOST_AT_ONCE, Space, Stop};
use super::symmetry::Symmetry;

pub(super) use loads::Loads;
pub(super) use shares::Shares;

/// Maximum nodes per branch in a round, and assignments of a rank to a slot that they may bound: about a second
/// for all.
const NODES_OF_ROUND: usize = 512;
const PLACES_OF_ROUND: usize = 1 << 16;
/// Bits of sums of prices, for which there is room in sums of an assignment.
const SUM_BITS: u32 = 50;

/// A maximum of numbers that are sums over pairs of ranks. Ranks are the rows of an [`Instance`].
pub(super) trait Maximum: Clone + Sync {
    /// Its value for a mapping of all ranks of the problem.
    fn of(&self, slots: &[u32]) -> i64;

    /// Lower bounds for a partial mapping.
    fn prices(&self, partial: &Partial) -> Prices;

    /// What the sum of the numbers is divided by to get a lower bound of the maximum.
    fn divisor(&self) -> f64;

    /// Costs between slots that differ for pairs that are not alike.
    fn costs(&self) -> Option<&[i64]>;

    /// Whether a permutation of the slots that preserves these costs preserves the maximum of every mapping.
    fn is_preserved(&self, image: &[usize]) -> bool;
}

/// A partial mapping.
pub(super) struct Partial {
    /// The slot of every rank that has one.
    slots: Vec<Option<u32>>,
    /// Ranks without a slot.
    rows: Vec<u32>,
    /// Slots without a rank.
    columns: Vec<u32>,
}

impl Partial {
    fn new(ranks: usize, slots: usize, path: &[(u32, u32)]) -> Self {
        let mut of_rank = vec![None; ranks];
        let mut is_free = vec![true; slots];
        for &(rank, slot) in path {
            of_rank[rank as usize] = Some(slot);
            is_free[slot as usize] = false;
        }
        let rows = (0..ranks as u32).filter(|&rank| of_rank[rank as usize].is_none()).collect();
        let columns = (0..slots as u32).filter(|&slot| is_free[slot as usize]).collect();
        Self { slots: of_rank, rows, columns }
    }

    /// The ranks with a slot, and their slots.
    fn placed(&self) -> impl Iterator<Item = (u32, u32)> {
        (0..).zip(&self.slots).filter_map(|(rank, slot)| Some((rank, (*slot)?)))
    }
}

/// Lower bounds of the maximum of all completions of a partial mapping.
#[derive(Default)]
pub(super) struct Prices {
    /// The least in any case.
    floor: i64,
    /// The least if a row is on a column, row by row.
    maxima: Vec<i64>,
    /// What the numbers sum up to in any case, and what a row on a column adds at least.
    sum: i64,
    sums: Vec<i64>,
}

/// The least sum of products of the largest numbers with the smallest ones; `descending` has at most as many.
fn least_product(descending: &[i64], ascending: &[i64]) -> i64 {
    descending.iter().zip(ascending).map(|(a, b)| a * b).sum()
}

/// The mappings of a problem whose cost is a maximum.
#[derive(Clone)]
pub(super) struct Bottleneck<'s, M> {
    instance: &'s Instance<'s>,
    maximum: &'s M,
    symmetry: Option<Symmetry<'s>>,
}

/// A partial mapping, and a lower bound of the maximum of its completions.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct Placement {
    /// Ranks and their slots.
    path: Vec<(u32, u32)>,
    bound: i64,
    /// Whether free slots may still be alike.
    alike: bool,
}

impl<M: Maximum> Space for Bottleneck<'_, M> {
    type Branch = Placement;
    type Saved = Placement;

    fn root(&self, incumbent: &mut Incumbent, _: Stop<'_>) -> Vec<Placement> {
        self.node(&Placement { path: Vec::new(), bound: 0, alike: self.symmetry.is_some() }, incumbent)
    }

    fn split(&self, branch: &Placement, incumbent: &mut Incumbent, _: Stop<'_>) -> Vec<Placement> {
        self.node(branch, incumbent)
    }

    fn bound(&self, branch: &Placement) -> i64 {
        branch.bound
    }

    fn save(open: &[Placement]) -> Vec<Placement> {
        open.to_vec()
    }

    fn restore(&self, saved: &[Placement], _: Stop<'_>) -> Option<Vec<Placement>> {
        let (ranks, slots) = (self.instance.ranks() as u32, self.instance.slots as u32);
        let is_here = |&(rank, slot): &(u32, u32)| rank < ranks && slot < slots;
        saved.iter().all(|branch| branch.path.iter().all(is_here)).then(|| saved.to_vec())
    }

    fn round(&self) -> (usize, u64) {
        let places = self.instance.ranks() * self.instance.slots;
        (MOST_AT_ONCE, (PLACES_OF_ROUND / places.max(1)).clamp(1, NODES_OF_ROUND) as u64)
    }
}

impl<'s, M: Maximum> Bottleneck<'s, M> {
    pub(super) fn new(instance: &'s Instance<'s>, maximum: &'s M) -> Self {
        let costs = maximum.costs().filter(|_| !instance.is_constrained());
        Self { instance, maximum, symmetry: costs.map(|costs| Symmetry::new(costs, instance.slots)) }
    }

    /// Bounds a partial mapping and branches; empty if it contains no improvement on the incumbent.
    fn node(&self, branch: &Placement, incumbent: &mut Incumbent) -> Vec<Placement> {
        let partial = Partial::new(self.instance.ranks(), self.instance.slots, &branch.path);
        let mut prices = self.maximum.prices(&partial);
        let columns = partial.columns.len();
        for (row, maxima) in partial.rows.iter().zip(prices.maxima.chunks_exact_mut(columns)) {
            for (slot, price) in partial.columns.iter().zip(maxima) {
                let admits = self.instance.admits(*row as usize, *slot as usize);
                *price = if admits { (*price).max(prices.floor) } else { i64::IMPOSSIBLE };
            }
        }
        let Some((least, on)) = bottleneck(&prices.maxima, columns) else { return Vec::new() };
        self.try_columns(&partial, &on, incumbent);
        let Some((mean, on)) = self.mean(&mut prices, columns, incumbent.cost) else { return Vec::new() };
        self.try_columns(&partial, &on, incumbent);
        let bound = branch.bound.max(least).max(mean);
        if bound >= incumbent.cost || partial.rows.len() == 1 && least >= incumbent.cost {
            return Vec::new();
        }
        self.branches(branch, &partial, &prices, bound, incumbent.cost)
    }

    /// The least maximum by the least sum, and the columns that have it; `None` if no mapping is below a limit.
    fn mean(&self, prices: &mut Prices, columns: usize, limit: i64) -> Option<(i64, Vec<u32>)> {
        let rows = (prices.maxima.len() / columns) as u32;
        let largest = prices.sums.iter().copied().max()?.saturating_mul(i64::from(rows));
        let cut = (i64::BITS - largest.leading_zeros()).saturating_sub(SUM_BITS);
        let sums = prices.sums.iter().zip(&prices.maxima);
        let mut sums: Vec<i64> =
            sums.map(|(sum, &price)| if price >= limit { i64::IMPOSSIBLE } else { sum >> cut }).collect();
        let mut linear = Linear::default();
        let added = linear.solve(&mut sums, columns, rows as usize == columns)? << cut;
        // Rounded down before it is rounded up, as the quotient is not exact.
        let mean = (prices.sum + added) as f64 / self.maximum.divisor() * (1.0 - 1e-9);
        Some((mean.ceil() as i64, linear.columns().to_vec()))
    }

    /// Tries an assignment of the remaining ranks.
    fn try_columns(&self, partial: &Partial, columns: &[u32], incumbent: &mut Incumbent) {
        let mut slots: Vec<u32> = partial.slots.iter().map(|slot| slot.unwrap_or(0)).collect();
        for (&row, &column) in partial.rows.iter().zip(columns) {
            slots[row as usize] = partial.columns[column as usize];
        }
        if slots.iter().enumerate().all(|(rank, &slot)| self.instance.admits(rank, slot as usize)) {
            incumbent.replace(self.maximum.of(&self.instance.complete(&slots)), slots);
        }
    }

    /// One branch per class of the slots of a rank that may improve; the most promising one comes last.
    fn branches(
        &self,
        branch: &Placement,
        partial: &Partial,
        prices: &Prices,
        bound: i64,
        limit: i64,
    ) -> Vec<Placement> {
        let columns = partial.columns.len();
        let cheap = |row: &usize| {
            let row = &prices.maxima[row * columns..][..columns];
            row.iter().filter(|&&price| price < limit).count()
        };
        let Some(row) = (0..partial.rows.len()).min_by_key(cheap) else { return Vec::new() };
        let fixed: Vec<u32> = branch.path.iter().map(|&(_, slot)| slot).collect();
        let symmetry = self.symmetry.as_ref().filter(|_| branch.alike);
        let classes = symmetry.and_then(|all| all.classes(&fixed, |image| self.maximum.is_preserved(image)));
        let alike = classes.is_some();
        let is_first = |slot: u32| classes.as_ref().is_none_or(|classes| classes[slot as usize] == slot);
        // A class is named by its first slot, which is free if one of them is.
        let mut choices: Vec<(i64, i64, u32)> = (0..columns)
            .map(|column| (row * columns + column, partial.columns[column]))
            .filter(|&(at, slot)| prices.maxima[at] < limit && is_first(slot))
            .map(|(at, slot)| (prices.maxima[at], prices.sums[at], slot))
            .collect();
        choices.sort_unstable_by(|a, b| b.cmp(a));
        let place = |(price, _, slot): (i64, i64, u32)| {
            let mut path = branch.path.clone();
            path.push((partial.rows[row], slot));
            Placement { path, bound: bound.max(price), alike }
        };
        choices.into_iter().map(place).collect()
    }
}

/// The least value such that every row has a column of its own with a price of at most it, and these columns.
fn bottleneck(prices: &[i64], columns: usize) -> Option<(i64, Vec<u32>)> {
    let mut values: Vec<i64> = prices.iter().copied().filter(|&price| price < i64::HALF).collect();
    values.sort_unstable();
    values.dedup();
    let (mut low, mut high) = (0, values.len());
    let mut found = None;
    while low < high {
        let middle = usize::midpoint(low, high);
        match matching(prices, columns, values[middle]) {
            Some(on) => {
                found = Some((values[middle], on));
                high = middle;
            }
            None => low = middle + 1,
        }
    }
    found
}

/// A column of its own for every row, with a price of at most `most`.
fn matching(prices: &[i64], columns: usize, most: i64) -> Option<Vec<u32>> {
    fn augment(
        row: usize,
        prices: &[&[i64]],
        most: i64,
        seen: &mut [bool],
        row_of: &mut [Option<usize>],
    ) -> bool {
        for column in 0..row_of.len() {
            if prices[row][column] <= most && !std::mem::replace(&mut seen[column], true) {
                let other = row_of[column];
                if other.is_none_or(|other| augment(other, prices, most, seen, row_of)) {
                    row_of[column] = Some(row);
                    return true;
                }
            }
        }
        false
    }
    let prices: Vec<&[i64]> = prices.chunks_exact(columns).collect();
    let mut row_of = vec![None; columns];
    if !(0..prices.len()).all(|row| augment(row, &prices, most, &mut vec![false; columns], &mut row_of)) {
        return None;
    }
    let mut on = vec![0; prices.len()];
    (0..).zip(row_of).for_each(|(column, row)| row.into_iter().for_each(|row| on[row] = column));
    Some(on)
}
