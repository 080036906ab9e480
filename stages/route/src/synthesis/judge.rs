//! Evaluates machines: feasibility, survival of single failures, best solution, and comparison.

use std::collections::{BTreeMap, BTreeSet};

use hopmap_model::{Error, Mapping, Part, SystemGraph, TaskGraph};
use hopmap_routing::answer::{Answer, answer, placed, solve_from};
use hopmap_routing::engine::{Limits, SearchResult, StopCondition};
use hopmap_routing::params::Method;
use hopmap_routing::problem::{Plan, Problem, Rules, Weights};
use hopmap_routing::solver;

use super::design::{Assembly, Design, pack};
use super::inventory::Inventory;
use crate::failures::{Element, elements};
use crate::params::Fallible;

/// Pairs of nodes.
pub(super) type Pairs = BTreeSet<(usize, usize)>;

/// Evaluates machines and counts them.
pub(super) struct Judge<'a> {
    pub(super) graph: &'a TaskGraph,
    pub(super) rules: Rules,
    pub(super) method: Method,
    pub(super) limits: Limits,
    /// Components of which any single one may fail.
    pub(super) survives: &'a [Fallible],
    /// Whether processes may move after a failure.
    pub(super) remap: bool,
    /// Remaining number of machines to examine.
    pub(super) left: u64,
    pub(super) looked: u64,
    /// Whether some result remained unknown within the limits.
    pub(super) unsure: bool,
    /// The component whose failure was not survived last.
    pub(super) killer: Option<(Part, String)>,
    pub(super) should_stop: &'a (dyn Fn() -> bool + Sync),
    pub(super) inventory: &'a Inventory,
    /// The best machine so far.
    pub(super) found: Option<Candidate>,
    /// Progress callback with the number of examined machines.
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

    /// Rules under which all solutions cost the same, for tests of feasibility.
    fn any(&self) -> Rules {
        Rules { weights: Weights::default(), ..self.rules }
    }

    /// Whether a machine may be sufficient: false if it is proven insufficient. Pairs of nodes in `loose` may have fewer cables
    /// in the end, so the failure of one of these cables proves nothing.
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

    /// The optimal objective (11) on a machine, if every failure is survived.
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
            // Another mapping might survive where this one does not.
            let is_sure = self.outlives(system, plan, &element, true)? == Some(false);
            self.unsure |= !is_sure;
            self.killer = Some((element.part, element.name));
            return Ok(None);
        }
        Ok(Some(problem.cost(plan)))
    }

    /// The solution on a machine.
    pub(super) fn answer(&self, system: &SystemGraph) -> Result<Option<Answer>, Error> {
        let problem = Problem::new(self.graph, system, None, self.rules)?;
        let solver = solver::default();
        let stop = match (self.should_stop)() {
            // The plan was found before, so it will be found again in about the same time.
            true => StopCondition::new(Limits { seconds: Some(LAST_SECONDS), ..self.limits }, &|| false),
            false => StopCondition::new(self.limits, self.should_stop),
        };
        answer(&problem, None, self.method, solver.as_deref(), &stop)
    }

    /// Components that may fail; the last fatal one first.
    fn elements(&self, system: &SystemGraph) -> Vec<Element> {
        let mut elements = elements(system, self.survives);
        let is_other = |element: &Element| {
            self.killer.as_ref().is_none_or(|(part, name)| (*part, name) != (element.part, &element.name))
        };
        elements.sort_by_key(is_other);
        elements
    }

    /// Whether a solution exists without a component; none if unknown.
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

/// Time in seconds to recompute the routes of a machine after a stop request.
const LAST_SECONDS: f64 = 10.0;
/// Relative tolerance between equal costs: rounding.
const TOLERANCE: f64 = 1e-9;

/// A sufficient machine.
#[derive(Debug, Clone)]
pub(super) struct Candidate {
    /// Cost of its units, cables and boards.
    pub(super) cost: f64,
    /// The objective (11).
    pub(super) objective: f64,
    /// Number of components of every kind.
    pub(super) counts: Vec<usize>,
    /// Number of cables between each two units of the assembly.
    pub(super) cables: BTreeMap<(usize, usize), u32>,
}

/// Whether a cost is significantly above another.
pub(super) fn above(cost: f64, other: f64) -> bool {
    // Fractions of infinity are infinite, and their sum may be NaN.
    let part = if other.is_finite() { TOLERANCE * other.abs().max(1.0) } else { 0.0 };
    cost > other + part
}

/// Whether a cost and an objective are better than the best known ones.
fn is_better(best: Option<(f64, f64)>, (cost, objective): (f64, f64)) -> bool {
    best.is_none_or(|best| above(best.0, cost) || (!above(cost, best.0) && above(best.1, objective)))
}

impl Candidate {
    /// Whether it is better than the best known one.
    pub(super) fn is_better_than(&self, best: Option<&Self>) -> bool {
        is_better(best.map(|best| (best.cost, best.objective)), (self.cost, self.objective))
    }
}

impl Judge<'_> {
    /// Whether designs of at least this cost can be discarded.
    pub(super) fn is_dear(&self, cost: f64) -> bool {
        self.found.as_ref().is_some_and(|best| above(cost, best.cost))
    }

    /// Keeps a design as the best machine if it is.
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
    fn equal_costs_are_compared_by_objective() {
        assert!(is_better(None, (1.0, 2.0)));
        assert!(is_better(Some((1.0, 2.0)), (1.0, 1.0)) && !is_better(Some((1.0, 2.0)), (1.0, 2.0)));
        // The unknown objective is assumed to be minimal.
        assert!(is_better(Some((1.0, 2.0)), (1.0, f64::NEG_INFINITY)));
        assert!(!is_better(Some((1.0, 2.0)), (1.1, f64::NEG_INFINITY)));
    }
}
