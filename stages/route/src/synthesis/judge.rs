//! Whether a machine does, whatever single part of it fails, what is best on it, and which of two machines is better.

use std::collections::{BTreeMap, BTreeSet};

use hopmap_model::{Error, Mapping, Part, SystemGraph, TaskGraph};

use super::design;
use super::design::{Design, Packing};
use super::inventory::{Component, Inventory};
use crate::answer::{Answer, answer, placed, solve_from};
use crate::engine::{Found, Limits, StopCondition};
use crate::failures::{Element, elements};
use crate::problem::{Plan, Problem};
use crate::{Fallible, Method, Rules, Weights, solver};

/// What looks at machines, and how many it has looked at.
pub(super) struct Judge<'a> {
    pub(super) graph: &'a TaskGraph,
    pub(super) rules: Rules,
    pub(super) method: Method,
    pub(super) limits: Limits,
    /// What any one of which may fail.
    pub(super) survives: &'a [Fallible],
    /// Whether processes may go elsewhere then.
    pub(super) remap: bool,
    /// Machines that may still be looked at.
    pub(super) left: u64,
    pub(super) looked: u64,
    /// Whether something was not found out within the limits.
    pub(super) unsure: bool,
    /// The part whose failure was not survived last.
    pub(super) killer: Option<(Part, String)>,
    pub(super) should_stop: &'a (dyn Fn() -> bool + Sync),
    /// Told how many machines were looked at.
    pub(super) progress: &'a dyn Fn(u64),
}

impl Judge<'_> {
    /// Whether to stop.
    pub(super) fn is_over(&self) -> bool {
        self.left == 0 || (self.should_stop)()
    }

    fn count(&mut self) {
        self.left = self.left.saturating_sub(1);
        self.looked += 1;
        (self.progress)(self.looked);
    }

    fn solve(&self, problem: &Problem<'_>) -> Result<Found, Error> {
        let solver = solver::default();
        let stop = StopCondition::new(self.limits, self.should_stop);
        solve_from(problem, None, self.method, solver.as_deref(), &stop)
    }

    /// Rules under which all answers cost the same, to know whether there is one.
    fn any(&self) -> Rules {
        Rules { weights: Weights { longest_route: 0.0, total_hops: 0.0, table_entries: 0.0 }, ..self.rules }
    }

    /// Whether a machine may do: false if it surely does not. `loose` are pairs of nodes that may have fewer cables in the end,
    /// so that the failure of one of them says nothing.
    pub(super) fn may_do(
        &mut self,
        system: &SystemGraph,
        loose: &BTreeSet<(usize, usize)>,
    ) -> Result<bool, Error> {
        self.count();
        let problem = Problem::new(self.graph, system, None, self.any())?;
        let found = self.solve(&problem)?;
        let Some(plan) = found.plan else { return Ok(!found.proven) };
        for element in self.elements(system) {
            let ends = |&link: &u32| {
                let link = &system.links[link as usize];
                let (a, b) = (link.source as usize, link.destination as usize);
                (a.min(b), a.max(b))
            };
            let is_loose = element.part == Part::Link
                && element.links.first().is_some_and(|link| loose.contains(&ends(link)));
            if !is_loose && self.outlives(system, &plan, &element, true)? == Some(false) {
                self.killer = Some((element.part, element.name));
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The best plan on a machine, if every failure is survived.
    pub(super) fn best(&mut self, system: &SystemGraph) -> Result<Option<Found>, Error> {
        self.count();
        let problem = Problem::new(self.graph, system, None, self.rules)?;
        let found = self.solve(&problem)?;
        self.unsure |= !found.proven;
        let Some(plan) = &found.plan else { return Ok(None) };
        for element in self.elements(system) {
            let survived = self.outlives(system, plan, &element, self.remap)?;
            if survived == Some(true) {
                continue;
            }
            // Another mapping might do where this one does not.
            let is_sure = self.outlives(system, plan, &element, true)? == Some(false);
            self.unsure |= !is_sure;
            self.killer = Some((element.part, element.name));
            return Ok(None);
        }
        Ok(Some(found))
    }

    /// What may fail, the part first that was fatal last.
    fn elements(&self, system: &SystemGraph) -> Vec<Element> {
        let mut elements = elements(system, self.survives);
        let is_other = |element: &Element| {
            self.killer.as_ref().is_none_or(|(part, name)| (*part, name) != (element.part, &element.name))
        };
        elements.sort_by_key(is_other);
        elements
    }

    /// Whether there is an answer without a part; nothing if that was not found out.
    fn outlives(
        &self,
        system: &SystemGraph,
        plan: &Plan,
        element: &Element,
        remap: bool,
    ) -> Result<Option<bool>, Error> {
        if !element.is_used(&plan.hosts, &plan.routes) {
            return Ok(Some(true));
        }
        let without = element.without(system);
        let mapping: Option<Mapping> = match remap {
            true => None,
            false if element.host().is_some() => return Ok(Some(false)),
            false => Some(placed(self.graph, system, &plan.hosts)?),
        };
        let mut problem = Problem::new(self.graph, &without, mapping.as_ref(), self.any())?;
        element.close(&mut problem);
        let found = self.solve(&problem)?;
        Ok(match (found.plan, found.proven) {
            (Some(_), _) => Some(true),
            (None, true) => Some(false),
            (None, false) => None,
        })
    }
}

/// Seconds in which the routes of a machine are found again after somebody asked to stop.
const LAST_SECONDS: f64 = 10.0;
/// Part of a cost by which two count as the same: rounding.
const TOLERANCE: f64 = 1e-9;

/// A machine that does.
#[derive(Debug, Clone)]
pub(super) struct Candidate {
    /// What its units, cables and boards cost.
    pub(super) cost: f64,
    /// The objective (11).
    pub(super) objective: f64,
    pub(super) units: Vec<Component>,
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
        inventory: &Inventory,
        judge: &mut Judge<'_>,
    ) -> Result<(), Error> {
        let packing = match design::pack(&inventory.boards, design) {
            Ok(packing) => packing,
            Err(proven) => {
                judge.unsure |= !proven;
                return Ok(());
            }
        };
        judge.unsure |= !packing.proven;
        let cost = units(design.units) + inventory.cable_cost * f64::from(design.count()) + packing.cost;
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
pub(super) fn units(units: &[Component]) -> f64 {
    units.iter().map(|unit| unit.cost).sum()
}

/// The answer on a machine.
pub(super) fn answer_of(judge: &Judge<'_>, system: &SystemGraph) -> Result<Option<Answer>, Error> {
    let problem = Problem::new(judge.graph, system, None, judge.rules)?;
    let solver = solver::default();
    if (judge.should_stop)() {
        // Its plan was found before, and is found again in about the same time.
        let limits = Limits { seconds: Some(LAST_SECONDS), ..judge.limits };
        return answer(
            &problem,
            None,
            judge.method,
            solver.as_deref(),
            &StopCondition::new(limits, &|| false),
        );
    }
    let stop = StopCondition::new(judge.limits, judge.should_stop);
    answer(&problem, None, judge.method, solver.as_deref(), &stop)
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
