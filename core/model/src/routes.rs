//! Routes of streams, switch tables that implement them, infeasibility diagnoses, and effects of failures.

use std::collections::BTreeMap;

use miette::Diagnostic;
use serde::{Deserialize, Serialize};

use crate::Artifact;

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

/// Kinds of parts of a machine or a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Part {
    /// A link, in one direction or both.
    Link,
    /// A switch.
    Switch,
    /// A host.
    Host,
    /// A process.
    Process,
    /// A stream.
    Stream,
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
