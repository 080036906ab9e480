//! What an inventory has, with names for all of it: components, boards that hold some of them, and boards with known contents.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use hopmap_model::{Node, NodeKind, NodeTraits, SwitchType, SystemGraph};
use hopmap_text::FileError;

use super::file::{self, Connector, Connectors, File};
use crate::instance;
use crate::instance::parse_as;

/// Most nodes, switches or boards of a kit.
const MOST: u32 = 1 << 12;
/// Most bytes of a file.
const MOST_BYTES: u64 = 1 << 24;

/// Most nodes and switches on all boards of a kit.
const MOST_CHIPS: usize = 1 << 16;

/// Most connectors of a board.
const MOST_CONNECTORS: usize = 1 << 12;

/// A node or a switch.
#[derive(Debug, Clone)]
pub(super) struct Component {
    /// Units of a class are alike but for their names.
    pub(super) class: usize,
    pub(super) node: Node,
    pub(super) ports: u32,
    /// Of each port.
    pub(super) bandwidth: f64,
    pub(super) cost: f64,
}

/// Boards that are alike.
#[derive(Debug, Clone)]
pub(super) struct BoardType {
    pub(super) names: Vec<String>,
    pub(super) chips: usize,
    pub(super) connectors: u32,
    pub(super) cost: f64,
}

/// A kit.
#[derive(Debug, Clone)]
pub(super) struct Inventory {
    /// The nodes of each class, then the switches of each class.
    pub(super) nodes: Vec<Vec<Component>>,
    pub(super) switches: Vec<Vec<Component>>,
    pub(super) boards: Vec<BoardType>,
    /// Boards with known contents; then there are no others, and no nodes and switches beside them.
    pub(super) fixed_boards: Vec<FixedBoard>,
    pub(super) cable_cost: f64,
    pub(super) cables: Option<u32>,
}

/// What is wrong, and what to do.
type Wrong = (String, String);

impl Inventory {
    pub(super) fn read(path: &Path) -> Result<Self, FileError> {
        Self::parse(&hopmap_text::read(path, MOST_BYTES)?, path)
    }

    pub(super) fn parse(bytes: &[u8], path: &Path) -> Result<Self, FileError> {
        let help = "a kit has `nodes`, `switches` and perhaps `boards`, as JSON or TOML";
        let file: File = parse_as(bytes, help).map_err(|error| error.in_file(path))?;
        Self::build(&file).map_err(|(problem, help)| FileError::new(problem, help).in_file(path))
    }

    fn build(file: &File) -> Result<Self, Wrong> {
        check(file)?;
        let mut names = BTreeSet::new();
        let mut class = 0;
        let mut units = |name: &str, count: u32, unit: Component| -> Result<Vec<Component>, Wrong> {
            class += 1;
            let called = |name: String| {
                let node = Node { name, ..unit.node.clone() };
                Component { class, node, ..unit.clone() }
            };
            instances(name, count, &mut names).map(|names| names.into_iter().map(called).collect())
        };
        let mut nodes = Vec::new();
        for node in &file.nodes {
            let traits = NodeTraits {
                performance: Some(node.performance),
                capabilities: node
                    .capabilities
                    .iter()
                    .cloned()
                    .collect::<BTreeSet<_>>()
                    .into_iter()
                    .collect(),
                devices: node.devices.clone(),
                ..NodeTraits::default()
            };
            let host = Node { traits, ..Node::host(&node.name) };
            let unit = Component {
                class: 0,
                node: host,
                ports: node.ports,
                bandwidth: node.bandwidth,
                cost: node.cost,
            };
            nodes.push(units(&node.name, node.count, unit)?);
        }
        let mut switches = Vec::new();
        for switch in &file.switches {
            let traits =
                NodeTraits { switch_type: SwitchType::of_number(switch.kind), ..NodeTraits::default() };
            let node = Node { traits, ..Node::switch(&switch.name) };
            let unit = Component {
                class: 0,
                node,
                ports: switch.ports,
                bandwidth: switch.bandwidth,
                cost: switch.cost,
            };
            switches.push(units(&switch.name, switch.count, unit)?);
        }
        let mut board_names = BTreeSet::new();
        let (mut boards, mut fixed_boards) = (Vec::new(), Vec::new());
        for board in &file.boards {
            let names = instances(&board.name, board.count, &mut board_names)?;
            match (board.chips.unwrap_or_default() as usize, &board.connectors) {
                (_, Connectors::Each(connectors)) => {
                    fixed_boards.push(FixedBoard::new(board, names, connectors)?)
                }
                (chips, &Connectors::Most(connectors)) => {
                    boards.push(BoardType { names, chips, connectors, cost: board.cost });
                }
            }
        }
        check_fixed_boards(&fixed_boards)?;
        Ok(Self { nodes, switches, boards, fixed_boards, cable_cost: file.cable_cost, cables: file.cables })
    }

    /// As many boards with known contents as there are.
    pub(super) fn all_boards(&self) -> Vec<usize> {
        self.fixed_boards.iter().map(|kind| kind.names.len()).collect()
    }

    /// Whether there is a host of this name.
    pub(super) fn has_host(&self, name: &str) -> bool {
        let unit = self.by_name().get(name).is_some_and(|unit| unit.node.kind == NodeKind::Host);
        unit || self.fixed_boards.iter().any(|kind| kind.number_of(name).is_some())
    }

    /// Parts that processes name: they are not like the others of their kind.
    pub(super) fn set_apart(&mut self, names: &BTreeSet<&str>) {
        let mut class = self.by_name().values().map(|unit| unit.class).max().unwrap_or_default();
        let mut apart = Vec::new();
        for units in &mut self.nodes {
            let is_named = |unit: &mut Component| names.contains(unit.node.name.as_str());
            apart.extend(units.extract_if(.., is_named).map(|unit| {
                class += 1;
                vec![Component { class, ..unit }]
            }));
        }
        self.nodes.extend(apart);
        self.nodes.retain(|units| !units.is_empty());
        self.fixed_boards = self.fixed_boards.iter().flat_map(|kind| kind.apart(names)).collect();
    }

    /// All units by name.
    pub(super) fn by_name(&self) -> BTreeMap<&str, &Component> {
        self.nodes
            .iter()
            .chain(&self.switches)
            .flatten()
            .map(|unit| (unit.node.name.as_str(), unit))
            .collect()
    }
}

/// The names of units that are alike: the name where there is one of them, else numbered from 0.
fn instances(name: &str, count: u32, names: &mut BTreeSet<String>) -> Result<Vec<String>, Wrong> {
    let name_of = |number: u32| if count == 1 { name.to_owned() } else { format!("{name}{number}") };
    let all: Vec<String> = (0..count).map(name_of).collect();
    match all.iter().find(|name| !names.insert((*name).clone())) {
        None => Ok(all),
        Some(twice) => Err((
            format!("two units are called `{twice}`"),
            "units of which there are several are numbered from 0; names tell them apart".to_owned(),
        )),
    }
}

/// Whether a board says either how much fits on it or what is on it.
fn is_whole(board: &file::Board) -> bool {
    let is_empty = board.nodes.is_empty() && board.switches.is_empty() && board.links.is_empty();
    match (board.chips, &board.connectors) {
        (Some(_), Connectors::Most(_)) => is_empty,
        (None, Connectors::Each(_)) => true,
        _ => false,
    }
}

fn check(file: &File) -> Result<(), Wrong> {
    let wrong = |problem: String, help: &str| Err((problem, help.to_owned()));
    if let Some(board) = file.boards.iter().find(|board| !is_whole(board)) {
        return wrong(
            format!("board `{}` says only part of what it is", board.name),
            "either `chips` and a number of `connectors`, or `nodes`, `switches`, `links` and a list of `connectors`",
        );
    }
    let fixed_boards = file.boards.iter().find(|board| board.chips.is_none());
    if let Some(fixed_boards) = fixed_boards {
        let limited = file.boards.iter().any(|board| board.chips.is_some());
        if limited || !file.nodes.is_empty() || !file.switches.is_empty() {
            return wrong(
                format!(
                    "the kit has boards with known contents, as `{}`, and parts without a board",
                    fixed_boards.name
                ),
                "either all boards say what is on them and there are no other parts, or no board does",
            );
        }
    } else if file.nodes.is_empty() {
        return wrong("the kit has no nodes".to_owned(), "processes need hosts: add `nodes`");
    }
    let counts = file.nodes.iter().map(|node| ("node", &node.name, node.count));
    let counts = counts.chain(file.switches.iter().map(|switch| ("switch", &switch.name, switch.count)));
    let counts = counts.chain(file.boards.iter().map(|board| ("board", &board.name, board.count)));
    for (what, name, count) in counts {
        if name.trim().is_empty() {
            return wrong(format!("a {what} has no name"), "give it one");
        }
        if count == 0 || count > MOST {
            return wrong(format!("there are {count} of {what} `{name}`"), &format!("from 1 to {MOST}"));
        }
    }
    let ports = file.nodes.iter().map(|node| ("node", &node.name, node.ports, node.bandwidth));
    let ports = ports
        .chain(file.switches.iter().map(|switch| ("switch", &switch.name, switch.ports, switch.bandwidth)));
    for (what, name, ports, bandwidth) in ports {
        if ports == 0 || ports > MOST {
            return wrong(format!("{what} `{name}` has {ports} ports"), &format!("from 1 to {MOST}"));
        }
        if !(bandwidth.is_finite() && bandwidth > 0.0) {
            return wrong(
                format!("the ports of {what} `{name}` have a bandwidth of {bandwidth}"),
                "it is above 0",
            );
        }
    }
    for node in &file.nodes {
        if !(node.performance.is_finite() && node.performance >= 0.0) {
            let problem = format!("node `{}` has a performance of {}", node.name, node.performance);
            return wrong(problem, "it is 0 or more");
        }
    }
    for switch in &file.switches {
        if SwitchType::of_number(switch.kind).is_none() {
            return wrong(
                format!("switch `{}` is of type {}", switch.name, switch.kind),
                "1: one table for the whole switch; 2: a table for every port",
            );
        }
    }
    if let Some(board) = file.boards.iter().find(|board| board.chips == Some(0)) {
        return wrong(format!("board `{}` has room for no chip", board.name), "`chips` is 1 or more");
    }
    let costs = file.nodes.iter().map(|node| (&node.name, node.cost));
    let costs = costs.chain(file.switches.iter().map(|switch| (&switch.name, switch.cost)));
    let costs = costs.chain(file.boards.iter().map(|board| (&board.name, board.cost)));
    for (name, cost) in costs {
        if !(cost.is_finite() && cost >= 0.0) {
            return wrong(format!("`{name}` costs {cost}"), "a cost is 0 or more");
        }
    }
    match file.cable_cost.is_finite() && file.cable_cost >= 0.0 {
        true => Ok(()),
        false => wrong(format!("`cable_cost` is {}", file.cable_cost), "a cost is 0 or more"),
    }
}

/// Boards that are alike.
#[derive(Debug, Clone)]
pub(super) struct FixedBoard {
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

impl FixedBoard {
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

    /// Whether cables can be plugged into boards of this type.
    pub(super) fn has_connectors(&self) -> bool {
        !self.connectors.is_empty()
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
fn check_fixed_boards(kinds: &[FixedBoard]) -> Result<(), Wrong> {
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
