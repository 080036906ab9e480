//! Routes of streams and the tables of switches that make them, why there are none, and what happens to them when a part of the machine
//! fails.

use std::collections::BTreeMap;

use miette::Diagnostic;
use serde::{Deserialize, Serialize};

use crate::Artifact;

/// The way of every stream through a network.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Routes {
    /// The routes.
    pub routes: Vec<Route>,
    /// What a route is one of.
    pub counting: Counting,
    /// The cycle of links that wait for each other, each for the next and the last for the first; empty if there is none.
    pub cycle: Vec<u32>,
    /// Quality by the name of the metric, such as `objective`.
    pub metrics: BTreeMap<String, f64>,
}

/// What a route is one of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Counting {
    /// Every stream between two processes has a route of its own.
    #[default]
    Streams,
    /// All streams from one host to another are one stream of their bandwidth together.
    HostPairs,
}

/// The way from a host to another.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Route {
    /// Node id of the host that sends.
    pub source: u32,
    /// Node id of the host that receives; may be the same.
    pub destination: u32,
    /// Bandwidth that it takes of every link.
    pub bandwidth_bytes_per_s: f64,
    /// Indexes of the streams that take it.
    pub streams: Vec<u32>,
    /// Indexes of its links, first to last; none inside a host.
    pub links: Vec<u32>,
}

/// The tables of all switches.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Tables {
    /// The entries, sorted by switch, input port (the table of the whole switch first) and destination.
    pub entries: Vec<TableEntry>,
    /// Quality by the name of the metric, such as `entries`.
    pub metrics: BTreeMap<String, f64>,
}

/// Where a switch sends what is for a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct TableEntry {
    /// Node id of the switch.
    pub switch: u32,
    /// The port whose table it is in; nothing for the table of the whole switch.
    pub input_port: Option<u32>,
    /// Node id of the host that a packet is for.
    pub destination: u32,
    /// The port that it leaves by.
    pub output_port: u32,
}

impl Tables {
    /// Checks that entries are sorted and that no table says two things of one destination.
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

/// Tables that contradict themselves.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Diagnostic)]
pub enum TablesError {
    /// Two entries for one destination in one table.
    #[error("entry {0} is for the same table and destination as the one before it")]
    Twice(usize),
    /// Entries are not sorted.
    #[error(
        "entry {0} belongs before the one before it: they are sorted by switch, input port and destination"
    )]
    Unsorted(usize),
}

/// Why there is no solution, and what would have to be different.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Diagnosis {
    /// Each with what would cure it; those of one remedy are all needed, and any one remedy is enough.
    pub causes: Vec<Cause>,
    /// Sums by name, such as `largest_link_shortage`.
    pub metrics: BTreeMap<String, f64>,
}

/// A part of a machine or of a program that is short of something.
#[derive(Debug, Clone, PartialEq)]
pub struct Cause {
    /// Number of the remedy that it is a part of.
    pub remedy: u32,
    /// What kind of thing it is.
    pub part: Part,
    /// Its name; that of the rule where a rule about such parts is in the way.
    pub name: String,
    /// What is there, if it is an amount.
    pub there: Option<f64>,
    /// What is needed, if it is an amount.
    pub needed: Option<f64>,
    /// The whole in words.
    pub words: String,
}

/// A kind of part of a machine or of a program.
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

/// What happens when any one part of a machine fails.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Failures {
    /// One for every part that was taken away.
    pub failures: Vec<Failure>,
    /// Sums by name, such as `survived`.
    pub metrics: BTreeMap<String, f64>,
}

/// What happens when a part of a machine fails.
#[derive(Debug, Clone, PartialEq)]
pub struct Failure {
    /// What kind of part.
    pub part: Part,
    /// Its name.
    pub name: String,
    /// Whether there is an answer without it; nothing if that was not found out.
    pub survived: Option<bool>,
    /// The objective of the answer without it.
    pub objective: Option<f64>,
    /// Length of the longest route then.
    pub longest: Option<u32>,
    /// Processes that go to another host.
    pub moved: u32,
    /// Streams between the same hosts as before that take another way.
    pub rerouted: u32,
    /// Entries of tables that are new or different.
    pub changed_entries: u32,
    /// What is short, in words; empty where it is survived.
    pub shortage: String,
}

impl Artifact for Diagnosis {
    const KIND: &'static str = "diagnosis";
}

impl Artifact for Failures {
    const KIND: &'static str = "failures";
}
