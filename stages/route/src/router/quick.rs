//! Good routes quickly: every flow by the cheapest way that agrees with the tables so far, and again where links are overloaded, while
//! what is contested becomes dearer: the negotiation of `PathFinder` (`McMurchie` and Ebeling, "A negotiation-based performance-driven
//! router for FPGAs", 1995).

use std::collections::BTreeMap;

use hopmap_model::Route;

use super::model::{FAR, Fabric};
use super::paths;
use super::paths::{PathQuery, PathSearch};
use crate::deadlock;
use crate::problem::{Problem, TOLERANCE};

/// Rounds of routing again what crosses overloaded links, for each limit of lengths.
const ROUNDS: usize = 10;
/// Rounds without less excess before that is given up.
const PATIENCE: usize = 4;
/// By how many hops the longest route may be longer than the longest of the shortest ones, one after the other, before any will do.
const LONGER: [u32; 2] = [0, 1];
/// Excess of a flow without a way.
const NO_WAY: f64 = 10.0;
/// Times that routes to a destination are laid anew, another flow first, because one found no way.
const ORDERS: usize = 8;

/// Routes that were found quickly.
#[derive(Debug, Clone, PartialEq)]
pub struct Quick {
    /// The route of every flow.
    pub routes: Vec<Route>,
    /// Whether they keep all rules.
    pub keeps_rules: bool,
    /// By how much links, switches and lengths exceed what they may be, in parts of it, summed; a flow without a way, and links that can
    /// wait for each other where they must not, count as well. 0 where `keeps_rules`.
    pub excess: f64,
}

/// Finds routes quickly for one mapping after the other.
#[derive(Debug, Clone)]
pub struct QuickRouter<'a> {
    problem: &'a Problem<'a>,
    fabric: Fabric,
    ways: PathSearch,
    /// Hops from every node, by host and once it is asked for.
    hops: Vec<Option<Vec<u32>>>,
    /// What a hop costs, and an entry of a table.
    hop: f64,
    entry: f64,
    flows: Vec<End>,
    groups: Vec<Vec<u32>>,
    laid: RoutingState,
    history: Vec<f64>,
}

/// A flow between hosts.
#[derive(Debug, Clone, Copy)]
struct End {
    source: u32,
    destination: u32,
    bandwidth: f64,
}

/// The ways of all flows, and what they load.
#[derive(Debug, Clone, Default)]
struct RoutingState {
    ways: Vec<Vec<u32>>,
    /// By link, and after them by node.
    loads: Vec<f64>,
    excess: f64,
}

/// How routes are looked for.
#[derive(Clone, Copy)]
struct RoutingOptions<'b> {
    max_hops: u32,
    /// What an overload costs, in hops.
    pressure: f64,
    bans: &'b [Vec<u32>],
}

impl<'a> QuickRouter<'a> {
    /// A router of a problem.
    #[must_use]
    pub fn new(problem: &'a Problem<'a>) -> Self {
        let fabric = Fabric::new(problem);
        let weights = problem.rules.weights;
        let all = weights.longest_route + weights.total_hops + weights.table_entries;
        // Even hops that cost nothing are not wasted.
        let hop = weights.total_hops + 1e-3 * if all > 0.0 { all } else { 1.0 };
        Self {
            problem,
            ways: PathSearch::new(&fabric),
            hops: vec![None; fabric.is_host.len()],
            hop,
            entry: weights.table_entries,
            flows: Vec::new(),
            groups: Vec::new(),
            laid: RoutingState::default(),
            history: vec![0.0; fabric.head.len() + fabric.is_host.len()],
            fabric,
        }
    }

    /// Routes for processes on given hosts; the same whatever was asked before.
    #[must_use]
    pub fn route(&mut self, hosts: &[u32]) -> Quick {
        self.take(hosts);
        let most = self.problem.rules.max_hops.unwrap_or(u32::MAX);
        let mut best = self.free(most, &[]);
        if self.problem.rules.deadlock_free {
            best = self.without_cycles(best, most);
        }
        let routes = self.routes(hosts, &best.ways);
        let keeps_rules = best.excess <= 0.0 && self.problem.keeps_rules(&routes);
        let excess = if keeps_rules { 0.0 } else { best.excess.max(1e-6) };
        Quick { routes, keeps_rules, excess }
    }

    fn routes(&self, hosts: &[u32], ways: &[Vec<u32>]) -> Vec<Route> {
        let flows = self.problem.flows.iter().zip(ways);
        flows.map(|(flow, way)| self.problem.route(flow, hosts, way.clone())).collect()
    }

    /// Takes the ends of all flows: those to one destination together, the farthest first.
    fn take(&mut self, hosts: &[u32]) {
        self.flows.clear();
        let mut groups: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for (index, flow) in (0..).zip(&self.problem.flows) {
            let (source, destination) = self.problem.ends(flow, hosts);
            self.flows.push(End { source, destination, bandwidth: flow.bandwidth });
            if source != destination {
                groups.entry(destination).or_default().push(index);
            }
        }
        for &destination in groups.keys() {
            let fabric = &self.fabric;
            self.hops[destination as usize].get_or_insert_with(|| fabric.hops_to(destination, |_| true));
        }
        self.groups = groups.into_values().collect();
        let mut demands: Vec<(f64, usize)> = Vec::with_capacity(self.groups.len());
        for index in 0..self.groups.len() {
            let mut group = std::mem::take(&mut self.groups[index]);
            group.sort_by_key(|&flow| (std::cmp::Reverse(self.far(flow)), flow));
            let demand = |&flow: &u32| {
                self.flows[flow as usize].bandwidth * f64::from(self.far(flow).min(u32::from(u16::MAX)))
            };
            demands.push((group.iter().map(demand).sum(), index));
            self.groups[index] = group;
        }
        demands.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        let mut groups = std::mem::take(&mut self.groups);
        self.groups = demands.iter().map(|&(_, index)| std::mem::take(&mut groups[index])).collect();
    }

    /// Hops of a flow at least.
    fn far(&self, flow: u32) -> u32 {
        let End { source, destination, .. } = self.flows[flow as usize];
        self.hops[destination as usize].as_ref().map_or(FAR, |hops| hops[source as usize])
    }

    /// PathSearch under bans: as short as possible first.
    fn free(&mut self, most: u32, bans: &[Vec<u32>]) -> RoutingState {
        let farthest = self.groups.iter().flatten().map(|&flow| self.far(flow)).filter(|&far| far != FAR);
        let least = farthest.max().unwrap_or(0);
        let mut best = RoutingState { excess: f64::INFINITY, ..RoutingState::default() };
        let limits = LONGER.map(|more| least.saturating_add(more).min(most));
        let mut tried = None;
        for limit in limits.into_iter().chain([most]) {
            if tried == Some(limit) {
                continue;
            }
            tried = Some(limit);
            self.negotiate(limit, bans, &mut best);
            if best.excess <= 0.0 {
                break;
            }
        }
        best
    }

    /// Lays all ways, and again those that cross what is overloaded.
    fn negotiate(&mut self, max_hops: u32, bans: &[Vec<u32>], best: &mut RoutingState) {
        let groups = std::mem::take(&mut self.groups);
        self.history.fill(0.0);
        self.laid.ways.resize(self.flows.len(), Vec::new());
        self.laid.ways.iter_mut().for_each(Vec::clear);
        self.laid.loads.clear();
        self.laid.loads.resize(self.history.len(), 0.0);
        let mut manner = RoutingOptions { max_hops, pressure: 1.0, bans };
        groups.iter().for_each(|group| self.lay(group, manner));
        let mut idle = 0;
        for _ in 0..ROUNDS {
            let is_contested = self.look(&groups);
            if self.laid.excess < best.excess {
                best.clone_from(&self.laid);
                idle = 0;
            } else {
                idle += 1;
            }
            if best.excess <= 0.0 || !is_contested || idle > PATIENCE {
                break;
            }
            manner.pressure *= 2.0;
            for group in &groups {
                if group.iter().any(|&flow| self.is_contested(flow)) {
                    self.lay(group, manner);
                }
            }
        }
        self.groups = groups;
    }

    /// Sums the excess, makes what is overloaded dearer, and says whether other ways could help.
    fn look(&mut self, groups: &[Vec<u32>]) -> bool {
        let links = self.fabric.head.len();
        let mut is_contested = false;
        self.laid.excess = 0.0;
        for place in 0..self.history.len() {
            let over = self.over(place, 0.0);
            if over > 0.0 {
                self.laid.excess += over;
                self.history[place] += 1.0 + over;
                is_contested |= place >= links || !self.is_only_one(place as u32);
            }
        }
        let without = groups.iter().flatten().filter(|&&flow| self.laid.ways[flow as usize].is_empty());
        self.laid.excess += NO_WAY * without.count() as f64;
        is_contested
    }

    /// Whether a link is the only one of its host in this direction.
    fn is_only_one(&self, link: u32) -> bool {
        let (tail, head) = (self.fabric.tail[link as usize], self.fabric.head[link as usize]);
        (self.fabric.is_host[tail as usize] && self.fabric.leaving(tail).len() == 1)
            || (self.fabric.is_host[head as usize] && self.fabric.arriving(head).len() == 1)
    }

    fn is_contested(&self, flow: u32) -> bool {
        let links = self.fabric.head.len();
        let way = self.laid.ways[flow as usize].iter();
        way.clone().any(|&link| {
            let head = self.fabric.head[link as usize] as usize;
            (self.over(link as usize, 0.0) > 0.0 && !self.is_only_one(link))
                || self.over(links + head, 0.0) > 0.0
        }) || way.len() == 0
    }

    /// By which part of what it may carry a link, or a switch, exceeds it with a bandwidth more.
    fn over(&self, place: usize, more: f64) -> f64 {
        over(&self.fabric, &self.laid.loads, place, more)
    }

    /// Lays the ways to a destination anew. If one finds none, because tables lead the others there, it is the first of the next order.
    fn lay(&mut self, group: &[u32], manner: RoutingOptions<'_>) {
        let mut order = group.to_vec();
        for _ in 0..ORDERS.min(group.len()) {
            group.iter().for_each(|&flow| self.lift(flow));
            self.ways.clear();
            let mut failed = None;
            for (at, &flow) in order.iter().enumerate() {
                if !self.lay_one(flow, manner) {
                    failed = failed.or(Some(at));
                }
            }
            match failed {
                Some(at) if at > 0 => order[..=at].rotate_right(1),
                _ => return,
            }
        }
    }

    /// Takes away the way of a flow.
    fn lift(&mut self, flow: u32) {
        let bandwidth = self.flows[flow as usize].bandwidth;
        let links = self.fabric.head.len();
        for &link in &self.laid.ways[flow as usize] {
            self.laid.loads[link as usize] -= bandwidth;
            self.laid.loads[links + self.fabric.head[link as usize] as usize] -= bandwidth;
        }
        self.laid.ways[flow as usize].clear();
    }

    fn lay_one(&mut self, flow: u32, manner: RoutingOptions<'_>) -> bool {
        let End { source, destination, bandwidth } = self.flows[flow as usize];
        let Some(hops) = self.hops[destination as usize].as_deref() else { return false };
        let (hop, entry) = (self.hop, self.entry);
        let wish =
            PathQuery { source, destination, hops, max_hops: manner.max_hops, hop, entry, bans: manner.bans };
        let (fabric, loads, history) = (&self.fabric, &self.laid.loads, &self.history);
        let links = fabric.head.len();
        let whole = hop + entry;
        let price = |link: u32| {
            let switch = links + fabric.head[link as usize] as usize;
            let over = over(fabric, loads, link as usize, bandwidth) + over(fabric, loads, switch, bandwidth);
            let contested = if over > 0.0 { manner.pressure * (0.2 + over) } else { 0.0 };
            let before = 0.3 * (history[link as usize] + history[switch]);
            hop + whole * (contested + before)
        };
        if !self.ways.find(fabric, &wish, price) {
            return false;
        }
        let path = std::mem::take(&mut self.ways.path);
        self.ways.enter(&self.fabric, &path);
        for &link in &path {
            self.laid.loads[link as usize] += bandwidth;
            self.laid.loads[links + self.fabric.head[link as usize] as usize] += bandwidth;
        }
        self.laid.ways[flow as usize].clone_from(&path);
        self.ways.path = path;
        true
    }

    /// PathSearch whose links cannot wait for each other in a cycle.
    fn without_cycles(&mut self, first: RoutingState, most: u32) -> RoutingState {
        let links = self.fabric.head.len();
        let cycle = |laid: &RoutingState| deadlock::cycle(links, laid.ways.iter().map(Vec::as_slice));
        if cycle(&first).is_empty() {
            return first;
        }
        let mut best = RoutingState { excess: f64::INFINITY, ..RoutingState::default() };
        let mut bans = vec![Vec::new(); links];
        let mut laid = first;
        // A turn of every cycle is banned, until none is left or a flow finds no way.
        for _ in 0..4 * links {
            let cycle = cycle(&laid);
            if cycle.is_empty() {
                best = laid;
                break;
            }
            if laid.excess >= NO_WAY {
                break;
            }
            let (link, next) = paths::rarest(&cycle, &laid.ways);
            bans[link as usize].push(next);
            laid = self.free(most, &bans);
        }
        for bans in paths::rules(&self.fabric) {
            if best.excess <= 0.0 {
                break;
            }
            let laid = self.free(most, &bans);
            if laid.excess < best.excess && cycle(&laid).is_empty() {
                best = laid;
            }
        }
        best
    }
}

/// By which part of what it may carry a link, or after all links a switch, exceeds it with a bandwidth more.
fn over(fabric: &Fabric, loads: &[f64], place: usize, more: f64) -> f64 {
    let links = fabric.head.len();
    let most = match place.checked_sub(links) {
        None => fabric.capacity[place],
        Some(node) if fabric.is_host[node] => f64::INFINITY,
        Some(_) => fabric.switch_load,
    };
    let load = loads[place] + more;
    // Sums that come and go are rounded; whoever takes the routes compares sums that are made anew.
    if load <= most * (1.0 + TOLERANCE) { 0.0 } else { load / most.max(f64::MIN_POSITIVE) - 1.0 }
}
