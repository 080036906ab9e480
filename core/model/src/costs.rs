//! Costs between the slots of a machine. Costs that follow from routes can be converted to levels of a tree,
//! or else to a matrix.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};

use miette::Diagnostic;

use crate::paths::Paths;
use crate::system_graph::{
    CostModel, Levels, Link, LinkState, Matrix, NodeKind, NodeState, RouteCosts, RouteMetric, SystemGraph,
    SystemGraphError,
};

const MICROSECONDS: f64 = 1e6;

/// The costs between the slots of a machine under any cost model.
#[derive(Debug, Clone)]
pub struct Costs<'a> {
    system: &'a SystemGraph,
    /// The paths of the machine, if costs follow from routes and there are links.
    paths: Option<Cow<'a, Paths>>,
}

impl<'a> Costs<'a> {
    pub(crate) fn new(system: &'a SystemGraph) -> Self {
        let is_routed = matches!(system.cost, CostModel::Routes(_));
        Self { system, paths: if is_routed { Paths::new(system).map(Cow::Owned) } else { None } }
    }

    /// The same with paths that are already computed.
    #[must_use]
    pub fn with_paths(system: &'a SystemGraph, paths: Option<&'a Paths>) -> Self {
        match paths {
            Some(paths) => Self { system, paths: Some(Cow::Borrowed(paths)) },
            None => Self::new(system),
        }
    }

    /// Cost from one slot to another; infinite if unreachable. From a slot to itself it is zero, unless a
    /// matrix defines it.
    #[must_use]
    pub fn between(&self, a: u32, b: u32) -> f64 {
        let system = self.system;
        match &system.cost {
            CostModel::Matrix(matrix) => matrix.costs[a as usize * system.slots.len() + b as usize],
            _ if a == b => 0.0,
            CostModel::Levels(levels) => levels.costs[levels.meeting_level(a, b)],
            CostModel::Routes(routes) => {
                let [from, to] = [a, b].map(|slot| system.slots[slot as usize].host);
                match from == to {
                    true => routes.inside.costs[routes.inside.meeting_level(a, b)],
                    false => self.between_hosts(from, to, routes.metric),
                }
            }
        }
    }

    /// Dense row-major matrix of the costs among some slots.
    #[must_use]
    pub fn block(&self, slots: &[u32]) -> Vec<f64> {
        slots.iter().flat_map(|&a| slots.iter().map(move |&b| self.between(a, b))).collect()
    }

    /// Cost between two different nodes.
    fn between_hosts(&self, from: u32, to: u32, metric: RouteMetric) -> f64 {
        let Some(paths) = &self.paths else { return f64::INFINITY };
        if metric == RouteMetric::Hops {
            return paths.hops(from, to).map_or(f64::INFINITY, f64::from);
        }
        let mut sum = LinkSum::default();
        let links = &self.system.links;
        match paths.walk(from, to, |link| sum.add(&links[link as usize])) {
            true => sum.cost(metric),
            false => f64::INFINITY,
        }
    }
}

/// Sums over the links of a path.
#[derive(Debug, Clone, Copy)]
struct LinkSum {
    latency_s: f64,
    narrowest: f64,
}

impl Default for LinkSum {
    fn default() -> Self {
        Self { latency_s: 0.0, narrowest: f64::INFINITY }
    }
}

impl LinkSum {
    fn add(&mut self, link: &Link) {
        self.latency_s += link.latency_s.unwrap_or(f64::INFINITY);
        self.narrowest = self.narrowest.min(link.bandwidth_bytes_per_s.unwrap_or(0.0));
    }

    fn cost(&self, metric: RouteMetric) -> f64 {
        match metric {
            RouteMetric::Hops | RouteMetric::Latency => self.latency_s * MICROSECONDS,
            RouteMetric::Time { bytes } => (self.latency_s + bytes as f64 / self.narrowest) * MICROSECONDS,
        }
    }
}

/// Costs that follow from routes cannot be converted.
#[derive(Debug, thiserror::Error, Diagnostic)]
pub enum CostsError {
    /// A host cannot reach another one.
    #[error("host `{from}` cannot reach host `{to}`")]
    #[diagnostic(
        code(model::no_route),
        help(
            "their switches are not connected, or the forwarding tables have no route; choose hosts that reach each other \
         with select/hosts"
        )
    )]
    NoRoute {
        /// Name of the sending host.
        from: String,
        /// Name of the unreachable host.
        to: String,
    },
    /// The matrix would be too large.
    #[error(
        "the costs between {slots} slots follow from routes and do not form a tree; a matrix has at most {most} × {most} entries"
    )]
    #[diagnostic(
        code(model::too_many),
        help("choose the hosts of the job with select/hosts or select/nodes first")
    )]
    TooMany {
        /// Number of slots.
        slots: usize,
        /// Largest number of slots of a matrix.
        most: usize,
    },
}

/// Largest number of host classes between which all paths are examined.
const MOST_CLASSES: usize = 4096;
/// Largest number of distinct costs between hosts for levels of a tree.
const MOST_LEVELS: usize = 32;

/// Hosts per block of a matrix.
const BLOCK: usize = 32;
/// Classes that are examined first: most machines that are not trees are none among a few hosts.
const SAMPLE: usize = 32;

/// A host: node, first slot and number of slots.
type Host = (u32, u32, u32);

impl SystemGraph {
    /// The costs between its slots.
    #[must_use]
    pub fn costs(&self) -> Costs<'_> {
        Costs::new(self)
    }

    /// Converts costs to levels if they form a tree, otherwise to a matrix of at most `most` slots. Returns a
    /// machine with explicit costs unchanged.
    pub fn explicit(&self, most: usize) -> Result<Cow<'_, Self>, CostsError> {
        let CostModel::Routes(routes) = &self.cost else { return Ok(Cow::Borrowed(self)) };
        let cost = match self.levels(routes)? {
            Some(levels) => CostModel::Levels(levels),
            None if self.slots.len() <= most => CostModel::Matrix(self.matrix()?),
            None => return Err(CostsError::TooMany { slots: self.slots.len(), most }),
        };
        let (nodes, links, slots) = (self.nodes.clone(), self.links.clone(), self.slots.clone());
        Ok(Cow::Owned(Self {
            nodes,
            links,
            slots,
            cost,
            routing: self.routing.clone(),
            calibration: self.calibration.clone(),
        }))
    }

    /// The costs of all ordered pairs of slots.
    pub fn matrix(&self) -> Result<Matrix, CostsError> {
        let costs = self.costs();
        let count = self.slots.len();
        if !matches!(self.cost, CostModel::Routes(_)) {
            return Ok(Matrix { costs: costs.block(&(0..count as u32).collect::<Vec<_>>()) });
        }
        Ok(self.matrix_of_hosts(&self.costs_of_hosts()?))
    }

    /// The costs of all ordered pairs of slots, given those between hosts ([`Self::costs_of_hosts`]).
    #[must_use]
    pub fn matrix_of_hosts(&self, between_hosts: &[f64]) -> Matrix {
        let (costs, count) = (self.costs(), self.slots.len());
        let hosts: Vec<Host> = self.hosts().collect();
        let mut matrix = vec![0.0; count * count];
        for (row, &from) in hosts.iter().enumerate() {
            for (column, &to) in hosts.iter().enumerate() {
                let between = between_hosts[row * hosts.len() + column];
                for a in from.1..from.1 + from.2 {
                    for b in to.1..to.1 + to.2 {
                        let cost = if from == to { costs.between(a, b) } else { between };
                        matrix[a as usize * count + b as usize] = cost;
                    }
                }
            }
        }
        Matrix { costs: matrix }
    }

    /// The costs between the first slots of all ordered pairs of hosts that have slots, row by row.
    pub fn costs_of_hosts(&self) -> Result<Vec<f64>, CostsError> {
        let costs = self.costs();
        let hosts: Vec<Host> = self.hosts().collect();
        let count = hosts.len();
        let mut between = vec![0.0; count * count];
        // Blocks of sources by destination: both the costs and the distances to a destination stay in the cache.
        for (block, rows) in hosts.chunks(BLOCK).zip(between.chunks_mut(BLOCK * count.max(1))) {
            for (column, &to) in hosts.iter().enumerate() {
                for (row, &from) in rows.chunks_mut(count).zip(block) {
                    row[column] = self.reachable_cost(&costs, from, to)?;
                }
            }
        }
        Ok(between)
    }

    /// The cost between the first slots of two hosts.
    fn reachable_cost(&self, costs: &Costs<'_>, from: Host, to: Host) -> Result<f64, CostsError> {
        let cost = costs.between(from.1, to.1);
        if cost.is_infinite() {
            let name = |host: Host| self.nodes[host.0 as usize].name.clone();
            return Err(CostsError::NoRoute { from: name(from), to: name(to) });
        }
        Ok(cost)
    }

    /// The costs as levels; `None` if they do not form a tree or there are too many hosts to check.
    fn levels(&self, routes: &RouteCosts) -> Result<Option<Levels>, CostsError> {
        let hosts: Vec<Host> = self.hosts().collect();
        if hosts.len() < 2 {
            return Ok(Some(routes.inside.clone()));
        }
        let classes = Classes::new(self, &hosts, routes.metric);
        if classes.members.len() > MOST_CLASSES {
            return Ok(None);
        }
        let some = classes.members.iter().step_by(classes.members.len().div_ceil(SAMPLE)).cloned().collect();
        if self.between(&hosts, &some)?.is_none_or(|between| between.groups().is_none()) {
            return Ok(None);
        }
        let Some(between) = self.between(&hosts, &classes.members)? else { return Ok(None) };
        let is_outside = routes.inside.costs.last().zip(between.steps.first());
        if is_outside.is_some_and(|(inside, step)| inside > step) {
            return Ok(None);
        }
        let Some(groups) = between.groups() else { return Ok(None) };
        let mut levels = routes.inside.clone();
        for (step, groups) in between.steps.iter().zip(groups) {
            // Below the cost between two hosts of a class, each host is its own group.
            let is_apart =
                |class: usize| classes.members[class].len() > 1 && between.of(class, class) > *step;
            let mut numbers: HashMap<(usize, Option<usize>), u32> = HashMap::new();
            let group = |(host, slots): (usize, u32)| {
                let class = classes.of[host];
                let next = numbers.len() as u32;
                let group = *numbers.entry((groups[class], is_apart(class).then_some(host))).or_insert(next);
                std::iter::repeat_n(group, slots as usize)
            };
            let slots = hosts.iter().map(|host| host.2).enumerate();
            levels.groups.push(slots.flat_map(group).collect());
            levels.costs.push(*step);
        }
        Ok(Some(levels))
    }

    /// The costs between classes; `None` if there are too many distinct ones.
    fn between(&self, hosts: &[Host], members: &Members) -> Result<Option<Between>, CostsError> {
        let costs = self.costs();
        let count = members.len();
        let mut steps = BTreeSet::new();
        let mut between = vec![0.0; count * count];
        for a in 0..count {
            for b in 0..count {
                // All pairs of hosts of a class have the same cost.
                let pair = match members[a].as_slice() {
                    [_] if a == b => continue,
                    [first, second, ..] if a == b => [*first, *second],
                    _ => [members[a][0], members[b][0]],
                };
                let [from, to] = pair.map(|host| hosts[host]);
                let cost = self.reachable_cost(&costs, from, to)?;
                between[a * count + b] = cost;
                steps.insert(cost.to_bits());
                if steps.len() > MOST_LEVELS {
                    return Ok(None);
                }
            }
        }
        // The bit patterns of non-negative floats are ordered like the numbers.
        Ok(Some(Between { costs: between, count, steps: steps.into_iter().map(f64::from_bits).collect() }))
    }
}

impl SystemGraph {
    /// The same machine with costs that follow from its links. The groups inside hosts stay. Their costs stay
    /// if the metric does; otherwise they are [steps](RouteMetric::steps).
    pub fn with_metric(&self, metric: RouteMetric) -> Result<Self, SystemGraphError> {
        let inside = match &self.cost {
            CostModel::Routes(routes) if routes.metric == metric => routes.inside.clone(),
            CostModel::Routes(routes) => self.stepped(metric, routes.inside.groups.clone()),
            CostModel::Levels(levels) => self.stepped(metric, self.groups_inside(levels)),
            CostModel::Matrix(_) => self.stepped(metric, self.groups_inside(&Levels::default())),
        };
        let system = Self { cost: CostModel::Routes(RouteCosts { metric, inside }), ..self.clone() };
        system.check()?;
        Ok(system)
    }

    fn stepped(&self, metric: RouteMetric, groups: Vec<Vec<u32>>) -> Levels {
        Levels { costs: metric.steps(groups.len(), &self.links), groups }
    }

    /// The groups of the levels on which no two hosts meet, and the hosts.
    fn groups_inside(&self, levels: &Levels) -> Vec<Vec<u32>> {
        let hosts: Vec<u32> = self.slots.iter().map(|slot| slot.host).collect();
        let is_inside = |groups: &&Vec<u32>| {
            let mut host_of = HashMap::new();
            groups.iter().zip(&hosts).all(|(group, host)| host_of.entry(group).or_insert(host) == &host)
        };
        let mut inside: Vec<Vec<u32>> = levels.groups.iter().take_while(is_inside).cloned().collect();
        let are_hosts = |groups: &Vec<u32>| {
            groups.windows(2).zip(hosts.windows(2)).all(|(a, b)| (a[0] == a[1]) == (b[0] == b[1]))
        };
        if !inside.last().is_some_and(are_hosts) {
            inside.push(hosts);
        }
        inside
    }
}

/// The hosts of every class.
type Members = Vec<Vec<usize>>;

/// The costs between classes of hosts.
struct Between {
    costs: Vec<f64>,
    count: usize,
    /// All distinct costs, ascending.
    steps: Vec<f64>,
}

impl Between {
    fn of(&self, a: usize, b: usize) -> f64 {
        self.costs[a * self.count + b]
    }

    /// For each step the group of each class, if the classes within that cost form an equivalence relation.
    fn groups(&self) -> Option<Vec<Vec<usize>>> {
        self.steps.iter().map(|&step| self.groups_of(step)).collect()
    }

    fn groups_of(&self, step: f64) -> Option<Vec<usize>> {
        let mut heads: Vec<usize> = Vec::new();
        let mut groups = Vec::with_capacity(self.count);
        for class in 0..self.count {
            let near = heads.iter().position(|&head| self.of(class, head) <= step);
            groups.push(near.unwrap_or_else(|| {
                heads.push(class);
                heads.len() - 1
            }));
        }
        let fits = |a: usize, b: usize| a == b || (groups[a] == groups[b]) == (self.of(a, b) <= step);
        (0..self.count).all(|a| (0..self.count).all(|b| fits(a, b))).then_some(groups)
    }
}

/// Attachment of a host to the network: the switches of its ports, the direction, and the link attributes.
type Ports = Vec<(u32, bool, Width)>;

/// Latency and bandwidth of a link, as bit patterns.
type Width = (Option<u64>, Option<u64>);

/// Hosts by class: all paths between hosts of two classes have the same cost.
///
/// Hosts attached to the same switch by one link form a class if only the number of links counts, or if all
/// links between switches are equal. With forwarding tables or links between hosts, every host is its own
/// class.
struct Classes {
    /// The class of each host, in slot order.
    of: Vec<usize>,
    members: Members,
}

impl Classes {
    /// Classifies hosts given by node, first slot and number of slots.
    fn new(system: &SystemGraph, hosts: &[(u32, u32, u32)], metric: RouteMetric) -> Self {
        let of = match is_regular(system, metric) {
            true => by_ports(system, hosts),
            false => (0..hosts.len()).collect(),
        };
        let mut members = vec![Vec::new(); of.iter().max().map_or(0, |most| most + 1)];
        of.iter().enumerate().for_each(|(host, &class)| members[class].push(host));
        Self { of, members }
    }
}

/// Whether paths with equal numbers of links between switches have equal costs.
fn is_regular(system: &SystemGraph, metric: RouteMetric) -> bool {
    let is_host = |node: u32| system.nodes[node as usize].kind == NodeKind::Host;
    let mut between = system.links.iter().filter(|link| !is_host(link.source) && !is_host(link.destination));
    let first = between.next().map(width);
    system.routing.forwarding.is_empty()
        && !system.links.iter().any(|link| is_host(link.source) && is_host(link.destination))
        && (metric == RouteMetric::Hops || between.all(|link| Some(width(link)) == first))
}

fn width(link: &Link) -> Width {
    let bits = |number: Option<f64>| number.map(f64::to_bits);
    (bits(link.latency_s), bits(link.bandwidth_bytes_per_s))
}

fn by_ports(system: &SystemGraph, hosts: &[(u32, u32, u32)]) -> Vec<usize> {
    let is_host = |node: u32| system.nodes[node as usize].kind == NodeKind::Host;
    let is_up = |node: u32| system.nodes[node as usize].state == NodeState::Up;
    let mut ports: HashMap<u32, Ports> = HashMap::new();
    for link in system.links.iter().filter(|link| link.state == LinkState::Up) {
        let (host, switch, is_sent) = match (is_host(link.source), is_host(link.destination)) {
            (true, _) => (link.source, link.destination, true),
            (_, true) => (link.destination, link.source, false),
            (false, false) => continue,
        };
        if is_up(host) && is_up(switch) {
            ports.entry(host).or_default().push((switch, is_sent, width(link)));
        }
    }
    let mut classes: HashMap<Ports, usize> = HashMap::new();
    let mut next = 0;
    let mut new = || {
        next += 1;
        next - 1
    };
    let class = |&(node, ..): &(u32, u32, u32)| match ports.remove(&node) {
        Some(mut own) if own.len() == 2 => {
            own.sort_unstable();
            *classes.entry(own).or_insert_with(&mut new)
        }
        _ => new(),
    };
    hosts.iter().map(class).collect()
}
