//! The numeric model of the search: alike hosts as classes, distances between classes, and lower bounds of the table entries of
//! routes to a host.

use std::collections::{BTreeMap, BTreeSet};

use crate::problem::{Problem, TOLERANCE, Weights, devices_of, gcd};

/// Infinite distance.
pub(super) const FAR: u16 = u16::MAX / 4;
/// Maximum number of bandwidth levels with separate distances; higher bandwidths use a lower level.
const MOST_KINDS: usize = 6;
/// Maximum number of stored distances.
const MOST_DISTANCES: usize = 1 << 25;

/// Interchangeable hosts: the same links to the same nodes, the same capacities, and the same allowed processes.
#[derive(Debug, Clone)]
pub(super) struct Class {
    /// Node ids.
    pub(super) hosts: Vec<u32>,
    /// Number of the switch at which all their routes start; a separate number if there are several.
    pub(super) spot: usize,
    /// Whether that switch has a table per input port.
    pub(super) is_type_two: bool,
    /// Maximum number of processes that fit on one of the hosts.
    pub(super) most: usize,
    /// Total outgoing and incoming bandwidth of a host.
    pub(super) capacity: [f64; 2],
}

/// A stream between two different processes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Edge {
    /// Its number among the flows of the problem.
    pub(super) flow: usize,
    /// The sending process.
    pub(super) source: usize,
    /// The receiving process.
    pub(super) destination: usize,
    /// The bandwidth level: index into the distances.
    pub(super) kind: usize,
    /// Bandwidth that it uses on each link.
    pub(super) bandwidth: f64,
}

/// The numeric form of a problem for the search.
pub(super) struct Model<'a> {
    pub(super) problem: &'a Problem<'a>,
    pub(super) weights: Weights,
    pub(super) processes: usize,
    pub(super) classes: Vec<Class>,
    /// Class of every host, by node id.
    pub(super) class_of: Vec<usize>,
    pub(super) edges: Vec<Edge>,
    /// Outgoing streams of each process.
    pub(super) sends: Vec<Vec<usize>>,
    /// Incoming streams of each process.
    pub(super) receives: Vec<Vec<usize>>,
    /// Demand of each process for performance and for each device.
    pub(super) needs: Vec<Vec<f64>>,
    /// Capacity of each node for them, with the rounding tolerance.
    pub(super) has: Vec<Vec<f64>>,
    /// Whether each process may be on hosts of each class.
    pub(super) may: Vec<Vec<bool>>,
    /// Distances between classes by kind of stream; within a class, between two of its hosts.
    distances: Vec<Vec<u16>>,
    /// Slightly less than the smallest difference of costs, if all weights are integers.
    grain: Option<f64>,
    /// Distances from a node to a host of a class, by kind of stream.
    towards: Vec<Vec<u16>>,
}

impl<'a> Model<'a> {
    /// The model of problem 2; none for machines that are too large.
    pub(super) fn new(problem: &'a Problem<'a>) -> Option<Self> {
        let (processes, nodes) = (problem.allowed.len(), problem.system.nodes.len());
        if processes.saturating_mul(problem.hosts.len()) > MOST_DISTANCES {
            return None;
        }
        let (needs, has) = resources(problem);
        let alike = alike(problem);
        if alike.len().saturating_mul(nodes) > MOST_DISTANCES / MOST_KINDS {
            return None;
        }
        let mut class_of = vec![usize::MAX; nodes];
        for (class, hosts) in alike.iter().enumerate() {
            hosts.iter().for_each(|&host| class_of[host as usize] = class);
        }
        let mut may = vec![vec![false; alike.len()]; processes];
        for (may, allowed) in may.iter_mut().zip(&problem.allowed) {
            allowed.iter().for_each(|&host| may[class_of[host as usize]] = true);
        }
        let (edges, widths) = edges(problem);
        let classes = alike.into_iter().map(|hosts| class(problem, hosts, &needs, &has)).collect();
        let mut own = Self {
            weights: problem.rules.weights,
            sends: of_processes(processes, edges.iter().map(|edge| edge.source)),
            receives: of_processes(processes, edges.iter().map(|edge| edge.destination)),
            distances: Vec::new(),
            towards: Vec::new(),
            grain: grain(problem),
            problem,
            processes,
            classes,
            class_of,
            edges,
            needs,
            has,
            may,
        };
        for width in widths {
            own.measure(width);
        }
        Some(own)
    }

    /// Whether a cost is significantly less than another.
    #[inline]
    pub(super) fn improves(&self, cost: f64, than: f64) -> bool {
        match than.is_finite() {
            true => cost < than - self.grain.unwrap_or_else(|| self.problem.rules.tolerance(than, 1e-9)),
            false => cost < than,
        }
    }

    /// Distance between classes for a stream; between two hosts if the class is the same.
    #[inline]
    pub(super) fn distance(&self, kind: usize, from: usize, to: usize) -> u16 {
        self.distances[kind][from * self.classes.len() + to]
    }

    /// Distance between hosts for a stream.
    #[inline]
    pub(super) fn between(&self, kind: usize, from: u32, to: u32) -> u16 {
        match from == to {
            true => 0,
            false => self.distance(kind, self.class_of[from as usize], self.class_of[to as usize]),
        }
    }

    /// Distance from a switch to a host of a class for a stream.
    #[inline]
    pub(super) fn towards(&self, kind: usize, class: usize, node: u32) -> u16 {
        self.towards[kind][class * self.problem.system.nodes.len() + node as usize]
    }

    /// The largest finite distance between two classes.
    pub(super) fn farthest(&self) -> u16 {
        let all = self.distances.iter().flatten();
        all.copied().filter(|&distance| distance < FAR).max().unwrap_or_default()
    }

    /// The smallest distance between two classes.
    pub(super) fn nearest(&self) -> u16 {
        let all = self.distances.iter().flatten();
        all.copied().filter(|&distance| distance > 0).min().unwrap_or_default()
    }

    /// Whether processes fit into the remaining capacity of a host.
    #[inline]
    pub(super) fn fits(&self, host: u32, used: &[f64], process: usize) -> bool {
        let has = &self.has[host as usize];
        self.needs[process].iter().zip(used).zip(has).all(|((need, used), has)| need + used <= *has)
    }

    /// Whether two processes fit on one host of a class.
    pub(super) fn can_share(&self, class: usize, first: usize, second: usize) -> bool {
        self.may[first][class]
            && self.may[second][class]
            && self.fits(self.classes[class].hosts[0], &self.needs[first], second)
    }

    /// The move cost of a process on a host.
    #[inline]
    pub(super) fn move_cost(&self, process: usize, host: u32) -> f64 {
        let home = self.problem.home.as_ref();
        home.filter(|home| home.hosts[process] != host).map_or(0.0, |home| home.cost)
    }

    /// The move costs of all processes.
    pub(super) fn moves(&self, hosts: &[u32]) -> f64 {
        hosts.iter().enumerate().map(|(process, &host)| self.move_cost(process, host)).sum()
    }

    /// Streams of a process with the process at their other end.
    pub(super) fn neighbours(&self, process: usize) -> impl Iterator<Item = (usize, usize)> + '_ {
        let sends = self.sends[process].iter().map(|&edge| (edge, self.edges[edge].destination));
        sends.chain(self.receives[process].iter().map(|&edge| (edge, self.edges[edge].source)))
    }

    /// Distances over links with at least a given bandwidth.
    fn measure(&mut self, width: f64) {
        let (links, nodes) = (&self.problem.system.links, self.problem.system.nodes.len());
        let mut entering: Vec<Vec<u32>> = vec![Vec::new(); nodes];
        for (link, &capacity) in links.iter().zip(&self.problem.capacity) {
            if capacity > 0.0 && width <= capacity * (1.0 + TOLERANCE) {
                entering[link.destination as usize].push(link.source);
            }
        }
        let count = self.classes.len();
        let mut distances = vec![FAR; count * count];
        let mut towards = Vec::with_capacity(count * nodes);
        for (index, class) in self.classes.iter().enumerate() {
            let first = class.hosts[0];
            let before = |node: usize| {
                let is_passed = node == first as usize || !self.problem.network.is_host(node as u32);
                entering[node].iter().filter(move |_| is_passed).map(|&before| before as usize)
            };
            let far = hopmap_graph::distances(nodes, [first as usize], before)
                .into_iter()
                .map(|far| far.min(FAR.into()) as u16);
            let far: Vec<u16> = far.collect();
            towards.extend(&far);
            for (other, from) in self.classes.iter().enumerate() {
                let from = if other == index { from.hosts.get(1) } else { from.hosts.first() };
                distances[other * count + index] = from.map_or(FAR, |&from| far[from as usize]);
            }
        }
        self.distances.push(distances);
        self.towards.push(towards);
    }
}

/// Slightly less than the greatest common divisor of the weights.
fn grain(problem: &Problem<'_>) -> Option<f64> {
    let Weights { longest_route, total_hops, table_entries } = problem.rules.weights;
    let home = problem.home.as_ref().map_or(0.0, |home| home.cost);
    let weights = [longest_route, total_hops, table_entries, home];
    let is_whole = |weight: &f64| weight.fract().abs() < f64::EPSILON && *weight < 1e12 && *weight >= 0.0;
    let whole = weights.iter().filter(|weight| is_whole(weight));
    let divisor = whole.fold(0, |divisor, weight| gcd(divisor, *weight as u64));
    (weights.iter().all(is_whole) && divisor > 0).then_some(divisor as f64 * (1.0 - 1e-6))
}

/// Demands of processes and capacities of nodes: performance, then every device that some process needs.
fn resources(problem: &Problem<'_>) -> (Vec<Vec<f64>>, Vec<Vec<f64>>) {
    let demands = &problem.graph.demands.processes;
    let devices: BTreeSet<&String> = demands.iter().flat_map(|demand| demand.devices.keys()).collect();
    let need = |demand: &hopmap_model::ProcessDemand| {
        let count = |&device: &&String| f64::from(demand.devices.get(device).copied().unwrap_or_default());
        std::iter::once(demand.performance).chain(devices.iter().map(count)).collect()
    };
    let has = |(node, performance): (&hopmap_model::Node, &f64)| {
        let count = |device: &&String| devices_of(node, device) as f64;
        std::iter::once(performance * (1.0 + TOLERANCE)).chain(devices.iter().map(count)).collect()
    };
    let nodes = problem.system.nodes.iter().zip(&problem.performance);
    (demands.iter().map(need).collect(), nodes.map(has).collect())
}

/// Interchangeable hosts, in the order of the first host of each class.
fn alike(problem: &Problem<'_>) -> Vec<Vec<u32>> {
    let mut joined: Vec<Vec<(u32, bool, u64)>> = vec![Vec::new(); problem.system.nodes.len()];
    for (link, capacity) in problem.system.links.iter().zip(&problem.capacity) {
        if *capacity > 0.0 {
            joined[link.source as usize].push((link.destination, true, capacity.to_bits()));
            joined[link.destination as usize].push((link.source, false, capacity.to_bits()));
        }
    }
    let mut allowed: Vec<Vec<usize>> = vec![Vec::new(); problem.system.nodes.len()];
    for (process, hosts) in problem.allowed.iter().enumerate() {
        hosts.iter().for_each(|&host| allowed[host as usize].push(process));
    }
    let mut homes: Vec<Vec<usize>> = vec![Vec::new(); problem.system.nodes.len()];
    for (process, &host) in problem.home.iter().flat_map(|home| home.hosts.iter().enumerate()) {
        homes[host as usize].push(process);
    }
    joined.iter_mut().for_each(|joined| joined.sort_unstable());
    let mut classes: BTreeMap<_, usize> = BTreeMap::new();
    let mut alike: Vec<Vec<u32>> = Vec::new();
    for &host in &problem.hosts {
        let at = host as usize;
        let traits = &problem.system.nodes[at].traits;
        let means = (problem.performance[at].to_bits(), &traits.devices);
        let next = alike.len();
        let class = *classes.entry((&joined[at], &allowed[at], &homes[at], means)).or_insert_with(|| {
            alike.push(Vec::new());
            next
        });
        alike[class].push(host);
    }
    alike
}

fn class(problem: &Problem<'_>, hosts: Vec<u32>, needs: &[Vec<f64>], has: &[Vec<f64>]) -> Class {
    let host = hosts[0];
    let links = || problem.system.links.iter().zip(&problem.capacity).filter(|(_, there)| **there > 0.0);
    let all = |pick: &dyn Fn(&hopmap_model::Link) -> bool| {
        links().filter(|(link, _)| pick(link)).map(|(_, there)| there).sum::<f64>()
    };
    let next: BTreeSet<u32> =
        links().filter(|(link, _)| link.source == host).map(|(link, _)| link.destination).collect();
    let one = next.first().copied().filter(|node| next.len() == 1 && !problem.network.is_host(*node));
    let most = |resource: usize| {
        let mut sizes: Vec<f64> = needs
            .iter()
            .zip(&problem.allowed)
            .filter(|(_, allowed)| allowed.binary_search(&host).is_ok())
            .map(|(need, _)| need[resource])
            .collect();
        sizes.sort_by(f64::total_cmp);
        let mut sum = 0.0;
        let fits = sizes.iter().take_while(|size| {
            sum += **size;
            sum <= has[host as usize][resource]
        });
        fits.count()
    };
    let resources = needs.first().map_or(0, Vec::len);
    Class {
        spot: one.unwrap_or(host) as usize,
        is_type_two: one.is_some_and(|switch| problem.is_type_two(switch)),
        most: (0..resources).map(most).min().unwrap_or_default(),
        capacity: [all(&|link| link.source == host), all(&|link| link.destination == host)],
        hosts,
    }
}

/// Streams between different processes, and the minimum bandwidth of links for each kind.
fn edges(problem: &Problem<'_>) -> (Vec<Edge>, Vec<f64>) {
    let narrower = |bandwidth: f64| {
        let narrow = |capacity: &&f64| **capacity > 0.0 && bandwidth > **capacity * (1.0 + TOLERANCE);
        problem.capacity.iter().filter(narrow).count()
    };
    let mut widths: BTreeMap<usize, f64> = BTreeMap::from([(0, 0.0)]);
    for flow in &problem.flows {
        widths.entry(narrower(flow.bandwidth)).or_insert(flow.bandwidth);
    }
    let kinds: Vec<(usize, f64)> = widths.into_iter().take(MOST_KINDS).collect();
    let edge = |(index, flow): (usize, &crate::problem::Flow)| {
        let narrower = narrower(flow.bandwidth);
        let kind = kinds.iter().rposition(|(count, _)| *count <= narrower).unwrap_or_default();
        let (source, destination) = (flow.source as usize, flow.destination as usize);
        Edge { flow: index, source, destination, kind, bandwidth: flow.bandwidth }
    };
    let different = problem.flows.iter().enumerate().filter(|(_, flow)| flow.source != flow.destination);
    (different.map(edge).collect(), kinds.into_iter().map(|(_, width)| width).collect())
}

fn of_processes(processes: usize, ends: impl Iterator<Item = usize>) -> Vec<Vec<usize>> {
    let mut edges = vec![Vec::new(); processes];
    ends.enumerate().for_each(|(edge, process)| edges[process].push(edge));
    edges
}

/// Counts entries with reusable memory.
#[derive(Debug, Clone, Default)]
pub(super) struct Entries {
    /// Start switches of routes: distance from there to the destination, the switch, and the host if its port has a table.
    firsts: Vec<(u16, usize, u32)>,
}

impl Entries {
    /// Lower bound of the entries that routes to a host of a class need, given the kinds of the streams. Every route passes a
    /// switch at each distance from the destination below that of its first switch.
    pub(super) fn least(
        &mut self,
        model: &Model<'_>,
        to: usize,
        sources: impl Iterator<Item = (u32, usize)>,
    ) -> u32 {
        self.firsts.clear();
        let (mut top, mut alone, mut passes_top) = (0, 0, false);
        for (source, kind) in sources {
            let from = model.class_of[source as usize];
            let class = &model.classes[from];
            let level = model.distance(0, from, to).saturating_sub(1);
            alone = alone.max(model.distance(kind, from, to).saturating_sub(1));
            let is_one = class.spot != class.hosts[0] as usize;
            if level > top || (level == top && !is_one) {
                passes_top = !is_one;
            }
            top = top.max(level);
            if is_one && level > 0 {
                let host = if class.is_type_two { source } else { u32::MAX };
                self.firsts.push((level, class.spot, host));
            }
        }
        self.firsts.sort_unstable();
        self.firsts.dedup();
        // At a distance with only start switches that have a table per port, a route from farther away needs one more entry.
        let mut shared = 0;
        let mut last = 0;
        for (level, ..) in self.firsts.iter().filter(|(.., host)| *host == u32::MAX) {
            shared += u32::from(*level != last);
            last = *level;
        }
        let passed = u32::from(top) - u32::from(top > 0 && !passes_top);
        let is_shared_top = last == top && top > 0;
        let begun_below = shared - u32::from(is_shared_top && !passes_top);
        let more = passed - begun_below.min(passed);
        (self.firsts.len() as u32 + more).max(u32::from(alone))
    }
}
