//! The components of an inventory, with their names: components, boards that hold some of them, and boards with known contents.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::Path;

use hopmap_model::{Node, NodeKind, SystemGraph};
use hopmap_routing::error::{Result, RouteError, fail, is_above_zero, is_amount};
use hopmap_text::FileError;
use serde::de::{self, IgnoredAny, SeqAccess, Unexpected, Visitor};
use serde::{Deserialize, Deserializer};

use crate::instance::{CableRow, HostRow, Ports, SwitchRow, host, network, parse_as, switch};

/// Maximum number of nodes, switches or boards of an inventory.
const MOST: u32 = 1 << 12;
/// Maximum file size in bytes.
const MOST_BYTES: u64 = 1 << 24;
/// Maximum number of nodes and switches on all boards.
const MOST_CHIPS: usize = 1 << 16;
/// Maximum number of connectors of a board.
const MOST_CONNECTORS: usize = 1 << 12;

/// A node or a switch.
#[derive(Debug, Clone)]
pub(super) struct Component {
    /// Units of a class differ only in their names.
    pub(super) class: usize,
    pub(super) node: Node,
    pub(super) ports: u32,
    /// Bandwidth of each port.
    pub(super) bandwidth: f64,
    pub(super) cost: f64,
}

/// Identical boards.
#[derive(Debug, Clone)]
pub(super) struct BoardType {
    pub(super) names: Vec<String>,
    pub(super) chips: usize,
    pub(super) connectors: u32,
    pub(super) cost: f64,
}

/// A component inventory: a bill of materials, or boards with known contents.
#[derive(Debug, Clone)]
pub(super) struct Inventory {
    /// The nodes of each class, then the switches of each class.
    pub(super) nodes: Vec<Vec<Component>>,
    switches: Vec<Vec<Component>>,
    pub(super) boards: Vec<BoardType>,
    /// Boards with known contents; then there are no other boards and no separate nodes and switches.
    pub(super) fixed_boards: Vec<FixedBoard>,
    pub(super) cable_cost: f64,
    pub(super) cables: Option<u32>,
}

impl Inventory {
    pub(super) fn read(path: &Path) -> Result<Self, FileError> {
        Self::parse(&hopmap_text::read(path, MOST_BYTES)?, path)
    }

    pub(super) fn parse(bytes: &[u8], path: &Path) -> Result<Self, FileError> {
        let help = "an inventory has `nodes`, `switches` and optionally `boards`, as JSON or TOML";
        let file: File = parse_as(bytes, help).map_err(|error| error.in_file(path))?;
        Self::build(&file).map_err(|error| FileError::new(error.problem, error.help).in_file(path))
    }

    fn build(file: &File) -> Result<Self> {
        check(file)?;
        let mut names = BTreeSet::new();
        let mut class = 0;
        let mut units = |count: u32, unit: Component| -> Result<Vec<Component>> {
            class += 1;
            let called = |name: String| {
                let node = Node { name, ..unit.node.clone() };
                Component { class, node, ..unit.clone() }
            };
            let names = instances(&unit.node.name, count, &mut names)?;
            Ok(names.into_iter().map(called).collect())
        };
        let (mut nodes, mut switches) = (Vec::new(), Vec::new());
        for row in &file.nodes {
            let node = host(&row.name, row.performance, &row.capabilities, &row.devices);
            let (ports, bandwidth, cost) = (row.ports, row.bandwidth, row.cost);
            nodes.push(units(row.count, Component { class: 0, node, ports, bandwidth, cost })?);
        }
        for row in &file.switches {
            let node = switch(&row.name, row.kind)?;
            let (ports, bandwidth, cost) = (row.ports, row.bandwidth, row.cost);
            switches.push(units(row.count, Component { class: 0, node, ports, bandwidth, cost })?);
        }
        let mut board_names = BTreeSet::new();
        let (mut boards, mut fixed_boards) = (Vec::new(), Vec::new());
        for board in &file.boards {
            let names = instances(&board.name, board.count, &mut board_names)?;
            match (board.chips.unwrap_or_default() as usize, &board.connectors) {
                (_, Connectors::Each(each)) => fixed_boards.push(FixedBoard::new(board, names, each)?),
                (chips, &Connectors::Most(connectors)) => {
                    boards.push(BoardType { names, chips, connectors, cost: board.cost });
                }
            }
        }
        check_fixed_boards(&fixed_boards)?;
        Ok(Self { nodes, switches, boards, fixed_boards, cable_cost: file.cable_cost, cables: file.cables })
    }

    /// Whether it consists of boards with known contents.
    pub(super) fn is_fixed(&self) -> bool {
        !self.fixed_boards.is_empty()
    }

    /// The nodes, then the switches of each class.
    pub(super) fn classes(&self) -> impl Iterator<Item = &Vec<Component>> {
        self.nodes.iter().chain(&self.switches)
    }

    /// The maximum number of components of every kind.
    pub(super) fn all(&self) -> Vec<usize> {
        match self.is_fixed() {
            true => self.fixed_boards.iter().map(|kind| kind.names.len()).collect(),
            false => self.classes().map(Vec::len).collect(),
        }
    }

    /// Whether the inventory has a host of this name.
    pub(super) fn has_host(&self, name: &str) -> bool {
        let unit = self.by_name().get(name).is_some_and(|unit| unit.node.kind == NodeKind::Host);
        unit || self.fixed_boards.iter().any(|kind| kind.number_of(name).is_some())
    }

    /// Separates components to which processes are fixed from the others of their kind.
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
        self.classes().flatten().map(|unit| (unit.node.name.as_str(), unit)).collect()
    }
}

/// The names of alike units: the plain name if there is only one, otherwise numbered from 0.
fn instances(name: &str, count: u32, names: &mut BTreeSet<String>) -> Result<Vec<String>> {
    let name_of = |number: u32| if count == 1 { name.to_owned() } else { format!("{name}{number}") };
    let all: Vec<String> = (0..count).map(name_of).collect();
    match all.iter().find(|name| !names.insert((*name).clone())) {
        None => Ok(all),
        Some(twice) => fail(
            format!("two units are named `{twice}`"),
            "names must be unique; units of a kind are numbered from 0",
        ),
    }
}

fn check(file: &File) -> Result<()> {
    let is_partial = |board: &&BoardRow| match (board.chips, &board.connectors) {
        (Some(_), Connectors::Most(_)) => {
            !(board.nodes.is_empty() && board.switches.is_empty() && board.links.is_empty())
        }
        (chips, connectors) => chips.is_some() || matches!(connectors, Connectors::Most(_)),
    };
    if let Some(board) = file.boards.iter().find(is_partial) {
        return fail(
            format!("board `{}` is incomplete", board.name),
            "specify either `chips` and a number of `connectors`, or `nodes`, `switches`, `links` and a list of `connectors`",
        );
    }
    let fixed = file.boards.iter().find(|board| board.chips.is_none());
    let are_mixed = file.boards.iter().any(|board| board.chips.is_some())
        || !file.nodes.is_empty()
        || !file.switches.is_empty();
    if let Some(BoardRow { name, .. }) = fixed.filter(|_| are_mixed) {
        return fail(
            format!(
                "the inventory mixes boards with known contents, such as `{name}`, with other components"
            ),
            "either specify the contents of all boards and no other components, or of no board",
        );
    }
    if fixed.is_none() && file.nodes.is_empty() {
        return fail("the inventory has no nodes", "processes need hosts: add `nodes`");
    }
    for row in &file.nodes {
        check_row("node", &row.name, row.count, row.cost, Some((row.ports, row.bandwidth)))?;
        if !is_amount(row.performance) {
            let problem = format!("node `{}` has a performance of {}", row.name, row.performance);
            return fail(problem, "it is 0 or more");
        }
    }
    for row in &file.switches {
        check_row("switch", &row.name, row.count, row.cost, Some((row.ports, row.bandwidth)))?;
    }
    for row in &file.boards {
        check_row("board", &row.name, row.count, row.cost, None)?;
        if row.chips == Some(0) {
            return fail(format!("board `{}` has no room for chips", row.name), "`chips` is 1 or more");
        }
    }
    match is_amount(file.cable_cost) {
        true => Ok(()),
        false => fail(format!("`cable_cost` = {} is out of range", file.cable_cost), "allowed: 0 or more"),
    }
}

/// Rejects components without a name, with an invalid number or cost, or with ports without bandwidth.
fn check_row(what: &str, name: &str, count: u32, cost: f64, ports: Option<(u32, f64)>) -> Result<()> {
    if name.trim().is_empty() {
        return fail(format!("a {what} has no name"), "give it one");
    }
    if count == 0 || count > MOST {
        return fail(format!("there are {count} of {what} `{name}`"), format!("from 1 to {MOST}"));
    }
    let (ports, bandwidth) = ports.unwrap_or((1, 1.0));
    if ports == 0 || ports > MOST {
        return fail(format!("{what} `{name}` has {ports} ports"), format!("from 1 to {MOST}"));
    }
    if !is_above_zero(bandwidth) {
        let problem = format!("the ports of {what} `{name}` have a bandwidth of {bandwidth}");
        return fail(problem, "it is above 0");
    }
    if is_amount(cost) { Ok(()) } else { fail(format!("`{name}` costs {cost}"), "a cost is 0 or more") }
}

/// Identical boards with known contents.
#[derive(Debug, Clone)]
pub(super) struct FixedBoard {
    pub(super) names: Vec<String>,
    /// Its nodes, with the names on the board, and the links between them.
    pub(super) inside: SystemGraph,
    pub(super) connectors: Vec<Group>,
    /// Cost of one board.
    pub(super) cost: f64,
    /// Whether processes are fixed to hosts of it, so that every machine includes it.
    pub(super) is_named: bool,
}

/// Identical connectors: at one chip, with one bandwidth.
#[derive(Debug, Clone)]
pub(super) struct Group {
    /// The chip, by its number on the board.
    pub(super) node: u32,
    /// Bandwidth of each connector.
    pub(super) bandwidth: f64,
    pub(super) ports: Vec<u32>,
}

impl FixedBoard {
    fn new(board: &BoardRow, names: Vec<String>, connectors: &[Connector]) -> Result<Self> {
        let on_board = |error: RouteError| {
            RouteError::new(format!("board `{}`: {}", board.name, error.problem), error.help)
        };
        let inside = network(&board.nodes, &board.switches, &board.links).map_err(on_board)?;
        if inside.nodes.is_empty() {
            return fail(
                format!("board `{}` is empty", board.name),
                "specify its contents with `nodes` and `switches`, or its capacity with `chips`",
            );
        }
        let connectors = groups(&inside, connectors).map_err(on_board)?;
        Ok(Self { names, inside, connectors, cost: board.cost, is_named: false })
    }

    /// The name of a chip in the machine.
    pub(super) fn chip(&self, number: usize, node: &Node) -> String {
        format!("{}_{}", self.names[number], node.name)
    }

    /// The board that has the host of this name, if any.
    pub(super) fn number_of(&self, host: &str) -> Option<usize> {
        let is_there = |board: &String| {
            let chip = host.strip_prefix(board.as_str()).and_then(|rest| rest.strip_prefix('_'));
            chip.is_some_and(|chip| {
                self.inside.nodes.iter().any(|node| node.kind == NodeKind::Host && node.name == chip)
            })
        };
        self.names.iter().position(is_there)
    }

    /// The boards to which processes are fixed, one by one, and the others.
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

    /// Whether boards of this type have connectors.
    pub(super) fn has_connectors(&self) -> bool {
        !self.connectors.is_empty()
    }

    /// Total performance of the hosts of one board.
    pub(super) fn performance(&self) -> f64 {
        self.inside.nodes.iter().filter_map(|node| node.traits.performance).sum()
    }
}

/// Connectors by chip and bandwidth; those without a port are at the lowest free ones, in their order.
fn groups(inside: &SystemGraph, connectors: &[Connector]) -> Result<Vec<Group>> {
    if connectors.len() > MOST_CONNECTORS {
        let help = format!("at most {MOST_CONNECTORS} are supported");
        return fail(format!("{} connectors", connectors.len()), help);
    }
    let mut ports = Ports::of(&inside.links);
    let mut chips = Vec::new();
    for Connector { at, bandwidth, port } in connectors {
        let Some(node) = inside.nodes.iter().position(|node| node.name == *at) else {
            let help = "`at` must name one of the `nodes` or `switches` of the board";
            return fail(format!("a connector is at `{at}`, which is not on the board"), help);
        };
        if !is_above_zero(*bandwidth) {
            let help = "it is above 0; omit connectors without bandwidth";
            return fail(format!("a connector of `{at}` has a bandwidth of {bandwidth}"), help);
        }
        if let Some(port) = port.filter(|&port| !ports.taken.insert((node as u32, port))) {
            let help = "a port takes one link or one connector";
            return fail(format!("port {port} of `{at}` is used twice"), help);
        }
        chips.push(node as u32);
    }
    let mut groups: Vec<Group> = Vec::new();
    for (&node, &Connector { bandwidth, port, .. }) in chips.iter().zip(connectors) {
        let port = port.unwrap_or_else(|| ports.lowest(node));
        let is_alike =
            |group: &&mut Group| group.node == node && group.bandwidth.total_cmp(&bandwidth).is_eq();
        match groups.iter_mut().find(is_alike) {
            Some(group) => group.ports.push(port),
            None => groups.push(Group { node, bandwidth, ports: vec![port] }),
        }
    }
    Ok(groups)
}

/// Rejects boards with too many chips in total, or with duplicate chip names.
fn check_fixed_boards(kinds: &[FixedBoard]) -> Result<()> {
    let chips: usize = kinds.iter().map(|kind| kind.names.len() * kind.inside.nodes.len()).sum();
    if chips > MOST_CHIPS {
        let help = format!("at most {MOST_CHIPS} are supported: reduce `count`");
        return fail(format!("the boards of the inventory have {chips} nodes and switches"), help);
    }
    let mut nodes = kinds.iter().flat_map(|kind| &kind.inside.nodes);
    if !kinds.is_empty() && !nodes.any(|node| node.kind == NodeKind::Host) {
        return fail("no board of the inventory has a node", "processes need hosts: add `nodes` to a board");
    }
    let mut names = BTreeSet::new();
    for kind in kinds {
        let chips =
            (0..kind.names.len()).flat_map(|number| kind.inside.nodes.iter().map(move |node| (number, node)));
        for name in chips.map(|(number, node)| kind.chip(number, node)) {
            if names.contains(&name) {
                let help = "a chip is named after its board and its name on it; these names must be unique";
                return fail(format!("two chips are named `{name}`"), help);
            }
            names.insert(name);
        }
    }
    Ok(())
}

/// The file format of an inventory.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    nodes: Vec<NodeRow>,
    #[serde(default)]
    switches: Vec<SwitchTypeRow>,
    #[serde(default)]
    boards: Vec<BoardRow>,
    /// Cost of a cable.
    #[serde(default)]
    cable_cost: f64,
    /// Maximum number of cables.
    cables: Option<u32>,
    /// A comment.
    #[serde(rename = "note")]
    _note: Option<IgnoredAny>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct NodeRow {
    name: String,
    #[serde(default = "hopmap_model::number::<1, u32>")]
    count: u32,
    performance: f64,
    #[serde(default = "hopmap_model::number::<1, u32>")]
    ports: u32,
    bandwidth: f64,
    #[serde(default)]
    capabilities: Vec<String>,
    #[serde(default)]
    devices: BTreeMap<String, u32>,
    #[serde(default = "hopmap_model::number::<1, f64>")]
    cost: f64,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct SwitchTypeRow {
    name: String,
    #[serde(default = "hopmap_model::number::<1, u32>")]
    count: u32,
    #[serde(rename = "type")]
    kind: u32,
    ports: u32,
    bandwidth: f64,
    #[serde(default = "hopmap_model::number::<1, f64>")]
    cost: f64,
}

/// A board: either its capacity, or its contents.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct BoardRow {
    name: String,
    #[serde(default = "hopmap_model::number::<1, u32>")]
    count: u32,
    /// Maximum number of nodes and switches on it.
    chips: Option<u32>,
    #[serde(default)]
    connectors: Connectors,
    #[serde(default = "hopmap_model::number::<1, f64>")]
    cost: f64,
    #[serde(default, alias = "hosts")]
    nodes: Vec<HostRow>,
    #[serde(default)]
    switches: Vec<SwitchRow>,
    #[serde(default)]
    links: Vec<CableRow>,
}

/// Connectors for cables to other boards.
#[derive(Debug, Clone)]
pub(super) enum Connectors {
    /// Maximum number of cables to other boards.
    Most(u32),
    /// Each connector of a board with known contents.
    Each(Vec<Connector>),
}

/// A connector of a chip.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Connector {
    pub(super) at: String,
    pub(super) bandwidth: f64,
    /// Port of the chip.
    #[serde(default)]
    pub(super) port: Option<u32>,
}

impl Default for Connectors {
    fn default() -> Self {
        Self::Each(Vec::new())
    }
}

impl<'de> Deserialize<'de> for Connectors {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ConnectorsVisitor)
    }
}

/// Unlike an untagged enum, this reports the error in a connector.
struct ConnectorsVisitor;

impl<'de> Visitor<'de> for ConnectorsVisitor {
    type Value = Connectors;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a number of connectors or a list of them")
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<Connectors, E> {
        let most = u32::try_from(number);
        most.map(Connectors::Most).map_err(|_| E::invalid_value(Unexpected::Unsigned(number), &self))
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<Connectors, E> {
        let most = u32::try_from(number);
        most.map(Connectors::Most).map_err(|_| E::invalid_value(Unexpected::Signed(number), &self))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Connectors, A::Error> {
        let mut connectors = Vec::new();
        while let Some(connector) = list.next_element()? {
            connectors.push(connector);
        }
        Ok(Connectors::Each(connectors))
    }
}
