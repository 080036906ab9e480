//! Branch and bound over classes of hosts for the best mapping.
//!
//! Every process has a set of candidate classes. The hop limit of streams narrows these sets. The bound of a node is the cost of
//! the streams between placed processes plus the cheapest assignment of the other processes to the remaining capacity. The
//! assignment cost of a process and class consists of its streams to placed processes and half of the minimum cost of its other
//! streams, as Gilmore and Lawler do for the quadratic assignment problem. Reduced costs narrow the sets further. At a leaf the
//! best routes are computed.

mod bound;
mod tables;

use std::collections::BTreeMap;
use std::rc::Rc;

use super::model::{Edge, Entries, FAR, Model};
use super::paths::{self, Lengths};
use crate::engine::StopCondition;
use tables::{Symmetry, Tables, bits};

/// Maximum number of classes; sets of them are bit masks.
pub(super) const MOST_CLASSES: usize = 128;
/// Steps of the route search at a leaf.
const LEAF_STEPS: u64 = 50_000;
/// Steps of that search that count as one node.
const STEPS_OF_NODE: u64 = 64;
/// Maximum number of processes: the search recurses for each.
const MOST_PROCESSES: usize = 400;
/// Maximum number of placed classes for which symmetries are used.
const SYMMETRIC: u32 = 4;
/// Maximum work of a search without limits, and the work before it may give up: nodes times processes times classes.
const MOST_WORK: u64 = 400_000_000;
const FIRST_WORK: u64 = 10_000_000;
/// Node limit of a short search, and its work limit.
const PROBE: u64 = 100;
const PROBE_WORK: u64 = 1_000_000;
/// A search gives up if its progress is below this fraction of the expected progress.
const MIN_PROGRESS: f64 = 0.5;
/// No host yet.
const NOWHERE: u32 = u32::MAX;

/// A node of the tree.
#[derive(Clone)]
struct Node {
    hosts: Vec<u32>,
    /// Candidate classes of each process; for a placed process its own.
    sets: Vec<u128>,
    /// Maximum number of further processes in each class.
    room: Vec<usize>,
    placed: u128,
    /// Processes whose class was chosen by branching, not implied.
    is_settled: Vec<bool>,
}

/// The processes on every node.
struct Occupancy {
    on: Vec<Vec<usize>>,
    /// Their demands for performance and for each device.
    used: Vec<Vec<f64>>,
}

/// Buffers of the bound, reused from node to node.
#[derive(Default)]
struct Scratch {
    counter: Entries,
    assignment: Assignment,
    costs: Vec<f64>,
    sources: Vec<(u32, usize)>,
    near: Vec<u16>,
    hops: Vec<f64>,
    alone: Vec<f64>,
}

/// The incumbent and a bound on the rest.
pub(super) struct Incumbent {
    /// Cost of the incumbent.
    pub(super) cost: f64,
    /// Hosts and routes of the incumbent, if it was found here.
    pub(super) plan: Option<(Vec<u32>, Vec<Vec<u32>>)>,
    /// Lower bound of the plans that were skipped.
    pub(super) open: f64,
}

/// Progress and limits of a search.
#[derive(Default)]
pub(super) struct Progress {
    pub(super) nodes: u64,
    leaves: u64,
    /// Nodes before this search.
    begin: u64,
    /// Node count at the next check of the clock.
    next_look: u64,
    most_nodes: u64,
    /// Completed fraction of the tree, if all branches of a node have the same size.
    done: f64,
    /// Whether to give up when `done` shows that the search will not complete.
    gives_up: bool,
    is_stopped: bool,
}

/// The search.
pub(super) struct Tree<'m, 'a> {
    model: &'m Model<'a>,
    tables: Tables,
    symmetry: Symmetry,
    /// Orbits of classes under the symmetries that fix a set of them.
    orbits: BTreeMap<u128, Option<Rc<Vec<usize>>>>,
    lengths: Lengths,
    /// For streams of each kind, the classes that are near enough from each class, and to it.
    reach: [Vec<Vec<u128>>; 2],
    occupancy: Occupancy,
    scratch: Scratch,
    pub(super) incumbent: Incumbent,
    pub(super) progress: Progress,
}

impl<'m, 'a> Tree<'m, 'a> {
    /// A search below a cost; none if there are too many classes or processes.
    pub(super) fn new(model: &'m Model<'a>, cost: f64) -> Option<Self> {
        let classes = model.classes.len();
        if classes > MOST_CLASSES || classes == 0 || model.processes > MOST_PROCESSES {
            return None;
        }
        let nodes = model.problem.system.nodes.len();
        let resources = model.needs.first().map_or(0, Vec::len);
        Some(Self {
            tables: Tables::new(model),
            symmetry: Symmetry::new(model),
            orbits: BTreeMap::new(),
            lengths: Lengths { most: FAR, least: 0 },
            reach: [Vec::new(), Vec::new()],
            occupancy: Occupancy { on: vec![Vec::new(); nodes], used: vec![vec![0.0; resources]; nodes] },
            scratch: Scratch::default(),
            incumbent: Incumbent { cost, plan: None, open: f64::INFINITY },
            progress: Progress { next_look: 64, most_nodes: u64::MAX, ..Progress::default() },
            model,
        })
    }

    /// Searches all mappings whose routes are within a hop limit; the longest route counts as at least `least`. Returns whether
    /// the search completed; otherwise `open` bounds the skipped mappings.
    pub(super) fn search(&mut self, lengths: Lengths, stop: &StopCondition<'_>) -> bool {
        // A search without limits gives up when it would need them.
        self.progress.gives_up = stop.limits.nodes.is_none() && stop.limits.seconds.is_none();
        self.progress.most_nodes =
            if self.progress.gives_up { self.progress.nodes + self.affordable(MOST_WORK) } else { u64::MAX };
        self.search_from_root(lengths, stop)
    }

    /// Searches briefly for mappings with such routes; returns whether the search completed.
    pub(super) fn probe(&mut self, lengths: Lengths, stop: &StopCondition<'_>) -> bool {
        self.progress.gives_up = false;
        self.progress.most_nodes = self.progress.nodes + PROBE.min(self.affordable(PROBE_WORK));
        self.search_from_root(lengths, stop)
    }

    fn search_from_root(&mut self, lengths: Lengths, stop: &StopCondition<'_>) -> bool {
        self.lengths = lengths;
        self.progress.done = 0.0;
        self.progress.is_stopped = false;
        self.incumbent.open = f64::INFINITY;
        self.measure();
        if let Some(mut root) = self.root()
            && let Some(bound) = self.narrow(&mut root)
        {
            self.progress.begin = self.progress.nodes;
            self.explore(&root, bound, 1.0, stop);
        }
        self.incumbent.open.is_infinite()
    }

    /// Lower bound of all mappings with such routes; infinite if there are none.
    pub(super) fn root_bound(&mut self, lengths: Lengths) -> f64 {
        self.lengths = lengths;
        self.measure();
        let bound = self.root().and_then(|mut root| self.narrow(&mut root));
        bound.unwrap_or(f64::INFINITY)
    }

    /// Number of nodes for an amount of work.
    fn affordable(&self, work: u64) -> u64 {
        let size = self.model.processes * self.model.classes.len() + 4 * self.model.edges.len();
        // If several processes fit on a host, they are part of the bound until all have a class.
        let factor = if self.tables.is_single { 1 } else { 4 };
        work / (factor * (size as u64 + 50))
    }

    /// Whether to stop: at the limits, or when the search will not complete.
    fn is_over(&mut self, stop: &StopCondition<'_>) -> bool {
        if self.progress.nodes < self.progress.next_look {
            return false;
        }
        self.progress.next_look = self.progress.nodes + 64;
        let looked = self.progress.nodes - self.progress.begin;
        let is_hopeless = self.progress.gives_up
            && looked > self.affordable(FIRST_WORK)
            && self.progress.done < MIN_PROGRESS * looked as f64 / self.affordable(MOST_WORK) as f64;
        is_hopeless || stop.is_over(self.progress.nodes)
    }

    fn measure(&mut self) {
        let most = usize::from(self.lengths.most);
        let reach = |within: &Vec<Vec<Vec<u128>>>| {
            let near = |by_links: &Vec<u128>| by_links[most.min(by_links.len() - 1)];
            within.iter().map(|classes| classes.iter().map(near).collect()).collect()
        };
        self.reach = [reach(&self.tables.within[0]), reach(&self.tables.within[1])];
    }

    fn root(&self) -> Option<Node> {
        let model = self.model;
        let set = |process: usize| {
            let fits = |&class: &usize| model.may[process][class] && self.carries(process, class);
            (0..model.classes.len()).filter(fits).fold(0_u128, |set, class| set | 1 << class)
        };
        let sets: Vec<u128> = (0..model.processes).map(set).collect();
        let places = model.classes.iter().map(|class| class.hosts.len().saturating_mul(class.most));
        let node = Node {
            hosts: vec![NOWHERE; model.processes],
            room: places.collect(),
            placed: 0,
            is_settled: vec![false; model.processes],
            sets,
        };
        node.sets.iter().all(|set| *set != 0).then_some(node)
    }

    /// Whether the links of a host of a class carry the traffic between a process and its partners that must be on other hosts.
    fn carries(&self, process: usize, class: usize) -> bool {
        let model = self.model;
        let apart = |edges: &[usize]| -> f64 {
            let other = |edge: &Edge| edge.source + edge.destination - process;
            let edges = edges.iter().map(|&edge| &model.edges[edge]);
            let apart = edges.filter(|edge| !model.can_share(class, process, other(edge)));
            apart.map(|edge| edge.bandwidth).sum()
        };
        let [out, back] = model.classes[class].capacity;
        apart(&model.sends[process]) <= out * (1.0 + 1e-9)
            && apart(&model.receives[process]) <= back * (1.0 + 1e-9)
    }

    /// Searches the subtree of a node.
    fn explore(&mut self, node: &Node, bound: f64, part: f64, stop: &StopCondition<'_>) {
        self.progress.nodes += 1;
        let most = stop.limits.nodes.unwrap_or(u64::MAX).min(self.progress.most_nodes);
        self.progress.is_stopped |= self.progress.nodes > most || self.is_over(stop);
        if self.progress.is_stopped {
            self.incumbent.open = self.incumbent.open.min(bound);
            return;
        }
        let Some(process) = self.choice(node) else {
            self.leaf(node, bound);
            self.progress.done += part;
            return;
        };
        self.branches(node.clone(), process, bound, part, stop);
    }

    /// Branches over the classes of a process. Classes and processes that are interchangeable with ones already searched are
    /// skipped.
    fn branches(&mut self, mut node: Node, process: usize, bound: f64, part: f64, stop: &StopCondition<'_>) {
        let is_alone = self.tables.neighbours[process].is_empty() && self.model.problem.home.is_none();
        let leaves = self.progress.leaves;
        let orbits = self.orbits_of(node.placed);
        let values = self.values(&node, process);
        let part = part / values.len().max(1) as f64;
        for class in values {
            if node.sets[process] >> class & 1 == 0 {
                continue;
            }
            // If several processes fit on a host, hosts are chosen after all classes.
            if self.tables.is_single || node.is_settled[process] || node.sets[process].is_power_of_two() {
                let hosts = self.hosts_in(class, process);
                let part = part / hosts.len().max(1) as f64;
                for host in hosts {
                    self.put(process, host, true);
                    self.below(&node, (process, class, Some(host)), bound, part, stop);
                    self.put(process, host, false);
                    if is_alone && self.progress.leaves > leaves {
                        // The hosts of processes without streams do not matter.
                        return;
                    }
                }
            } else {
                self.below(&node, (process, class, None), bound, part, stop);
                if is_alone && self.progress.leaves > leaves {
                    return;
                }
            }
            if self.progress.is_stopped {
                // The rest is bounded by this node.
                self.incumbent.open = self.incumbent.open.min(bound);
                return;
            }
            if !self.forget(&mut node, process, class, orbits.as_deref()) {
                return;
            }
        }
    }

    /// Searches the subtree of a choice.
    fn below(
        &mut self,
        node: &Node,
        (process, class, host): (usize, usize, Option<u32>),
        bound: f64,
        part: f64,
        stop: &StopCondition<'_>,
    ) {
        let mut child = node.clone();
        child.sets[process] = 1 << class;
        child.is_settled[process] = true;
        child.placed |= 1 << class;
        if let Some(host) = host {
            child.hosts[process] = host;
            child.room[class] = child.room[class].saturating_sub(1);
            self.fill(&mut child, class);
        }
        match self.narrow(&mut child) {
            Some(there) => self.explore(&child, there.max(bound), part, stop),
            None => self.progress.done += part,
        }
    }

    /// Removes a searched class and its equivalents. Returns whether candidates remain.
    fn forget(&self, node: &mut Node, process: usize, class: usize, orbits: Option<&Vec<usize>>) -> bool {
        let same = |other: &usize| match orbits {
            Some(orbits) => orbits[*other] == orbits[class],
            None => *other == class,
        };
        let explored = (0..self.model.classes.len()).filter(same).fold(0_u128, |set, other| set | 1 << other);
        node.sets[process] &= !explored;
        for &other in self.tables.alike[process].iter().filter(|&&other| !node.is_settled[other]) {
            node.sets[other] &= !explored;
        }
        node.sets[process] != 0 && self.tables.alike[process].iter().all(|&other| node.sets[other] != 0)
    }

    /// The next process to place: among those with streams the one with the fewest classes, then with the most placed neighbours.
    /// If several fit on a host, processes with several candidate classes come first.
    fn choice(&self, node: &Node) -> Option<usize> {
        let waiting = (0..self.model.processes).filter(|&process| node.hosts[process] == NOWHERE);
        waiting.min_by_key(|&process| {
            let neighbours = &self.tables.neighbours[process];
            let placed = neighbours.iter().filter(|other| node.is_settled[other.process]).count();
            let count = node.sets[process].count_ones();
            let is_later = !self.tables.is_single && count == 1;
            let (placed, degree) = (usize::MAX - placed, usize::MAX - neighbours.len());
            (neighbours.is_empty(), is_later, count, placed, degree, process)
        })
    }

    /// The classes of a process, the cheapest first.
    fn values(&mut self, node: &Node, process: usize) -> Vec<usize> {
        let mut values: Vec<(f64, usize)> =
            bits(node.sets[process]).map(|class| (self.place_cost(node, process, class), class)).collect();
        values.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        values.into_iter().map(|(_, class)| class).collect()
    }

    /// Hosts of a class that differ for a process: those in use and one free host.
    fn hosts_in(&self, class: usize, process: usize) -> Vec<u32> {
        let mut hosts = Vec::new();
        let mut has_fresh = false;
        for &host in &self.model.classes[class].hosts {
            let is_fresh = self.occupancy.on[host as usize].is_empty();
            if !(is_fresh && has_fresh) && self.model.fits(host, &self.occupancy.used[host as usize], process)
            {
                hosts.push(host);
                has_fresh |= is_fresh;
            }
        }
        // Hosts with other processes first.
        hosts.sort_by_key(|&host| self.occupancy.on[host as usize].is_empty());
        hosts
    }

    fn put(&mut self, process: usize, host: u32, is_there: bool) {
        let used = self.occupancy.used[host as usize].iter_mut();
        let on = &mut self.occupancy.on[host as usize];
        if is_there {
            on.push(process);
        } else {
            on.pop();
        }
        // Recomputes sums: incremental updates accumulate rounding.
        for (resource, used) in used.enumerate() {
            *used = on.iter().map(|&process| self.model.needs[process][resource]).sum();
        }
    }

    /// Removes a class from the candidates of processes that fit on none of its hosts any more.
    fn fill(&self, node: &mut Node, class: usize) {
        for process in 0..self.model.processes {
            let fits = |&host: &u32| self.model.fits(host, &self.occupancy.used[host as usize], process);
            let is_in = node.hosts[process] == NOWHERE && node.sets[process] >> class & 1 == 1;
            if is_in && !self.model.classes[class].hosts.iter().any(fits) {
                node.sets[process] &= !(1 << class);
            }
        }
    }

    fn orbits_of(&mut self, placed: u128) -> Option<Rc<Vec<usize>>> {
        if placed.count_ones() > SYMMETRIC {
            return None;
        }
        let orbits = self.orbits.entry(placed);
        orbits.or_insert_with(|| self.symmetry.orbits(placed).map(Rc::new)).clone()
    }

    /// The best routes of a mapping.
    fn leaf(&mut self, node: &Node, bound: f64) {
        self.progress.leaves += 1;
        let moves = self.model.moves(&node.hosts);
        let below = self.incumbent.cost - moves;
        let found = paths::route(self.model, &node.hosts, self.lengths, below, LEAF_STEPS);
        if let Some((cost, paths)) = found.best {
            self.incumbent.cost = cost + moves;
            self.incumbent.plan = Some((node.hosts.clone(), paths));
        }
        self.progress.nodes += found.steps / STEPS_OF_NODE;
        if !found.is_complete {
            self.incumbent.open = self.incumbent.open.min(bound);
        }
    }
}

/// A missing choice.
pub(super) const NEVER: f64 = f64::INFINITY;

/// Minimum-cost assignment of rows to columns with capacities, by shortest augmenting paths. Reuses its buffers.
#[derive(Debug, Clone, Default)]
pub(super) struct Assignment {
    columns: usize,
    /// Dual prices of rows and columns.
    rows: Vec<f64>,
    prices: Vec<f64>,
    /// The rows in every column, and the column of every row.
    inside: Vec<Vec<usize>>,
    column_of: Vec<usize>,
    distance: Vec<f64>,
    before: Vec<usize>,
    is_done: Vec<bool>,
}

impl Assignment {
    /// The minimum cost of an assignment; `costs` is row-major; none if infeasible.
    pub(super) fn solve(&mut self, costs: &[f64], room: &[usize]) -> Option<f64> {
        self.columns = room.len();
        let rows = costs.len().checked_div(self.columns).unwrap_or_default();
        self.rows.clear();
        self.rows.resize(rows, 0.0);
        self.prices.clear();
        self.prices.resize(self.columns, 0.0);
        self.column_of.clear();
        self.column_of.resize(rows, usize::MAX);
        self.inside.resize(self.columns, Vec::new());
        self.inside.iter_mut().for_each(Vec::clear);
        for row in 0..rows {
            self.insert(row, costs, room)?;
        }
        let full = self.prices.iter().zip(room).map(|(price, room)| price * *room as f64);
        Some(self.rows.iter().sum::<f64>() + full.sum::<f64>())
    }

    /// Reduced cost: a lower bound of the increase if a row is assigned to a column.
    pub(super) fn extra(&self, costs: &[f64], row: usize, column: usize) -> f64 {
        (costs[row * self.columns + column] - self.rows[row] - self.prices[column]).max(0.0)
    }

    fn insert(&mut self, row: usize, costs: &[f64], room: &[usize]) -> Option<()> {
        let columns = self.columns;
        self.distance.clear();
        self.distance.resize(columns, NEVER);
        self.before.clear();
        self.before.resize(columns, usize::MAX);
        self.is_done.clear();
        self.is_done.resize(columns, false);
        // The price of the row is the length of the shortest path to a free column.
        for column in 0..columns {
            self.distance[column] = costs[row * columns + column] - self.prices[column];
            self.before[column] = row;
        }
        let end = loop {
            let open = (0..columns).filter(|&column| !self.is_done[column]);
            let next = open.min_by(|&a, &b| self.distance[a].total_cmp(&self.distance[b]))?;
            if self.distance[next].is_infinite() {
                return None;
            }
            if self.inside[next].len() < room[next] {
                break next;
            }
            self.is_done[next] = true;
            for &other in &self.inside[next] {
                let base = self.distance[next] - self.rows[other];
                for column in (0..columns).filter(|&column| !self.is_done[column]) {
                    let reached = base + costs[other * columns + column] - self.prices[column];
                    if reached < self.distance[column] {
                        self.distance[column] = reached;
                        self.before[column] = other;
                    }
                }
            }
        };
        self.reprice(row, end);
        self.shift(row, end);
        Some(())
    }

    fn reprice(&mut self, row: usize, end: usize) {
        let length = self.distance[end];
        self.rows[row] = length;
        for column in (0..self.columns).filter(|&column| self.is_done[column]) {
            let change = length - self.distance[column];
            self.prices[column] -= change;
            for &other in &self.inside[column] {
                self.rows[other] += change;
            }
        }
    }

    /// Moves the rows on the path to the free column, each to the next one.
    fn shift(&mut self, row: usize, end: usize) {
        let mut column = end;
        loop {
            let moved = self.before[column];
            let from = self.column_of[moved];
            self.column_of[moved] = column;
            self.inside[column].push(moved);
            if moved == row {
                return;
            }
            self.inside[from].retain(|&other| other != moved);
            column = from;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The minimum over all assignments, by enumeration.
    fn least(costs: &[f64], room: &mut [usize], row: usize) -> f64 {
        let columns = room.len();
        if row * columns == costs.len() {
            return 0.0;
        }
        let mut best = NEVER;
        for column in 0..columns {
            if room[column] > 0 {
                room[column] -= 1;
                best = best.min(costs[row * columns + column] + least(costs, room, row + 1));
                room[column] += 1;
            }
        }
        best
    }

    #[test]
    fn assignment_matches_enumeration() {
        let mut state = 7_u64;
        let mut random = |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) % below
        };
        let mut solver = Assignment::default();
        for _ in 0..300 {
            let (rows, columns) = (random(6) as usize, 1 + random(4) as usize);
            let mut room: Vec<usize> = (0..columns).map(|_| random(4) as usize).collect();
            let costs: Vec<f64> =
                (0..rows * columns).map(|_| if random(5) == 0 { NEVER } else { random(20) as f64 }).collect();
            let expected = least(&costs, &mut room, 0);
            let is_none = expected.is_infinite();
            let found = solver.solve(&costs, &room);
            assert_eq!(found.is_none(), is_none);
            let Some(found) = found else { continue };
            assert!((found - expected).abs() < 1e-6);
            for (row, column) in (0..rows).flat_map(|row| (0..columns).map(move |column| (row, column))) {
                let mut forced = costs.clone();
                for other in (0..columns).filter(|&other| other != column) {
                    forced[row * columns + other] = NEVER;
                }
                let there = least(&forced, &mut room, 0);
                assert!(found + solver.extra(&costs, row, column) <= there + 1e-6);
            }
        }
    }
}
