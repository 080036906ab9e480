//! What the search for best routes knows of a problem before it begins.

use std::collections::BTreeMap;

use super::fabric::Fabric;
use super::graph::{End, Graph, MOST_FLOWS};
use crate::problem::{Problem, TOLERANCE};

/// Costs of sets of flows at links that are remembered at a time.
const MOST_CELLS: usize = 1 << 23;

/// A problem whose mapping is given, by destinations.
#[derive(Debug, Clone)]
pub(super) struct Model<'a> {
    pub problem: &'a Problem<'a>,
    pub hosts: &'a [u32],
    pub fabric: Fabric,
    /// Flows to the same destination, a few at a time.
    pub parts: Vec<Graph>,
    /// The parts of each destination.
    pub groups: Vec<Vec<usize>>,
    /// The destination of each part.
    pub group_of: Vec<usize>,
    /// What a link of a part costs whatever takes it, so that parts of one destination together pay no more than one.
    pub fixed: Vec<Vec<f64>>,
    /// What may be contested.
    pub places: Vec<Place>,
    /// Longest of the shortest routes.
    pub least_longest: u32,
    /// Most links that a route can have.
    pub most_hops: u32,
    /// What any plan costs beside lengths and entries.
    pub offset: f64,
}

/// A link, or after all links a node, that may have to carry more than it can.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Place {
    pub index: usize,
    /// What it can carry.
    pub most: f64,
}

impl<'a> Model<'a> {
    /// The model of a problem for processes on these hosts.
    pub(super) fn new(problem: &'a Problem<'a>, hosts: &'a [u32]) -> Self {
        let fabric = Fabric::new(problem);
        let switches = fabric.is_host.iter().filter(|is_host| !**is_host).count() as u32;
        let most_hops = problem.rules.most_hops.unwrap_or(u32::MAX).min(switches + 1);
        let mut ends: BTreeMap<u32, Vec<End>> = BTreeMap::new();
        for (index, flow) in (0..).zip(&problem.flows) {
            let (source, destination) = problem.ends(flow, hosts);
            if source != destination {
                let end = End { flow: index, source, destination, bandwidth: flow.bandwidth };
                ends.entry(destination).or_default().push(end);
            }
        }
        let mut own = Self {
            offset: problem.home.as_ref().map_or(0.0, |home| {
                home.cost * home.hosts.iter().zip(hosts).filter(|(home, host)| home != host).count() as f64
            }),
            problem,
            hosts,
            parts: Vec::new(),
            groups: Vec::new(),
            group_of: Vec::new(),
            fixed: Vec::new(),
            places: Vec::new(),
            least_longest: 0,
            most_hops,
            fabric,
        };
        for ends in ends.into_values() {
            own.group(&ends);
        }
        own.least_longest = own.parts.iter().map(Graph::longest).max().unwrap_or(0);
        own.places = own.places();
        own
    }

    fn group(&mut self, ends: &[End]) {
        let first = self.parts.len();
        let count = ends.len().div_ceil(self.most_together());
        for ends in ends.chunks(ends.len().div_ceil(count)) {
            let graph = Graph::new(&self.fabric, ends, self.problem.rules.weights.entries, self.most_hops);
            self.fixed.push(graph.fixed.iter().map(|fixed| fixed / count as f64).collect());
            self.group_of.push(self.groups.len());
            self.parts.push(graph);
        }
        self.groups.push((first..self.parts.len()).collect());
    }

    /// Flows of a tree that is optimized as a whole: fewer where there are very many links.
    fn most_together(&self) -> usize {
        let links = self.fabric.head.len().max(1);
        (1..=MOST_FLOWS).rev().find(|&flows| links << flows <= MOST_CELLS).unwrap_or(1)
    }

    /// Links and switches that would carry more than they can if all flows took them that can.
    fn places(&self) -> Vec<Place> {
        let links = self.fabric.head.len();
        let mut loads = vec![0.0; links + self.fabric.is_host.len()];
        for graph in &self.parts {
            let mut nodes: BTreeMap<(usize, usize), f64> = BTreeMap::new();
            for (at, &link) in graph.links.iter().enumerate() {
                let head = self.fabric.head[link as usize] as usize;
                for (flow, end) in graph.ends.iter().enumerate() {
                    if graph.shortest[flow * graph.links.len() + at] <= self.most_hops {
                        loads[link as usize] += end.bandwidth;
                        nodes.insert((head, flow), end.bandwidth);
                    }
                }
            }
            nodes.into_iter().for_each(|((node, _), bandwidth)| loads[links + node] += bandwidth);
        }
        let place = |(index, &load): (usize, &f64)| {
            let most = self.most(index) * (1.0 + TOLERANCE);
            (load > most).then_some(Place { index, most })
        };
        loads.iter().enumerate().filter_map(place).collect()
    }

    /// What a link, or after all links a node, can carry.
    pub(super) fn most(&self, index: usize) -> f64 {
        match index.checked_sub(self.fabric.head.len()) {
            None => self.fabric.capacity[index],
            Some(node) if self.fabric.is_host[node] => f64::INFINITY,
            Some(_) => self.fabric.switch_load,
        }
    }

    /// Adds what flows of a part carry on their ways.
    pub(super) fn load(&self, loads: &mut [f64], graph: &Graph, ways: &[Vec<u32>], sign: f64) {
        for (end, way) in graph.ends.iter().zip(ways) {
            for &link in way {
                loads[link as usize] += sign * end.bandwidth;
                let head = self.fabric.head[link as usize] as usize;
                loads[self.fabric.head.len() + head] += sign * end.bandwidth;
            }
        }
    }

    /// Loads of nothing.
    pub(super) fn no_loads(&self) -> Vec<f64> {
        vec![0.0; self.fabric.head.len() + self.fabric.is_host.len()]
    }

    /// The table that decides what follows a link: that of its end, or that of its port. Hosts decide by themselves.
    pub(super) fn state(&self, link: u32) -> (u32, u32) {
        let node = self.fabric.head[link as usize];
        (node, if self.fabric.is_two[node as usize] { link } else { u32::MAX })
    }

    /// Whether a route passes no node twice.
    pub(super) fn is_simple(&self, way: &[u32]) -> bool {
        let tail = |at: usize| self.fabric.tail[way[at] as usize];
        (0..way.len()).all(|at| (0..at).all(|before| tail(before) != tail(at)))
    }
}
