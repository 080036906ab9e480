//! Costs that follow from routes.

use std::collections::{HashMap, HashSet};

use crate::{CostModel, Levels, Link, SystemGraph, SystemGraphError};

/// Costs that follow from the links between hosts.
#[derive(Debug, Clone, PartialEq)]
pub struct RouteCosts {
    /// What counts of the links.
    pub metric: RouteMetric,
    /// Costs between slots of one host, in the unit of `metric`. The groups of the last level are the hosts.
    pub inside: Levels,
}

/// What a message between two hosts costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RouteMetric {
    /// The number of links.
    Hops,
    /// The latencies of the links, in microseconds.
    Latency,
    /// The latencies of the links and the time of so many bytes over the narrowest, in microseconds.
    Time {
        /// Bytes of the message.
        bytes: u64,
    },
}

impl RouteCosts {
    pub(crate) fn check(&self, system: &SystemGraph) -> Result<(), SystemGraphError> {
        let Levels { costs, groups } = &self.inside;
        let slots = system.slots.len();
        let is_host = |groups: &Vec<u32>| {
            let pairs = || system.slots.windows(2).zip(groups.windows(2));
            let distinct: HashSet<_> = groups.iter().collect();
            pairs().all(|(slots, groups)| (slots[0].host == slots[1].host) == (groups[0] == groups[1]))
                && distinct.len() == system.hosts().count()
        };
        let complete = groups.len() == costs.len()
            && (slots == 0 || !costs.is_empty())
            && groups.iter().all(|groups| groups.len() == slots)
            && groups.last().is_none_or(is_host);
        if !(complete && self.inside.is_nested()) {
            return Err(SystemGraphError::Inside);
        }
        let is_known = |link: &Link| {
            let known =
                |number: Option<f64>| number.is_some_and(|number| number.is_finite() && number >= 0.0);
            match self.metric {
                RouteMetric::Hops => true,
                RouteMetric::Latency => known(link.latency_s),
                RouteMetric::Time { .. } => {
                    known(link.latency_s) && link.bandwidth_bytes_per_s.is_some_and(|number| number > 0.0)
                }
            }
        };
        match system.links.iter().position(|link| !is_known(link)) {
            Some(index) => Err(SystemGraphError::UnknownLink { index, metric: self.metric.name() }),
            None => Ok(()),
        }
    }
}

impl RouteMetric {
    /// `hops`, `latency` or `time`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Hops => "hops",
            Self::Latency => "latency",
            Self::Time { .. } => "time",
        }
    }
}

impl RouteMetric {
    /// What a message costs that takes this link alone, in the unit of the metric; `None` if the link does not say what counts.
    #[must_use]
    pub fn of(self, link: &Link) -> Option<f64> {
        match self {
            Self::Hops => Some(1.0),
            Self::Latency => Some(link.latency_s? * 1e6),
            Self::Time { bytes } => {
                Some((link.latency_s? + bytes as f64 / link.bandwidth_bytes_per_s?) * 1e6)
            }
        }
    }

    /// Costs of so many levels inside hosts where nobody knows them: in equal steps from zero to below the cheapest link.
    #[must_use]
    pub fn steps(self, levels: usize, links: &[Link]) -> Vec<f64> {
        let cheapest = links.iter().filter_map(|link| self.of(link)).reduce(f64::min).unwrap_or(1.0);
        (0..levels).map(|level| cheapest * level as f64 / levels as f64).collect()
    }
}

impl SystemGraph {
    /// The same machine with costs that follow from its links. The groups inside hosts stay; their costs do where the metric
    /// stays, else they are [steps](RouteMetric::steps).
    pub fn with_metric(&self, metric: RouteMetric) -> Result<Self, SystemGraphError> {
        let inside = match &self.cost {
            CostModel::Routes(routes) if routes.metric == metric => routes.inside.clone(),
            CostModel::Routes(routes) => self.stepped(metric, routes.inside.groups.clone()),
            CostModel::Levels(levels) => self.stepped(metric, self.groups_inside(levels)),
            CostModel::Matrix(_) => self.stepped(metric, self.groups_inside(&Levels::default())),
        };
        let system = Self { cost: CostModel::Routes(RouteCosts { metric, inside }), ..self.clone() };
        system.check()?;
        Ok(system)
    }

    fn stepped(&self, metric: RouteMetric, groups: Vec<Vec<u32>>) -> Levels {
        Levels { costs: metric.steps(groups.len(), &self.links), groups }
    }

    /// The groups of the levels on which no two hosts meet, and the hosts.
    fn groups_inside(&self, levels: &Levels) -> Vec<Vec<u32>> {
        let hosts: Vec<u32> = self.slots.iter().map(|slot| slot.host).collect();
        let is_inside = |groups: &&Vec<u32>| {
            let mut host_of = HashMap::new();
            groups.iter().zip(&hosts).all(|(group, host)| host_of.entry(group).or_insert(host) == &host)
        };
        let mut inside: Vec<Vec<u32>> = levels.groups.iter().take_while(is_inside).cloned().collect();
        let are_hosts = |groups: &Vec<u32>| {
            groups.windows(2).zip(hosts.windows(2)).all(|(a, b)| (a[0] == a[1]) == (b[0] == b[1]))
        };
        if !inside.last().is_some_and(are_hosts) {
            inside.push(hosts);
        }
        inside
    }
}
