//! Boards with known contents: what is on them is fixed, and cables join their connectors.

mod assembly;
mod exact;
mod search;

use std::collections::{BTreeMap, BTreeSet};

use hopmap_model::{Node, NodeKind, SystemGraph};

use super::file::{self, Connector};
use crate::instance;

pub(super) use assembly::Assembly;
pub(super) use search::search;

/// Most nodes and switches on all boards of a kit.
const MOST_CHIPS: usize = 1 << 16;

/// Most connectors of a board.
const MOST_CONNECTORS: usize = 1 << 12;

/// What is wrong, and what to do.
type Wrong = (String, String);

/// Boards that are alike.
#[derive(Debug, Clone)]
pub(super) struct Wired {
    pub(super) names: Vec<String>,
    /// Its nodes, called as on the board, and the links between them.
    pub(super) inside: SystemGraph,
    pub(super) connectors: Vec<Group>,
    /// Of one board.
    pub(super) cost: f64,
    /// Whether processes name hosts of it, so that no machine does without it.
    pub(super) is_named: bool,
}

/// Connectors that are alike: at one chip, with one bandwidth.
#[derive(Debug, Clone)]
pub(super) struct Group {
    /// The chip, by its number on the board.
    pub(super) node: u32,
    /// Of each connector.
    pub(super) bandwidth: f64,
    pub(super) ports: Vec<u32>,
}

impl Wired {
    pub(super) fn new(
        board: &file::Board,
        names: Vec<String>,
        connectors: &[Connector],
    ) -> Result<Self, Wrong> {
        let on_board = |(problem, help)| (format!("board `{}`: {problem}", board.name), help);
        let inside = instance::network(&board.nodes, &board.switches, &board.links).map_err(on_board)?;
        if inside.nodes.is_empty() {
            return Err((
                format!("board `{}` has nothing on it", board.name),
                "`nodes` and `switches` say what is on it, or `chips` how much fits on it".to_owned(),
            ));
        }
        let connectors = groups(&inside, connectors).map_err(on_board)?;
        Ok(Self { names, inside, connectors, cost: board.cost, is_named: false })
    }

    /// The name of a chip in the machine.
    pub(super) fn chip(&self, number: usize, node: &Node) -> String {
        format!("{}_{}", self.names[number], node.name)
    }

    /// Which of the boards has the host of this name, if any.
    pub(super) fn number_of(&self, host: &str) -> Option<usize> {
        let is_there = |board: &String| {
            let chip = host.strip_prefix(board.as_str()).and_then(|rest| rest.strip_prefix('_'));
            chip.is_some_and(|chip| {
                self.inside.nodes.iter().any(|node| node.kind == NodeKind::Host && node.name == chip)
            })
        };
        self.names.iter().position(is_there)
    }

    /// The boards that processes name each on their own, and the others.
    pub(super) fn apart(&self, hosts: &BTreeSet<&str>) -> Vec<Self> {
        let fixed: BTreeSet<usize> = hosts.iter().filter_map(|host| self.number_of(host)).collect();
        let of = |numbers: Vec<usize>, is_named: bool| {
            let names = numbers.into_iter().map(|number| self.names[number].clone()).collect();
            Self { names, is_named, ..self.clone() }
        };
        let rest: Vec<usize> = (0..self.names.len()).filter(|number| !fixed.contains(number)).collect();
        let mut kinds: Vec<Self> = fixed.into_iter().map(|number| of(vec![number], true)).collect();
        if !rest.is_empty() {
            kinds.push(of(rest, false));
        }
        kinds
    }

    /// What the hosts of one board do in all.
    pub(super) fn performance(&self) -> f64 {
        self.inside.nodes.iter().filter_map(|node| node.traits.performance).sum()
    }
}

/// Connectors by chip and bandwidth; those that do not say a port are at the lowest ones that are free, in their order.
fn groups(inside: &SystemGraph, connectors: &[Connector]) -> Result<Vec<Group>, Wrong> {
    if connectors.len() > MOST_CONNECTORS {
        let help = format!("at most {MOST_CONNECTORS} are looked at");
        return Err((format!("{} connectors", connectors.len()), help));
    }
    let mut taken: BTreeSet<(u32, u32)> = BTreeSet::new();
    for link in &inside.links {
        taken.extend(link.source_port.map(|port| (link.source, port)));
        taken.extend(link.destination_port.map(|port| (link.destination, port)));
    }
    let mut chips = Vec::new();
    for Connector { at, bandwidth, port } in connectors {
        let Some(node) = inside.nodes.iter().position(|node| node.name == *at) else {
            return Err((
                format!("a connector is at `{at}`, which is not on the board"),
                "connectors are at `nodes` or `switches` of the board".to_owned(),
            ));
        };
        if !(bandwidth.is_finite() && *bandwidth > 0.0) {
            let help = "it is above 0; leave out connectors that carry nothing";
            return Err((format!("a connector of `{at}` has a bandwidth of {bandwidth}"), help.to_owned()));
        }
        if let Some(port) = port.filter(|&port| !taken.insert((node as u32, port))) {
            let help = "a port has one link or one connector";
            return Err((format!("port {port} of `{at}` is taken twice"), help.to_owned()));
        }
        chips.push(node as u32);
    }
    let mut groups: Vec<Group> = Vec::new();
    let mut next: BTreeMap<u32, u32> = BTreeMap::new();
    for (&node, connector) in chips.iter().zip(connectors) {
        let port = connector.port.unwrap_or_else(|| {
            let port = next.entry(node).or_default();
            while taken.contains(&(node, *port)) {
                *port += 1;
            }
            *port
        });
        taken.insert((node, port));
        let bandwidth = connector.bandwidth;
        let alike = groups
            .iter_mut()
            .find(|group| group.node == node && group.bandwidth.total_cmp(&bandwidth).is_eq());
        match alike {
            Some(group) => group.ports.push(port),
            None => groups.push(Group { node, bandwidth, ports: vec![port] }),
        }
    }
    Ok(groups)
}

/// Refuses boards that together have too many chips, or two of the same name.
pub(super) fn check(kinds: &[Wired]) -> Result<(), Wrong> {
    let chips: usize = kinds.iter().map(|kind| kind.names.len() * kind.inside.nodes.len()).sum();
    if chips > MOST_CHIPS {
        let help = format!("at most {MOST_CHIPS} are looked at: lower `count`");
        return Err((format!("the boards of the kit have {chips} nodes and switches"), help));
    }
    if !kinds.is_empty()
        && !kinds.iter().flat_map(|kind| &kind.inside.nodes).any(|node| node.kind == NodeKind::Host)
    {
        return Err((
            "no board of the kit has a node".to_owned(),
            "processes need hosts: add `nodes` to a board".to_owned(),
        ));
    }
    let mut names = BTreeSet::new();
    for kind in kinds {
        for (number, node) in
            (0..kind.names.len()).flat_map(|number| kind.inside.nodes.iter().map(move |node| (number, node)))
        {
            let name = kind.chip(number, node);
            if names.contains(&name) {
                let help = "chips are called by their board and their name on it; names tell them apart";
                return Err((format!("two chips are called `{name}`"), help.to_owned()));
            }
            names.insert(name);
        }
    }
    Ok(())
}
