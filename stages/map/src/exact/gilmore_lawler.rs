//! The bound of Gilmore and Lawler, for programs too large to branch.

use std::collections::BTreeMap;

use hopmap_objective::Problem;

use super::linear::Linear;

/// Slots up to which ranks are assigned to slots at their prices, which takes the third power of it.
const MOST_ASSIGNED: usize = 1024;

/// What a rank sends to others, largest first, and to itself.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Demand {
    weights: Vec<i64>,
    own: i64,
}

/// What other slots cost from a slot, and how many there are at each cost, cheapest first; and what it costs itself.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Supply {
    costs: Vec<(i64, usize)>,
    own: i64,
}

impl Supply {
    /// The least cost of a rank, all of what it sends.
    fn price(&self, demand: &Demand) -> Option<i64> {
        let costs = self.costs.iter().flat_map(|&(cost, count)| std::iter::repeat_n(cost, count));
        let products = demand.weights.iter().zip(costs).map(|(&weight, cost)| weight.checked_mul(cost));
        products.sum::<Option<i64>>()?.checked_add(demand.own.checked_mul(self.own)?)
    }
}

/// A lower bound of F.
///
/// A rank on a slot pays half of its minimum cost with all others: its largest weights at the smallest costs
/// from there; all of what it sends if every direction has a cost of its own. The cheapest assignment of ranks to slots
/// at these prices bounds F (Gilmore 1962, Lawler 1963). `None` on 64-bit overflow or if `stop` returned true.
///
/// For very many slots every rank takes its cheapest slot, which is almost as good where slots are alike. Prices are
/// those of a rank and a slot for all that are alike, which are few on trees and regular machines.
pub(super) fn gilmore_lawler(problem: &Problem, stop: impl Fn() -> bool) -> Option<i64> {
    let is_directed = problem.ordered_pairs().is_some();
    let (demands, demand_of) = alike(demands(problem));
    let (supplies, supply_of) = alike(supplies(problem, &stop)?);
    let prices: Vec<Vec<i64>> = demands
        .iter()
        .map(|demand| supplies.iter().map(|supply| supply.price(demand).filter(|_| !stop())).collect())
        .collect::<Option<_>>()?;
    let (ranks, slots) = (demand_of.len(), supply_of.len());
    if ranks == 0 {
        return Some(0);
    }
    if slots > MOST_ASSIGNED {
        let least = demand_of.iter().map(|&demand| prices[demand].iter().copied().min().unwrap_or(0));
        let value = least.fold(0, i64::saturating_add);
        return Some(if is_directed { value } else { value / 2 + value % 2 });
    }
    let mut prices: Vec<i64> = demand_of
        .iter()
        .flat_map(|&demand| supply_of.iter().map(|&supply| prices[demand][supply]).collect::<Vec<_>>())
        .collect();
    let total = prices.iter().copied().max()?.checked_mul(i64::try_from(ranks).ok()?)?;
    // Within the range of sums of an assignment.
    let cut = (64 - total.leading_zeros()).saturating_sub(50);
    prices.iter_mut().for_each(|price| *price >>= cut);
    let value = Linear::default().solve(&mut prices, slots, ranks == slots)?;
    Some(if is_directed { value << cut } else { ((value << cut) + 1) / 2 })
}

/// The different ones, and which of them each is.
fn alike<T: Ord>(all: Vec<T>) -> (Vec<T>, Vec<usize>) {
    let mut known: BTreeMap<T, usize> = BTreeMap::new();
    let which = all
        .into_iter()
        .map(|one| {
            let next = known.len();
            *known.entry(one).or_insert(next)
        })
        .collect();
    let mut different: Vec<(usize, T)> = known.into_iter().map(|(one, index)| (index, one)).collect();
    different.sort_unstable_by_key(|(index, _)| *index);
    (different.into_iter().map(|(_, one)| one).collect(), which)
}

/// Those of all ranks that communicate.
fn demands(problem: &Problem) -> Vec<Demand> {
    let mut all: Vec<Demand> = match problem.ordered_pairs() {
        Some(ordered) => {
            let silent = || Demand { weights: Vec::new(), own: 0 };
            let mut all: Vec<Demand> = (0..problem.ranks()).map(|_| silent()).collect();
            for (source, destination, weight) in ordered.weights {
                let demand = &mut all[source as usize];
                if source == destination { demand.own = weight } else { demand.weights.push(weight) }
            }
            all
        }
        None => {
            let of_rank = |rank| problem.neighbours(rank).iter().map(|near| near.weight).collect();
            (0..problem.ranks() as u32).map(|rank| Demand { weights: of_rank(rank), own: 0 }).collect()
        }
    };
    all.iter_mut().for_each(|demand| demand.weights.sort_unstable_by(|a, b| b.cmp(a)));
    all.retain(|demand| demand.own > 0 || !demand.weights.is_empty());
    all
}

/// Those of all slots; `None` if stopped.
fn supplies(problem: &Problem, stop: impl Fn() -> bool) -> Option<Vec<Supply>> {
    let (distance, slots) = (problem.distance(), problem.slots() as u32);
    let ordered = problem.ordered_pairs();
    let cost = |a: u32, b: u32| match &ordered {
        Some(ordered) => ordered.costs[a as usize * slots as usize + b as usize],
        None => distance.cost(a, b),
    };
    let of_slot = |slot: u32| {
        if stop() {
            return None;
        }
        let costs = if ordered.is_none() && distance.is_tree() {
            let sizes = (0..distance.levels()).map(|level| distance.group(level, slot).len());
            let others = std::iter::once(1).chain(sizes.clone()).zip(sizes).map(|(inner, size)| size - inner);
            let mut costs: Vec<_> =
                others.enumerate().map(|(level, count)| (distance.level_cost(level), count)).collect();
            costs.sort_unstable();
            costs
        } else {
            let mut costs: Vec<i64> =
                (0..slots).filter(|&other| other != slot).map(|other| cost(slot, other)).collect();
            costs.sort_unstable();
            costs.chunk_by(|a, b| a == b).map(|equal| (equal[0], equal.len())).collect()
        };
        Some(Supply { costs, own: if ordered.is_some() { cost(slot, slot) } else { 0 } })
    };
    (0..slots).map(of_slot).collect()
}
