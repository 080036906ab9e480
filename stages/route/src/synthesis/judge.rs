//! Whether a machine does, whatever single part of it fails, what is best on it, and which of two machines is better.

use std::collections::{BTreeMap, BTreeSet};

use hopmap_model::{Error, Mapping, Part, SystemGraph, TaskGraph};

use super::design::{Assembly, Design, pack};
use super::inventory::Inventory;
use crate::answer::{Answer, answer, placed, solve_from};
use crate::engine::{Limits, SearchResult, StopCondition};
use crate::failures::{Element, elements};
use crate::problem::{Plan, Problem};
use crate::{Fallible, Method, Rules, Weights, solver};

/// Pairs of nodes.
pub(super) type Pairs = BTreeSet<(usize, usize)>;

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
    pub(super) inventory: &'a Inventory,
    /// The best machine so far.
    pub(super) found: Option<Candidate>,
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

    fn solve(&self, problem: &Problem<'_>) -> Result<SearchResult, Error> {
        let solver = solver::default();
        let stop = StopCondition::new(self.limits, self.should_stop);
        solve_from(problem, None, self.method, solver.as_deref(), &stop)
    }

    /// Rules under which all answers cost the same, to know whether there is one.
    fn any(&self) -> Rules {
        Rules { weights: Weights::default(), ..self.rules }
    }

    /// Whether a machine may do: false if it surely does not. `loose` are pairs of nodes that may have fewer cables in the end,
    /// so that the failure of one of them says nothing.
    pub(super) fn may_do(&mut self, system: &SystemGraph, loose: &Pairs) -> Result<bool, Error> {
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

    /// The least objective (11) on a machine, if every failure is survived.
    pub(super) fn best(&mut self, system: &SystemGraph) -> Result<Option<f64>, Error> {
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
        Ok(Some(problem.cost(plan)))
    }

    /// The answer on a machine.
    pub(super) fn answer(&self, system: &SystemGraph) -> Result<Option<Answer>, Error> {
        let problem = Problem::new(self.graph, system, None, self.rules)?;
        let solver = solver::default();
        let stop = match (self.should_stop)() {
            // Its plan was found before, and is found again in about the same time.
            true => StopCondition::new(Limits { seconds: Some(LAST_SECONDS), ..self.limits }, &|| false),
            false => StopCondition::new(self.limits, self.should_stop),
        };
        answer(&problem, None, self.method, solver.as_deref(), &stop)
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
    /// How many there are of every kind.
    pub(super) counts: Vec<usize>,
    /// How many cables join two units of the assembly.
    pub(super) cables: BTreeMap<(usize, usize), u32>,
}

/// Whether a cost is above another one.
pub(super) fn above(cost: f64, other: f64) -> bool {
    // A part of what has no end has no end either, and their sum is no number.
    let part = if other.is_finite() { TOLERANCE * other.abs().max(1.0) } else { 0.0 };
    cost > other + part
}

/// Whether a cost and an objective are better than the best ones.
fn is_better(best: Option<(f64, f64)>, (cost, objective): (f64, f64)) -> bool {
    best.is_none_or(|best| above(best.0, cost) || (!above(cost, best.0) && above(best.1, objective)))
}

impl Candidate {
    /// Whether it is better than the best one.
    pub(super) fn is_better_than(&self, best: Option<&Self>) -> bool {
        is_better(best.map(|best| (best.cost, best.objective)), (self.cost, self.objective))
    }
}

impl Judge<'_> {
    /// Whether what costs at least so much is of no use.
    pub(super) fn is_dear(&self, cost: f64) -> bool {
        self.found.as_ref().is_some_and(|best| above(cost, best.cost))
    }

    /// Takes a design as the best machine if it is.
    pub(super) fn offer(&mut self, assembly: &Assembly, design: &Design<'_>) -> Result<(), Error> {
        let known = self.found.as_ref().map(|best| (best.cost, best.objective));
        if let Some(better) = self.better(known, assembly, design)? {
            self.found = Some(better);
        }
        Ok(())
    }

    /// The machine of a design if it is better than a known cost and objective.
    pub(super) fn better(
        &mut self,
        known: Option<(f64, f64)>,
        assembly: &Assembly,
        design: &Design<'_>,
    ) -> Result<Option<Candidate>, Error> {
        let inventory = self.inventory;
        if inventory.cables.is_some_and(|most| design.count() > most) {
            return Ok(None);
        }
        let packing = match pack(&inventory.boards, design) {
            Ok(packing) => packing,
            Err(proven) => {
                self.unsure |= !proven;
                return Ok(None);
            }
        };
        self.unsure |= !packing.proven;
        let cost = assembly.cost + inventory.cable_cost * f64::from(design.count()) + packing.cost;
        if !is_better(known, (cost, f64::NEG_INFINITY)) {
            return Ok(None);
        }
        let objective = self.best(&assembly.system(design, &self.graph.demands))?;
        let objective = objective.filter(|&objective| is_better(known, (cost, objective)));
        let (counts, cables) = (assembly.counts.clone(), design.cables.clone());
        Ok(objective.map(|objective| Candidate { cost, objective, counts, cables }))
    }
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
