//! What a kit has, with names for all of it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use hopmap_model::{Node, NodeKind, NodeTraits, SwitchType};
use hopmap_text::FileError;

use super::file::{self, Connectors, File};
use super::wired::{self, Wired};
use crate::instance::parse_as;

/// Most nodes, switches or boards of a kit.
const MOST: u32 = 1 << 12;
/// Most bytes of a file.
const MOST_BYTES: u64 = 1 << 24;

/// A node or a switch.
#[derive(Debug, Clone)]
pub(super) struct Unit {
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
pub(super) struct Stock {
    /// The nodes of each class, then the switches of each class.
    pub(super) nodes: Vec<Vec<Unit>>,
    pub(super) switches: Vec<Vec<Unit>>,
    pub(super) boards: Vec<BoardType>,
    /// Boards with known contents; then there are no others, and no nodes and switches beside them.
    pub(super) wired: Vec<Wired>,
    pub(super) cable_cost: f64,
    pub(super) cables: Option<u32>,
}

/// What is wrong, and what to do.
type Wrong = (String, String);

impl Stock {
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
        let mut units = |name: &str, count: u32, unit: Unit| -> Result<Vec<Unit>, Wrong> {
            class += 1;
            let called = |name: String| {
                let node = Node { name, ..unit.node.clone() };
                Unit { class, node, ..unit.clone() }
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
            let unit =
                Unit { class: 0, node: host, ports: node.ports, bandwidth: node.bandwidth, cost: node.cost };
            nodes.push(units(&node.name, node.count, unit)?);
        }
        let mut switches = Vec::new();
        for switch in &file.switches {
            let traits =
                NodeTraits { switch_type: SwitchType::of_number(switch.kind), ..NodeTraits::default() };
            let node = Node { traits, ..Node::switch(&switch.name) };
            let unit =
                Unit { class: 0, node, ports: switch.ports, bandwidth: switch.bandwidth, cost: switch.cost };
            switches.push(units(&switch.name, switch.count, unit)?);
        }
        let mut board_names = BTreeSet::new();
        let (mut boards, mut wired) = (Vec::new(), Vec::new());
        for board in &file.boards {
            let names = instances(&board.name, board.count, &mut board_names)?;
            match (board.chips.unwrap_or_default() as usize, &board.connectors) {
                (_, Connectors::Each(connectors)) => wired.push(Wired::new(board, names, connectors)?),
                (chips, &Connectors::Most(connectors)) => {
                    boards.push(BoardType { names, chips, connectors, cost: board.cost });
                }
            }
        }
        wired::check(&wired)?;
        Ok(Self { nodes, switches, boards, wired, cable_cost: file.cable_cost, cables: file.cables })
    }

    /// As many boards with known contents as there are.
    pub(super) fn all_boards(&self) -> Vec<usize> {
        self.wired.iter().map(|kind| kind.names.len()).collect()
    }

    /// Whether there is a host of this name.
    pub(super) fn has_host(&self, name: &str) -> bool {
        let unit = self.by_name().get(name).is_some_and(|unit| unit.node.kind == NodeKind::Host);
        unit || self.wired.iter().any(|kind| kind.number_of(name).is_some())
    }

    /// Parts that processes name: they are not like the others of their kind.
    pub(super) fn set_apart(&mut self, names: &BTreeSet<&str>) {
        let mut class = self.by_name().values().map(|unit| unit.class).max().unwrap_or_default();
        let mut apart = Vec::new();
        for units in &mut self.nodes {
            let is_named = |unit: &mut Unit| names.contains(unit.node.name.as_str());
            apart.extend(units.extract_if(.., is_named).map(|unit| {
                class += 1;
                vec![Unit { class, ..unit }]
            }));
        }
        self.nodes.extend(apart);
        self.nodes.retain(|units| !units.is_empty());
        self.wired = self.wired.iter().flat_map(|kind| kind.apart(names)).collect();
    }

    /// All units by name.
    pub(super) fn by_name(&self) -> BTreeMap<&str, &Unit> {
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
    let wired = file.boards.iter().find(|board| board.chips.is_none());
    if let Some(wired) = wired {
        let limited = file.boards.iter().any(|board| board.chips.is_some());
        if limited || !file.nodes.is_empty() || !file.switches.is_empty() {
            return wrong(
                format!(
                    "the kit has boards with known contents, as `{}`, and parts without a board",
                    wired.name
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
