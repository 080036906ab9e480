//! Simulated annealing of mappings (Metropolis acceptance, geometric cooling) on an estimate: every stream is spread evenly over
//! its shortest paths.

use hopmap_model::seed_stream;
use hopmap_random::{Draw, Pcg64, Rng, SeedableRng};

use super::model::{Entries, FAR, Model};
use crate::engine::StopCondition;

/// Number of islands in a round of annealing.
pub(super) const ISLANDS: u64 = 4;
/// Number of mappings that an island returns.
const CANDIDATES: usize = 6;
/// Proposals between checks of the clock.
const BREATH: u64 = 1024;
/// Number of hosts that are proposed near another one.
const NEAR: usize = 12;
/// Initial and final temperature, relative to the cost of a hop and an entry.
const HOT: f64 = 1.5;
const COLD: f64 = 0.12;
/// Maximum number of orders in which the initial mapping is attempted.
const MOST_STARTS: u64 = 60;

/// Data shared by all islands.
pub(super) struct Annealer<'m, 'a> {
    model: &'m Model<'a>,
    shortest: &'m ShortestPaths,
    /// Hosts near each class.
    near: Vec<Vec<u32>>,
    /// Initial mappings.
    pub(super) starts: Vec<Vec<u32>>,
}

impl<'m, 'a> Annealer<'m, 'a> {
    pub(super) fn new(model: &'m Model<'a>, shortest: &'m ShortestPaths) -> Self {
        let near = |class: usize| {
            let mut others: Vec<usize> = (0..model.classes.len()).collect();
            others.sort_by_key(|&other| if other == class { 0 } else { model.distance(0, class, other) });
            let hosts = others.iter().flat_map(|&other| &model.classes[other].hosts).copied();
            let least = NEAR.max(model.classes[class].hosts.len() + NEAR / 2);
            hosts.take(least).collect()
        };
        let near = (0..model.classes.len()).map(near).collect();
        let mut own = Self { near, model, shortest, starts: Vec::new() };
        own.starts = (0..ISLANDS).filter_map(|island| own.start(island)).collect();
        own
    }

    /// A greedy feasible mapping with processes near their partners; none if none was found.
    fn start(&self, island: u64) -> Option<Vec<u32>> {
        (0..MOST_STARTS)
            .find_map(|number| self.placed(&mut stream(1000 + island * MOST_STARTS + number), number))
    }

    fn placed(&self, random: &mut Pcg64, number: u64) -> Option<Vec<u32>> {
        let model = self.model;
        let mut order: Vec<(usize, i64, usize, usize)> = (0..model.processes)
            .map(|process| {
                let size = (model.needs[process].first().copied().unwrap_or_default() * 1e6) as i64;
                let tie = random.index(1 << 20);
                // Processes with the fewest hosts first, then the largest; later attempts order by size only.
                let few = if number.is_multiple_of(2) { model.problem.allowed[process].len() } else { 0 };
                (few, -size, tie, process)
            })
            .collect();
        order.sort_unstable();
        let mut hosts = vec![u32::MAX; model.processes];
        let mut used =
            vec![vec![0.0; model.needs.first().map_or(0, Vec::len)]; model.problem.system.nodes.len()];
        for (.., process) in order {
            let fits = |host: &&u32| model.fits(**host, &used[**host as usize], process);
            let cost = |host: u32| {
                let links = model.neighbours(process).filter(|(_, other)| hosts[*other] != u32::MAX);
                let links = links.map(|(edge, other)| {
                    let distance = model.between(model.edges[edge].kind, host, hosts[other]);
                    f64::from(distance.min(FAR))
                });
                model.weights.total_hops.max(1.0) * links.sum::<f64>() + model.move_cost(process, host)
            };
            let mut best: Option<(f64, usize, u32)> = None;
            for &host in model.problem.allowed[process].iter().filter(fits) {
                let key = (cost(host), random.index(1 << 20), host);
                if best.is_none_or(|best| key < best) {
                    best = Some(key);
                }
            }
            let host = best?.2;
            hosts[process] = host;
            let there = used[host as usize].iter_mut();
            there.zip(&model.needs[process]).for_each(|(used, need)| *used += need);
        }
        Some(hosts)
    }

    /// The best mappings of one island, the best first.
    pub(super) fn island(
        &self,
        island: u64,
        aim: Aim,
        proposals: u64,
        stop: &StopCondition<'_>,
    ) -> Vec<(f64, Vec<u32>)> {
        let start = &self.starts[(island % ISLANDS) as usize % self.starts.len()];
        let mut random = stream(island);
        let mut state = Estimate::new(self.model, self.shortest, aim, start);
        let free: Vec<usize> = (0..self.model.processes)
            .filter(|&process| self.model.problem.allowed[process].len() > 1)
            .collect();
        let mut cost = state.cost();
        let mut best = vec![(cost, start.clone())];
        if free.is_empty() {
            return best;
        }
        let weights = self.model.weights;
        let both = weights.total_hops + weights.table_entries;
        let unit = if both > 0.0 { both } else { aim.beyond.max(1.0) };
        let cooling = libm::log(COLD / HOT);
        let mut temperature = HOT * unit;
        for number in 0..proposals {
            if number.is_multiple_of(BREATH) {
                if stop.should_stop() || stop.seconds_left().is_some_and(|left| left <= 0.0) {
                    break;
                }
                temperature = HOT * unit * libm::exp(cooling * number as f64 / proposals as f64);
            }
            let Some(changes) = self.proposal(&state, &free, &mut random) else { continue };
            let limit = cost + slack(&mut random, temperature);
            let back = changes.map(|(process, _)| (process, state.hosts[process]));
            changes.iter().for_each(|&(process, host)| state.put(process, host));
            state.settle();
            let now = state.cost();
            if now > limit {
                back.iter().for_each(|&(process, host)| state.put(process, host));
                state.settle();
                continue;
            }
            cost = now;
            if cost < best[0].0 - 1e-7 * unit {
                best.insert(0, (cost, state.hosts.clone()));
                best.truncate(CANDIDATES);
            }
        }
        best
    }

    /// A move of one process, or a swap of two, as two steps; the second may equal the first.
    fn proposal(&self, state: &Estimate<'_, '_>, free: &[usize], random: &mut Pcg64) -> Option<Move> {
        let model = self.model;
        let process = free[random.index(free.len())];
        let degree = model.sends[process].len() + model.receives[process].len();
        let allowed = &model.problem.allowed[process];
        let host = if degree > 0 && random.index(4) > 0 {
            let (_, other) = model.neighbours(process).nth(random.index(degree))?;
            let near = &self.near[model.class_of[state.hosts[other] as usize]];
            near[random.index(near.len())]
        } else {
            allowed[random.index(allowed.len())]
        };
        let before = state.hosts[process];
        if host == before {
            return None;
        }
        let others = &state.on[host as usize];
        let swaps = !others.is_empty() && random.index(2) == 0;
        if !swaps && state.has_room(process, host, None) {
            return Some([(process, host); 2]);
        }
        let other = *others.get(random.index(others.len().max(1)))?;
        let both = state.has_room(process, host, Some(other)) && state.has_room(other, before, Some(process));
        both.then_some([(process, host), (other, before)])
    }
}

/// Processes and their new hosts, in sequence.
type Move = [(usize, u32); 2];

/// Maximum number of classes between which shortest paths are stored.
const MOST_CLASSES: usize = 256;
/// Number of hops that an undeliverable stream counts as.
const UNROUTED_PENALTY: f64 = 1000.0;

/// Shortest paths between classes: links between switches, with the fraction of a stream on each.
pub(super) struct ShortestPaths {
    classes: usize,
    begins: Vec<u32>,
    parts: Vec<(u32, f64)>,
}

/// Weights of the parts of the cost during annealing.
#[derive(Debug, Clone, Copy)]
pub(super) struct Aim {
    /// Hop limit of a route.
    pub(super) longest: u16,
    /// Weight of each hop beyond the limit.
    pub(super) beyond: f64,
    /// Weight of the total relative overload of links.
    pub(super) overload: f64,
}

/// A mapping with its cost, updated incrementally.
pub(super) struct Estimate<'m, 'a> {
    model: &'m Model<'a>,
    shortest: &'m ShortestPaths,
    aim: Aim,
    pub(super) hosts: Vec<u32>,
    /// Processes on every node.
    pub(super) on: Vec<Vec<usize>>,
    used: Vec<Vec<f64>>,
    links: f64,
    beyond: f64,
    moves: f64,
    loads: LinkLoads,
    entries: EntryCounts,
}

/// Loads of links.
struct LinkLoads {
    links: Vec<f64>,
    /// Outgoing and incoming traffic of every host.
    ends: [Vec<f64>; 2],
    /// Sum of the relative overloads.
    over: f64,
}

/// Lower bound of the table entries for the streams to every host.
struct EntryCounts {
    least: Vec<u32>,
    sum: u32,
    counter: Entries,
    /// Hosts whose entry count may have changed.
    touched: Vec<u32>,
}

impl ShortestPaths {
    /// Shortest paths over links of any bandwidth.
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

    /// Splits the stream evenly over all links that get closer, node by node.
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
    // Residues of removed loads are rounding.
    if load > capacity + 1e-9 * capacity.abs() { load / capacity.max(1e-9 * load) - 1.0 } else { 0.0 }
}

impl<'m, 'a> Estimate<'m, 'a> {
    /// The estimate of a mapping.
    pub(super) fn new(model: &'m Model<'a>, shortest: &'m ShortestPaths, aim: Aim, hosts: &[u32]) -> Self {
        let nodes = model.problem.system.nodes.len();
        let resources = model.needs.first().map_or(0, Vec::len);
        let mut own = Self {
            hosts: hosts.to_vec(),
            on: vec![Vec::new(); nodes],
            used: vec![vec![0.0; resources]; nodes],
            loads: LinkLoads {
                links: vec![0.0; model.problem.capacity.len()],
                ends: [vec![0.0; nodes], vec![0.0; nodes]],
                over: 0.0,
            },
            entries: EntryCounts {
                least: vec![0; nodes],
                sum: 0,
                counter: Entries::default(),
                touched: Vec::new(),
            },
            links: 0.0,
            beyond: 0.0,
            moves: 0.0,
            model,
            shortest,
            aim,
        };
        for (process, &host) in hosts.iter().enumerate() {
            own.on[host as usize].push(process);
            own.moves += model.move_cost(process, host);
            let used = own.used[host as usize].iter_mut();
            used.zip(&model.needs[process]).for_each(|(used, need)| *used += need);
        }
        (0..model.edges.len()).for_each(|edge| own.count(edge, 1.0));
        own.entries.touched.extend(hosts);
        own.settle();
        own
    }

    /// The cost of the mapping.
    pub(super) fn cost(&self) -> f64 {
        let weights = self.model.weights;
        weights.total_hops * self.links
            + self.aim.beyond * self.beyond
            + weights.table_entries * f64::from(self.entries.sum)
            + self.aim.overload * self.loads.over
            + self.moves
    }

    /// Whether a process fits on a host that another process leaves.
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

    /// Puts a process on a host. [`Self::settle`] updates the entry counts.
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
        self.entries.touched.extend([before, host]);
        let ends = model.sends[process].iter().map(|&edge| self.hosts[model.edges[edge].destination]);
        self.entries.touched.extend(ends);
    }

    /// Recounts the entries of destinations that changed.
    pub(super) fn settle(&mut self) {
        let mut touched = std::mem::take(&mut self.entries.touched);
        touched.sort_unstable();
        touched.dedup();
        let (model, hosts) = (self.model, &self.hosts);
        for &host in &touched {
            let edges = self.on[host as usize].iter().flat_map(|&process| &model.receives[process]);
            let sources = edges.map(|&edge| (hosts[model.edges[edge].source], model.edges[edge].kind));
            let sources = sources.filter(|(source, _)| *source != host);
            let least = self.entries.counter.least(model, model.class_of[host as usize], sources);
            self.entries.sum = self.entries.sum + least - self.entries.least[host as usize];
            self.entries.least[host as usize] = least;
        }
        touched.clear();
        self.entries.touched = touched;
    }

    /// Adds a stream to the sums, or removes it.
    fn count(&mut self, edge: usize, sign: f64) {
        let edge = self.model.edges[edge];
        let (from, to) = (self.hosts[edge.source], self.hosts[edge.destination]);
        if from == to {
            return;
        }
        let distance = self.model.between(edge.kind, from, to);
        let links = if distance >= FAR { UNROUTED_PENALTY } else { f64::from(distance) };
        self.links += sign * links;
        self.beyond += sign * (links - f64::from(self.aim.longest)).max(0.0);
        let load = sign * edge.bandwidth;
        let [a, b] = [from, to].map(|host| self.model.class_of[host as usize]);
        for (end, host, class) in [(0, from, a), (1, to, b)] {
            let capacity = self.model.classes[class].capacity[end];
            let there = &mut self.loads.ends[end][host as usize];
            self.loads.over += excess(*there + load, capacity) - excess(*there, capacity);
            *there += load;
        }
        let shortest = self.shortest;
        for &(link, part) in shortest.parts(a, b) {
            let capacity = self.model.problem.capacity[link as usize];
            let there = &mut self.loads.links[link as usize];
            self.loads.over += excess(*there + load * part, capacity) - excess(*there, capacity);
            *there += load * part;
        }
    }
}

/// Names the random number streams of the search.
const KIND: &str = "route/search";
/// Seed of the search, which has no seed parameter.
const SEED: u64 = 1;

/// The random number stream of an island.
pub(super) fn stream(island: u64) -> Pcg64 {
    Pcg64::from_seed(seed_stream(KIND, SEED, island))
}

/// Largest cost increase that a proposal may have at a temperature (Metropolis).
pub(super) fn slack(random: &mut Pcg64, temperature: f64) -> f64 {
    -libm::log((f64::from(random.next_u32()) + 0.5) / 4_294_967_296.0) * temperature
}
