//! Routes of streams, switch tables that implement them, infeasibility diagnoses, and effects of failures.

use std::collections::{BTreeMap, HashMap};

use miette::Diagnostic;
use serde::{Deserialize, Serialize};

use crate::stage::Artifact;
use crate::system_graph::{Forward, LinkState, NodeKind, Routing, SystemGraph};

/// The routes of all streams through a network.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Routes {
    /// The routes.
    pub routes: Vec<Route>,
    /// What a route represents.
    pub counting: Counting,
    /// A cycle of links in the channel dependency graph, each waiting for the next; empty if there is none
    /// (deadlock-free).
    pub cycle: Vec<u32>,
    /// Quality metrics by name, such as `objective`.
    pub metrics: BTreeMap<String, f64>,
}

/// What a route represents.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Counting {
    /// Each stream between two processes has its own route.
    #[default]
    Streams,
    /// All streams from one host to another are combined into one with their total bandwidth.
    HostPairs,
}

/// The route from one host to another.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Route {
    /// Node id of the sending host.
    pub source: u32,
    /// Node id of the receiving host; may be the same.
    pub destination: u32,
    /// Bandwidth it uses on every link.
    pub bandwidth_bytes_per_s: f64,
    /// Indexes of its streams.
    pub streams: Vec<u32>,
    /// Indexes of its links, first to last; none inside a host.
    pub links: Vec<u32>,
}

/// The forwarding tables of all switches.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Tables {
    /// The entries, sorted by switch, input port (the table of the entire switch first) and destination.
    pub entries: Vec<TableEntry>,
    /// Metrics by name, such as `entries`.
    pub metrics: BTreeMap<String, f64>,
}

/// An entry of a forwarding table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct TableEntry {
    /// Node id of the switch.
    pub switch: u32,
    /// Input port of the table; `None` for the table of the entire switch.
    pub input_port: Option<u32>,
    /// Node id of the destination host.
    pub destination: u32,
    /// Output port.
    pub output_port: u32,
}

impl Tables {
    /// Checks that entries are sorted and that no table has two entries for one destination.
    pub fn check(&self) -> Result<(), TablesError> {
        let key = |entry: &TableEntry| (entry.switch, entry.input_port, entry.destination);
        for (index, pair) in self.entries.windows(2).enumerate() {
            if key(&pair[0]) == key(&pair[1]) {
                return Err(TablesError::Twice(index + 1));
            }
            if key(&pair[0]) > key(&pair[1]) {
                return Err(TablesError::Unsorted(index + 1));
            }
        }
        Ok(())
    }
}

impl Tables {
    /// The forwarding of a machine by these tables. Entries that lead nowhere are left out.
    pub fn routing(&self, system: &SystemGraph) -> Result<Routing, TablesError> {
        let name = |node: u32| system.nodes.get(node as usize).map_or("?", |node| &node.name).to_owned();
        let up = (0..).zip(&system.links).filter(|(_, link)| link.state == LinkState::Up);
        let mut ports: HashMap<(u32, u32), u32> = HashMap::new();
        let mut into: HashMap<u32, Vec<u32>> = HashMap::new();
        for (index, link) in up {
            ports.extend(link.source_port.map(|port| ((link.source, port), index)));
            into.entry(link.destination).or_default().push(index);
        }
        let mut next: HashMap<(u32, u32), u32> = HashMap::with_capacity(self.entries.len());
        for entry in &self.entries {
            if entry.input_port.is_some() {
                return Err(TablesError::PerPort(name(entry.switch)));
            }
            let is_host =
                |node: u32| system.nodes.get(node as usize).is_some_and(|node| node.kind == NodeKind::Host);
            let (Some(&link), true) =
                (ports.get(&(entry.switch, entry.output_port)), is_host(entry.destination))
            else {
                return Err(TablesError::OtherMachine {
                    switch: name(entry.switch),
                    port: entry.output_port,
                    destination: name(entry.destination),
                });
            };
            next.insert((entry.switch, entry.destination), link);
        }
        // The link over which packets reach the host.
        let last = |destination: u32, mut link: u32| {
            for _ in 0..system.nodes.len() {
                let at = system.links[link as usize].destination;
                if at == destination {
                    return Some(link);
                }
                match into.get(&destination).map(Vec::as_slice) {
                    Some([only]) => return Some(*only),
                    _ => link = *next.get(&(at, destination))?,
                }
            }
            None
        };
        let forward = |(&(node, destination), &link): (&(u32, u32), &u32)| {
            Some(Forward { node, last: last(destination, link)?, link })
        };
        let mut forwarding: Vec<Forward> = next.iter().filter_map(forward).collect();
        forwarding.sort_unstable();
        Ok(Routing { forwarding, ..Routing::default() })
    }
}

impl Artifact for Routes {
    const KIND: &'static str = "routes";
}

impl Artifact for Tables {
    const KIND: &'static str = "tables";
}

/// Inconsistent tables.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Diagnostic)]
pub enum TablesError {
    /// Two entries for one destination in one table.
    #[error("entry {0} has the same table and destination as the previous entry")]
    #[diagnostic(code(model::twice))]
    Twice(usize),
    /// Entries are not sorted.
    #[error("entry {0} is out of order: entries must be sorted by switch, input port and destination")]
    #[diagnostic(code(model::tables_unsorted))]
    Unsorted(usize),
    /// A table of an input port, where only tables of switches have a meaning.
    #[error("switch `{0}` has a table per input port, but messages are predicted with one table per switch")]
    #[diagnostic(
        code(model::tables_per_port),
        help("compute tables for switches of type 1: `switch_type = 1` of route/demands or route/import")
    )]
    PerPort(String),
    /// Tables of another machine.
    #[error("the tables do not fit the machine: switch `{switch}` has no port {port} for `{destination}`")]
    #[diagnostic(
        code(model::tables_of_another_machine),
        help(
            "connect the `system` of route/demands or route/fabric, whose links have the ports of the tables"
        )
    )]
    OtherMachine {
        /// Name of the switch.
        switch: String,
        /// Its output port.
        port: u32,
        /// Name of the destination.
        destination: String,
    },
}

/// Infeasibility diagnosis: why there is no solution and which constraints to relax.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Diagnosis {
    /// The causes, grouped by remedy. All causes of one remedy must be fixed together; any one remedy
    /// suffices.
    pub causes: Vec<Cause>,
    /// Sums by name, such as `largest_link_shortage`.
    pub metrics: BTreeMap<String, f64>,
}

/// A resource shortage of the machine or the program.
#[derive(Debug, Clone, PartialEq)]
pub struct Cause {
    /// Number of the remedy it belongs to.
    pub remedy: u32,
    /// Kind of the part.
    pub part: Part,
    /// Name of the part, or of a rule about such parts.
    pub name: String,
    /// Available amount, if it is quantitative.
    pub there: Option<f64>,
    /// Required amount, if it is quantitative.
    pub needed: Option<f64>,
    /// Description in words.
    pub words: String,
}

crate::named_values! {
    /// Kinds of parts of a machine or a program.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum Part {
        /// A link, in one direction or both.
        Link = "link",
        /// A switch.
        Switch = "switch",
        /// A host.
        Host = "host",
        /// A process.
        Process = "process",
        /// A stream.
        Stream = "stream",
    }
}

/// Effects of the failure of any single part of a machine.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Failures {
    /// One entry per failed part.
    pub failures: Vec<Failure>,
    /// Sums by name, such as `survived`.
    pub metrics: BTreeMap<String, f64>,
}

/// Effects of the failure of one part.
#[derive(Debug, Clone, PartialEq)]
pub struct Failure {
    /// Kind of the part.
    pub part: Part,
    /// Its name.
    pub name: String,
    /// Whether a solution exists without it; `None` if undetermined.
    pub survived: Option<bool>,
    /// Objective of the solution without it.
    pub objective: Option<f64>,
    /// Length of the longest route then.
    pub longest: Option<u32>,
    /// Number of processes that move to another host.
    pub moved: u32,
    /// Number of streams between unchanged hosts that take another route.
    pub rerouted: u32,
    /// Number of table entries that are new or different.
    pub changed_entries: u32,
    /// Description of the shortage; empty if the failure is survived.
    pub shortage: String,
}

impl Artifact for Diagnosis {
    const KIND: &'static str = "diagnosis";
}

impl Artifact for Failures {
    const KIND: &'static str = "failures";
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::paths::Paths;
    use crate::system_graph::{CostModel, Levels, Link, Node, Slot};

    /// Hosts 0 and 1 at switches 2 and 3, which two spines 4 and 5 join; the port of a link is its number.
    fn machine() -> SystemGraph {
        let mut nodes = vec![Node::host("a"), Node::host("b")];
        nodes.extend(["s", "t", "u", "v"].map(Node::switch));
        let cables = [(0, 2), (1, 3), (2, 4), (2, 5), (3, 4), (3, 5)];
        let links = cables.iter().flat_map(|&(a, b)| [Link::new(a, b), Link::new(b, a)]);
        let links = (0..).zip(links).map(|(index, link)| Link { source_port: Some(index), ..link });
        let slots = vec![Slot { host: 0, core: 0 }, Slot { host: 1, core: 0 }];
        let cost = CostModel::Levels(Levels { costs: vec![1.0], groups: vec![vec![0; 2]] });
        let links = links.collect();
        SystemGraph { nodes, links, slots, cost, routing: Routing::default(), calibration: Vec::new() }
    }

    fn tables(entries: &[(u32, u32, u32)]) -> Tables {
        let entry = |&(switch, destination, output_port)| TableEntry {
            switch,
            input_port: None,
            destination,
            output_port,
        };
        Tables { entries: entries.iter().map(entry).collect(), metrics: BTreeMap::new() }
    }

    #[test]
    fn messages_take_the_routes_of_tables() {
        // To b over the second spine, to a over the first.
        let tables = tables(&[(2, 0, 1), (2, 1, 6), (3, 0, 8), (3, 1, 3), (4, 0, 5), (5, 1, 11)]);
        let mut system = machine();
        system.routing = tables.routing(&system).unwrap();
        system.check().unwrap();
        let paths = Paths::new(&system).unwrap();
        assert_eq!(paths.path(0, 1), Some(vec![0, 6, 11, 3]));
        assert_eq!(paths.path(1, 0), Some(vec![2, 8, 5, 1]));
    }

    #[test]
    fn missing_entries_and_tables_of_ports_and_other_machines_are_noticed() {
        let system = machine();
        let mut routed = system.clone();
        routed.routing = tables(&[(2, 1, 6), (3, 1, 3)]).routing(&system).unwrap();
        assert_eq!(Paths::new(&routed).unwrap().path(0, 1), None);
        let refused = |tables: &Tables| tables.routing(&system).unwrap_err().to_string();
        assert!(refused(&tables(&[(2, 1, 99)])).contains("switch `s` has no port 99 for `b`"));
        assert!(refused(&tables(&[(2, 3, 6)])).contains("for `t`"));
        let mut per_port = tables(&[(2, 1, 6)]);
        per_port.entries[0].input_port = Some(0);
        assert!(refused(&per_port).contains("switch `s` has a table per input port"));
    }
}
