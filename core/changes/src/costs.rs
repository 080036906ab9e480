//! The costs of levels, and the form of costs.

use hopmap_model::CostModel;

use crate::pair::Both;
use crate::{Change, Thresholds};

/// Levels of machines that were not measured are compared exactly.
pub(crate) fn changes(both: &Both<'_>, thresholds: &Thresholds) -> Option<Change> {
    let form = |cost: &CostModel| match cost {
        CostModel::Levels(_) => "levels",
        CostModel::Matrix(_) => "matrix",
        CostModel::Routes(routes) => routes.metric.name(),
    };
    let (before, after) = (both.before.snapshot.system, both.after.snapshot.system);
    let (old, new) = match (&before.cost, &after.cost) {
        (CostModel::Levels(old), CostModel::Levels(new)) => (old, new),
        (CostModel::Routes(old), CostModel::Routes(new)) if old.metric == new.metric => {
            (&old.inside, &new.inside)
        }
        (before, after) => {
            let (before, after) = (form(before), form(after));
            return (before != after).then_some(Change::CostForm { before, after });
        }
    };
    let differ = |(a, b): (&f64, &f64)| match both.is_measured() {
        true => thresholds.differ(*a, *b),
        false => a.to_bits() != b.to_bits(),
    };
    let same = old.costs.len() == new.costs.len() && !old.costs.iter().zip(&new.costs).any(differ);
    (!same).then(|| Change::Levels { before: old.costs.clone(), after: new.costs.clone() })
}
