//! Precomputed data of the router: links in flat arrays, and for every destination the links that lead there.

use std::collections::BTreeMap;

use hopmap_graph::{UNREACHED, distances};
use hopmap_model::LinkState;

use crate::problem::{Problem, TOLERANCE};

/// Infinite distance.
pub(super) const FAR: u32 = UNREACHED;

/// The links of a machine in flat arrays, with their capacities.
#[derive(Debug, Clone)]
pub(super) struct Fabric {
    /// Node id of the destination of every link.
    pub head: Vec<u32>,
    /// Node id of the source of every link.
    pub tail: Vec<u32>,
    /// Whether each node is a host.
    pub is_host: Vec<bool>,
    /// Whether each switch has a table per input port.
    pub is_two: Vec<bool>,
    /// Usable bandwidth of every link.
    pub capacity: Vec<f64>,
    /// Limit on the incoming load of a node.
    pub switch_load: f64,
    leaving: Rows,
    arriving: Rows,
}

/// Rows of numbers, one after the other.
#[derive(Debug, Clone)]
struct Rows {
    begin: Vec<u32>,
    values: Vec<u32>,
}

impl Rows {
    fn new(rows: &[Vec<u32>]) -> Self {
        let mut begin = vec![0];
        let mut values = Vec::new();
        for row in rows {
            values.extend_from_slice(row);
            begin.push(values.len() as u32);
        }
        Self { begin, values }
    }

    fn row(&self, row: u32) -> &[u32] {
        &self.values[self.begin[row as usize] as usize..self.begin[row as usize + 1] as usize]
    }
}

impl Fabric {
    /// The links of a machine that are up.
    pub(super) fn new(problem: &Problem<'_>) -> Self {
        let (nodes, links) = (&problem.system.nodes, &problem.system.links);
        let mut leaving = vec![Vec::new(); nodes.len()];
        let mut arriving = vec![Vec::new(); nodes.len()];
        for (index, link) in (0..).zip(links).filter(|(_, link)| link.state == LinkState::Up) {
            leaving[link.source as usize].push(index);
            arriving[link.destination as usize].push(index);
        }
        Self {
            head: links.iter().map(|link| link.destination).collect(),
            tail: links.iter().map(|link| link.source).collect(),
            is_host: (0..nodes.len() as u32).map(|node| problem.network.is_host(node)).collect(),
            is_two: (0..nodes.len() as u32).map(|node| problem.is_type_two(node)).collect(),
            capacity: problem.capacity.clone(),
            switch_load: problem.rules.switch_load.unwrap_or(f64::INFINITY),
            leaving: Rows::new(&leaving),
            arriving: Rows::new(&arriving),
        }
    }

    /// Outgoing links of a node.
    pub(super) fn leaving(&self, node: u32) -> &[u32] {
        self.leaving.row(node)
    }

    /// Incoming links of a node.
    pub(super) fn arriving(&self, node: u32) -> &[u32] {
        self.arriving.row(node)
    }

    /// Whether a link, and the switch at its end, can carry a bandwidth if otherwise idle.
    pub(super) fn carries(&self, link: u32, bandwidth: f64) -> bool {
        let at_switch = self.is_host[self.head[link as usize] as usize]
            || bandwidth <= self.switch_load * (1.0 + TOLERANCE);
        at_switch && bandwidth <= self.capacity[link as usize] * (1.0 + TOLERANCE)
    }

    /// Whether a link is up.
    pub(super) fn is_up(&self, link: u32) -> bool {
        self.leaving(self.tail[link as usize]).contains(&link)
    }

    /// Distances through switches from a host to every node, or from every node to a host, over links that satisfy a predicate.
    pub(super) fn hops(&self, host: u32, is_from: bool, passes: impl Fn(u32) -> bool) -> Vec<u32> {
        let (links, ends) = if is_from { (&self.leaving, &self.head) } else { (&self.arriving, &self.tail) };
        let next = |node: usize| {
            let is_through = node == host as usize || !self.is_host[node];
            let links = links.row(node as u32).iter().filter(move |_| is_through);
            links.filter(|link| passes(**link)).map(|&link| ends[link as usize] as usize)
        };
        distances(self.is_host.len(), [host as usize], next)
    }

    /// The index of the node at the end of a link: nodes follow all links.
    pub(super) fn place_of_head(&self, link: u32) -> usize {
        self.head.len() + self.head[link as usize] as usize
    }

    /// Whether a link is the place, or arrives there.
    pub(super) fn is_at(&self, link: u32, place: usize) -> bool {
        link as usize == place || self.place_of_head(link) == place
    }

    /// Capacity of a link or, after all links, of a node.
    pub(super) fn most(&self, place: usize) -> f64 {
        match place.checked_sub(self.head.len()) {
            None => self.capacity[place],
            Some(node) if self.is_host[node] => f64::INFINITY,
            Some(_) => self.switch_load,
        }
    }

    /// Zero loads, by link and then by node.
    pub(super) fn no_loads(&self) -> Vec<f64> {
        vec![0.0; self.head.len() + self.is_host.len()]
    }

    /// Adds a bandwidth to the loads of the links and nodes of a route.
    pub(super) fn load(&self, loads: &mut [f64], path: &[u32], bandwidth: f64) {
        for &link in path {
            loads[link as usize] += bandwidth;
            loads[self.place_of_head(link)] += bandwidth;
        }
    }
}

/// Maximum number of flows of a tree that is optimised jointly; each further flow triples the work.
pub(super) const MOST_FLOWS: usize = 11;

/// A flow between hosts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct End {
    pub flow: u32,
    pub source: u32,
    pub destination: u32,
    pub bandwidth: f64,
}

/// Some flows to one destination, and their usable links, renumbered.
#[derive(Debug, Clone)]
pub(super) struct Graph {
    pub ends: Vec<End>,
    /// The links by their number in the machine.
    pub links: Vec<u32>,
    /// The first links of each flow.
    pub first: Vec<Vec<u32>>,
    /// Successors and predecessors of each link.
    pub follow: Vec<Vec<u32>>,
    pub before: Vec<Vec<u32>>,
    /// Whether a link arrives at the destination.
    pub arrives: Vec<bool>,
    /// Minimum hops of a route of each flow through each link, at `flow * links + link`.
    pub shortest: Vec<u32>,
    /// Cost of the entries that a link needs for any flow: that of the switch of type 1 at its source, and that of the port of a
    /// switch of type 2 at its end.
    pub fixed: Vec<f64>,
}

impl Graph {
    /// The graph of flows to one destination, over links with sufficient bandwidth and within a hop limit.
    pub(super) fn new(fabric: &Fabric, ends: &[End], entry: f64, max_hops: u32) -> Self {
        let destination = ends.first().map_or(0, |end| end.destination);
        let all = fabric.head.len();
        let mut shortest = vec![FAR; ends.len() * all];
        for (end, row) in ends.iter().zip(shortest.chunks_mut(all.max(1))) {
            let passes = |link: u32| fabric.carries(link, end.bandwidth);
            let to = fabric.hops(destination, false, passes);
            let from = fabric.hops(end.source, true, passes);
            for (link, hops) in (0..).zip(row) {
                let (tail, head) = (fabric.tail[link as usize] as usize, fabric.head[link as usize] as usize);
                let through_hosts = (fabric.is_host[tail] && tail as u32 != end.source)
                    || (fabric.is_host[head] && head as u32 != destination);
                if passes(link)
                    && fabric.is_up(link)
                    && !through_hosts
                    && from[tail] != FAR
                    && to[head] != FAR
                {
                    let length = from[tail] + 1 + to[head];
                    *hops = if length <= max_hops { length } else { FAR };
                }
            }
        }
        let is_taken = |link: &u32| (0..ends.len()).any(|flow| shortest[flow * all + *link as usize] != FAR);
        let links: Vec<u32> = (0..all as u32).filter(is_taken).collect();
        let shortest = (0..ends.len())
            .flat_map(|flow| links.iter().map(move |&link| (flow, link)))
            .map(|(flow, link)| shortest[flow * all + link as usize])
            .collect();
        Self::joined(fabric, ends, entry, links, shortest)
    }

    fn joined(fabric: &Fabric, ends: &[End], entry: f64, links: Vec<u32>, shortest: Vec<u32>) -> Self {
        let destination = ends.first().map_or(0, |end| end.destination);
        let [mut follow, mut before] = [vec![Vec::new(); links.len()], vec![Vec::new(); links.len()]];
        let (tail, head) = (|link: u32| fabric.tail[link as usize], |link: u32| fabric.head[link as usize]);
        for (at, &link) in links.iter().enumerate().filter(|(_, link)| head(**link) != destination) {
            for &next in fabric.leaving(head(link)) {
                if let Ok(to) = links.binary_search(&next)
                    && head(next) != tail(link)
                {
                    follow[at].push(to as u32);
                    before[to].push(at as u32);
                }
            }
        }
        let first = |(flow, end): (usize, &End)| {
            let leaves = |at: &u32| {
                tail(links[*at as usize]) == end.source && shortest[flow * links.len() + *at as usize] != FAR
            };
            (0..links.len() as u32).filter(leaves).collect()
        };
        let fixed = |&link: &u32| {
            let (tail, head) = (tail(link) as usize, head(link) as usize);
            let of_tail = !fabric.is_host[tail] && !fabric.is_two[tail];
            let of_head = !fabric.is_host[head] && fabric.is_two[head];
            entry * (f64::from(u8::from(of_tail)) + f64::from(u8::from(of_head)))
        };
        Self {
            first: ends.iter().enumerate().map(first).collect(),
            arrives: links.iter().map(|&link| head(link) == destination).collect(),
            fixed: links.iter().map(fixed).collect(),
            ends: ends.to_vec(),
            links,
            follow,
            before,
            shortest,
        }
    }

    /// Whether every flow has a route.
    pub(super) fn is_joined(&self) -> bool {
        self.first.iter().all(|first| !first.is_empty())
    }

    /// Minimum hops of the farthest flow.
    pub(super) fn longest(&self) -> u32 {
        let links = self.links.len();
        let fewest = |flow: usize| {
            let row = &self.shortest[flow * links..(flow + 1) * links];
            row.iter().copied().min().unwrap_or(FAR)
        };
        (0..self.ends.len()).map(fewest).max().unwrap_or(0)
    }
}

/// Maximum number of cached costs of sets of flows at links.
const MOST_CELLS: usize = 1 << 23;

/// A problem with a given mapping, by destinations.
#[derive(Debug, Clone)]
pub(super) struct Model<'a> {
    pub problem: &'a Problem<'a>,
    pub hosts: &'a [u32],
    pub fabric: Fabric,
    /// Flows to the same destination, a few per part.
    pub parts: Vec<Graph>,
    /// The parts of each destination.
    pub groups: Vec<Vec<usize>>,
    /// The destination of each part.
    pub group_of: Vec<usize>,
    /// Fixed cost of a link of a part, shared so that the parts of one destination pay it once.
    pub fixed: Vec<Vec<f64>>,
    /// Places that may be contested.
    pub places: Vec<Resource>,
    /// The longest of the shortest routes.
    pub least_longest: u32,
    /// Maximum links of a route.
    pub max_hops: u32,
    /// Constant cost, apart from lengths and entries.
    pub offset: f64,
}

/// A link or, after all links, a node that may become overloaded.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Resource {
    pub index: usize,
    /// Its capacity.
    pub most: f64,
}

impl<'a> Model<'a> {
    /// The model of a problem for a given mapping.
    pub(super) fn new(problem: &'a Problem<'a>, hosts: &'a [u32]) -> Self {
        let fabric = Fabric::new(problem);
        let switches = fabric.is_host.iter().filter(|is_host| !**is_host).count() as u32;
        let max_hops = problem.rules.max_hops.unwrap_or(u32::MAX).min(switches + 1);
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
            max_hops,
            fabric,
        };
        for ends in ends.into_values() {
            own.group(&ends);
        }
        own.least_longest = own.parts.iter().map(Graph::longest).max().unwrap_or(0);
        own.places = own.places();
        own
    }

    /// Size of the model of a problem, in pairs of a part or flow and a link.
    pub(super) fn cells(problem: &Problem<'_>) -> usize {
        let (flows, links) = (problem.flows.len(), problem.system.links.len());
        flows.div_ceil(MOST_FLOWS).saturating_add(flows).saturating_mul(links)
    }

    fn group(&mut self, ends: &[End]) {
        let first = self.parts.len();
        let count = ends.len().div_ceil(self.most_together());
        for ends in ends.chunks(ends.len().div_ceil(count)) {
            let graph =
                Graph::new(&self.fabric, ends, self.problem.rules.weights.table_entries, self.max_hops);
            self.fixed.push(graph.fixed.iter().map(|fixed| fixed / count as f64).collect());
            self.group_of.push(self.groups.len());
            self.parts.push(graph);
        }
        self.groups.push((first..self.parts.len()).collect());
    }

    /// Maximum flows of a tree that is optimised jointly: fewer if there are very many links.
    fn most_together(&self) -> usize {
        let links = self.fabric.head.len().max(1);
        (1..=MOST_FLOWS).rev().find(|&flows| links << flows <= MOST_CELLS).unwrap_or(1)
    }

    /// Links and switches that would be overloaded if every flow that can use them did.
    fn places(&self) -> Vec<Resource> {
        let links = self.fabric.head.len();
        let mut loads = self.fabric.no_loads();
        for graph in &self.parts {
            let mut nodes: BTreeMap<(usize, usize), f64> = BTreeMap::new();
            for (at, &link) in graph.links.iter().enumerate() {
                let head = self.fabric.head[link as usize] as usize;
                for (flow, end) in graph.ends.iter().enumerate() {
                    if graph.shortest[flow * graph.links.len() + at] <= self.max_hops {
                        loads[link as usize] += end.bandwidth;
                        nodes.insert((head, flow), end.bandwidth);
                    }
                }
            }
            nodes.into_iter().for_each(|((node, _), bandwidth)| loads[links + node] += bandwidth);
        }
        let place = |(index, &load): (usize, &f64)| {
            let most = self.fabric.most(index) * (1.0 + TOLERANCE);
            (load > most).then_some(Resource { index, most })
        };
        loads.iter().enumerate().filter_map(place).collect()
    }

    /// Adds the loads of the flows of a part.
    pub(super) fn load(&self, loads: &mut [f64], graph: &Graph, paths: &[Vec<u32>], sign: f64) {
        for (end, path) in graph.ends.iter().zip(paths) {
            self.fabric.load(loads, path, sign * end.bandwidth);
        }
    }

    /// The table that determines the successor of a link: that of its end node, or of its port. Hosts choose freely.
    pub(super) fn state(&self, link: u32) -> (u32, u32) {
        let node = self.fabric.head[link as usize];
        (node, if self.fabric.is_two[node as usize] { link } else { u32::MAX })
    }

    /// Whether a route passes no node twice.
    pub(super) fn is_simple(&self, path: &[u32]) -> bool {
        let tail = |at: usize| self.fabric.tail[path[at] as usize];
        (0..path.len()).all(|at| (0..at).all(|before| tail(before) != tail(at)))
    }
}
