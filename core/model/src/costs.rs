//! The costs between the slots of a machine.

mod explicit;

use std::borrow::Cow;

use miette::Diagnostic;

use crate::{CostModel, Link, Paths, RouteMetric, SystemGraph};

const MICROSECONDS: f64 = 1e6;

/// The costs between the slots of a machine, whatever its cost model is.
#[derive(Debug, Clone)]
pub struct Costs<'a> {
    system: &'a SystemGraph,
    /// Where costs follow from routes, the paths of the machine, if it has links.
    paths: Option<Cow<'a, Paths>>,
}

impl<'a> Costs<'a> {
    pub(crate) fn new(system: &'a SystemGraph) -> Self {
        let is_routed = matches!(system.cost, CostModel::Routes(_));
        Self { system, paths: if is_routed { Paths::new(system).map(Cow::Owned) } else { None } }
    }

    /// The same with the paths of the machine, where they are known already.
    #[must_use]
    pub fn with_paths(system: &'a SystemGraph, paths: Option<&'a Paths>) -> Self {
        match paths {
            Some(paths) => Self { system, paths: Some(Cow::Borrowed(paths)) },
            None => Self::new(system),
        }
    }

    /// Cost from a slot to another; infinite if no message gets there. From a slot to itself it is zero, unless a matrix says
    /// otherwise.
    #[must_use]
    pub fn between(&self, a: u32, b: u32) -> f64 {
        let system = self.system;
        match &system.cost {
            CostModel::Matrix(matrix) => matrix.costs[a as usize * system.slots.len() + b as usize],
            _ if a == b => 0.0,
            CostModel::Levels(levels) => levels.costs[levels.meeting_level(a, b)],
            CostModel::Routes(routes) => {
                let [from, to] = [a, b].map(|slot| system.slots[slot as usize].host);
                match from == to {
                    true => routes.inside.costs[routes.inside.meeting_level(a, b)],
                    false => self.between_hosts(from, to, routes.metric),
                }
            }
        }
    }

    /// Dense row-major matrix of the costs among some slots.
    #[must_use]
    pub fn block(&self, slots: &[u32]) -> Vec<f64> {
        slots.iter().flat_map(|&a| slots.iter().map(move |&b| self.between(a, b))).collect()
    }

    /// Cost between two different nodes.
    fn between_hosts(&self, from: u32, to: u32, metric: RouteMetric) -> f64 {
        let Some(paths) = &self.paths else { return f64::INFINITY };
        if metric == RouteMetric::Hops {
            return paths.hops(from, to).map_or(f64::INFINITY, f64::from);
        }
        let mut sum = LinkSum::default();
        let links = &self.system.links;
        match paths.walk(from, to, |link| sum.add(&links[link as usize])) {
            true => sum.cost(metric),
            false => f64::INFINITY,
        }
    }
}

/// What the links of a way have together.
#[derive(Debug, Clone, Copy)]
struct LinkSum {
    latency_s: f64,
    narrowest: f64,
}

impl Default for LinkSum {
    fn default() -> Self {
        Self { latency_s: 0.0, narrowest: f64::INFINITY }
    }
}

impl LinkSum {
    fn add(&mut self, link: &Link) {
        self.latency_s += link.latency_s.unwrap_or(f64::INFINITY);
        self.narrowest = self.narrowest.min(link.bandwidth_bytes_per_s.unwrap_or(0.0));
    }

    fn cost(&self, metric: RouteMetric) -> f64 {
        match metric {
            RouteMetric::Hops | RouteMetric::Latency => self.latency_s * MICROSECONDS,
            RouteMetric::Time { bytes } => (self.latency_s + bytes as f64 / self.narrowest) * MICROSECONDS,
        }
    }
}

/// Costs that follow from routes cannot be written down.
#[derive(Debug, thiserror::Error, Diagnostic)]
pub enum CostsError {
    /// No message gets from one host to another.
    #[error("no message gets from host `{from}` to host `{to}`")]
    #[diagnostic(help(
        "their switches are not joined, or the forwarding tables do not know the way; choose hosts that reach each other \
         with select/hosts"
    ))]
    NoRoute {
        /// Name of the host that sends.
        from: String,
        /// Name of the host that is not reached.
        to: String,
    },
    /// There would be too many pairs.
    #[error(
        "the costs between {slots} slots follow from routes and are no tree, and at most {most} × {most} are written down"
    )]
    #[diagnostic(help("choose the hosts of the job with select/hosts or select/nodes first"))]
    TooMany {
        /// Number of slots.
        slots: usize,
        /// Most that are written down.
        most: usize,
    },
}
