//! What the authors wish for at the end of the paper, in terms of its program: goals other than (11), and what would have to be different
//! where there is no solution.

use std::collections::BTreeMap;

use hopmap_model::NodeKind;

use super::Formulation;
use crate::Goal;
use crate::linear::{Domain, Sense};

/// What the goal costs. No whole number: a solver that sees only whole costs would take the goal for one, too.
const GOAL_COST: f64 = 0.5;
/// What a part that is short costs, whatever it is short of; likewise.
const PART_COST: f64 = 1.5;

/// How much more than there is may be taken.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Excess {
    /// Of every link.
    pub link: f64,
    /// Of every host.
    pub host: f64,
}

impl Formulation<'_> {
    /// Makes the goal alone what is optimised: the largest part in use of a link or host, or the largest load of a switch, is as small as
    /// can be.
    pub(crate) fn aim(&mut self, goal: Goal) {
        self.forget_costs();
        let largest = self.program.variable("largest".to_owned(), Domain::NotNegative, GOAL_COST);
        let rows = match goal {
            Goal::Objective => Vec::new(),
            Goal::BandwidthSlack => self.used_of_links(),
            Goal::PerformanceSlack => self.used_of_hosts(),
            Goal::SwitchLoad => self.nodes(NodeKind::Switch).map(|switch| self.arriving(switch)).collect(),
        };
        for (number, mut terms) in rows.into_iter().enumerate() {
            terms.push((largest, -1.0));
            self.program.constrain(format!("goal_{number}"), terms, Sense::AtMost, 0.0);
        }
    }

    /// What the goal is worth where the program costs `cost`.
    pub(crate) fn aimed(cost: f64) -> f64 {
        cost / GOAL_COST
    }

    /// Makes it the aim that as few links and hosts as possible are taken more of than there is, and then that the excess summed is as
    /// little as can be. `capacity` and `performance` are what there is, and the problem of this formulation has the excess on top.
    pub(crate) fn spare(&mut self, capacity: &[f64], performance: &[f64], most: Excess) {
        self.forget_costs();
        let mut rows = Vec::new();
        for (link, &there) in capacity.iter().enumerate() {
            if there.is_finite() && most.link > 0.0 {
                rows.push((self.carried(link), there, most.link));
            }
        }
        for &host in &self.problem.hosts {
            let there = performance[host as usize];
            if there.is_finite() && most.host > 0.0 {
                rows.push((self.needed(host), there, most.host));
            }
        }
        rows.retain(|(terms, there, _)| terms.iter().map(|(_, factor)| factor).sum::<f64>() > *there);
        // All excess together costs less than one part.
        let part = 1.0 / (1.0 + rows.len() as f64);
        for (number, (mut terms, there, most)) in rows.into_iter().enumerate() {
            let is_short = self.program.variable(format!("short_{number}"), Domain::Binary, PART_COST);
            // In parts of the most, so that it is between 0 and 1 whatever the units.
            let excess = self.program.variable(format!("excess_{number}"), Domain::NotNegative, part);
            terms.push((excess, -most));
            self.program.constrain(format!("short_of_{number}"), terms, Sense::AtMost, there);
            let terms = vec![(excess, 1.0), (is_short, -1.0)];
            self.program.constrain(format!("if_short_{number}"), terms, Sense::AtMost, 0.0);
        }
    }

    /// Makes it the aim that as few of some switches as possible need a table for every port. They have such tables in the problem of this
    /// formulation.
    pub(crate) fn few_of_type_two(&mut self, switches: &[u32]) {
        self.forget_costs();
        for &switch in switches {
            let needs = self.program.variable(format!("two_{switch}"), Domain::Binary, PART_COST);
            for (host, mut terms) in self.ways_out(switch) {
                let others = terms.len() as f64 - 1.0;
                terms.push((needs, -others));
                self.program.constrain(format!("one_way_{switch}_{host}"), terms, Sense::AtMost, 1.0);
            }
        }
    }

    /// By host, variables of the links by which what is for it leaves a switch, whichever way it came: at least 1 if it does.
    fn ways_out(&mut self, switch: u32) -> BTreeMap<u32, Vec<(usize, f64)>> {
        let links = &self.problem.system.links;
        let own = self.of_port.iter().filter(|((input, ..), _)| links[*input].destination == switch);
        let own: Vec<_> = own.map(|(&key, &entry)| (key, entry)).collect();
        let mut leaves: BTreeMap<(u32, usize), usize> = BTreeMap::new();
        for ((input, output, host), entry) in own {
            let leaving = match leaves.get(&(host, output)) {
                Some(&leaving) => leaving,
                None => self.program.variable(format!("leaves_{output}_{host}"), Domain::NotNegative, 0.0),
            };
            leaves.insert((host, output), leaving);
            let terms = vec![(entry, 1.0), (leaving, -1.0)];
            self.program.constrain(format!("leaving_{input}_{output}_{host}"), terms, Sense::AtMost, 0.0);
        }
        let mut hosts: BTreeMap<u32, Vec<(usize, f64)>> = BTreeMap::new();
        for ((host, _), leaving) in leaves {
            hosts.entry(host).or_default().push((leaving, 1.0));
        }
        hosts
    }

    fn forget_costs(&mut self) {
        self.program.variables.iter_mut().for_each(|variable| variable.cost = 0.0);
    }

    /// The part of each link that is in use.
    fn used_of_links(&self) -> Vec<Vec<(usize, f64)>> {
        let used = |(link, there): (usize, &hopmap_model::Link)| {
            let bandwidth = there.bandwidth_bytes_per_s?;
            let carried = self.carried(link).into_iter();
            Some(carried.map(|(variable, factor)| (variable, factor / bandwidth)).collect())
        };
        self.problem.system.links.iter().enumerate().filter_map(used).collect()
    }

    /// The part of each host that is in use.
    fn used_of_hosts(&self) -> Vec<Vec<(usize, f64)>> {
        let used = |&host: &u32| {
            let there = self.problem.system.nodes[host as usize].traits.performance?;
            let needed = self.needed(host).into_iter();
            (there > 0.0).then(|| needed.map(|(variable, factor)| (variable, factor / there)).collect())
        };
        self.problem.hosts.iter().filter_map(used).collect()
    }

    /// What processes need of a host.
    fn needed(&self, host: u32) -> Vec<(usize, f64)> {
        let demands = (0..).zip(&self.problem.graph.demands.processes);
        let needed =
            demands.filter_map(|(process, demand)| Some((*self.on_host.get(&(host, process))?, demand)));
        needed.map(|(variable, demand)| (variable, demand.performance)).collect()
    }

    /// What flows bring to a switch.
    pub(super) fn arriving(&self, switch: u32) -> Vec<(usize, f64)> {
        let links = self.problem.system.links.iter().enumerate();
        let arriving = links.filter(|(_, link)| link.destination == switch);
        arriving.flat_map(|(link, _)| self.carried(link)).collect()
    }
}
