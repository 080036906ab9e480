//! Networks other than trees: their shapes as text, and the machine around them.

use hopmap_model::{CostModel, Forward, Levels, Link, Node, RouteCosts, Routing, Slot, SystemGraph, Ties};

use super::dragonfly::Dragonfly;
use super::fat_tree::FatTree;
use super::grid::Grid;
use super::{MAX_LEVELS, MAX_SLOTS, check_names, host_nodes};
use crate::{CostMetric, SyntheticError, SyntheticParams};

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
