//! The bound of Gilmore and Lawler, for problems too large to branch.

use super::instance::Instance;
use super::linear::Linear;

/// No placement costs less, in units of the instance.
///
/// A rank on a slot pays half of what it pays at least with all others: its largest weights at the smallest costs from there.
/// The cheapest assignment of ranks to slots at these prices bounds F (Gilmore 1962, Lawler 1963). `None` if that does not fit
/// 64 bits, or `stop` said so.
pub(super) fn gilmore_lawler(instance: &Instance<'_>, stop: impl Fn() -> bool) -> Option<i64> {
    let (ranks, slots) = (instance.ranks(), instance.slots());
    let weights: Vec<Vec<i64>> = instance
        .weights()
        .chunks_exact(ranks)
        .map(|row| {
            let mut row: Vec<i64> = row.iter().copied().filter(|&weight| weight > 0).collect();
            row.sort_unstable_by(|a, b| b.cmp(a));
            row
        })
        .collect();
    let costs: Vec<Vec<i64>> = (0..slots)
        .map(|slot| {
            let row = &instance.costs()[slot * slots..][..slots];
            let mut row: Vec<i64> = [&row[..slot], &row[slot + 1..]].concat();
            row.sort_unstable();
            row
        })
        .collect();
    let mut prices = Vec::with_capacity(ranks * slots);
    for weights in &weights {
        if stop() {
            return None;
        }
        for costs in &costs {
            let products = weights.iter().zip(costs).map(|(&weight, &cost)| weight.checked_mul(cost));
            prices.push(products.sum::<Option<i64>>()?);
        }
    }
    let total = prices.iter().copied().max()?.checked_mul(i64::try_from(ranks).ok()?)?;
    // Within the numbers that an assignment may sum.
    let cut = (64 - total.leading_zeros()).saturating_sub(50);
    prices.iter_mut().for_each(|price| *price >>= cut);
    let value = Linear::default().solve(&mut prices, slots, ranks == slots)?;
    Some(((value << cut) + 1) / 2)
}
