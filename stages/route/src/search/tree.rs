//! The best mapping: branch and bound over classes of hosts.
//!
//! Every process has a set of classes where it may still be. Streams that may have so many links at most narrow these sets. The bound of a
//! node is what the streams between placed processes cost, and the cheapest assignment of the other processes to what room there is:
//! for each process and class the streams to placed processes, and half of what the streams to the others cost at least if these take
//! the nearest places, as Gilmore and Lawler do for the quadratic assignment problem. What an assignment costs beyond that narrows
//! the sets further. At a leaf the best routes are looked for.

mod bound;
mod tables;

use std::collections::BTreeMap;
use std::rc::Rc;

use super::assignment::Assignment;
use super::model::{Edge, Entries, FAR, Model};
use super::paths::{self, Lengths};
use super::symmetry::Symmetry;
use crate::engine::StopCondition;

use tables::{Tables, bits};

/// Classes at most; sets of them are bits of a number.
pub(super) const MOST_CLASSES: usize = 128;
/// Steps of the search for routes at a leaf.
const LEAF_STEPS: u64 = 50_000;
/// Steps of that search that are as much work as a node.
const STEPS_OF_NODE: u64 = 64;
/// Processes at most: the search calls itself for each.
const MOST_PROCESSES: usize = 400;
/// Placed classes up to which symmetry is looked at.
const SYMMETRIC: u32 = 4;
/// Work of a search without limits at most, and before it may give up: nodes times processes times classes.
const MOST_WORK: u64 = 400_000_000;
const FIRST_WORK: u64 = 10_000_000;
/// Nodes of a short look, and its work.
const PROBE: u64 = 100;
const PROBE_WORK: u64 = 1_000_000;
/// A search gives up that has done less than this part of what it has to have done by then.
const HOPE: f64 = 0.5;
/// No host yet.
const NOWHERE: u32 = u32::MAX;

/// A node of the tree.
#[derive(Clone)]
struct Node {
    hosts: Vec<u32>,
    /// Classes where each process may be; of a placed one its own.
    sets: Vec<u128>,
    /// Processes that fit into each class yet, at most.
    room: Vec<usize>,
    placed: u128,
    /// Processes whose class is a choice, not a consequence.
    is_settled: Vec<bool>,
}

/// The processes on every node.
struct Occupancy {
    on: Vec<Vec<usize>>,
    /// What they need of performance and of each device.
    used: Vec<Vec<f64>>,
}

/// Memory that a bound needs, kept from one node to the next.
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

/// The best plan, and what is not known to be worse.
pub(super) struct Incumbent {
    /// What the best plan costs that is known.
    pub(super) cost: f64,
    /// The hosts and routes of that plan, if it was found here.
    pub(super) plan: Option<(Vec<u32>, Vec<Vec<u32>>)>,
    /// No plan of those that were left out costs less.
    pub(super) open: f64,
}

/// How far a search has come, and when it ends.
#[derive(Default)]
pub(super) struct Progress {
    pub(super) nodes: u64,
    leaves: u64,
    /// Nodes before this search.
    begin: u64,
    /// Nodes at the next look at the clock.
    next_look: u64,
    most_nodes: u64,
    /// Part of the tree that is done, if all branches of a node are alike.
    done: f64,
    /// Whether to give up where `done` makes it hopeless to come to the end.
    gives_up: bool,
    is_stopped: bool,
}

/// The search.
pub(super) struct Tree<'m, 'a> {
    model: &'m Model<'a>,
    tables: Tables,
    symmetry: Symmetry,
    /// Orbits of classes under symmetries that keep a set of them in place.
    orbits: BTreeMap<u128, Option<Rc<Vec<usize>>>>,
    lengths: Lengths,
    /// For streams of each kind the classes that are near enough from each class, and to it.
    reach: [Vec<Vec<u128>>; 2],
    occupancy: Occupancy,
    scratch: Scratch,
    pub(super) incumbent: Incumbent,
    pub(super) progress: Progress,
}

impl<'m, 'a> Tree<'m, 'a> {
    /// A search below a cost; nothing for too many classes or processes.
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

    /// Looks at all mappings whose routes have at most so many links, the longest counting as `least` at least. Whether it came to the
    /// end; else `open` is a bound of what it left out.
    pub(super) fn search(&mut self, lengths: Lengths, stop: &StopCondition<'_>) -> bool {
        // Without limits it gives up where they would be needed.
        self.progress.gives_up = stop.limits.nodes.is_none() && stop.limits.seconds.is_none();
        self.progress.most_nodes =
            if self.progress.gives_up { self.progress.nodes + self.affordable(MOST_WORK) } else { u64::MAX };
        self.look(lengths, stop)
    }

    /// Has a short look whether there are mappings with such routes; whether it came to the end.
    pub(super) fn probe(&mut self, lengths: Lengths, stop: &StopCondition<'_>) -> bool {
        self.progress.gives_up = false;
        self.progress.most_nodes = self.progress.nodes + PROBE.min(self.affordable(PROBE_WORK));
        self.look(lengths, stop)
    }

    fn look(&mut self, lengths: Lengths, stop: &StopCondition<'_>) -> bool {
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

    /// The bound of all mappings with such routes; infinite if there are none.
    pub(super) fn root_bound(&mut self, lengths: Lengths) -> f64 {
        self.lengths = lengths;
        self.measure();
        let bound = self.root().and_then(|mut root| self.narrow(&mut root));
        bound.unwrap_or(f64::INFINITY)
    }

    /// Nodes for so much work.
    fn affordable(&self, work: u64) -> u64 {
        let size = self.model.processes * self.model.classes.len() + 4 * self.model.edges.len();
        // Where several processes fit on a host, they stay in the bound until all have a class.
        let factor = if self.tables.is_single { 1 } else { 4 };
        work / (factor * (size as u64 + 50))
    }

    /// Whether to stop: the limits, or no hope to come to the end.
    fn is_over(&mut self, stop: &StopCondition<'_>) -> bool {
        if self.progress.nodes < self.progress.next_look {
            return false;
        }
        self.progress.next_look = self.progress.nodes + 64;
        let looked = self.progress.nodes - self.progress.begin;
        let is_hopeless = self.progress.gives_up
            && looked > self.affordable(FIRST_WORK)
            && self.progress.done < HOPE * looked as f64 / self.affordable(MOST_WORK) as f64;
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

    /// Whether the links of a host of a class carry what a process sends to and gets from those that cannot be on the same host.
    fn carries(&self, process: usize, class: usize) -> bool {
        let model = self.model;
        let apart = |edges: &[usize]| -> f64 {
            let other = |edge: &Edge| edge.source + edge.destination - process;
            let edges = edges.iter().map(|&edge| &model.edges[edge]);
            edges
                .filter(|edge| !model.can_share(class, process, other(edge)))
                .map(|edge| edge.bandwidth)
                .sum()
        };
        let [out, back] = model.classes[class].capacity;
        apart(&model.sends[process]) <= out * (1.0 + 1e-9)
            && apart(&model.receives[process]) <= back * (1.0 + 1e-9)
    }

    /// Looks at everything below a node.
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

    /// Looks at a process in one class after the other. What was looked at needs not be looked at again for classes and processes that can
    /// stand for these.
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
            // Where several processes fit on a host, hosts come after all classes.
            if self.tables.is_single || node.is_settled[process] || node.sets[process].is_power_of_two() {
                let hosts = self.hosts_in(class, process);
                let part = part / hosts.len().max(1) as f64;
                for host in hosts {
                    self.put(process, host, true);
                    self.below(&node, (process, class, Some(host)), bound, part, stop);
                    self.put(process, host, false);
                    if is_alone && self.progress.leaves > leaves {
                        // Where processes without streams are makes no difference.
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
                // Whatever is left here is no better than this node.
                self.incumbent.open = self.incumbent.open.min(bound);
                return;
            }
            if !self.forget(&mut node, process, class, orbits.as_deref()) {
                return;
            }
        }
    }

    /// Looks at what is below a choice.
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

    /// Takes out a class that was looked at, and what is like it. Whether something is left.
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

    /// The process that is placed next: of those with streams that with the fewest classes, then that with the most placed neighbours.
    /// Where several fit on a host, those that may be in several classes come first.
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

    /// Hosts of a class that differ for a process: those that are in use and one that is not.
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
        // Beside others first.
        hosts.sort_by_key(|&host| self.occupancy.on[host as usize].is_empty());
        hosts
    }

    fn put(&mut self, process: usize, host: u32, is_there: bool) {
        let used = self.occupancy.used[host as usize].iter_mut();
        match is_there {
            true => self.occupancy.on[host as usize].push(process),
            false => {
                self.occupancy.on[host as usize].pop();
            }
        }
        // Sums anew: what is taken away again leaves rounding behind.
        let on = &self.occupancy.on[host as usize];
        for (resource, used) in used.enumerate() {
            *used = on.iter().map(|&process| self.model.needs[process][resource]).sum();
        }
    }

    /// Takes a class out of the sets of processes that fit on none of its hosts any more.
    fn fill(&self, node: &mut Node, class: usize) {
        for process in 0..self.model.processes {
            if node.hosts[process] == NOWHERE && node.sets[process] >> class & 1 == 1 {
                let hosts = &self.model.classes[class].hosts;
                if !hosts
                    .iter()
                    .any(|&host| self.model.fits(host, &self.occupancy.used[host as usize], process))
                {
                    node.sets[process] &= !(1 << class);
                }
            }
        }
    }

    fn orbits_of(&mut self, placed: u128) -> Option<Rc<Vec<usize>>> {
        if placed.count_ones() > SYMMETRIC {
            return None;
        }
        if !self.orbits.contains_key(&placed) {
            let orbits = self.symmetry.orbits(placed).map(Rc::new);
            self.orbits.insert(placed, orbits);
        }
        self.orbits.get(&placed).cloned().flatten()
    }

    /// The best routes of a mapping.
    fn leaf(&mut self, node: &Node, bound: f64) {
        self.progress.leaves += 1;
        let moves =
            (0..).zip(&node.hosts).map(|(process, &host)| self.model.move_cost(process, host)).sum::<f64>();
        let found =
            paths::route(self.model, &node.hosts, self.lengths, self.incumbent.cost - moves, LEAF_STEPS);
        if let Some((cost, ways)) = found.best {
            self.incumbent.cost = cost + moves;
            self.incumbent.plan = Some((node.hosts.clone(), ways));
        }
        self.progress.nodes += found.steps / STEPS_OF_NODE;
        if !found.is_complete {
            self.incumbent.open = self.incumbent.open.min(bound);
        }
    }
}
