//! Whether a machine does, whatever single part of it fails, and what is best on it.

use std::collections::BTreeSet;

use hopmap_model::{Error, Mapping, Part, SystemGraph, TaskGraph};

use crate::answer::{placed, solve_from};
use crate::engine::{Found, Watch};
use crate::failures::{Element, Fallible, elements};
use crate::problem::{Plan, Problem};
use crate::solver::{self, Limits};
use crate::{Method, Rules, Weights};

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
        let watch = Watch::new(self.limits, self.should_stop);
        solve_from(problem, None, self.method, solver.as_deref(), &watch)
    }

    /// Rules under which all answers cost the same, to know whether there is one.
    fn any(&self) -> Rules {
        Rules { weights: Weights { longest: 0.0, hops: 0.0, entries: 0.0 }, ..self.rules }
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
