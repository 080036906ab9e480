//! The best mapping: branch and bound over classes of hosts.
//!
//! Every process has a set of classes where it may still be. Streams that may have so many links at most narrow these sets. The bound of a
//! node is what the streams between placed processes cost, and the cheapest assignment of the other processes to what room there is:
//! for each process and class the streams to placed processes, and half of what the streams to the others cost at least if these take
//! the nearest places, as Gilmore and Lawler do for the quadratic assignment problem. What an assignment costs beyond that narrows
//! the sets further. At a leaf the best routes are looked for.

use std::collections::BTreeMap;
use std::rc::Rc;

use super::assignment::{Assignment, NEVER};
use super::entries::Entries;
use super::model::{Edge, FAR, Model};
use super::paths::{self, Lengths};
use super::symmetry::{Symmetry, alike};
use crate::engine::Watch;

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
/// A search gives up that has done less than this part of what it has to have done by then.
const HOPE: f64 = 0.2;
/// No host yet.
const NOWHERE: u32 = u32::MAX;

/// A process at the other end of streams.
#[derive(Debug, Clone)]
struct Neighbour {
    process: usize,
    edges: Vec<usize>,
    /// Ends of these streams that receive from nobody else: their entries are as many as the links, less one.
    alone: f64,
}

/// A node of the tree.
#[derive(Clone)]
struct Node {
    hosts: Vec<u32>,
    /// Classes where each process may be; of a placed one its own.
    sets: Vec<u128>,
    /// Processes that fit into each class yet, at most.
    room: Vec<usize>,
    placed: u128,
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
        self.lengths = lengths;
        // Without limits it gives up where they would be needed.
        self.gives_up = watch.limits.nodes.is_none() && watch.limits.seconds.is_none();
        self.most_nodes = if self.gives_up { self.nodes + self.affordable(MOST_WORK) } else { u64::MAX };
        self.done = 0.0;
        self.is_stopped = false;
        self.open = f64::INFINITY;
        self.measure();
        if let Some(mut root) = self.root() {
            if let Some(bound) = self.narrow(&mut root) {
                self.begin = self.nodes;
                self.explore(&root, bound, 1.0, watch);
            }
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
        work / (size as u64 + 50)
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
        is_hopeless || self.nodes >= self.most_nodes || watch.is_over(self.nodes)
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
        let room = model.classes.iter().map(|class| class.hosts.len().saturating_mul(class.most));
        let root = Node { hosts: vec![NOWHERE; model.processes], room: room.collect(), placed: 0, sets };
        root.sets.iter().all(|set| *set != 0).then_some(root)
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

    /// Narrows the sets of a node until nothing changes. Its bound; nothing if no better plan is below it.
    fn narrow(&mut self, node: &mut Node) -> Option<f64> {
        loop {
            self.reach_each_other(node)?;
            let (bound, has_changed) = self.bound(node)?;
            if !has_changed {
                return Some(bound);
            }
        }
    }

    /// Takes out classes that are too far from all classes where a neighbour may be.
    fn reach_each_other(&self, node: &mut Node) -> Option<()> {
        let model = self.model;
        let mut is_waiting = vec![true; model.processes];
        let mut queue: Vec<usize> = (0..model.processes).collect();
        while let Some(process) = queue.pop() {
            is_waiting[process] = false;
            for neighbour in &self.neighbours[process] {
                let mut near = node.sets[neighbour.process];
                for &edge in &neighbour.edges {
                    let edge = &model.edges[edge];
                    let side = usize::from(edge.source != process);
                    let reach = &self.reach[side][edge.kind];
                    let all = bits(node.sets[process]).fold(0, |all, class| {
                        let own = if self.may_share(node, class, process, neighbour.process) {
                            1 << class
                        } else {
                            0
                        };
                        all | reach[class] | own
                    });
                    near &= all;
                }
                if near == 0 {
                    return None;
                }
                if near != node.sets[neighbour.process] {
                    node.sets[neighbour.process] = near;
                    if !is_waiting[neighbour.process] {
                        is_waiting[neighbour.process] = true;
                        queue.push(neighbour.process);
                    }
                }
            }
        }
        Some(())
    }

    fn may_share(&self, node: &Node, class: usize, first: usize, second: usize) -> bool {
        if self.is_single {
            return false;
        }
        match (node.hosts[first], node.hosts[second]) {
            (NOWHERE, NOWHERE) => self.model.can_share(class, first, second),
            (NOWHERE, host) => self.model.fits(host, &self.used[host as usize], first),
            (host, NOWHERE) => self.model.fits(host, &self.used[host as usize], second),
            (a, b) => a == b,
        }
    }

    /// The bound of a node; takes out classes that cost too much. Nothing if all do.
    fn bound(&mut self, node: &mut Node) -> Option<(f64, bool)> {
        let fixed = self.fixed(node)?;
        let rows: Vec<usize> =
            (0..self.model.processes).filter(|&process| node.hosts[process] == NOWHERE).collect();
        let classes = self.model.classes.len();
        let mut costs = std::mem::take(&mut self.costs);
        costs.clear();
        costs.resize(rows.len() * classes, NEVER);
        for (row, &process) in rows.iter().enumerate() {
            for class in bits(node.sets[process]) {
                costs[row * classes + class] = self.place_cost(node, process, class);
            }
        }
        let solved = self.assignment.solve(&costs, &node.room);
        let bound =
            solved.map(|cost| cost + fixed).filter(|&bound| self.model.improves(bound - 1e-7, self.cost));
        let mut has_changed = false;
        if let Some(bound) = bound {
            for (row, &process) in rows.iter().enumerate() {
                for class in bits(node.sets[process]) {
                    let there = bound + self.assignment.extra(&costs, row, class);
                    if !self.model.improves(there - 1e-7, self.cost) {
                        node.sets[process] &= !(1 << class);
                        has_changed = true;
                    }
                }
            }
        }
        self.costs = costs;
        let is_empty = node.sets.contains(&0);
        bound.filter(|_| !is_empty).map(|bound| (bound, has_changed))
    }

    /// What placed processes cost, and the length of the longest route; nothing if one is too long.
    fn fixed(&mut self, node: &Node) -> Option<f64> {
        let model = self.model;
        let weights = model.weights;
        let mut sum = weights.longest * f64::from(self.lengths.least);
        for process in (0..model.processes).filter(|&process| node.hosts[process] != NOWHERE) {
            sum += model.move_cost(process, node.hosts[process]);
            for neighbour in self.neighbours[process].iter().filter(|other| other.process > process) {
                let host = node.hosts[neighbour.process];
                if host == NOWHERE {
                    continue;
                }
                let mut longest = 0;
                for &edge in &neighbour.edges {
                    let edge = &model.edges[edge];
                    let distance =
                        model.between(edge.kind, node.hosts[edge.source], node.hosts[edge.destination]);
                    if distance > self.lengths.most || distance >= FAR {
                        return None;
                    }
                    longest = longest.max(distance);
                    sum += weights.hops * f64::from(distance);
                }
                sum += weights.entries * self.share * neighbour.alone * f64::from(longest.saturating_sub(1));
            }
        }
        for process in (0..model.processes).filter(|&process| node.hosts[process] != NOWHERE) {
            sum += self.join_cost(node, process, model.class_of[node.hosts[process] as usize]);
        }
        Some(sum)
    }

    /// What the entries of a destination of several streams cost at least in a class.
    fn join_cost(&mut self, node: &Node, process: usize, class: usize) -> f64 {
        let Some(joins) = &self.joins[process] else { return 0.0 };
        let model = self.model;
        let mut least: u32 = 0;
        let mut sources = std::mem::take(&mut self.sources);
        sources.clear();
        for &edge in joins {
            let (source, kind) = (model.edges[edge].source, model.edges[edge].kind);
            let host = node.hosts[source];
            if host == NOWHERE {
                let near = self.nearest(node, process, class, source, edge);
                least = least.max(u32::from(near.saturating_sub(1)));
            } else {
                let shares = match node.hosts[process] {
                    NOWHERE => {
                        model.class_of[host as usize] == class && self.may_share(node, class, process, source)
                    }
                    own => own == host,
                };
                if !shares {
                    sources.push((host, kind));
                }
            }
        }
        let settled = self.counter.least(model, class, sources.iter().copied());
        self.sources = sources;
        model.weights.entries * self.share * f64::from(least.max(settled))
    }

    /// Links of a stream at least between a process in a class and one that is not placed.
    fn nearest(&self, node: &Node, process: usize, class: usize, other: usize, edge: usize) -> u16 {
        if node.sets[other] >> class & 1 == 1 && self.may_share(node, class, process, other) {
            return 0;
        }
        let edge = &self.model.edges[edge];
        let by_links = &self.within[usize::from(edge.source != process)][edge.kind][class];
        let set = node.sets[other];
        by_links.iter().position(|there| there & set != 0).map_or(FAR, |links| links as u16)
    }

    /// What a process costs in a class, half of what its streams to unplaced ones cost included.
    fn place_cost(&mut self, node: &Node, process: usize, class: usize) -> f64 {
        let model = self.model;
        let weights = model.weights;
        let mut sum = match &model.problem.home {
            Some(_) => model.classes[class]
                .hosts
                .iter()
                .map(|&host| model.move_cost(process, host))
                .fold(NEVER, f64::min),
            None => 0.0,
        };
        let [mut hops, mut alone] = [&mut self.hops, &mut self.alone].map(std::mem::take);
        let mut near = std::mem::take(&mut self.near);
        near.clear();
        hops.clear();
        alone.clear();
        let mut sharing = 0;
        for neighbour in &self.neighbours[process] {
            let host = node.hosts[neighbour.process];
            if host == NOWHERE {
                let least = neighbour
                    .edges
                    .iter()
                    .map(|&edge| self.nearest(node, process, class, neighbour.process, edge));
                let least = least.max().unwrap_or_default();
                sharing += usize::from(least == 0);
                near.push(least);
                hops.push(neighbour.edges.len() as f64);
                alone.push(neighbour.alone);
                continue;
            }
            let there = model.class_of[host as usize];
            let is_same = there == class && self.may_share(node, class, process, neighbour.process);
            let mut longest = 0;
            for &edge in &neighbour.edges {
                let edge = &model.edges[edge];
                let (from, to) = if edge.source == process { (class, there) } else { (there, class) };
                let distance = if is_same { 0 } else { model.distance(edge.kind, from, to) };
                longest = longest.max(distance);
                sum += if distance >= FAR { NEVER } else { weights.hops * f64::from(distance) };
            }
            sum += weights.entries * self.share * neighbour.alone * f64::from(longest.saturating_sub(1));
        }
        sum += self.join_cost(node, process, class);
        self.spread(node, class, sharing, &mut near);
        near.sort_unstable();
        hops.sort_by(|a, b| b.total_cmp(a));
        alone.sort_by(|a, b| b.total_cmp(a));
        for ((distance, hops), alone) in near.iter().zip(&hops).zip(&alone) {
            sum += 0.5 * weights.hops * hops * f64::from(*distance)
                + 0.5 * weights.entries * self.share * alone * f64::from(distance.saturating_sub(1));
        }
        (self.near, self.hops, self.alone) = (near, hops, alone);
        sum
    }

    /// Raises the distances of neighbours to those of the nearest places.
    fn spread(&self, node: &Node, class: usize, sharing: usize, near: &mut [u16]) {
        near.sort_unstable();
        let shares = sharing.min(self.model.classes[class].most.saturating_sub(1));
        let mut places =
            std::iter::repeat_n(0, shares).chain(self.around[class].iter().flat_map(|&(distance, other)| {
                let own = usize::from(other == class);
                std::iter::repeat_n(distance, node.room[other].saturating_sub(own))
            }));
        for near in near {
            let Some(place) = places.next() else { return };
            *near = place.max(*near);
        }
    }

    /// Looks at everything below a node.
    fn explore(&mut self, node: &Node, bound: f64, part: f64, watch: &Watch<'_>) {
        self.nodes += 1;
        self.is_stopped |= self.is_over(watch) || watch.limits.nodes.is_some_and(|most| self.nodes > most);
        if self.is_stopped {
            self.open = self.open.min(bound);
            return;
        }
        let Some(process) = self.choice(node) else {
            self.leaf(node, bound);
            self.done += part;
            return;
        };
        let mut node = node.clone();
        let is_alone = self.neighbours[process].is_empty() && self.model.problem.home.is_none();
        let leaves = self.leaves;
        let orbits = self.orbits_of(node.placed);
        let mut done = 0_u128;
        let values = self.values(&node, process);
        let part = part / values.len().max(1) as f64;
        for class in values {
            if done >> class & 1 == 1 || node.sets[process] >> class & 1 == 0 {
                continue;
            }
            let hosts = self.hosts_in(class, process);
            let part = part / hosts.len().max(1) as f64;
            for host in hosts {
                self.put(process, host, true);
                let mut child = node.clone();
                child.hosts[process] = host;
                child.sets[process] = 1 << class;
                child.placed |= 1 << class;
                child.room[class] = child.room[class].saturating_sub(1);
                self.fill(&mut child, class, host);
                if let Some(bound) = self.narrow(&mut child).map(|there| there.max(bound)) {
                    self.explore(&child, bound, part, watch);
                } else {
                    self.done += part;
                }
                self.put(process, host, false);
                if is_alone && self.leaves > leaves {
                    // Where processes without streams are makes no difference.
                    return;
                }
            }
            if self.is_stopped {
                // Whatever is left here is no better than this node.
                self.open = self.open.min(bound);
                return;
            }
            let first = orbits.as_ref().map(|orbits| orbits[class]);
            let same = |other: &usize| match (&orbits, first) {
                (Some(orbits), Some(first)) => orbits[*other] == first,
                _ => *other == class,
            };
            let explored =
                (0..self.model.classes.len()).filter(same).fold(0_u128, |set, other| set | 1 << other);
            done |= explored;
            for &other in &self.alike[process] {
                if node.hosts[other] == NOWHERE {
                    node.sets[other] &= !explored;
                }
            }
            node.sets[process] &= !explored;
            let is_dead = self.alike[process].iter().any(|&other| node.sets[other] == 0);
            if is_dead || node.sets[process] == 0 {
                return;
            }
        }
    }

    /// The process that is placed next: of those with streams that with the fewest classes, then that with the most placed neighbours.
    fn choice(&self, node: &Node) -> Option<usize> {
        let waiting = (0..self.model.processes).filter(|&process| node.hosts[process] == NOWHERE);
        waiting.min_by_key(|&process| {
            let neighbours = &self.neighbours[process];
            let placed = neighbours.iter().filter(|other| node.hosts[other.process] != NOWHERE).count();
            let count = node.sets[process].count_ones();
            (neighbours.is_empty(), count, usize::MAX - placed, usize::MAX - neighbours.len(), process)
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
    fn fill(&self, node: &mut Node, class: usize, _: u32) {
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

/// For streams of each kind, from each class or to it, the classes within each number of links.
fn within(model: &Model<'_>, from: bool) -> Vec<Vec<Vec<u128>>> {
    let classes = model.classes.len();
    let kinds = model.edges.iter().map(|edge| edge.kind + 1).max().unwrap_or_default();
    let near = |kind: usize, class: usize, links: u16| {
        let is_near = |&other: &usize| {
            let (a, b) = if from { (class, other) } else { (other, class) };
            model.distance(kind, a, b) <= links
        };
        (0..classes).filter(is_near).fold(0, |set, other| set | 1 << other)
    };
    let of_class =
        |kind: usize, class: usize| (0..=model.farthest()).map(|links| near(kind, class, links)).collect();
    (0..kinds).map(|kind| (0..classes).map(|class| of_class(kind, class)).collect()).collect()
}

/// The streams that a process receives if they come from several others.
fn joins(model: &Model<'_>, process: usize) -> Option<Vec<usize>> {
    let edges = &model.receives[process];
    let first = edges.first().map(|&edge| model.edges[edge].source);
    edges.iter().any(|&edge| Some(model.edges[edge].source) != first).then(|| edges.clone())
}

/// The processes that a process has streams with.
fn neighbours(model: &Model<'_>, process: usize, joins: &[Option<Vec<usize>>]) -> Vec<Neighbour> {
    let mut neighbours: BTreeMap<usize, Neighbour> = BTreeMap::new();
    for (edge, other) in model.neighbours(process) {
        let new = Neighbour { process: other, edges: Vec::new(), alone: 0.0 };
        neighbours.entry(other).or_insert(new).edges.push(edge);
    }
    for neighbour in neighbours.values_mut() {
        let receives = |end: usize| neighbour.edges.iter().any(|&edge| model.edges[edge].destination == end);
        let ends = [process, neighbour.process];
        neighbour.alone = ends.iter().filter(|&&end| receives(end) && joins[end].is_none()).count() as f64;
    }
    neighbours.into_values().collect()
}

/// The classes of a set.
fn bits(mut set: u128) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let next = (set != 0).then(|| set.trailing_zeros() as usize);
        set &= set.wrapping_sub(1);
        next
    })
}
