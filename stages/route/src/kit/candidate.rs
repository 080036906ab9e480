//! Machines that do, and which of two is better.

use std::collections::BTreeMap;

use hopmap_model::{Error, SystemGraph};

use super::boards::{self, Packing};
use super::design::Design;
use super::judge::Judge;
use super::stock::{Stock, Unit};
use crate::problem::Problem;

/// Part of a cost by which two count as the same: rounding.
const TOLERANCE: f64 = 1e-9;

/// A machine that does.
#[derive(Debug, Clone)]
pub(super) struct Candidate {
    /// What its units, cables and boards cost.
    pub(super) cost: f64,
    /// The objective (11).
    pub(super) objective: f64,
    pub(super) units: Vec<Unit>,
    pub(super) cables: BTreeMap<(usize, usize), u32>,
    pub(super) packing: Packing,
}

/// Whether a cost is above another one.
pub(super) fn above(cost: f64, other: f64) -> bool {
    // A part of what has no end has no end either, and their sum is no number.
    let part = if other.is_finite() { TOLERANCE * other.abs().max(1.0) } else { 0.0 };
    cost > other + part
}

/// Whether a cost and an objective are better than the best ones.
pub(super) fn is_better(best: Option<(f64, f64)>, (cost, objective): (f64, f64)) -> bool {
    best.is_none_or(|best| above(best.0, cost) || (!above(cost, best.0) && above(best.1, objective)))
}

/// The least objective on a machine, if the machine does.
pub(super) fn objective(judge: &mut Judge<'_>, system: &SystemGraph) -> Result<Option<f64>, Error> {
    let Some(found) = judge.best(system)? else { return Ok(None) };
    let problem = Problem::new(judge.graph, system, None, judge.rules)?;
    Ok(Some(found.plan.as_ref().map_or(f64::INFINITY, |plan| problem.cost(plan))))
}

impl Candidate {
    /// Whether a machine of a cost and an objective is better than the best one.
    pub(super) fn is_beaten(best: Option<&Self>, cost: f64, objective: f64) -> bool {
        is_better(best.map(|best| (best.cost, best.objective)), (cost, objective))
    }

    /// Takes a design as the best machine if it is.
    pub(super) fn offer(
        best: &mut Option<Self>,
        design: &Design<'_>,
        stock: &Stock,
        judge: &mut Judge<'_>,
    ) -> Result<(), Error> {
        let packing = match boards::pack(&stock.boards, design) {
            Ok(packing) => packing,
            Err(proven) => {
                judge.unsure |= !proven;
                return Ok(());
            }
        };
        judge.unsure |= !packing.proven;
        let cost = units(design.units) + stock.cable_cost * f64::from(design.count()) + packing.cost;
        if !Self::is_beaten(best.as_ref(), cost, f64::NEG_INFINITY) {
            return Ok(());
        }
        let system = design.system(&judge.graph.demands);
        let Some(objective) = objective(judge, &system)? else { return Ok(()) };
        if Self::is_beaten(best.as_ref(), cost, objective) {
            *best = {
                let (units, cables) = (design.units.to_vec(), design.cables.clone());
                Some(Self { cost, objective, units, cables, packing })
            };
        }
        Ok(())
    }
}

/// What units cost.
pub(super) fn units(units: &[Unit]) -> f64 {
    units.iter().map(|unit| unit.cost).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_machines_at_the_same_cost_the_objective_decides() {
        assert!(is_better(None, (1.0, 2.0)));
        assert!(is_better(Some((1.0, 2.0)), (1.0, 1.0)) && !is_better(Some((1.0, 2.0)), (1.0, 2.0)));
        // What the objective is at best before it is known.
        assert!(is_better(Some((1.0, 2.0)), (1.0, f64::NEG_INFINITY)));
        assert!(!is_better(Some((1.0, 2.0)), (1.1, f64::NEG_INFINITY)));
    }
}
