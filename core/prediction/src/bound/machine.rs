//! What every mapping has to pay on a machine: least costs beyond a distance, and capacities out of groups of
//! hosts.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use hopmap_graph::DisjointSets;
use hopmap_model::{Link, LinkState, NodeKind, Paths, SystemGraph};

use crate::network::{PairRates, Rate, has_rates};

/// Hosts above which only their links are examined, not all pairs.
const MOST_PLACES: usize = 2048;
/// Largest number of distances that are told apart. Fewer make the bound weaker, not wrong.
const MOST_LEVELS: usize = 12;

/// Costs and capacities of a machine that bound all mappings.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Machine {
    /// Number of slots.
    pub(super) slots: usize,
    /// Least costs of messages by distance, the nearest first. A message between different slots pays at least
    /// the first one.
    pub(super) levels: Vec<Level>,
    /// Divisions of the hosts into groups, the smallest first.
    pub(super) divisions: Vec<Division>,
    /// Directed links between switches, or between hosts that forward.
    pub(super) inner_links: usize,
    /// Nodes of a host and of one that it cannot reach.
    pub(super) unreachable: Option<(u32, u32)>,
}

/// Pairs of slots beyond a distance.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Level {
    /// The largest number of slots that are nearer to a slot than this, itself included.
    pub(super) ball: usize,
    /// The largest number of slots of a group: slots are in a group if chains of nearer pairs connect them.
    pub(super) group: usize,
    /// Least latency in seconds.
    pub(super) latency_s: f64,
    /// Least seconds per byte: the reciprocal of the largest bandwidth of a route.
    pub(super) seconds_per_byte: f64,
    /// Least sum over inner links of the route of the reciprocal bandwidths, in seconds per byte.
    pub(super) inner_seconds_per_byte: f64,
}

/// Hosts in groups, and the links between them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Division {
    /// Level that starts beyond the groups.
    pub(super) level: usize,
    /// The largest number of slots of a group.
    pub(super) slots: usize,
    /// The smallest number of slots of a group.
    pub(super) least_slots: usize,
    /// Bandwidth out of all groups together, in bytes per second.
    pub(super) total: f64,
    /// The largest bandwidth out of a group, in bytes per second.
    pub(super) most_out: f64,
    /// The largest bandwidth into a group, in bytes per second.
    pub(super) most_in: f64,
}

/// A location of ranks: node and number of slots of a host, or a single slot of a machine without links.
type Location = (u32, usize);

/// Distance between two places: latency as bits, and links.
type Distance = (u64, u32);

/// What a route costs.
#[derive(Debug, Clone, Copy)]
struct Route {
    distance: Distance,
    seconds_per_byte: f64,
    inner_seconds_per_byte: f64,
}

impl Machine {
    /// The least costs on a machine. Messages within a host take the rate of its memory. Unknown latencies are
    /// zero and unknown bandwidths infinite. A machine without links has the rates of pairs of slots, and
    /// nothing is shared.
    #[must_use]
    pub(super) fn new(system: &SystemGraph, memory: Rate, pairs: Option<&PairRates>) -> Self {
        let mut machine = Self {
            slots: system.slots.len(),
            levels: Vec::new(),
            divisions: Vec::new(),
            inner_links: inner_links(system).iter().filter(|&&inner| inner).count(),
            unreachable: None,
        };
        match (Paths::new(system), pairs.filter(|_| !has_rates(system))) {
            (Some(paths), None) => machine.add_hosts(system, memory, &paths),
            (_, Some(rates)) if machine.slots <= MOST_PLACES => machine.add_pairs(system, rates),
            _ => {}
        }
        machine.lower_to_next();
        machine
    }

    fn add_hosts(&mut self, system: &SystemGraph, memory: Rate, paths: &Paths) {
        let hosts: Vec<Location> = system.hosts().map(|(node, _, slots)| (node, slots as usize)).collect();
        if hosts.iter().any(|host| host.1 > 1) {
            self.levels.push(Level {
                ball: 1,
                group: 1,
                latency_s: memory.latency_s,
                seconds_per_byte: memory.bandwidth_bytes_per_s.recip(),
                inner_seconds_per_byte: 0.0,
            });
        }
        if hosts.len() > MOST_PLACES {
            self.add_host_links(system, &hosts);
            return;
        }
        let inner = inner_links(system);
        let routes = Routes::new(&hosts, |from, to| route(system, paths, &inner, from, to));
        self.unreachable = routes.unreachable;
        self.add_distances(&routes, Groups::new(&hosts), Some((system, paths)));
    }

    fn add_pairs(&mut self, system: &SystemGraph, rates: &PairRates) {
        let slots: Vec<Location> = (0..self.slots as u32).map(|slot| (slot, 1)).collect();
        let routes = Routes::new(&slots, |from, to| {
            let Rate { latency_s, bandwidth_bytes_per_s } = rates.between(system, from, to);
            let seconds_per_byte = bandwidth_bytes_per_s.recip();
            Some(Route { distance: distance(latency_s, 1), seconds_per_byte, inner_seconds_per_byte: 0.0 })
        });
        self.add_distances(&routes, Groups::new(&slots), None);
    }

    /// Adds levels of all distances between places.
    fn add_distances(
        &mut self,
        routes: &Routes<'_>,
        mut groups: Groups<'_>,
        links: Option<(&SystemGraph, &Paths)>,
    ) {
        let mut thresholds: Vec<Distance> = routes.least.keys().copied().collect();
        // The number of levels bounds time and memory; the nearest level divides places and is kept.
        if thresholds.len() > MOST_LEVELS {
            let count = thresholds.len();
            thresholds = (0..MOST_LEVELS).map(|index| thresholds[index * count / MOST_LEVELS]).collect();
        }
        for threshold in thresholds {
            groups.join(routes, links, threshold);
            let least = routes.beyond(threshold);
            let level = Level {
                ball: routes.largest_ball(threshold),
                group: groups.largest(),
                latency_s: f64::from_bits(least.distance.0),
                seconds_per_byte: least.seconds_per_byte,
                inner_seconds_per_byte: least.inner_seconds_per_byte,
            };
            self.levels.push(level);
            let is_larger = self.divisions.last().is_none_or(|last| last.slots < level.group);
            if is_larger && level.group < self.slots {
                let division = match links {
                    Some((system, _)) => groups.division(system, self.levels.len() - 1),
                    None => Some(Division::without_links(level.group, self.levels.len() - 1)),
                };
                self.divisions.extend(division);
            }
        }
    }

    /// Levels are least costs beyond a distance, so none is above the next.
    fn lower_to_next(&mut self) {
        for index in (1..self.levels.len()).rev() {
            let next = self.levels[index];
            let level = &mut self.levels[index - 1];
            level.latency_s = level.latency_s.min(next.latency_s);
            level.seconds_per_byte = level.seconds_per_byte.min(next.seconds_per_byte);
        }
    }

    /// Adds the level beyond hosts, without looking at routes: every route leaves a host over a link.
    fn add_host_links(&mut self, system: &SystemGraph, hosts: &[Location]) {
        let mut groups = Groups::new(hosts);
        let links = || system.links.iter().filter(|link| link.state == LinkState::Up);
        let least = |value: fn(&Link) -> f64| links().map(value).fold(f64::INFINITY, f64::min);
        let latency_s = least(|link| link.latency_s.unwrap_or(0.0).max(0.0));
        let seconds_per_byte = least(|link| seconds_per_byte(link.bandwidth_bytes_per_s));
        self.levels.push(Level {
            ball: groups.largest(),
            group: groups.largest(),
            latency_s: if latency_s.is_finite() { latency_s } else { 0.0 },
            seconds_per_byte: if seconds_per_byte.is_finite() { seconds_per_byte } else { 0.0 },
            inner_seconds_per_byte: 0.0,
        });
        self.divisions.extend(groups.division(system, self.levels.len() - 1));
    }
}

impl Division {
    /// Groups between which nothing is shared.
    fn without_links(slots: usize, level: usize) -> Self {
        let infinite = f64::INFINITY;
        Self { level, slots, least_slots: 1, total: infinite, most_out: infinite, most_in: infinite }
    }
}

fn distance(latency_s: f64, links: u32) -> Distance {
    // Sums of equal latencies in another order differ in the last digits; rounding down keeps them together.
    ((latency_s * (1.0 - 1e-12)).to_bits() & !0xff, links)
}

fn seconds_per_byte(bandwidth_bytes_per_s: Option<f64>) -> f64 {
    bandwidth_bytes_per_s.filter(|&bandwidth| bandwidth > 0.0).map_or(0.0, f64::recip)
}

/// Whether each link is between two nodes that forward.
fn inner_links(system: &SystemGraph) -> Vec<bool> {
    let is_host: Vec<bool> = system.nodes.iter().map(|node| node.kind == NodeKind::Host).collect();
    let without_switches = is_host.iter().all(|&is_host| is_host);
    let forwards = |node: u32| without_switches || !is_host[node as usize];
    let is_inner = |link: &Link| {
        link.state == LinkState::Up
            && seconds_per_byte(link.bandwidth_bytes_per_s) > 0.0
            && forwards(link.source)
            && forwards(link.destination)
    };
    system.links.iter().map(is_inner).collect()
}

/// The routes between all ordered pairs of places.
struct Routes<'a> {
    places: &'a [Location],
    /// Distance of every ordered pair, row by row; the largest for unreachable pairs.
    distances: Vec<Distance>,
    /// The least costs at every distance.
    least: BTreeMap<Distance, Route>,
    /// The first pair of nodes without a route.
    unreachable: Option<(u32, u32)>,
}

const UNREACHABLE: Distance = (u64::MAX, u32::MAX);

impl<'a> Routes<'a> {
    fn new(places: &'a [Location], route: impl Fn(u32, u32) -> Option<Route>) -> Self {
        let count = places.len();
        let mut distances = vec![UNREACHABLE; count * count];
        let mut least: BTreeMap<Distance, Route> = BTreeMap::new();
        let mut unreachable = None;
        // By destination: the distances to a destination serve all sources.
        for (column, to) in places.iter().enumerate() {
            for (row, from) in places.iter().enumerate().filter(|(row, _)| *row != column) {
                let Some(route) = route(from.0, to.0) else {
                    unreachable.get_or_insert((from.0, to.0));
                    continue;
                };
                distances[row * count + column] = route.distance;
                let known = least.entry(route.distance).or_insert(route);
                known.seconds_per_byte = known.seconds_per_byte.min(route.seconds_per_byte);
                known.inner_seconds_per_byte = known.inner_seconds_per_byte.min(route.inner_seconds_per_byte);
            }
        }
        Self { places, distances, least, unreachable }
    }

    /// The nearer of the two directions.
    fn distance(&self, a: usize, b: usize) -> Distance {
        let count = self.places.len();
        self.distances[a * count + b].min(self.distances[b * count + a])
    }

    /// The least costs at a distance or beyond.
    fn beyond(&self, threshold: Distance) -> Route {
        let first = Route {
            distance: threshold,
            seconds_per_byte: f64::INFINITY,
            inner_seconds_per_byte: f64::INFINITY,
        };
        self.least.range(threshold..).fold(first, |least, (_, route)| Route {
            distance: least.distance,
            seconds_per_byte: least.seconds_per_byte.min(route.seconds_per_byte),
            inner_seconds_per_byte: least.inner_seconds_per_byte.min(route.inner_seconds_per_byte),
        })
    }

    /// The largest number of slots nearer to a host than a threshold, its own included.
    fn largest_ball(&self, threshold: Distance) -> usize {
        let is_near = |a: usize, b: usize| a == b || self.distance(a, b) < threshold;
        let ball = |a: usize| -> usize {
            (0..self.places.len()).filter(|&b| is_near(a, b)).map(|b| self.places[b].1).sum()
        };
        (0..self.places.len()).map(ball).max().unwrap_or(0)
    }
}

/// The route between two hosts; `None` if there is none.
fn route(system: &SystemGraph, paths: &Paths, inner: &[bool], from: u32, to: u32) -> Option<Route> {
    let (mut latency_s, mut hops, mut slowest, mut sum) = (0.0, 0, 0.0_f64, 0.0);
    let found = paths.walk(from, to, |link| {
        let seconds_per_byte = seconds_per_byte(system.links[link as usize].bandwidth_bytes_per_s);
        latency_s += system.links[link as usize].latency_s.unwrap_or(0.0).max(0.0);
        hops += 1;
        slowest = slowest.max(seconds_per_byte);
        if inner[link as usize] {
            sum += seconds_per_byte;
        }
    });
    let route =
        Route { distance: distance(latency_s, hops), seconds_per_byte: slowest, inner_seconds_per_byte: sum };
    found.then_some(route)
}

/// Groups of places that grow with the threshold, and the nodes that their inner routes visit.
struct Groups<'a> {
    places: &'a [Location],
    sets: DisjointSets,
    /// Nodes on routes within the group of each root, its hosts included.
    nodes: Vec<Vec<u32>>,
    before: Distance,
}

impl<'a> Groups<'a> {
    fn new(places: &'a [Location]) -> Self {
        Self {
            places,
            sets: DisjointSets::with_weights(places.iter().map(|place| place.1).collect()),
            nodes: places.iter().map(|place| vec![place.0]).collect(),
            before: (0, 0),
        }
    }

    /// Joins places that are nearer than a threshold.
    fn join(&mut self, routes: &Routes<'_>, links: Option<(&SystemGraph, &Paths)>, threshold: Distance) {
        let count = self.places.len();
        let roots: Vec<usize> = (0..count).map(|place| self.sets.root(place)).collect();
        let joined = self.before..threshold;
        for a in 0..count {
            for b in (a + 1..count).filter(|&b| joined.contains(&routes.distance(a, b))) {
                let (from, to) = (self.sets.root(a), self.sets.root(b));
                if self.sets.join(a, b).is_some() {
                    let nodes = std::mem::take(&mut self.nodes[to]);
                    self.nodes[from].extend(nodes);
                }
            }
        }
        self.before = threshold;
        let Some((system, paths)) = links else { return };
        // The routes of all new pairs of a group, also of those that are farther apart than the threshold.
        let mut is_known = vec![false; system.nodes.len()];
        for root in 0..count {
            let members: Vec<usize> = (0..count).filter(|&place| self.sets.root(place) == root).collect();
            let nodes = &mut self.nodes[root];
            nodes.iter().for_each(|&node| is_known[node as usize] = true);
            for (&a, &b) in members.iter().flat_map(|a| members.iter().map(move |b| (a, b))) {
                if roots[a] != roots[b] {
                    paths.walk(self.places[a].0, self.places[b].0, |link| {
                        let node = system.links[link as usize].destination;
                        if !std::mem::replace(&mut is_known[node as usize], true) {
                            nodes.push(node);
                        }
                    });
                }
            }
            nodes.iter().for_each(|&node| is_known[node as usize] = false);
        }
    }

    fn largest(&mut self) -> usize {
        (0..self.places.len()).map(|place| self.sets.weight(place)).max().unwrap_or(0)
    }

    /// The capacities between the groups: of the links that leave the nodes of a group. A route out of a group
    /// takes one of them. `None` if routes within a group pass a host of another one.
    fn division(&mut self, system: &SystemGraph, level: usize) -> Option<Division> {
        let mut group_of = vec![usize::MAX; system.nodes.len()];
        for host in 0..self.places.len() {
            group_of[self.places[host].0 as usize] = self.sets.root(host);
        }
        let (mut total, mut most_out, mut most_in) = (0.0, 0.0_f64, 0.0_f64);
        let roots: Vec<usize> = (0..self.places.len()).filter(|&host| self.sets.root(host) == host).collect();
        for root in roots {
            let mut is_member = vec![false; system.nodes.len()];
            for &node in &self.nodes[root] {
                let group = group_of[node as usize];
                if group != usize::MAX && group != root {
                    return None;
                }
                is_member[node as usize] = true;
            }
            let (mut out, mut into) = (0.0, 0.0);
            for link in system.links.iter().filter(|link| link.state == LinkState::Up) {
                let ends = (is_member[link.source as usize], is_member[link.destination as usize]);
                let bandwidth = seconds_per_byte(link.bandwidth_bytes_per_s).recip();
                match ends {
                    (true, false) => out += bandwidth,
                    (false, true) => into += bandwidth,
                    _ => {}
                }
            }
            total += out;
            most_out = most_out.max(out);
            most_in = most_in.max(into);
        }
        let sizes = (0..self.places.len()).map(|place| self.sets.weight(place));
        let least_slots = sizes.filter(|&size| size > 0).min().unwrap_or(0);
        let slots = self.largest();
        Some(Division { level, slots, least_slots, total, most_out, most_in })
    }
}
