//! The system graph (machine topology): hosts and switches, links, slots for ranks, and the cost model.

#[cfg(test)]
pub(crate) mod tests;

use std::collections::{BTreeMap, HashMap, HashSet};

use miette::Diagnostic;

use crate::calibration::{self, CalibratedCost, CalibrationError};
use crate::faults::{is_bandwidth, is_time};
use crate::stage::Artifact;

/// A machine topology: nodes connected by directed links, slots on its hosts, and the cost between slots.
#[derive(Debug, Clone, PartialEq)]
pub struct SystemGraph {
    /// Hosts and switches; the index is the id.
    pub nodes: Vec<Node>,
    /// Directed links; empty if the network is unknown.
    pub links: Vec<Link>,
    /// Slots for one rank each, host by host; the index is the slot.
    pub slots: Vec<Slot>,
    /// Cost of messages between two slots.
    pub cost: CostModel,
    /// Which links messages take if there are several paths.
    pub routing: Routing,
    /// Measured costs of messages that do not belong to a link, by cost and bytes; empty if unknown.
    pub calibration: Vec<CalibratedCost>,
}

/// A host or a switch.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    /// Name, unique in the machine. For a host, the name that launchers use.
    pub name: String,
    /// Host or switch.
    pub kind: NodeKind,
    /// Whether it answered at the last observation.
    pub state: NodeState,
    /// Fabric address, if known: the GUID of a switch or of the first adapter of a host, sixteen hexadecimal
    /// digits.
    pub address: Option<String>,
    /// Attributes that only some programs require.
    pub traits: NodeTraits,
}

impl Node {
    /// A node that is up.
    #[must_use]
    pub fn new(name: impl Into<String>, kind: NodeKind) -> Self {
        Self { name: name.into(), kind, state: NodeState::Up, address: None, traits: NodeTraits::default() }
    }

    /// A host that is up.
    #[must_use]
    pub fn host(name: impl Into<String>) -> Self {
        Self::new(name, NodeKind::Host)
    }

    /// A switch that is up.
    #[must_use]
    pub fn switch(name: impl Into<String>) -> Self {
        Self::new(name, NodeKind::Switch)
    }
}

/// Attributes of a node beyond its position in the network. By default nothing is known.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct NodeTraits {
    /// Compute performance of a host, in units of the instance.
    pub performance: Option<f64>,
    /// Table type of a switch.
    pub switch_type: Option<SwitchType>,
    /// Capabilities of a host that not all hosts have, such as `fpga`; sorted.
    pub capabilities: Vec<String>,
    /// Number of devices of each kind on a host; each process reserves the devices it needs.
    pub devices: BTreeMap<String, u32>,
}

/// Table types of switches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SwitchType {
    /// Type 1: one table per switch, indexed by destination.
    One,
    /// Type 2: one table per input port, indexed by destination.
    Two,
}

impl SwitchType {
    /// The number of the type.
    #[must_use]
    pub fn number(self) -> u32 {
        match self {
            Self::One => 1,
            Self::Two => 2,
        }
    }

    /// The type with a given number.
    #[must_use]
    pub fn of_number(number: u32) -> Option<Self> {
        [Self::One, Self::Two].into_iter().find(|switch_type| switch_type.number() == number)
    }
}

/// Whether a node is up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum NodeState {
    /// It answered.
    #[default]
    Up,
    /// It did not answer; its data are from an earlier observation.
    Down,
}

/// Kinds of nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NodeKind {
    /// Runs ranks.
    Host,
    /// Forwards messages.
    Switch,
}

/// A directed link between two nodes. Parallel links are allowed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Link {
    /// Source node.
    pub source: u32,
    /// Destination node.
    pub destination: u32,
    /// Latency in seconds.
    pub latency_s: Option<f64>,
    /// Bandwidth in bytes per second.
    pub bandwidth_bytes_per_s: Option<f64>,
    /// Output port number.
    pub source_port: Option<u32>,
    /// Input port number.
    pub destination_port: Option<u32>,
    /// Whether it carries messages.
    pub state: LinkState,
}

impl Link {
    /// A link that is up, with unknown attributes.
    #[must_use]
    pub fn new(source: u32, destination: u32) -> Self {
        Self {
            source,
            destination,
            latency_s: None,
            bandwidth_bytes_per_s: None,
            source_port: None,
            destination_port: None,
            state: LinkState::Up,
        }
    }

    /// The same link in the opposite direction.
    #[must_use]
    pub fn reversed(self) -> Self {
        Self {
            source: self.destination,
            destination: self.source,
            source_port: self.destination_port,
            destination_port: self.source_port,
            ..self
        }
    }
}

/// Whether a link carries messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LinkState {
    /// Carries messages.
    #[default]
    Up,
    /// Carries no messages: disabled, in error, or without an active peer.
    Down,
}

/// A slot for one rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slot {
    /// Node id of the host.
    pub host: u32,
    /// Logical core on the host.
    pub core: u32,
}

/// Cost of messages between two slots.
#[derive(Debug, Clone, PartialEq)]
pub enum CostModel {
    /// The slots are the leaves of a tree, and cost depends on the level where two of them meet. A slot to
    /// itself costs nothing.
    Levels(Levels),
    /// Every ordered pair of slots has its own cost.
    Matrix(Matrix),
    /// The cost between hosts follows from the links on the path.
    Routes(RouteCosts),
}

/// A tree over the slots, innermost level first.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Levels {
    /// Cost between two slots that first meet on this level; non-decreasing.
    pub costs: Vec<f64>,
    /// `groups[level][slot]` is the group of a slot on a level. The last level has one group.
    pub groups: Vec<Vec<u32>>,
}

/// A cost for every ordered pair of slots; the two directions may differ.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Matrix {
    /// The cost from slot `a` to slot `b` of `n` slots is at `a * n + b`; the diagonal is the cost of a slot
    /// to itself.
    pub costs: Vec<f64>,
}

impl Levels {
    /// Level on which two different slots first meet.
    #[must_use]
    pub fn meeting_level(&self, a: u32, b: u32) -> usize {
        let meets = |groups: &Vec<u32>| groups[a as usize] == groups[b as usize];
        self.groups.iter().position(meets).unwrap_or(self.costs.len().saturating_sub(1))
    }
}

impl SystemGraph {
    /// Hosts with slots, in slot order: node id, first slot, number of slots.
    pub fn hosts(&self) -> impl Iterator<Item = (u32, u32, u32)> + '_ {
        let mut first = 0;
        self.slots.chunk_by(|a, b| a.host == b.host).map(move |slots| {
            let host = (slots[0].host, first, slots.len() as u32);
            first += slots.len() as u32;
            host
        })
    }

    /// The machine with some of its slots, by ascending index. Nodes and links are kept, since messages may pass nodes without
    /// ranks; costs keep their values.
    #[must_use]
    pub fn with_slots(&self, kept: &[u32]) -> Self {
        let levels = |levels: &Levels| {
            let groups = |groups: &Vec<u32>| kept.iter().map(|&slot| groups[slot as usize]).collect();
            Levels { costs: levels.costs.clone(), groups: levels.groups.iter().map(groups).collect() }
        };
        let cost = match &self.cost {
            CostModel::Matrix(_) => CostModel::Matrix(Matrix { costs: self.costs().block(kept) }),
            CostModel::Levels(all) => CostModel::Levels(levels(all)),
            CostModel::Routes(routes) => {
                CostModel::Routes(RouteCosts { metric: routes.metric, inside: levels(&routes.inside) })
            }
        };
        Self {
            nodes: self.nodes.clone(),
            links: self.links.clone(),
            routing: self.routing.clone(),
            slots: kept.iter().map(|&slot| self.slots[slot as usize]).collect(),
            cost,
            calibration: self.calibration.clone(),
        }
    }

    /// The machine with the first slots of every host, at most as many as its index among the hosts with slots is given.
    #[must_use]
    pub fn with_slots_per_host(&self, most: impl Fn(usize) -> u32) -> Self {
        let slots =
            |(host, (_, first, count)): (usize, (u32, u32, u32))| first..first + count.min(most(host));
        self.with_slots(&self.hosts().enumerate().flat_map(slots).collect::<Vec<u32>>())
    }

    /// Checks that links and slots refer to existing nodes, that the slots of a host are consecutive, and the
    /// cost model.
    pub fn check(&self) -> Result<(), SystemGraphError> {
        self.check_nodes()?;
        self.check_slots()?;
        match &self.cost {
            CostModel::Levels(levels) => levels.check(self.slots.len()),
            CostModel::Matrix(matrix) => matrix.check(self.slots.len()),
            CostModel::Routes(routes) => routes.check(self),
        }?;
        self.routing.check(self)?;
        Ok(calibration::check(&self.calibration)?)
    }

    fn check_nodes(&self) -> Result<(), SystemGraphError> {
        let mut names = HashSet::new();
        if let Some(node) = self.nodes.iter().find(|node| !names.insert(&node.name)) {
            return Err(SystemGraphError::RepeatedName(node.name.clone()));
        }
        let nodes = self.nodes.len();
        for (index, link) in self.links.iter().enumerate() {
            if let Some(&node) = [link.source, link.destination].iter().find(|&&node| node as usize >= nodes)
            {
                return Err(SystemGraphError::NoSuchNode { what: "link", index, node, nodes });
            }
        }
        let is_rate = |link: &Link| {
            link.latency_s.is_none_or(is_time) && link.bandwidth_bytes_per_s.is_none_or(is_bandwidth)
        };
        match self.links.iter().position(|link| !is_rate(link)) {
            Some(index) => Err(SystemGraphError::Rate { index }),
            None => Ok(()),
        }
    }

    fn check_slots(&self) -> Result<(), SystemGraphError> {
        let nodes = self.nodes.len();
        let mut left = vec![false; nodes];
        for (index, slot) in self.slots.iter().enumerate() {
            let Some(node) = self.nodes.get(slot.host as usize) else {
                return Err(SystemGraphError::NoSuchNode { what: "slot", index, node: slot.host, nodes });
            };
            if node.kind != NodeKind::Host {
                return Err(SystemGraphError::SlotOnSwitch { index, name: node.name.clone() });
            }
            if index > 0 && self.slots[index - 1].host != slot.host {
                left[self.slots[index - 1].host as usize] = true;
            }
            if left[slot.host as usize] {
                return Err(SystemGraphError::ScatteredSlots(node.name.clone()));
            }
        }
        Ok(())
    }
}

impl Levels {
    fn check(&self, slots: usize) -> Result<(), SystemGraphError> {
        let complete = self.groups.len() == self.costs.len()
            && (slots == 0 || !self.costs.is_empty())
            && self.groups.iter().all(|groups| groups.len() == slots)
            && self.groups.last().is_none_or(|groups| groups.windows(2).all(|pair| pair[0] == pair[1]));
        match complete && self.is_nested() {
            true => Ok(()),
            false => Err(SystemGraphError::Levels),
        }
    }

    /// Whether costs are non-decreasing and groups are nested.
    fn is_nested(&self) -> bool {
        let rising = self.costs.iter().all(|cost| cost.is_finite() && *cost >= 0.0)
            && self.costs.windows(2).all(|pair| pair[0] <= pair[1]);
        let nested = || {
            self.groups.windows(2).all(|levels| {
                let mut outer = HashMap::new();
                levels[0]
                    .iter()
                    .zip(&levels[1])
                    .all(|(inner, group)| *outer.entry(inner).or_insert(group) == group)
            })
        };
        rising && nested()
    }
}

impl Matrix {
    fn check(&self, slots: usize) -> Result<(), SystemGraphError> {
        let is_square = slots.checked_mul(slots) == Some(self.costs.len());
        match is_square && self.costs.iter().all(|cost| cost.is_finite() && *cost >= 0.0) {
            true => Ok(()),
            false => Err(SystemGraphError::Matrix),
        }
    }
}

/// Which links messages take if there are several paths.
///
/// With forwarding tables a message follows the entries for its destination; without an entry the destination
/// is unreachable. Without tables it takes the fewest links.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Routing {
    /// Entries of the static forwarding tables of all switches, sorted by node and last link; empty if there
    /// are none.
    pub forwarding: Vec<Forward>,
    /// Tie-breaking rule between paths with equal numbers of links.
    pub ties: Ties,
}

/// An entry of a forwarding table: on `node`, messages that leave the network over the link `last` are
/// forwarded over `link`.
///
/// The last link identifies the host and, if it has several, the port: an address of the fabric. If `node` is
/// a host, the entry selects the sending port.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Forward {
    /// The node that forwards.
    pub node: u32,
    /// The link from a switch to the destination host.
    pub last: u32,
    /// The outgoing link of the node.
    pub link: u32,
}

/// Tie-breaking rule between paths with equal numbers of links.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Ties {
    /// By destination number, which spreads destinations over the paths: the static routes of fat trees
    /// (D-mod-K, Zahavi 2012).
    #[default]
    Spread,
    /// The first link in the list: dimension-order routes of meshes and tori whose links are sorted by
    /// dimension.
    First,
}

impl Routing {
    fn check(&self, system: &SystemGraph) -> Result<(), SystemGraphError> {
        let wrong = |index, problem| Err(SystemGraphError::Forwarding { index, problem });
        let mut before = None;
        for (index, entry) in self.forwarding.iter().enumerate() {
            let key = Some((entry.node, entry.last));
            let (Some(link), Some(last)) =
                (system.links.get(entry.link as usize), system.links.get(entry.last as usize))
            else {
                return wrong(index, "refers to a link that does not exist");
            };
            if link.source != entry.node {
                return wrong(index, "forwards over a link that does not leave its node");
            }
            if system.nodes[last.destination as usize].kind != NodeKind::Host {
                return wrong(index, "has a last link that does not lead to a host");
            }
            if before >= key {
                return wrong(index, "is out of order: entries must be sorted by node and last link");
            }
            before = key;
        }
        Ok(())
    }
}

/// Costs that follow from the links between hosts.
#[derive(Debug, Clone, PartialEq)]
pub struct RouteCosts {
    /// Link attribute that counts.
    pub metric: RouteMetric,
    /// Costs between slots of one host, in the unit of `metric`. The groups of the last level are the hosts.
    pub inside: Levels,
}

/// Cost of a message between two hosts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RouteMetric {
    /// The number of links.
    Hops,
    /// The sum of the link latencies, in microseconds.
    Latency,
    /// The sum of the link latencies plus the transfer time over the narrowest link, in microseconds.
    Time {
        /// Message size in bytes.
        bytes: u64,
    },
}

impl RouteCosts {
    fn check(&self, system: &SystemGraph) -> Result<(), SystemGraphError> {
        let Levels { costs, groups } = &self.inside;
        let slots = system.slots.len();
        let is_host = |groups: &Vec<u32>| {
            let pairs = || system.slots.windows(2).zip(groups.windows(2));
            let distinct: HashSet<_> = groups.iter().collect();
            pairs().all(|(slots, groups)| (slots[0].host == slots[1].host) == (groups[0] == groups[1]))
                && distinct.len() == system.hosts().count()
        };
        let complete = groups.len() == costs.len()
            && (slots == 0 || !costs.is_empty())
            && groups.iter().all(|groups| groups.len() == slots)
            && groups.last().is_none_or(is_host);
        if !(complete && self.inside.is_nested()) {
            return Err(SystemGraphError::Inside);
        }
        let is_known = |link: &Link| {
            let known =
                |number: Option<f64>| number.is_some_and(|number| number.is_finite() && number >= 0.0);
            match self.metric {
                RouteMetric::Hops => true,
                RouteMetric::Latency => known(link.latency_s),
                RouteMetric::Time { .. } => {
                    known(link.latency_s) && link.bandwidth_bytes_per_s.is_some_and(|number| number > 0.0)
                }
            }
        };
        match system.links.iter().position(|link| !is_known(link)) {
            Some(index) => Err(SystemGraphError::UnknownLink { index, metric: self.metric.name() }),
            None => Ok(()),
        }
    }
}

impl RouteMetric {
    /// `hops`, `latency` or `time`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Hops => "hops",
            Self::Latency => "latency",
            Self::Time { .. } => "time",
        }
    }

    /// Cost of a message over this link alone, in the unit of the metric; `None` if the link lacks the
    /// attribute.
    #[must_use]
    pub fn of(self, link: &Link) -> Option<f64> {
        match self {
            Self::Hops => Some(1.0),
            Self::Latency => Some(link.latency_s? * 1e6),
            Self::Time { bytes } => {
                Some((link.latency_s? + bytes as f64 / link.bandwidth_bytes_per_s?) * 1e6)
            }
        }
    }

    /// Costs of `levels` levels inside hosts if unknown: equal steps from zero to below the cheapest link.
    #[must_use]
    pub fn steps(self, levels: usize, links: &[Link]) -> Vec<f64> {
        let cheapest = links.iter().filter_map(|link| self.of(link)).reduce(f64::min).unwrap_or(1.0);
        (0..levels).map(|level| cheapest * level as f64 / levels as f64).collect()
    }
}

impl Artifact for SystemGraph {
    const KIND: &'static str = "system-graph";
}

/// An inconsistent machine topology.
#[derive(Debug, thiserror::Error, Diagnostic)]
pub enum SystemGraphError {
    /// The calibration is not in order, or has invalid values.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Calibration(#[from] CalibrationError),
    /// Two nodes have the same name.
    #[error("two nodes are named `{0}`")]
    #[diagnostic(code(model::repeated_name))]
    RepeatedName(String),
    /// A link or slot refers to a node that does not exist.
    #[error("{what} {index} refers to node {node}, but there are {nodes} nodes")]
    #[diagnostic(code(model::no_such_node))]
    NoSuchNode {
        /// `link` or `slot`.
        what: &'static str,
        /// Its index.
        index: usize,
        /// The node.
        node: u32,
        /// Number of nodes.
        nodes: usize,
    },
    /// A slot is on a switch.
    #[error("slot {index} is on `{name}`, which is a switch")]
    #[diagnostic(code(model::slot_on_switch))]
    SlotOnSwitch {
        /// The slot.
        index: usize,
        /// Name of the switch.
        name: String,
    },
    /// The slots of a host are not consecutive.
    #[error("the slots of host `{0}` are not consecutive")]
    #[diagnostic(code(model::scattered_slots))]
    ScatteredSlots(String),
    /// The cost levels do not form a tree over the slots.
    #[error("the cost levels do not form a tree over all slots with non-decreasing costs")]
    #[diagnostic(code(model::levels))]
    Levels,
    /// The costs inside hosts do not form a tree over the slots of each host.
    #[error("the costs inside hosts do not form trees over their slots with non-decreasing costs")]
    #[diagnostic(code(model::inside))]
    Inside,
    /// A link has a rate that no link has.
    #[error(
        "link {index} has a latency that is negative or above 1e12 s, or a bandwidth below 1e-9 or above 1e30 B/s"
    )]
    #[diagnostic(
        code(model::impossible_rate),
        help("check the numbers and units of the file of the machine")
    )]
    Rate {
        /// The link.
        index: usize,
    },
    /// A link lacks the attribute that counts.
    #[error("the cost model uses {metric}, but link {index} lacks the attributes for it")]
    #[diagnostic(code(model::unknown_link))]
    UnknownLink {
        /// The link.
        index: usize,
        /// The metric.
        metric: &'static str,
    },
    /// An invalid entry of a forwarding table.
    #[error("entry {index} of the forwarding tables {problem}")]
    #[diagnostic(code(model::forwarding))]
    Forwarding {
        /// Its index.
        index: usize,
        /// The problem.
        problem: &'static str,
    },
    /// The cost matrix does not fit the slots.
    #[error("the cost matrix does not have a finite non-negative cost for every pair of slots")]
    #[diagnostic(code(model::matrix))]
    Matrix,
}
