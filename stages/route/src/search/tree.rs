//! The best mapping: branch and bound over classes of hosts.
//!
//! Every process has a set of classes where it may still be. Streams that may have so many links at most narrow these sets. The bound of a
//! node is what the streams between placed processes cost, and the cheapest assignment of the other processes to what room there is:
//! for each process and class the streams to placed processes, and half of what the streams to the others cost at least if these take
//! the nearest places, as Gilmore and Lawler do for the quadratic assignment problem. What an assignment costs beyond that narrows
//! the sets further. At a leaf the best routes are looked for.

mod bound;
mod near;

use std::collections::BTreeMap;
use std::rc::Rc;

use super::assignment::Assignment;
use super::entries::Entries;
use super::model::{Edge, FAR, Model};
use super::paths::{self, Lengths};
use super::symmetry::{Symmetry, alike};
use crate::engine::Watch;

use near::{Neighbour, bits, joins, neighbours, within};

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

/// The search.
pub(super) struct Tree<'m, 'a> {
    model: &'m Model<'a>,
    symmetry: Symmetry,
    orbits: BTreeMap<u128, Option<Rc<Vec<usize>>>>,
    alike: Vec<Vec<usize>>,
    neighbours: Vec<Vec<Neighbour>>,
    /// Classes by distance from each class, in the direction in which it is less.
    around: Vec<Vec<(u16, usize)>>,
    /// Processes that receive from several others, and those each receives from.
    joins: Vec<Option<Vec<usize>>>,
    /// Part of the entries of a destination that is its own: others may be on its host.
    share: f64,
    is_single: bool,
    lengths: Lengths,
    /// For streams of each kind the classes that are near enough from each class, and to it.
    reach: [Vec<Vec<u128>>; 2],
    used: Vec<Vec<f64>>,
    on: Vec<Vec<usize>>,
    counter: Entries,
    assignment: Assignment,
    costs: Vec<f64>,
    /// Memory of what a process costs in a class.
    sources: Vec<(u32, usize)>,
    near: Vec<u16>,
    hops: Vec<f64>,
    alone: Vec<f64>,
    /// For streams of each kind, from each class and to it, the classes within each number of links.
    within: [Vec<Vec<Vec<u128>>>; 2],
    /// What the best plan costs that is known.
    pub(super) cost: f64,
    /// The hosts and routes of that plan, if it was found here.
    pub(super) best: Option<(Vec<u32>, Vec<Vec<u32>>)>,
    /// No plan of those that were left out costs less.
    pub(super) open: f64,
    pub(super) nodes: u64,
    pub(super) leaves: u64,
    begin: u64,
    next_look: u64,
    most_nodes: u64,
    /// Part of the tree that is done, if all branches of a node are alike; and whether to give up where that is hopeless.
    done: f64,
    gives_up: bool,
    is_stopped: bool,
}

impl<'m, 'a> Tree<'m, 'a> {
    /// A search below a cost; nothing for too many classes or processes.
    pub(super) fn new(model: &'m Model<'a>, cost: f64) -> Option<Self> {
        let classes = model.classes.len();
        if classes > MOST_CLASSES || classes == 0 || model.processes > MOST_PROCESSES {
            return None;
        }
        let most = model.classes.iter().map(|class| class.most).max().unwrap_or(1).max(1);
        let nodes = model.problem.system.nodes.len();
        let joins: Vec<Option<Vec<usize>>> =
            (0..model.processes).map(|process| joins(model, process)).collect();
        let around = |class: usize| {
            let distance =
                |other: usize| model.distance(0, class, other).min(model.distance(0, other, class));
            let mut around: Vec<(u16, usize)> = (0..classes).map(|other| (distance(other), other)).collect();
            around.sort_unstable();
            around
        };
        Some(Self {
            symmetry: Symmetry::new(model),
            orbits: BTreeMap::new(),
            alike: alike(model),
            neighbours: (0..model.processes).map(|process| neighbours(model, process, &joins)).collect(),
            around: (0..classes).map(around).collect(),
            joins,
            share: 1.0 / most as f64,
            is_single: most == 1,
            lengths: Lengths { most: FAR, least: 0 },
            reach: [Vec::new(), Vec::new()],
            used: vec![vec![0.0; model.needs.first().map_or(0, Vec::len)]; nodes],
            on: vec![Vec::new(); nodes],
            counter: Entries::default(),
            assignment: Assignment::default(),
            costs: Vec::new(),
            sources: Vec::new(),
            near: Vec::new(),
            hops: Vec::new(),
            alone: Vec::new(),
            within: [within(model, true), within(model, false)],
            best: None,
            open: f64::INFINITY,
            nodes: 0,
            leaves: 0,
            begin: 0,
            next_look: 64,
            most_nodes: u64::MAX,
            done: 0.0,
            gives_up: false,
            is_stopped: false,
            cost,
            model,
        })
    }

    /// Looks at all mappings whose routes have at most so many links, the longest counting as `least` at least. Whether it came to the
    /// end; else `open` is a bound of what it left out.
    pub(super) fn search(&mut self, lengths: Lengths, watch: &Watch<'_>) -> bool {
        // Without limits it gives up where they would be needed.
        self.gives_up = watch.limits.nodes.is_none() && watch.limits.seconds.is_none();
        self.most_nodes = if self.gives_up { self.nodes + self.affordable(MOST_WORK) } else { u64::MAX };
        self.look(lengths, watch)
    }

    /// Has a short look whether there are mappings with such routes; whether it came to the end.
    pub(super) fn probe(&mut self, lengths: Lengths, watch: &Watch<'_>) -> bool {
        self.gives_up = false;
        self.most_nodes = self.nodes + PROBE.min(self.affordable(PROBE_WORK));
        self.look(lengths, watch)
    }

    fn look(&mut self, lengths: Lengths, watch: &Watch<'_>) -> bool {
        self.lengths = lengths;
        self.done = 0.0;
        self.is_stopped = false;
        self.open = f64::INFINITY;
        self.measure();
        if let Some(mut root) = self.root()
            && let Some(bound) = self.narrow(&mut root)
        {
            self.begin = self.nodes;
            self.explore(&root, bound, 1.0, watch);
        }
        self.open.is_infinite()
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
        let factor = if self.is_single { 1 } else { 4 };
        work / (factor * (size as u64 + 50))
    }

    /// Whether to stop: the limits, or no hope to come to the end.
    fn is_over(&mut self, watch: &Watch<'_>) -> bool {
        if self.nodes < self.next_look {
            return false;
        }
        self.next_look = self.nodes + 64;
        let looked = self.nodes - self.begin;
        let is_hopeless = self.gives_up
            && looked > self.affordable(FIRST_WORK)
            && self.done < HOPE * looked as f64 / self.affordable(MOST_WORK) as f64;
        is_hopeless || watch.is_over(self.nodes)
    }

    fn measure(&mut self) {
        let most = usize::from(self.lengths.most);
        let reach = |within: &Vec<Vec<Vec<u128>>>| {
            let near = |by_links: &Vec<u128>| by_links[most.min(by_links.len() - 1)];
            within.iter().map(|classes| classes.iter().map(near).collect()).collect()
        };
        self.reach = [reach(&self.within[0]), reach(&self.within[1])];
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
    fn explore(&mut self, node: &Node, bound: f64, part: f64, watch: &Watch<'_>) {
        self.nodes += 1;
        let most = watch.limits.nodes.unwrap_or(u64::MAX).min(self.most_nodes);
        self.is_stopped |= self.nodes > most || self.is_over(watch);
        if self.is_stopped {
            self.open = self.open.min(bound);
            return;
        }
        let Some(process) = self.choice(node) else {
            self.leaf(node, bound);
            self.done += part;
            return;
        };
        self.branches(node.clone(), process, bound, part, watch);
    }

    /// Looks at a process in one class after the other. What was looked at needs not be looked at again for classes and processes that can
    /// stand for these.
    fn branches(&mut self, mut node: Node, process: usize, bound: f64, part: f64, watch: &Watch<'_>) {
        let is_alone = self.neighbours[process].is_empty() && self.model.problem.home.is_none();
        let leaves = self.leaves;
        let orbits = self.orbits_of(node.placed);
        let values = self.values(&node, process);
        let part = part / values.len().max(1) as f64;
        for class in values {
            if node.sets[process] >> class & 1 == 0 {
                continue;
            }
            // Where several processes fit on a host, hosts come after all classes.
            if self.is_single || node.is_settled[process] || node.sets[process].is_power_of_two() {
                let hosts = self.hosts_in(class, process);
                let part = part / hosts.len().max(1) as f64;
                for host in hosts {
                    self.put(process, host, true);
                    self.below(&node, (process, class, Some(host)), bound, part, watch);
                    self.put(process, host, false);
                    if is_alone && self.leaves > leaves {
                        // Where processes without streams are makes no difference.
                        return;
                    }
                }
            } else {
                self.below(&node, (process, class, None), bound, part, watch);
                if is_alone && self.leaves > leaves {
                    return;
                }
            }
            if self.is_stopped {
                // Whatever is left here is no better than this node.
                self.open = self.open.min(bound);
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
        watch: &Watch<'_>,
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
            Some(there) => self.explore(&child, there.max(bound), part, watch),
            None => self.done += part,
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
        for &other in self.alike[process].iter().filter(|&&other| !node.is_settled[other]) {
            node.sets[other] &= !explored;
        }
        node.sets[process] != 0 && self.alike[process].iter().all(|&other| node.sets[other] != 0)
    }

    /// The process that is placed next: of those with streams that with the fewest classes, then that with the most placed neighbours.
    /// Where several fit on a host, those that may be in several classes come first.
    fn choice(&self, node: &Node) -> Option<usize> {
        let waiting = (0..self.model.processes).filter(|&process| node.hosts[process] == NOWHERE);
        waiting.min_by_key(|&process| {
            let neighbours = &self.neighbours[process];
            let placed = neighbours.iter().filter(|other| node.is_settled[other.process]).count();
            let count = node.sets[process].count_ones();
            let is_later = !self.is_single && count == 1;
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
            let is_fresh = self.on[host as usize].is_empty();
            if !(is_fresh && has_fresh) && self.model.fits(host, &self.used[host as usize], process) {
                hosts.push(host);
                has_fresh |= is_fresh;
            }
        }
        // Beside others first.
        hosts.sort_by_key(|&host| self.on[host as usize].is_empty());
        hosts
    }

    fn put(&mut self, process: usize, host: u32, is_there: bool) {
        let used = self.used[host as usize].iter_mut();
        match is_there {
            true => self.on[host as usize].push(process),
            false => {
                self.on[host as usize].pop();
            }
        }
        // Sums anew: what is taken away again leaves rounding behind.
        let on = &self.on[host as usize];
        for (resource, used) in used.enumerate() {
            *used = on.iter().map(|&process| self.model.needs[process][resource]).sum();
        }
    }

    /// Takes a class out of the sets of processes that fit on none of its hosts any more.
    fn fill(&self, node: &mut Node, class: usize) {
        for process in 0..self.model.processes {
            if node.hosts[process] == NOWHERE && node.sets[process] >> class & 1 == 1 {
                let hosts = &self.model.classes[class].hosts;
                if !hosts.iter().any(|&host| self.model.fits(host, &self.used[host as usize], process)) {
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
        self.leaves += 1;
        let moves =
            (0..).zip(&node.hosts).map(|(process, &host)| self.model.move_cost(process, host)).sum::<f64>();
        let found = paths::route(self.model, &node.hosts, self.lengths, self.cost - moves, LEAF_STEPS);
        if let Some((cost, ways)) = found.best {
            self.cost = cost + moves;
            self.best = Some((node.hosts.clone(), ways));
        }
        self.nodes += found.steps / STEPS_OF_NODE;
        if !found.is_complete {
            self.open = self.open.min(bound);
        }
    }
}
