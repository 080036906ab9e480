//! Fast heuristic: every flow takes the cheapest path that agrees with the tables so far. Flows on overloaded links are rerouted
//! while contested links become more expensive: the negotiation of `PathFinder` (`McMurchie` and Ebeling, "A negotiation-based
//! performance-driven router for FPGAs", 1995). Turn restrictions keep the channel dependency graph acyclic.

mod balance;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use hopmap_model::Route;

use super::model::{End, FAR, Fabric};
use crate::engine::StopCondition;
use crate::network;
use crate::problem::{Problem, TOLERANCE};

/// Rounds of rerouting flows on overloaded links, for each length limit.
const ROUNDS: usize = 10;
/// Rounds without less overload before the heuristic gives up.
const PATIENCE: usize = 4;
/// Successive limits of the longest route, in hops above the longest shortest path; then unlimited.
const LONGER: [u32; 2] = [0, 1];
/// Overload that an unrouted flow counts as.
const UNROUTED_PENALTY: f64 = 10.0;
/// Cost of a hop over the busiest link, in hops: decides between routes that cost the same.
const SPREAD: f64 = 0.01;
/// Most flows that are rerouted while cycles are broken one by one.
const REROUTES: usize = 500_000;
/// Maximum attempts to reroute a destination in another order because a flow found no path.
const ORDERS: usize = 8;

/// The result of the heuristic.
#[derive(Debug, Clone, PartialEq)]
pub struct Quick {
    /// The route of every flow.
    pub routes: Vec<Route>,
    /// Whether the routes satisfy all rules.
    pub keeps_rules: bool,
    /// Sum of the relative overloads of links, switches and lengths. Unrouted flows and forbidden cycles of waiting links count
    /// as well. 0 if `keeps_rules`.
    pub excess: f64,
}

/// Finds routes quickly for a sequence of mappings.
#[derive(Debug, Clone)]
pub struct QuickRouter<'a> {
    problem: &'a Problem<'a>,
    fabric: Fabric,
    search: PathSearch,
    /// Distances from every node by host, computed on demand.
    hops: Vec<Option<Vec<u32>>>,
    /// Cost of a hop, and of a table entry.
    hop: f64,
    entry: f64,
    flows: Vec<End>,
    groups: Vec<Vec<u32>>,
    routing_state: RoutingState,
    history: Vec<f64>,
    /// The largest load of a link so far.
    busiest: f64,
}

/// The routes of all flows, and their loads.
#[derive(Debug, Clone, Default)]
struct RoutingState {
    paths: Vec<Vec<u32>>,
    /// By link, and then by node.
    loads: Vec<f64>,
    excess: f64,
}

/// Settings of one attempt.
#[derive(Clone, Copy)]
struct RoutingOptions<'b> {
    max_hops: u32,
    /// Cost of an overload, in hops.
    pressure: f64,
    bans: &'b [Vec<u32>],
}

impl<'a> QuickRouter<'a> {
    /// A router for a problem.
    #[must_use]
    pub fn new(problem: &'a Problem<'a>) -> Self {
        let fabric = Fabric::new(problem);
        let weights = problem.rules.weights;
        let all = weights.longest_route + weights.total_hops + weights.table_entries;
        // A minimum, so that free hops are not wasted.
        let hop = weights.total_hops + 1e-3 * if all > 0.0 { all } else { 1.0 };
        Self {
            problem,
            search: PathSearch::new(&fabric),
            hops: vec![None; fabric.is_host.len()],
            hop,
            entry: weights.table_entries,
            flows: Vec::new(),
            groups: Vec::new(),
            routing_state: RoutingState::default(),
            history: fabric.no_loads(),
            busiest: 0.0,
            fabric,
        }
    }

    /// Routes for a given mapping; independent of earlier queries. Every flow gets a route, and what time is left improves them.
    #[must_use]
    pub fn route(&mut self, hosts: &[u32], stop: &StopCondition<'_>) -> Quick {
        self.take(hosts);
        let most = self.problem.rules.max_hops.unwrap_or(u32::MAX);
        let mut best = self.free(most, &[], stop);
        if self.problem.rules.deadlock_free {
            best = self.without_cycles(best, most, stop);
        }
        let routes = self.routes(hosts, &best.paths);
        let keeps_rules = best.excess <= 0.0 && self.problem.keeps_rules(&routes);
        let excess = if keeps_rules { 0.0 } else { best.excess.max(1e-6) };
        Quick { routes, keeps_rules, excess }
    }

    fn routes(&self, hosts: &[u32], paths: &[Vec<u32>]) -> Vec<Route> {
        let flows = self.problem.flows.iter().zip(paths);
        flows.map(|(flow, path)| self.problem.route(flow, hosts, path.clone())).collect()
    }

    /// Initialises the ends of all flows: grouped by destination, the farthest first.
    fn take(&mut self, hosts: &[u32]) {
        self.flows.clear();
        let mut groups: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for (index, flow) in (0..).zip(&self.problem.flows) {
            let (source, destination) = self.problem.ends(flow, hosts);
            self.flows.push(End { flow: index, source, destination, bandwidth: flow.bandwidth });
            if source != destination {
                groups.entry(destination).or_default().push(index);
            }
        }
        for &destination in groups.keys() {
            let fabric = &self.fabric;
            self.hops[destination as usize].get_or_insert_with(|| fabric.hops(destination, false, |_| true));
        }
        let demand = |&flow: &u32| {
            self.flows[flow as usize].bandwidth * f64::from(self.far(flow).min(u32::from(u16::MAX)))
        };
        let sorted = |mut group: Vec<u32>| -> (f64, Vec<u32>) {
            group.sort_by_key(|&flow| (Reverse(self.far(flow)), flow));
            (group.iter().map(demand).sum(), group)
        };
        let mut demands: Vec<(f64, Vec<u32>)> = groups.into_values().map(sorted).collect();
        demands.sort_by(|a, b| b.0.total_cmp(&a.0));
        self.groups = demands.into_iter().map(|(_, group)| group).collect();
    }

    /// Minimum hops of a flow.
    fn far(&self, flow: u32) -> u32 {
        let End { source, destination, .. } = self.flows[flow as usize];
        self.hops[destination as usize].as_ref().map_or(FAR, |hops| hops[source as usize])
    }

    /// Routes under turn restrictions: the tightest length limit first.
    fn free(&mut self, most: u32, bans: &[Vec<u32>], stop: &StopCondition<'_>) -> RoutingState {
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
            self.negotiate(limit, bans, &mut best, stop);
            if best.excess <= 0.0 || stop.is_over(0) {
                break;
            }
        }
        best
    }

    /// Routes all flows, then reroutes those that cross overloaded links.
    fn negotiate(
        &mut self,
        max_hops: u32,
        bans: &[Vec<u32>],
        best: &mut RoutingState,
        stop: &StopCondition<'_>,
    ) {
        let groups = std::mem::take(&mut self.groups);
        self.history.fill(0.0);
        self.busiest = 0.0;
        self.routing_state.paths.resize(self.flows.len(), Vec::new());
        self.routing_state.paths.iter_mut().for_each(Vec::clear);
        self.routing_state.loads.clear();
        self.routing_state.loads.resize(self.history.len(), 0.0);
        let mut options = RoutingOptions { max_hops, pressure: 1.0, bans };
        for group in &groups {
            if stop.should_stop() {
                break;
            }
            self.route_group(group, options);
        }
        let mut idle = 0;
        for _ in 0..ROUNDS {
            let is_contested = self.raise_prices(&groups);
            if self.routing_state.excess < best.excess {
                best.clone_from(&self.routing_state);
                idle = 0;
            } else {
                idle += 1;
            }
            if best.excess <= 0.0 || !is_contested || idle > PATIENCE || stop.is_over(0) {
                break;
            }
            options.pressure *= 2.0;
            for group in &groups {
                if group.iter().any(|&flow| self.is_contested(flow)) {
                    self.route_group(group, options);
                }
            }
        }
        self.groups = groups;
    }

    /// Sums the overloads, raises the cost of overloaded links, and returns whether other routes could help.
    fn raise_prices(&mut self, groups: &[Vec<u32>]) -> bool {
        let links = self.fabric.head.len();
        let mut is_contested = false;
        self.routing_state.excess = 0.0;
        for place in 0..self.history.len() {
            let over = self.over(place, 0.0);
            if over > 0.0 {
                self.routing_state.excess += over;
                self.history[place] += 1.0 + over;
                is_contested |= place >= links || !self.is_only_one(place as u32);
            }
        }
        let without =
            groups.iter().flatten().filter(|&&flow| self.routing_state.paths[flow as usize].is_empty());
        self.routing_state.excess += UNROUTED_PENALTY * without.count() as f64;
        is_contested
    }

    /// Whether a link is the only one of its host in this direction.
    fn is_only_one(&self, link: u32) -> bool {
        let (tail, head) = (self.fabric.tail[link as usize], self.fabric.head[link as usize]);
        (self.fabric.is_host[tail as usize] && self.fabric.leaving(tail).len() == 1)
            || (self.fabric.is_host[head as usize] && self.fabric.arriving(head).len() == 1)
    }

    fn is_contested(&self, flow: u32) -> bool {
        let path = &self.routing_state.paths[flow as usize];
        let is_over = |&link: &u32| {
            (self.over(link as usize, 0.0) > 0.0 && !self.is_only_one(link))
                || self.over(self.fabric.place_of_head(link), 0.0) > 0.0
        };
        path.iter().any(is_over) || path.is_empty()
    }

    /// Relative overload of a link or switch with additional bandwidth.
    fn over(&self, place: usize, more: f64) -> f64 {
        over(&self.fabric, &self.routing_state.loads, place, more)
    }

    /// Reroutes all flows to a destination. If one finds no path because of the tables of the others, it comes first in the next
    /// order.
    fn route_group(&mut self, group: &[u32], options: RoutingOptions<'_>) {
        let mut order = group.to_vec();
        for _ in 0..ORDERS.min(group.len()) {
            group.iter().for_each(|&flow| self.unroute(flow));
            self.search.clear();
            let mut failed = None;
            for (at, &flow) in order.iter().enumerate() {
                if !self.route_flow(flow, options) {
                    failed = failed.or(Some(at));
                }
            }
            match failed {
                Some(at) if at > 0 => order[..=at].rotate_right(1),
                _ => return,
            }
        }
    }

    /// Removes the route of a flow.
    fn unroute(&mut self, flow: u32) {
        let bandwidth = self.flows[flow as usize].bandwidth;
        self.fabric.load(&mut self.routing_state.loads, &self.routing_state.paths[flow as usize], -bandwidth);
        self.routing_state.paths[flow as usize].clear();
    }

    fn route_flow(&mut self, flow: u32, options: RoutingOptions<'_>) -> bool {
        let End { source, destination, bandwidth, .. } = self.flows[flow as usize];
        let Some(hops) = self.hops[destination as usize].as_deref() else { return false };
        let (hop, entry) = (self.hop, self.entry);
        let query = PathQuery {
            source,
            destination,
            hops,
            max_hops: options.max_hops,
            hop,
            entry,
            bans: options.bans,
        };
        let (fabric, loads, history) = (&self.fabric, &self.routing_state.loads, &self.history);
        let whole = hop + entry;
        let busiest = self.busiest.max(bandwidth).max(f64::MIN_POSITIVE);
        let price = |link: u32| {
            let switch = fabric.place_of_head(link);
            let over = over(fabric, loads, link as usize, bandwidth) + over(fabric, loads, switch, bandwidth);
            let contested = if over > 0.0 { options.pressure * (0.2 + over) } else { 0.0 };
            let before = 0.3 * (history[link as usize] + history[switch]);
            let share = (loads[link as usize] + bandwidth) / busiest;
            hop * (1.0 + SPREAD * share * share * share) + whole * (contested + before)
        };
        if !self.search.find(fabric, &query, price) {
            return false;
        }
        let path = std::mem::take(&mut self.search.path);
        self.search.enter(&self.fabric, &path);
        self.fabric.load(&mut self.routing_state.loads, &path, bandwidth);
        let loads = path.iter().map(|&link| self.routing_state.loads[link as usize]);
        self.busiest = loads.fold(self.busiest, f64::max);
        self.routing_state.paths[flow as usize].clone_from(&path);
        self.search.path = path;
        true
    }

    /// Routes without cycles of waiting links.
    fn without_cycles(&mut self, first: RoutingState, most: u32, stop: &StopCondition<'_>) -> RoutingState {
        let links = self.fabric.head.len();
        let cycle = |routing_state: &RoutingState| {
            network::cycle(links, routing_state.paths.iter().map(Vec::as_slice))
        };
        if cycle(&first).is_empty() {
            return first;
        }
        let mut best = RoutingState { excess: f64::INFINITY, ..RoutingState::default() };
        let mut bans = vec![Vec::new(); links];
        let mut routing_state = first;
        // Forbids one turn of every cycle, until none is left or a flow finds no path.
        for _ in 0..(4 * links).min(REROUTES / self.flows.len().max(1)) {
            if stop.is_over(0) {
                break;
            }
            let cycle = cycle(&routing_state);
            if cycle.is_empty() {
                best = routing_state;
                break;
            }
            if routing_state.excess >= UNROUTED_PENALTY {
                break;
            }
            let (link, next) = rarest(&cycle, &routing_state.paths);
            bans[link as usize].push(next);
            routing_state = self.free(most, &bans, stop);
        }
        for bans in rules(&self.fabric) {
            // Without a plan, the first of them is tried whatever the time.
            if best.excess <= 0.0 || (best.excess.is_finite() && stop.is_over(0)) {
                break;
            }
            let routing_state = self.free(most, &bans, stop);
            if routing_state.excess < best.excess && cycle(&routing_state).is_empty() {
                best = routing_state;
            }
        }
        best
    }
}

/// Relative overload of a link or, after all links, a switch, with additional bandwidth.
fn over(fabric: &Fabric, loads: &[f64], place: usize, more: f64) -> f64 {
    let most = fabric.most(place);
    let load = loads[place] + more;
    // Incremental sums are rounded; callers that compare results recompute the sums.
    if load <= most * (1.0 + TOLERANCE) { 0.0 } else { load / most.max(f64::MIN_POSITIVE) - 1.0 }
}

/// No link.
const NONE: u32 = u32::MAX;

/// Finds paths to one destination after the other (A*: expands the link nearest to the destination first) and stores the table
/// entries for the destination. Buffers are reused.
#[derive(Debug, Clone)]
pub(super) struct PathSearch {
    /// The last path found.
    pub path: Vec<u32>,
    cost: Vec<f64>,
    parent: Vec<u32>,
    length: Vec<u32>,
    seen: Vec<u32>,
    search: u32,
    queue: BinaryHeap<(Reverse<u64>, u32, Reverse<u32>)>,
    /// The successor of a link: by switch of type 1, and then by link that arrives at a switch of type 2.
    next: Vec<u32>,
    known: Vec<u32>,
    tree: u32,
}

/// The task of a path search.
#[derive(Debug, Clone, Copy)]
pub(super) struct PathQuery<'a> {
    pub source: u32,
    pub destination: u32,
    /// Lower bounds of the distance from every node to the destination.
    pub hops: &'a [u32],
    /// Maximum links of the path.
    pub max_hops: u32,
    /// Minimum cost of a hop.
    pub hop: f64,
    /// Cost of a table entry.
    pub entry: f64,
    /// Forbidden successors of each link; empty if all are allowed.
    pub bans: &'a [Vec<u32>],
}

impl PathSearch {
    pub(super) fn new(fabric: &Fabric) -> Self {
        let links = fabric.head.len();
        let states = fabric.is_host.len() + links;
        Self {
            path: Vec::new(),
            cost: vec![0.0; links],
            parent: vec![NONE; links],
            length: vec![0; links],
            seen: vec![0; links],
            search: 0,
            queue: BinaryHeap::new(),
            next: vec![NONE; states],
            known: vec![0; states],
            tree: 0,
        }
    }

    /// Starts with empty tables.
    pub(super) fn clear(&mut self) {
        if self.tree == u32::MAX {
            self.known.fill(0);
            self.tree = 0;
        }
        self.tree += 1;
    }

    /// The index in `next` of the successor of a link.
    fn state(fabric: &Fabric, link: u32) -> usize {
        let node = fabric.head[link as usize] as usize;
        if fabric.is_two[node] { fabric.is_host.len() + link as usize } else { node }
    }

    /// Finds the cheapest path that agrees with the tables so far; false if there is none. `price` is the cost of a link,
    /// including its hop.
    pub(super) fn find(
        &mut self,
        fabric: &Fabric,
        query: &PathQuery<'_>,
        price: impl Fn(u32) -> f64,
    ) -> bool {
        if self.search == u32::MAX {
            self.seen.fill(0);
            self.search = 0;
        }
        self.search += 1;
        self.queue.clear();
        for &link in fabric.leaving(query.source) {
            self.reach(fabric, query, (NONE, link), price(link));
        }
        while let Some((Reverse(key), length, Reverse(link))) = self.queue.pop() {
            let node = fabric.head[link as usize];
            let rest = query.hop * f64::from(query.hops[node as usize]);
            if key > (self.cost[link as usize] + rest).to_bits() || length != self.length[link as usize] {
                continue;
            }
            if node == query.destination {
                self.trace(link);
                return true;
            }
            let state = Self::state(fabric, link);
            let cost = self.cost[link as usize];
            if self.known[state] == self.tree {
                let next = self.next[state];
                self.reach(fabric, query, (link, next), cost + price(next));
            } else {
                for &next in fabric.leaving(node) {
                    self.reach(fabric, query, (link, next), cost + query.entry + price(next));
                }
            }
        }
        false
    }

    /// Reaches a link from another if that is allowed and cheaper than before.
    fn reach(&mut self, fabric: &Fabric, query: &PathQuery<'_>, (link, next): (u32, u32), cost: f64) {
        let head = fabric.head[next as usize];
        let rest = query.hops[head as usize];
        let length = if link == NONE { 1 } else { self.length[link as usize] + 1 };
        let is_dead_end = fabric.is_host[head as usize] && head != query.destination;
        let is_worse = self.seen[next as usize] == self.search && cost >= self.cost[next as usize];
        if is_dead_end || is_worse || rest == FAR || length + rest > query.max_hops || !cost.is_finite() {
            return;
        }
        let is_banned = query.bans.get(link as usize).is_some_and(|bans| bans.contains(&next));
        if is_banned || self.passes(fabric, link, head) {
            return;
        }
        self.seen[next as usize] = self.search;
        self.cost[next as usize] = cost;
        self.parent[next as usize] = link;
        self.length[next as usize] = length;
        let key = cost + query.hop * f64::from(rest);
        self.queue.push((Reverse(key.to_bits()), length, Reverse(next)));
    }

    /// Whether the path up to a link passes a node.
    fn passes(&self, fabric: &Fabric, mut link: u32, node: u32) -> bool {
        while link != NONE {
            if fabric.tail[link as usize] == node {
                return true;
            }
            link = self.parent[link as usize];
        }
        false
    }

    fn trace(&mut self, mut link: u32) {
        self.path.clear();
        while link != NONE {
            self.path.push(link);
            link = self.parent[link as usize];
        }
        self.path.reverse();
    }

    /// Writes the path into the tables.
    pub(super) fn enter(&mut self, fabric: &Fabric, path: &[u32]) {
        for pair in path.windows(2) {
            let state = Self::state(fabric, pair[0]);
            self.known[state] = self.tree;
            self.next[state] = pair[1];
        }
    }
}

/// Maximum number of roots that are tried for an order of switches.
const ROOTS: usize = 3;

/// The first pair of consecutive links in a cycle that the fewest routes use.
pub(super) fn rarest(cycle: &[u32], paths: &[Vec<u32>]) -> (u32, u32) {
    let pair = |at: usize| (cycle[at], cycle[(at + 1) % cycle.len()]);
    let mut taken: BTreeMap<(u32, u32), usize> = (0..cycle.len()).map(|at| (pair(at), 0)).collect();
    for path in paths {
        for link in path.windows(2) {
            taken.entry((link[0], link[1])).and_modify(|count| *count += 1);
        }
    }
    let rarest = (0..cycle.len()).map(pair).min_by_key(|pair| taken.get(pair).copied().unwrap_or_default());
    rarest.unwrap_or_default()
}

/// Turn restrictions without cycles, by link: up to a root and down again, never up after down (Autonet, Schroeder and others
/// 1991), for the most central switches as roots; finally the same on the links of a spanning tree only.
pub(super) fn rules(fabric: &Fabric) -> Vec<Vec<Vec<u32>>> {
    let nodes = fabric.is_host.len() as u32;
    let mut roots: Vec<(u32, u32)> = (0..nodes)
        .filter(|&node| !fabric.is_host[node as usize])
        .map(|node| (levels(fabric, node).0.iter().flatten().copied().max().unwrap_or(0), node))
        .collect();
    roots.sort_unstable();
    let mut rules: Vec<Vec<Vec<u32>>> =
        roots.iter().take(ROOTS).map(|&(_, root)| up_and_down(fabric, root, false)).collect();
    rules.extend(roots.first().map(|&(_, root)| up_and_down(fabric, root, true)));
    rules
}

/// Distances of switches from a root, as far as it reaches them, for links in either direction; and the next hop towards it.
fn levels(fabric: &Fabric, root: u32) -> (Vec<Option<u32>>, Vec<Option<u32>>) {
    let mut level = vec![None; fabric.is_host.len()];
    let mut parent = vec![None; fabric.is_host.len()];
    level[root as usize] = Some(0);
    let mut queue = std::collections::VecDeque::from([(root, 0)]);
    while let Some((node, at)) = queue.pop_front() {
        let leaving = fabric.leaving(node).iter().map(|&link| fabric.head[link as usize]);
        let arriving = fabric.arriving(node).iter().map(|&link| fabric.tail[link as usize]);
        for other in leaving.chain(arriving) {
            if level[other as usize].is_none() && !fabric.is_host[other as usize] {
                level[other as usize] = Some(at + 1);
                parent[other as usize] = Some(node);
                queue.push_back((other, at + 1));
            }
        }
    }
    (level, parent)
}

fn up_and_down(fabric: &Fabric, root: u32, tree: bool) -> Vec<Vec<u32>> {
    let (level, parent) = levels(fabric, root);
    let key = |node: u32| (level[node as usize].unwrap_or(u32::MAX), node);
    let between_switches = |link: u32| {
        [&fabric.tail, &fabric.head].iter().all(|end| !fabric.is_host[end[link as usize] as usize])
    };
    let is_up = |link: u32| key(fabric.head[link as usize]) < key(fabric.tail[link as usize]);
    let is_outside = |link: u32| {
        let (tail, head) = (fabric.tail[link as usize], fabric.head[link as usize]);
        tree && parent[tail as usize] != Some(head) && parent[head as usize] != Some(tail)
    };
    let is_banned = |link: u32, next: u32| {
        let are = between_switches(link) && between_switches(next);
        (between_switches(next) && is_outside(next)) || (are && !is_up(link) && is_up(next))
    };
    let bans = |link: u32| {
        let leaving = fabric.leaving(fabric.head[link as usize]).iter().copied();
        leaving.filter(|&next| is_banned(link, next)).collect()
    };
    (0..fabric.head.len() as u32).map(bans).collect()
}
