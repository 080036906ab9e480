//! Directed links with capacity and latency, and the routes of messages between the slots of a machine.
//!
//! Routes are those of the mappers ([`Paths`]). A host has a link of its own, its memory, for messages between
//! its ranks. A machine without links has a latency and a bandwidth for every pair of slots, and no contention.

use std::collections::HashMap;

use foldhash::fast::FixedState;
use hopmap_model::{CostModel, Paths, SystemGraph, is_bandwidth, is_time};
use miette::Diagnostic;

/// Latency and bandwidth of a link or of a pair of slots.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rate {
    /// Latency in seconds, finite and non-negative.
    pub latency_s: f64,
    /// Bandwidth in bytes per second, finite and positive.
    pub bandwidth_bytes_per_s: f64,
}

impl Rate {
    /// Typical shared memory of a host: half a microsecond, 10 GB/s.
    pub const MEMORY: Self = Self { latency_s: 5e-7, bandwidth_bytes_per_s: 1e10 };

    fn is_valid(&self) -> bool {
        let Self { latency_s, bandwidth_bytes_per_s } = *self;
        is_time(latency_s) && is_bandwidth(bandwidth_bytes_per_s)
    }
}

/// The rates between the slots of a machine without links.
#[derive(Debug, Clone, PartialEq)]
pub enum PairRates {
    /// For every level of the machine's [`Levels`](hopmap_model::Levels), the innermost first.
    Levels(Vec<Rate>),
    /// For every ordered pair of slots, row by row; the diagonal is that of a slot to itself.
    Matrix(Vec<Rate>),
}

/// A machine without a rate or route that a program needs.
#[derive(Debug, thiserror::Error, Diagnostic)]
pub enum NetworkError {
    /// There are neither links nor rates of pairs.
    #[error("the machine has no links, and no latencies and bandwidths between its slots are known")]
    #[diagnostic(
        code(prediction::no_rates),
        help(
            "predict with a machine topology that has links with latency and bandwidth, or give `levels`, those between slots by level"
        )
    )]
    NoRates,
    /// A link lacks a latency or bandwidth.
    #[error("the link from `{from}` to `{to}` has no {what}")]
    #[diagnostic(
        code(prediction::unknown_rate),
        help(
            "give the links of the machine a latency and a bandwidth: `link_latency_s` and `bandwidth_bytes_per_s` of topology/synthetic, or those of an imported file; if none has either, `levels` may give the rates between slots by level"
        )
    )]
    UnknownRate {
        /// Name of its source.
        from: String,
        /// Name of its destination.
        to: String,
        /// `latency` or `bandwidth`.
        what: &'static str,
    },
    /// A rate is not a number in its range.
    #[error(
        "latencies must be from 0 to 1e12 s, bandwidths from 1e-9 to 1e30 B/s: {latency_s} s, {bandwidth_bytes_per_s} B/s"
    )]
    #[diagnostic(code(prediction::invalid_rate))]
    InvalidRate {
        /// The latency.
        latency_s: f64,
        /// The bandwidth.
        bandwidth_bytes_per_s: f64,
    },
    /// The number of rates does not fit the machine.
    #[error("{given} rates are given for a machine with {needed} {what}")]
    #[diagnostic(
        code(prediction::rate_count),
        help(
            "give one for each level of the machine, the innermost first; a machine without levels needs links"
        )
    )]
    RateCount {
        /// Number of rates.
        given: usize,
        /// Number of levels or pairs.
        needed: usize,
        /// `levels` or `pairs of slots`.
        what: &'static str,
    },
    /// A host cannot reach another one.
    #[error("host `{from}` cannot reach host `{to}`")]
    #[diagnostic(
        code(prediction::no_route),
        help(
            "their switches are not connected, or the forwarding tables have no route; choose hosts that reach each other with select/hosts"
        )
    )]
    NoRoute {
        /// Name of the sending host.
        from: String,
        /// Name of the unreachable host.
        to: String,
    },
}

/// The links of a machine, and routes computed when they are first needed.
pub(crate) struct Network<'a> {
    kind: Kind<'a>,
    memory: Rate,
    /// Links of all routes one after the other.
    hops: Vec<u32>,
    routes: Vec<Route>,
    known: HashMap<(u32, u32), u32, FixedState>,
}

enum Kind<'a> {
    Links {
        system: &'a SystemGraph,
        /// None of a single host.
        paths: Option<Box<Paths>>,
    },
    Pairs {
        system: &'a SystemGraph,
        rates: &'a PairRates,
    },
    #[cfg(test)]
    Given {
        links: Vec<Rate>,
    },
}

/// A route between two slots.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Route {
    first: u32,
    hops: u32,
    /// Sum of the latencies of its links.
    pub(crate) latency_s: f64,
    /// Bandwidth of its narrowest link.
    pub(crate) bandwidth: f64,
    /// Sum of the inverse bandwidths of its links.
    pub(crate) inverse_bandwidths: f64,
    /// Bytes of its messages.
    bytes: u64,
}

impl<'a> Network<'a> {
    /// The network of a machine that passed its check.
    pub(crate) fn new(
        system: &'a SystemGraph,
        memory: Rate,
        pairs: Option<&'a PairRates>,
    ) -> Result<Self, NetworkError> {
        let kind = match (Paths::new(system), pairs.filter(|_| !has_rates(system))) {
            (Some(paths), None) => Kind::Links { system, paths: Some(Box::new(paths)) },
            (_, Some(rates)) => {
                rates.check(system)?;
                Kind::Pairs { system, rates }
            }
            (None, None) if system.hosts().count() == 1 => Kind::Links { system, paths: None },
            (None, None) => return Err(NetworkError::NoRates),
        };
        check(memory)?;
        Ok(Self::of_kind(kind, memory))
    }

    fn of_kind(kind: Kind<'a>, memory: Rate) -> Self {
        Self { kind, memory, hops: Vec::new(), routes: Vec::new(), known: HashMap::default() }
    }

    /// Links of given capacities and latencies, and routes by pairs of hosts, one slot each.
    #[cfg(test)]
    pub(crate) fn of_routes(links: &[Rate], routes: &[(u32, u32, &[u32])]) -> Self {
        let mut network = Self::of_kind(Kind::Given { links: links.to_vec() }, Rate::MEMORY);
        for &(from, to, hops) in routes {
            let mut route = network.begin();
            for &hop in hops {
                network.hops.push(hop);
                route.extend(links[hop as usize]);
            }
            network.known.insert((from, to), network.routes.len() as u32);
            network.routes.push(route);
        }
        network
    }

    /// Whether flows share links.
    pub(crate) fn is_contended(&self) -> bool {
        !matches!(self.kind, Kind::Pairs { .. })
    }

    /// Capacities of all links, then of the memories of all nodes; not a number if unknown.
    pub(crate) fn capacities(&self) -> Vec<f64> {
        match &self.kind {
            Kind::Links { system, .. } => {
                let links = system.links.iter().map(|link| link.bandwidth_bytes_per_s.unwrap_or(f64::NAN));
                links.chain(system.nodes.iter().map(|_| self.memory.bandwidth_bytes_per_s)).collect()
            }
            Kind::Pairs { .. } => Vec::new(),
            #[cfg(test)]
            Kind::Given { links } => links.iter().map(|link| link.bandwidth_bytes_per_s).collect(),
        }
    }

    /// Latencies of the same links; not a number if unknown.
    pub(crate) fn latencies(&self) -> Vec<f64> {
        match &self.kind {
            Kind::Links { system, .. } => {
                let links = system.links.iter().map(|link| link.latency_s.unwrap_or(f64::NAN));
                links.chain(system.nodes.iter().map(|_| self.memory.latency_s)).collect()
            }
            Kind::Pairs { .. } => Vec::new(),
            #[cfg(test)]
            Kind::Given { links } => links.iter().map(|link| link.latency_s).collect(),
        }
    }

    /// The links of a route.
    pub(crate) fn links(&self, route: u32) -> &[u32] {
        let Route { first, hops, .. } = self.routes[route as usize];
        &self.hops[first as usize..][..hops as usize]
    }

    pub(crate) fn route(&self, route: u32) -> &Route {
        &self.routes[route as usize]
    }

    /// Counts the bytes of a message on a route.
    pub(crate) fn count(&mut self, route: u32, bytes: u64) {
        let route = &mut self.routes[route as usize];
        route.bytes = route.bytes.saturating_add(bytes);
    }

    /// Bytes of all messages on every link.
    pub(crate) fn bytes_of_links(&self) -> Vec<f64> {
        let mut bytes = vec![0.0; self.capacities().len()];
        for route in (0..).zip(&self.routes) {
            self.links(route.0).iter().for_each(|link| bytes[*link as usize] += route.1.bytes as f64);
        }
        bytes
    }

    /// Index of the route from one slot to another.
    pub(crate) fn between(&mut self, from: u32, to: u32) -> Result<u32, NetworkError> {
        let key = match &self.kind {
            Kind::Links { system, .. } => (system.slots[from as usize].host, system.slots[to as usize].host),
            Kind::Pairs { .. } => (from, to),
            #[cfg(test)]
            Kind::Given { .. } => (from, to),
        };
        if let Some(&route) = self.known.get(&key) {
            return Ok(route);
        }
        let route = self.find(key)?;
        let index = self.routes.len() as u32;
        self.routes.push(route);
        self.known.insert(key, index);
        Ok(index)
    }

    fn begin(&self) -> Route {
        let first = self.hops.len() as u32;
        Route { first, hops: 0, latency_s: 0.0, bandwidth: f64::INFINITY, inverse_bandwidths: 0.0, bytes: 0 }
    }

    fn find(&mut self, (from, to): (u32, u32)) -> Result<Route, NetworkError> {
        let mut route = self.begin();
        match &self.kind {
            Kind::Links { system, .. } if from == to => {
                self.hops.push(system.links.len() as u32 + from);
                route.extend(self.memory);
            }
            Kind::Links { system, paths } => {
                let name = |node: u32| system.nodes[node as usize].name.clone();
                let no_route = || NetworkError::NoRoute { from: name(from), to: name(to) };
                let path = paths.as_ref().and_then(|paths| paths.path(from, to));
                for link in path.ok_or_else(no_route)? {
                    route.extend(rate(system, link)?);
                    self.hops.push(link);
                }
            }
            Kind::Pairs { system, rates } => {
                let rate = rates.between(system, from, to);
                (route.latency_s, route.bandwidth) = (rate.latency_s, rate.bandwidth_bytes_per_s);
            }
            #[cfg(test)]
            Kind::Given { .. } => return Err(NetworkError::NoRates),
        }
        Ok(route)
    }
}

/// Whether the links of a machine have rates, so that messages take them. Links of trees that were given as levels have none.
#[must_use]
pub fn has_rates(system: &SystemGraph) -> bool {
    system.links.iter().any(|link| link.latency_s.is_some() || link.bandwidth_bytes_per_s.is_some())
}

impl Route {
    fn extend(&mut self, link: Rate) {
        self.hops += 1;
        self.latency_s += link.latency_s;
        self.bandwidth = self.bandwidth.min(link.bandwidth_bytes_per_s);
        self.inverse_bandwidths += link.bandwidth_bytes_per_s.recip();
    }
}

impl PairRates {
    fn check(&self, system: &SystemGraph) -> Result<(), NetworkError> {
        let (given, needed, what) = match (self, &system.cost) {
            (Self::Levels(rates), CostModel::Levels(levels)) => (rates, levels.costs.len(), "levels"),
            (Self::Levels(rates), _) => (rates, 0, "levels"),
            (Self::Matrix(rates), _) => (rates, system.slots.len() * system.slots.len(), "pairs of slots"),
        };
        match given.len() == needed {
            true => given.iter().try_for_each(|rate| check(*rate)),
            false => Err(NetworkError::RateCount { given: given.len(), needed, what }),
        }
    }

    pub(crate) fn between(&self, system: &SystemGraph, from: u32, to: u32) -> Rate {
        match (self, &system.cost) {
            (Self::Levels(rates), CostModel::Levels(levels)) => rates[levels.meeting_level(from, to)],
            (Self::Levels(rates) | Self::Matrix(rates), _) => {
                rates[from as usize * system.slots.len() + to as usize]
            }
        }
    }
}

fn check(rate: Rate) -> Result<(), NetworkError> {
    let Rate { latency_s, bandwidth_bytes_per_s } = rate;
    match rate.is_valid() {
        true => Ok(()),
        false => Err(NetworkError::InvalidRate { latency_s, bandwidth_bytes_per_s }),
    }
}

/// The rate of a link of the machine.
fn rate(system: &SystemGraph, link: u32) -> Result<Rate, NetworkError> {
    let link = &system.links[link as usize];
    let unknown = |what| {
        let [from, to] = [link.source, link.destination].map(|node| system.nodes[node as usize].name.clone());
        NetworkError::UnknownRate { from, to, what }
    };
    let rate = Rate {
        latency_s: link.latency_s.ok_or_else(|| unknown("latency"))?,
        bandwidth_bytes_per_s: link.bandwidth_bytes_per_s.ok_or_else(|| unknown("bandwidth"))?,
    };
    check(rate)?;
    Ok(rate)
}
