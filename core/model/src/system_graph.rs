//! The system graph: the hosts and switches of a machine, the slots that ranks can take, and what distance costs.

use std::collections::BTreeMap;

use miette::Diagnostic;

use crate::{Artifact, Costs, RouteCosts, Routing};

/// A machine: nodes joined by directed links, slots on its hosts, and the cost between slots.
#[derive(Debug, Clone, PartialEq)]
pub struct SystemGraph {
    /// Hosts and switches; the index is the id.
    pub nodes: Vec<Node>,
    /// Directed links; empty when the network is not known.
    pub links: Vec<Link>,
    /// Places for one rank each, host by host; the index is the slot.
    pub slots: Vec<Slot>,
    /// What it costs to send between two slots.
    pub cost: CostModel,
    /// Which links messages take where there are several ways.
    pub routing: Routing,
}

/// A host or a switch.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    /// Name, unique in the machine; of a host, the one that launchers know.
    pub name: String,
    /// What it is.
    pub kind: NodeKind,
    /// Whether it answered when the machine was last looked at.
    pub state: NodeState,
    /// What the fabric knows it by, if anything: the GUID of a switch or of the first adapter of a host, sixteen hexadecimal digits.
    pub address: Option<String>,
    /// What it has that some programs ask for.
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

/// Whether a node is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum NodeState {
    /// It answered.
    #[default]
    Up,
    /// It did not answer; what is known of it is from before.
    Down,
}

/// What a node is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NodeKind {
    /// Runs ranks.
    Host,
    /// Passes messages on.
    Switch,
}

/// A directed link between two nodes. Parallel links are allowed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Link {
    /// Node it leaves.
    pub source: u32,
    /// Node it reaches.
    pub destination: u32,
    /// Latency in seconds.
    pub latency_s: Option<f64>,
    /// Bandwidth in bytes per second.
    pub bandwidth_bytes_per_s: Option<f64>,
    /// Number of the port that it leaves by.
    pub source_port: Option<u32>,
    /// Number of the port that it arrives at.
    pub destination_port: Option<u32>,
    /// Whether it carries messages.
    pub state: LinkState,
}

impl Link {
    /// A link that is up and of which nothing else is known.
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

    /// The same link the other way.
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
    /// It does.
    #[default]
    Up,
    /// It does not: disabled, in error, or without a peer that answers.
    Down,
}

/// A place for one rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slot {
    /// Node id of the host.
    pub host: u32,
    /// Logical core on the host.
    pub core: u32,
}

/// What it costs to send between two slots.
#[derive(Debug, Clone, PartialEq)]
pub enum CostModel {
    /// The slots are the leaves of a tree, and cost depends on how far up two of them meet. A slot to itself costs nothing.
    Levels(Levels),
    /// Every ordered pair of slots has a cost of its own.
    Matrix(Matrix),
    /// Between hosts cost follows from the links that messages take.
    Routes(RouteCosts),
}

/// A tree over the slots, innermost level first.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Levels {
    /// Cost between two slots that first meet on this level; never falls from one level to the next.
    pub costs: Vec<f64>,
    /// `groups[level][slot]` is the group of a slot on a level. On the last level all slots are in one group.
    pub groups: Vec<Vec<u32>>,
}

/// A cost for every ordered pair of slots; the two directions may differ.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Matrix {
    /// The cost from slot `a` to slot `b` of `n` slots is at `a * n + b`; the diagonal is what a slot to itself costs.
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
    /// The costs between its slots.
    #[must_use]
    pub fn costs(&self) -> Costs<'_> {
        Costs::new(self)
    }

    /// Hosts that have slots, in slot order: node id, first slot, number of slots.
    pub fn hosts(&self) -> impl Iterator<Item = (u32, u32, u32)> + '_ {
        let mut first = 0;
        self.slots.chunk_by(|a, b| a.host == b.host).map(move |slots| {
            let host = (slots[0].host, first, slots.len() as u32);
            first += slots.len() as u32;
            host
        })
    }

    /// Checks that links and slots join existing nodes, that slots lie host by host, and the cost model.
    pub fn check(&self) -> Result<(), SystemGraphError> {
        self.check_nodes()?;
        self.check_slots()?;
        match &self.cost {
            CostModel::Levels(levels) => levels.check(self.slots.len()),
            CostModel::Matrix(matrix) => matrix.check(self.slots.len()),
            CostModel::Routes(routes) => routes.check(self),
        }?;
        self.routing.check(self)
    }

    fn check_nodes(&self) -> Result<(), SystemGraphError> {
        let mut names = std::collections::HashSet::new();
        if let Some(node) = self.nodes.iter().find(|node| !names.insert(&node.name)) {
            return Err(SystemGraphError::RepeatedName { name: node.name.clone() });
        }
        let nodes = self.nodes.len();
        for (index, link) in self.links.iter().enumerate() {
            if let Some(&node) = [link.source, link.destination].iter().find(|&&node| node as usize >= nodes)
            {
                return Err(SystemGraphError::NoSuchNode { what: "link", index, node, nodes });
            }
        }
        Ok(())
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
                return Err(SystemGraphError::ScatteredSlots { name: node.name.clone() });
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

    /// Whether costs rise and groups lie in groups.
    pub(crate) fn is_nested(&self) -> bool {
        let rising = self.costs.iter().all(|cost| cost.is_finite() && *cost >= 0.0)
            && self.costs.windows(2).all(|pair| pair[0] <= pair[1]);
        let nested = || {
            self.groups.windows(2).all(|levels| {
                let mut outer = std::collections::HashMap::new();
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

impl Artifact for SystemGraph {
    const KIND: &'static str = "system-graph";
}

/// A system graph that contradicts itself.
#[derive(Debug, thiserror::Error, Diagnostic)]
pub enum SystemGraphError {
    /// Two nodes have one name.
    #[error("two nodes are called `{name}`")]
    RepeatedName {
        /// The name.
        name: String,
    },
    /// A link or a slot names a node that does not exist.
    #[error("{what} {index} names node {node}, but there are {nodes} nodes")]
    NoSuchNode {
        /// `link` or `slot`.
        what: &'static str,
        /// Its index.
        index: usize,
        /// The node it names.
        node: u32,
        /// Number of nodes.
        nodes: usize,
    },
    /// A slot lies on a switch.
    #[error("slot {index} lies on `{name}`, which is a switch")]
    SlotOnSwitch {
        /// The slot.
        index: usize,
        /// Name of the switch.
        name: String,
    },
    /// The slots of a host are not together.
    #[error("the slots of host `{name}` are not one behind the other")]
    ScatteredSlots {
        /// Name of the host.
        name: String,
    },
    /// The cost levels are not a tree over the slots.
    #[error("the cost levels are not a tree over all slots with costs that rise outwards")]
    Levels,
    /// The costs inside hosts are not a tree over the slots of every host.
    #[error("the costs inside hosts are not trees over the slots of the hosts with costs that rise outwards")]
    Inside,
    /// A link lacks what counts.
    #[error("the cost model counts {metric}, but link {index} does not say what it takes for that")]
    UnknownLink {
        /// The link.
        index: usize,
        /// What counts.
        metric: &'static str,
    },
    /// An entry of a forwarding table cannot be followed.
    #[error("entry {index} of the forwarding tables {problem}")]
    Forwarding {
        /// Its index.
        index: usize,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// The cost matrix does not fit the slots.
    #[error("the cost matrix does not have a finite cost of zero or more for every pair of slots")]
    Matrix,
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Two switches under a root, two hosts each, two cores a host.
    pub(crate) fn small_tree() -> SystemGraph {
        let node = |name: &str, kind| Node::new(name, kind);
        let mut nodes: Vec<Node> = (0..4).map(|i| node(&format!("h{i}"), NodeKind::Host)).collect();
        nodes.extend(["s0", "s1", "root"].map(|name| node(name, NodeKind::Switch)));
        let both = |a, b| [(a, b), (b, a)];
        let links = [both(0, 4), both(1, 4), both(2, 5), both(3, 5), both(4, 6), both(5, 6)];
        let link = |(source, destination)| Link::new(source, destination);
        SystemGraph {
            nodes,
            links: links.into_iter().flatten().map(link).collect(),
            slots: (0..8).map(|slot| Slot { host: slot / 2, core: slot % 2 }).collect(),
            cost: CostModel::Levels(Levels {
                costs: vec![1.0, 10.0, 100.0],
                groups: vec![
                    (0..8).map(|slot| slot / 2).collect(),
                    (0..8).map(|slot| slot / 4).collect(),
                    vec![0; 8],
                ],
            }),
            routing: Routing::default(),
        }
    }

    #[test]
    fn cost_is_that_of_the_level_where_two_slots_meet() {
        let system = small_tree();
        system.check().unwrap();
        assert_eq!([0, 1, 2, 4].map(|b| system.costs().between(0, b) as u32), [0, 1, 10, 100]);
        assert_eq!(system.costs().block(&[0, 7]), [0.0, 100.0, 100.0, 0.0]);
        assert_eq!(system.hosts().collect::<Vec<_>>(), [(0, 0, 2), (1, 2, 2), (2, 4, 2), (3, 6, 2)]);
    }

    #[test]
    fn a_matrix_tells_the_directions_and_the_diagonal_apart() {
        let mut system = small_tree();
        system.slots.truncate(2);
        system.cost = CostModel::Matrix(Matrix { costs: vec![0.5, 1.0, 2.0, 0.0] });
        system.check().unwrap();
        assert_eq!(system.costs().block(&[0, 1]), [0.5, 1.0, 2.0, 0.0]);
        assert_eq!(system.costs().block(&[1, 0]), [0.0, 2.0, 1.0, 0.5]);
        for costs in [vec![0.0; 3], vec![0.0, 1.0, -1.0, 0.0], vec![0.0, f64::NAN, 1.0, 0.0]] {
            system.cost = CostModel::Matrix(Matrix { costs });
            assert!(system.check().unwrap_err().to_string().contains("cost matrix"));
        }
    }

    #[test]
    fn contradictions_are_named() {
        let broken = |change: fn(&mut SystemGraph)| {
            let mut system = small_tree();
            change(&mut system);
            system.check().unwrap_err().to_string()
        };
        assert!(broken(|s| s.nodes[1].name = "h0".into()).contains("two nodes"));
        assert!(broken(|s| s.links[0].source = 9).contains("link 0 names node 9"));
        assert!(broken(|s| s.slots[0].host = 4).contains("switch"));
        assert!(broken(|s| s.slots[7].host = 0).contains("one behind the other"));
        assert!(
            broken(|s| {
                if let CostModel::Levels(levels) = &mut s.cost {
                    levels.costs[2] = 5.0;
                }
            })
            .contains("cost levels")
        );
    }
}

/// What a node has beyond its place in the network. By default nothing is known.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct NodeTraits {
    /// How much work a host can do, in units of the instance.
    pub performance: Option<f64>,
    /// How a switch finds the way of a packet.
    pub switch_type: Option<SwitchType>,
    /// What processes on a host can do that not all hosts can, such as `fpga`; sorted.
    pub capabilities: Vec<String>,
    /// How many devices of a kind a host has; every process takes those that it needs for itself.
    pub devices: BTreeMap<String, u32>,
}

/// How a switch finds the way of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SwitchType {
    /// Type 1: one table for the whole switch; the destination decides.
    One,
    /// Type 2: a table for every port; the port by which a packet comes in and the destination decide.
    Two,
}

impl SwitchType {
    /// The number that people know it by.
    #[must_use]
    pub fn number(self) -> u32 {
        match self {
            Self::One => 1,
            Self::Two => 2,
        }
    }

    /// The type of a number.
    #[must_use]
    pub fn of_number(number: u32) -> Option<Self> {
        [Self::One, Self::Two].into_iter().find(|switch_type| switch_type.number() == number)
    }
}
