//! Spreads routes over links without changing what they cost: the busiest link gets as little as possible, then the second busiest, and
//! so on. Objective (11) counts hops and entries, so that plans which put all traffic on one spine tie with plans that use all spines.

use std::collections::BTreeSet;

use super::{PathSearch, QuickRouter, RoutingOptions};
use crate::engine::StopCondition;
use crate::problem::{Plan, TOLERANCE};

/// Rounds over all destinations.
const ROUNDS: usize = 8;

impl QuickRouter<'_> {
    /// A plan that costs no more and whose loads are no less even. Destinations are rerouted one after the other, until none helps.
    pub fn balance(&mut self, plan: Plan, stop: &StopCondition<'_>) -> Plan {
        self.take(&plan.hosts);
        self.history.fill(0.0);
        self.routing_state.paths = plan.routes.iter().map(|route| route.links.clone()).collect();
        self.routing_state.loads = self.fabric.no_loads();
        for (route, flow) in plan.routes.iter().zip(&self.flows) {
            self.fabric.load(&mut self.routing_state.loads, &route.links, flow.bandwidth);
        }
        let bans = if self.problem.rules.deadlock_free { self.unused_turns() } else { Vec::new() };
        let options = RoutingOptions { max_hops: plan.longest() as u32, pressure: 1e6, bans: &bans };
        let groups = std::mem::take(&mut self.groups);
        for _ in 0..ROUNDS {
            self.busiest = self.largest_load();
            // All destinations, although one is kept that helps: the order has no meaning.
            let is_better =
                groups.iter().filter(|group| !stop.is_over(0) && self.spread(group, options)).count() > 0;
            if !is_better {
                break;
            }
        }
        self.groups = groups;
        let routes = self.routes(&plan.hosts, &self.routing_state.paths);
        Plan { hosts: plan.hosts, routes }
    }

    fn largest_load(&self) -> f64 {
        self.routing_state.loads[..self.fabric.head.len()].iter().copied().fold(0.0, f64::max)
    }

    /// Reroutes a destination, if that makes loads more even at no cost.
    fn spread(&mut self, group: &[u32], options: RoutingOptions<'_>) -> bool {
        let paths = |own: &Self| -> Vec<Vec<u32>> {
            group.iter().map(|&flow| own.routing_state.paths[flow as usize].clone()).collect()
        };
        let old = paths(self);
        let loads = self.routing_state.loads.clone();
        self.route_group(group, options);
        let new = paths(self);
        let links: BTreeSet<u32> = old.iter().chain(&new).flatten().copied().collect();
        let sorted = |loads: &[f64]| {
            let mut loads: Vec<f64> = links.iter().map(|&link| loads[link as usize]).collect();
            loads.sort_by(|one, other| other.total_cmp(one));
            loads
        };
        let is_over = |&link: &u32| {
            self.over(link as usize, 0.0) > 0.0 || self.over(self.fabric.place_of_head(link), 0.0) > 0.0
        };
        let is_kept = new.iter().all(|path| !path.is_empty())
            && self.cost(&new) <= self.cost(&old)
            && is_flatter(&sorted(&self.routing_state.loads), &sorted(&loads))
            && !links.iter().any(is_over);
        if !is_kept {
            for (&flow, path) in group.iter().zip(old) {
                self.routing_state.paths[flow as usize] = path;
            }
            self.routing_state.loads = loads;
        }
        is_kept
    }

    /// Cost of the hops and entries of a destination.
    fn cost(&self, paths: &[Vec<u32>]) -> f64 {
        let hops: usize = paths.iter().map(Vec::len).sum();
        let states = paths.iter().flat_map(|path| path.iter().take(path.len().saturating_sub(1)));
        let entries: BTreeSet<usize> = states.map(|&link| PathSearch::state(&self.fabric, link)).collect();
        let weights = self.problem.rules.weights;
        weights.total_hops * hops as f64 + weights.table_entries * entries.len() as f64
    }

    /// The turns that no route takes, by link: without them, links cannot come to wait for each other in a cycle.
    fn unused_turns(&self) -> Vec<Vec<u32>> {
        let links = self.fabric.head.len();
        let mut used = vec![BTreeSet::new(); links];
        for pair in self.routing_state.paths.iter().flat_map(|path| path.windows(2)) {
            used[pair[0] as usize].insert(pair[1]);
        }
        let unused = |(link, used): (usize, &BTreeSet<u32>)| {
            let leaving = self.fabric.leaving(self.fabric.head[link]).iter().copied();
            leaving.filter(|next| !used.contains(next)).collect()
        };
        used.iter().enumerate().map(unused).collect()
    }
}

/// Whether descending loads come before others in lexicographic order, by more than rounding.
fn is_flatter(new: &[f64], old: &[f64]) -> bool {
    let differ = |(new, old): &(&f64, &f64)| (*new - *old).abs() > TOLERANCE * old.abs().max(1.0);
    new.iter().zip(old).find(differ).is_some_and(|(new, old)| new < old)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_busiest_link_counts_before_all_others() {
        assert!(is_flatter(&[2.0, 2.0, 2.0], &[3.0, 1.0, 0.0]));
        assert!(!is_flatter(&[3.0, 2.0], &[3.0, 1.0]));
        assert!(!is_flatter(&[3.0 - 1e-12, 1.0], &[3.0, 1.0]));
    }
}
