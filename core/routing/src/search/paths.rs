//! Optimal routes for a given mapping: depth-first search, stream by stream, with the table entries that earlier streams need.

use std::collections::BTreeMap;

use super::model::{Entries, FAR, Model};
use crate::network;
use crate::problem::TOLERANCE;

/// Maximum number of streams that are routed one by one.
const MOST_TASKS: usize = 400;
/// Maximum total links of all routes: the search recurses for each.
const MOST_LINKS: u32 = 1500;
/// No entry.
const NONE: u32 = u32::MAX;

/// Limits of the route length.
#[derive(Debug, Clone, Copy)]
pub(super) struct Lengths {
    /// Maximum links of a route.
    pub(super) most: u16,
    /// Length that the longest route counts at least.
    pub(super) least: u16,
}

/// The best routes found.
#[derive(Debug, Clone, Default)]
pub(super) struct Paths {
    /// The objective, and the links of every flow.
    pub(super) best: Option<(f64, Vec<Vec<u32>>)>,
    /// Whether the search completed.
    pub(super) is_complete: bool,
    /// Number of steps.
    pub(super) steps: u64,
}

/// A stream that needs a route.
#[derive(Debug, Clone, Copy)]
struct Task {
    flow: usize,
    kind: usize,
    source: u32,
    destination: u32,
    bandwidth: f64,
    length: u16,
    group: usize,
}

/// The cost of a partial solution.
#[derive(Debug, Clone, Copy)]
struct Cost {
    longest: u16,
    hops: u32,
    /// Entries of completed destinations.
    done: u32,
    /// Entries of the current destination.
    entries: u32,
}

/// The search for routes.
struct Finder<'m, 'a> {
    model: &'m Model<'a>,
    tasks: Vec<Task>,
    /// Lower bound of the links for the streams from each index on.
    hops_from: Vec<u32>,
    /// Lower bound of the entries for the destinations of each group and all later groups.
    least: Vec<u32>,
    later: Vec<u32>,
    lengths: Lengths,
    loads: Vec<f64>,
    arriving: Vec<f64>,
    tables: Vec<u32>,
    width: usize,
    paths: Vec<Vec<u32>>,
    below: f64,
    most_steps: u64,
    found: Paths,
}

/// The best routes that cost less than `below`, within a step limit.
pub(super) fn route(model: &Model<'_>, hosts: &[u32], lengths: Lengths, below: f64, steps: u64) -> Paths {
    let tasks = tasks(model, hosts);
    if tasks.len() > MOST_TASKS {
        return Paths::default();
    }
    let most = model.problem.rules.max_hops.map_or(FAR, |most| most.min(u32::from(FAR)) as u16);
    let lengths = Lengths { most: lengths.most.min(most), ..lengths };
    let mut finder = Finder::new(model, tasks, lengths, below, steps);
    let start = Cost { longest: finder.longest(), hops: 0, done: 0, entries: 0 };
    finder.found.is_complete = true;
    if start.longest <= lengths.most {
        finder.task(0, start);
    }
    finder.found
}

/// Streams that use links: grouped by destination, the farthest first; destinations with the most traffic first.
fn tasks(model: &Model<'_>, hosts: &[u32]) -> Vec<Task> {
    let mut groups: BTreeMap<u32, (f64, Vec<Task>)> = BTreeMap::new();
    for edge in &model.edges {
        let (source, destination) = (hosts[edge.source], hosts[edge.destination]);
        if source != destination {
            let length = model.between(edge.kind, source, destination);
            let (sum, tasks) = groups.entry(destination).or_default();
            *sum += edge.bandwidth * f64::from(length);
            let (flow, kind, bandwidth) = (edge.flow, edge.kind, edge.bandwidth);
            tasks.push(Task { flow, kind, source, destination, bandwidth, length, group: 0 });
        }
    }
    let mut groups: Vec<(f64, Vec<Task>)> = groups.into_values().collect();
    groups.sort_by(|(first, _), (second, _)| second.total_cmp(first));
    for (group, (_, tasks)) in groups.iter_mut().enumerate() {
        tasks.iter_mut().for_each(|task| task.group = group);
        tasks.sort_by(|a, b| b.length.cmp(&a.length).then(b.bandwidth.total_cmp(&a.bandwidth)));
    }
    groups.into_iter().flat_map(|(_, tasks)| tasks).collect()
}

impl<'m, 'a> Finder<'m, 'a> {
    fn new(model: &'m Model<'a>, tasks: Vec<Task>, lengths: Lengths, below: f64, most_steps: u64) -> Self {
        let mut hops_from = vec![0; tasks.len() + 1];
        for (index, task) in tasks.iter().enumerate().rev() {
            hops_from[index] = hops_from[index + 1] + u32::from(task.length);
        }
        let mut counter = Entries::default();
        let groups = tasks.last().map_or(0, |task| task.group + 1);
        let least: Vec<u32> = (0..groups)
            .map(|group| {
                let own = || tasks.iter().filter(move |task| task.group == group);
                let destination = own().next().map_or(0, |task| task.destination);
                let to = model.class_of[destination as usize];
                counter.least(model, to, own().map(|task| (task.source, task.kind)))
            })
            .collect();
        let mut later = vec![0; groups + 1];
        (0..groups).rev().for_each(|group| later[group] = later[group + 1] + least[group]);
        let width = model.problem.system.nodes.len() + model.problem.system.links.len();
        Self {
            loads: vec![0.0; model.problem.capacity.len()],
            arriving: vec![0.0; model.problem.system.nodes.len()],
            tables: vec![NONE; groups * width],
            paths: vec![Vec::new(); model.problem.flows.len()],
            found: Paths::default(),
            hops_from,
            least,
            later,
            width,
            model,
            tasks,
            lengths,
            below,
            most_steps,
        }
    }

    /// Lower bound of the longest route.
    fn longest(&self) -> u16 {
        self.tasks.iter().map(|task| task.length).max().unwrap_or_default().max(self.lengths.least)
    }

    /// Lower bound of the cost of all routes, given the cost of the earlier tasks and the number of links of the current one.
    fn bound(&self, index: usize, cost: Cost, links: u32) -> f64 {
        let weights = self.model.weights;
        let group = self.tasks.get(index).map_or(self.least.len(), |task| task.group);
        let entries = cost.entries.max(self.least.get(group).copied().unwrap_or_default());
        let later = self.later.get(group + 1).copied().unwrap_or_default();
        let hops = cost.hops + links + self.hops_from.get(index + 1).copied().unwrap_or_default();
        weights.longest_route * f64::from(cost.longest)
            + weights.total_hops * f64::from(hops)
            + weights.table_entries * f64::from(cost.done + entries + later)
    }

    fn task(&mut self, index: usize, mut cost: Cost) {
        if index > 0 && self.model.problem.rules.deadlock_free {
            let paths = self.paths.iter().map(Vec::as_slice);
            if !network::cycle(self.loads.len(), paths).is_empty() {
                return;
            }
        }
        let Some(&task) = self.tasks.get(index) else {
            cost.done += cost.entries;
            cost.entries = 0;
            let all = self.bound(index, cost, 0);
            if self.model.improves(all, self.below) {
                self.below = all;
                self.found.best = Some((all, self.paths.clone()));
            }
            return;
        };
        if index > 0 && self.tasks[index - 1].group != task.group {
            cost.done += cost.entries;
            cost.entries = 0;
        }
        self.step(index, &task, task.source, cost);
    }

    /// Continues the route of a task from a node.
    fn step(&mut self, index: usize, task: &Task, node: u32, cost: Cost) {
        self.found.steps += 1;
        let links = cost.hops + self.paths[task.flow].len() as u32;
        if self.found.steps > self.most_steps || links > MOST_LINKS {
            self.found.is_complete = false;
            return;
        }
        let last = self.paths[task.flow].last().copied();
        let key = last.map(|link| self.key(task.group, link, node));
        let forced = key.map(|key| self.tables[key]).filter(|&link| link != NONE);
        let mut next: Vec<(u16, bool, u64, u32)> = Vec::new();
        for &link in self.model.problem.network.leaving(node) {
            if forced.is_none_or(|forced| forced == link) {
                next.extend(self.candidate(task, link));
            }
        }
        next.sort_unstable();
        for (rest, _, _, link) in next {
            let length = self.paths[task.flow].len() as u16 + 1 + rest;
            let new = u32::from(key.is_some() && forced.is_none());
            let longest = cost.longest.max(length);
            let cost = Cost { longest, entries: cost.entries + new, ..cost };
            let bound = self.bound(index, cost, u32::from(length));
            if length > self.lengths.most || !self.model.improves(bound, self.below) {
                continue;
            }
            self.take(index, task, link, key.filter(|_| new > 0), cost);
            if !self.found.is_complete {
                return;
            }
        }
    }

    /// Takes a link, recurses, and releases the link.
    fn take(&mut self, index: usize, task: &Task, link: u32, key: Option<usize>, cost: Cost) {
        let to = self.model.problem.system.links[link as usize].destination;
        self.paths[task.flow].push(link);
        self.loads[link as usize] += task.bandwidth;
        self.arriving[to as usize] += task.bandwidth;
        if let Some(key) = key {
            self.tables[key] = link;
        }
        if to == task.destination {
            let hops = cost.hops + self.paths[task.flow].len() as u32;
            self.task(index + 1, Cost { hops, ..cost });
        } else {
            self.step(index, task, to, cost);
        }
        if let Some(key) = key {
            self.tables[key] = NONE;
        }
        self.arriving[to as usize] -= task.bandwidth;
        self.loads[link as usize] -= task.bandwidth;
        self.paths[task.flow].pop();
    }

    /// Priority of a link: distance of its end to the destination, whether the rest of the path is settled, and its load.
    fn candidate(&self, task: &Task, link: u32) -> Option<(u16, bool, u64, u32)> {
        let Model { problem, class_of, .. } = self.model;
        let there = &problem.system.links[link as usize];
        let to = there.destination;
        let load = self.loads[link as usize] + task.bandwidth;
        let capacity = problem.capacity[link as usize];
        if load > capacity * (1.0 + TOLERANCE) {
            return None;
        }
        let full = (load / capacity * 1e6) as u64;
        if to == task.destination {
            return Some((0, false, full, link));
        }
        if problem.network.is_host(to) {
            return None;
        }
        let most = problem.rules.switch_load.unwrap_or(f64::INFINITY) * (1.0 + TOLERANCE);
        let rest = self.model.towards(task.kind, class_of[task.destination as usize], to);
        let passed = |&link: &u32| problem.system.links[link as usize].source == to;
        let is_bad = rest >= FAR
            || self.arriving[to as usize] + task.bandwidth > most
            || self.paths[task.flow].iter().any(passed);
        let settled = self.tables[self.key(task.group, link, to)] != NONE;
        (!is_bad).then_some((rest, !settled, full, link))
    }

    /// The index of the entry of a destination at a switch entered by a link.
    fn key(&self, group: usize, link: u32, node: u32) -> usize {
        let nodes = self.model.problem.system.nodes.len();
        let two = self.model.problem.is_type_two(node);
        group * self.width + if two { nodes + link as usize } else { node as usize }
    }
}
