//! Problems that a single topology shows, without comparison.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Display, Formatter};

use hopmap_formats::natural_key;
use hopmap_model::{CostModel, NodeKind, NodeState};
use hopmap_statistics::lower_median;
use hopmap_text::duration;
use serde::Serialize;

use crate::change::{name, percent};
use crate::drift::of_hosts;
use crate::snapshot::{Snapshot, Thresholds};

/// A problem of a topology. `Display` formats it as one line.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "finding", rename_all = "kebab-case")]
pub enum Finding {
    /// A host or a switch does not answer.
    Down {
        /// Its name.
        node: String,
    },
    /// Links in one direction without their counterparts.
    OneWay {
        /// The source.
        from: String,
        /// The destination.
        to: String,
        /// How many more links there are in this direction.
        links: usize,
    },
    /// A pair of hosts that is slower than others of its level.
    Slow {
        /// A host.
        from: String,
        /// Another host.
        to: String,
        /// Its latency in seconds.
        latency_s: f64,
        /// The median latency of its level.
        median_s: f64,
    },
}

impl Finding {
    fn order(&self) -> (u8, String, String) {
        match self {
            Self::Down { node } => (0, natural_key(node), String::new()),
            Self::OneWay { from, to, .. } => (1, natural_key(from), natural_key(to)),
            Self::Slow { from, to, .. } => (2, natural_key(from), natural_key(to)),
        }
    }
}

impl Display for Finding {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Down { node } => write!(f, "{node} is down"),
            Self::OneWay { from, to, links: 1 } => {
                write!(f, "{from} → {to}: the link has no reverse direction")
            }
            Self::OneWay { from, to, links } => {
                write!(f, "{from} → {to}: {links} links have no reverse direction")
            }
            Self::Slow { from, to, latency_s, median_s } => write!(
                f,
                "{from} – {to}: {}, the median of its level is {}{}",
                duration(*latency_s),
                duration(*median_s),
                percent(*median_s, *latency_s)
            ),
        }
    }
}

/// Nodes that are down, links in one direction only, and pairs of hosts that are slower than the median of
/// their level, in canonical order.
#[must_use]
pub fn health(snapshot: &Snapshot<'_>, thresholds: &Thresholds) -> Vec<Finding> {
    let (_, down) = snapshot.hosts();
    let mut found: Vec<Finding> = down.iter().map(|&host| Finding::Down { node: host.to_owned() }).collect();
    let switches = snapshot.system.nodes.iter().filter(|node| node.kind == NodeKind::Switch);
    let down = switches.filter(|node| node.state == NodeState::Down);
    found.extend(down.map(|node| Finding::Down { node: node.name.clone() }));
    found.extend(one_way(snapshot));
    found.extend(slow(snapshot, thresholds));
    found.sort_by_cached_key(Finding::order);
    found
}

fn one_way(snapshot: &Snapshot<'_>) -> Vec<Finding> {
    let system = snapshot.system;
    let mut links: BTreeMap<(u32, u32), usize> = BTreeMap::new();
    for link in &system.links {
        *links.entry((link.source, link.destination)).or_default() += 1;
    }
    let more = |(&(from, to), &there): (&(u32, u32), &usize)| {
        let back = links.get(&(to, from)).copied().unwrap_or(0);
        let (from, to) = (name(system, from).to_owned(), name(system, to).to_owned());
        (there > back).then(|| Finding::OneWay { from, to, links: there - back })
    };
    links.iter().filter_map(more).collect()
}

fn slow(snapshot: &Snapshot<'_>, thresholds: &Thresholds) -> Vec<Finding> {
    let Some(measured) = snapshot.measurements else { return Vec::new() };
    let latencies = of_hosts(measured);
    let (level, usual) = (Meeting::new(snapshot), snapshot.medians());
    let mut found = Vec::new();
    for (&(a, b), latency) in &latencies {
        let Some(&median_s) = usual.get(&level.of(a, b)) else { continue };
        let differs = thresholds.latencies_differ(median_s, latency.seconds, latency.spread_s);
        if latency.seconds > median_s && differs {
            let (from, to, latency_s) = (a.to_owned(), b.to_owned(), latency.seconds);
            found.push(Finding::Slow { from, to, latency_s, median_s });
        }
    }
    found
}

impl Snapshot<'_> {
    /// Median latency in seconds of the pairs of hosts that meet on each level, by level.
    #[must_use]
    pub fn medians(&self) -> BTreeMap<usize, f64> {
        let level = Meeting::new(self);
        let mut levels: BTreeMap<usize, Vec<f64>> = BTreeMap::new();
        for ((a, b), latency) in self.measurements.map(of_hosts).unwrap_or_default() {
            levels.entry(level.of(a, b)).or_default().push(latency.seconds);
        }
        levels
            .into_iter()
            .map(|(level, seconds)| (level, lower_median(seconds).unwrap_or(f64::NAN)))
            .collect()
    }

    /// The fraction of the given hosts that are up, from 0 to 1.
    #[must_use]
    pub fn coverage_of(&self, hosts: &[&str]) -> f64 {
        let up: BTreeSet<&str> = self.hosts().0.into_iter().collect();
        let there = hosts.iter().filter(|host| up.contains(**host)).count();
        if hosts.is_empty() { 1.0 } else { there as f64 / hosts.len() as f64 }
    }
}

/// The level on which two hosts meet.
struct Meeting<'a> {
    snapshot: Snapshot<'a>,
    first_slots: BTreeMap<&'a str, u32>,
}

impl<'a> Meeting<'a> {
    fn new(snapshot: &Snapshot<'a>) -> Self {
        let hosts = snapshot.system.hosts();
        let first_slots = hosts.map(|(node, first, _)| (name(snapshot.system, node), first)).collect();
        Self { snapshot: *snapshot, first_slots }
    }

    /// The level; zero if costs are a matrix or a host has no slots.
    fn of(&self, a: &str, b: &str) -> usize {
        match (&self.snapshot.system.cost, self.first_slots.get(a), self.first_slots.get(b)) {
            (CostModel::Levels(levels), Some(&a), Some(&b)) => levels.meeting_level(a, b),
            _ => 0,
        }
    }
}
