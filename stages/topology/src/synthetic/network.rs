//! Networks other than trees: their shapes as text, and the machine around them.

use std::collections::HashMap;

use hopmap_model::{CostModel, Forward, Levels, Link, Node, RouteCosts, Routing, Slot, SystemGraph, Ties};

use super::params::{CostMetric, MAX_LEVELS, MAX_SLOTS, SyntheticError, SyntheticParams};
use super::tree::{check_names, host_nodes};

/// Most links of a network, each direction counted.
pub(super) const MAX_LINKS: u64 = 1 << 26;

/// Most entries of forwarding tables.
const MAX_ENTRIES: u64 = 1 << 25;

/// A shape that is no tree.
pub(super) enum Network {
    FatTree(FatTree),
    Grid(Grid),
    Dragonfly(Dragonfly),
}

/// Switches and links of a network. Hosts are the first nodes.
pub(super) struct Fabric {
    /// Names of the switches.
    pub(super) switches: Vec<String>,
    /// Ends of every cable, and of which kind it is.
    pub(super) cables: Vec<(u32, u32, usize)>,
    pub(super) ties: Ties,
    /// Static tables, where routes are other ones than the shortest. The two directions of cable `n` are links `2 n` and `2 n + 1`.
    pub(super) forwarding: Vec<Forward>,
}

impl Network {
    /// The network of a shape; `None` if it is a tree or none that is known.
    pub(super) fn of(params: &SyntheticParams) -> Result<Option<Self>, SyntheticError> {
        let shape = params.shape.as_str();
        let Some((kind, sizes)) = shape.split_once(':') else { return Ok(None) };
        Ok(Some(match kind {
            "fat-tree" => Self::FatTree(FatTree::new(shape, sizes)?),
            "torus" => Self::Grid(Grid::new(shape, sizes, true)?),
            "mesh" => Self::Grid(Grid::new(shape, sizes, false)?),
            "ring" => Self::Grid(Grid::ring(shape, sizes)?),
            "dragonfly" => Self::Dragonfly(Dragonfly::new(shape, sizes)?),
            _ => return Ok(None),
        }))
    }

    fn hosts(&self) -> u64 {
        match self {
            Self::FatTree(tree) => tree.hosts(),
            Self::Grid(grid) => grid.hosts(),
            Self::Dragonfly(dragonfly) => dragonfly.hosts(),
        }
    }

    fn links(&self) -> u64 {
        match self {
            Self::FatTree(tree) => tree.links(),
            Self::Grid(grid) => grid.links(),
            Self::Dragonfly(dragonfly) => dragonfly.links(),
        }
    }

    /// What kinds of cables there are, for messages.
    fn kinds(&self) -> usize {
        match self {
            Self::FatTree(tree) => tree.levels(),
            Self::Grid(grid) => grid.dimensions(),
            Self::Dragonfly(_) => 3,
        }
    }

    fn fabric(&self) -> Fabric {
        match self {
            Self::FatTree(tree) => tree.fabric(),
            Self::Grid(grid) => grid.fabric(),
            Self::Dragonfly(dragonfly) => dragonfly.fabric(),
        }
    }

    /// Checks the parameters that go with such a shape.
    pub(super) fn check(&self, params: &SyntheticParams) -> Result<(), SyntheticError> {
        let wrong = |parameter, problem: String| {
            Err(SyntheticError::Parameter { parameter, shape: params.shape.clone(), problem })
        };
        if !params.costs.is_empty() {
            return wrong("costs", "is for trees: what messages cost follows from the links".into());
        }
        if params.host_level.is_some() {
            return wrong("host_level", "is for trees: hosts have `cores`".into());
        }
        let cores = params.cores.iter().try_fold(1_u64, |all, &cores| all.checked_mul(u64::from(cores)));
        let slots = cores.and_then(|cores| cores.checked_mul(self.hosts()));
        if params.cores.contains(&0) || params.cores.len() > MAX_LEVELS {
            return wrong("cores", "is no list of numbers above zero".into());
        }
        if slots.is_none_or(|slots| slots > u64::from(MAX_SLOTS)) {
            return Err(SyntheticError::TooManySlots { shape: params.shape.clone() });
        }
        if self.links() > MAX_LINKS {
            return wrong("shape", format!("has {} links, more than {MAX_LINKS}", self.links()));
        }
        for (parameter, values) in [("bandwidth", &params.bandwidth), ("link_latency", &params.link_latency)]
        {
            if !(values.len() <= 1 || values.len() == self.kinds()) {
                let kinds = self.kinds();
                return wrong(
                    parameter,
                    format!("has {} values, but there are {kinds} kinds of links", values.len()),
                );
            }
            let least = if parameter == "bandwidth" { f64::MIN_POSITIVE } else { 0.0 };
            if values.iter().any(|value| !(value.is_finite() && *value >= least)) {
                return wrong(parameter, "has a value that is no such number".into());
            }
        }
        if let Self::Dragonfly(dragonfly) = self
            && dragonfly.entries() > MAX_ENTRIES
        {
            return wrong("shape", format!("has more than {MAX_ENTRIES} entries in its forwarding tables"));
        }
        Self::check_costs(params)
    }

    fn check_costs(params: &SyntheticParams) -> Result<(), SyntheticError> {
        let wrong = |parameter, problem: &str| {
            let (shape, problem) = (params.shape.clone(), problem.to_owned());
            Err(SyntheticError::Parameter { parameter, shape, problem })
        };
        match (params.cost.unwrap_or_default(), params.bytes) {
            (CostMetric::Time, None) => {
                return wrong("bytes", "is missing: the time of a message depends on it");
            }
            (CostMetric::Hops | CostMetric::Latency, Some(_)) => {
                return wrong("bytes", "means nothing unless `cost` is `time`");
            }
            (CostMetric::Latency | CostMetric::Time, _) if params.link_latency.is_empty() => {
                return wrong("link_latency", "is missing: it is what `cost` counts");
            }
            (CostMetric::Time, _) if params.bandwidth.is_empty() => {
                return wrong("bandwidth", "is missing: it is what `cost` counts");
            }
            _ => {}
        }
        let is_rising = params.inside.windows(2).all(|pair| pair[0] <= pair[1]);
        let is_good = |cost: &f64| cost.is_finite() && *cost >= 0.0;
        let count = params.cores.len().max(1);
        match params.inside.is_empty()
            || (params.inside.len() == count && is_rising && params.inside.iter().all(is_good))
        {
            true => Ok(()),
            false => wrong("inside", "is not one cost, never falling, for every level of `cores`"),
        }
    }

    /// The machine: hosts, then switches; slots host by host.
    pub(super) fn machine(&self, params: &SyntheticParams) -> Result<SystemGraph, SyntheticError> {
        self.check(params)?;
        let hosts = self.hosts() as usize;
        let mut nodes = host_nodes(params, hosts)?;
        let fabric = self.fabric();
        nodes.extend(fabric.switches.into_iter().map(Node::switch));
        check_names(&nodes)?;
        let value = |values: &[f64], kind: usize| values.get(kind.min(values.len().max(1) - 1)).copied();
        let link = |(a, b, kind): (u32, u32, usize)| Link {
            latency_s: value(&params.link_latency, kind),
            bandwidth_bytes_per_s: value(&params.bandwidth, kind),
            ..Link::new(a, b)
        };
        let both = |(a, b, kind)| [link((a, b, kind)), link((b, a, kind))];
        let links: Vec<Link> = fabric.cables.into_iter().flat_map(both).collect();
        let cores: u32 = params.cores.iter().product();
        let count = hosts as u32 * cores;
        let metric = params.cost.unwrap_or_default().of_routes(params.bytes);
        let mut size = 1;
        let mut groups: Vec<Vec<u32>> = Vec::new();
        for &branches in if params.cores.is_empty() { &[1][..] } else { &params.cores } {
            size *= branches;
            groups.push((0..count).map(|slot| slot / size).collect());
        }
        let costs = match params.inside.is_empty() {
            true => metric.steps(groups.len(), &links),
            false => params.inside.clone(),
        };
        Ok(SystemGraph {
            nodes,
            links,
            slots: (0..count).map(|slot| Slot { host: slot / cores, core: slot % cores }).collect(),
            cost: CostModel::Routes(RouteCosts { metric, inside: Levels { costs, groups } }),
            routing: Routing { ties: fabric.ties, forwarding: fabric.forwarding },
        })
    }
}

/// Numbers above zero with `x` or `,` between them.
pub(super) fn numbers(shape: &str, text: &str) -> Result<Vec<u64>, SyntheticError> {
    let number = |(level, text): (usize, &str)| match text.trim().parse::<u64>() {
        Ok(number) if number > 0 => Ok(number),
        _ => Err(SyntheticError::Size { shape: shape.to_owned(), level, size: text.trim().to_owned() }),
    };
    let numbers: Vec<u64> = text.split(['x', ',']).enumerate().map(number).collect::<Result<_, _>>()?;
    match numbers.len() > MAX_LEVELS {
        true => Err(SyntheticError::TooManyLevels { shape: shape.to_owned(), levels: numbers.len() }),
        false => Ok(numbers),
    }
}

/// A product that is at most `most`.
pub(super) fn product(
    shape: &str,
    factors: impl IntoIterator<Item = u64>,
    most: u64,
) -> Result<u64, SyntheticError> {
    let mut product = 1_u64;
    for factor in factors {
        product = product
            .checked_mul(factor)
            .filter(|&product| product <= most)
            .ok_or_else(|| SyntheticError::TooManySlots { shape: shape.to_owned() })?;
    }
    Ok(product)
}

/// Hosts at the points of a grid, each joined to its neighbours. Messages go along the first dimension first.
pub(super) struct Grid {
    sizes: Vec<u64>,
    /// Whether the last point of a line is joined to the first.
    wraps: bool,
}

impl Grid {
    /// `4x4x2`, the first dimension counting fastest.
    pub(super) fn new(shape: &str, text: &str, wraps: bool) -> Result<Self, SyntheticError> {
        let sizes = numbers(shape, text)?;
        product(shape, sizes.iter().copied(), u64::from(MAX_SLOTS))?;
        // Distances are counted in sixteen bits.
        let farthest: u64 = sizes.iter().map(|size| if wraps { size / 2 } else { size - 1 }).sum();
        match farthest < u64::from(u16::MAX) {
            true => Ok(Self { sizes, wraps }),
            false => Err(SyntheticError::TooManySlots { shape: shape.to_owned() }),
        }
    }

    pub(super) fn ring(shape: &str, text: &str) -> Result<Self, SyntheticError> {
        let ring = Self::new(shape, text, true)?;
        match ring.sizes.len() {
            1 => Ok(ring),
            _ => Err(SyntheticError::Size { shape: shape.to_owned(), level: 0, size: text.to_owned() }),
        }
    }

    pub(super) fn hosts(&self) -> u64 {
        self.sizes.iter().product()
    }

    pub(super) fn dimensions(&self) -> usize {
        self.sizes.len()
    }

    pub(super) fn links(&self) -> u64 {
        2 * self.hosts() * self.sizes.len() as u64
    }

    pub(super) fn fabric(&self) -> Fabric {
        let mut cables = Vec::new();
        for host in 0..self.hosts() {
            let mut step = 1;
            for (dimension, &size) in self.sizes.iter().enumerate() {
                let place = host / step % size;
                let next = match place + 1 {
                    next if next < size => Some(host + step),
                    // Of two hosts one cable leads to the other; alone none leads anywhere.
                    _ if self.wraps && size > 2 => Some(host - place * step),
                    _ => None,
                };
                cables.extend(next.map(|next| (host as u32, next as u32, dimension)));
                step *= size;
            }
        }
        // By dimension: the first link that leads nearer to a destination is one of the first dimension.
        cables.sort_by_key(|&(host, next, dimension)| (dimension, host, next));
        Fabric { switches: Vec::new(), cables, ties: Ties::First, forwarding: Vec::new() }
    }
}

/// PGFT(h; m; w; p) of Zahavi (2012, Fat-tree routing and node ordering providing contention free traffic for MPI global collectives): a
/// switch of level i has `m_i` children, a node of level i − 1 has `w_i` parents, with `p_i` parallel cables to each.
pub(super) struct FatTree {
    children: Vec<u64>,
    parents: Vec<u64>,
    cables: Vec<u64>,
    /// Nodes of every level, hosts first.
    counts: Vec<u64>,
}

impl FatTree {
    /// `4x4/1x2/1x1`: children, parents and cables of every level, innermost first, the numbers of SimGrid's fat trees. Without parents every
    /// node has one, without cables every parent one.
    pub(super) fn new(shape: &str, text: &str) -> Result<Self, SyntheticError> {
        let parts: Vec<&str> = text.split(['/', ';']).collect();
        let list = |index: usize| parts.get(index).map(|part| numbers(shape, part)).transpose();
        let children = list(0)?.unwrap_or_default();
        let ones = || vec![1; children.len()];
        let (parents, cables) = (list(1)?.unwrap_or_else(ones), list(2)?.unwrap_or_else(ones));
        if parts.len() > 3 || parents.len() != children.len() || cables.len() != children.len() {
            return Err(SyntheticError::Lists { shape: shape.to_owned() });
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

    pub(super) fn hosts(&self) -> u64 {
        self.counts[0]
    }

    pub(super) fn levels(&self) -> usize {
        self.children.len()
    }

    pub(super) fn links(&self) -> u64 {
        (0..self.levels())
            .map(|level| 2 * self.counts[level] * self.parents[level] * self.cables[level])
            .sum()
    }

    /// A node of level l has the digits `x_h … x_{l+1}` of the subtrees that it is in and `y_l … y_1` of the parents that lead to it.
    pub(super) fn fabric(&self) -> Fabric {
        let mut first = vec![0_u64];
        for count in &self.counts {
            first.push(first[first.len() - 1] + count);
        }
        let switches = (1..=self.levels())
            .flat_map(|level| (0..self.counts[level]).map(move |index| format!("switch-{level}-{index}")));
        let mut cables = Vec::new();
        for level in 0..self.levels() {
            // Below x_{level+1} the digits y_level … y_1 count so many nodes.
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

/// A dragonfly (Kim, Dally, Scott and Abts 2008): `p` hosts on a router, `a` routers in a group, each joined to all others of it, `h` global
/// cables of a router, and `g` groups, each joined to all others as often as there are cables for it.
pub(super) struct Dragonfly {
    hosts: u64,
    routers: u64,
    global: u64,
    groups: u64,
}

impl Dragonfly {
    /// `4x8x4` or `4x8x4x33`: p, a, h and g; without g the most there can be, a · h + 1.
    pub(super) fn new(shape: &str, text: &str) -> Result<Self, SyntheticError> {
        let sizes = numbers(shape, text)?;
        let [hosts, routers, global] = *sizes
            .get(..3)
            .and_then(|sizes| sizes.first_chunk())
            .ok_or_else(|| SyntheticError::Lists { shape: shape.to_owned() })?;
        let ways = product(shape, [routers, global], u64::from(MAX_SLOTS))?;
        let groups = sizes.get(3).copied().unwrap_or(ways + 1);
        if groups > ways + 1 || sizes.len() > 4 {
            return Err(SyntheticError::Lists { shape: shape.to_owned() });
        }
        product(shape, [hosts, routers, groups], u64::from(MAX_SLOTS))?;
        product(shape, [routers, routers, groups], MAX_LINKS)?;
        Ok(Self { hosts, routers, global, groups })
    }

    pub(super) fn hosts(&self) -> u64 {
        self.hosts * self.routers * self.groups
    }

    /// How many cables join two groups.
    fn between_groups(&self) -> u64 {
        (self.routers * self.global).checked_div(self.groups - 1).unwrap_or(0)
    }

    pub(super) fn links(&self) -> u64 {
        let local = self.groups * self.routers * (self.routers - 1);
        2 * self.hosts() + local + self.groups * (self.groups - 1) * self.between_groups()
    }

    pub(super) fn fabric(&self) -> Fabric {
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

    /// The router of a group whose cable of a round leads to another group: the global ports of a group, router by router, lead to
    /// the other groups in turn.
    fn owner(&self, group: u64, other: u64, round: u64) -> u32 {
        let port = round * (self.groups - 1) + if other < group { other } else { other - 1 };
        self.router(group, port / self.global)
    }

    fn router(&self, group: u64, index: u64) -> u32 {
        (self.hosts() + group * self.routers + index) as u32
    }

    /// How many entries the tables have.
    pub(super) fn entries(&self) -> u64 {
        (self.routers * self.groups).saturating_mul(self.hosts())
    }

    /// Minimal routes: to the router with a cable to the group, over it, and on to the router of the host. The shortest ways would pass
    /// other groups. Of several cables between two groups the number of the host decides.
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
