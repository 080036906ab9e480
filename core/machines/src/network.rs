//! Networks other than trees: parsing of their shapes, and the machine around them.

use std::collections::HashMap;

use hopmap_model::{CostModel, Forward, Levels, Link, Node, RouteCosts, Routing, Slot, SystemGraph, Ties};

use crate::params::{
    CostMetric, MAX_LEVELS, MAX_SLOTS, MachineError, SyntheticParams, too_many_levels, too_many_slots, unfit,
};
use crate::rates::{cable, check_rates};
use crate::tree::{check_names, host_nodes};

/// Largest number of directed links.
const MAX_LINKS: u64 = 1 << 26;

/// Largest number of forwarding table entries.
const MAX_ENTRIES: u64 = 1 << 25;

/// A shape other than a tree.
pub(crate) trait Network {
    fn hosts(&self) -> u64;

    /// Number of directed links.
    fn links(&self) -> u64;

    /// Number of kinds of cables.
    fn kinds(&self) -> usize;

    /// Number of forwarding table entries.
    fn entries(&self) -> u64 {
        0
    }

    fn fabric(&self) -> Fabric;
}

/// Switches and links of a network. Hosts are the first nodes.
pub(crate) struct Fabric {
    /// Names of the switches.
    pub(crate) switches: Vec<String>,
    /// Ends and kind of each cable.
    pub(crate) cables: Vec<(u32, u32, usize)>,
    pub(crate) ties: Ties,
    /// Static forwarding tables if routes are not the shortest. The two directions of cable `n` are links `2
    /// n` and `2 n + 1`.
    pub(crate) forwarding: Vec<Forward>,
}

/// The network of a shape; `None` if it is a tree or unknown.
pub(crate) fn of(params: &SyntheticParams) -> Result<Option<Box<dyn Network>>, MachineError> {
    let shape = params.shape.as_str();
    let Some((kind, sizes)) = shape.split_once(':') else { return Ok(None) };
    Ok(Some(match kind {
        "fat-tree" => Box::new(FatTree::new(shape, sizes)?),
        "torus" => Box::new(Grid::new(shape, sizes, true)?),
        "mesh" => Box::new(Grid::new(shape, sizes, false)?),
        "ring" => Box::new(Grid::ring(shape, sizes)?),
        "dragonfly" => Box::new(Dragonfly::new(shape, sizes)?),
        _ => return Ok(None),
    }))
}

/// Checks the parameters for such a shape.
pub(crate) fn check(network: &dyn Network, params: &SyntheticParams) -> Result<(), MachineError> {
    let wrong = |parameter, problem: &str| Err(unfit(&params.shape, parameter, problem));
    if !params.costs.is_empty() {
        return wrong("costs", "applies to trees only: message costs follow from the links");
    }
    if params.host_level.is_some() {
        return wrong("host_level", "applies to trees only: use `cores`");
    }
    let cores = params.cores.iter().try_fold(1_u64, |all, &cores| all.checked_mul(u64::from(cores)));
    let slots = cores.and_then(|cores| cores.checked_mul(network.hosts()));
    if params.cores.contains(&0) || params.cores.len() > MAX_LEVELS {
        return wrong("cores", "must be a list of numbers above zero");
    }
    if slots.is_none_or(|slots| slots > u64::from(MAX_SLOTS)) {
        return Err(too_many_slots(&params.shape));
    }
    if network.links() > MAX_LINKS {
        return wrong("shape", &format!("has {} links, more than {MAX_LINKS}", network.links()));
    }
    check_rates(params, network.kinds())?;
    if network.entries() > MAX_ENTRIES {
        return wrong("shape", &format!("has more than {MAX_ENTRIES} entries in its forwarding tables"));
    }
    check_costs(params)
}

fn check_costs(params: &SyntheticParams) -> Result<(), MachineError> {
    let wrong = |parameter, problem| Err(unfit(&params.shape, parameter, problem));
    match (params.cost.unwrap_or_default(), params.bytes) {
        (CostMetric::Time, None) => {
            return wrong("bytes", "is missing: the time of a message depends on it");
        }
        (CostMetric::Hops | CostMetric::Latency, Some(_)) => {
            return wrong("bytes", "applies only if `cost` is `time`");
        }
        (CostMetric::Latency | CostMetric::Time, _) if params.link_latency_s.is_empty() => {
            return wrong("link_latency_s", "is missing, but `cost` depends on it");
        }
        (CostMetric::Time, _) if params.bandwidth_bytes_per_s.is_empty() => {
            return wrong("bandwidth_bytes_per_s", "is missing, but `cost` depends on it");
        }
        _ => {}
    }
    let is_rising = params.intra_node_costs.windows(2).all(|pair| pair[0] <= pair[1]);
    let is_good = |cost: &f64| cost.is_finite() && *cost >= 0.0;
    let count = params.cores.len().max(1);
    match params.intra_node_costs.is_empty()
        || (params.intra_node_costs.len() == count
            && is_rising
            && params.intra_node_costs.iter().all(is_good))
    {
        true => Ok(()),
        false => wrong("intra_node_costs", "must have one cost for every level of `cores`, non-decreasing"),
    }
}

/// The machine: hosts, then switches; slots host by host.
pub(crate) fn machine(network: &dyn Network, params: &SyntheticParams) -> Result<SystemGraph, MachineError> {
    check(network, params)?;
    let hosts = network.hosts() as usize;
    let mut nodes = host_nodes(params, hosts)?;
    let fabric = network.fabric();
    nodes.extend(fabric.switches.into_iter().map(Node::switch));
    check_names(&nodes)?;
    let links: Vec<Link> = fabric.cables.into_iter().flat_map(|ends| cable(ends, params)).collect();
    let cores: u32 = params.cores.iter().product();
    let count = hosts as u32 * cores;
    let metric = params.cost.unwrap_or_default().of_routes(params.bytes);
    let mut size = 1;
    let mut groups: Vec<Vec<u32>> = Vec::new();
    for &branches in if params.cores.is_empty() { &[1][..] } else { &params.cores } {
        size *= branches;
        groups.push((0..count).map(|slot| slot / size).collect());
    }
    let costs = match params.intra_node_costs.is_empty() {
        true => metric.steps(groups.len(), &links),
        false => params.intra_node_costs.clone(),
    };
    Ok(SystemGraph {
        nodes,
        links,
        slots: (0..count).map(|slot| Slot { host: slot / cores, core: slot % cores }).collect(),
        cost: CostModel::Routes(RouteCosts { metric, inside: Levels { costs, groups } }),
        routing: Routing { ties: fabric.ties, forwarding: fabric.forwarding },
        calibration: Vec::new(),
    })
}

fn malformed(shape: &str, level: usize, size: &str) -> MachineError {
    let problem = format!("number {level} of shape `{shape}` is `{size}`, which is not a positive integer");
    let help = "give integers separated by `x`: `torus:4x4x4`; separate the lists of a fat tree by `/`: \
                `fat-tree:4x4/1x2/1x1`";
    MachineError::new(problem, help)
}

fn unequal(shape: &str) -> MachineError {
    let help = "a fat tree has equally long lists of children, parents and cables, `fat-tree:4x4/1x2/1x1`; a dragonfly has hosts of a router, \
                routers of a group, global cables of a router and at most as many groups as these join, `dragonfly:4x8x4x33`";
    MachineError::new(format!("the numbers of shape `{shape}` are inconsistent"), help)
}

/// Positive numbers separated by `x` or `,`.
fn numbers(shape: &str, text: &str) -> Result<Vec<u64>, MachineError> {
    let number = |(level, text): (usize, &str)| match text.trim().parse::<u64>() {
        Ok(number) if number > 0 => Ok(number),
        _ => Err(malformed(shape, level, text.trim())),
    };
    let numbers: Vec<u64> = text.split(['x', ',']).enumerate().map(number).collect::<Result<_, _>>()?;
    match numbers.len() > MAX_LEVELS {
        true => Err(too_many_levels(shape, numbers.len())),
        false => Ok(numbers),
    }
}

/// A product that is at most `most`.
fn product(shape: &str, factors: impl IntoIterator<Item = u64>, most: u64) -> Result<u64, MachineError> {
    let mut product = 1_u64;
    for factor in factors {
        product = product
            .checked_mul(factor)
            .filter(|&product| product <= most)
            .ok_or_else(|| too_many_slots(shape))?;
    }
    Ok(product)
}

/// Hosts at the points of a grid, each connected to its neighbours. Messages use dimension-order routing,
/// first dimension first.
struct Grid {
    sizes: Vec<u64>,
    /// Whether the last point of a line is connected to the first.
    wraps: bool,
}

impl Grid {
    /// `4x4x2`, the first dimension varying fastest.
    fn new(shape: &str, text: &str, wraps: bool) -> Result<Self, MachineError> {
        let sizes = numbers(shape, text)?;
        product(shape, sizes.iter().copied(), u64::from(MAX_SLOTS))?;
        // Distances are stored in sixteen bits.
        let farthest: u64 = sizes.iter().map(|size| if wraps { size / 2 } else { size - 1 }).sum();
        match farthest < u64::from(u16::MAX) {
            true => Ok(Self { sizes, wraps }),
            false => Err(too_many_slots(shape)),
        }
    }

    fn ring(shape: &str, text: &str) -> Result<Self, MachineError> {
        let ring = Self::new(shape, text, true)?;
        match ring.sizes.len() {
            1 => Ok(ring),
            _ => Err(malformed(shape, 0, text)),
        }
    }
}

impl Network for Grid {
    fn hosts(&self) -> u64 {
        self.sizes.iter().product()
    }

    fn kinds(&self) -> usize {
        self.sizes.len()
    }

    fn links(&self) -> u64 {
        2 * self.hosts() * self.sizes.len() as u64
    }

    fn fabric(&self) -> Fabric {
        let mut cables = Vec::new();
        for host in 0..self.hosts() {
            let mut step = 1;
            for (dimension, &size) in self.sizes.iter().enumerate() {
                let place = host / step % size;
                let next = match place + 1 {
                    next if next < size => Some(host + step),
                    // Two hosts are connected by one cable; a single one has none.
                    _ if self.wraps && size > 2 => Some(host - place * step),
                    _ => None,
                };
                cables.extend(next.map(|next| (host as u32, next as u32, dimension)));
                step *= size;
            }
        }
        // By dimension: the first link that leads nearer to a destination is then one of the first dimension.
        cables.sort_by_key(|&(host, next, dimension)| (dimension, host, next));
        Fabric { switches: Vec::new(), cables, ties: Ties::First, forwarding: Vec::new() }
    }
}

/// PGFT(h; m; w; p) of Zahavi (2012, Fat-tree routing and node ordering providing contention free traffic for
/// MPI global collectives): a switch of level i has `m_i` children, a node of level i − 1 has `w_i` parents,
/// with `p_i` parallel cables to each.
struct FatTree {
    children: Vec<u64>,
    parents: Vec<u64>,
    cables: Vec<u64>,
    /// Number of nodes of each level, hosts first.
    counts: Vec<u64>,
}

impl FatTree {
    /// `4x4/1x2/1x1`: children, parents and cables of every level, innermost first, the numbers of SimGrid's
    /// fat trees. Parents and cables are 1 by default.
    fn new(shape: &str, text: &str) -> Result<Self, MachineError> {
        let parts: Vec<&str> = text.split(['/', ';']).collect();
        let list = |index: usize| parts.get(index).map(|part| numbers(shape, part)).transpose();
        let children = list(0)?.unwrap_or_default();
        let ones = || vec![1; children.len()];
        let (parents, cables) = (list(1)?.unwrap_or_else(ones), list(2)?.unwrap_or_else(ones));
        if parts.len() > 3 || parents.len() != children.len() || cables.len() != children.len() {
            return Err(unequal(shape));
        }
        let count = |level: usize| {
            let above = children[level..].iter().copied();
            product(shape, above.chain(parents[..level].iter().copied()), u64::from(MAX_SLOTS))
        };
        let counts: Vec<u64> = (0..=children.len()).map(count).collect::<Result<_, _>>()?;
        for level in 0..children.len() {
            product(shape, [counts[level], parents[level], cables[level], 2], MAX_LINKS)?;
        }
        Ok(Self { children, parents, cables, counts })
    }
}

impl Network for FatTree {
    fn hosts(&self) -> u64 {
        self.counts[0]
    }

    fn kinds(&self) -> usize {
        self.children.len()
    }

    fn links(&self) -> u64 {
        (0..self.kinds()).map(|level| 2 * self.counts[level] * self.parents[level] * self.cables[level]).sum()
    }

    /// A node of level l has the digits `x_h … x_{l+1}` of its subtrees and `y_l … y_1` of the parents that
    /// lead to it.
    fn fabric(&self) -> Fabric {
        let mut first = vec![0_u64];
        for count in &self.counts {
            first.push(first[first.len() - 1] + count);
        }
        let switches = (1..=self.kinds())
            .flat_map(|level| (0..self.counts[level]).map(move |index| format!("switch-{level}-{index}")));
        let mut cables = Vec::new();
        for level in 0..self.kinds() {
            // The digits y_level … y_1 take this many values below x_{level+1}.
            let below: u64 = self.parents[..level].iter().product();
            for node in 0..self.counts[level] {
                let (subtree, way) = (node / below / self.children[level], node % below);
                for parent in 0..self.parents[level] {
                    let upper = (subtree * self.parents[level] + parent) * below + way;
                    let ends = ((first[level] + node) as u32, (first[level + 1] + upper) as u32);
                    cables.extend((0..self.cables[level]).map(|_| (ends.0, ends.1, level)));
                }
            }
        }
        Fabric { switches: switches.collect(), cables, ties: Ties::Spread, forwarding: Vec::new() }
    }
}

/// A dragonfly (Kim, Dally, Scott and Abts 2008): `p` hosts per router, `a` fully connected routers per
/// group, `h` global cables per router, and `g` groups, each connected to all others as often as cables
/// permit.
struct Dragonfly {
    hosts: u64,
    routers: u64,
    global: u64,
    groups: u64,
}

impl Dragonfly {
    /// `4x8x4` or `4x8x4x33`: p, a, h and g; g is at most and by default a · h + 1.
    fn new(shape: &str, text: &str) -> Result<Self, MachineError> {
        let sizes = numbers(shape, text)?;
        let [hosts, routers, global] =
            *sizes.get(..3).and_then(|sizes| sizes.first_chunk()).ok_or_else(|| unequal(shape))?;
        let ways = product(shape, [routers, global], u64::from(MAX_SLOTS))?;
        let groups = sizes.get(3).copied().unwrap_or(ways + 1);
        if groups > ways + 1 || sizes.len() > 4 {
            return Err(unequal(shape));
        }
        product(shape, [hosts, routers, groups], u64::from(MAX_SLOTS))?;
        product(shape, [routers, routers, groups], MAX_LINKS)?;
        Ok(Self { hosts, routers, global, groups })
    }

    /// Number of cables between two groups.
    fn between_groups(&self) -> u64 {
        (self.routers * self.global).checked_div(self.groups - 1).unwrap_or(0)
    }

    /// The router of a group whose cable of a round leads to another group: the global ports of a group,
    /// router by router, lead to the other groups in turn.
    fn owner(&self, group: u64, other: u64, round: u64) -> u32 {
        let port = round * (self.groups - 1) + if other < group { other } else { other - 1 };
        self.router(group, port / self.global)
    }

    fn router(&self, group: u64, index: u64) -> u32 {
        (self.hosts() + group * self.routers + index) as u32
    }

    /// Minimal routes: to the router with a cable to the destination group, over it, and on to the router of
    /// the host. The shortest paths could pass other groups. Of several cables between two groups, the host
    /// number selects one.
    fn forwarding(&self, cables: &[(u32, u32, usize)]) -> Vec<Forward> {
        let mut link = HashMap::with_capacity(2 * cables.len());
        for (index, &(a, b, _)) in (0..).zip(cables) {
            link.entry((a, b)).or_insert(2 * index);
            link.entry((b, a)).or_insert(2 * index + 1);
        }
        let mut entries = Vec::new();
        let rounds = self.between_groups().max(1);
        for router in 0..self.routers * self.groups {
            let (group, node) = (router / self.routers, (self.hosts() + router) as u32);
            for host in 0..self.hosts() {
                let (home, there) = (host / self.hosts, host / self.hosts / self.routers);
                let round = host % rounds;
                let next = if home == router {
                    host as u32
                } else if there == group {
                    (self.hosts() + home) as u32
                } else {
                    match self.owner(group, there, round) {
                        own if own == node => self.owner(there, group, round),
                        other => other,
                    }
                };
                let last = link.get(&((self.hosts() + home) as u32, host as u32));
                if let (Some(&last), Some(&link)) = (last, link.get(&(node, next))) {
                    entries.push(Forward { node, last, link });
                }
            }
        }
        entries
    }
}

impl Network for Dragonfly {
    fn hosts(&self) -> u64 {
        self.hosts * self.routers * self.groups
    }

    fn links(&self) -> u64 {
        let local = self.groups * self.routers * (self.routers - 1);
        2 * self.hosts() + local + self.groups * (self.groups - 1) * self.between_groups()
    }

    fn kinds(&self) -> usize {
        3
    }

    fn entries(&self) -> u64 {
        (self.routers * self.groups).saturating_mul(self.hosts())
    }

    fn fabric(&self) -> Fabric {
        let hosts = self.hosts();
        let switches = (0..self.groups)
            .flat_map(|group| (0..self.routers).map(move |index| format!("router-{group}-{index}")));
        let mut cables: Vec<(u32, u32, usize)> =
            (0..hosts).map(|host| (host as u32, (hosts + host / self.hosts) as u32, 0)).collect();
        for group in 0..self.groups {
            for a in 0..self.routers {
                cables
                    .extend((a + 1..self.routers).map(|b| (self.router(group, a), self.router(group, b), 1)));
            }
        }
        for round in 0..self.between_groups() {
            for a in 0..self.groups {
                cables.extend(
                    (a + 1..self.groups).map(|b| (self.owner(a, b, round), self.owner(b, a, round), 2)),
                );
            }
        }
        let forwarding = self.forwarding(&cables);
        Fabric { switches: switches.collect(), cables, ties: Ties::Spread, forwarding }
    }
}
