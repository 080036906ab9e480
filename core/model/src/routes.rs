//! Which links messages take: the routing of a machine and the costs that follow from it, routes of streams and the tables of switches
//! that make them, and why there are none, or what happens to them when a part of the machine fails.

use std::collections::{BTreeMap, HashMap, HashSet};

use miette::Diagnostic;
use serde::{Deserialize, Serialize};

use crate::{Artifact, CostModel, Levels, Link, NodeKind, SystemGraph, SystemGraphError};

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
                return Err(TablesError::Twice { index: index + 1 });
            }
            if key(&pair[0]) > key(&pair[1]) {
                return Err(TablesError::Unsorted { index: index + 1 });
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
    #[error("entry {index} is for the same table and destination as the one before it")]
    Twice {
        /// Index of the entry.
        index: usize,
    },
    /// Entries are not sorted.
    #[error(
        "entry {index} belongs before the one before it: they are sorted by switch, input port and destination"
    )]
    Unsorted {
        /// Index of the entry.
        index: usize,
    },
}

/// Which links messages take where there are several ways.
///
/// With forwarding tables a message goes where these send it, and nowhere if they do not know its destination. Without them it takes
/// the fewest links.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Routing {
    /// Entries of the static forwarding tables of all switches, sorted by node and last link; empty if there are none.
    pub forwarding: Vec<Forward>,
    /// What decides between ways with equally many links.
    pub ties: Ties,
}

/// An entry of a forwarding table: on `node`, what is to leave the network over the link `last` goes on over `link`.
///
/// The last link tells the host and, if it has several, the port: an address of the fabric. Where `node` is a host the entry says
/// which of its ports it sends by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Forward {
    /// The node that forwards.
    pub node: u32,
    /// The link from a switch into the host that is the destination.
    pub last: u32,
    /// The link that the node sends on.
    pub link: u32,
}

/// What decides between ways with equally many links.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Ties {
    /// The number of the destination, so that destinations are spread over the ways: the static routes of fat trees (D-mod-K,
    /// Zahavi 2012).
    #[default]
    Spread,
    /// The link that stands first: the routes of meshes and tori whose links are in the order of their dimensions.
    First,
}

impl Routing {
    pub(crate) fn check(&self, system: &SystemGraph) -> Result<(), SystemGraphError> {
        let wrong = |index, problem| Err(SystemGraphError::Forwarding { index, problem });
        let mut before = None;
        for (index, entry) in self.forwarding.iter().enumerate() {
            let key = Some((entry.node, entry.last));
            let (Some(link), Some(last)) =
                (system.links.get(entry.link as usize), system.links.get(entry.last as usize))
            else {
                return wrong(index, "names a link that does not exist");
            };
            if link.source != entry.node {
                return wrong(index, "sends on a link that does not leave its node");
            }
            if system.nodes[last.destination as usize].kind != NodeKind::Host {
                return wrong(index, "has a last link that does not reach a host");
            }
            if before >= key {
                return wrong(index, "is not behind the ones of smaller nodes and last links");
            }
            before = key;
        }
        Ok(())
    }
}

/// Costs that follow from the links between hosts.
#[derive(Debug, Clone, PartialEq)]
pub struct RouteCosts {
    /// What counts of the links.
    pub metric: RouteMetric,
    /// Costs between slots of one host, in the unit of `metric`. The groups of the last level are the hosts.
    pub inside: Levels,
}

/// What a message between two hosts costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RouteMetric {
    /// The number of links.
    Hops,
    /// The latencies of the links, in microseconds.
    Latency,
    /// The latencies of the links and the time of so many bytes over the narrowest, in microseconds.
    Time {
        /// Bytes of the message.
        bytes: u64,
    },
}

impl RouteCosts {
    pub(crate) fn check(&self, system: &SystemGraph) -> Result<(), SystemGraphError> {
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
}

impl RouteMetric {
    /// What a message costs that takes this link alone, in the unit of the metric; `None` if the link does not say what counts.
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

    /// Costs of so many levels inside hosts where nobody knows them: in equal steps from zero to below the cheapest link.
    #[must_use]
    pub fn steps(self, levels: usize, links: &[Link]) -> Vec<f64> {
        let cheapest = links.iter().filter_map(|link| self.of(link)).reduce(f64::min).unwrap_or(1.0);
        (0..levels).map(|level| cheapest * level as f64 / levels as f64).collect()
    }
}

impl SystemGraph {
    /// The same machine with costs that follow from its links. The groups inside hosts stay; their costs do where the metric
    /// stays, else they are [steps](RouteMetric::steps).
    pub fn with_metric(&self, metric: RouteMetric) -> Result<Self, SystemGraphError> {
        let inside = match &self.cost {
            CostModel::Routes(routes) if routes.metric == metric => routes.inside.clone(),
            CostModel::Routes(routes) => self.stepped(metric, routes.inside.groups.clone()),
            CostModel::Levels(levels) => self.stepped(metric, self.groups_inside(levels)),
            CostModel::Matrix(_) => self.stepped(metric, self.groups_inside(&Levels::default())),
        };
        let system = Self { cost: CostModel::Routes(RouteCosts { metric, inside }), ..self.clone() };
        system.check()?;
        Ok(system)
    }

    fn stepped(&self, metric: RouteMetric, groups: Vec<Vec<u32>>) -> Levels {
        Levels { costs: metric.steps(groups.len(), &self.links), groups }
    }

    /// The groups of the levels on which no two hosts meet, and the hosts.
    fn groups_inside(&self, levels: &Levels) -> Vec<Vec<u32>> {
        let hosts: Vec<u32> = self.slots.iter().map(|slot| slot.host).collect();
        let is_inside = |groups: &&Vec<u32>| {
            let mut host_of = HashMap::new();
            groups.iter().zip(&hosts).all(|(group, host)| host_of.entry(group).or_insert(host) == &host)
        };
        let mut inside: Vec<Vec<u32>> = levels.groups.iter().take_while(is_inside).cloned().collect();
        let are_hosts = |groups: &Vec<u32>| {
            groups.windows(2).zip(hosts.windows(2)).all(|(a, b)| (a[0] == a[1]) == (b[0] == b[1]))
        };
        if !inside.last().is_some_and(are_hosts) {
            inside.push(hosts);
        }
        inside
    }
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
