//! A remedy: a problem with something changed in it, whether a plan solves it, and the causes that say so.

use hopmap_model::{
    Cause, CostModel, Levels, Part, RouteCosts, RouteMetric, Slot, SwitchType, SystemGraph, TaskGraph,
};

use crate::answer::checked;
use crate::engine::Found;
use crate::problem::{Plan, Problem};
use crate::{CheckError, Rules};

/// A program, a machine and rules that are not quite those that were asked about.
#[derive(Debug, Clone)]
pub(super) struct Changed {
    pub(super) graph: TaskGraph,
    pub(super) system: SystemGraph,
    pub(super) rules: Rules,
}

impl Changed {
    /// Nothing changed yet.
    pub(super) fn of(problem: &Problem<'_>) -> Self {
        Self { graph: problem.graph.clone(), system: problem.system.clone(), rules: problem.rules }
    }

    /// What is asked about them; processes are where they are in the original.
    pub(super) fn problem(&self, original: &Problem<'_>) -> Result<Problem<'_>, CheckError> {
        let problem = Problem::new(&self.graph, &self.system, None, self.rules)?;
        Ok(match &original.mapped {
            Some(hosts) => Problem { mapped: Some(hosts.clone()), flows: original.flows.clone(), ..problem },
            None => problem,
        })
    }

    /// The same with tables for every port in some switches.
    pub(super) fn with_type_two(&self, switches: &[u32]) -> Self {
        let mut changed = self.clone();
        for &switch in switches {
            changed.system.nodes[switch as usize].traits.switch_type = Some(SwitchType::Two);
        }
        changed
    }

    /// The same with links and hosts that have as much as is needed of them.
    pub(super) fn with_amounts(&self, links: &[(u32, f64)], hosts: &[(u32, f64)]) -> Self {
        let mut changed = self.clone();
        for &(link, needed) in links {
            changed.system.links[link as usize].bandwidth_bytes_per_s = Some(needed);
        }
        for &(host, needed) in hosts {
            changed.system.nodes[host as usize].traits.performance = Some(needed);
        }
        changed
    }

    /// Whether the check finds nothing wrong with a plan.
    pub(super) fn passes(&self, original: &Problem<'_>, plan: &Plan) -> Result<bool, CheckError> {
        let mut roomy = self.clone();
        roomy.system = with_slots(&self.system, &plan.hosts);
        let problem = roomy.problem(original)?;
        Ok(checked(&problem, None, &Found::nothing(), plan).is_ok())
    }
}

/// The machine with a slot for every process that is on a host: a host that would have to be stronger has more of them.
fn with_slots(system: &SystemGraph, hosts: &[u32]) -> SystemGraph {
    let mut counts = vec![0_u32; system.nodes.len()];
    hosts.iter().for_each(|&host| counts[host as usize] += 1);
    let slots = |host: u32| (0..counts[host as usize]).map(move |core| Slot { host, core });
    let slots: Vec<Slot> = (0..system.nodes.len() as u32).flat_map(slots).collect();
    let inside = Levels { costs: vec![0.0], groups: vec![slots.iter().map(|slot| slot.host).collect()] };
    let cost = CostModel::Routes(RouteCosts { metric: RouteMetric::Hops, inside });
    SystemGraph { slots, cost, ..system.clone() }
}

/// A cause without amounts.
pub(super) fn cause(part: Part, name: &str, words: String) -> Cause {
    Cause { remedy: 0, part, name: name.to_owned(), there: None, needed: None, words }
}

/// A cause with what is there and what is needed.
pub(super) fn short(part: Part, name: &str, there: f64, needed: f64, words: String) -> Cause {
    let [there, needed] = [there, needed].map(|amount| Some(amount).filter(|amount| amount.is_finite()));
    Cause { there, needed, ..cause(part, name, words) }
}

/// A number without the last digits, which are rounding.
pub(super) fn amount(value: f64) -> String {
    let rounded = format!("{value:.8e}").parse::<f64>().unwrap_or(value);
    rounded.to_string()
}
