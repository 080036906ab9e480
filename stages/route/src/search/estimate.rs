//! What a mapping costs if every stream takes shortest ways, in equal parts where there are several.

use super::entries::Entries;
use super::model::{FAR, Model};

/// Classes between which shortest ways are kept at most.
const MOST_CLASSES: usize = 256;
/// Links that a stream that cannot arrive counts as.
const NO_WAY: f64 = 1000.0;

/// Shortest ways between classes: links between switches and which part of a stream takes each.
pub(super) struct Ways {
    classes: usize,
    begins: Vec<u32>,
    parts: Vec<(u32, f64)>,
}

/// What the parts of a mapping's cost weigh while it is looked for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Aim {
    /// Links that no route should have more than.
    pub(super) longest: u16,
    /// A link beyond that.
    pub(super) beyond: f64,
    /// Everything that links carry beyond their capacity, in parts of it.
    pub(super) overload: f64,
}

/// A mapping with what it costs, changed process by process.
pub(super) struct Estimate<'m, 'a> {
    model: &'m Model<'a>,
    ways: &'m Ways,
    aim: Aim,
    pub(super) hosts: Vec<u32>,
    /// Processes on every node.
    pub(super) on: Vec<Vec<usize>>,
    used: Vec<Vec<f64>>,
    links: f64,
    beyond: f64,
    moves: f64,
    over: f64,
    loads: Vec<f64>,
    /// What leaves and enters every node that is a host.
    ends: [Vec<f64>; 2],
    least: Vec<u32>,
    entries: u32,
    counter: Entries,
    touched: Vec<u32>,
}

impl Ways {
    /// Shortest ways over links of any bandwidth.
    pub(super) fn new(model: &Model<'_>) -> Self {
        let classes = model.classes.len();
        let mut own = Self { classes, begins: vec![0], parts: Vec::new() };
        if classes > MOST_CLASSES {
            own.classes = 0;
            return own;
        }
        for from in 0..classes {
            for to in 0..classes {
                own.between(model, from, to);
                own.begins.push(own.parts.len() as u32);
            }
        }
        own
    }

    /// Goes on from node to node in equal parts over all links that get closer.
    fn between(&mut self, model: &Model<'_>, from: usize, to: usize) {
        let distance = model.distance(0, from, to);
        if from == to || distance >= FAR {
            return;
        }
        let problem = model.problem;
        let mut front = vec![(model.classes[from].hosts[0], 1.0)];
        for rest in (1..distance).rev() {
            let mut next: Vec<(u32, f64)> = Vec::new();
            for (node, part) in front {
                let closer = |link: &&u32| {
                    let there = &problem.system.links[**link as usize];
                    problem.capacity[**link as usize] > 0.0
                        && !problem.network.is_host(there.destination)
                        && model.towards(0, to, there.destination) == rest
                };
                let count = problem.network.leaving(node).iter().filter(closer).count() as f64;
                for &link in problem.network.leaving(node).iter().filter(closer) {
                    let end = problem.system.links[link as usize].destination;
                    match next.iter_mut().find(|(node, _)| *node == end) {
                        Some((_, sum)) => *sum += part / count,
                        None => next.push((end, part / count)),
                    }
                    if !problem.network.is_host(node) && problem.capacity[link as usize].is_finite() {
                        self.parts.push((link, part / count));
                    }
                }
            }
            front = next;
        }
    }

    fn parts(&self, from: usize, to: usize) -> &[(u32, f64)] {
        if self.classes == 0 {
            return &[];
        }
        let at = from * self.classes + to;
        &self.parts[self.begins[at] as usize..self.begins[at + 1] as usize]
    }
}

fn excess(load: f64, capacity: f64) -> f64 {
    // What is left of sums that were taken away again is no load.
    if load > capacity + 1e-9 * capacity.abs() { load / capacity.max(1e-9 * load) - 1.0 } else { 0.0 }
}

impl<'m, 'a> Estimate<'m, 'a> {
    /// The estimate of a mapping.
    pub(super) fn new(model: &'m Model<'a>, ways: &'m Ways, aim: Aim, hosts: &[u32]) -> Self {
        let nodes = model.problem.system.nodes.len();
        let resources = model.needs.first().map_or(0, Vec::len);
        let mut own = Self {
            hosts: hosts.to_vec(),
            on: vec![Vec::new(); nodes],
            used: vec![vec![0.0; resources]; nodes],
            loads: vec![0.0; model.problem.capacity.len()],
            ends: [vec![0.0; nodes], vec![0.0; nodes]],
            least: vec![0; nodes],
            counter: Entries::default(),
            touched: Vec::new(),
            links: 0.0,
            beyond: 0.0,
            moves: 0.0,
            over: 0.0,
            entries: 0,
            model,
            ways,
            aim,
        };
        for (process, &host) in hosts.iter().enumerate() {
            own.on[host as usize].push(process);
            own.moves += model.move_cost(process, host);
            let used = own.used[host as usize].iter_mut();
            used.zip(&model.needs[process]).for_each(|(used, need)| *used += need);
        }
        (0..model.edges.len()).for_each(|edge| own.count(edge, 1.0));
        own.touched.extend(hosts);
        own.settle();
        own
    }

    /// What the mapping costs.
    pub(super) fn cost(&self) -> f64 {
        let weights = self.model.weights;
        weights.hops * self.links
            + self.aim.beyond * self.beyond
            + weights.entries * f64::from(self.entries)
            + self.aim.overload * self.over
            + self.moves
    }

    /// Whether a process can go to a host, from which another one leaves.
    pub(super) fn has_room(&self, process: usize, host: u32, leaves: Option<usize>) -> bool {
        let model = self.model;
        if !model.may[process][model.class_of[host as usize]] {
            return false;
        }
        let used = &self.used[host as usize];
        match leaves {
            None => model.fits(host, used, process),
            Some(other) => {
                let rest = used.iter().zip(&model.needs[other]).map(|(used, need)| used - need);
                rest.zip(&model.needs[process])
                    .zip(&model.has[host as usize])
                    .all(|((rest, need), has)| rest + need <= *has)
            }
        }
    }

    /// Puts a process on a host. [`Self::settle`] counts entries again.
    pub(super) fn put(&mut self, process: usize, host: u32) {
        let model = self.model;
        let before = self.hosts[process];
        let edges = || model.neighbours(process).map(|(edge, _)| edge);
        edges().for_each(|edge| self.count(edge, -1.0));
        self.hosts[process] = host;
        edges().for_each(|edge| self.count(edge, 1.0));
        self.moves += model.move_cost(process, host) - model.move_cost(process, before);
        self.on[before as usize].retain(|&other| other != process);
        self.on[host as usize].push(process);
        for (resource, need) in model.needs[process].iter().enumerate() {
            self.used[before as usize][resource] -= need;
            self.used[host as usize][resource] += need;
        }
        self.touched.extend([before, host]);
        let ends = model.sends[process].iter().map(|&edge| self.hosts[model.edges[edge].destination]);
        self.touched.extend(ends);
    }

    /// Counts the entries of destinations that changed.
    pub(super) fn settle(&mut self) {
        let mut touched = std::mem::take(&mut self.touched);
        touched.sort_unstable();
        touched.dedup();
        let (model, hosts) = (self.model, &self.hosts);
        for &host in &touched {
            let edges = self.on[host as usize].iter().flat_map(|&process| &model.receives[process]);
            let sources = edges.map(|&edge| (hosts[model.edges[edge].source], model.edges[edge].kind));
            let sources = sources.filter(|(source, _)| *source != host);
            let least = self.counter.least(model, model.class_of[host as usize], sources);
            self.entries = self.entries + least - self.least[host as usize];
            self.least[host as usize] = least;
        }
        touched.clear();
        self.touched = touched;
    }

    /// Adds a stream to what is counted, or takes it away.
    fn count(&mut self, edge: usize, sign: f64) {
        let edge = self.model.edges[edge];
        let (from, to) = (self.hosts[edge.source], self.hosts[edge.destination]);
        if from == to {
            return;
        }
        let distance = self.model.between(edge.kind, from, to);
        let links = if distance >= FAR { NO_WAY } else { f64::from(distance) };
        self.links += sign * links;
        self.beyond += sign * (links - f64::from(self.aim.longest)).max(0.0);
        let load = sign * edge.bandwidth;
        let [a, b] = [from, to].map(|host| self.model.class_of[host as usize]);
        for (end, host, class) in [(0, from, a), (1, to, b)] {
            let capacity = self.model.classes[class].capacity[end];
            let there = &mut self.ends[end][host as usize];
            self.over += excess(*there + load, capacity) - excess(*there, capacity);
            *there += load;
        }
        let ways = self.ways;
        for &(link, part) in ways.parts(a, b) {
            let capacity = self.model.problem.capacity[link as usize];
            let there = &mut self.loads[link as usize];
            self.over += excess(*there + load * part, capacity) - excess(*there, capacity);
            *there += load * part;
        }
    }
}
